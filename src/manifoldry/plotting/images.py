"""Maps of images: some of the images at their points, or images computed from positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.exceptions import NoveltyWarning, ignoring
from manifoldry.plotting._data import read_points
from manifoldry.plotting._images import (
    check_image_shape,
    draw_images,
    read_images,
    to_pixels,
    without_overlap,
)
from manifoldry.plotting._points import point_colors
from manifoldry.plotting._style import tones
from manifoldry.plotting.coloring import read_color, resolve_color
from manifoldry.plotting.embedding import plot_embedding
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENLARGED = 2.4  # inches added to both sides of a figure, since images need more room than points


def plot_images(
    embedding: Any,
    images: Any,
    color: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    image_cmap: Any = "gray_r",
    image_size: float | None = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Plot an embedding of images, and on it as many of the images as have room.

    Images do not overlap: those that would cover another one are left out, and only their points
    are drawn. Which ones are drawn is random, but the same every time.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, 2), or fitted estimator
        The embedding, as for `plot_embedding`.
    images : array-like of shape (n_samples, height, width), (n_samples, height, width, 3) or \
(n_samples, n_features)
        One image per point: gray values or colors, or rows of them with `image_shape`. Colors are
        from 0 to 255 if they are integers or one of them is above 2, otherwise from 0 to 1. Of
        gray images only those drawn are read.
    color : str or array-like of shape (n_samples,), default=None
        As for `plot_embedding`; also the colors of the frames of the images.
    image_shape : (int, int) or (int, int, 3), default=None
        Height and width of images that are passed as rows, and 3 for colors.
    image_cmap : str or Colormap, default="gray_r"
        Colormap of gray images: "gray_r" for ink on paper, "gray" for photographs.
    image_size : float, default=None
        Longer side of an image as a fraction of the longer side of the embedding; None chooses
        from 0.15 for few images to 0.045 for many.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    **options
        Further options of `plot_embedding`.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_inverse_grid : images that a model computes at a grid of positions.
    plot_walk : images along a path.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import PCA
    >>> from manifoldry.plotting import plot_images
    >>> digits = load_digits()
    >>> ax = plot_images(PCA(2).fit(digits.data), digits.images, digits.target)
    >>> 100 < len(ax.images) < 300
    True
    """
    points = _plane(read_points(embedding, options.get("components")))
    rows, shape = read_images(images, len(points), image_shape)
    color, label = read_color(color, options.pop("color_label", None), embedding)
    embedded = np.flatnonzero(np.isfinite(points).all(axis=1))
    mask = np.isin(np.arange(len(points)), embedded)
    coloring = resolve_color(color, len(points), options.pop("categorical", None), mask)
    size = _default_size(len(embedded)) if image_size is None else image_size
    width = _width(points[embedded], shape, check_positive("image_size", size))
    chosen = without_overlap(points[embedded], (width, width * shape[0] / shape[1]))
    pixels = to_pixels(rows, shape, embedded[chosen])  # before a figure is created
    options |= {"color_label": label, "categorical": coloring.categorical}
    ax = _large_plot(embedding, color, ax, options)
    frames = point_colors(ax, coloring.on(ax), chosen, options.get("cmap", "viridis"))
    draw_images(ax, pixels, points[embedded[chosen]], width, cmap=image_cmap, frames=frames)
    return ax


def plot_inverse_grid(
    model: Any,
    color: Any = None,
    *,
    image_shape: tuple[int, ...],
    image_cmap: Any = "gray_r",
    n_images: int = 15,
    max_distance: float = 2.0,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Plot the images that a fitted model computes at a grid of positions.

    Positions that are far from the embedded points have no image, since there the inverse is an
    extrapolation.

    Parameters
    ----------
    model : fitted estimator with two coordinates, or pipeline that ends with one
        Its `inverse_transform` computes the images.
    color : str or array-like of shape (n_samples,), default=None
        Of the points of the embedding, as for `plot_embedding`; they are drawn below the images.
    image_shape : (int, int) or (int, int, 3)
        Height and width of the images that the rows of the data are, and 3 for colors, which are
        from 0 to 1, or from 0 to 255 if one of them is above 2.
    image_cmap : str or Colormap, default="gray_r"
        As for `plot_images`. Gray values are clipped to the range of the middle 98 % of them.
    n_images : int, default=15
        Number of positions along the longer side of the embedding.
    max_distance : float, default=2
        Largest distance of a position with an image from the embedded points, relative to their
        spacing, as `inverse_transform` returns it: about 1 among them, and above 2 for 1 % of
        them.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    **options
        Further options of `plot_embedding`.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_images : images of the data.
    plot_walk : images along a path.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import Isomap
    >>> from manifoldry.plotting import plot_inverse_grid
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> ax = plot_inverse_grid(Isomap(2).fit(X), y, image_shape=(8, 8), n_images=12)
    >>> 40 < len(ax.images) < 12 * 12
    True
    """
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not (hasattr(model, "inverse_transform") and hasattr(last, "embedding_")):
        raise TypeError(
            f"model is of type {type(model).__name__}, which has no embedding_ or no "
            "inverse_transform; pass a fitted estimator of this package, or a pipeline that ends "
            "with one and whose other steps have an inverse_transform"
        )
    points = _plane(read_points(last))
    max_distance = check_positive("max_distance", max_distance)
    n_images = check_count("n_images", n_images, minimum=2)
    first = points[np.isfinite(points).all(axis=1)][:1]
    check_image_shape(image_shape, model.inverse_transform(first).shape[1], "data")
    width = _width(points, image_shape, 1 / n_images)
    grid = _grid(points, (width, width * image_shape[0] / image_shape[1]))
    with ignoring(NoveltyWarning):  # positions off the map are left out below
        data, distance = last.inverse_transform(grid, return_distance=True)
    near = distance <= max_distance
    if not near.any():
        raise ValueError(
            f"all {len(grid)} positions are farther than max_distance={max_distance} from the "
            f"points of the embedding, the nearest {distance.min():.3g}; raise n_images or "
            "max_distance"
        )
    data = data[near]
    if last is not model and len(model.steps) > 1:
        data = model[:-1].inverse_transform(data)
    pixels = to_pixels(data, image_shape)
    ax = _large_plot(last, color, ax, options)
    # Single pixels of computed images may be far outside the range of all others.
    limits = np.nanpercentile(pixels, (1, 99))
    pixels = np.clip(pixels, *limits) if pixels.ndim == 3 else pixels
    draw_images(ax, pixels, grid[near], width, cmap=image_cmap, frames=tones(ax).faint)
    return ax


def _plane(points: Array) -> Array:
    if points.shape[1] != 2:
        raise ValueError(
            f"the embedding has {points.shape[1]} columns, but images are drawn on two; select "
            "them, for example with components=(0, 1), or fit two"
        )
    return points


def _default_size(n: int) -> float:
    """Side of images that would cover half of a square if they did not overlap, within bounds."""
    return float(np.clip(np.sqrt(0.5 / n), 0.045, 0.15))


def _width(points: Array, shape: tuple[int, ...], size: float) -> float:
    """Width of images whose longer side is a fraction `size` of the longer side of the map."""
    extent = float((np.nanmax(points, axis=0) - np.nanmin(points, axis=0)).max())
    return (extent or 1.0) * size * shape[1] / max(shape[:2])


def _grid(points: Array, size: tuple[float, float]) -> Array:
    """Centers of the cells of a grid that covers the points, row by row."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    counts = np.maximum(1, np.round((high - low) / size)).astype(int)
    starts = (low + high - (counts - 1) * size) / 2
    x, y = (starts[axis] + size[axis] * np.arange(counts[axis]) for axis in (0, 1))
    return np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])


def _large_plot(embedding: Any, color: Any, ax: Axes | None, options: dict[str, Any]) -> Axes:
    drawn = plot_embedding(embedding, color, ax=ax, **options)
    if ax is None:
        figure: Any = drawn.figure
        figure.set_size_inches(figure.get_size_inches() + _ENLARGED)
    return drawn
