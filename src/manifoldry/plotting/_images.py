"""Images in plots: reading them, selecting some without overlap, and drawing them at positions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from manifoldry.util.array_like import array_like
from manifoldry.util.typing import Array, IntArray

# Floats above 2 are taken to be colors on a scale to 255, since computed images on a scale to 1
# exceed it a little. The tolerance is a fraction of the scale.
_BYTE = 255.0
_LARGEST_UNIT_COLOR = 2.0
_COLOR_TOLERANCE = 0.5


def read_images(images: Any, n: int, image_shape: tuple[int, ...] | None) -> tuple[Any, Any]:
    """Return images as an array or sparse matrix with `n` rows, and the shape of one of them."""
    given = array_like(images, "images")
    given = given.tocsr() if hasattr(given, "tocsr") else np.asarray(given)
    if len(given.shape) < 2 or given.shape[0] != n:
        raise ValueError(
            f"images has shape {given.shape}, but the embedding has {n} points; pass one image per "
            "point, as an array of shape (n_samples, height, width)"
        )
    if image_shape is not None:
        check_image_shape(image_shape, int(np.prod(given.shape[1:])), "images")
        return given, tuple(image_shape)
    if len(given.shape) == 2:
        raise ValueError(
            f"images has shape {given.shape}, that is one row per image; pass their height and "
            "width as image_shape"
        )
    _check_axes(given.shape[1:])
    return given, given.shape[1:]


def check_image_shape(shape: tuple[int, ...], n_pixels: int, name: str) -> None:
    """Check that images of `n_pixels` numbers can have this shape."""
    sides = tuple(shape) if np.iterable(shape) else ()
    if not sides or not all(isinstance(side, Integral) and side > 0 for side in sides):
        raise ValueError(
            f"image_shape={shape!r} must be a tuple of positive whole numbers; pass the height and "
            "width of the images, such as image_shape=(28, 28)"
        )
    if np.prod(shape) != n_pixels:
        raise ValueError(
            f"image_shape={tuple(shape)} has {np.prod(shape)} pixels, but the {name} have "
            f"{n_pixels} columns; pass the height and width of the images"
        )
    _check_axes(tuple(shape))


def _check_axes(shape: tuple[int, ...]) -> None:
    if len(shape) == 2 or (len(shape) == 3 and shape[-1] in (1, 3, 4)):
        return
    channels_first = len(shape) == 3 and shape[0] in (1, 3, 4)
    move = "; move the axis of the colors to the end, with numpy.moveaxis" if channels_first else ""
    raise ValueError(
        f"images of shape {shape} cannot be drawn; it must be (height, width) or "
        f"(height, width, 3){move}"
    )


def to_pixels(rows: Any, shape: tuple[int, ...], chosen: Any = slice(None)) -> Array:
    """Return the chosen rows as images (n, height, width), or (n, height, width, 3 or 4).

    Colors are scaled to 0 to 1, by a factor that depends on all rows, not only on the chosen ones.
    """
    picked = rows[chosen]
    dense = np.asarray(picked.toarray() if hasattr(picked, "toarray") else picked, dtype=float)
    pixels = dense.reshape(len(dense), *shape)
    if pixels.ndim == 3:
        return pixels
    if shape[-1] == 1:
        return pixels[..., 0]
    return np.clip(pixels / _color_scale(rows), 0.0, 1.0)


def _color_scale(rows: Any) -> float:
    """Value of the brightest color: 255 for integers; for floats 1, or 255 if one is above 2.

    Colors may be outside of the scale by less than half of it.
    """
    values = rows.data if hasattr(rows, "toarray") else np.asarray(rows)
    low, high = float(np.nanmin(values, initial=0)), float(np.nanmax(values, initial=0))
    is_byte = values.dtype.kind in "iu" or high > _LARGEST_UNIT_COLOR
    scale = _BYTE if is_byte else 1.0
    if low < -_COLOR_TOLERANCE * scale or high > (1 + _COLOR_TOLERANCE) * _BYTE:
        raise ValueError(
            f"images have colors from {low:.3g} to {high:.3g}; scale them to 0 to 1, or 0 to 255"
        )
    return scale


def without_overlap(centers: Array, size: tuple[float, float]) -> IntArray:
    """Select points around which boxes of this width and height do not overlap.

    Points are taken in a fixed random order, each if its box overlaps none before it, so that the
    selection covers the map and ends only when no other box fits.
    """
    remaining = np.random.default_rng(0).permutation(len(centers))
    selected = []
    while len(remaining):
        selected.append(remaining[0])
        offsets = np.abs(centers[remaining] - centers[remaining[0]])
        remaining = remaining[(offsets >= size).any(axis=1)]
    return np.array(selected, dtype=np.intp)


def draw_images(
    ax: Any, pixels: Array, centers: Array, width: float, *, cmap: Any, frames: Any
) -> None:
    """Draw images of this width, in units of the axes, at positions, framed in these colors.

    Gray values of all images have one scale.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.image import AxesImage

    half = np.array([width, width * pixels.shape[1] / pixels.shape[2]]) / 2
    for image, (x, y) in zip(pixels, centers, strict=True):
        extent = (x - half[0], x + half[0], y - half[1], y + half[1])
        drawn = AxesImage(ax, cmap=cmap, extent=extent, interpolation="antialiased", zorder=2)
        drawn.set_data(image)
        drawn.set_clim(float(np.nanmin(pixels)), float(np.nanmax(pixels)))
        ax.add_image(drawn)
        drawn.set_clip_path(ax.patch)
    corners = centers[:, None] + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    ax.add_collection(
        PolyCollection(corners, facecolors="none", edgecolors=frames, linewidths=1.0, zorder=2)
    )
    ax.update_datalim(corners.reshape(-1, 2))
    ax.autoscale_view()
