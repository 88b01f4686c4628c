"""The sparse Cholesky factor against dense and other sparse solvers, and its ordering."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from manifoldry import LTSA, LaplacianEigenmaps
from manifoldry.datasets import make_swiss_roll
from manifoldry.eigen import (
    Auto,
    ShiftInvertLanczos,
    SpectralProblem,
    compiled_dissection,
    compiled_fronts,
)
from manifoldry.eigen.cholesky import NotDefiniteError, SparseCholesky
from manifoldry.eigen.compiled_dissection import dissect
from manifoldry.eigen.inverse import growth_dimension
from manifoldry.util.local_matrix import permuted


def neighbor_laplacian(X, k=6, shift=1e-3):
    from manifoldry import NeighborGraph

    W = NeighborGraph.build(X, k).matrix()
    W = sp.csr_array(W.maximum(W.T))
    return sp.csr_array(sp.diags_array(W.sum(axis=1) + shift) - W)


def star(n):
    """One vertex is connected with all others, so that nothing separates them but itself."""
    ones = np.ones(n - 1)
    hub = sp.coo_array((ones, (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n))
    return sp.csr_array(sp.diags_array(np.full(n, n + 1.0)) - hub - hub.T)


def path(n):
    return sp.csr_array(sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(n, n)))


def without_compilation(monkeypatch, module):
    for name, function in list(vars(module).items()):
        if hasattr(function, "py_func"):
            monkeypatch.setattr(module, name, function.py_func)


RNG = np.random.default_rng(0)
APART = np.vstack([RNG.random((300, 2)), RNG.random((400, 2)) + 9])
MATRICES = {
    "surface": neighbor_laplacian(RNG.random((1500, 2))),
    "solid": neighbor_laplacian(RNG.random((800, 3))),
    "two components": neighbor_laplacian(APART),
    "path": path(300),
    "star": star(2000),
    "diagonal": sp.csr_array(sp.diags_array(np.arange(1.0, 60.0))),
    "full": sp.csr_array(np.eye(80) * 81 - np.ones((80, 80))),
    "one row": sp.csr_array([[4.0]]),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_solves(name, columns):
    M = MATRICES[name]
    X = np.random.default_rng(1).standard_normal((M.shape[0], *columns))
    expected = spsolve(M.tocsc(), X).reshape(X.shape)
    Y = SparseCholesky(M).solve(X)
    np.testing.assert_allclose(Y, expected, atol=1e-12 * np.abs(expected).max())


def test_results_do_not_depend_on_the_options_that_only_affect_speed():
    M, x = MATRICES["surface"], np.ones(1500)
    expected = SparseCholesky(M).solve(x)
    for options in ({"leaf": 1}, {"block": 5}, {"leaf": 2000, "block": 7}, {"levels": 50}):
        np.testing.assert_allclose(SparseCholesky(M, **options).solve(x), expected, rtol=1e-11)
    assert (SparseCholesky(M).solve(x) == expected).all()


def test_an_indefinite_matrix_is_rejected():
    M = MATRICES["surface"] - 0.1 * sp.eye_array(1500)
    with pytest.raises(NotDefiniteError, match="not positive"):
        SparseCholesky(M)


def test_a_hub_does_not_fill_the_factor():
    assert SparseCholesky(MATRICES["star"]).size < 3 * 2000


def test_the_separators_separate():
    A = MATRICES["surface"]
    A = sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)))
    order, starts, lows = dissect(A.indptr, A.indices, 0, 24, 0.15, 2)
    np.testing.assert_array_equal(np.sort(order), np.arange(1500))
    assert starts[0] == 0
    below = permuted(A, order)[: starts[-1]][:, : starts[-1]]  # without the first separator
    _, labels = connected_components(below, directed=False)
    parts = np.bincount(labels)
    assert len(parts) > 1
    assert parts.max() < 0.7 * 1500
    # A line across 1500 points in a square has about 39, and a set that cuts all edges few more.
    assert 1500 - starts[-1] < 60
    assert (lows <= starts).all()


def test_many_components_are_split_in_one_pass(monkeypatch):
    """One after the other they would take a number of steps quadratic in their number."""
    steps = []

    def copy_positions(source, target, lo, hi):
        steps.append(hi - lo)
        target[lo:hi] = source[lo:hi]

    without_compilation(monkeypatch, compiled_dissection)
    monkeypatch.setattr(compiled_dissection, "copy_positions", copy_positions)
    A = MATRICES["diagonal"]
    order, starts, _ = compiled_dissection.dissect(A.indptr, A.indices, 0, 24, 0.15, 2)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(order)))
    np.testing.assert_array_equal(starts, np.arange(len(order)))  # none is connected to another
    assert sum(steps) <= 3 * len(order)


def test_the_factor_is_not_much_larger_than_that_of_minimum_degree():
    M = neighbor_laplacian(np.random.default_rng(0).random((6000, 2)), k=10)
    options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    lu = sp.linalg.splu(M.tocsc(), permc_spec="MMD_AT_PLUS_A", **options)
    assert SparseCholesky(M).size < 2 * lu.L.nnz


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_growth_of_balls_has_the_dimension_of_the_points(dimension):
    A = neighbor_laplacian(np.random.default_rng(0).random((20_000, dimension)), k=10)
    assert abs(growth_dimension(A) - dimension) < 0.45


@pytest.mark.parametrize("method", [LaplacianEigenmaps, LTSA])
def test_coordinates_agree_with_a_dense_solver(method):
    X = make_swiss_roll(900, random_state=0).X
    exact = method(2, n_neighbors=12, eigen_solver="dense").fit(X)
    fast = method(2, n_neighbors=12, eigen_solver=ShiftInvertLanczos(cholesky_from=0)).fit(X)
    np.testing.assert_allclose(fast.embedding_, exact.embedding_, atol=1e-7)


def surface_problem():
    A = neighbor_laplacian(np.random.default_rng(0).random((3000, 2)), k=10, shift=0.0)
    return SpectralProblem(A, "smallest", deflate=np.ones(3000), bounds=(0.0, 2 * A.max()))


def test_surfaces_are_factorized_without_probe_and_estimate(monkeypatch):
    expected = Auto().solve(surface_problem(), 2, np.random.default_rng(0))
    monkeypatch.setattr("manifoldry.eigen.auto.estimated_fill", None)
    spectrum = Auto(surface_from=2000).solve(surface_problem(), 2, np.random.default_rng(0))
    assert spectrum.solver == "ShiftInvertLanczos"
    assert "balls grow as on a surface" in spectrum.reason
    assert "before it" not in spectrum.reason
    np.testing.assert_allclose(spectrum.vectors, expected.vectors, atol=1e-7)


def test_without_memory_for_the_factor_the_next_solver_is_tried(monkeypatch, free_memory):
    always_ours = property(lambda _: ShiftInvertLanczos(cholesky_from=0))
    monkeypatch.setattr(Auto, "_shift_invert", always_ours)
    problem = surface_problem()
    free_memory(10**5)
    spectrum = Auto(surface_from=2000).solve(problem, 1, np.random.default_rng(0))
    assert spectrum.solver != "ShiftInvertLanczos"
    assert "the sparse factor of a matrix of order 3000 needs about" in spectrum.reason


def bordered_path(n, border):
    """A path of n rows, and rows with entries everywhere."""
    total = n + border
    M = np.diag(np.full(total, 2.0 * total)) - 1
    M[:n, :n] = path(n).toarray() + total * np.eye(n)
    return sp.csr_array(M)


@pytest.mark.parametrize(
    ("M", "options"),
    [(bordered_path(24, 48), {"dense_row": 8}), (MATRICES["full"], {"block": 20})],
    ids=["products of rows below", "products of columns before"],
)
def test_the_planned_memory_is_that_of_the_factorization(monkeypatch, M, options):
    planned = []

    def plan(n_bytes, *_):
        planned.append(n_bytes)
        tracemalloc.start()

    monkeypatch.setattr("manifoldry.eigen.cholesky.plan_memory", plan)
    without_compilation(monkeypatch, compiled_fronts)  # arrays of compiled functions are not traced
    try:
        SparseCholesky(M, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    small_arrays = 4096
    assert peak - small_arrays <= planned[0] <= 1.5 * peak
