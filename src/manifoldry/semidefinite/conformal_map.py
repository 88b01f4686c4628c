"""The linear map of given functions that best preserves angles in neighborhoods."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.neighborhoods import gathered
from manifoldry.optimize.interior_point import svec, svec_outer
from manifoldry.optimize.semidefinite_quadratic import (
    FixedRank,
    SemidefiniteQuadratic,
    SemidefiniteSolution,
)
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks


@dataclass(frozen=True, eq=False)
class ConformalMap:
    """A linear map of given functions, and how well it preserves angles.

    Parameters
    ----------
    center : array of shape (m,)
        Mean of the functions.
    axes : array of shape (m, n_components)
        Coordinates are (y − center)·axes, by decreasing variance, in units of the data.
    fractions : array of shape (m,)
        Eigenvalues of the optimal P: fractions of the variance along its principal axes.
    scales : array of shape (n,)
        Ratio of lengths on the map to lengths in the data near every point; NaN where all neighbors
        coincide.
    loss : float
        The objective, for orthonormal functions and AᵀA of trace one.
    solution : SemidefiniteSolution
        Solution of the convex problem, over maps of any dimension.
    """

    center: Array
    axes: Array
    fractions: Array
    scales: Array
    loss: float
    solution: SemidefiniteSolution


@dataclass(frozen=True, eq=False)
class NeighborhoodPairs:
    """All pairs of points in a common neighborhood, with their squared distances.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    members : array of shape (n_samples, k + 1)
        Members of each neighborhood, the point itself first; negative entries are ignored.
    budget : int, default=2**20
        Number of values per block, chosen to fit into the processor's cache.
    """

    X: Matrix
    members: IntArray
    budget: int = 2**20

    @cached_property
    def frame(self) -> Frame:
        """Origin and unit of the data."""
        return Frame.of(self.X)

    def blocks(self, numbers: int) -> Iterator[tuple[slice, Array, Array]]:
        """Iterate over blocks of neighborhoods: slice, squared lengths (n_block, n_pairs), units.

        Lengths are in the unit of their neighborhood. `numbers` is how many values the caller
        stores per pair, from which the block size follows.
        """
        k = self.members.shape[1]
        per_row = max(k * (k - 1) // 2 * numbers, k * self.X.shape[1])
        for block in row_blocks(len(self.members), per_row, budget=self.budget):
            local = (gathered(self.X, self._filled[block]) - self.frame.origin) / self.frame.unit
            local -= local[:, :1].copy()
            unit = np.abs(local).max(axis=(1, 2))
            local /= np.where(unit > 0, unit, 1.0)[:, None, None]
            yield block, _squared_lengths(local, *self._ends) * self._inside(block), unit

    def differences(self, Y: Array, block: slice) -> Array:
        """Differences of `Y` between the points of every pair, (n_block, n_pairs, n_functions)."""
        local = Y[self._filled[block]]
        a, b = self._ends
        differences = local[:, a]
        differences -= local[:, b]
        return np.asarray(differences * self._inside(block)[:, :, None])

    def _inside(self, block: slice) -> Array:
        """1.0 for pairs of valid members, else 0.0."""
        here, (a, b) = self.members[block] >= 0, self._ends
        return np.asarray((here[:, a] & here[:, b]).astype(float))

    @cached_property
    def _filled(self) -> IntArray:
        """Members, with ignored entries replaced by the point itself."""
        return np.where(self.members < 0, self.members[:, :1], self.members)

    @cached_property
    def _ends(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(self.members.shape[1], 1)


def conformal_map(
    Y: Array,
    pairs: NeighborhoodPairs,
    n_components: int,
    refine: bool,
    *,
    least_spread: float = 1e-6,
) -> ConformalMap:
    """Minimize Σᵢ Σ_{j<k} (‖zⱼ − zₖ‖² − sᵢ‖xⱼ − xₖ‖²)² over linear maps z of `Y` and scales s.

    The functions `Y` are made orthonormal first, so that only their span matters, and the variance
    of the map is the trace of P = AᵀA, which is fixed to one. With `refine`, the search continues
    from the leading axes of the convex optimum among maps of `n_components` coordinates. Singular
    values of `Y` below `least_spread` times the largest are dropped.
    """
    U, center, whiten, unit = _orthonormal(Y, least_spread)
    Q = conformal_form(U, pairs)
    solution = SemidefiniteQuadratic(2 * Q, trace_one=True).solve()
    fractions, R = _leading(solution.P, n_components)
    if refine and 0 < n_components < (fractions > 0).sum():
        R = FixedRank(Q).minimize(R)
    p = svec(R @ R.T)
    R = R * _signs(U @ R)
    scales, size = _scales(U @ R, pairs)
    return ConformalMap(
        center,
        np.pad(whiten @ R * (size / unit), ((0, 0), (0, n_components - R.shape[1]))),
        np.pad(fractions, (0, Y.shape[1] - len(fractions))),
        scales,
        max(float(p @ Q @ p), 0.0),  # nonnegative up to rounding
        solution,
    )


def _orthonormal(Y: Array, least_spread: float) -> tuple[Array, Array, Array, float]:
    """Orthonormal functions with the span of centered `Y`, its mean, and the transformation.

    The transformation applies to `Y` divided by a unit, the last value: its entries could overflow
    otherwise. There are fewer functions if `Y` is rank-deficient, but always at least one.
    """
    center = Y.mean(axis=0)
    unit = power_of_two_scale(Y - center)
    U, size, Vt = np.linalg.svd((Y - center) / unit, full_matrices=False)
    rank = max(int((size > least_spread * size[0]).sum()), 1)
    size = np.where(size > 0, size, np.inf)[:rank]  # constant data: all coordinates are zero
    return U[:, :rank] * np.isfinite(size), center, Vt[:rank].T / size, unit


def _leading(P: Array, k: int, rounding: float = 1e-12) -> tuple[Array, Array]:
    """Eigenvalues of `P`, and its first k principal axes scaled to Frobenius norm one.

    Eigenvalues below `rounding` are set to zero.
    """
    fractions, vectors = np.linalg.eigh(P)
    fractions, vectors = np.where(fractions > rounding, fractions, 0.0)[::-1], vectors[:, ::-1]
    R = vectors[:, :k] * np.sqrt(fractions[:k])
    return fractions, R / np.linalg.norm(R)


def _signs(Z: Array) -> Array:
    """Signs that make coordinates deterministic, by the convention for eigenvectors."""
    return np.where((fixed_signs(Z) * Z).sum(axis=0) < 0, -1.0, 1.0)


def conformal_form(Y: Array, pairs: NeighborhoodPairs) -> Array:
    """Matrix Q with svec(P)ᵀ·Q·svec(P) equal to the objective at the best scales, P = AᵀA.

    Where all neighbors coincide in the data the scale has no effect, but their distances on the map
    still count.
    """
    numbers = Y.shape[1] * (Y.shape[1] + 1) // 2
    Q = np.zeros((numbers, numbers))
    for block, lengths, _ in pairs.blocks(numbers):
        U = svec_outer(pairs.differences(Y, block))  # (n_block, n_pairs, numbers)
        norm = np.sqrt((lengths**2).sum(axis=1))
        B = (lengths[:, None, :] @ U)[:, 0] / np.where(norm > 0, norm, np.inf)[:, None]
        U = U.reshape(-1, numbers)
        Q += U.T @ U - B.T @ B
    return Q


def _scales(Z: Array, pairs: NeighborhoodPairs) -> tuple[Array, float]:
    """Ratios of lengths on the map to lengths in the data, and the best factor for the map.

    The factor minimizes Σ(‖zⱼ − zₖ‖² − ‖xⱼ − xₖ‖²)² over all pairs; the ratios are those of the
    map after multiplication by it.
    """
    root = np.full(len(pairs.members), np.nan)
    mixed = own = 0.0
    for block, lengths, unit in pairs.blocks(Z.shape[1]):
        found = (pairs.differences(Z, block) ** 2).sum(axis=2)
        norm = (lengths**2).sum(axis=1)
        known = norm > 0
        best = (lengths * found).sum(axis=1)[known] / norm[known]
        root[block.start + np.flatnonzero(known)] = np.sqrt(best) / unit[known]
        mixed += float(((lengths * found).sum(axis=1) * unit**2).sum())
        own += float((found**2).sum())
    size = np.sqrt(mixed / own) if own > 0 else 0.0
    return root * size, float(size * pairs.frame.unit)


def _squared_lengths(local: Array, a: IntArray, b: IntArray) -> Array:
    """Squared distances (n_block, n_pairs) of all pairs in centered neighborhoods."""
    if local.shape[2] <= local.shape[1]:
        return np.asarray(((local[:, a] - local[:, b]) ** 2).sum(axis=2))
    gram = local @ local.transpose(0, 2, 1)
    own = np.einsum("nii->ni", gram)
    return np.maximum(own[:, a] + own[:, b] - 2 * gram[:, a, b], 0.0)
