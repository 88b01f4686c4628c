"""How much variance a map could have at most: the dual of maximum variance unfolding."""

import warnings
from dataclasses import dataclass

import numpy as np

from manifoldry._typing import Array
from manifoldry.eigen import Dense, ShiftInvertLanczos, SpectralProblem, Spectrum
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem

_PAIRS = 12  # eigenvectors that are looked at in one go
_SMALL = 200  # points for which all eigenvectors cost next to nothing
_ANGLE = 1e-3  # error of eigenvectors: they say where tension is missing, no more
_ROUNDS = 20  # of adding tension where it is missing
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

        Tensions of an unfinished search leave a few directions, most of them around single
        points, in which λ is below one or negative. There tension is added, in proportion to how
        much every edge does about it, until none is left.
        """
        best = cls(np.inf, tension)
        for _ in range(_ROUNDS):
            spectrum = _lowest(problem, tension, share, rng)
            smallest = float(spectrum.values[0] - spectrum.residuals[0])
            if smallest > 0:
                value = share * _dual_value(problem, tension / smallest)
                best = min(best, cls(value, tension / smallest), key=lambda bound: bound.value)
            if smallest >= _ENOUGH:
                break
            tension = tension + _missing(problem, spectrum, share)
        return best


def _dual_value(problem: UnfoldingProblem, tension: Array) -> float:
    edges = problem.edges
    return float((tension * edges.squares / edges.scales + problem.support(tension)).sum())


def _lowest(
    problem: UnfoldingProblem, tension: Array, share: float, rng: np.random.Generator
) -> Spectrum:
    edges = problem.edges
    L = edges.laplacian(share * tension / edges.scales)
    posed = SpectralProblem(L, "smallest", mass=problem.mass, deflate=problem.constants)
    k = min(_PAIRS, edges.n - problem.n_pieces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # residuals are allowed for
        solver = Dense() if edges.n <= _SMALL else ShiftInvertLanczos(copies=False, angle=_ANGLE)
        return solver.solve(posed, k, rng)


def _missing(problem: UnfoldingProblem, spectrum: Spectrum, share: float) -> Array:
    """Tension that lifts eigenvalues below one to one, spread by what every edge does about it."""
    edges = problem.edges
    low = spectrum.values < 1
    effects = (share / edges.scales)[:, None] * edges.steps(spectrum.vectors[:, low]) ** 2
    return np.asarray(effects @ ((1 - spectrum.values[low]) / (effects**2).sum(axis=0)))
