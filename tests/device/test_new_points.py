"""Places of new points, and data at positions, on devices: the same as on the CPU."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from manifoldry import SNE, TSNE, UKR, ElasticEmbedding
from manifoldry.device import using_device
from manifoldry.device.emulated import COPIES, EmulatedDevice
from manifoldry.extension.elastic_inverse import ElasticInverse
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.new_point_objective import NewPointObjective, minimize_each
from manifoldry.extension.new_points import NewPointOptimizer
from manifoldry.extension.on_device import copied_to, symmetric_eigh
from manifoldry.extension.projection import OrthogonalProjection
from manifoldry.extension.projection_cost import ProjectionCost
from manifoldry.objectives import (
    ComplementKernel,
    Pairwise,
    PerPoint,
    StudentKernel,
    Unnormalized,
    elastic,
    sne,
    symmetric_sne,
    tsne,
)
from manifoldry.objectives.factored_weights import FactoredWeights

RNG = np.random.default_rng(0)


def weights(n):
    W = RNG.uniform(size=(n, n)) * (RNG.uniform(size=(n, n)) < 0.2)
    W = W + W.T + 1e-3
    np.fill_diagonal(W, 0)
    return W / W.sum()


def problems(W):
    yield tsne(W)
    yield tsne(W, dof=0.5)
    yield symmetric_sne(W)
    yield sne(W / W.sum(axis=1, keepdims=True), include_self=True)
    yield elastic(W, weight=5.0)
    yield Pairwise(W, StudentKernel(), PerPoint(self_weight=1.0))
    yield Pairwise(W, StudentKernel(), Unnormalized(), potential=ComplementKernel(StudentKernel()))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("log_scale", [False, True])
def test_evaluations(device, log_scale, d):
    n, m = 60, 7
    Y, W = 3 * RNG.normal(size=(n, d)), weights(n)
    P = RNG.uniform(size=(m, n)) * (RNG.uniform(size=(m, n)) < 0.3) + 1e-4
    P /= P.sum(axis=1, keepdims=True)
    rows, scale = RNG.integers(m, size=20), RNG.normal(size=m) if log_scale else None
    Z = 3 * RNG.normal(size=(20, d))
    for problem in problems(W):
        for repulsion in (
            None,
            RNG.uniform(size=(m, n)),
            FactoredWeights(RNG.uniform(size=(m, 3)), RNG.uniform(size=(n, 3))),
        ):
            terms = problem.for_new_points(Y)
            objective = NewPointObjective(Y, sparse.csr_array(P), terms, repulsion, scale)
            expected = objective.at(Z, rows)
            with using_device(device):
                found = objective.on(device).at(*copied_to(device, Z, rows))
            for name, part in found._asdict().items():
                assert device.owns(part)
                reference = getattr(expected, name)
                atol = 1e-10 * np.abs(reference).max()
                np.testing.assert_allclose(device.host(part), reference, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_small_eigenproblems(device, d):
    H = RNG.normal(size=(50, d, d))
    H = H + H.transpose(0, 2, 1)
    H[0], H[1] = 0, np.eye(d)
    values, U = map(device.host, symmetric_eigh(device.array(H)))
    np.testing.assert_allclose(np.einsum("nij,nj,nkj->nik", U, values, U), H, atol=1e-13)
    np.testing.assert_allclose(U.transpose(0, 2, 1) @ U, np.tile(np.eye(d), (50, 1, 1)), atol=1e-14)


@pytest.mark.parametrize(
    ("repulsion", "outside"), [(None, False), (None, True), ("dense", False), ("factors", True)]
)
@pytest.mark.parametrize("d", [1, 2])
def test_searches_of_new_points(device, d, repulsion, outside):
    n, m = 80, 25
    Y, W = 3 * RNG.normal(size=(n, d)), weights(n)
    P = RNG.uniform(size=(m, n)) * (RNG.uniform(size=(m, n)) < 0.1) + 1e-5
    P /= P.sum(axis=1, keepdims=True)
    left, right = RNG.uniform(size=(m, 2)), RNG.uniform(size=(n, 2))
    given = {None: None, "dense": left @ right.T, "factors": FactoredWeights(left, right)}[
        repulsion
    ]
    for problem in list(problems(W))[:5]:
        optimizer = NewPointOptimizer(Y, problem.for_new_points(Y), 2, outside)
        expected = optimizer.minimize(P, given)
        with using_device(device):
            found = optimizer.minimize(P, given)
        assert type(found.positions) is np.ndarray
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-7)
        same = found.start == expected.start
        assert same.mean() > 0.9
        np.testing.assert_allclose(found.positions[same], expected.positions[same], atol=1e-5)
        np.testing.assert_array_equal(found.converged, expected.converged)


def test_iterations_copy_nothing():
    """A search of many iterations takes no more copies than one of few."""
    n, m = 80, 25
    Y, W = 3 * RNG.normal(size=(n, 2)), weights(n)
    P = RNG.uniform(size=(m, n))
    optimizer = NewPointOptimizer(Y, tsne(W).for_new_points(Y))
    device, rows, counts = EmulatedDevice(), np.arange(m), []
    for steps in (2, 6):
        with using_device(device):
            objective = NewPointObjective(Y, sparse.csr_array(P), optimizer.problem).on(device)
            posed = copied_to(device, 3 * RNG.normal(size=(m, 2)), rows, np.ones(m))
            COPIES.clear()
            found = minimize_each(objective, *posed, max_iter=steps, tolerance=1e-15)
            counts.append(dict(COPIES))
            assert int(found.n_iter.max()) == steps
    assert counts[0] == counts[1]


def costs_there_and_after_more_steps(projection, new, Z):
    """The costs at positions by numpy, and where the search ends that starts from them."""
    surface = projection.surface
    weight = projection.weight if projection.floor > 0 else 0.0
    cost = ProjectionCost(replace(surface, X=surface.centered), projection.floor, weight)
    X, around = new - surface.mean, projection.margin * np.ptp(surface.positions, axis=0)
    box = surface.positions.min(axis=0) - around, surface.positions.max(axis=0) + around
    return cost.evaluate(X, Z).values, projection.search.minimize(cost, X, Z, *box).costs


@pytest.mark.parametrize("kernel", ["gaussian", "student", "quartic", "triweight"])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.filterwarnings("ignore:divide by zero")  # where no kernel reaches
def test_projection(device, d, kernel):
    t = RNG.uniform(0, 6, size=(90, d))
    X = np.hstack([t, np.sin(t), np.cos(2 * t)]) + 0.05 * RNG.normal(size=(90, 3 * d))
    surface = KernelRegressionMap(2 * t, X, kernel)
    new = X[:40] + 0.1 * RNG.normal(size=(40, 3 * d))
    for floor in (0.0, 5.0):
        projection = OrthogonalProjection(surface, floor=floor, weight=0.02)
        expected = projection.project(new)
        with using_device(device):
            found = OrthogonalProjection(surface, floor=floor, weight=0.02).project(new)
        costs, better = costs_there_and_after_more_steps(projection, new, found.positions)
        expected_costs, _ = costs_there_and_after_more_steps(projection, new, expected.positions)
        if kernel in ("gaussian", "student"):  # others have kinks where searches may not converge
            assert found.converged.all()
        minimal = costs - better <= 1e-9 * (1 + costs)
        assert minimal[found.converged].mean() >= 0.9
        # A point may have several projections: rounding decides to which its search leads.
        assert (costs <= expected_costs * (1 + 1e-6)).mean() >= 0.9
        distances = np.linalg.norm(new - surface.predict(found.positions), axis=1)
        np.testing.assert_allclose(found.residuals, distances, rtol=1e-9)
    Z = 12 * RNG.uniform(size=(20, d))
    expected = surface.predict(Z), surface.jacobian(Z)
    with using_device(device):
        found = surface.predict(Z), surface.jacobian(Z)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is np.ndarray
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_iterations_of_projections_copy_nothing():
    t = RNG.uniform(0, 6, size=(150, 2))
    projection = OrthogonalProjection(KernelRegressionMap(2 * t, np.hstack([t, np.sin(t)])))
    device, counts = EmulatedDevice(), []
    for steps in (1, 6):
        limited = replace(projection, search=replace(projection.search, max_iter=steps))
        with using_device(device), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            COPIES.clear()
            limited.project(RNG.normal(size=(9, 4)))
            counts.append(dict(COPIES))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("repulsion_width", [0.0, 0.5, 1.0])
def test_elastic_inverse(device, repulsion_width):
    t = np.sort(RNG.uniform(0, 10, size=80))[:, None]
    X = np.hstack([np.cos(t / 3), np.sin(t / 3), t / 10])
    inverse = ElasticInverse(
        X, t, np.full(80, 0.2), np.full(80, -4.0), 100.0, repulsion_width=repulsion_width
    )
    Z = RNG.uniform(0, 10, size=(15, 1))
    expected = inverse.predict(Z)
    with using_device(device):
        found = inverse.predict(Z)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        TSNE(perplexity=15, max_iter=50, random_state=0),
        SNE(perplexity=15, max_iter=30, random_state=0),
        ElasticEmbedding(
            max_iter=30, random_state=0, inverse="elastic", repulsion="squared_distance"
        ),
        UKR(init="pca", max_iter=20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_transform_and_inverse(device, model):
    t = RNG.uniform(0, 6, size=(230, 2))
    X = np.hstack([t, np.sin(t)]) + 0.02 * RNG.normal(size=(230, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:200])
        Z = model.embedding_[:20] + 0.01
        expected = model.transform(X[200:]), model.inverse_transform(Z)
        with using_device(device):
            found = model.transform(X[200:]), model.inverse_transform(Z)
    size = np.ptp(model.embedding_, axis=0).max()
    away = np.abs(found[0] - expected[0]).max(axis=1) / size
    assert (away < 1e-6).mean() > 0.9
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)
