"""The maps along a homotopy, thinned so that they fit a budget of memory."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from manifoldry.util.arrays import to_numpy
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array


class PathStep(NamedTuple):
    """A minimizer at one value of the homotopy's parameter."""

    parameter: float
    value: float
    """The objective."""
    rank: int
    """Directions along which the map extends: 0 for a collapsed map, 1 for a line, ..."""
    curvature: float
    """Smallest curvature of the objective but for rigid motions; NaN where it was not looked at."""
    iterations: int
    converged: bool


@dataclass(repr=False)
class Path:
    """Every step of a homotopy; its maps too, as many as `budget` bytes hold, evenly spread.

    The first and the last map are always kept. ``kept`` has the numbers of the steps whose maps
    are in ``embeddings``, in numpy wherever the search was; scroll through them with
    :meth:`embedding_at`.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path(budget=3 * 80)  # room for three maps of five points
    >>> for step in range(7):
    ...     path.record(PathStep(step, -step, 2, np.nan, 1, True), np.full((5, 2), float(step)))
    >>> path.kept
    [0, 4, 6]
    >>> path.embedding_at(3.8)[0]
    array([4., 4.])
    """

    budget: float = 2.0**28
    steps: list[PathStep] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    embeddings: list[Array] = field(default_factory=list)
    _stride: int = 1

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        if not self.steps:
            return "Path(no steps)"
        first, last = self.steps[0], self.steps[-1]
        return (
            f"Path({len(self)} steps, parameter {first.parameter:.3g} to {last.parameter:.3g}, "
            f"rank {first.rank} to {last.rank}, {len(self.kept)} maps kept)"
        )

    def record(self, step: PathStep, embedding: Array) -> None:
        """Add a step and, for the time being, its map."""
        if self.kept and self.kept[-1] % self._stride:
            self._drop(-1)  # it was there only as the last one
        self.steps.append(step)
        self.kept.append(len(self.steps) - 1)
        self.embeddings.append(np.array(to_numpy(embedding)))
        while len(self.kept) > 2 and sum(Y.nbytes for Y in self.embeddings) > self.budget:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        for i in range(len(self.kept) - 2, 0, -1):  # the last stays whatever its number
            if self.kept[i] % self._stride:
                self._drop(i)

    def _drop(self, i: int) -> None:
        del self.kept[i], self.embeddings[i]

    def column(self, name: str) -> Array:
        """One figure of all steps: ``"parameter"``, ``"value"``, ``"rank"``, ..."""
        check_option("name", name, PathStep._fields)
        return np.array([getattr(step, name) for step in self.steps])

    def embedding_at(self, parameter: float) -> Array:
        """The kept map whose parameter comes nearest, by ratio where all are positive."""
        at = self.column("parameter")[self.kept]
        positive = parameter > 0 and (at > 0).all()
        distance = np.log(at / parameter) if positive else at - parameter
        return self.embeddings[int(np.argmin(np.abs(distance)))]

    def seen_through(self, view: Callable[[float, Array], Array]) -> Self:
        """The same path where maps are functions of the parameter and what was searched for."""
        at = self.column("parameter")[self.kept]
        maps = [view(float(p), Y) for p, Y in zip(at, self.embeddings, strict=True)]
        return replace(self, embeddings=maps)

    @property
    def bifurcations(self) -> list[tuple[float, int]]:
        """Where the rank changes: the parameter, and the rank from there on."""
        ranks, at = self.column("rank"), self.column("parameter")
        changes = np.flatnonzero(np.diff(ranks)) + 1
        return [(float(at[i]), int(ranks[i])) for i in changes]


def rank(Y: Array, flat: float = 1e-3, collapsed: float = 1e-3) -> int:
    """Directions along which a map extends, relative to its longest; none if it is a point.

    A direction counts if the map extends along it by the share `flat` of its longest, and by
    `collapsed` in units of the map's kernel, below which a map is a point.
    """
    Y = to_numpy(Y)
    spread = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False) / np.sqrt(len(Y))
    return int((spread > max(flat * spread[0], collapsed)).sum())
