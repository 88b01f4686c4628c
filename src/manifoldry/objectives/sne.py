"""Stochastic neighbour embedding."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from manifoldry.objectives.level import Level, row_level
from manifoldry.objectives.pair_kernel import GaussianKernel, PairKernel
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.weights import conditional_weights, negative_entropy, without_diagonal
from manifoldry.util.checks import check_nonnegative, check_option
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class SNEObjective(PairwiseObjective):
    """E(Y) = mean over i of KL(Pᵢ‖Qᵢ), Qᵢ being exp(−dᵢⱼ²) scaled to sum to one over j.

    With another weight λ of repulsion than one: the mean of Σⱼ pᵢⱼ·(log pᵢⱼ + dᵢⱼ²) +
    λ·log Σⱼ exp(−dᵢⱼ²), which is no divergence; along λ the map opens from a point.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The neighbour probabilities P; rows sum to one.
    weight : float, default=1.0
        The λ.
    reduction : {"mean", "sum"}, default="mean"
        Mean or sum over the points.
    include_self : bool, default=False
        Let every point count among its own neighbours, in Q and, where `affinity` has a
        diagonal, in P: Q then stays defined for points far from all others (Hinton and Roweis
        leave it out, Memisevic and Hinton do not).

    Examples
    --------
    Three points in which all probabilities are equal are the corners of a regular triangle.

    >>> import numpy as np
    >>> from manifoldry.objectives.sne import SNEObjective
    >>> objective = SNEObjective((1 - np.eye(3)) / 2)
    >>> angles = 2 * np.pi * np.arange(3) / 3
    >>> round(abs(objective.value(np.stack([np.cos(angles), np.sin(angles)], axis=1))), 12)
    0.0
    """

    affinity: sparse.csr_array
    weight: float = 1.0
    reduction: str = "mean"
    include_self: bool = False

    def __post_init__(self) -> None:
        check_nonnegative("weight", self.weight)
        check_option("reduction", self.reduction, ("mean", "sum"))
        P = conditional_weights(self.affinity, "affinities", include_self=self.include_self)
        object.__setattr__(self, "affinity", P)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        return without_diagonal((self.affinity + self.affinity.T) * (self._share / 2))

    @property
    def kernel(self) -> PairKernel:
        return GaussianKernel()

    @property
    def collapsed_repulsion(self) -> Repulsion:
        others = self.n - 1
        return UniformRepulsion(self.n, self._share * self.n * others / (others + self._own))

    @cached_property
    def constant(self) -> float:
        return self._share * negative_entropy(self.affinity)

    @property
    def _share(self) -> float:
        """Part of a point in the whole."""
        return 1 / self.affinity.shape[0] if self.reduction == "mean" else 1.0

    @property
    def _own(self) -> float:
        """Kernel of a point with itself, where it counts."""
        return float(self.include_self)

    def _level(self, Y: Array, mass: Array) -> Level:
        return row_level(Y, self.kernel, np.asarray(mass) + self._own, self._share)
