"""Plots of a walk along the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.plotting._data import read_points
from manifoldry.plotting._images import check_image_shape, to_pixels
from manifoldry.plotting._layout import make_room
from manifoldry.plotting._style import halo, tones
from manifoldry.plotting.embedding import plot_embedding
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_walk(
    walk: Any,
    embedding: Any,
    color: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    image_cmap: Any = "gray_r",
    n_images: int = 8,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Plot a walk along the data over the embedding, and images of the data along it.

    Parameters
    ----------
    walk : Walk
        Result of the method ``walk`` of a fitted estimator.
    embedding : array-like of shape (n_samples, 2), or fitted estimator
        The embedding, as for `plot_embedding`.
    color : str or array-like of shape (n_samples,), default=None
        As for `plot_embedding`.
    image_shape : (int, int) or (int, int, 3), default=None
        As for `plot_inverse_grid`; None draws no images. They are drawn in a strip below, that of
        the start at the left; the dots on the path are their positions.
    image_cmap : str or Colormap, default="gray_r"
        As for `plot_images`.
    n_images : int, default=8
        Number of images, equally spaced over the points of the walk. Those of a walk without
        ``n_steps`` are training images; with it, most are blends of two neighboring ones.
    ax : matplotlib Axes, default=None
        As for `plot_images`. The strip takes up to a third of the axes.
    **options
        As for `plot_images`.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_images : images of the data on their points.
    plot_inverse_grid : images at a grid of positions.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import Isomap
    >>> from manifoldry.plotting import plot_walk
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = Isomap().fit(X)
    >>> ax = plot_walk(model.walk(X, 0, 2), model, y, image_shape=(8, 8))
    """
    if not hasattr(walk, "coordinates"):
        raise TypeError(
            f"walk is of type {type(walk).__name__}; pass the result of a fitted model's walk"
        )
    Y = read_points(embedding, options.get("components"))
    path = read_points(walk.coordinates, options.get("components"))
    if Y.shape[1] != 2 or path.shape[1] != 2:
        raise ValueError(
            f"the embedding has {Y.shape[1]} columns and the walk {path.shape[1]}, but both must "
            "have 2; select them, for example with components=(0, 1)"
        )
    shown = _image_steps(walk, image_shape, n_images)
    is_new = ax is None
    ax = plot_embedding(embedding, color, ax=ax, **options)
    ax.plot(*path.T, color=tones(ax).text, linewidth=1.6, zorder=3)
    ax.plot(*path[shown].T, "o", color=tones(ax).text, markersize=4, zorder=3)
    for text, end in (("start", path[0]), ("end", path[-1])):
        ax.annotate(
            text,
            end,
            xytext=(4, 4),
            textcoords="offset points",
            color=tones(ax).text,
            path_effects=halo(ax),
        )
    if image_shape is not None:
        images = np.hstack([*to_pixels(walk.data, image_shape, shown)])
        _draw_strip(ax, images, image_cmap, enlarge=is_new)
    return ax


def _image_steps(walk: Any, shape: tuple[int, ...] | None, n_images: int) -> Any:
    """Indices of the steps that are marked: those with images, or both ends."""
    n = len(walk.coordinates)
    if shape is None:
        return [0, n - 1]
    if walk.data is None:
        raise ValueError("the walk has no data, so there are no images; pass image_shape=None")
    check_image_shape(shape, walk.data.shape[1], "data")
    count = min(check_count("n_images", n_images, minimum=2), n)
    return np.round(np.linspace(0, n - 1, count)).astype(int)


def _draw_strip(ax: Any, images: Array, cmap: Any, *, enlarge: bool) -> None:
    """Draw images, side by side in one array, below the axes, in a part of their place."""
    height, width = images.shape[:2]
    if enlarge:  # the axes are square
        figure_width, figure_height = ax.figure.get_size_inches()
        ax.figure.set_size_inches(figure_width, figure_height * (1 + height / width))
        fraction = height / (height + width)
    else:
        fraction = height / width * ax.bbox.width / ax.bbox.height
    room = make_room(ax, min(fraction, 1 / 3), "bottom")
    strip = ax.figure.add_axes(room) if isinstance(room, tuple) else ax.figure.add_subplot(room)
    strip.imshow(images, cmap=cmap, aspect="equal")
    strip.set_anchor("NW")
    strip.set_axis_off()
