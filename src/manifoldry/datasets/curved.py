"""Surfaces with Gaussian curvature, which have no isometric map to the plane."""

from __future__ import annotations

from functools import partial

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


def make_ring(
    n_samples: int = 1000,
    *,
    radius: float = 1.0,
    tube: float = 0.3,
    band: float = 2 * np.pi,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample a ring (a torus, or a band of one) uniformly in area.

    The outer angle θ is periodic, so its first two harmonics cos θ and sin θ are both needed; the
    third coordinate of a spectral method is usually a harmonic of 2θ and redundant. Use it to test
    whether a method then finds the inner angle.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    radius : float, default=1.0
        Distance from the center of the ring to the center of the tube.
    tube : float, default=0.3
        Radius of the tube, below `radius`.
    band : float, default=2π
        Range of the inner angle in radians, centered on the outermost circle: 2π is a closed
        tube, less is a band.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` are the outer angle in [0, 2π) and the inner angle in [−band/2, band/2], in
        radians; the inner angle is 0 on the outermost circle.

    See Also
    --------
    make_hemisphere : a surface with a boundary.
    make_swiss_roll : a surface that can be flattened.

    Examples
    --------
    >>> from manifoldry.datasets import make_ring
    >>> make_ring(600, random_state=0)
    ManifoldSample(600 points in 3 dimensions; coordinates: outer angle, inner angle)
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    radius, tube = check_positive("radius", radius), check_positive("tube", tube)
    check_below("tube", tube, radius, "radius, so that the ring does not intersect itself")
    band = check_at_most("band", check_positive("band", band), 2 * np.pi, "one full turn")
    rng = as_generator(random_state)
    outer = rng.uniform(0, 2 * np.pi, n_samples)
    inner = _inner_angles(n_samples, tube / radius, band, rng)
    embed = partial(_torus, radius=radius, tube=tube)
    names = ("outer angle", "inner angle")
    return sample_of(embed, np.column_stack([outer, inner]), names, noise, rng)


def make_hemisphere(
    n_samples: int = 1000, *, noise: float = 0.0, random_state: RandomState = None
) -> ManifoldSample:
    """Sample the unit hemisphere through stereographic coordinates.

    The coordinates are uniform in the unit disc and the map to the sphere is conformal: it keeps
    angles and scales lengths by 2 / (1 + r²), which halves from the pole to the rim. Points are
    therefore densest at the rim. Use it to test methods that should keep angles.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` are the two stereographic coordinates; the pole is at the origin.

    See Also
    --------
    make_ring : a closed surface.
    manifoldry.ConformalEigenmaps : keeps angles.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.datasets import make_hemisphere
    >>> X, coordinates = make_hemisphere(300, random_state=0)
    >>> bool(np.allclose(np.linalg.norm(X, axis=1), 1))
    True
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    rng = as_generator(random_state)
    distance = np.sqrt(rng.random(n_samples))  # uniform in area
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    coordinates = np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
    names = ("stereographic 1", "stereographic 2")
    return sample_of(_from_stereographic, coordinates, names, noise, rng)


def _torus(coordinates: Array, *, radius: float, tube: float) -> Array:
    outer, inner = np.asarray(coordinates, dtype=float).T
    from_axis = radius + tube * np.cos(inner)
    return np.column_stack(
        [from_axis * np.cos(outer), from_axis * np.sin(outer), tube * np.sin(inner)]
    )


def _inner_angles(n: int, ratio: float, band: float, rng: np.random.Generator) -> Array:
    # Rejection sampling: the area at inner angle φ is proportional to 1 + ratio·cos φ.
    angles = rng.uniform(-band / 2, band / 2, n)
    pending = np.arange(n)
    while pending.size:
        keep = rng.random(pending.size) * (1 + ratio) < 1 + ratio * np.cos(angles[pending])
        pending = pending[~keep]
        angles[pending] = rng.uniform(-band / 2, band / 2, pending.size)
    return angles


def _from_stereographic(coordinates: Array) -> Array:
    T = np.asarray(coordinates, dtype=float)
    square = (T**2).sum(axis=1)
    return np.column_stack([2 * T, 1 - square]) / (1 + square)[:, None]
