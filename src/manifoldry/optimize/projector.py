"""Guidance by a growing number of eigenvectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.eigen import Auto, Dense, EigenSolver, SpectralProblem
from manifoldry.objectives.base import Objective
from manifoldry.optimize.guidance import Guidance
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, Matrix

# Order up to which all eigenvectors are computed, and how many are beyond it.
_ALL_UP_TO, _FEW = 4000, 100


@dataclass(frozen=True, eq=False)
class Projector(Guidance):
    """V Vᵀ, V being the l leading eigenvectors of M, with l growing.

    The map moves in l directions only, so a level minimises the objective among the maps it can
    reach; give it a schedule that ends, unless that is what you want.

    Parameters
    ----------
    start, step : int, default=1
        The first l, and by how much it grows.
    most : int, default=None
        Once l would reach `most`, or the number of points, the identity or `then` follows. By
        default the number of points up to 4000 of them, and 100 beyond.
    drop_first : bool, default=False
        Leave out the first eigenvector, which is close to constant and moves the map as a whole.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize.projector import Projector
    >>> list(Projector(start=1, step=2).levels(8))
    [1, 3, 5, 7]
    """

    start: int = 1
    step: int = 1
    most: int | None = None
    drop_first: bool = False

    def __post_init__(self) -> None:
        for name in ("start", "step"):
            check_count(name, getattr(self, name))
        if self.most is not None:
            check_count("most", self.most)

    def levels(self, n: int) -> Sequence[float]:
        return range(self.start, self._end(n), self.step)

    def prepared(self, objective: Objective) -> Array:
        M = super().prepared(objective)
        skipped = int(self.drop_first)
        count = int(self.levels(objective.n)[-1]) + skipped
        return _leading(M, min(count, objective.n))[:, skipped:]

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        V = prepared[:, : int(level)]
        return np.asarray(V @ (V.T @ G))

    def _end(self, n: int) -> int:
        default = n if n <= _ALL_UP_TO else _FEW
        most = min(n, default if self.most is None else self.most)
        return most - self.drop_first


def _leading(M: Matrix, count: int) -> Array:
    """Orthonormal eigenvectors of the largest eigenvalues, the largest first."""
    n = M.shape[0]
    solver: EigenSolver = Auto() if n > _ALL_UP_TO or count < n // 20 else Dense()
    problem = SpectralProblem(M, end="largest", bounds=(0.0, np.inf))
    return solver.solve(problem, count, np.random.default_rng(0)).vectors
