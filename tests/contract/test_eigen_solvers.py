"""Contract of all eigensolvers, checked against closed forms and dense reference solutions."""

import warnings

import numpy as np
import pytest
import scipy.linalg as sla
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import manifoldry.eigen.on_device
from manifoldry.device import using_device
from manifoldry.eigen import (
    Auto,
    ChebyshevSubspace,
    Dense,
    Gram,
    Lanczos,
    Lobpcg,
    Randomized,
    ShiftInvertLanczos,
    SolverFailed,
    SpectralProblem,
)
from manifoldry.exceptions import ConvergenceWarning

# Add a line here for each new solver.
SOLVERS = [
    Dense(),
    Lanczos(),
    ShiftInvertLanczos(),
    Lobpcg(),
    Randomized(),
    ChebyshevSubspace(),
    Auto(),
    Auto(dense_up_to=0),  # the iterative chain, on problems small enough to have an oracle
]
ITERATIVE = [s for s in SOLVERS if s not in (Dense(), Auto())]


def _name(solver):
    return solver.name + ("Iterative" if solver == Auto(dense_up_to=0) else "")


every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=_name)
both_ends = pytest.mark.parametrize("end", ["smallest", "largest"])


@pytest.fixture(params=["cpu", "emulated", "cuda"], autouse=True)
def device(request, monkeypatch):
    """Everything runs on the CPU and on devices, for problems of any size."""
    if request.param == "cpu":
        yield None
        return
    monkeypatch.setattr(manifoldry.eigen.on_device, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(ShiftInvertLanczos, "_why_on_host", lambda *_: None)
    monkeypatch.setattr(Lobpcg, "_why_on_host", lambda *_: None)
    with using_device(request.getfixturevalue(request.param)) as device:
        yield device


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def path(n):
    """Laplacian of the path: eigenvalues 2 − 2cos(πj/n), vectors cos(πj(i + 1/2)/n)."""
    degree = np.full(n, 2.0)
    degree[[0, -1]] = 1.0
    off = -np.ones(n - 1)
    return sp.diags_array([off, degree, off], offsets=[-1, 0, 1]).tocsr()


def path_values(n):
    return 2 - 2 * np.cos(np.pi * np.arange(n) / n)


def path_vectors(n, orders):
    V = np.cos(np.pi * np.outer(np.arange(n) + 0.5, orders) / n)
    return V / np.linalg.norm(V, axis=0)


def ring(n):
    i = np.arange(n)
    W = sp.coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n))
    return (2 * sp.eye_array(n) - W - W.T).tocsr()


def grid(a, b):
    return (sp.kron(path(a), sp.eye_array(b)) + sp.kron(sp.eye_array(a), path(b))).tocsr()


def indefinite(n, rng):
    M = rng.standard_normal((n, n))
    return M + M.T


def oracle(problem):
    """All eigenpairs by LAPACK's generalized solver on an explicit basis of the constraints."""
    A = problem.operator
    A = A.toarray() if hasattr(A, "toarray") else A @ np.eye(problem.n)
    B = np.eye(problem.n) if problem.mass is None else np.diag(problem.mass)
    blocks = [C for C in (problem.deflate, problem.constraint) if C is not None]
    Z = sla.null_space((B @ np.hstack(blocks)).T) if blocks else np.eye(problem.n)
    values, inner = sla.eigh(Z.T @ A @ Z, Z.T @ B @ Z)
    vectors = Z @ inner
    return (values, vectors) if problem.end == "smallest" else (values[::-1], vectors[:, ::-1])


def assert_matches_oracle(problem, spectrum, k, atol=1e-9):
    values, vectors = oracle(problem)
    B = np.ones(problem.n) if problem.mass is None else problem.mass
    scale = np.abs(values).max()
    np.testing.assert_allclose(spectrum.values, values[:k], rtol=0, atol=atol * scale)
    overlap = vectors[:, :k].T @ (B[:, None] * spectrum.vectors)
    np.testing.assert_allclose(np.abs(overlap), np.eye(k), atol=1e-4)
    gram = spectrum.vectors.T @ (B[:, None] * spectrum.vectors)
    np.testing.assert_allclose(gram, np.eye(k), atol=1e-10)
    if k < len(values):
        assert spectrum.next_value == pytest.approx(values[k], abs=1e-6 * scale)
    else:
        assert np.isnan(spectrum.next_value)
    assert spectrum.accepted


# Closed forms


@every_solver
def test_path_with_the_constant_deflated(solver, rng):
    n, k = 130, 3
    problem = SpectralProblem(path(n), end="smallest", deflate=np.ones(n), bounds=(0, 4))
    spectrum = solver.solve(problem, k, rng)
    np.testing.assert_allclose(spectrum.values, path_values(n)[1:4], atol=1e-8)
    expected = path_vectors(n, [1, 2, 3])
    np.testing.assert_allclose(np.abs(expected.T @ spectrum.vectors), np.eye(k), atol=1e-4)
    assert spectrum.accepted
    assert spectrum.next_value == pytest.approx(path_values(n)[4], abs=1e-6)


@every_solver
def test_grid_without_ties(solver, rng):
    a, b, k = 17, 12, 5
    problem = SpectralProblem(grid(a, b), end="smallest", bounds=(0, 8))
    spectrum = solver.solve(problem, k, rng)
    sums = np.add.outer(path_values(a), path_values(b))
    order = np.argsort(sums, axis=None)[:k]
    np.testing.assert_allclose(spectrum.values, sums.ravel()[order], atol=1e-8)
    expected = np.kron(path_vectors(a, np.arange(a)), path_vectors(b, np.arange(b)))[:, order]
    np.testing.assert_allclose(np.abs(expected.T @ spectrum.vectors), np.eye(k), atol=1e-4)


@every_solver
@both_ends
def test_square_grid_has_ties_and_only_their_subspace_is_claimed(solver, end, rng):
    a, k = 15, 3
    problem = SpectralProblem(grid(a, a), end=end, bounds=(0, 8))
    spectrum = solver.solve(problem, k, rng)
    pairs = [(0, 0), (0, 1), (1, 0)] if end == "smallest" else [(-1, -1), (-1, -2), (-2, -1)]
    V = path_vectors(a, np.arange(a))
    expected = np.column_stack([np.kron(V[:, i], V[:, j]) for i, j in pairs])
    projector = spectrum.vectors @ spectrum.vectors.T
    np.testing.assert_allclose(projector, expected @ expected.T, atol=1e-4)
    assert [list(c) for c in spectrum.clusters] == [[0], [1, 2]]
    assert spectrum.accepted
    assert not spectrum.splits_cluster


@every_solver
def test_ring_cut_inside_a_pair(solver, rng):
    n = 120
    problem = SpectralProblem(ring(n), end="smallest", deflate=np.ones(n), bounds=(0, 4))
    spectrum = solver.solve(problem, 3, rng)
    pairs = 2 - 2 * np.cos(2 * np.pi * np.array([1, 1, 2, 2]) / n)
    np.testing.assert_allclose(spectrum.values, pairs[:3], atol=1e-8)
    assert spectrum.next_value == pytest.approx(pairs[3], abs=1e-8)
    assert spectrum.splits_cluster
    assert spectrum.accepted
    angle = 2 * np.pi * np.arange(n) / n
    first = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(2 / n)
    got = spectrum.vectors[:, :2]
    np.testing.assert_allclose(got @ got.T, first @ first.T, atol=1e-4)
    # The third vector lies in the second eigenspace, in an arbitrary direction.
    second = np.column_stack([np.cos(2 * angle), np.sin(2 * angle)]) * np.sqrt(2 / n)
    assert np.linalg.norm(second.T @ spectrum.vectors[:, 2]) == pytest.approx(1, abs=1e-6)


@every_solver
def test_disconnected_graph_has_one_null_vector_per_component(solver, rng):
    L = sp.block_diag([path(40), path(50), path(60)]).tocsr()
    problem = SpectralProblem(L, end="smallest", deflate=np.ones(150), bounds=(0, 4))
    spectrum = solver.solve(problem, 3, rng)
    third = 2 - 2 * np.cos(np.pi / 60)
    np.testing.assert_allclose(spectrum.values, [0, 0, third], atol=1e-8)
    np.testing.assert_allclose(spectrum.vectors.sum(axis=0), 0, atol=1e-8)
    for start, stop in [(0, 40), (40, 90), (90, 150)]:
        np.testing.assert_allclose(np.ptp(spectrum.vectors[start:stop, :2], axis=0), 0, atol=1e-6)


# Masses and constraints


@every_solver
def test_degree_mass_gives_the_random_walk_laplacian(solver, rng):
    # The path with degrees as mass: eigenvalues 1 − cos(πj/(n − 1)), vectors cos(πji/(n − 1)).
    n, k = 150, 4
    L = path(n)
    problem = SpectralProblem(
        L, end="smallest", mass=L.diagonal(), deflate=np.ones(n), bounds=(0, 2)
    )
    spectrum = solver.solve(problem, k, rng)
    j = np.arange(1, k + 1)
    np.testing.assert_allclose(spectrum.values, 1 - np.cos(np.pi * j / (n - 1)), atol=1e-8)
    expected = np.cos(np.pi * np.outer(np.arange(n), j) / (n - 1))
    expected /= np.sqrt(L.diagonal() @ expected**2)
    np.testing.assert_allclose(spectrum.vectors, expected, atol=1e-4)


@every_solver
@both_ends
def test_random_mass(solver, end, rng):
    mass = rng.uniform(0.2, 5.0, 110)
    problem = SpectralProblem(path(110), end=end, mass=mass)
    assert_matches_oracle(problem, solver.solve(problem, 2, rng), 2)


@every_solver
@both_ends
def test_constraint_that_is_not_invariant(solver, end, rng):
    C = rng.standard_normal((110, 3))
    problem = SpectralProblem(path(110), end=end, constraint=C, bounds=(0, 4))
    spectrum = solver.solve(problem, 2, rng)
    assert_matches_oracle(problem, spectrum, 2)
    np.testing.assert_allclose(C.T @ spectrum.vectors, 0, atol=1e-10)


@every_solver
@both_ends
def test_mass_deflation_and_constraint_together(solver, end, rng):
    n = 110
    mass = rng.uniform(0.2, 5.0, n)
    C = rng.standard_normal((n, 2))
    C = np.hstack([C, C @ [[1.0], [2.0]]])  # a dependent column must not count
    problem = SpectralProblem(path(n), end=end, mass=mass, deflate=np.ones(n), constraint=C)
    assert problem.standard().dimension == n - 3
    spectrum = solver.solve(problem, 2, rng)
    assert_matches_oracle(problem, spectrum, 2)
    np.testing.assert_allclose(C.T @ (mass[:, None] * spectrum.vectors), 0, atol=1e-9)


# Kinds of operators


@every_solver
@both_ends
@pytest.mark.parametrize("constrained", [False, True])
def test_indefinite_operator(solver, end, constrained, rng):
    A = indefinite(90, rng)
    C = rng.standard_normal((90, 2)) if constrained else None
    problem = SpectralProblem(A, end=end, constraint=C)
    assert_matches_oracle(problem, solver.solve(problem, 3, rng), 3)


@every_solver
@both_ends
def test_operator_whose_wanted_end_is_beyond_zero(solver, end, rng):
    # Zero, the eigenvalue that projection gives the constraint, lies beyond the wanted end.
    sign = 1 if end == "smallest" else -1
    A = sign * (path(90) + 3 * sp.eye_array(90))
    problem = SpectralProblem(A, end=end, constraint=rng.standard_normal((90, 2)))
    assert_matches_oracle(problem, solver.solve(problem, 2, rng), 2)


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != ShiftInvertLanczos()], ids=_name)
@both_ends
def test_linear_operator(solver, end, rng):
    A = indefinite(90, rng)
    problem = SpectralProblem(
        aslinearoperator(A), end=end, mass=rng.uniform(1, 2, 90), deflate=np.ones(90)
    )
    assert_matches_oracle(problem, solver.solve(problem, 3, rng), 3)


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != ShiftInvertLanczos()], ids=_name)
@pytest.mark.parametrize("shape", [(150, 6), (60, 200), (70, 70)], ids=["tall", "wide", "square"])
@pytest.mark.parametrize("kind", ["array", "sparse", "operator"])
def test_gram_against_the_svd(solver, shape, kind, rng):
    F = rng.standard_normal(shape) * np.geomspace(1, 1e-2, shape[1])
    given = {"array": F, "sparse": sp.csr_array(F), "operator": aslinearoperator(F)}[kind]
    C = rng.standard_normal((shape[0], 2))
    problem = SpectralProblem(Gram(given), end="largest", constraint=C)
    spectrum = solver.solve(problem, 4, rng)
    P = np.eye(shape[0]) - C @ np.linalg.pinv(C)
    U, s, _ = np.linalg.svd(P @ F)
    np.testing.assert_allclose(spectrum.values, s[:4] ** 2, rtol=1e-8)
    np.testing.assert_allclose(np.abs(U[:, :4].T @ spectrum.vectors), np.eye(4), atol=1e-5)
    assert spectrum.accepted


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != ShiftInvertLanczos()], ids=_name)
def test_gram_of_low_rank_is_completed_from_its_null_space(solver, rng):
    F = rng.standard_normal((150, 3)) @ rng.standard_normal((3, 8))
    problem = SpectralProblem(Gram(F), end="largest", deflate=np.ones(150))
    spectrum = solver.solve(problem, 5, rng)
    s = np.linalg.svd(F - F.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(spectrum.values[:3], s[:3] ** 2, rtol=1e-8)
    np.testing.assert_allclose(spectrum.values[3:], 0, atol=1e-10 * s[0] ** 2)
    np.testing.assert_allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(spectrum.vectors.sum(axis=0), 0, atol=1e-8)
    assert spectrum.splits_cluster


def test_gram_smallest_end_starts_in_the_null_space(rng):
    F = rng.standard_normal((30, 4))
    problem = SpectralProblem(Gram(F), end="smallest", deflate=np.ones(30))
    spectrum = Dense().solve(problem, 27, rng)
    s = np.linalg.svd(F - F.mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(spectrum.values[:25], 0, atol=1e-12 * s[0] ** 2)
    np.testing.assert_allclose(spectrum.values[25:], s[:1:-1] ** 2, rtol=1e-10)
    np.testing.assert_allclose(F.T @ spectrum.vectors[:, :25], 0, atol=1e-11 * s[0])


@every_solver
@both_ends
@pytest.mark.parametrize("n", [3, 4, 7])
def test_every_number_of_pairs_of_tiny_problems(solver, end, n, rng):
    A = indefinite(n, rng)
    problem = SpectralProblem(A, end=end, constraint=rng.standard_normal(n))
    for k in range(1, n):
        assert_matches_oracle(problem, solver.solve(problem, k, rng), k)
    with pytest.raises(ValueError, match=rf"k={n} .* n={n} with 1 constraints has {n - 1}"):
        solver.solve(problem, n, rng)
    with pytest.raises(ValueError, match="k=0"):
        solver.solve(problem, 0, rng)


@every_solver
def test_single_precision_input_is_solved_in_double(solver, rng):
    A = indefinite(90, rng).astype(np.float32)
    problem = SpectralProblem(A, end="largest", mass=np.ones(90, dtype=np.float32))
    spectrum = solver.solve(problem, 2, rng)
    assert spectrum.vectors.dtype == np.float64
    expected = np.linalg.eigvalsh(A.astype(np.float64))[::-1][:2]
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-10)  # single: 1e-7


# Size and small gaps


@pytest.mark.parametrize("solver", ITERATIVE, ids=_name)
@both_ends
def test_three_thousand_points(solver, end, rng):
    a, b, k = 60, 50, 4
    constant = np.ones(a * b) if end == "smallest" else None
    problem = SpectralProblem(grid(a, b), end=end, deflate=constant, bounds=(0, 8))
    spectrum = solver.solve(problem, k, rng)
    sums = np.sort(np.add.outer(path_values(a), path_values(b)), axis=None)
    expected = sums[1 : k + 1] if end == "smallest" else sums[::-1][:k]
    np.testing.assert_allclose(spectrum.values, expected, atol=1e-8)
    assert spectrum.accepted


def angles(expected, got):
    """Sines between matching unit columns."""
    return np.sqrt(np.maximum(0, 1 - np.einsum("ij,ij->j", expected, got) ** 2))


HONEST = [Lanczos(max_products=400), Lobpcg(max_iter=60), Randomized(max_iter=3)]


@pytest.mark.parametrize("solver", [ShiftInvertLanczos(), Auto(), *HONEST], ids=_name)
@pytest.mark.parametrize("n", [5000, 2000])
def test_tiny_gaps_are_resolved_or_reported(solver, n, rng):
    # Eigenvalues of 1e-7 ‖A‖ (path) and 1e-12 ‖A‖ (squared path, as in LTSA).
    squared = n == 2000
    L, values = path(n), path_values(n)[1:4]
    A, values = (L @ L, values**2) if squared else (L, values)
    bounds = (0, 16 if squared else 4)
    problem = SpectralProblem(A, end="smallest", deflate=np.ones(n), bounds=bounds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            spectrum = solver.solve(problem, 3, rng)
        except SolverFailed:
            assert solver in HONEST  # it did not converge and warns
            return
    if solver not in HONEST:
        assert spectrum.accepted
        np.testing.assert_allclose(spectrum.values, values, rtol=1e-4)
    if spectrum.accepted:
        assert not caught
        assert angles(path_vectors(n, [1, 2, 3]), spectrum.vectors).max() < 2e-3
    else:
        assert any(w.category is ConvergenceWarning for w in caught)
        assert f"{spectrum.gaps[spectrum.worst]:.1e}" in str(caught[-1].message)


# Reproducibility


@every_solver
def test_same_seed_same_bits(solver):
    n = 400
    problem = SpectralProblem(
        grid(20, 20), end="smallest", deflate=np.ones(n), bounds=(0, 8), mass=np.linspace(1, 2, n)
    )
    np.random.seed(1)  # noqa: NPY002 (numpy's global generator must have no influence)
    first = solver.solve(problem, 2, np.random.default_rng(3))
    np.random.seed(2)  # noqa: NPY002 (the global state is under test)
    second = solver.solve(problem, 2, np.random.default_rng(3))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.vectors.tobytes() == second.vectors.tobytes()


@every_solver
def test_signs_survive_rounding_of_the_operator(solver, rng):
    # Odd eigenvectors of the path have two entries of the same modulus and opposite signs.
    n = 120
    noise = sp.diags_array(1e-13 * rng.standard_normal(n))
    problems = [
        SpectralProblem(A, end="smallest", deflate=np.ones(n), bounds=(0, 4.1))
        for A in (path(n), path(n) + noise)
    ]
    plain, noisy = (solver.solve(p, 4, rng).vectors for p in problems)
    np.testing.assert_allclose(plain, noisy, atol=1e-3)
    np.testing.assert_allclose(plain, path_vectors(n, [1, 2, 3, 4]), atol=1e-3)


@every_solver
def test_the_global_generator_is_left_alone(solver, rng):
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (the global state is under test)
    solver.solve(SpectralProblem(grid(20, 20), end="smallest", bounds=(0, 8)), 2, rng)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002 (the global state is under test)


@every_solver
def test_the_operator_is_not_modified(solver, rng):
    A = indefinite(80, rng)
    copy = A.copy()
    solver.solve(SpectralProblem(A, end="smallest", deflate=np.ones(80)), 2, rng)
    np.testing.assert_array_equal(A, copy)
