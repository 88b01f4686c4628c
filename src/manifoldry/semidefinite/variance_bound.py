"""How much variance a map could have at most: the dual of maximum variance unfolding."""

from dataclasses import dataclass

import numpy as np

from manifoldry.semidefinite.unfolding_problem import Lowest, UnfoldingProblem
from manifoldry.util.typing import Array

_PAIRS = 12  # eigenvectors that are looked at in one go
_ROUNDS = 60  # of adding tension where it is missing
_ENOUGH = 0.999  # smallest eigenvalue from which adding more hardly lowers the bound


@dataclass(frozen=True, eq=False)
class VarianceBound:
    """A number that the variance of no map can exceed, and the tensions that prove it.

    Let L be the Laplacian of tension/scale, times `share`, and λ its smallest eigenvalue beside
    the constants, relative to the masses. Then variance ≤ share·Σ(tension·square/scale + h)/λ for
    every map that meets the constraints, if λ > 0 and, where edges may only shrink, no tension is
    negative. With slack it is a bound of the variance less the price of what edges give way.
    """

    value: float
    tension: Array

    @classmethod
    def of(
        cls, problem: UnfoldingProblem, tension: Array, share: float, rng: np.random.Generator
    ) -> "VarianceBound":
        """The best bound near given tensions.

        Tensions of an unfinished search leave some directions, most of them around few points,
        in which λ is below one or negative. There tension is added, in proportion to how much
        every edge does about it, until none is left.
        """
        best = cls(np.inf, tension)
        scales = problem.edges.scales
        tension = problem.held(share * tension / scales) * scales / share
        for _ in range(_ROUNDS):
            lowest = problem.lowest(share * tension / scales, _PAIRS, rng)
            smallest = float(lowest.values[0]) - lowest.error
            if smallest > 0:
                value = share * dual_value(problem, tension / smallest)
                best = min(best, cls(value, tension / smallest), key=lambda bound: bound.value)
            if smallest >= _ENOUGH:
                break
            tension = tension + _missing(problem, lowest, share)
        return best


def dual_value(problem: UnfoldingProblem, tension: Array) -> float:
    """Bound of the variance, as a multiple of `share`, if tensions have λ = 1."""
    edges = problem.edges
    return float(
        (tension * edges.squares / edges.scales + problem.support(tension, problem.band)).sum()
    )


def _missing(problem: UnfoldingProblem, lowest: Lowest, share: float) -> Array:
    """Tension that lifts eigenvalues below one to one, spread by what every edge does about it."""
    low = lowest.values < 1
    steps = problem.steps(lowest.vectors[:, low])
    effects = (share / problem.edges.scales)[:, None] * steps**2
    return np.asarray(effects @ ((1 - lowest.values[low]) / (effects**2).sum(axis=0)))
