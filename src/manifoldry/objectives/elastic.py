"""The elastic embedding."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from scipy import sparse

from manifoldry.objectives.level import Level
from manifoldry.objectives.pair_kernel import GaussianKernel, PairKernel
from manifoldry.objectives.pair_sums import PairSums
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, as_repulsion
from manifoldry.objectives.weights import joint_weights
from manifoldry.util.checks import check_nonnegative
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class ElasticObjective(PairwiseObjective):
    """E(Y) = Σ w⁺ᵢⱼ·dᵢⱼ² + λ·Σ w⁻ᵢⱼ·exp(−dᵢⱼ²), sums being over ordered pairs.

    Neighbours in the data are held together by springs, all points (or those far apart in the
    data) push each other away. Without repulsion the map collapses to a point; it opens at a
    critical λ, see :class:`~manifoldry.objectives.bifurcation.Bifurcation`, and its scale grows
    like the square root of log λ after that. Both sets of weights sum to one, to which the
    figures of λ refer: with weights a·W⁺ and b·W⁻ the same maps belong to λ·a/b.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The weights W⁺: symmetric, with sum one.
    repulsion : Repulsion, array of shape (n, n) or "uniform", default="uniform"
        The weights W⁻; a matrix is scaled to sum to one.
    weight : float, default=1.0
        The λ.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

    Examples
    --------
    Two points: the springs of length d cost d², repulsion λ·exp(−d²), and λ = e has its minimum
    at d = 1.

    >>> import numpy as np
    >>> from manifoldry.objectives.elastic import ElasticObjective
    >>> objective = ElasticObjective(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> value, gradient = objective.value_and_gradient(np.array([[0.0], [1.0]]))
    >>> round(value, 12), float(abs(gradient).max().round(12))
    (2.0, 0.0)
    """

    affinity: sparse.csr_array
    repulsion: Repulsion | Matrix | str = "uniform"
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_nonnegative("weight", self.weight)
        W = joint_weights(self.affinity, "affinities")
        object.__setattr__(self, "affinity", W)
        object.__setattr__(self, "repulsion", as_repulsion(self.repulsion, W.shape[0]))

    @property
    def attraction(self) -> sparse.csr_array:
        return self.affinity

    @property
    def kernel(self) -> PairKernel:
        return GaussianKernel()

    @cached_property
    def collapsed_repulsion(self) -> Repulsion:
        return as_repulsion(self.repulsion, self.n)

    def released(self) -> Self:
        return replace(self, repulsion=self.collapsed_repulsion.released())

    def _level(self, Y: Array, mass: Array) -> Level:
        return Level(float(mass.sum()), 0.0)

    def _sums(self, Y: Array, charges: Array | None = None) -> PairSums:
        return self.collapsed_repulsion.sums(Y)

    def _moments(self, Y: Array, charges: Array | None = None) -> Array:
        return self.collapsed_repulsion.moments(Y)

    def _repulsive_weights(self, i: IntArray, j: IntArray) -> Array | float:
        return self.collapsed_repulsion.at(i, j)
