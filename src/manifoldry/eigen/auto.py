"""Automatic choice of an eigensolver, with the reason for each choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from manifoldry.device import Device
from manifoldry.eigen.chebyshev import ChebyshevSubspace
from manifoldry.eigen.dense import Dense
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.inverse import CHOLESKY_FROM, NEARLY_DENSE, estimated_fill, growth_dimension
from manifoldry.eigen.lanczos import Lanczos
from manifoldry.eigen.lobpcg import Lobpcg
from manifoldry.eigen.on_device import solving_device
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.randomized import Randomized
from manifoldry.eigen.shift_invert import ShiftInvertLanczos
from manifoldry.eigen.solver import (
    EigenSolver,
    PairSolver,
    SolverFailed,
    check_n_pairs,
    rejection_message,
)
from manifoldry.eigen.spectrum import DEFAULT_ACCEPTANCE, Acceptance, Spectrum
from manifoldry.eigen.standard import SpectrumEnd
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.util.memory import available_memory
from manifoldry.util.typing import Matrix
from manifoldry.util.validation import SMALL_PLAN


@dataclass(frozen=True)
class Choice:
    """A solver and the reason it was chosen.

    Parameters
    ----------
    solver : PairSolver
        The solver.
    reason : str
        Why it was chosen, in words.

    See Also
    --------
    Auto : chooses solvers.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Auto, SpectralProblem
    >>> choice = Auto().choose(SpectralProblem(np.eye(3), end="largest"), 1)[0]
    >>> choice.solver.name, choice.reason
    ('Dense', 'order 3 is at most 2000, where a dense solve is fast and exact')
    """

    solver: PairSolver
    reason: str


@dataclass(frozen=True)
class Auto(EigenSolver):
    """Choose a solver from the size and structure of the problem and the end of the spectrum.

    If the residuals of a solver are too large for the eigenvalue gaps, the next solver is tried.
    :meth:`choose` returns the solvers and the reasons without solving anything.

    Parameters
    ----------
    dense_up_to : int, default=2000
        Problems up to this order are solved as dense matrices.
    iterate_from : int, default=400
        Above this order, an iterative solver is used when few pairs of an explicit matrix are
        needed (k at most a twentieth of the order).
    max_fill : float, optional
        Largest estimated number of nonzeros of a sparse factor. By default, the free memory
        divided by `bytes_per_entry`.
    max_probe_products : int, default=2000
        Matrix-vector products tried with a sparse operator before factorizing it.
    dense_fallback_up_to : int, default=10000
        Problems up to this order are solved as dense matrices if all other solvers fail.
    full_multiplicity : bool, default=True
        Search for all eigenvectors of repeated eigenvalues; see :class:`Lanczos`.
    acceptance : Acceptance, optional
        Errors of eigenvectors at which Lanczos iterations with the operator itself stop.
    probe_first : bool, default=False
        Start with a probe even where an estimate of the fill-in would come first.
    bytes_per_entry : int, default=26
        Memory per nonzero of a symmetric factor by SuperLU, measured at 10⁶ points; our own factor
        of larger matrices needs less.
    max_cost_ratio : float, default=10
        If a factorization costs more than this many times `max_probe_products`, Lanczos is tried
        again with more products before factorizing.
    estimate_fill_up_to : int, default=5000
        Up to this order the fill-in is estimated before the probe.
    small_fill_ratio : float, default=2.5
        If the factor has at most this many times the nonzeros of the operator, it is computed
        without a probe. At 700 to 5000 points, digits, cells and rolls have ratios of 1.3 to 2.3
        and are solved faster by factorization; Gaussian clouds of 10 and 50 dimensions have larger
        ratios, up to 300, and are not.
    surface_from : int, default=20000
        Above this order a matrix whose graph is that of a surface is factorized without a probe
        and an estimate of the fill-in.
    surface_dimension : float, default=2.7
        Graphs of at most this dimension count as surfaces. The dimension is estimated from the
        growth of neighborhoods.
    max_constrained_cost : int, default=500
        With constraints, the matrix is factorized without a probe if that costs no more than this
        many products.
    order_per_product, dense_products : int, default=40, 50
        Shift-invert of a dense matrix takes as long as about `dense_products` products for its
        solves and, for the Cholesky factor, its order divided by `order_per_product` (measured at
        2000 to 5000 points). The probe before it takes no longer.
    dense_on_device_up_to : int, default=1000
        Problems up to this order are solved as dense matrices on a device. Those of higher order
        have to need many pairs: there a full decomposition takes longer than an iteration for few.

    See Also
    --------
    resolve_solver : makes solvers from their names.
    Choice : a solver and the reason for it.
    Dense, Lanczos, ShiftInvertLanczos, Lobpcg, Randomized : the solvers it chooses from.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Auto, SpectralProblem
    >>> problem = SpectralProblem(np.diag([4.0, 1.0, 3.0]), end="largest")
    >>> Auto().choose(problem, 1)[0].reason
    'order 3 is at most 2000, where a dense solve is fast and exact'
    >>> Auto().solve(problem, 1, np.random.default_rng(0)).solver
    'Dense'
    """

    extra_pairs_are_cheap = True

    dense_up_to: int = 2000
    iterate_from: int = 400
    max_fill: float | None = None
    max_probe_products: int = 2000
    dense_fallback_up_to: int = 10_000
    full_multiplicity: bool = True
    acceptance: Acceptance = DEFAULT_ACCEPTANCE
    probe_first: bool = False
    bytes_per_entry: int = 26
    max_cost_ratio: float = 10
    estimate_fill_up_to: int = 5000
    small_fill_ratio: float = 2.5
    surface_from: int = CHOLESKY_FROM
    surface_dimension: float = 2.7
    max_constrained_cost: int = 500
    order_per_product: int = 40
    dense_products: int = 50
    dense_on_device_up_to: int = 1000

    def choose(self, problem: SpectralProblem, k: int) -> list[Choice]:
        """Return the solvers in the order they will be tried, each with its reason.

        Parameters
        ----------
        problem : SpectralProblem
            The problem to solve.
        k : int
            Number of eigenpairs.

        Returns
        -------
        list of Choice
            The solvers and the reasons.
        """
        return list(self._chain(problem, k))

    def _chain(self, problem: SpectralProblem, k: int) -> Iterator[Choice]:
        """Yield the choices lazily: computing a later one may be expensive."""
        n, A = problem.n, problem.operator
        side = A.small_side if isinstance(A, Gram) else n
        device = solving_device(problem)
        if device is not None:
            yield from self._on_device(problem, k, device, side)
            return
        explicit = isinstance(A, np.ndarray) or hasattr(A, "nnz")
        few = explicit and side > self.iterate_from and k <= side // 20
        if side <= self.dense_up_to and not few:
            yield self._dense_choice(n, side)
            yield from self._iterative(problem, k)
            return
        yield from self._iterative(problem, k)
        if side <= self.dense_fallback_up_to:
            limit = f"at most {self.dense_fallback_up_to}"
            yield Choice(Dense(), f"order {side} is {limit}: a dense solve as a last resort")

    def _on_device(
        self, problem: SpectralProblem, k: int, device: Device, side: int
    ) -> Iterator[Choice]:
        """Yield the choices on a device, where products cost little and factors are dense."""
        n, A, where = problem.n, problem.operator, f"on {device.name}"
        limit = min(self.dense_on_device_up_to, self.dense_up_to)
        if side <= limit or (side <= self.dense_up_to and 20 * k > side):
            reason = f"{where}, order {side} is small enough for a dense solve"
            yield Choice(Dense(), reason)
        sparse, inner = hasattr(A, "nnz"), problem.end == SpectrumEnd.SMALLEST
        blocks = f"{where}, {k} pairs of order {n} need only products with blocks"
        filtered = Choice(ChebyshevSubspace(acceptance=self.acceptance), blocks)
        if inner or sparse:
            yield filtered
        if inner and not isinstance(A, Gram):
            yield Choice(self._shift_invert, f"order {n}: a factor separates tiny gaps")
        if not sparse:
            yield Choice(Randomized(), f"{blocks}, of few powers")
        yield Choice(self._lanczos, f"{where}, {k} pairs need only products with the operator")
        if limit < side <= self.dense_fallback_up_to:
            yield Choice(Dense(), f"{where}, order {side}: a dense solve as a last resort")

    def _dense_choice(self, n: int, side: int) -> Choice:
        fits = f"is at most {self.dense_up_to}, where a dense solve is fast and exact"
        if side < n:
            return Choice(Dense(), f"the factor's short side {side} (of {n} rows) {fits}")
        return Choice(Dense(), f"order {n} {fits}")

    def _iterative(self, problem: SpectralProblem, k: int) -> Iterable[Choice]:
        n, A = problem.n, problem.operator
        krylov = Choice(
            self._lanczos,
            f"{k} pairs of order {n} need only products with the operator",
        )
        block = Choice(Randomized(), f"a block iteration for {k} pairs finds repeated eigenvalues")
        if isinstance(A, Gram) or problem.end == SpectrumEnd.LARGEST:
            return [krylov, block]
        if not isinstance(A, np.ndarray) and not hasattr(A, "nnz"):
            return [krylov, Choice(Lobpcg(), f"a block of {k} pairs without a matrix"), block]
        constraints = 0 if problem.constraint is None else problem.constraint.shape[1]
        density = (A.size if isinstance(A, np.ndarray) else A.nnz) / n**2
        if density > NEARLY_DENSE:
            return [*self._dense_smallest(n, density, constraints), krylov, block]
        return self._sparse_smallest(A, constraints)

    def _dense_smallest(self, n: int, density: float, constraints: int) -> Iterator[Choice]:
        """Yield a probe that takes no longer than the factorization, and the factorization."""
        order = f"smallest end, order {n}, {density:.0%} nonzero"
        if not constraints:  # with them a probe is less useful, as for sparse matrices
            products = self.dense_products + n / self.order_per_product
            yield self._probe(order, int(products / density))
        yield Choice(self._shift_invert, f"{order}: one dense Cholesky factor separates tiny gaps")

    @property
    def _lanczos(self) -> Lanczos:
        return Lanczos(full_multiplicity=self.full_multiplicity, acceptance=self.acceptance)

    def _probe(self, order: str, max_products: int) -> Choice:
        probe = replace(self._lanczos, probe=True, max_products=max_products)
        return Choice(
            probe, f"{order}: a probe, which stops early if the gaps at this end are too small"
        )

    def _sparse_smallest(self, A: Matrix, constraints: int) -> Iterator[Choice]:
        """Yield a short Lanczos run (the probe) first, then solvers that factorize the matrix.

        The probe costs less than ordering the matrix for a factorization, so the fill-in is
        estimated only after the probe has failed or where the estimate is cheap. With constraints
        products are slower and the wanted eigenvalues are farther from the edge of the spectrum,
        which makes a probe less useful.
        """
        order = f"smallest end, sparse of order {A.shape[0]}, {A.nnz} entries"
        if not (constraints or self.probe_first) and self._is_surface(A):
            yield from self._surface(order)
            return
        estimate = constraints or A.shape[0] <= self.estimate_fill_up_to
        if estimate and not self.probe_first:
            fill = estimated_fill(A)
            few = (
                constraints and _cost_in_products(A, constraints, fill) <= self.max_constrained_cost
            )
            if few or fill <= self.small_fill_ratio * A.nnz:
                yield from self._factorized(A, constraints, fill, order)
                return
        yield self._probe(order, self.max_probe_products)
        yield from self._factorized(A, constraints, estimated_fill(A), order)

    def _is_surface(self, A: Matrix) -> bool:
        """Whether the graph of A is that of a large surface, unless a limit of fill-in is set."""
        large = A.shape[0] > self.surface_from and self.max_fill is None
        return large and growth_dimension(A) <= self.surface_dimension

    def _surface(self, order: str) -> Iterator[Choice]:
        """Yield the solvers for a surface, which has tiny gaps and a factor with few nonzeros.

        If there is not enough memory for the factor, the first of them fails.
        """
        reason = f"{order}, balls grow as on a surface"
        yield Choice(self._shift_invert, f"{reason}: a factor separates tiny gaps")
        yield Choice(Lobpcg(), f"{reason}: multigrid needs no factor")
        yield Choice(self._lanczos, f"{reason}: products with the operator suffice")

    @property
    def _shift_invert(self) -> ShiftInvertLanczos:
        return ShiftInvertLanczos(full_multiplicity=self.full_multiplicity)

    def _factorized(self, A: Matrix, constraints: int, fill: float, order: str) -> Iterator[Choice]:
        """Yield the solvers to try when there was no probe or the gaps were too small for it."""
        cost = _cost_in_products(A, constraints, fill)
        sizes = f"{order}, {fill:.1e} expected in a factor, which costs {cost:.0f} products"
        inverse = Choice(self._shift_invert, f"{sizes}: it separates tiny gaps")
        multigrid = Choice(Lobpcg(), f"{sizes}: multigrid needs no factor")
        krylov = Choice(
            self._lanczos,
            f"{sizes}: products with the operator suffice",
        )
        if self._exceeds_memory(fill):
            yield from (krylov, multigrid)
        elif cost > self.max_probe_products * self.max_cost_ratio:
            yield from (krylov, inverse, multigrid)
        else:
            yield from (inverse, multigrid, krylov)

    def _exceeds_memory(self, fill: float) -> bool:
        few = self.max_fill is None and fill * self.bytes_per_entry <= SMALL_PLAN
        return not few and fill > self.fill_limit

    @property
    def fill_limit(self) -> float:
        """Largest number of nonzeros of a sparse factor that is computed."""
        if self.max_fill is not None:
            return self.max_fill
        available = available_memory()
        return np.inf if available is None else available / self.bytes_per_entry

    def solve(self, problem: SpectralProblem, k: int, rng: np.random.Generator) -> Spectrum:
        """Try the solvers until a spectrum is accepted; otherwise return the best and warn.

        Parameters
        ----------
        problem : SpectralProblem
            The problem to solve.
        k : int
            Number of eigenpairs.
        rng : numpy.random.Generator
            Source of start vectors.

        Returns
        -------
        Spectrum
            The eigenpairs; ``solver`` and ``reason`` say which solver was used and why.
        """
        return self.solve_with_extra(problem, k, 0, rng)

    def solve_with_extra(
        self, problem: SpectralProblem, k: int, extra: int, rng: np.random.Generator
    ) -> Spectrum:
        standard = problem.standard(solving_device(problem))
        check_n_pairs(standard, k)
        found: list[Spectrum] = []
        failures: list[str] = []
        for choice in self._chain(problem, k + extra):
            try:
                spectrum = choice.solver.attempt(problem, standard, k, rng, extra)
            except SolverFailed as failure:
                failures.append(failure.what)
                continue
            found.append(replace(spectrum, reason=_with_failures(choice.reason, failures)))
            if spectrum.accepted:
                return found[-1]
            failures.append(
                f"{choice.solver.name} was not accepted ({_residual_and_gap(spectrum)})"
            )
        if not found:
            raise RuntimeError("no eigensolver succeeded: " + "; ".join(failures))
        best = min(found, key=lambda s: s.worst_ratio)
        warn(rejection_message(best), ConvergenceWarning)
        return best


def _cost_in_products(A: Matrix, constraints: int, fill: float) -> float:
    """Return how many Lanczos steps take as long as a factorization with this fill-in.

    The factorization consists of ordering (proportional to the nonzeros of A), elimination
    (proportional to the squared column lengths of the factor, and for our own factorization also
    to the lengths) and one solve per constraint. A step consists of the product, orthogonalization
    and interpreter overhead. The coefficients are seconds, measured on 2 cores at 10⁴ to 10⁶
    points; only the ratio matters.
    """
    n = A.shape[0]
    if n > CHOLESKY_FROM:
        factorization = 3.4e-7 * A.nnz + 3e-8 * fill + 0.07e-9 * fill**2 / n
    else:
        factorization = 1.2e-6 * A.nnz + 0.7e-9 * fill**2 / n
    factorization += 5e-9 * constraints * fill
    step = 1.6e-9 * A.nnz + 3e-8 * n + 8e-10 * constraints * n + 1.5e-4
    return float(factorization / step)


def _with_failures(reason: str, failures: Sequence[str]) -> str:
    return reason if not failures else f"{reason}; before it: {'; '.join(failures)}"


def _residual_and_gap(spectrum: Spectrum) -> str:
    i = spectrum.worst
    return f"residual {spectrum.residuals[i]:.1e} against a gap of {spectrum.gaps[i]:.1e}"


def resolve_solver(spec: str | EigenSolver, end: str | None = None) -> EigenSolver:
    """Return the solver specified by an ``eigen_solver`` argument.

    Parameters
    ----------
    spec : str or EigenSolver
        A solver, which is returned unchanged, or a name: "auto", "dense", "lanczos",
        "shift_invert", "lobpcg" or "randomized". scikit-learn's names are accepted: "arpack" is
        Lanczos, with shift-invert at the smallest end, and "amg" is LOBPCG with multigrid.
    end : {"smallest", "largest"}, optional
        The end of the spectrum to compute; only "arpack" depends on it.

    Returns
    -------
    EigenSolver
        The solver.

    See Also
    --------
    Auto : what "auto" stands for.
    manifoldry.LaplacianEigenmaps : an estimator with the parameter ``eigen_solver``.

    Examples
    --------
    >>> from manifoldry.eigen import resolve_solver
    >>> resolve_solver("arpack", end="smallest").name
    'ShiftInvertLanczos'
    """
    if isinstance(spec, EigenSolver):
        return spec
    arpack = ShiftInvertLanczos if end == SpectrumEnd.SMALLEST else Lanczos
    named: dict[str, type[EigenSolver]] = {
        "auto": Auto,
        "dense": Dense,
        "lanczos": Lanczos,
        "shift_invert": ShiftInvertLanczos,
        "lobpcg": Lobpcg,
        "randomized": Randomized,
        "arpack": arpack,
        "amg": Lobpcg,
    }
    if not isinstance(spec, str) or spec not in named:
        names = ", ".join(map(repr, named))
        raise ValueError(f"eigen_solver={spec!r} must be one of {names}, or an EigenSolver object")
    if spec == "amg" and find_spec("pyamg") is None:
        raise ImportError('eigen_solver="amg" needs pyamg: pip install "manifoldry[amg]"')
    return named[spec]()
