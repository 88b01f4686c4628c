"""What every generator returns: points, the coordinates they were made from, and the map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class ManifoldSample:
    """Points on a manifold together with the coordinates that generated them.

    Use it as an object, or unpack it as a pair as with scikit-learn's generators:
    ``X, coordinates = make_swiss_roll(1000)``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The points, with noise.
    coordinates : ndarray of shape (n_samples, n_coordinates)
        The true coordinates on the manifold; always two-dimensional, also for curves.
    names : tuple of str
        What each column of `coordinates` measures.
    embed : callable
        The map of the manifold: coordinates of shape (m, n_coordinates) to points without
        noise. Good for drawing the surface, or for points beyond its edge.
    labels : ndarray of shape (n_samples,) or None
        The piece each point lies on, where the manifold has several.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> sample = make_swiss_roll(500, random_state=0)
    >>> sample
    ManifoldSample(500 points in 3 dimensions; coordinates: arc length, height)
    >>> X, coordinates = sample
    >>> X.shape, coordinates.shape
    ((500, 3), (500, 2))
    """

    X: Array
    coordinates: Array
    names: tuple[str, ...]
    embed: Callable[[Array], Array]
    labels: IntArray | None = None

    def __iter__(self) -> Iterator[Array]:
        return iter((self.X, self.coordinates))

    def __getitem__(self, i: int) -> Array:
        return (self.X, self.coordinates)[i]

    def __repr__(self) -> str:
        n_samples, n_features = self.X.shape
        return (
            f"{type(self).__name__}({n_samples} points in {n_features} dimensions; "
            f"coordinates: {', '.join(self.names)})"
        )


def sample_of(
    embed: Callable[[Array], Array],
    coordinates: Array,
    names: tuple[str, ...],
    noise: float,
    rng: np.random.Generator,
    labels: IntArray | None = None,
) -> ManifoldSample:
    """Map the coordinates to points and add isotropic Gaussian noise."""
    X = embed(coordinates)
    if noise > 0:
        X = X + noise * rng.standard_normal(X.shape)
    return ManifoldSample(X, coordinates, names, embed, labels)
