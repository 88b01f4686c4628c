"""Curves, connected or in several arcs; the true coordinate is an angle."""

from __future__ import annotations

from functools import partial

import numpy as np

from manifoldry.datasets.dataset import ManifoldSample, sample_of
from manifoldry.util.checks import (
    as_generator,
    check_below,
    check_count,
    check_nonnegative,
    check_positive,
)
from manifoldry.util.typing import Array, RandomState


def make_helix(
    n_samples: int = 300,
    *,
    radius: float = 2.0,
    rise: float = 0.8,
    turns: float = 2.0,
    noise: float = 0.15,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample a noisy helix, uniformly along its length.

    The points are (r cos θ, r sin θ, rise · θ) plus noise. Neighboring windings are closer than
    the ends of one, so a method with a poor initialization mixes windings: use it to test the
    initialization of one-dimensional embeddings.

    Parameters
    ----------
    n_samples : int, default=300
        Number of points.
    radius : float, default=2.0
        Radius of the windings.
    rise : float, default=0.8
        Height gained per radian.
    turns : float, default=2.0
        Number of windings; the angle runs over [0, 2π · turns].
    noise : float, default=0.15
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` is the angle θ in radians, as one column.

    See Also
    --------
    make_partitioned_circle : arcs of a circle.
    make_swiss_roll : a wound-up sheet.

    Examples
    --------
    >>> from manifoldry.datasets import make_helix
    >>> X, angle = make_helix(300, random_state=0)
    >>> X.shape, angle.shape
    ((300, 3), (300, 1))
    """
    n_samples, noise = check_count("n_samples", n_samples), check_nonnegative("noise", noise)
    embed = partial(
        _wind, radius=check_positive("radius", radius), rise=check_nonnegative("rise", rise)
    )
    stop = 2 * np.pi * check_positive("turns", turns)
    rng = as_generator(random_state)
    return sample_of(embed, rng.uniform(0, stop, (n_samples, 1)), ("angle",), noise, rng)


def make_partitioned_circle(
    n_samples: int = 150,
    *,
    n_arcs: int = 3,
    gap: float = np.pi / 6,
    radius: float = 1.0,
    noise: float = 0.03,
    random_state: RandomState = None,
) -> ManifoldSample:
    """Sample a circle that is divided into equal arcs with gaps between them.

    With the default three arcs of 90° and gaps of 30°, the data are both three clusters and one
    circle: with a narrow kernel the leading eigenvectors are constant on the arcs, with a wide one
    they vary along the circle. Points are ordered by arc; arcs have nearly equal numbers of points.

    Parameters
    ----------
    n_samples : int, default=150
        Number of points, at least `n_arcs`.
    n_arcs : int, default=3
        Number of arcs.
    gap : float, default=π/6
        Angle in radians between the end of an arc and the start of the next.
    radius : float, default=1.0
        Radius of the circle.
    noise : float, default=0.03
        Standard deviation of the Gaussian noise added to every feature.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    ManifoldSample
        `coordinates` is the angle in radians, as one column; `labels` are the arcs, from 0.

    See Also
    --------
    make_helix : one curve.
    manifoldry.SpectralClustering : finds the arcs.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.datasets import make_partitioned_circle
    >>> sample = make_partitioned_circle(150, random_state=0)
    >>> np.bincount(sample.labels)
    array([50, 50, 50])
    """
    n_arcs = check_count("n_arcs", n_arcs)
    n_samples = check_count("n_samples", n_samples, minimum=n_arcs)
    gap, noise = check_nonnegative("gap", gap), check_nonnegative("noise", noise)
    period = 2 * np.pi / n_arcs
    check_below("gap", gap, period, f"2π / n_arcs for n_arcs={n_arcs}")
    rng = as_generator(random_state)
    labels = np.arange(n_samples) * n_arcs // n_samples
    angle = labels * period + rng.uniform(0, period - gap, n_samples)
    embed = partial(_circle, radius=check_positive("radius", radius))
    return sample_of(embed, angle[:, None], ("angle",), noise, rng, labels)


def _wind(coordinates: Array, *, radius: float, rise: float) -> Array:
    angle = np.asarray(coordinates, dtype=float)[:, 0]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rise * angle])


def _circle(coordinates: Array, *, radius: float) -> Array:
    angle = np.asarray(coordinates, dtype=float)[:, 0]
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])
