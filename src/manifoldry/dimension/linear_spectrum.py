"""The variances of data along their principal axes, with what chance does to them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.base.input import Points
from manifoldry.eigen import resolve_solver
from manifoldry.neighbors.distances import squared_norms
from manifoldry.spectral.gram import LinearGram
from manifoldry.util.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class LinearSpectrum:
    """Fractions of the variance along the principal axes, with what each point contributes.

    Parameters
    ----------
    fractions : array of shape (k,)
        Fraction of the whole variance along every axis, largest first.
    parts : array of shape (n_rows, k)
        Squared coordinates of every point, as fractions of the mean squared distance to the center.
    lengths : array of shape (n_rows,)
        Squared distances to the center, divided by their mean.
    all_there_are : int
        Number of axes that data of this shape can have.
    """

    fractions: Array
    parts: Array
    lengths: Array
    all_there_are: int

    @classmethod
    def of(cls, X: Matrix, *, max_rows: int = 10_000, max_axes: int = 300) -> "LinearSpectrum":
        """Decompose the Gram matrix of the data, or of a sample of them, always the same."""
        rng = np.random.default_rng(0)
        if X.shape[0] > max_rows:
            X = X[np.sort(rng.choice(X.shape[0], max_rows, replace=False))]
        n = X.shape[0]
        bound = min(n - 1, X.shape[1])
        pose = LinearGram.of(Points(X))
        solver = resolve_solver("auto", end="largest")
        spectrum = solver.solve(pose.problem, min(bound, max_axes), rng)
        values = np.maximum(spectrum.values, 0.0)
        lengths = _squared_lengths(pose) * n / pose.inertia
        parts = values * spectrum.vectors**2 * n / pose.inertia
        return cls(values / pose.inertia, parts, lengths, bound)

    @property
    def errors(self) -> Array:
        """Standard error of each fraction: to first order eigenvectors do not matter."""
        influence = self.parts - self.fractions * self.lengths[:, None]
        return influence.std(axis=0) / np.sqrt(len(self.lengths))

    @property
    def held(self) -> tuple[Array, Array]:
        """Fraction of the variance that the first axes hold together, and its standard error."""
        held = np.minimum(np.cumsum(self.fractions), 1.0)
        influence = np.cumsum(self.parts, axis=1) - held * self.lengths[:, None]
        return held, influence.std(axis=0) / np.sqrt(len(self.lengths))


def _squared_lengths(pose: LinearGram) -> Array:
    """Squared distances of the points from their mean, in units of the pose."""
    F = pose.problem.operator.factor
    if not sparse.issparse(F):
        return squared_norms(F)
    mean = np.asarray(F.mean(axis=0)).ravel()
    return np.asarray(squared_norms(F) - 2 * (F @ mean) + mean @ mean)
