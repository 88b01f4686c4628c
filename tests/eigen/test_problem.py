"""SpectralProblem: validation, the standard form, coordinates."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from manifoldry.eigen import Dense, Gram, Lanczos, ShiftInvertLanczos, SpectralProblem
from manifoldry.eigen.standard import orthonormal_basis


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operator": np.ones((3, 2))}, "square"),
        ({"operator": np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])}, "not symmetric.*1.0e\\+00"),
        ({"operator": sp.csr_array(np.triu(np.ones((3, 3))))}, "not symmetric"),
        ({"operator": np.diag([1.0, np.nan, 1.0])}, "NaN or infinite"),
        ({"operator": sp.csr_array(np.diag([1.0, -np.inf, 1.0]))}, "NaN or infinite"),
        ({"operator": Gram(np.array([[np.inf], [0], [0]]))}, "NaN or infinite"),
        ({"operator": 1e150 * np.eye(3)}, "1.0e\\+150.*rescale"),
        ({"operator": 1e-150 * np.eye(3)}, "1.0e-150.*rescale"),
        ({"end": "both"}, "end='both' must be one of 'smallest', 'largest'"),
        ({"scale": "eig"}, "scale='eig'"),
        ({"mass": np.ones(4)}, r"\(4,\).*\(3,\)"),
        ({"mass": np.array([1.0, 0.0, 1.0])}, r"mass\[1\]=0.0"),
        ({"mass": np.array([1.0, np.nan, 1.0])}, r"mass\[1\]=nan"),
        ({"deflate": np.ones(2)}, "deflate.*n=3 rows"),
        ({"constraint": np.full((3, 1), np.nan)}, "constraint.*NaN"),
        ({"bounds": (1, 0)}, "low <= high"),
    ],
)
def test_invalid_arguments(change, message):
    given = {"operator": np.eye(3), "end": "smallest", **change}
    with pytest.raises(ValueError, match=message):
        SpectralProblem(**given)


def test_symmetry_is_checked_at_any_order():
    """Products with a dense matrix read one triangle, so that residuals would not show it."""
    A = np.zeros((4100, 4100))
    A[0, -1] = 3.0
    with pytest.raises(ValueError, match=r"not symmetric: .* up to 3\.0"):
        SpectralProblem(A, "largest")


def test_a_single_point_may_have_any_weight():
    """It needs no eigenvectors, so that no square underflows."""
    problem = SpectralProblem(1e-150 * np.eye(1), "smallest", deflate=np.ones(1))
    assert problem.n == 1


@pytest.mark.parametrize("kind", ["dense", "sparse", "operator", "gram"])
def test_standard_form_keeps_the_representation(kind):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((6, 3))
    mass = rng.uniform(1, 4, 6)
    dense = F @ F.T
    given = {
        "dense": dense,
        "sparse": sp.coo_array(dense),
        "operator": aslinearoperator(dense),
        "gram": Gram(F),
    }[kind]
    standard = SpectralProblem(given, end="smallest", mass=mass).standard()
    expected = dense / np.sqrt(np.outer(mass, mass))
    np.testing.assert_allclose(standard.toarray(), expected, atol=1e-14)
    np.testing.assert_allclose(standard.apply(np.eye(6)), expected, atol=1e-14)
    np.testing.assert_allclose(standard.apply(np.ones(6)), expected.sum(axis=1), atol=1e-13)
    assert standard.sparse == (kind == "sparse")
    assert isinstance(standard.A, Gram) == (kind == "gram")
    if kind in ("dense", "sparse"):
        A = standard.toarray()
        assert (A == A.T).all()


def test_scaled_and_projected_factors_agree_for_all_kinds():
    rng = np.random.default_rng(0)
    F, s = rng.standard_normal((8, 3)), rng.uniform(1, 2, 8)
    Q = orthonormal_basis(rng.standard_normal((8, 2)))
    P = np.eye(8) - Q @ Q.T
    expected = P @ np.diag(s) @ F
    for given in (F, sp.csr_array(F), aslinearoperator(F)):
        gram = Gram(given).scaled(s).projected(Q)
        np.testing.assert_allclose(gram.toarray(), expected @ expected.T, atol=1e-13)
        np.testing.assert_allclose(gram.small_matrix(), expected.T @ expected, atol=1e-13)
        np.testing.assert_allclose(gram @ np.eye(8), expected @ expected.T, atol=1e-13)


def test_excluded_subspace_is_weighted_and_of_full_rank():
    mass = np.array([1.0, 4.0, 9.0, 16.0])
    C = np.array([[1.0, 2.0, 0.0], [1, 2, 0], [1, 2, 0], [1, 2, 0]])
    Q = SpectralProblem(np.eye(4), end="smallest", mass=mass, deflate=C).standard().Q
    assert Q.shape == (4, 1)
    np.testing.assert_allclose(np.abs(Q[:, 0]), np.sqrt(mass / mass.sum()))


def test_basis_keeps_columns_of_any_length():
    C = np.array([[1e-30, 1.0], [1e-30, -1.0]])
    assert orthonormal_basis(C).shape == (2, 2)
    assert orthonormal_basis(np.zeros((4, 2))).shape == (4, 0)


@pytest.mark.parametrize("n", [5, 400])
def test_norm_is_of_the_right_magnitude(n):
    A = np.diag(np.linspace(-3, 1, n))
    norm = SpectralProblem(A, end="largest").standard().norm
    assert 0.8 * 3 <= norm <= 3 * (1 + 1e-12)


def test_coordinates():
    A = np.diag([4.0, 1.0, -1.0])
    scaled = {}
    for scale in ("unit", "sqrt_n", "sqrt_eigenvalue"):
        problem = SpectralProblem(A, end="largest", scale=scale)
        scaled[scale] = problem.coordinates(Dense().solve(problem, 3, np.random.default_rng(0)))
    np.testing.assert_allclose(scaled["unit"], np.eye(3), atol=1e-14)
    np.testing.assert_allclose(scaled["sqrt_n"], np.sqrt(3) * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(scaled["sqrt_eigenvalue"], np.diag([2.0, 1.0, 0.0]), atol=1e-14)


def test_restriction_to_a_component():
    A = sp.block_diag([np.array([[1.0, -1], [-1, 1]]), np.diag([5.0, 6.0, 7.0])])
    mass = np.arange(1.0, 6.0)
    problem = SpectralProblem(A, end="largest", mass=mass, deflate=np.ones(5), bounds=(0, 9))
    part = problem.restrict(np.array([0, 1]))
    np.testing.assert_array_equal(part.operator.toarray(), [[1, -1], [-1, 1]])
    np.testing.assert_array_equal(part.mass, [1, 2])
    assert part.deflate.shape == (2, 1)
    assert part.constraint is None
    assert (part.end, part.bounds) == ("largest", (0, 9))


@pytest.mark.parametrize("mass", [False, True])
@pytest.mark.parametrize("times", [1.0, -3.0, 0.0])
def test_constraints_in_the_deflated_subspace_have_no_effect(mass, times):
    """After projection they consist of rounding errors only and must be dropped."""
    rng = np.random.default_rng(0)
    B = rng.uniform(1, 2, 60) if mass else None
    ones, other = np.ones(60), rng.normal(size=60)
    problem = SpectralProblem(np.eye(60), "smallest", mass=B, deflate=ones, constraint=times * ones)
    assert problem.standard().dimension == 59
    both = np.column_stack([times * ones, other])
    problem = SpectralProblem(np.eye(60), "smallest", mass=B, deflate=ones, constraint=both)
    Q = problem.standard().Q
    assert Q.shape[1] == 2
    np.testing.assert_allclose(Q.T @ Q, np.eye(2), atol=1e-12)
    root = np.ones(60) if B is None else np.sqrt(B)
    for column in (root, root * other):
        np.testing.assert_allclose(Q @ (Q.T @ column), column, atol=1e-10)


def test_a_factor_orthogonal_to_the_constraints_is_used_as_it_is():
    """No copy of centered data; any others are projected."""
    F = np.random.default_rng(0).normal(size=(500, 3)) + 5
    Q = np.full((500, 1), 500**-0.5)
    centered = Gram(F - F.mean(axis=0))
    assert centered.projected(Q) is centered
    assert np.allclose(Gram(F).projected(Q).factor, centered.factor, atol=1e-13)


def path_problem(n, constraint):
    """The path of n points, without functions close to the columns of `constraint`."""
    L = sp.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    mass = np.linspace(1, 2, n)
    return SpectralProblem(L, end="smallest", mass=mass, bounds=(0, 4), constraint=constraint)


@pytest.mark.parametrize("solver", [Lanczos(), ShiftInvertLanczos(), Dense()])
def test_constraints_in_single_precision(solver):
    C = np.linalg.qr(np.random.default_rng(1).standard_normal((300, 70)))[0]
    double, single = (path_problem(300, C.astype(t)) for t in (np.float64, np.float32))
    assert single.constraint.dtype == np.float32
    expected = solver.solve(double, 1, np.random.default_rng(0))
    found = solver.solve(single, 1, np.random.default_rng(0))
    assert found.accepted
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-5)
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-4)
    assert np.abs(C.T @ (double.mass[:, None] * found.vectors)).max() < 1e-5
