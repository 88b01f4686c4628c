"""Guidance by diffusion on a graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ive

from manifoldry.objectives.base import Objective
from manifoldry.optimize.guidance import Guidance
from manifoldry.optimize.guidance_matrix import graph_matrix, guidance_matrix
from manifoldry.util.checks import check_below, check_positive
from manifoldry.util.typing import Array, Matrix

# Coefficients of the series that are left out.
_NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class Heat(Guidance):
    """exp(−s·L), L = I − M, with the time s falling: what is left of a gradient after diffusion.

    Like :class:`Power` with a real exponent, (1 − λ)^ν ≈ e^{−νλ}, and positive definite for any
    symmetric M, so that the graph's own D^{-½}WD^{-½} will do. It is summed to rounding, as a
    Chebyshev series of products with M: 32 of them for s = 10, 87 for s = 100.

    Parameters
    ----------
    start : float, default=10.0
        The first s.
    end : float, default=0.1
        The s below which there is next to no diffusion, and the identity or `then` follows.
    factor : float, default=0.7
        From one s to the next.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize.heat import Heat
    >>> list(Heat(start=4.0, end=1.0, factor=0.5).levels(100))
    [4.0, 2.0, 1.0]
    """

    start: float = 10.0
    end: float = 0.1
    factor: float = 0.7

    def __post_init__(self) -> None:
        for name in ("start", "end", "factor"):
            check_positive(name, getattr(self, name))
        check_below("factor", self.factor, 1.0, "time has to fall")

    def levels(self, n: int) -> Sequence[float]:
        times, s = [], self.start
        while s >= self.end:
            times.append(s)
            s *= self.factor
        return times

    def prepared(self, objective: Objective) -> Matrix:
        if self.matrix is None:
            return graph_matrix(objective.attraction)
        return guidance_matrix(self.matrix, objective.n)

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        # e^{s·m} = I₀(s) + 2·Σ Iₖ(s)·Tₖ(m) for |m| ≤ 1; `ive` has the factor e^{−s} in it.
        order = np.arange(int(10 * np.sqrt(level)) + 25)
        weights = ive(order, level)
        weights = weights[weights > _NEGLIGIBLE]
        before, now = G, prepared @ G
        out = weights[0] * before
        for weight in weights[1:]:
            out += 2 * weight * now
            before, now = now, 2 * (prepared @ now) - before
        return out
