"""Guidance by eigenvectors (projection), by powers of a matrix, and by diffusion."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ive

from manifoldry.eigen import Auto, Dense, EigenSolver, SpectralProblem
from manifoldry.objectives.base import Objective
from manifoldry.optimize.guidance import Guidance
from manifoldry.optimize.guidance_matrix import check_guidance_matrix, graph_matrix
from manifoldry.optimize.matrix_power import ChebyshevPower, eigenvalue_factor, power_of_factor
from manifoldry.util.arrays import hstack_columns, largest
from manifoldry.util.checks import check_below, check_count, check_positive
from manifoldry.util.typing import Array, Matrix


@dataclass(frozen=True, eq=False)
class Projector(Guidance):
    """Projection V Vᵀ on the l leading eigenvectors V of M, with l increasing.

    In one stage the columns of the embedding change within an l-dimensional subspace only, so the
    search minimizes the objective on that subspace. With ``schedule=Never()`` that is the result.

    Parameters
    ----------
    start, step : int, default=1
        The first l, and its increment from stage to stage.
    max_eigenvectors : int, default=None
        `final_filter` follows once l would reach this number or the number of points. By default
        the number of points if there are at most `all_eigenvectors_up_to`, else
        `max_eigenvectors_large`.
    drop_first : bool, default=False
        Whether to leave out the first eigenvector, which is nearly constant and translates the
        embedding.
    matrix, schedule, final_filter : matrix, Schedule, Filter, optional
        See :class:`Guidance`.
    all_eigenvectors_up_to, max_eigenvectors_large : int, default=4000, 100
        Number of points up to which all eigenvectors are used by default, and their number for
        more points.

    See Also
    --------
    Power, Heat : damp eigenvectors instead of leaving them out.
    graph_matrix, clustering_matrix, kernel_pca_matrix : matrices M.

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
    all_eigenvectors_up_to: int = field(default=4000, kw_only=True)
    max_eigenvectors_large: int = field(default=100, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("start", "step", "all_eigenvectors_up_to", "max_eigenvectors_large"):
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
        default = n if n <= self.all_eigenvectors_up_to else self.max_eigenvectors_large
        end = min(n, default if self.max_eigenvectors is None else self.max_eigenvectors)
        return end - self.drop_first

    def _leading(self, M: Matrix, count: int) -> Array:
        """Orthonormal eigenvectors of the largest eigenvalues, in decreasing order."""
        n = M.shape[0]
        iterative = n > self.all_eigenvectors_up_to or count < n // 20
        solver: EigenSolver = Auto() if iterative else Dense()
        problem = SpectralProblem(M, end="largest", bounds=(0.0, np.inf))
        return solver.solve(problem, count, np.random.default_rng(0)).vectors


@dataclass(frozen=True, eq=False)
class Power(Guidance):
    """M^ν with ν decreasing by one: eigenvectors are damped by their eigenvalue to the power ν.

    It needs ν products with M per gradient, and no eigenvectors. If M is positive definite, the
    stationary points are those of the objective. The published division by tr(M^ν) is left out: it
    only rescales the direction, which makes no difference to a line search.

    Fractional powers flatten the spectrum. For dense matrices, and sparse ones of up to
    `all_eigenvectors_up_to` points, they take all eigenvectors of M; for larger sparse matrices, a
    Chebyshev series of products with M.

    Parameters
    ----------
    start : int, default=10
        The first ν. It decreases to 1, then through `fractions`; `final_filter` follows instead of
        ν = 0.
    fractions : sequence of float, default=()
        Decreasing powers between 0 and 1, the last stages, such as ``(0.5, 0.25)``. With
        ``start=0`` they are the only ones.
    matrix, schedule, final_filter : matrix, Schedule, Filter, optional
        See :class:`Guidance`. With ``final_filter=None``, ν stays at the last value.
    all_eigenvectors_up_to : int, default=1000
        Number of points up to which fractional powers of a sparse matrix use its eigenvectors.

    See Also
    --------
    Heat : with a real exponent.
    DeflatedPower : a separate direction for every coordinate.
    graph_matrix, clustering_matrix, kernel_pca_matrix : matrices M.

    Examples
    --------
    >>> from manifoldry.optimize import Power
    >>> Power(start=3, fractions=(0.5,)).stages(100)
    [3, 2, 1, 0.5]
    """

    start: int = 10
    fractions: Sequence[float] = ()
    all_eigenvectors_up_to: int = field(default=1000, kw_only=True)

    def __post_init__(self) -> None:
        check_count("start", self.start, minimum=0)
        check_count("all_eigenvectors_up_to", self.all_eigenvectors_up_to, minimum=0)
        if np.ndim(self.fractions) != 1:
            raise TypeError(
                f"fractions={self.fractions!r} must be a sequence of powers; "
                "pass fractions=(0.5,) for one"
            )
        above = 1.0
        for nu in self.fractions:
            check_positive("fractions", nu)
            check_below("fractions", nu, above, "as powers below one that decrease")
            above = nu

    def stages(self, n: int) -> Sequence[float]:
        return [*range(self.start, 0, -1), *self.fractions]

    def prepare(self, objective: Objective) -> Any:
        M = super().prepare(objective)
        if not self.fractions:
            return M
        if sparse.issparse(M) and M.shape[0] > self.all_eigenvectors_up_to:
            return ChebyshevPower.of(M)
        return eigenvalue_factor(M)

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        if isinstance(prepared, ChebyshevPower):
            return prepared.apply(parameter, G)
        if self.fractions:
            return power_of_factor(prepared, parameter, G)
        for _ in range(int(parameter)):
            G = prepared @ G
        return G


@dataclass(frozen=True, eq=False)
class DeflatedPower(Power):
    """M^ν for the first coordinate; for later ones, M deflated by the directions before.

    High powers turn every column of the gradient toward the same eigenvector. Here the matrix of
    the second coordinate is (I − uuᵀ)M(I − uuᵀ), where u is the direction of the first coordinate,
    and so on. It is positive semidefinite for any u, so that every coordinate descends. (The
    published M − λuuᵀ is positive semidefinite only if u is an eigenvector.) Fractional powers,
    which turn nothing toward one eigenvector, are those of :class:`Power`, without deflation.

    The operator depends on the gradient; use it with :class:`GradientDescent`. Conjugate gradients
    and L-BFGS, which assume a fixed linear operator, warn. Do not pass ``final_filter=None``
    without `fractions`: later coordinates cannot move along the directions of earlier ones.

    Parameters
    ----------
    start, fractions : int, sequence of float, default=10, ()
        The sequence of ν; see :class:`Power`.
    matrix, schedule, final_filter : matrix, Schedule, Filter, optional
        See :class:`Guidance`.
    all_eigenvectors_up_to : int, default=1000
        Number of points up to which fractional powers use eigenvectors; see :class:`Power`.

    See Also
    --------
    Power : the same direction for all coordinates.
    GradientDescent : the optimizer to use it with.

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

    linear = False

    def smooth(self, prepared: Any, parameter: float, G: Array) -> Array:
        if parameter < 1:
            return super().smooth(prepared, parameter, G)
        out, basis = G[:, :0], G[:, :0]
        for j in range(G.shape[1]):
            z = _project_out(basis, G[:, j])
            for _ in range(int(parameter)):
                z = _project_out(basis, super().smooth(prepared, 1, z[:, None])[:, 0])
            out, basis = (
                hstack_columns(out, z[:, None]),
                hstack_columns(basis, _unit_direction(basis, z)),
            )
        return out


def _project_out(U: Array, z: Array) -> Array:
    return z - U @ (U.T @ z) if U.shape[1] else z


def _unit_direction(U: Array, z: Array) -> Array:
    """`z` as a column of unit length, orthogonalized against `U` again; no column if it is zero."""
    length = largest(z)
    if length == 0:
        return z[:, None][:, :0]
    z = _project_out(U, z / length)
    return z[:, None] / sqrt(float(z @ z))


@dataclass(frozen=True, eq=False)
class Heat(Guidance):
    """Heat kernel exp(−s·L), L = I − M: the gradient after diffusion for a decreasing time s.

    Like :class:`Power` with a real exponent, since (1 − λ)^ν ≈ e^{−νλ}. It is positive definite for
    any symmetric M, so that the default is D^{-½}WD^{-½} itself. The exponential is computed to
    machine precision by a Chebyshev series with 32 products with M for s = 10 and 87 for s = 100.

    Parameters
    ----------
    start : float, default=10.0
        The first s.
    end : float, default=0.1
        The smallest s, below which `final_filter` follows.
    factor : float, default=0.7
        Ratio of one s to the one before.
    matrix, schedule, final_filter : matrix, Schedule, Filter, optional
        See :class:`Guidance`.
    coefficient_tol : float, default=1e-17
        Coefficients of the series up to this size, relative to their sum, are left out.

    See Also
    --------
    Power, Projector : other guidance by the same matrices.
    graph_matrix, clustering_matrix, kernel_pca_matrix : matrices M.
    OnSlowProgress, EveryStep, Never : schedules.

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
        check_below("factor", self.factor, 1.0, "so that s decreases")

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
        # e^{s·m} = I₀(s) + 2·Σ Iₖ(s)·Tₖ(m) for |m| ≤ 1; `ive` includes the factor e^{−s}.
        order = np.arange(int(10 * np.sqrt(parameter)) + 25)
        weights = [float(w) for w in ive(order, parameter) if w > self.coefficient_tol]
        before, now = G, prepared @ G
        out = weights[0] * before
        for weight in weights[1:]:
            out = out + 2 * weight * now
            before, now = now, 2 * (prepared @ now) - before
        return out
