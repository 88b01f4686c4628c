"""From map positions back to data by local regression, with a figure of how far off one is."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import row_blocks
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index

_NEIGHBORS = 48  # neighbours a prediction may draw on; the bandwidth decides how many it does
_SPACING = 5  # the neighbour whose distance is the local spacing of the map
_BANDWIDTHS = 2.0 ** np.arange(-2, 4)  # in units of the local spacing
_SAMPLE = 1000  # points on which the bandwidth is chosen


@dataclass(frozen=True, eq=False)
class MapSpacing:
    """How densely a map is populated, and how far a position is from its points."""

    Z: Array

    @cached_property
    def index(self) -> NeighborIndex:
        """Neighbour search among the map positions."""
        return choose_index(np.asarray(self.Z, dtype=np.float64))

    @cached_property
    def sample(self) -> IntArray:
        """Up to a thousand evenly spread rows, to take figures on."""
        return np.arange(0, len(self.Z), max(1, len(self.Z) // _SAMPLE))[:_SAMPLE]

    @property
    def k(self) -> int:
        """Neighbours looked at around a position."""
        return min(_NEIGHBORS, len(self.Z) - 1)

    @property
    def spacing_rank(self) -> int:
        """The neighbour whose distance is the local spacing."""
        return min(_SPACING, self.k)

    @cached_property
    def sample_neighbors(self) -> tuple[IntArray, Array]:
        """Neighbours of the sampled positions, themselves left out."""
        indices, distances = self.index.nearest(self.Z[self.sample], self.k + 1)
        itself = indices == self.sample[:, None]
        itself[~itself.any(axis=1), -1] = True
        shape = (len(self.sample), self.k)
        return indices[~itself].reshape(shape), distances[~itself].reshape(shape)

    def remoteness(self, Z: Array) -> Array:
        """Distance of each position from the map's points, in units of their typical spacing.

        About 1 among the points; beyond 2 or 3 whatever is said about a position extrapolates.
        """
        _, distances = self.index.nearest(np.asarray(Z, dtype=np.float64), self.spacing_rank)
        typical = float(np.median(self.sample_neighbors[1][:, self.spacing_rank - 1]))
        return distances[:, -1] / (typical or 1.0)


class Smoother(NamedTuple):
    """A degree of local polynomial, and a bandwidth in units of the local spacing."""

    degree: int
    bandwidth: float


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """Regress data on map positions: local constant or local linear, Gaussian weights.

    The bandwidth follows the local spacing of the map. Its factor, and whether the local fit is
    constant or linear, are chosen by the leave-one-out error.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Map positions.
    X : array or sparse matrix of shape (n_samples, n_features)
        The data at those positions.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(0, 1, 50)[:, None]
    >>> regression = LocalRegression(Z, np.hstack([Z, Z**2]))
    >>> regression.predict(np.array([[0.505]])).round(3)
    array([[0.505, 0.255]])
    """

    Z: Array
    X: Matrix

    @cached_property
    def map(self) -> MapSpacing:
        """The map that is regressed on."""
        return MapSpacing(self.Z)

    @cached_property
    def smoother(self) -> Smoother:
        """The smoother of smallest leave-one-out error."""
        return min(self._candidates, key=self._leave_one_out)

    @property
    def error(self) -> float:
        """Root mean squared leave-one-out error per row, in the units of the data."""
        return float(np.sqrt(self._leave_one_out(self.smoother)))

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        Z = np.asarray(Z, dtype=np.float64)
        out = np.empty((len(Z), self.X.shape[1]))
        for block in row_blocks(len(Z), self.X.shape[1] + 16 * self.map.k):
            indices, distances = self.map.index.nearest(Z[block], self.map.k)
            out[block] = self._average(self.smoother, Z[block], indices, distances)
        return out

    @property
    def _candidates(self) -> list[Smoother]:
        # A local linear fit has n_components + 1 unknowns and needs points to spare.
        degrees = (0, 1) if self.map.k >= 2 * (self.Z.shape[1] + 1) else (0,)
        return [Smoother(degree, float(h)) for degree in degrees for h in _BANDWIDTHS]

    def _leave_one_out(self, smoother: Smoother) -> float:
        indices, distances = self.map.sample_neighbors
        predicted = self._average(smoother, self.Z[self.map.sample], indices, distances)
        truth = self.X[self.map.sample]
        truth = truth.toarray() if sparse.issparse(truth) else truth
        return float(((predicted - truth) ** 2).sum(axis=1).mean())

    def _average(self, smoother: Smoother, Z: Array, indices: IntArray, distances: Array) -> Array:
        width = smoother.bandwidth * distances[:, self.map.spacing_rank - 1]
        weights = gaussian_weights(distances, width)
        if smoother.degree == 1:
            weights = linear_weights(weights, self.Z[indices] - Z[:, None, :])
        indptr = np.arange(len(Z) + 1) * indices.shape[1]
        S = sparse.csr_array(
            (weights.ravel(), indices.ravel(), indptr), shape=(len(Z), len(self.Z))
        )
        out = S @ self.X
        return out.toarray() if sparse.issparse(out) else np.asarray(out)


def gaussian_weights(distances: Array, width: Array) -> Array:
    """exp(−d²/2h²) normalised over each row; never 0/0, however far the row or small h."""
    scaled = distances / np.where(width > 0, width, 1.0)[:, None]
    exponent = (scaled**2 - scaled[:, :1] ** 2) / 2
    # A width of zero means several points at this very position: they alone count.
    exponent[width == 0] = np.where(distances[width == 0] > 0, np.inf, 0.0)
    weights = np.exp(-exponent)
    return weights / weights.sum(axis=1, keepdims=True)


def linear_weights(weights: Array, offsets: Array) -> Array:
    """Weights of the local linear fit's value, from kernel weights and offsets to the neighbours.

    Solves the weighted least-squares problem for the intercept in each row; a little ridge on
    the slopes turns directions without spread into a local constant.
    """
    mean = np.einsum("qk,qkl->ql", weights, offsets)
    centered = offsets - mean[:, None, :]
    C = np.einsum("qk,qkl,qkm->qlm", weights, centered, centered)
    trace = np.einsum("qll->q", C)
    ridge = 1e-6 * np.where(trace > 0, trace, 1.0)
    C += ridge[:, None, None] * np.eye(C.shape[1])
    slope = np.linalg.solve(C, mean[:, :, None])[:, :, 0]
    return weights * (1 - np.einsum("qkl,ql->qk", centered, slope))
