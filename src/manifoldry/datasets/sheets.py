"""Sheets: a flat rectangle bent, without stretching, into three or more dimensions.

The true coordinates are lengths in the rectangle, so an isometric method has to return them up to
a rigid motion. Points are uniform in area.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from manifoldry.datasets.dataset import ManifoldSample, sample_of
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_below,
    check_count,
    check_nonnegative,
    check_positive,
)
from manifoldry.util.typing import Array, RandomState

_FULL_TURN = 2 * np.pi


def make_swiss_roll(
    n_samples: int = 1000,
    *,
    turns: float = 1.5,
    start: float = 0.75,
    height: float | None = None,
    aspect: float | None = None,
    hole: bool | tuple[float, float] = False,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample a Swiss roll uniformly in arc length and height.

    The roll is a rectangle wound along the Archimedean spiral r = θ. scikit-learn's roll is the
    same surface but uniform in the angle, so its outer turns are sparser and its returned angle is
    not an isometric coordinate; here the coordinates are lengths, so the distance between two
    close points equals the distance of their coordinates.

    Use it to test whether a method unrolls a sheet; `hole` makes the sheet non-convex, which
    violates the assumption of Isomap, and a large `aspect` makes eigenvectors redundant.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    turns : float, default=1.5
        How many times the sheet winds around the axis.
    start : float, default=0.75
        Where the spiral begins, in turns from its center.
    height : float, default=None
        Height of the sheet; 21 if neither it nor `aspect` is given.
    aspect : float, default=None
        Length divided by height, an alternative to `height`.
    hole : bool or pair of float, default=False
        Cut out a centered rectangle of these fractions of length and height; True is (1/3, 1/3).
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` are the arc length from the inner edge and the height.

    See Also
    --------
    make_s_curve : an easier sheet.
    make_strip : a rectangle of any aspect ratio.
    sklearn.datasets.make_swiss_roll : the same surface, uniform in the angle.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, aspect=4.0, random_state=0)
    >>> X.shape, coordinates.shape
    ((800, 3), (800, 2))
    >>> with_hole = make_swiss_roll(800, hole=True, random_state=0)
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    inner = _FULL_TURN * check_nonnegative("start", start)
    outer = inner + _FULL_TURN * check_positive("turns", turns)
    length = float(spiral_length(outer) - spiral_length(inner))
    sides = (length, _resolve_height(length, height, aspect))
    rng = as_generator(random_state)
    coordinates = _uniform_rectangle(n_samples, sides, _resolve_hole(hole), rng)
    embed = partial(_roll, inner=inner)
    return sample_of(embed, coordinates, ("arc length", "height"), noise, rng)


def make_s_curve(
    n_samples: int = 1000,
    *,
    width: float = 2.0,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample an S-shaped sheet uniformly in arc length and width.

    The profile is two three-quarter arcs of unit circles, of total length 3π. It is the easiest
    of the curved sheets: a method that fails here has the wrong scale, such as n_neighbors.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    width : float, default=2.0
        Width of the sheet.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` are the arc length in [0, 3π] and the position across the width.

    See Also
    --------
    make_swiss_roll : a sheet whose layers are close together.
    sklearn.datasets.make_s_curve : the same surface.

    Examples
    --------
    >>> from manifoldry.datasets import make_s_curve
    >>> make_s_curve(200, noise=0.05, random_state=0)
    ManifoldSample(200 points in 3 dimensions; coordinates: arc length, width)
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    sides = (3 * np.pi, check_positive("width", width))
    rng = as_generator(random_state)
    coordinates = _uniform_rectangle(n_samples, sides, None, rng)
    return sample_of(_s_shape, coordinates, ("arc length", "width"), noise, rng)


def make_strip(
    n_samples: int = 1000,
    *,
    aspect: float = 2.5,
    width: float = 1.0,
    curl: float = 0.0,
    n_features: int | None = None,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample a rectangle of a given aspect ratio, flat or rolled into part of a cylinder.

    The eigenfunctions of the Laplacian on an L1 × L2 rectangle are known products of cosines:
    the first ⌊L1 / L2⌋ of them depend on the long side alone. Use it to test for redundant
    coordinates of spectral methods.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    aspect : float, default=2.5
        Length divided by width.
    width : float, default=1.0
        Length of the short side (the long one, if `aspect` is below 1).
    curl : float, default=0.0
        Angle in radians, at most 2π, through which the length is bent; 0 is flat.
    n_features : int, default=None
        Dimension of the ambient space; None is 2 if flat and 3 if curled. With more, the strip is
        rotated into a random subspace.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` are the positions along the length and across the width.

    See Also
    --------
    make_swiss_roll : a rolled-up sheet.
    manifoldry.NonRedundant : finds the short side of a long strip.

    Examples
    --------
    >>> from manifoldry.datasets import make_strip
    >>> make_strip(500, aspect=3.5, random_state=0).X.shape
    (500, 2)
    >>> make_strip(500, aspect=3.5, curl=3.0, n_features=10, random_state=0).X.shape
    (500, 10)
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    width = check_positive("width", width)
    length = check_positive("aspect", aspect) * width
    curl = check_at_most("curl", check_nonnegative("curl", curl), _FULL_TURN, "one full turn")
    own = 3 if curl > 0 else 2
    n_features = own if n_features is None else check_count("n_features", n_features, own)
    rng = as_generator(random_state)
    coordinates = _uniform_rectangle(n_samples, (length, width), None, rng)
    frame = None if n_features == own else _orthonormal_rows(own, n_features, rng)
    embed = partial(_bend, curvature=curl / length, frame=frame)
    return sample_of(embed, coordinates, ("length", "width"), noise, rng)


def spiral_length(angle: Any) -> Any:
    """Arc length of the spiral r = θ from its center to `angle`: ∫ √(1 + θ²) dθ."""
    return 0.5 * (angle * np.sqrt(1 + np.square(angle)) + np.arcsinh(angle))


def spiral_angle(length: Any) -> Any:
    """Invert `spiral_length` by Newton's method.

    The length is convex in the angle and √(2 length) lies beyond the root, so the iterates fall
    monotonically: no safeguard is needed, and a dozen steps are ample for any length.
    """
    angle = np.sqrt(2 * np.asarray(length, dtype=float))
    for _ in range(12):
        angle = angle - (spiral_length(angle) - length) / np.sqrt(1 + angle**2)
    return angle


def _roll(coordinates: Array, *, inner: float) -> Array:
    arc, height = np.asarray(coordinates, dtype=float).T
    angle = spiral_angle(arc + spiral_length(inner))
    return np.column_stack([angle * np.cos(angle), height, angle * np.sin(angle)])


def _s_shape(coordinates: Array) -> Array:
    arc, across = np.asarray(coordinates, dtype=float).T
    angle = arc - 1.5 * np.pi  # both arcs have radius 1, so the angle is the arc length
    return np.column_stack([np.sin(angle), across, np.sign(angle) * (np.cos(angle) - 1)])


def _bend(coordinates: Array, *, curvature: float, frame: Array | None) -> Array:
    along, across = np.asarray(coordinates, dtype=float).T
    if curvature == 0:
        points = np.column_stack([along, across])
    else:
        angle = curvature * along
        rise = 2 * np.sin(angle / 2) ** 2  # 1 − cos without cancellation
        points = np.column_stack([np.sin(angle) / curvature, across, rise / curvature])
    return points if frame is None else points @ frame


def _orthonormal_rows(k: int, dimension: int, rng: np.random.Generator) -> Array:
    return np.linalg.qr(rng.standard_normal((dimension, k)))[0].T


def _uniform_rectangle(
    n: int, sides: tuple[float, float], hole: tuple[float, float] | None, rng: np.random.Generator
) -> Array:
    unit = rng.random((n, 2))
    while hole is not None and (inside := _in_hole(unit, hole)).any():
        unit[inside] = rng.random((int(inside.sum()), 2))  # rejection keeps the rest uniform
    return unit * sides


def _in_hole(unit: Array, hole: tuple[float, float]) -> Any:
    return (np.abs(unit - 0.5) < np.asarray(hole) / 2).all(axis=1)


def _resolve_height(length: float, height: float | None, aspect: float | None) -> float:
    if height is not None and aspect is not None:
        raise ValueError(
            f"height={height} and aspect={aspect} determine the same quantity; pass only one"
        )
    if aspect is not None:
        return length / check_positive("aspect", aspect)
    return 21.0 if height is None else check_positive("height", height)


def _resolve_hole(hole: bool | tuple[float, float]) -> tuple[float, float] | None:
    if isinstance(hole, bool | np.bool_):
        return (1 / 3, 1 / 3) if hole else None
    if np.shape(hole) != (2,):
        raise ValueError(f"hole={hole!r} must be True, False or two fractions, such as (0.3, 0.3)")
    along, across = (check_positive("hole fraction", side) for side in hole)
    for side in (along, across):
        check_below("hole fraction", side, 1.0, "so that the hole is inside the sheet")
    return along, across
