"""Unsupervised kernel regression on devices: the same as on the CPU."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import UKR
from manifoldry.affinity.gaussian import local_weights
from manifoldry.device import using_device
from manifoldry.device.emulated import LONG_COPIES, EmulatedDevice
from manifoldry.iterative.ukr_floor import Floor
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives import regression_on_device
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import best_regression_scale, leave_one_out_errors
from manifoldry.objectives.regression_pairs import RegressionPairs
from manifoldry.objectives.transformed import Boxed, Resized, Whitened
from manifoldry.optimize import LBFGS, Constrained, DiagonalHessian, Jacobi, SpectralDirection
from manifoldry.optimize.stopping import Stopping

KERNELS = ("gaussian", "student", "quartic", "triweight")


def surface(n=240, seed=0):
    """A noisy surface, and an embedding near it with an isolated point."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 9, size=(n, 2))
    X = np.hstack([t, np.sin(t), np.cos(2 * t)]) + 0.1 * rng.normal(size=(n, 6))
    Y = 1.5 * t + 0.3 * rng.normal(size=(n, 2))
    Y[5] = 40
    return X, Y


def objectives(X, kernel, leave_one_out=True, n_neighbors=8):
    graph = NeighborGraph.build(X, n_neighbors=n_neighbors)
    plain = UKRObjective(X, local_weights(graph), kernel, leave_one_out)
    floor = DensityFloor(plain, 8.0, 0.3, kernel)
    yield from (plain, floor, DensityFloor(plain, 8.0, 0.3, "student"))
    yield from (
        Boxed(floor, 9.0),
        Resized(Boxed(plain, 9.0), 1.3),
        Whitened(plain, X[:, 0] ** 2 + 1),
    )


@pytest.mark.parametrize("leave_one_out", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_objectives(device, kernel, dtype, leave_one_out):
    X, Y = surface()
    Y, tol = Y.astype(dtype), 1e-5 if dtype == np.float32 else 1e-9
    for objective in objectives(X, kernel, leave_one_out):
        expected, G = objective.value_and_gradient(Y)
        parts = objective.value(Y), objective.diagonal_curvature(Y)
        with using_device(device):
            placed = device.array(Y)
            value, gradient = objective.value_and_gradient(placed)
            assert gradient.dtype == dtype
            assert device.owns(gradient)
            assert isinstance(value, float)
            np.testing.assert_allclose(value, expected, rtol=tol)
            scale = np.abs(G).max()
            np.testing.assert_allclose(device.host(gradient), G, rtol=tol, atol=tol * scale)
            np.testing.assert_allclose(objective.value(placed), parts[0], rtol=tol)
            curvature = device.host(objective.diagonal_curvature(placed))
            np.testing.assert_allclose(curvature, parts[1], rtol=100 * tol)
            if objective.sampled_value.__func__ is not type(objective).__mro__[1].sampled_value:
                np.testing.assert_allclose(
                    objective.sampled_value(placed, np.arange(0, 240, 7)),
                    objective.sampled_value(Y, np.arange(0, 240, 7)),
                    rtol=tol,
                )
            # Arrays of the host are copied, and so are results.
            again, host = objective.value_and_gradient(Y)
            assert type(host) is np.ndarray
            np.testing.assert_allclose(again, value, rtol=tol)
            np.testing.assert_allclose(host, device.host(gradient), rtol=tol, atol=tol * scale)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_differences(device, kernel):
    X, Y = surface(60)
    V, h = np.random.default_rng(1).normal(size=Y.shape), 1e-6
    for objective in objectives(X, kernel):
        with using_device(device):
            around = [objective.value(device.array(Y + s * V)) for s in (h, -h)]
            G = device.host(objective.value_and_gradient(device.array(Y))[1])
        slope = (around[0] - around[1]) / (2 * h)
        np.testing.assert_allclose((G * V).sum(), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("leave_one_out", [True, False])
@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
def test_nearby_pairs_are_enough(device, monkeypatch, kernel, leave_one_out, d):
    """With tiles of few points, and so few points in memory that tiles are divided."""
    monkeypatch.setattr(regression_on_device, "ALL_PAIRS_UP_TO", 10)
    monkeypatch.setattr(regression_on_device, "_TILE", 40)
    monkeypatch.setattr(regression_on_device, "_PAIRS", 2000)
    rng = np.random.default_rng(d)
    Y = np.concatenate([rng.uniform(0, 40, size=(500, d)), [[300.0] * d], [[0.0] * d] * 3])
    X = np.concatenate([Y, np.sin(Y)], axis=1)
    objective = UKRObjective(X, None, kernel, leave_one_out)
    expected, G = objective.value_and_gradient(Y)
    objective = UKRObjective(X, None, kernel, leave_one_out, pairs=RegressionPairs(exact_up_to=0))
    with using_device(device):
        value, gradient = objective.value_and_gradient(device.array(Y))
        fitted = objective.fitted(device.array(Y))
        bad = device.array(np.where(np.arange(len(Y))[:, None] == 7, np.nan, Y))
        assert np.isnan(objective.value_and_gradient(bad)[0])
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(device.host(gradient), G, atol=1e-9 * np.abs(G).max())
    np.testing.assert_allclose(device.host(fitted.errors).mean(), expected, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9])
def test_squared_distances(in_use, d):
    rng = np.random.default_rng(0)
    Y, Z = 1e5 + rng.normal(size=(300, d)), 1e5 + rng.normal(size=(1000, d))
    Z[3] = np.inf
    places = in_use.array(Y), in_use.array(Z)
    expected = cdist(Y, Z, "sqeuclidean")
    found = in_use.host(in_use.squared_distances(*places))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    nearest = in_use.host(in_use.nearest_squares(*places))
    np.testing.assert_allclose(nearest, expected.min(axis=1), rtol=1e-12)


def test_the_same_bits(device):
    X, Y = surface()
    found = []
    for _ in range(2):
        with using_device(device):
            value, G = UKRObjective(X).value_and_gradient(device.array(Y))
            found.append((value, device.host(G).tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize("filter", [SpectralDirection(shift=0.1), Jacobi(), DiagonalHessian()])
def test_steps_copy_nothing(filter):
    """More steps take no more copies, but of a few numbers."""
    X, Y = surface()
    device, counts = EmulatedDevice(), []
    for steps in (3, 12):
        objective = list(objectives(X, "gaussian"))[1]
        optimizer = LBFGS(filter, stopping=Stopping(max_iter=steps, tol=1e-14))
        with using_device(device):
            LONG_COPIES.clear()
            solution = optimizer.minimize(objective, Y)
            counts.append(dict(LONG_COPIES))
        assert len(solution.trace) == steps + 1
    assert counts[0] == counts[1]


def test_a_search_under_a_constraint(device):
    """It keeps the size, and has the value of the objective there, which is as low."""
    X, Y = surface(100)
    objective, optimizer = UKRObjective(X), Constrained(LBFGS(), size=4.0)
    expected = optimizer.minimize(objective, Y)
    with using_device(device):
        found = optimizer.minimize(objective, Y)
    assert found.converged
    np.testing.assert_allclose(objective.value(found.embedding), found.value, rtol=1e-6)
    sizes = [np.linalg.norm(Z - Z.mean(axis=0)) for Z in (found.embedding, expected.embedding)]
    np.testing.assert_allclose(*sizes, rtol=1e-9)
    lowered = [each.trace[0].value - each.value for each in (found, expected)]
    np.testing.assert_allclose(*lowered, rtol=0.05)


def test_functions_of_the_host(device):
    X, Y = surface()
    expected = leave_one_out_errors(Y, X), best_regression_scale(Y, X), reinsert(UKRObjective(X), Y)
    with using_device(device):
        found = (
            leave_one_out_errors(Y, X),
            best_regression_scale(Y, X),
            reinsert(UKRObjective(X), Y),
        )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    np.testing.assert_array_equal(found[2], expected[2])


@pytest.mark.parametrize(
    "options",
    [{}, {"box": 3.0, "leave_one_out": False}, {"optimizer": "homotopy"}, {"kernel": "quartic"}],
    ids=str,
)
def test_fits(device, assert_searched_alike, options):
    """The loss is that of the embedding on the CPU, and the search lowered it by as much."""
    X, _ = surface(200, seed=3)
    model, there = (
        UKR(init="pca", random_state=0, max_iter=30, **options, device=d) for d in ("cpu", device)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
        there.fit(X)
    assert type(there.embedding_) is np.ndarray
    assert there.pairs_ == f"all pairs, on {device.name}"
    assert there.start_ == model.start_
    kernel = options.get("kernel", "gaussian")
    centered = X - X.mean(axis=0)
    error = UKRObjective(centered, None, kernel, options.get("leave_one_out", True))
    penalized = Floor.default(len(X), 2, error.variance, kernel).add_penalty(error)
    assert penalized.value(there.embedding_) == pytest.approx(there.loss_, rel=1e-6)
    errors = leave_one_out_errors(there.embedding_, X, kernel).mean() / error.variance
    assert errors == pytest.approx(there.leave_one_out_error_, rel=1e-6)
    assert_searched_alike(there, model)


def test_too_little_memory():
    X, Y = surface()
    device = EmulatedDevice(free_memory=10_000)
    with using_device(device), pytest.raises(MemoryError, match="use fewer points"):
        UKRObjective(X).value(Y)
