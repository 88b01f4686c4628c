"""Inverse of the elastic embedding: the data that minimize its energy at given coordinates."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.affinity.entropic import EntropicWeights
from manifoldry.affinity.gaussian import GaussianWeights
from manifoldry.device import current_device
from manifoldry.exceptions import ExtensionWarning, warn
from manifoldry.extension.new_points import first_minimum
from manifoldry.extension.on_device import BUDGET, copied_to
from manifoldry.extension.pair_energy import PairEnergy, minimize_energies
from manifoldry.neighbors.distances import Frame, expanded_squares, squared_norms
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks, spread_rows


@dataclass(frozen=True, eq=False)
class ElasticInverse:
    """Minimize the energy of the elastic embedding over the data point y, given its position x.

    The energy is Σₙ w⁺(y, yₙ)·aₙ + (λ/Σw⁻)·Σₙ e^{−aₙ}·‖y − yₙ‖² with aₙ = ‖x − xₙ‖²: an
    attraction to the mean of the data at nearby positions, and a repulsion from similar data at
    distant positions. The repulsive weights of the embedding must be squared distances. With
    uniform weights only the repulsion remains, which has no minimizer.

    The published energy has no free parameter. It often repels the reconstruction from the data, so
    :meth:`with_chosen_widths` chooses the widths of both terms by the leave-one-out error. Far from
    the embedding the minimizer may not be unique, as any point at some distance from the data of
    the nearest training point; then one of them is returned.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Z : array of shape (n_samples, n_components)
        Their coordinates.
    widths, log_scale : arrays of shape (n_samples,)
        The affinities are w⁺(y, yₙ) = exp(log_scaleₙ − ‖y − yₙ‖²/widthₙ²); a width of zero means
        none. The affinities of the training data sum to one, so positive values of log_scale are
        replaced by zero.
    strength : float
        λ, for repulsive weights that sum to one.
    attraction_width : float, default=1.0
        Width h of the kernel e^{−aₙ/h²} in the embedding; one in the publication.
    repulsion_width : float, default=1.0
        Factor of the widths of the affinities; one in the publication, zero for no repulsion.
    n_nearest : int, default=3
        Number of nearest training points in the embedding from which searches start, in addition
        to their weighted mean.
    max_squared_distance : float, default=30.0
        The kernel weights exp(−d²) are scaled up where necessary so that the largest is at least
        exp(−max_squared_distance): far from all training coordinates they would underflow.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(0, 10, 50)[:, None]
    >>> X = np.hstack([np.cos(Z / 10), np.sin(Z / 10)])
    >>> inverse = ElasticInverse(X, Z, np.full(50, 0.1), np.full(50, -6.0), strength=100.0)
    >>> inverse.predict(np.array([[5.0]])).round(2)
    array([[0.88, 0.48]])
    >>> inverse.with_chosen_widths().attraction_width
    0.25
    """

    X: Array = field(repr=False)
    Z: Array = field(repr=False)
    widths: Array = field(repr=False)
    log_scale: Array = field(repr=False)
    strength: float
    attraction_width: float = 1.0
    repulsion_width: float = 1.0
    n_nearest: int = 3
    max_squared_distance: float = 30.0

    __getstate__ = state_of_fields

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        Z = np.asarray(Z, dtype=np.float64)
        out, converged = np.empty((len(Z), self.X.shape[1])), np.ones(len(Z), dtype=bool)
        for block in self._blocks(len(Z)):
            found, converged[block] = self._minimize(Z[block], self._factors)
            out[block] = found if self._basis is None else found @ self._basis
        if not converged.all():
            warn(
                f"the data at {(~converged).sum()} of {len(Z)} positions did not converge; they "
                "are the best found",
                ExtensionWarning,
            )
        return self.frame.origin + self.frame.unit * out

    def with_chosen_widths(
        self,
        attraction_widths: tuple[float, ...] = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0),
        repulsion_widths: tuple[float, ...] = (0.0, 0.25, 0.35, 0.5, 0.7, 1.0),
    ) -> "ElasticInverse":
        """Return a copy with the widths of the smallest leave-one-out errors.

        First the width of the attraction is chosen, without repulsion, then that of the repulsion.
        The candidates are, by default, powers of √2 around the published widths.
        """
        if len(self.X) < 2:
            return self
        alone = min((WidthFactors(width, 0.0) for width in attraction_widths), key=self._error)
        best = min((alone._replace(repulsion=width) for width in repulsion_widths), key=self._error)
        return replace(self, attraction_width=best.attraction, repulsion_width=best.repulsion)

    @cached_property
    def leave_one_out_error(self) -> float:
        """Mean distance of (at most 200) rows from their reconstruction by the other rows."""
        return self._error(self._factors)

    @cached_property
    def frame(self) -> Frame:
        """Origin and unit of the data in which squares are computed."""
        return Frame.of(self.X)

    @property
    def points(self) -> Array:
        """The data relative to the frame, rotated to at most n_samples features."""
        return self._rotated[0]

    @property
    def _basis(self) -> Array | None:
        """The orthonormal directions of `points` if they are rotated, (n_samples, n_features)."""
        return self._rotated[1]

    @cached_property
    def _rotated(self) -> tuple[Array, Array | None]:
        # Searches stay in the span of the data, and images have more pixels than there are images.
        X = np.asarray(self.frame.apply(self.X), dtype=np.float64)
        if X.shape[1] <= len(X):
            return X, None
        U, singular, basis = np.linalg.svd(X, full_matrices=False)
        return U * singular, basis

    @cached_property
    def _squares(self) -> Array:
        return squared_norms(self.points)

    @cached_property
    def _spread(self) -> float:
        """Sum of the squared distances of all pairs of points, in the frame."""
        return 2 * len(self.X) * float(squared_norms(self.points - self.points.mean(0)).sum())

    @property
    def _factors(self) -> "WidthFactors":
        return WidthFactors(self.attraction_width, self.repulsion_width)

    def _blocks(self, n: int) -> list[slice]:
        device, numbers = current_device(), 4 * (self.n_nearest + 1) * sum(self.points.shape)
        if device is None:
            return row_blocks(n, numbers)
        what = f"reconstruction from {len(self.points)} points"
        remedy = "pass fewer rows at a time, or device='cpu'"
        device.plan(8.0 * min(4 * BUDGET, n * numbers), what, remedy)
        return row_blocks(n, numbers, 4 * BUDGET)

    def _error(self, factors: "WidthFactors", most: int = 200) -> float:
        """Mean leave-one-out error of at most `most` rows, to about three digits."""
        sample, total = spread_rows(len(self.X), most), 0.0
        for block in self._blocks(len(sample)):
            rows = sample[block]
            Z = np.asarray(self.Z[rows], dtype=np.float64)
            found, _ = self._minimize(Z, factors, rows, tolerance=1e-6)
            total += float(np.linalg.norm(found - self.points[rows], axis=1).sum())
        return total / len(sample) * self.frame.unit

    def _minimize(
        self, Z: Array, factors: "WidthFactors", without: IntArray | None = None, **stopping: Any
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Minimizers at the coordinates `Z`, in the frame, and convergence; see `_pose`."""
        energy, nearest = self._pose(Z, factors, without)
        if factors.repulsion == 0:
            return to_numpy(energy.mean), np.ones(len(Z), dtype=bool)
        starts = np.concatenate([to_numpy(energy.mean)[None], self.points[nearest.T]])
        n_starts, n, D = starts.shape
        rows = np.tile(np.arange(n), n_starts)
        device = current_device()
        posed = copied_to(device, starts.reshape(-1, D), rows)
        found = minimize_energies(energy.on(device), *posed, **stopping)
        Y, values = map(to_numpy, found[:2])
        converged: NDArray[np.bool_] = np.asarray(to_numpy(found[2]), dtype=bool)
        best = first_minimum(values.reshape(n_starts, n)), np.arange(n)
        return Y.reshape(starts.shape)[best], converged.reshape(n_starts, n)[best]

    def _pose(
        self, Z: Array, factors: "WidthFactors", without: IntArray | None = None
    ) -> tuple[PairEnergy, IntArray]:
        """Energies at the coordinates `Z`, and their nearest training points, (n_new, n_nearest).

        `without` is the training point that each energy leaves out.
        """
        device, points, squares = current_device(), self.points, self._squares
        Z, positions, without = copied_to(device, Z, np.asarray(self.Z, dtype=np.float64), without)
        if device is not None:  # which keeps its copies
            points, squares = device.array(points), device.array(squares)
        A = expanded_squares(Z, positions, squared_norms(positions))
        exponents, n_others = A / factors.attraction**2, len(self.X)
        if without is not None:
            own = namespace(A).arange(len(Z)), without
            A[own] = 0.0  # it does not repel
            exponents[own] = np.inf  # nor attract
            n_others -= 1
        least = exponents.min(axis=1, keepdims=True)
        K = np.exp(np.maximum(least - self.max_squared_distance, 0.0) - exponents)
        total = K.sum(axis=1)
        attraction = self.strength * total / (self._spread if self._spread > 0 else 1.0)
        energy = PairEnergy(
            points,
            squares,
            *self._kernels(factors.repulsion),
            A / attraction[:, None],
            (K @ points) / total[:, None],
        )
        n_nearest = min(self.n_nearest, n_others)
        if device is not None:
            return energy, device.host(device.smallest(exponents, n_nearest)).astype(np.intp)
        return energy, np.argsort(exponents, axis=1, kind="stable")[:, :n_nearest]

    def _kernels(self, factor: float) -> tuple[Array, Array]:
        """Precisions and log scales of the affinities, in the frame; see `widths`."""
        repels = np.asarray(self.widths) > 0
        widths = np.where(repels, np.asarray(self.widths, dtype=np.float64), np.inf)
        precision = (self.frame.unit / widths / (factor or 1.0)) ** 2
        return precision, np.where(repels, np.minimum(self.log_scale, 0.0), -np.inf)


class WidthFactors(NamedTuple):
    """Widths of both terms, relative to the published ones."""

    attraction: float
    repulsion: float


def affinity_kernels(weights: Any, graph: NeighborGraph) -> tuple[Array, Array]:
    """The `widths` and `log_scale` of :class:`ElasticInverse` for the affinities of a fit.

    `weights` are entropic or Gaussian weights, fitted to the training graph. The affinity between
    data y and a training point has the bandwidth and the normalizer of that point.
    """
    n = graph.n_reference
    if isinstance(weights, GaussianWeights):
        return np.full(n, weights.width), np.full(n, -np.log(weights.matrix(graph).sum()))
    if not isinstance(weights, EntropicWeights):
        raise ValueError(
            "inverse='elastic' needs entropic or Gaussian affinities, not "
            f"{type(weights).__name__}; pass inverse='regression'"
        )
    bandwidths = weights.bandwidths
    with np.errstate(divide="ignore", invalid="ignore"):  # a width of zero repels nothing
        log_peaks = (bandwidths.nearest / bandwidths.widths) ** 2 - bandwidths.log_totals
    return bandwidths.widths, log_peaks - np.log(n)
