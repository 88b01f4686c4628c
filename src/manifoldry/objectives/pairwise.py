"""Objectives with attraction between neighbors and repulsion between all points."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
from scipy import sparse

from manifoldry.device import on_current_device
from manifoldry.device.vectors import centered, combination
from manifoldry.objectives.base import Objective, check_embedding
from manifoldry.objectives.fastest import default_pair_sums
from manifoldry.objectives.normalizers import Normalizer, NormalizerValue, RowTerm
from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.objectives.pair_sums import Attraction, PairSums, Sums
from manifoldry.objectives.position_sums import PositionSums
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.objectives.weights import entries, pair_weights, with_values
from manifoldry.util.arrays import as_array, like
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, plan_matrix, row_blocks


@dataclass(frozen=True, eq=False)
class NewPointTerms:
    """Objective of one new point, e(x) = Σⱼ pⱼ·φ(‖x − yⱼ‖²) + strength·R(log Σⱼ aⱼ·ψ(‖x − yⱼ‖²)).

    It is the change of a :class:`Pairwise` objective when a point x with affinities pⱼ is added,
    scaled so that the affinities of an average training point sum to one. Use
    :meth:`~manifoldry.objectives.Pairwise.for_new_points` to create it.

    Parameters
    ----------
    kernel, potential : Kernel
        Kernel κ = exp(−φ), whose φ is the attraction, and potential ψ, the repulsion.
    normalizer : Normalizer
        The function R.
    pair_sums : PairSums
        Computes the sums over the training points.
    n : int
        Number of training points.
    normalizer_value : float, default=nan
        R of the training embedding, needed if the normalizer is shared.
    strength : float, default=1.0
        Weight of the repulsion relative to the attraction.

    See Also
    --------
    Pairwise : the objective of the training points.
    Normalizer : the repulsion of a new point.

    Examples
    --------
    The kernel sum of a new point is largest in the middle of the embedding:

    >>> import numpy as np
    >>> from manifoldry.objectives import tsne
    >>> Y = np.array([[-1.0], [1.0]])
    >>> terms = tsne(np.array([[0, 0.5], [0.5, 0]])).for_new_points(Y)
    >>> sums = terms.position_sums(Y).at(np.array([[0.0], [2.0]]))
    >>> np.exp(sums.log_sum).round(3)
    array([1. , 0.6])
    """

    kernel: Kernel
    potential: Kernel
    normalizer: Normalizer
    pair_sums: PairSums
    n: int
    normalizer_value: float = np.nan
    strength: float = 1.0

    def repulsion(self, log_sum: Array, affinity: Array, log_scale: Array | float = 0.0) -> RowTerm:
        """Return the second term, divided by the exponential of `log_scale`, and its derivatives.

        Parameters
        ----------
        log_sum : array of shape (n_new,)
            Logarithm of the kernel sum S of every new point.
        affinity : array of shape (n_new,)
            Sum of its affinities, divided by the same scale.
        log_scale : array of shape (n_new,) or float, default=0.0
            Logarithm of the scale.

        Returns
        -------
        RowTerm
            The term and its derivatives.
        """
        with np.errstate(divide="ignore"):  # a weight of zero
            log_factor = np.log(self.strength) - log_scale
        return self.normalizer.row(
            log_sum, affinity, self.n, self.normalizer_value, as_array(log_factor)
        )

    @property
    def new_point_weights(self) -> Repulsion | None:
        """Object whose ``rows(X)`` are the weights a of new points X; None if all are one."""
        return self.normalizer.new_point_weights

    def position_sums(self, Y: Array) -> PositionSums:
        """Return the sums over the training points, as a function of the position of a new point.

        Parameters
        ----------
        Y : array of shape (n, d)
            Positions of the training points.

        Returns
        -------
        PositionSums
            Its method ``at`` computes the sums.
        """
        weights = self.new_point_weights
        if weights is None or weights.factors is None:
            return self.pair_sums.at_positions(self.potential, Y)
        return self.pair_sums.at_positions(self.potential, Y, weights.factors)


@dataclass(frozen=True, eq=False)
class Pairwise(Objective):
    """E(Y) = constant + ρ·Σ Wᵢⱼ·(−log κ(dᵢⱼ²)) + λ·R(m), kernel sums mᵢ = Σⱼ wᵢⱼ·ψ(dᵢⱼ²).

    The attraction is the negative logarithm of the kernel κ; the repulsive potential ψ is κ unless
    another one is given. Methods differ in the weights W, the kernel and the normalizer R. The
    gradient is 4·L·Y, where L is the Laplacian of :meth:`learned_affinity`.
    :meth:`for_new_points` gives the objective of a new point.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The weights W: symmetric, zero on the diagonal.
    kernel : Kernel
        Kernel κ: :class:`GaussianKernel`, :class:`StudentKernel` or another :class:`Kernel`.
    normalizer : Normalizer
        Function R: :class:`Joint`, :class:`PerPoint` or :class:`Unnormalized`.
    weight : float, default=1.0
        Factor λ of the repulsion.
    exaggeration : float, default=1.0
        Factor ρ of the attraction.
    potential : Kernel, default=None
        Repulsive potential ψ; by default the kernel.
    constant : float, default=0.0
        Constant term that makes the value a divergence.
    pair_sums : PairSums, optional
        Computes the sums over pairs; by default :class:`Fastest`.

    See Also
    --------
    tsne, sne, symmetric_sne, elastic : objectives of known methods.
    Objective : base class, for objectives of another form.
    manifoldry.iterative.NeighborEmbedder : base class of estimators with such an objective.

    Examples
    --------
    An elastic embedding with a heavy-tailed kernel:

    >>> import numpy as np
    >>> from manifoldry.objectives import Pairwise, StudentKernel, Unnormalized
    >>> W = np.array([[0, 0.5], [0.5, 0]])
    >>> objective = Pairwise(W, StudentKernel(), Unnormalized(), weight=2.0)
    >>> round(objective.value(np.array([[0.0], [1.0]])), 4)  # log 2 + λ/2
    1.6931
    """

    affinity: sparse.csr_array
    kernel: Kernel
    normalizer: Normalizer
    weight: float = 1.0
    exaggeration: float = 1.0
    potential: Kernel | None = None
    constant: float = 0.0
    pair_sums: PairSums = field(default_factory=lambda: default_pair_sums())

    any_namespace = True

    def __post_init__(self) -> None:
        check_nonnegative("weight", self.weight)
        check_positive("exaggeration", self.exaggeration)
        for name, kind in (("kernel", Kernel), ("normalizer", Normalizer)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(
                    f"{name}={getattr(self, name)!r} must be an instance of "
                    f"manifoldry.objectives.{kind.__name__}; pass one"
                )
        if not np.isfinite(self.kernel.derivative_at_zero):
            raise ValueError(
                f"kernel={self.kernel!r} has an infinite derivative at d² = 0, where it must be "
                "finite; pass a kernel that is smooth in d², such as GaussianKernel()"
            )
        object.__setattr__(self, "affinity", pair_weights(self.affinity, "affinities"))
        object.__setattr__(self, "normalizer", self.normalizer.for_n_points(self.n))

    @property
    def n(self) -> int:
        return int(self.affinity.shape[0])

    @property
    def repulsion_kernel(self) -> Kernel:
        """The repulsive potential ψ."""
        return self.potential or self.kernel

    @cached_property
    def repulsion(self) -> Repulsion:
        """Weights w of the pairs in the kernel sums."""
        return self.normalizer.repulsion(self.n)

    @property
    def attraction_degrees(self) -> Array:
        return self.exaggeration * self.kernel.derivative_at_zero * self._affinity_degrees

    @cached_property
    def _affinity_degrees(self) -> Array:
        return np.asarray(self.affinity.sum(axis=1)).ravel()

    @cached_property
    def attraction(self) -> sparse.csr_array:
        """Weights whose Laplacian, times four, is the Hessian of the attraction at Y = 0."""
        factor = self.exaggeration * self.kernel.derivative_at_zero
        return (
            self.affinity
            if factor == 1
            else with_values(self.affinity, factor * self.affinity.data)
        )

    @cached_property
    def repulsion_at_zero(self) -> Repulsion:
        """Weights whose Laplacian, times −4λ, is the Hessian of the repulsion at Y = 0.

        The Hessian of the attraction is four times the Laplacian of :attr:`attraction`. Y = 0 is
        not a minimizer if their sum is not positive semidefinite.
        """
        height = float(self.repulsion_kernel(np.zeros(1))[0])
        if not height * self.repulsion_kernel.derivative_at_zero < np.inf:
            raise ValueError(
                f"potential={self.repulsion_kernel} has an infinite derivative at d² = 0, so Y = 0 "
                "is not a minimizer for any weight; pass an initial embedding and no homotopy"
            )
        R = self.normalizer.evaluate(height * self.repulsion.degrees, self._no_logarithms)
        rate = float(np.max(R.rates))  # equal for all points
        return self.repulsion.scaled(rate * height * self.repulsion_kernel.derivative_at_zero)

    @staticmethod
    def _no_logarithms(rows: IntArray) -> Array:
        return np.empty(0)  # kernel sums at Y = 0 do not underflow

    def with_weight(self, weight: float) -> Self:
        """Return a copy with another weight λ of the repulsion; cached arrays are shared.

        Parameters
        ----------
        weight : float
            The weight λ.

        Returns
        -------
        Pairwise
            The copy.
        """
        return self._with("weight", check_nonnegative("weight", weight))

    def with_exaggeration(self, exaggeration: float) -> Self:
        """Return a copy with another factor ρ of the attraction; cached arrays are shared.

        Parameters
        ----------
        exaggeration : float
            The factor ρ.

        Returns
        -------
        Pairwise
            The copy.
        """
        other = self._with("exaggeration", check_positive("exaggeration", exaggeration))
        vars(other).pop("attraction", None)  # it includes the factor
        return other

    def _with(self, name: str, value: float) -> Self:
        # Computed before copying, hence once for all copies.
        _ = self._attraction_at, self._affinity_degrees
        other = copy(self)
        object.__setattr__(other, name, value)
        return other

    def without_cache(self) -> Self:
        """Return a copy without large arrays that can be recomputed.

        Returns
        -------
        Pairwise
            The copy.
        """
        other = copy(self)  # not `replace`, which would check the affinity again
        for name in ("_attraction_at", "_affinity_degrees", "attraction", "repulsion"):
            vars(other).pop(name, None)
        for name in ("normalizer", "pair_sums"):
            object.__setattr__(other, name, getattr(self, name).without_cache())
        return other

    def value(self, Y: Array) -> float:
        Y = self._centered(on_current_device(Y))
        return self._total(self._attraction_at(Y), self._normalizer_value(Y, self._sums(Y)))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        given, Y = Y, self._centered(on_current_device(Y))
        attraction, sums = self._attraction_at(Y), self._sums(Y)
        R = self._normalizer_value(Y, sums)
        repulsion = R.symmetric_sum(sums.force, lambda rates: self._sums(Y, rates).force)
        if len(R.underflowed):
            rates = as_array(R.log_rates)
            repulsion = repulsion + self.pair_sums.underflowed_force(
                self.repulsion_kernel, Y, R.underflowed, rates
            )
        G = combination([4 * self.exaggeration, -2 * self.weight], [attraction.force, repulsion])
        return self._total(attraction, R), like(G.astype(Y.dtype, copy=False), as_array(given))

    def diagonal_curvature(self, Y: Array) -> Array:
        """Return the non-negative terms of the diagonal of the Hessian.

        They are 4ρ·Σⱼ Wᵢⱼ·φ′ for the attraction, with φ = −log κ, and
        4λ·Σⱼ (rᵢ + rⱼ)·wᵢⱼ·max(ψ″, 0)·(yᵢ − yⱼ)² for the repulsion, with rᵢ = ∂R/∂mᵢ.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        array of shape (n, d)
            The curvature of every coordinate.
        """
        given, Y = Y, self._centered(on_current_device(Y))
        R = self._normalizer_value(Y, self._sums(Y))
        moments = R.symmetric_sum(self._moments(Y), partial(self._moments, Y))
        if len(R.underflowed):
            rates = as_array(R.log_rates)
            moments = moments + self.pair_sums.underflowed_moments(
                self.repulsion_kernel, Y, R.underflowed, rates
            )
        degree = self.exaggeration * self._attraction_at(Y).degree
        h = 4 * degree[:, None] + 4 * self.weight * moments
        return like(h.astype(Y.dtype, copy=False), as_array(given))

    def for_new_points(self, Y: Array) -> NewPointTerms:
        """Return the objective of a new point, with the training embedding held fixed.

        Affinities are scaled as the rows of n·W/ΣW, whose sums have mean one.

        Parameters
        ----------
        Y : array of shape (n, d)
            The training embedding.

        Returns
        -------
        NewPointTerms
            The objective.
        """
        Y = self._centered(on_current_device(np.asarray(Y, dtype=np.float64)))
        R = (
            self._normalizer_value(Y, self._sums(Y)).value
            if self.normalizer.depends_on_training_value
            else np.nan
        )
        strength = self.weight / (self.exaggeration * float(self.affinity.sum()))
        parts = self.kernel, self.repulsion_kernel, self.normalizer, self.pair_sums
        return NewPointTerms(*parts, self.n, R, strength)

    def learned_affinity(self, Y: Array) -> Array:
        """Return the signed weights whose Laplacian L gives the gradient 4·L·Y.

        They are the weights of the attraction minus those of the repulsion; at a minimum L·Y = 0.
        Typically they are positive at short distances in the data, negative at intermediate ones
        and near zero at long ones.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        array of shape (n, n)
            The weights.
        """
        plan_matrix(
            (self.n, self.n),
            8,
            f"the learned affinity of {self.n} points",
            "call learned_affinity_edges with a sparse pattern",
        )
        Y = self._centered(Y)
        R = self._normalizer_value(Y, self._sums(Y))
        A, columns = np.empty((self.n, self.n)), np.arange(self.n)
        for block in row_blocks(self.n, 4 * Y.size):
            A[block] = self._affinities(Y, R, columns[block, None], columns)
        return A

    def learned_affinity_edges(self, Y: Array, pattern: sparse.csr_array) -> sparse.csr_array:
        """Return the learned affinity of some pairs.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        pattern : sparse array of shape (n, n)
            The pairs: its stored entries.

        Returns
        -------
        sparse array of shape (n, n)
            The weights of these pairs.
        """
        Y = self._centered(Y)
        R = self._normalizer_value(Y, self._sums(Y))
        pattern = canonical(sparse.csr_array(pattern))
        rows = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
        values = np.empty(pattern.nnz)
        for block in row_blocks(pattern.nnz, 8 * Y.shape[1]):
            values[block] = self._affinities(Y, R, rows[block], pattern.indices[block])
        return sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)

    def _affinities(self, Y: Array, R: NormalizerValue, i: IntArray, j: IntArray) -> Array:
        """Learned affinity of the pairs (i, j); `i` and `j` are broadcast."""
        D = (np.subtract(Y[i], Y[j], dtype=np.float64) ** 2).sum(axis=-1)
        log_rates = np.broadcast_to(R.log_rates, self.n)
        # Overflow occurs only on the diagonal, which is set to zero below.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            log_psi = -self.repulsion_kernel.phi(D)
            repulsion = np.exp(log_psi + log_rates[i]) + np.exp(log_psi + log_rates[j])
            repulsion *= (
                self.weight / 2 * self.repulsion.at(i, j) * self.repulsion_kernel.derivative(D)
            )
            attraction = (
                self.exaggeration * entries(self.affinity, i, j) * self.kernel.derivative(D)
            )
        return np.where(np.equal(i, j), 0.0, attraction - repulsion)

    def _total(self, attraction: Attraction, R: NormalizerValue) -> float:
        attracted = self.exaggeration * float(attraction.value)
        return float(self.constant + attracted + self.weight * R.value)

    @cached_property
    def _attraction_at(self) -> Callable[[Array], Attraction]:
        return self.pair_sums.attraction(self.kernel, self.affinity)

    def pairs_reason(self, Y: Array) -> str:
        """Return how the sums over pairs are computed, and why.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        str
            The reason, in words.
        """
        Y = self._centered(on_current_device(Y))
        Y = on_current_device(Y)
        return self.pair_sums.reason(self.repulsion_kernel, Y, self.repulsion.matrix)

    def _sums(self, Y: Array, point_weights: Array | None = None) -> Sums:
        """Kernel sums and forces of ψ; `point_weights` require uniform weights of pairs."""
        weights = self.repulsion.matrix if point_weights is None else point_weights
        sums, scale = self.pair_sums.sums(self.repulsion_kernel, Y, weights), self.repulsion.scale
        if scale == 1:
            return sums
        return Sums(scale * sums.kernel_sums, scale * sums.force, scale * sums.resolution)

    def _moments(self, Y: Array, point_weights: Array | None = None) -> Array:
        weights = self.repulsion.matrix if point_weights is None else point_weights
        return self.repulsion.scale * self.pair_sums.moments(self.repulsion_kernel, Y, weights)

    def _normalizer_value(self, Y: Array, sums: Sums) -> NormalizerValue:
        return self.normalizer.evaluate(
            sums.kernel_sums,
            lambda rows: self.pair_sums.log_kernel_sums(self.repulsion_kernel, Y, rows),
            sums.resolution,
        )

    def _centered(self, Y: Array) -> Array:
        """Center `Y`, since sums of products lose digits far from the origin."""
        Y = check_embedding(Y, self.n)
        dtype = Y.dtype if Y.dtype == np.float32 else np.float64
        return centered(Y, dtype)
