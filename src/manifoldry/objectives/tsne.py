"""t-distributed stochastic neighbour embedding."""

from dataclasses import dataclass
from functools import cached_property

from scipy import sparse

from manifoldry.objectives.edges import Pull, student_attraction
from manifoldry.objectives.level import Level, total_level
from manifoldry.objectives.pair_kernel import PairKernel, StudentKernel
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.weights import joint_weights, negative_entropy
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class TSNEObjective(PairwiseObjective):
    """E(Y) = KL(P‖Q), Q being Student's kernel (1 + dᵢⱼ²/α)^{−(α+1)/2} scaled to sum to one.

    With an exaggeration ρ other than one: Σ pᵢⱼ·log pᵢⱼ − ρ·Σ pᵢⱼ·log κ(dᵢⱼ²) +
    λ·log Σ κ(dᵢⱼ²), with λ = 1, which is no divergence; its gradient is the one usual in the early
    phase of t-SNE.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The joint probabilities P: symmetric, with sum one.
    dof : float, default=1.0
        Degrees of freedom α; fewer make heavier tails, and clusters stand further apart.
    exaggeration : float, default=1.0
        Factor ρ of attraction.
    weight : float, default=1.0
        Factor λ of repulsion; a λ above ρ has no minimum, since the map flies apart for ever.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.tsne import TSNEObjective
    >>> objective = TSNEObjective(np.array([[0, 0.5], [0.5, 0]]))
    >>> round(abs(objective.value(np.array([[0.0], [3.0]]))), 12)  # any two points: Q is P
    0.0
    """

    affinity: sparse.csr_array
    dof: float = 1.0
    exaggeration: float = 1.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_positive("dof", self.dof)
        check_positive("exaggeration", self.exaggeration)
        check_nonnegative("weight", self.weight)
        object.__setattr__(self, "affinity", joint_weights(self.affinity, "affinities"))

    @cached_property
    def attraction(self) -> sparse.csr_array:
        return self.affinity * (self.exaggeration * self.kernel.slope)

    @property
    def kernel(self) -> PairKernel:
        return StudentKernel(self.dof)

    @property
    def collapsed_repulsion(self) -> Repulsion:
        return UniformRepulsion(self.n, self.kernel.slope)

    @cached_property
    def constant(self) -> float:
        return negative_entropy(self.affinity)

    def _pull(self, Y: Array) -> Pull:
        value, force, degree = student_attraction(Y, self.affinity, self.dof)
        scale = self.exaggeration
        return Pull(scale * value, scale * force, scale * degree)

    def _level(self, Y: Array, mass: Array) -> Level:
        return total_level(Y, self.kernel, mass)
