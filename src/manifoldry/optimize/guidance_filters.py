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
from manifoldry.optimize.guidance_matrix import check_guidance_matrix, graph_matrix
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
    max_eigenvectors : int, default=None
        Once l would reach `max_eigenvectors`, or the number of points, the identity or `then` follows. By
        default the number of points up to `all_up_to` of them, and `max_beyond` beyond.
    drop_first : bool, default=False
        Leave out the first eigenvector, which is close to constant and moves the map as a whole.
    all_up_to, max_beyond : int, default=4000, 100
        Order up to which all eigenvectors are computed, and how many are beyond it.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize import Projector
    >>> list(Projector(start=1, step=2).stages(8))
    [1, 3, 5, 7]
    """

    start: int = 1
    step: int = 1
    max_eigenvectors: int | None = None
    drop_first: bool = False
    all_up_to: int = field(default=4000, kw_only=True)
    max_beyond: int = field(default=100, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("start", "step", "all_up_to", "max_beyond"):
            check_count(name, getattr(self, name))
        if self.max_eigenvectors is not None:
            check_count("max_eigenvectors", self.max_eigenvectors)

    def stages(self, n: int) -> Sequence[float]:
        return range(self.start, self._end(n), self.step)

    def prepare(self, objective: Objective) -> Array:
        M = super().prepare(objective)
        skipped = int(self.drop_first)
        count = int(self.stages(objective.n)[-1]) + skipped
        return self._leading(M, min(count, objective.n))[:, skipped:]

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        V = prepared[:, : int(parameter)]
        return V @ (V.T @ G)

    def _end(self, n: int) -> int:
        default = n if n <= self.all_up_to else self.max_beyond
        end = min(n, default if self.max_eigenvectors is None else self.max_eigenvectors)
        return end - self.drop_first

    def _leading(self, M: Matrix, count: int) -> Array:
        """Orthonormal eigenvectors of the largest eigenvalues, the largest first."""
        n = M.shape[0]
        iterative = n > self.all_up_to or count < n // 20
        solver: EigenSolver = Auto() if iterative else Dense()
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
    >>> list(Power(start=3).stages(100))
    [3, 2, 1]
    """

    start: int = 10

    def __post_init__(self) -> None:
        check_count("start", self.start, minimum=0)

    def stages(self, n: int) -> Sequence[float]:
        return range(self.start, 0, -1)

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        for _ in range(int(parameter)):
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
    >>> DeflatedPower().smooth(np.diag([1.0, 0.5, 0.1]), 60, G).round(3) + 0.0
    array([[1., 0.],
           [0., 0.],
           [0., 0.]])
    """

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        out, basis = G[:, :0], G[:, :0]
        for j in range(G.shape[1]):
            z = _project_out(basis, G[:, j])
            for _ in range(int(parameter)):
                z = _project_out(basis, prepared @ z)
            out, basis = beside(out, z[:, None]), beside(basis, _unit_direction(basis, z))
        return out


def _project_out(U: Array, z: Array) -> Array:
    return z - U @ (U.T @ z) if U.shape[1] else z


def _unit_direction(U: Array, z: Array) -> Array:
    """`z` as a unit vector orthogonal to `U`, which rounding has spoilt for short ones; or none."""
    length = largest(z)
    if length == 0:
        return z[:, None][:, :0]
    z = _project_out(U, z / length)
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
    coefficient_tol : float, default=1e-17
        Coefficients of the series that are left out, relative to a sum of one: below rounding.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> from manifoldry.optimize import Heat
    >>> list(Heat(start=4.0, end=1.0, factor=0.5).stages(100))
    [4.0, 2.0, 1.0]
    """

    start: float = 10.0
    end: float = 0.1
    factor: float = 0.7
    coefficient_tol: float = field(default=1e-17, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("start", "end", "factor", "coefficient_tol"):
            check_positive(name, getattr(self, name))
        check_below("factor", self.factor, 1.0, "time has to fall")

    def stages(self, n: int) -> Sequence[float]:
        times, s = [], self.start
        while s >= self.end:
            times.append(s)
            s *= self.factor
        return times

    def prepare(self, objective: Objective) -> Matrix:
        if self.matrix is None:
            return graph_matrix(objective.attraction)
        return check_guidance_matrix(self.matrix, objective.n)

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        # e^{s·m} = I₀(s) + 2·Σ Iₖ(s)·Tₖ(m) for |m| ≤ 1; `ive` has the factor e^{−s} in it.
        order = np.arange(int(10 * np.sqrt(parameter)) + 25)
        weights = [float(w) for w in ive(order, parameter) if w > self.coefficient_tol]
        before, now = G, prepared @ G
        out = weights[0] * before
        for weight in weights[1:]:
            out = out + 2 * weight * now
            before, now = now, 2 * (prepared @ now) - before
        return out
