"""Guidance by eigenvectors, by powers of a matrix and by diffusion: what a level lets through."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ive

from manifoldry.eigen import Auto, Dense, EigenSolver, SpectralProblem
from manifoldry.objectives.base import Objective
from manifoldry.optimize.guidance import Guidance
from manifoldry.optimize.guidance_matrix import graph_matrix, guidance_matrix
from manifoldry.util.arrays import beside, largest
from manifoldry.util.checks import check_below, check_count, check_positive
from manifoldry.util.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class Projector(Guidance):
    """V Vᵀ, V being the l leading eigenvectors of M, with l growing.

    The map moves in l directions only, so a level minimizes the objective among the maps it can
    reach; give it a schedule that ends, unless that is what you want.

    Parameters
    ----------
    start, step : int, default=1
        The first l, and by how much it grows.
    most : int, default=None
        Once l would reach `most`, or the number of points, the identity or `then` follows. By
        default the number of points up to `all_up_to` of them, and `few` beyond.
    drop_first : bool, default=False
        Leave out the first eigenvector, which is close to constant and moves the map as a whole.
    all_up_to, few : int, default=4000, 100
        Order up to which all eigenvectors are computed, and how many are beyond it.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize import Projector
    >>> list(Projector(start=1, step=2).levels(8))
    [1, 3, 5, 7]
    """

    start: int = 1
    step: int = 1
    most: int | None = None
    drop_first: bool = False
    all_up_to: int = field(default=4000, kw_only=True)
    few: int = field(default=100, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("start", "step", "all_up_to", "few"):
            check_count(name, getattr(self, name))
        if self.most is not None:
            check_count("most", self.most)

    def levels(self, n: int) -> Sequence[float]:
        return range(self.start, self._end(n), self.step)

    def prepared(self, objective: Objective) -> Array:
        M = super().prepared(objective)
        skipped = int(self.drop_first)
        count = int(self.levels(objective.n)[-1]) + skipped
        return self._leading(M, min(count, objective.n))[:, skipped:]

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        V = prepared[:, : int(level)]
        return V @ (V.T @ G)

    def _end(self, n: int) -> int:
        default = n if n <= self.all_up_to else self.few
        most = min(n, default if self.most is None else self.most)
        return most - self.drop_first

    def _leading(self, M: Matrix, count: int) -> Array:
        """Orthonormal eigenvectors of the largest eigenvalues, the largest first."""
        n = M.shape[0]
        iterates = n > self.all_up_to or count < n // 20
        solver: EigenSolver = Auto() if iterates else Dense()
        problem = SpectralProblem(M, end="largest", bounds=(0.0, np.inf))
        return solver.solve(problem, count, np.random.default_rng(0)).vectors


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
    >>> from manifoldry.optimize import Power
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


@dataclass(frozen=True, eq=False)
class DeflatedPower(Power):
    """M^ν for the first coordinate; for the next ones, M without the directions already taken.

    High powers turn every column of the gradient towards the same eigenvector. Here the second
    coordinate's M is (I − uuᵀ)M(I − uuᵀ), u the direction of the first one's result, and so on,
    which is positive semidefinite whatever u is, so that every coordinate descends. (The published
    M − λuuᵀ is not, unless u is an eigenvector.)

    The operator depends on the gradient: use it with plain descent. Its last level is no place to
    stay, since later coordinates never move along earlier ones' directions.

    Parameters
    ----------
    start : int, default=10
        The first ν; see :class:`Power`.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.optimize import DeflatedPower
    >>> G = np.ones((3, 2))
    >>> DeflatedPower().smoothed(np.diag([1.0, 0.5, 0.1]), 60, G).round(3) + 0.0
    array([[1., 0.],
           [0., 0.],
           [0., 0.]])
    """

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        out, taken = G[:, :0], G[:, :0]
        for j in range(G.shape[1]):
            z = _without(taken, G[:, j])
            for _ in range(int(level)):
                z = _without(taken, prepared @ z)
            out, taken = beside(out, z[:, None]), beside(taken, _direction(taken, z))
        return out


def _without(U: Array, z: Array) -> Array:
    return z - U @ (U.T @ z) if U.shape[1] else z


def _direction(U: Array, z: Array) -> Array:
    """`z` as a unit vector orthogonal to `U`, which rounding has spoilt for short ones; or none."""
    length = largest(z)
    if length == 0:
        return z[:, None][:, :0]
    z = _without(U, z / length)
    return z[:, None] / sqrt(float(z @ z))


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
    negligible : float, default=1e-17
        Coefficients of the series that are left out, relative to a sum of one: below rounding.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize import Heat
    >>> list(Heat(start=4.0, end=1.0, factor=0.5).levels(100))
    [4.0, 2.0, 1.0]
    """

    start: float = 10.0
    end: float = 0.1
    factor: float = 0.7
    negligible: float = field(default=1e-17, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("start", "end", "factor", "negligible"):
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
        weights = [float(w) for w in ive(order, level) if w > self.negligible]
        before, now = G, prepared @ G
        out = weights[0] * before
        for weight in weights[1:]:
            out = out + 2 * weight * now
            before, now = now, 2 * (prepared @ now) - before
        return out
