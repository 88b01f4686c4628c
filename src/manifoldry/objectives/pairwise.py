"""Objectives in which neighbors attract each other and all points repel each other."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective, check_embedding
from manifoldry.objectives.exact import default_pair_sums
from manifoldry.objectives.normalizers import Normalizer, NormalizerValue, RowTerm
from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.objectives.pair_sums import Attraction, PairSums, Sums
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.objectives.weights import entries, pair_weights
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, plan_memory, row_blocks


@dataclass(frozen=True, eq=False)
class NewPointTerms:
    """e(x) = Σⱼ pⱼ·φ(‖x − yⱼ‖²) + strength·R(log Σⱼ aⱼ·ψ(‖x − yⱼ‖²)), of one point at a time.

    It is what an objective says of a point more, in units in which the affinities p of the mean
    point on the map sum to one; made by :meth:`~manifoldry.objectives.Pairwise.for_new_points`.

    Parameters
    ----------
    kernel, potential : Kernel
        κ = exp(−φ), whose φ attracts, and ψ, which repels.
    normalizer : Normalizer
        R.
    pair_sums : PairSums
        What takes the sums over the map.
    n : int
        Points on the map.
    normalizer_value : float, default=nan
        R of the map itself, where the normalizer is shared with it.
    strength : float, default=1.0
        Weight of repulsion relative to that of attraction.
    """

    kernel: Kernel
    potential: Kernel
    normalizer: Normalizer
    pair_sums: PairSums
    n: int
    normalizer_value: float = np.nan
    strength: float = 1.0

    def repulsion(self, log_sum: Array, affinity: Array) -> RowTerm:
        """The second term and its derivatives by log S; `affinity` is each point's Σⱼ pⱼ."""
        value, derivative, second_derivative = self.normalizer.row(
            log_sum, affinity, self.n, self.normalizer_value
        )
        return RowTerm(
            self.strength * value, self.strength * derivative, self.strength * second_derivative
        )

    @property
    def new_point_weights(self) -> Repulsion | None:
        """Whose ``rows(X)`` are the weights a of new points with data X; None for one each."""
        return self.normalizer.new_point_weights


@dataclass(frozen=True, eq=False)
class Pairwise(Objective):
    """E(Y) = constant + ρ·Σ Wᵢⱼ·(−log κ(dᵢⱼ²)) + λ·R(m), with masses mᵢ = Σⱼ wᵢⱼ·ψ(dᵢⱼ²).

    The kernel κ is said once: attraction is its negative logarithm, and the potential ψ that
    repels is κ itself unless another is given. Methods differ in their weights W, in the kernel
    and in how the normalizer makes R of the masses. Whatever they are, the gradient is 4·L·Y, where
    L is the Laplacian of :meth:`learned_affinity`, and :meth:`for_new_points` states the problem of
    a point more.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The weights W: symmetric, zero on the diagonal.
    kernel : Kernel
        κ: :class:`GaussianKernel`, :class:`StudentKernel` or one of your own.
    normalizer : Normalizer
        R: :class:`Joint`, :class:`PerPoint` or :class:`Unnormalized`.
    weight : float, default=1.0
        Factor λ of repulsion.
    exaggeration : float, default=1.0
        Factor ρ of attraction.
    potential : Kernel, default=None
        ψ; by default the kernel.
    constant : float, default=0.0
        What is added to make the value a divergence.
    pair_sums : PairSums, optional
        What takes the sums over pairs; by default :class:`Exact`.

    Examples
    --------
    An elastic embedding with heavy tails: springs that give way, repulsion that reaches far.

    >>> import numpy as np
    >>> from manifoldry.objectives import Pairwise, StudentKernel, Unnormalized
    >>> objective = Pairwise(np.array([[0, 0.5], [0.5, 0]]), StudentKernel(), Unnormalized(), weight=2.0)
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

    def __post_init__(self) -> None:
        check_nonnegative("weight", self.weight)
        check_positive("exaggeration", self.exaggeration)
        if not np.isfinite(self.kernel.derivative_at_zero):
            raise ValueError(
                f"kernel={self.kernel!r} has an infinite derivative where points coincide, so "
                "no point could settle there; pass one that is smooth in d², as exp(-d²) is"
            )
        object.__setattr__(self, "affinity", pair_weights(self.affinity, "affinities"))
        object.__setattr__(self, "normalizer", self.normalizer.on(self.n))

    @property
    def n(self) -> int:
        return int(self.affinity.shape[0])

    @property
    def repulsion_kernel(self) -> Kernel:
        """The potential ψ."""
        return self.potential or self.kernel

    @cached_property
    def repulsion(self) -> Repulsion:
        """The weights w of the pairs in the masses."""
        return self.normalizer.repulsion(self.n)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        factor = self.exaggeration * self.kernel.derivative_at_zero
        return self.affinity if factor == 1 else self.affinity * factor

    @cached_property
    def repulsion_at_zero(self) -> Repulsion:
        """Weights whose Laplacian, times 4λ, is what repulsion takes from the curvature at Y = 0.

        That of :attr:`attraction`, times four, is what attraction gives: where the difference is
        not positive semidefinite any more, the collapsed map is no minimizer.
        """
        height = float(self.repulsion_kernel(np.zeros(1))[0])
        if not height * self.repulsion_kernel.derivative_at_zero < np.inf:
            raise ValueError(
                f"the potential {self.repulsion_kernel} is infinitely steep where points coincide, so a "
                "collapsed map is no minimizer at any weight; pass a start, and no homotopy"
            )
        R = self.normalizer.evaluate(height * self.repulsion.degrees, self._no_logarithms)
        rate = float(np.max(R.rates))  # the same for all
        return self.repulsion.scaled(rate * height * self.repulsion_kernel.derivative_at_zero)

    @staticmethod
    def _no_logarithms(rows: IntArray) -> Array:
        return np.empty(0)  # masses of points that coincide are large

    def with_weight(self, weight: float) -> Self:
        """The objective with another weight λ of repulsion; what was prepared is kept."""
        other = copy(self)
        object.__setattr__(other, "weight", check_nonnegative("weight", weight))
        return other

    def without_cache(self) -> Self:
        """The same objective, without what is large and can be computed again."""
        return replace(self, normalizer=self.normalizer.without_cache())

    def value(self, Y: Array) -> float:
        Y = self._centered(Y)
        return self._total(self._attraction_at(Y), self._normalizer_value(Y, self._sums(Y)))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        Y = self._centered(Y)
        attraction, sums = self._attraction_at(Y), self._sums(Y)
        R = self._normalizer_value(Y, sums)
        repulsion = R.symmetric_sum(sums.force, lambda rates: self._sums(Y, rates).force)
        if len(R.underflowed):
            rates = np.asarray(R.log_rates)
            repulsion = repulsion + self.pair_sums.underflowed_force(
                self.repulsion_kernel, Y, R.underflowed, rates
            )
        G = 4 * self.exaggeration * attraction.force - 2 * self.weight * repulsion
        return self._total(attraction, R), G.astype(Y.dtype, copy=False)

    def diagonal_curvature(self, Y: Array) -> Array:
        """Terms of the Hessian's diagonal that cannot be negative, (n, d).

        Of attraction 4ρ·Σⱼ Wᵢⱼ·φ′, φ being −log κ, and of repulsion
        4λ·Σⱼ (rᵢ + rⱼ)·wᵢⱼ·max(ψ″, 0)·(yᵢ − yⱼ)², r being the derivatives of R by the masses.
        """
        Y = self._centered(Y)
        R = self._normalizer_value(Y, self._sums(Y))
        moments = R.symmetric_sum(self._moments(Y), partial(self._moments, Y))
        if len(R.underflowed):
            rates = np.asarray(R.log_rates)
            moments = moments + self.pair_sums.underflowed_moments(
                self.repulsion_kernel, Y, R.underflowed, rates
            )
        degree = self.exaggeration * self._attraction_at(Y).degree
        h = 4 * degree[:, None] + 4 * self.weight * moments
        return h.astype(Y.dtype, copy=False)

    def for_new_points(self, Y: Array) -> NewPointTerms:
        """What a new point minimizes on the map `Y`, (n, d), which stands still.

        Its affinities count in units of the mean point's, whose rows of n·W/ΣW sum to one.
        """
        Y = self._centered(np.asarray(Y, dtype=np.float64))
        R = self._normalizer_value(Y, self._sums(Y)).value if self.normalizer.shared else np.nan
        strength = self.weight / (self.exaggeration * float(self.affinity.sum()))
        parts = self.kernel, self.repulsion_kernel, self.normalizer, self.pair_sums
        return NewPointTerms(*parts, self.n, R, strength)

    def learned_affinity(self, Y: Array) -> Array:
        """Weights that hold the map together, dense (n, n): attraction less repulsion.

        The gradient is four times their Laplacian times `Y`, so at a minimum their Laplacian
        times `Y` is zero. As a function of the distance in the data they often look like a
        Mexican hat.
        """
        plan_memory(
            8.0 * self.n**2,
            f"the learned affinity of {self.n} points",
            "ask for learned_affinity_edges on a sparse pattern",
        )
        Y = self._centered(Y)
        R = self._normalizer_value(Y, self._sums(Y))
        A, columns = np.empty((self.n, self.n)), np.arange(self.n)
        for block in row_blocks(self.n, 4 * Y.size):
            A[block] = self._affinities(Y, R, columns[block, None], columns)
        return A

    def learned_affinity_edges(self, Y: Array, pattern: sparse.csr_array) -> sparse.csr_array:
        """The learned affinity of the pairs that `pattern` stores."""
        Y = self._centered(Y)
        R = self._normalizer_value(Y, self._sums(Y))
        pattern = canonical(sparse.csr_array(pattern))
        rows = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
        values = np.empty(pattern.nnz)
        for block in row_blocks(pattern.nnz, 8 * Y.shape[1]):
            values[block] = self._affinities(Y, R, rows[block], pattern.indices[block])
        return sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)

    def _affinities(self, Y: Array, R: NormalizerValue, i: IntArray, j: IntArray) -> Array:
        """Learned affinities of the pairs (i, j), which are broadcast."""
        D = (np.subtract(Y[i], Y[j], dtype=np.float64) ** 2).sum(axis=-1)
        log_rates = np.broadcast_to(R.log_rates, self.n)
        # Only a point with itself, which does not count, has a kernel beyond the rates' reach.
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
        attracted = self.exaggeration * attraction.value
        return self.constant + attracted + self.weight * R.value

    @cached_property
    def _attraction_at(self) -> Callable[[Array], Attraction]:
        return self.pair_sums.attraction(self.kernel, self.affinity)

    def _sums(self, Y: Array, point_weights: Array | None = None) -> Sums:
        """Masses and forces of ψ; `point_weights` are for pairs of one weight only."""
        weights = self.repulsion.matrix if point_weights is None else point_weights
        kernel_sums, force = self.pair_sums.sums(self.repulsion_kernel, Y, weights)
        return Sums(self.repulsion.scale * kernel_sums, self.repulsion.scale * force)

    def _moments(self, Y: Array, point_weights: Array | None = None) -> Array:
        weights = self.repulsion.matrix if point_weights is None else point_weights
        return self.repulsion.scale * self.pair_sums.moments(self.repulsion_kernel, Y, weights)

    def _normalizer_value(self, Y: Array, sums: Sums) -> NormalizerValue:
        return self.normalizer.evaluate(
            sums.kernel_sums,
            lambda rows: self.pair_sums.log_kernel_sums(self.repulsion_kernel, Y, rows),
        )

    def _centered(self, Y: Array) -> Array:
        """`Y` about its mean: sums of products would lose the digits of a map far from zero."""
        Y = check_embedding(Y, self.n)
        dtype = Y.dtype if Y.dtype == np.float32 else np.float64
        return (Y - Y.mean(axis=0, dtype=np.float64)).astype(dtype)
