"""Shifted inverses: definiteness, constraints, near-singular matrices; copies Lanczos misses."""

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


@pytest.mark.parametrize("invariant", [True, False])
def test_constrained_inverse(invariant):
    n, rng = 40, np.random.default_rng(0)
    Q = orthonormal_basis(np.ones((n, 1)) if invariant else rng.standard_normal((n, 3)))
    M = path(n).toarray() + 0.1 * np.eye(n)
    Z = sla.null_space(Q.T)
    expected = Z @ np.linalg.inv(Z.T @ M @ Z) @ Z.T
    got = ShiftedInverse(path(n), -0.1, "smallest").constrained(Q) @ np.eye(n)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_constrained_inverse_of_a_nearly_singular_matrix():
    # The null vector lies inside range(Q), mixed with others, 1e-12 from being singular.
    n, rng = 60, np.random.default_rng(0)
    Q = orthonormal_basis(np.hstack([np.ones((n, 1)), rng.standard_normal((n, 2))]))
    Q = Q @ sla.qr(rng.standard_normal((3, 3)))[0]
    Z = sla.null_space(Q.T)
    expected = Z @ np.linalg.inv(Z.T @ path(n).toarray() @ Z) @ Z.T
    got = ShiftedInverse(path(n), -1e-12, "smallest").constrained(Q) @ np.eye(n)
    np.testing.assert_allclose(got, expected, atol=1e-8 * np.abs(expected).max())


def test_plain_lanczos_finds_all_copies_of_equal_components():
    # One start vector has one direction per eigenspace; ten equal parts have tenfold eigenvalues.
    L = sp.block_diag([path(60)] * 10)
    problem = SpectralProblem(L, end="smallest", bounds=(0, 4))
    for seed in range(3):
        spectrum = Lanczos().solve(problem, 12, np.random.default_rng(seed))
        second = 2 - 2 * np.cos(np.pi / 60)
        np.testing.assert_allclose(spectrum.values, [0.0] * 10 + [second] * 2, atol=1e-9)


def test_shift_of_an_operator_that_does_not_say_where_its_spectrum_is():
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
