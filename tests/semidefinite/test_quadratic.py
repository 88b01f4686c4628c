"""Quadratic problems over semidefinite matrices: optimality, an independent solver, odd cases."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from manifoldry.optimize.interior_point import congruence, smat, svec, svec_outer
from manifoldry.optimize.semidefinite_quadratic import (
    FaceRefinement,
    FixedRank,
    SemidefiniteQuadratic,
)

KINDS = ("well", "ill", "rank-deficient", "graded")


def problem(kind, m, trace_one, seed=0):
    """H and c of a least-squares problem."""
    rng = np.random.default_rng(seed)
    k = m * (m + 1) // 2
    A = rng.standard_normal((k + 5, k))
    if kind == "ill":
        A *= np.logspace(0, -5, k)
    if kind == "rank-deficient":
        A = A[: max(k // 2, 1)]
    if kind == "graded":
        A = svec_outer(rng.standard_normal((5 * k, m)) * np.logspace(0, -2, m))
    c = np.zeros(k) if trace_one else A.T @ rng.standard_normal(len(A))
    return A.T @ A, c


def random_feasible(m, trace_one, rng):
    R = rng.standard_normal((m, rng.integers(1, m + 1)))
    P = R @ R.T
    return P / np.trace(P) if trace_one else P * rng.uniform(0, 2)


class TestVectors:
    def test_inner_products(self):
        rng = np.random.default_rng(0)
        A, B = (M + M.T for M in rng.standard_normal((2, 5, 5)))
        assert svec(A) @ svec(B) == pytest.approx((A * B).sum())
        np.testing.assert_allclose(smat(svec(A)), A)

    def test_squares_and_congruence(self):
        rng = np.random.default_rng(1)
        Y, G = rng.standard_normal((7, 4)), rng.standard_normal((4, 4))
        P = Y.T @ Y
        np.testing.assert_allclose(svec_outer(Y) @ svec(P), np.einsum("na,ab,nb->n", Y, P, Y))
        np.testing.assert_allclose(congruence(G) @ svec(P), svec(G @ P @ G.T))


@pytest.mark.parametrize("trace_one", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 3, 6, 12])
class TestOptimality:
    def test_certified(self, kind, m, trace_one):
        solution = SemidefiniteQuadratic(*problem(kind, m, trace_one), trace_one).solve()
        assert solution.converged
        assert solution.certificate <= 1e-9
        assert np.linalg.eigvalsh(solution.P)[0] >= -1e-12 * np.abs(solution.P).max()
        assert not trace_one or np.trace(solution.P) == pytest.approx(1, abs=1e-12)

    def test_conditions_written_out(self, kind, m, trace_one):
        """Γ − ⟨Γ, P⟩I ⪰ 0 at trace one; else Γ ⪰ 0 and ⟨Γ, P⟩ = 0."""
        H, c = problem(kind, m, trace_one)
        P = SemidefiniteQuadratic(H, c, trace_one).solve().P
        gradient = smat(H @ svec(P) - c)
        along = (gradient * P).sum()
        size = max(np.abs(H @ svec(P)).max(), np.abs(c).max(), 1e-5 * np.abs(H).max())
        lowest = np.linalg.eigvalsh(gradient)[0]
        assert lowest - (along if trace_one else 0.0) >= -1e-8 * size
        assert trace_one or abs(along) <= 1e-8 * size * max(np.trace(P), 1e-3)

    def test_no_feasible_point_is_lower(self, kind, m, trace_one):
        H, c = problem(kind, m, trace_one)
        solution = SemidefiniteQuadratic(H, c, trace_one).solve()
        rng = np.random.default_rng(2)
        for _ in range(50):
            p = svec(random_feasible(m, trace_one, rng))
            near = 0.99 * svec(solution.P) + 0.01 * p
            for other in (p, near):
                value = other @ H @ other / 2 - c @ other
                assert value >= solution.value - 1e-9 * max(abs(solution.value), abs(value))


@pytest.mark.parametrize("trace_one", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [3, 8])
def test_against_a_conic_solver(kind, m, trace_one):
    cvxpy = pytest.importorskip("cvxpy", reason="the oracle is cvxpy with Clarabel")
    H, c = problem(kind, m, trace_one)
    root = np.linalg.cholesky(H + 1e-13 * np.trace(H) * np.eye(len(H))).T
    P = cvxpy.Variable((m, m), PSD=True)
    a, b = np.triu_indices(m)
    entries = [P[i, j] * (1.0 if i == j else np.sqrt(2)) for i, j in zip(a, b, strict=True)]
    p = cvxpy.hstack(entries)
    goal = cvxpy.sum_squares(root @ p) / 2 - c @ p
    constraints = [cvxpy.trace(P) == 1] if trace_one else []
    cvxpy.Problem(cvxpy.Minimize(goal), constraints).solve(solver="CLARABEL")
    q = svec(P.value)
    value = q @ H @ q / 2 - c @ q
    found = SemidefiniteQuadratic(H, c, trace_one).solve()
    scale = max(abs(value), 1e-4 * np.abs(H).max())
    assert found.value <= value + 1e-6 * scale
    assert found.value == pytest.approx(value, abs=2e-5 * scale)
    if kind == "well":
        np.testing.assert_allclose(found.P, P.value, atol=1e-3 * np.abs(P.value).max())


class TestOddCases:
    def test_projection_onto_the_cone_and_the_spectrahedron(self):
        """With H = I the optimum is the nearest matrix, which has a closed form."""
        rng = np.random.default_rng(3)
        A = rng.standard_normal((5, 5))
        A = A + A.T
        values, vectors = np.linalg.eigh(A)
        nearest = (vectors * np.maximum(values, 0)) @ vectors.T
        found = SemidefiniteQuadratic(np.eye(15), svec(A)).solve()
        np.testing.assert_allclose(found.P, nearest, atol=1e-9)
        falling, counts = values[::-1], np.arange(1, 6)
        excess = (np.cumsum(falling) - 1) / counts
        shift = excess[np.flatnonzero(falling > excess)[-1]]
        nearest = (vectors * np.maximum(values - shift, 0)) @ vectors.T
        found = SemidefiniteQuadratic(np.eye(15), svec(A), trace_one=True).solve()
        np.testing.assert_allclose(found.P, nearest, atol=1e-9)

    def test_nothing_to_minimize(self):
        zero = np.zeros((6, 6))
        np.testing.assert_allclose(
            SemidefiniteQuadratic(zero, trace_one=True).solve().P, np.eye(3) / 3
        )
        solution = SemidefiniteQuadratic(zero).solve()
        assert solution.converged
        assert not solution.P.any()

    def test_linear_alone(self):
        """With H = 0 and trace one the optimum is an eigenvector of c."""
        rng = np.random.default_rng(4)
        C = rng.standard_normal((4, 4))
        C = C + C.T
        solution = SemidefiniteQuadratic(np.zeros((10, 10)), svec(C), trace_one=True).solve()
        v = np.linalg.eigh(C)[1][:, -1]
        assert solution.converged
        np.testing.assert_allclose(solution.P, np.outer(v, v), atol=1e-7)

    @pytest.mark.parametrize("m", [2, 4, 7])
    def test_unbounded(self, m):
        """Along a null vector of H that c rewards there is no optimum, which is reported."""
        U = svec_outer(np.random.default_rng(m).standard_normal((m - 1, m)))
        assert not SemidefiniteQuadratic(U.T @ U, svec(np.eye(m))).solve().converged
        assert SemidefiniteQuadratic(U.T @ U, U.sum(axis=0)).solve().converged

    def test_many_optima_give_the_middle(self):
        """Directions that cost nothing get equal weight, whatever their number."""
        H = np.diag([1.0, 0, 0, 0, 0, 0])  # only the first diagonal entry of three costs
        P = SemidefiniteQuadratic(H, trace_one=True).solve().P
        np.testing.assert_allclose(P, np.diag([0, 0.5, 0.5]), atol=1e-4)

    @pytest.mark.parametrize("factor", [1e-150, 1e-20, 1e20, 1e150])
    def test_units(self, factor):
        H, _ = problem("well", 4, True)
        plain = SemidefiniteQuadratic(H, trace_one=True).solve()
        scaled = SemidefiniteQuadratic(H * factor, trace_one=True).solve()
        np.testing.assert_allclose(scaled.P, plain.P, atol=1e-10)
        assert scaled.value == pytest.approx(plain.value * factor)
        H, c = problem("well", 4, False)
        plain = SemidefiniteQuadratic(H, c).solve()
        scaled = SemidefiniteQuadratic(H, c * factor).solve()
        np.testing.assert_allclose(scaled.P / factor, plain.P, atol=1e-9)
        assert scaled.converged

    @pytest.mark.parametrize("m", [1, 3])
    def test_optimum_at_zero(self, m):
        k = m * (m + 1) // 2
        solution = SemidefiniteQuadratic(np.eye(k), -svec(np.eye(m))).solve()
        assert solution.converged
        assert np.abs(solution.P).max() <= 1e-12

    def test_basis_does_not_matter(self):
        """A congruence of the variable leaves the objective at the optimum what it is."""
        H, c = problem("well", 4, False)
        G = np.random.default_rng(5).standard_normal((4, 4))
        K = congruence(G)
        plain = SemidefiniteQuadratic(H, c).solve()
        other = SemidefiniteQuadratic(K.T @ H @ K, K.T @ c).solve()
        assert other.value == pytest.approx(plain.value, rel=1e-9)
        np.testing.assert_allclose(G @ other.P @ G.T, plain.P, atol=1e-7)

    @pytest.mark.parametrize(
        ("H", "c", "message"),
        [
            (np.eye(4), None, r"must be of order m\(m \+ 1\)/2"),
            (np.eye(3), np.ones(2), r"shape \(3, 3\) and c of shape \(2,\)"),
            (np.ones((3, 2)), None, "must be of order"),
            (np.full((3, 3), np.nan), None, "must be finite"),
            (np.empty((0, 0)), None, "must be of order"),
        ],
    )
    def test_refused(self, H, c, message):
        with pytest.raises(ValueError, match=message):
            SemidefiniteQuadratic(H, c)


class TestFixedRank:
    def test_jacobian(self):
        H, _ = problem("well", 4, True)
        face = FaceRefinement(H, np.zeros(10), trace_one=True)
        R = np.random.default_rng(6).standard_normal((4, 2))
        _, multiplier = face._residual(R)

        def error(x):
            R, m = x[:8].reshape(4, 2), x[8]
            gradient = smat(H @ svec(R @ R.T)) - m * np.eye(4)
            return np.append((gradient @ R).ravel(), (R * R).sum() - 1)

        expected = approx_fprime(np.append(R, multiplier), error, 1e-7)
        np.testing.assert_allclose(face._jacobian(R, multiplier), expected, atol=1e-4)

    def test_between_its_start_and_the_bound(self):
        H, _ = problem("well", 6, True)
        solution = SemidefiniteQuadratic(2 * H, trace_one=True).solve()
        values, vectors = np.linalg.eigh(solution.P)
        start = vectors[:, -2:] * np.sqrt(values[-2:])
        R = FixedRank(H).minimize(start)
        before, after = (svec(A @ A.T) / np.square(A).sum() for A in (start, R))
        assert np.square(R).sum() == pytest.approx(1)
        assert solution.value < after @ H @ after < before @ H @ before

    def test_stationary(self):
        H, _ = problem("well", 6, True)
        R = FixedRank(H).minimize(np.eye(6)[:, :2])
        gradient = smat(H @ svec(R @ R.T))
        multiplier = (gradient @ R * R).sum()
        np.testing.assert_allclose(gradient @ R, multiplier * R, atol=1e-10 * np.abs(H).max())
