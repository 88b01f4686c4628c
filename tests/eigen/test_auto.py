"""Auto: the choice of solvers, its reasons, and the fallback if a solver fails."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator

from manifoldry.eigen import (
    Auto,
    Choice,
    Dense,
    Gram,
    Lanczos,
    Lobpcg,
    PairSolver,
    Randomized,
    ShiftInvertLanczos,
    SolverFailed,
    SpectralProblem,
    resolve_solver,
)
from manifoldry.eigen.inverse import estimated_fill
from manifoldry.eigen.lanczos import ProbeLimits
from manifoldry.exceptions import ConvergenceWarning

PROBLEM = SpectralProblem(np.diag(np.arange(20.0)), end="smallest")


@dataclass(frozen=True)
class Failing(PairSolver):
    error: type[Exception] = np.linalg.LinAlgError

    def _basis(self, standard, k, rng):
        raise self.error(-9) if self.error is ArpackError else self.error("injected")


@dataclass(frozen=True)
class Sloppy(PairSolver):
    noise: float

    def _basis(self, standard, k, rng):
        vectors = Dense()._basis(standard, k, rng)
        return vectors + self.noise * rng.standard_normal(vectors.shape)


class Chain(Auto):
    """Auto with an injected chain."""

    def __init__(self, *solvers):
        super().__init__()
        object.__setattr__(self, "solvers", solvers)

    def _chain(self, problem, k):
        return [Choice(s, f"number {i}") for i, s in enumerate(self.solvers)]


def solvers(problem, k=2, **options):
    return [type(c.solver) for c in Auto(**options).choose(problem, k)]


def sparse(n, end):
    off = -np.ones(n - 1)
    A = sp.diags_array([off, np.full(n, 2.0), off], offsets=[-1, 0, 1])
    return SpectralProblem(A, end=end, bounds=(0, 4))


def test_policy():
    assert solvers(PROBLEM)[0] is Dense
    assert solvers(sparse(300, "smallest"))[0] is Dense
    assert solvers(sparse(1000, "smallest"))[0] is ShiftInvertLanczos
    assert solvers(sparse(1000, "smallest"), k=100)[0] is Dense
    assert solvers(sparse(20_000, "smallest")) == [
        Lanczos,
        ShiftInvertLanczos,
        Lobpcg,
        Lanczos,
    ]
    assert solvers(sparse(3000, "smallest"))[-1] is Dense
    assert solvers(sparse(20_000, "largest")) == [Lanczos, Randomized]
    dense = SpectralProblem(np.eye(2500), end="largest")
    assert solvers(dense)[:2] == [Lanczos, Randomized]
    dense = SpectralProblem(np.eye(2500), end="smallest")
    assert solvers(dense)[:2] == [Lanczos, ShiftInvertLanczos]
    constrained = SpectralProblem(np.eye(2500), end="smallest", constraint=np.ones(2500))
    assert solvers(constrained)[0] is ShiftInvertLanczos
    gram = SpectralProblem(Gram(np.ones((50_000, 3))), end="largest")
    assert solvers(gram)[0] is Dense
    implicit = LinearOperator((30_000, 30_000), matvec=lambda x: x, dtype=float)
    assert ShiftInvertLanczos not in solvers(SpectralProblem(implicit, end="smallest"))


def test_reasons_name_the_decisive_numbers():
    chain = Auto().choose(sparse(20_000, "smallest"), 2)
    assert all(c.reason for c in chain)
    assert "20000" in chain[0].reason
    assert "59998 entries" in chain[0].reason
    assert "a probe" in chain[0].reason
    assert "expected in a factor" in chain[1].reason
    gram = SpectralProblem(Gram(np.ones((50_000, 3))), end="largest")
    assert "short side 3 (of 50000 rows)" in Auto().choose(gram, 2)[0].reason


def test_a_sparse_matrix_with_many_nonzeros_is_solved_like_a_dense_one():
    """Its factor would be full, and estimating how full takes longer than the probe."""
    W = (np.random.default_rng(0).uniform(size=(900, 900)) < 0.1).astype(float)
    W = np.maximum(W, W.T)
    L = np.diag(W.sum(axis=1)) - W
    problem = SpectralProblem(sp.csr_array(L), "smallest", deflate=np.ones(900), bounds=(0, 400))
    chain = Auto().choose(problem, 2)
    assert [type(c.solver) for c in chain[:2]] == [Lanczos, ShiftInvertLanczos]
    assert "order 900, 19% nonzero: a probe" in chain[0].reason
    expected = np.linalg.eigvalsh(L)[1:3]
    for choice in chain[:2]:
        found = choice.solver.solve(problem, 2, np.random.default_rng(0))
        np.testing.assert_allclose(found.values, expected, rtol=1e-8)


def test_too_much_fill_in_is_not_factorized():
    problem = sparse(20_000, "smallest")
    afterwards = [Lanczos, ShiftInvertLanczos, Lobpcg]
    assert solvers(problem, max_probe_products=1) == [Lanczos, *afterwards]
    assert solvers(problem, max_fill=1e3) == [Lanczos, Lanczos, Lobpcg]


def test_the_fill_limit_is_the_free_memory(monkeypatch):
    monkeypatch.setattr("manifoldry.eigen.auto.available_memory", lambda: 26_000)
    monkeypatch.setattr("manifoldry.eigen.auto.SMALL_PLAN", 0)  # do not let a small factor pass
    assert Auto().fill_limit == 1000
    assert ShiftInvertLanczos not in solvers(sparse(20_000, "smallest"))


def random_graph(n, rng):
    """Laplacian of a random graph, whose spectrum has a gap above zero as an expander's."""
    i, j = rng.integers(n, size=(2, 8 * n))
    W = sp.coo_array((np.ones(8 * n), (i, j)), shape=(n, n)).tocsr()
    W = W + W.T
    degree = np.asarray(W.sum(axis=1)).ravel()
    return SpectralProblem(
        sp.csr_array(sp.diags_array(degree) - W),
        end="smallest",
        mass=degree,
        deflate=np.ones(n),
        bounds=(0, 2),
    )


def test_the_probe_distinguishes_wide_and_narrow_gaps(monkeypatch):
    # The same size and about the same number of nonzeros; only the spectrum differs.
    rng, estimates = np.random.default_rng(0), []
    real = estimated_fill
    monkeypatch.setattr(
        "manifoldry.eigen.auto.estimated_fill", lambda A: estimates.append(1) or real(A)
    )
    wide = Auto().solve(random_graph(6000, rng), 2, rng)
    assert wide.solver == "Lanczos"
    assert "a probe" in wide.reason
    assert not estimates  # after a successful probe no fill-in is estimated
    tiny = Auto().solve(sparse(6000, "smallest"), 2, rng)
    assert tiny.solver == "ShiftInvertLanczos"
    assert "Lanczos did not separate 3 pairs of order 6000 in" in tiny.reason
    assert estimates


def test_the_probe_agrees_with_the_dense_solver():
    rng = np.random.default_rng(1)
    problem = random_graph(600, rng)
    fast, exact = Lanczos(probe=True).solve(problem, 4, rng), Dense().solve(problem, 4, rng)
    np.testing.assert_allclose(fast.values, exact.values, atol=1e-12)
    np.testing.assert_allclose(fast.vectors, exact.vectors, atol=1e-6)


def test_a_probe_with_strict_limits_gives_up():
    rng = np.random.default_rng(1)
    hasty = Lanczos(probe=True, probe_limits=ProbeLimits(early_products=5, early_ratio=0.0))
    with pytest.raises(SolverFailed, match="did not separate 3 pairs of order 600 in 5 products"):
        hasty.solve(random_graph(600, rng), 2, rng)


def test_one_large_ratio_does_not_stop_a_probe():
    """At 100 000 points the ratio was 1.5 to 1.8 up to 59 products, and 2.04 after 64."""
    standard = random_graph(600, np.random.default_rng(1)).standard()
    give_up = Lanczos(probe=True)._give_up_rule(standard)
    edge = abs(standard.opposite_bound - standard.end.edge(standard.bounds))
    values = np.array([edge - 1e-3])
    assert not any(give_up(values, np.array([r * 1e-3]), p) for p, r in ((40, 1.8), (64, 2.04)))
    fresh = Lanczos(probe=True)._give_up_rule(standard)
    assert fresh(values, np.array([2.04e-3]), 64)


def test_fill_estimate_is_close_on_a_grid():
    m = 110
    off = -np.ones(m - 1)
    T = sp.diags_array([off, np.full(m, 4.0), off], offsets=[-1, 0, 1])
    N = sp.diags_array([off, off], offsets=[-1, 1])
    A = (sp.kron(sp.eye_array(m), T) + sp.kron(N, sp.eye_array(m))).tocsc()
    lu = sp.linalg.splu(
        A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    assert 0.5 < estimated_fill(A.tocsr()) / lu.L.nnz < 2


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, ArpackError, MemoryError])
def test_falls_back_and_reports_the_failures(error):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain = Chain(Failing(error), Sloppy(1e-2), Dense())
        spectrum = chain.solve(PROBLEM, 3, np.random.default_rng(0))
    np.testing.assert_allclose(spectrum.values, [0, 1, 2], atol=1e-12)
    assert spectrum.solver == "Dense"
    assert "number 2" in spectrum.reason
    assert "Failing failed" in spectrum.reason
    assert "Sloppy was not accepted (residual" in spectrum.reason


def test_the_best_is_returned_with_a_warning_if_none_is_accepted():
    chain = Chain(Sloppy(0.05), Sloppy(0.01), Sloppy(0.2))
    with pytest.warns(ConvergenceWarning, match="Sloppy left eigenvector .* residual .* gap"):
        spectrum = chain.solve(PROBLEM, 2, np.random.default_rng(0))
    assert not spectrum.accepted
    assert "number 1" in spectrum.reason


def test_an_error_names_all_solvers_if_all_fail():
    with pytest.raises(RuntimeError, match="no eigensolver succeeded: Failing failed"):
        Chain(Failing(), Failing()).solve(PROBLEM, 2, np.random.default_rng(0))


def test_remedy_is_only_shown_if_the_user_chose_the_solver():
    spectrum = Chain(Failing(), Dense()).solve(PROBLEM, 2, np.random.default_rng(0))
    assert "Failing failed" in spectrum.reason
    assert "eigen_solver" not in spectrum.reason


def test_an_explicit_solver_fails_with_a_remedy():
    with pytest.raises(SolverFailed, match=r"Failing failed .* order 20 .*eigen_solver=.auto"):
        Failing().solve(PROBLEM, 2, np.random.default_rng(0))
    implicit = LinearOperator((100, 100), matvec=lambda x: x, dtype=float)
    problem = SpectralProblem(implicit, end="smallest")
    with pytest.raises(RuntimeError, match="needs it as an array or sparse matrix"):
        ShiftInvertLanczos().solve(problem, 2, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("spec", "end", "kind"),
    [
        ("auto", None, Auto),
        ("dense", None, Dense),
        ("lanczos", "smallest", Lanczos),
        ("shift_invert", "largest", ShiftInvertLanczos),
        ("lobpcg", None, Lobpcg),
        ("amg", None, Lobpcg),
        ("randomized", None, Randomized),
        ("arpack", "smallest", ShiftInvertLanczos),
        ("arpack", "largest", Lanczos),
    ],
)
def test_names(spec, end, kind):
    assert type(resolve_solver(spec, end)) is kind


def test_solver_objects_pass_and_unknown_names_do_not():
    solver = Lanczos(max_products=7)
    assert resolve_solver(solver) is solver
    for wrong in ("eigen", None, 3):
        with pytest.raises(ValueError, match=r"'auto', 'dense'.*or an EigenSolver object"):
            resolve_solver(wrong)


def test_multigrid_is_optional(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyamg", None)
    problem = sparse(400, "smallest")
    spectrum = Lobpcg(max_iter=600).solve(problem, 2, np.random.default_rng(0))
    expected = 2 - 2 * np.cos(np.pi * np.array([1, 2]) / 401)
    np.testing.assert_allclose(spectrum.values, expected, atol=1e-9)


def test_multigrid_by_name_needs_pyamg(monkeypatch):
    monkeypatch.setattr("manifoldry.eigen.auto.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"manifoldry\[amg\]"):
        resolve_solver("amg")


def test_threads_do_not_share_the_global_generator():
    from concurrent.futures import ThreadPoolExecutor

    problem = sparse(2500, "smallest")
    state = np.random.get_state()[1].copy()  # noqa: NPY002 — it is the state under test

    def run(_):
        return Lobpcg().solve(problem, 2, np.random.default_rng(0)).vectors

    alone = run(0)
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(alone, vectors) for vectors in pool.map(run, range(8)))
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002 (the global state is under test)


@pytest.mark.parametrize("solver", [Auto(), Lanczos()])
def test_repeated_eigenvalues_are_found(solver):
    """Three equal graphs of five communities each: every eigenvalue has multiplicity three."""
    rng = np.random.default_rng(0)
    size, groups, edges = 3000, 5, 36_000
    i = rng.integers(size, size=edges)
    inside = rng.integers(size // groups, size=edges) * groups + i % groups
    j = np.where(rng.random(edges) < 0.98, inside, rng.integers(size, size=edges))
    W = sp.coo_array((np.ones(edges), (i, j)), shape=(size, size)).tocsr()
    W = sp.block_diag([W + W.T] * 3, format="csr")
    degree = np.asarray(W.sum(axis=1)).ravel()
    L = sp.csr_array(sp.diags_array(degree) - W)
    problem = SpectralProblem(
        L, "smallest", np.maximum(degree, 1.0), deflate=np.ones(len(degree)), bounds=(0.0, 2.0)
    )
    values = solver.solve(problem, 2, np.random.default_rng(1)).values
    np.testing.assert_allclose(values, 0, atol=1e-8)
