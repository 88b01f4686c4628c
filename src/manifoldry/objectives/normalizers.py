"""Normalizers: the repulsion as a function R of the kernel sums of all points."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion, as_repulsion
from manifoldry.util.arrays import as_array, namespace, to_numpy
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class NormalizerValue:
    """Value of the normalizer R at an embedding, and its derivatives by the kernel sums."""

    value: float
    log_rates: Array | float
    """log ∂R/∂mᵢ, an array (n,) or a float if equal for all points."""
    underflowed: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Indices of the points whose kernel sum underflows; only its logarithm is known."""

    @property
    def rates(self) -> Array | float:
        """∂R/∂mᵢ, zero for the points in `underflowed`, which are added separately."""
        if isinstance(self.log_rates, float):
            return float(np.exp(self.log_rates))
        near = self.log_rates.copy()
        if len(self.underflowed):
            near[self.underflowed] = -np.inf
        return np.exp(near)

    def symmetric_sum(self, unweighted: Array, weighted: Callable[[Array], Array]) -> Array:
        """Σⱼ (rᵢ + rⱼ)·(…) from sums with unit weights and, if rates differ, with weights rⱼ."""
        rates = self.rates
        if isinstance(rates, float):
            return 2 * rates * unweighted
        return rates[:, None] * unweighted + weighted(rates)


class RowTerm(NamedTuple):
    """Repulsion term of a new point as a function of log S, with two derivatives by log S."""

    value: Array
    derivative: Array
    second_derivative: Array


class Normalizer(ABC):
    """Base class of functions R of the kernel sums mᵢ = Σⱼ wᵢⱼ·ψ(dᵢⱼ²) of all points.

    ψ is the repulsive potential. A normalizer also defines the repulsion term of a new point x, as
    a function of its kernel sum S = Σⱼ aⱼ·ψ(‖x − yⱼ‖²). S is passed as a logarithm, because it
    underflows between distant clusters.

    See Also
    --------
    Joint, PerPoint, Unnormalized : the normalizers of this package.
    Pairwise : takes a normalizer.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import Joint, Unnormalized
    >>> kernel_sums = np.array([1.0, 3.0])
    >>> Unnormalized().evaluate(kernel_sums, None).value
    4.0
    >>> round(Joint().evaluate(kernel_sums, None).value, 4)  # log 4
    1.3863
    """

    depends_on_training_value: ClassVar[bool] = False
    """Whether the term of a new point depends on R of the training embedding."""

    @property
    def holds_new_points(self) -> bool:
        """Whether the attraction of a new point outweighs its repulsion far from the embedding.

        Otherwise the objective of a new point may decrease without end, and have no minimizer.
        """
        return True

    def for_n_points(self, n: int) -> Self:
        """Return the normalizer for n points.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        Normalizer
            The normalizer.
        """
        return self

    def repulsion(self, n: int) -> Repulsion:
        """Return the weights w of the pairs in the kernel sums; all one by default.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        Repulsion
            The weights.
        """
        return UniformRepulsion(n, float(n * (n - 1)))

    @abstractmethod
    def evaluate(
        self,
        kernel_sums: Array,
        log_kernel_sums: Callable[[IntArray], Array],
        resolution: float = 0.0,
    ) -> NormalizerValue:
        """Evaluate R and its derivatives.

        Parameters
        ----------
        kernel_sums : array of shape (n,)
            The sums m.
        log_kernel_sums : callable
            Called with indices of points whose sum underflows; returns log m of these.
        resolution : float, default=0.0
            Sums below it are inaccurate, since they were approximated.

        Returns
        -------
        NormalizerValue
            The value and the derivatives.
        """

    @abstractmethod
    def row(
        self, log_sum: Array, affinity: Array, n: int, normalizer_value: float, log_factor: Array
    ) -> RowTerm:
        """Return the increase of R by a new point, times n/2 and the exponential of `log_factor`.

        Parameters
        ----------
        log_sum : array of shape (n_new,)
            Logarithm of the kernel sum S of every new point.
        affinity : array of shape (n_new,)
            Sum of its affinities, about one.
        n : int
            Number of training points.
        normalizer_value : float
            R of the training embedding, used if the normalizer has
            `depends_on_training_value`.
        log_factor : array of shape (n_new,)
            Logarithm of a factor that may overflow where the term does not.

        Returns
        -------
        RowTerm
            The increase, and its derivatives by log S.
        """

    @property
    def new_point_weights(self) -> Repulsion | None:
        """Object whose ``rows(X)`` are the weights a of new points X; None if all are one."""
        return None

    def without_cache(self) -> Self:
        """Return a copy without large arrays that can be recomputed.

        Returns
        -------
        Normalizer
            The copy.
        """
        return self


@dataclass(frozen=True)
class Joint(Normalizer):
    """Normalizer R = log Σᵢ mᵢ: all pairs are normalized together, as in symmetric SNE and t-SNE.

    A new point adds log(1 + 2S/Z): the joint divergence of n + 1 points, with Z of the first n
    held fixed. A training point with its row of n·P therefore stays at its position. A new point
    only has its conditional affinities p(j|x), so a training point that is embedded as if it were
    new moves a little. Far from all points S vanishes and the attraction brings a point back,
    which the divergence of a single row does not do.

    Parameters
    ----------
    underflow : float, default=1e-25
        Sums below this value lose digits in single precision; they are computed as logarithms.

    See Also
    --------
    PerPoint : every row is normalized separately.
    Unnormalized : no normalization.
    tsne, symmetric_sne : objectives with it.

    Examples
    --------
    For two points all probability is on the one pair, so that the objective does not depend on
    their distance:

    >>> import numpy as np
    >>> from manifoldry.objectives import Joint, Pairwise, StudentKernel
    >>> objective = Pairwise(np.array([[0, 0.5], [0.5, 0]]), StudentKernel(), Joint())
    >>> [round(objective.value(np.array([[0.0], [distance]])), 4) for distance in (1.0, 3.0)]
    [0.6931, 0.6931]
    """

    underflow: float = 1e-25

    depends_on_training_value = True

    def evaluate(
        self,
        kernel_sums: Array,
        log_kernel_sums: Callable[[IntArray], Array],
        resolution: float = 0.0,
    ) -> NormalizerValue:
        total = float(kernel_sums.sum())
        if not total < self.underflow:
            return NormalizerValue(float(np.log(total)), -float(np.log(total)))
        rows = namespace(kernel_sums).arange(len(kernel_sums))
        value = float(logsumexp(to_numpy(log_kernel_sums(rows))))
        return NormalizerValue(value, np.full_like(kernel_sums, -value), rows)

    def row(
        self, log_sum: Array, affinity: Array, n: int, normalizer_value: float, log_factor: Array
    ) -> RowTerm:
        ratio = np.log(2) + log_sum - normalizer_value
        whole = np.logaddexp(0.0, ratio)
        fraction = np.exp(ratio - whole)
        factor = n / 2 * np.exp(log_factor)
        return RowTerm(factor * whole, factor * fraction, factor * fraction * (1 - fraction))


@dataclass(frozen=True)
class PerPoint(Normalizer):
    """Normalizer R = fraction·Σᵢ log(self_weight + mᵢ): separate for every row, as in SNE.

    A new point adds fraction·log(self_weight + S), the divergence of its row. With the Gaussian
    kernel its objective is convex; at the minimizer the mean of the embedding under κ equals the
    mean under the affinities. So without `self_weight` there is a minimizer only if the latter is
    inside the convex hull of the embedding, and none if the affinities are concentrated on a point
    of the hull.

    Parameters
    ----------
    fraction : float, default=None
        Weight of each point. None is 1/n, for affinities that sum to one; pass 1 for affinities
        whose rows sum to one.
    self_weight : float, default=0.0
        Weight of a point in its own kernel sum.
    underflow : float, default=1e-25
        As for :class:`Joint`, for the sum over a row.

    See Also
    --------
    Joint : all pairs are normalized together.
    Unnormalized : no normalization.
    sne : the objective with it.

    Examples
    --------
    SNE, up to the entropy of the probabilities, here log 2:

    >>> import numpy as np
    >>> from manifoldry.objectives import GaussianKernel, Pairwise, PerPoint, sne
    >>> P, Y = (1 - np.eye(3)) / 2, np.array([[0.0], [1.0], [3.0]])
    >>> objective = Pairwise(P / 3, GaussianKernel(), PerPoint())
    >>> round(objective.value(Y) - sne(P).value(Y), 4)
    0.6931
    """

    fraction: float | None = None
    self_weight: float = 0.0
    underflow: float = 1e-25

    def __post_init__(self) -> None:
        if self.fraction is not None:
            check_positive("fraction", self.fraction)
        check_nonnegative("self_weight", self.self_weight)

    def _point_weight(self, n: int) -> float:
        return 1 / n if self.fraction is None else self.fraction

    def evaluate(
        self,
        kernel_sums: Array,
        log_kernel_sums: Callable[[IntArray], Array],
        resolution: float = 0.0,
    ) -> NormalizerValue:
        kernel_sums = as_array(kernel_sums) + self.self_weight
        smallest = max(self.underflow, resolution)
        underflowed = np.flatnonzero(kernel_sums < smallest)
        log_sums = np.log(np.maximum(kernel_sums, smallest))
        if len(underflowed):
            log_sums[underflowed] = log_kernel_sums(underflowed)
        fraction = self._point_weight(len(log_sums))
        value = fraction * float(log_sums.sum())
        return NormalizerValue(value, np.log(fraction) - log_sums, underflowed)

    @property
    def holds_new_points(self) -> bool:
        return self.self_weight > 0

    def row(
        self, log_sum: Array, affinity: Array, n: int, normalizer_value: float, log_factor: Array
    ) -> RowTerm:
        weight = n * self._point_weight(n) * np.exp(log_factor) * affinity
        if self.self_weight == 0:
            return RowTerm(weight * log_sum, weight, np.zeros_like(log_sum))
        whole = np.logaddexp(np.log(self.self_weight), log_sum)
        part = np.exp(log_sum - whole)
        return RowTerm(weight * whole, weight * part, weight * part * (1 - part))


@dataclass(frozen=True, eq=False)
class Unnormalized(Normalizer):
    """Normalizer R = Σᵢ mᵢ: a sum over pairs without normalization, as in the elastic embedding.

    A new point adds 2·S, where aⱼ are its weights to the training points.

    Parameters
    ----------
    weights : Repulsion, array of shape (n, n) or "uniform", default="uniform"
        The weights w; a matrix is scaled to sum to one.

    See Also
    --------
    Joint, PerPoint : with normalization.
    elastic : the objective with it.
    squared_distance_weights : weights that depend on distances in the data.

    Examples
    --------
    The elastic embedding of two points, E = d² + λ·exp(−d²):

    >>> import numpy as np
    >>> from manifoldry.objectives import GaussianKernel, Pairwise, Unnormalized
    >>> W = np.array([[0, 0.5], [0.5, 0]])
    >>> objective = Pairwise(W, GaussianKernel(), Unnormalized(), weight=np.e)
    >>> round(objective.value(np.array([[0.0], [1.0]])), 4)
    2.0
    """

    weights: Repulsion | Matrix | str = "uniform"

    def for_n_points(self, n: int) -> Self:
        return replace(self, weights=as_repulsion(self.weights, n))

    def repulsion(self, n: int) -> Repulsion:
        return as_repulsion(self.weights, n)

    def evaluate(
        self,
        kernel_sums: Array,
        log_kernel_sums: Callable[[IntArray], Array],
        resolution: float = 0.0,
    ) -> NormalizerValue:
        return NormalizerValue(float(kernel_sums.sum()), 0.0)

    def row(
        self, log_sum: Array, affinity: Array, n: int, normalizer_value: float, log_factor: Array
    ) -> RowTerm:
        each = self.repulsion(n).scale if self.new_point_weights is None else 1.0
        with np.errstate(over="ignore"):  # infinite inside an embedding that repels strongly
            value = n * each * np.exp(log_sum + log_factor)
        return RowTerm(value, value, value)

    @property
    def new_point_weights(self) -> Repulsion | None:
        if isinstance(self.weights, UniformRepulsion) or not isinstance(self.weights, Repulsion):
            return None
        return self.weights

    def without_cache(self) -> Self:
        if not isinstance(self.weights, Repulsion):
            return self
        return replace(self, weights=self.weights.without_cache())
