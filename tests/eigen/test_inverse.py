"""Shifted inverses: definiteness, constraints, near-singular matrices, repeated eigenvalues."""

import numpy as np
import pytest
import scipy.linalg as sla
import scipy.sparse as sp

from manifoldry.eigen import Lanczos, ShiftInvertLanczos, SpectralProblem
from manifoldry.eigen.inverse import NotDefiniteError, ShiftedInverse
from manifoldry.eigen.standard import orthonormal_basis


def path(n):
    degree = np.full(n, 2.0)
    degree[[0, -1]] = 1.0
    off = -np.ones(n - 1)
    return sp.diags_array([off, degree, off], offsets=[-1, 0, 1]).tocsr()


@pytest.mark.parametrize("kind", [sp.csr_array, np.asarray])
@pytest.mark.parametrize(("shift", "end"), [(0.01, "smallest"), (3.9, "largest")])
def test_a_shift_inside_the_spectrum_is_noticed(kind, shift, end):
    with pytest.raises(NotDefiniteError):
        ShiftedInverse(kind(path(50).toarray()), shift, end)


def test_an_unchecked_shift_inside_the_spectrum_is_found_in_the_iteration():
    A = path(300) - 1e-4 * sp.eye_array(300)  # one eigenvalue is below the given bounds
    problem = SpectralProblem(A, end="smallest", bounds=(0, 4))
    spectrum = ShiftInvertLanczos(skip_pivot_check_from=0).solve(
        problem, 2, np.random.default_rng(0)
    )
    expected = 2 - 2 * np.cos(np.pi * np.arange(2) / 300) - 1e-4
    np.testing.assert_allclose(spectrum.values, expected, atol=1e-10)


def test_our_factor_agrees_with_superlu():
    rng, grid = np.random.default_rng(0), path(40)
    A = sp.csr_array(sp.kronsum(grid, grid))
    X = rng.standard_normal((1600, 3))
    plain = ShiftedInverse(A, -0.1, "smallest").solve(X)
    ours = ShiftedInverse(A, -0.1, "smallest", cholesky_from=0).solve(X)
    np.testing.assert_allclose(ours, plain, atol=1e-12)


@pytest.mark.parametrize("cholesky_from", [0, 1000])
@pytest.mark.parametrize("repeated", ["every entry", "one on the diagonal"])
def test_entries_that_are_stored_twice(repeated, cholesky_from):
    n = 80
    A = path(n).tocoo()
    if repeated == "every entry":
        kept, again = np.ones(A.nnz, bool), np.ones(A.nnz, bool)
    else:  # and another one of the diagonal is not stored, so that the number of entries is right
        kept, again = (A.row != 7) | (A.col != 7), (A.row == 0) & (A.col == 0)
    stored = np.r_[np.flatnonzero(kept), np.flatnonzero(again)]
    stored = stored[np.argsort(A.row[stored], kind="stable")]
    starts = np.searchsorted(A.row[stored], np.arange(n + 1))
    M = sp.csr_array((A.data[stored], A.col[stored], starts), shape=(n, n))
    X = np.random.default_rng(0).standard_normal((n, 2))
    expected = np.linalg.solve(M.toarray() + 5 * np.eye(n), X)
    found = ShiftedInverse(M, -5.0, "smallest", cholesky_from=cholesky_from).solve(X)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_added_diagonal_counts_in_the_number_of_entries(monkeypatch):
    """A matrix with more entries than our indices can number is factorized by SuperLU."""
    A = sp.csr_array(path(60) - sp.diags_array(path(60).diagonal()))
    A.eliminate_zeros()
    factorized = []
    monkeypatch.setattr("manifoldry.eigen.inverse.SparseCholesky", factorized.append)
    for most, count in ((A.nnz + 59, 0), (A.nnz + 60, 1)):
        monkeypatch.setattr("manifoldry.eigen.inverse.MOST_ENTRIES", most)
        ShiftedInverse(A, -5.0, "smallest", cholesky_from=0)
        assert len(factorized) == count


@pytest.mark.parametrize("invariant", [True, False])
def test_constrained_inverse(invariant):
    n, rng = 40, np.random.default_rng(0)
    Q = orthonormal_basis(np.ones((n, 1)) if invariant else rng.standard_normal((n, 3)))
    M = path(n).toarray() + 0.1 * np.eye(n)
    Z = sla.null_space(Q.T)
    expected = Z @ np.linalg.inv(Z.T @ M @ Z) @ Z.T
    got = ShiftedInverse(path(n), -0.1, "smallest").constrained(Q) @ np.eye(n)
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("contained", "n_deflated"), [(True, 0), (True, 1), (False, 0), (False, 1)]
)
def test_constrained_inverse_of_a_nearly_singular_matrix(contained, n_deflated):
    # M is 1e-12 from being singular, and its null vector lies in range(Q) or not.
    n, rng = 60, np.random.default_rng(0)
    C = rng.standard_normal((n, 2))
    constant = np.full((n, 1), n**-0.5)
    Q = orthonormal_basis(C, beyond=constant if contained else None)
    X = rng.standard_normal((n, 5))
    X -= Q @ (Q.T @ X)
    Y = ShiftedInverse(path(n), -1e-12, "smallest").constrained(Q, n_deflated) @ X
    R = path(n) @ Y - X
    np.testing.assert_allclose(Q.T @ Y, 0, atol=1e-9)
    np.testing.assert_allclose(R - Q @ (Q.T @ R), 0, atol=1e-8)


@pytest.mark.parametrize("sizes", [(40, 50, 60), (100, 400, 900)])
def test_null_vectors_do_not_degrade_the_other_eigenvectors(sizes):
    # Undeflated null vectors have eigenvalues of the inverse of 1e12, the others about 1e3.
    L = sp.block_diag([path(m) for m in sizes])
    problem = SpectralProblem(L, end="smallest", deflate=np.ones(sum(sizes)), bounds=(0, 4))
    every = np.sort(np.concatenate([2 - 2 * np.cos(np.pi * np.arange(m) / m) for m in sizes]))
    for seed in range(5):
        spectrum = ShiftInvertLanczos().solve(problem, 8, np.random.default_rng(seed))
        np.testing.assert_allclose(spectrum.values, every[1:9], atol=1e-14)
        assert spectrum.worst_ratio < 1e-4


def test_an_unconverged_search_for_multiplicity_is_no_failure():
    # The other eigenvalues are so close that the search for a second eigenvector does not converge.
    n = 400
    A = 1e-3 * path(n) + sp.diags_array(np.r_[0.0, np.ones(n - 1)])
    problem = SpectralProblem(A, end="smallest", bounds=(0, 2))
    spectrum = ShiftInvertLanczos(max_products=40).solve(problem, 1, np.random.default_rng(0))
    assert spectrum.values[0] == pytest.approx(np.linalg.eigvalsh(A.toarray())[0], abs=1e-12)


def test_plain_lanczos_finds_eigenvalues_of_multiplicity_ten():
    # A Krylov space from one start vector contains one vector per eigenspace.
    L = sp.block_diag([path(60)] * 10)
    problem = SpectralProblem(L, end="smallest", bounds=(0, 4))
    for seed in range(3):
        spectrum = Lanczos().solve(problem, 12, np.random.default_rng(seed))
        second = 2 - 2 * np.cos(np.pi / 60)
        np.testing.assert_allclose(spectrum.values, [0.0] * 10 + [second] * 2, atol=1e-9)


def test_shift_of_an_operator_without_bounds():
    rng = np.random.default_rng(0)
    A = sp.diags_array(np.r_[rng.uniform(-1, 1, 298), -5.0, -4.999])
    spectrum = ShiftInvertLanczos().solve(SpectralProblem(A, end="smallest"), 2, rng)
    np.testing.assert_allclose(spectrum.values, [-5, -4.999], atol=1e-12)


def test_tiny_eigenvalues_take_few_solves(monkeypatch):
    # A shift of 1e-6 ‖A‖ would take two thousand.
    n, count = 2000, []
    L = path(n)
    solve = ShiftedInverse.solve
    monkeypatch.setattr(ShiftedInverse, "solve", lambda s, X: count.append(1) or solve(s, X))
    problem = SpectralProblem(L @ L, end="smallest", deflate=np.ones(n), bounds=(0, 16))
    spectrum = ShiftInvertLanczos().solve(problem, 3, np.random.default_rng(0))
    values = (2 - 2 * np.cos(np.pi * np.arange(1, 4) / n)) ** 2
    np.testing.assert_allclose(spectrum.values, values, rtol=1e-4)
    assert len(count) < 100


@pytest.mark.parametrize("invariant", [True, False])
def test_tiny_eigenvalues_under_constraints(invariant):
    n = 400
    L = path(n)
    C = np.linspace(-1, 1, n)[:, None] ** [1, 3] + (0 if invariant else 1)
    constraint = np.ones((n, 1)) if invariant else C
    problem = SpectralProblem(L @ L, end="smallest", constraint=constraint, bounds=(0, 16))
    spectrum = ShiftInvertLanczos().solve(problem, 2, np.random.default_rng(0))
    Z = sla.null_space(constraint.T)
    half = L @ Z  # the singular values of LZ are the square roots: twice the digits
    expected = np.sort(np.linalg.svd(half, compute_uv=False))[:2] ** 2
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-5)
    assert spectrum.accepted
