"""Symmetric stochastic neighbour embedding."""

from dataclasses import dataclass
from functools import cached_property

from scipy import sparse

from manifoldry.objectives.level import Level, total_level
from manifoldry.objectives.pair_kernel import GaussianKernel, PairKernel
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.weights import joint_weights, negative_entropy
from manifoldry.util.checks import check_nonnegative
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class SymmetricSNEObjective(PairwiseObjective):
    """E(Y) = KL(P‖Q), Q being exp(−dᵢⱼ²) scaled to sum to one over all pairs.

    With another weight λ of repulsion than one: Σ pᵢⱼ·(log pᵢⱼ + dᵢⱼ²) + λ·log Σ exp(−dᵢⱼ²),
    which is no divergence.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The joint probabilities P: symmetric, with sum one.
    weight : float, default=1.0
        The λ.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.symmetric_sne import SymmetricSNEObjective
    >>> objective = SymmetricSNEObjective(np.array([[0, 0.5], [0.5, 0]]))
    >>> round(abs(objective.value(np.array([[0.0], [3.0]]))), 12)  # any two points: Q is P
    0.0
    """

    affinity: sparse.csr_array
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_nonnegative("weight", self.weight)
        object.__setattr__(self, "affinity", joint_weights(self.affinity, "affinities"))

    @property
    def attraction(self) -> sparse.csr_array:
        return self.affinity

    @property
    def kernel(self) -> PairKernel:
        return GaussianKernel()

    @property
    def collapsed_repulsion(self) -> Repulsion:
        return UniformRepulsion(self.n)

    @cached_property
    def constant(self) -> float:
        return negative_entropy(self.affinity)

    def _level(self, Y: Array, mass: Array) -> Level:
        return total_level(Y, self.kernel, mass)
