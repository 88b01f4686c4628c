"""Guidance by powers of a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manifoldry.optimize.guidance import Guidance
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Power(Guidance):
    """M^ν with ν falling by one: eigenvectors are damped by their eigenvalue to the power ν.

    It needs no eigenvectors, only ν products with M per gradient, and as long as ν > 0 and M is
    definite, stationary points are those of the objective. The published tr(M^ν) in the denominator
    only rescales, which a line search makes up for; it is left out.

    Parameters
    ----------
    start : int, default=10
        The first ν. It falls to 1; the identity, or `then`, takes the place of ν = 0.
    matrix, schedule, then
        See :class:`Guidance`. ``then=None`` stays at ν = 1.

    Examples
    --------
    >>> from manifoldry.optimize.power import Power
    >>> list(Power(start=3).levels(100))
    [3, 2, 1]
    """

    start: int = 10

    def __post_init__(self) -> None:
        check_count("start", self.start, minimum=0)

    def levels(self, n: int) -> Sequence[float]:
        return range(self.start, 0, -1)

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        for _ in range(int(level)):
            G = prepared @ G
        return G
