"""Contract of all objectives."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.objectives import (
    Boxed,
    ComplementKernel,
    DensityFloor,
    Exact,
    GaussianKernel,
    Joint,
    Pairwise,
    PerPoint,
    RegressionPairs,
    Resized,
    StudentKernel,
    UKRObjective,
    Unnormalized,
    Whitened,
    elastic,
    sne,
    squared_distance_weights,
    symmetric_sne,
    tsne,
)
from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding, UnfoldingLagrangian

N = 14
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
SQUARES = cdist(X, X, "sqeuclidean")


def conditional(keep_self=False):
    """Row-stochastic, with some entries that are exactly zero."""
    K = np.exp(-SQUARES / 6)
    K[np.quantile(K, 0.3) > K] = 0
    K = K if keep_self else K - np.eye(N)
    return K / K.sum(axis=1, keepdims=True)


P = conditional()
JOINT = (P + P.T) / (2 * N)
FAR = sparse.csr_array(np.where(SQUARES > 8, SQUARES, 0.0))
# Compiled loops are for many points; here they must agree with numpy.
FAST = Exact(compile_pairs=0, compile_edges=0)


def unfolding(interval, slack=0.0):
    ends = np.argwhere(np.triu(RNG.uniform(size=(N, N)) < 0.4, 1))
    edges = EdgeLengths(ends, RNG.uniform(0.5, 2.0, len(ends)) ** 2, N)
    problem = FreeUnfolding(edges, interval, slack, np.ones(N), np.zeros(N, dtype=int))
    return UnfoldingLagrangian(problem, RNG.normal(1.0, 1.0, len(ends)), 30.0, 2.5)


@dataclass(frozen=True)
class Case:
    """An objective and its additional properties."""

    objective: Any
    turns: bool = True
    """Whether the value is invariant to rotations."""
    bounds: bool = False
    """Whether `diagonal_curvature` is at least the diagonal of the Hessian."""
    graph: bool = True
    """Whether it has an attraction or a neighbor graph."""
    far: bool = True
    """Whether embeddings are centered before squares are computed."""


PAIRS: dict[str, Callable[[], Pairwise]] = {
    "elastic, uniform": lambda: elastic(JOINT, weight=30.0),
    "elastic, distances": lambda: elastic(JOINT, squared_distance_weights(X), 30.0),
    "elastic, dense": lambda: elastic(JOINT, SQUARES**2, 30.0),
    "elastic, sparse": lambda: elastic(JOINT, FAR, 30.0),
    "sne": lambda: sne(P),
    "sne, sum": lambda: sne(P, reduction="sum", weight=1.7),
    "sne, self": lambda: sne(conditional(keep_self=True), include_self=True),
    "symmetric sne": lambda: symmetric_sne(JOINT),
    "symmetric sne, weighted": lambda: symmetric_sne(JOINT, weight=0.4),
    "tsne": lambda: tsne(JOINT),
    "tsne, exaggerated": lambda: tsne(JOINT, exaggeration=12.0),
    "tsne, dof 0.5": lambda: tsne(JOINT, dof=0.5),
    "tsne, dof 3": lambda: tsne(JOINT, dof=3.0, exaggeration=2.0, weight=0.7),
    "student, unnormalized": lambda: Pairwise(JOINT, StudentKernel(), Unnormalized(SQUARES), 3.0),
    "student, sparse": lambda: Pairwise(JOINT, StudentKernel(2.0), Unnormalized(FAR), 3.0),
    "student, per point": lambda: Pairwise(JOINT, StudentKernel(2.0), PerPoint(1 / N)),
    "student, cross-entropy": lambda: Pairwise(
        JOINT, StudentKernel(), Unnormalized(SQUARES), potential=ComplementKernel(StudentKernel())
    ),
    "springs against a heavy tail": lambda: Pairwise(
        JOINT, GaussianKernel(), Joint(), potential=StudentKernel()
    ),
}
# A new objective joins with one line here, or above if it is a Pairwise.
CASES: dict[str, Callable[[], Case]] = {
    **{name: lambda make=make: Case(make(), bounds=True) for name, make in PAIRS.items()},
    **{
        f"{name}, compiled": lambda make=make: Case(replace(make(), pair_sums=FAST), bounds=True)
        for name, make in PAIRS.items()
    },
    "ukr": lambda: Case(UKRObjective(X, sparse.csr_array(JOINT))),
    "ukr, student": lambda: Case(UKRObjective(X, kernel="student"), graph=False),
    "ukr, quartic": lambda: Case(
        UKRObjective(X, kernel="quartic", leave_one_out=False), graph=False
    ),
    "ukr, triweight": lambda: Case(UKRObjective(X, kernel="triweight"), graph=False),
    "ukr, nearby pairs": lambda: Case(
        UKRObjective(X, pairs=RegressionPairs(exact_up_to=0)), graph=False
    ),
    "density floor": lambda: Case(DensityFloor(UKRObjective(X), 5.0, 3.0), graph=False),
    "density floor, tsne": lambda: Case(DensityFloor(tsne(JOINT), 5.0, kernel="student")),
    "boxed": lambda: Case(Boxed(UKRObjective(X), 0.7), turns=False, graph=False),
    "boxed, elastic": lambda: Case(Boxed(elastic(JOINT, weight=30.0), 2.0), turns=False),
    "resized": lambda: Case(Resized(sne(P), 2.5), bounds=True),
    "resized box": lambda: Case(Resized(Boxed(sne(P), 2.0), 0.5), turns=False),
    "whitened": lambda: Case(Whitened(elastic(JOINT, weight=3.0), size=1.5)),
    "whitened, mass": lambda: Case(Whitened(sne(P), mass=np.arange(1.0, N + 1))),
    "unfolding": lambda: Case(unfolding((0.0, 0.0)), far=False),
    "unfolding, band": lambda: Case(unfolding((-0.05, 0.04), 0.1), far=False),
}


# These cover all compiled loops. The other cases are slow, as are these in other dimensions than
# two, since each number of coordinates is compiled; tests/objectives/test_pair_sums.py has all.
LOOPS = {"elastic, dense", "sne", "tsne", "tsne, dof 3", "student, per point"}


def cell(name, d):
    compiled = name.endswith(", compiled")
    again = compiled and (d != 2 or name.removesuffix(", compiled") not in LOOPS)
    return pytest.param((name, d), id=f"{name}, d={d}", marks=pytest.mark.slow if again else ())


@pytest.fixture(params=[cell(name, 2) for name in CASES])
def case(request):
    return CASES[request.param[0]]()


@pytest.fixture
def objective(case):
    return case.objective


@pytest.fixture(params=[cell(name, d) for name in CASES for d in (1, 2, 3)])
def case_and_map(request):
    """Each case with a map of one, two and three dimensions."""
    name, d = request.param
    return CASES[name](), random_map(d)


@pytest.fixture
def plane():
    return random_map(2)


def random_map(d):
    return 0.8 * np.random.default_rng(d).normal(size=(N, d))


def differences(f, Y, step=1e-5):
    """Derivatives of f, along its first axes, by all coordinates of Y."""
    found = np.empty((*Y.shape, *np.shape(f(Y))))
    for place in np.ndindex(Y.shape):
        E = np.zeros_like(Y)
        E[place] = step
        found[place] = (f(Y + E) - f(Y - E)) / (2 * step)
    return found


def test_the_gradient_is_the_derivative_of_the_value(case_and_map):
    objective, Y = case_and_map[0].objective, case_and_map[1]
    value, G = objective.value_and_gradient(Y)
    assert value == pytest.approx(objective.value(Y), rel=1e-13)
    assert isinstance(value, float)
    expected = differences(objective.value, Y)
    np.testing.assert_allclose(G, expected, atol=1e-6 * abs(expected).max())


def test_translations_do_not_change_the_value(objective, plane):
    """If the objective is translation invariant; every column of the gradient then sums to zero."""
    value, G = objective.value_and_gradient(plane)
    moved, H = objective.value_and_gradient(plane + np.array([3.0, -40.0]))
    if not objective.translation_invariant:
        assert moved != pytest.approx(value, rel=1e-6)
        return
    assert moved == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(H, G, atol=1e-11 * abs(G).max())
    assert abs(G.sum(axis=0)).max() < 1e-12 * np.abs(G).sum()


def test_rotations_do_not_change_the_value(case, plane):
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))[0]
    value, G = case.objective.value_and_gradient(plane)
    turned, H = case.objective.value_and_gradient(plane @ turn)
    if not case.turns:
        assert turned != pytest.approx(value, rel=1e-6)
        return
    assert turned == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(H, G @ turn, atol=1e-12 * abs(G).max() + 1e-13)


def test_embeddings_far_from_the_origin_are_accurate(case, plane):
    if not (case.far and case.objective.translation_invariant):
        return
    value, G = case.objective.value_and_gradient(plane)
    moved, H = case.objective.value_and_gradient(plane + 2.0**27)
    assert moved == pytest.approx(value, rel=1e-5)  # coordinates there are rounded to 3e-8
    np.testing.assert_allclose(H, G, atol=1e-5 * abs(G).max())


def test_diagonal_curvature(case_and_map):
    """Never negative; an upper bound of the diagonal of the Hessian in some cases."""
    case, Y = case_and_map
    h = case.objective.diagonal_curvature(Y)
    assert h.shape == Y.shape
    assert (h >= 0).all()
    assert np.isfinite(h).all()
    if case.bounds:
        hessian = differences(lambda Y: case.objective.value_and_gradient(Y)[1], Y)
        diagonal = np.einsum("nini->ni", hessian)
        assert (h >= diagonal - 1e-6 * abs(diagonal).max()).all()


def test_products_with_the_hessian(objective, plane):
    """Symmetric, and the derivative of the gradient."""
    V, U = np.random.default_rng(6).normal(size=(2, *plane.shape))
    HV, HU = objective.hessian_product(plane, V), objective.hessian_product(plane, U)
    size = np.linalg.norm(HV) * np.linalg.norm(U) + np.linalg.norm(HU) * np.linalg.norm(V)
    assert np.vdot(U, HV) == pytest.approx(np.vdot(V, HU), abs=1e-7 * size)
    ahead, behind = (objective.value_and_gradient(plane + s * V)[1] for s in (1e-5, -1e-5))
    expected = (ahead - behind) / 2e-5
    np.testing.assert_allclose(HV, expected, atol=1e-6 * abs(expected).max())
    assert (objective.hessian_product(plane, np.zeros_like(plane)) == 0).all()


def test_attraction_is_symmetric_and_not_negative(case):
    if not case.graph:
        with pytest.raises(ValueError, match="needs a neighbor graph"):
            _ = case.objective.attraction
        return
    W = case.objective.attraction.toarray()
    assert W.shape == (N, N)
    np.testing.assert_allclose(W, W.T, atol=1e-15)
    assert (W >= 0).all()


def test_retraction_does_not_change_the_value(objective, plane):
    value, G = objective.value_and_gradient(plane)
    Z, H = objective.retract(plane, G)
    there, expected = objective.value_and_gradient(Z)
    assert there == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(H, expected, atol=1e-12 * abs(G).max() + 1e-13)


def test_single_precision_is_close_to_double(case, plane):
    value, G = case.objective.value_and_gradient(plane)
    single = plane.astype(np.float32)
    rounded, H = case.objective.value_and_gradient(single)
    assert isinstance(rounded, float)
    assert H.dtype == case.objective.diagonal_curvature(single).dtype == np.float32
    assert rounded == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(H, G, atol=1e-5 * abs(G).max())


def test_embeddings_of_another_length_are_refused(objective, plane):
    assert objective.n == N
    for method in ("value", "value_and_gradient", "diagonal_curvature"):
        with pytest.raises(ValueError, match=rf"\(15, 2\); pass an array with {N} rows"):
            getattr(objective, method)(np.vstack([plane, plane[:1]]))


def test_the_embedding_is_not_modified(objective, plane):
    before = plane.copy()
    plane.flags.writeable = False
    G = objective.value_and_gradient(plane)[1]
    objective.value(plane)
    objective.diagonal_curvature(plane)
    objective.hessian_product(plane, G)
    np.testing.assert_array_equal(plane, before)


def test_results_are_deterministic(objective, plane):
    first, second = (objective.value_and_gradient(plane) for _ in range(2))
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])
    by_columns = objective.value(np.asfortranarray(plane))
    assert by_columns == pytest.approx(first[0], rel=1e-13)


# --- attraction and repulsion ------------------------------------------------------------------


@pytest.fixture(params=PAIRS)
def pairs(request):
    return PAIRS[request.param]()


def test_gradient_is_the_laplacian_of_the_learned_affinity(pairs, plane):
    A = pairs.learned_affinity(plane)
    np.testing.assert_allclose(A, A.T, atol=1e-15)
    assert (np.diag(A) == 0).all()
    G = pairs.value_and_gradient(plane)[1]
    np.testing.assert_allclose(
        4 * (np.diag(A.sum(axis=1)) - A) @ plane, G, atol=1e-6 * abs(G).max()
    )


def test_learned_affinity_of_some_pairs(pairs, plane):
    pattern = sparse.csr_array(np.triu(SQUARES < 9, k=1))
    edges = pairs.learned_affinity_edges(plane, pattern)
    expected = np.where(pattern.toarray(), pairs.learned_affinity(plane), 0)
    np.testing.assert_allclose(edges.toarray(), expected, atol=1e-16)


def test_curvature_at_zero(pairs):
    """Attraction and repulsion at Y = 0 are the Laplacians that a bifurcation compares."""
    Y = np.zeros((N, 1))
    hessian = differences(lambda Y: pairs.value_and_gradient(Y)[1], Y).reshape(N, N)
    W, repulsion = pairs.attraction.toarray(), pairs.repulsion_at_zero
    expected = 4 * (np.diag(W.sum(axis=1)) - W) - 4 * pairs.weight * repulsion.laplacian()
    np.testing.assert_allclose(hessian, expected, atol=1e-6 * abs(expected).max())
    flat = 4 * W.sum(axis=1)
    np.testing.assert_allclose(pairs.diagonal_curvature(Y)[:, 0], flat, rtol=1e-12)


def test_another_weight(pairs, plane):
    other = pairs.with_weight(2.5)
    assert other.weight == 2.5
    assert pairs.weight != 2.5
    direct = replace(pairs, weight=2.5)
    assert other.value(plane) == pytest.approx(direct.value(plane), rel=1e-14)
    with pytest.raises(ValueError, match="weight=-1"):
        pairs.with_weight(-1)


@pytest.mark.parametrize("distance", [1e2, 1e5])
def test_points_far_from_all_others(pairs, plane, distance):
    """Where kernels underflow, values and gradients stay finite and agree."""
    Y = plane.copy()
    Y[:2] += distance
    Y[2] -= distance
    value, G = pairs.value_and_gradient(Y)
    assert np.isfinite(value)
    assert np.isfinite(G).all()
    assert np.isfinite(pairs.diagonal_curvature(Y)).all()
    step = np.zeros_like(Y)
    step[0] = [0.7, -0.3]
    change = pairs.value(Y + 1e-4 * step) - pairs.value(Y - 1e-4 * step)
    assert change / 2e-4 == pytest.approx(np.vdot(G, step), rel=1e-4, abs=1e-9 * distance)
