"""Unsupervised kernel regression: values and derivatives against their definitions."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from manifoldry.objectives import density_floor, leave_one_out, regression_pairs
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import (
    best_regression_scale,
    leave_one_out_errors,
    minimize_over_scale,
)
from manifoldry.objectives.regression_kernels import KERNELS, as_kernel
from manifoldry.objectives.regression_pairs import over_pairs
from manifoldry.objectives.transformed import Boxed
from manifoldry.util.threads import threads_allowed

PLAIN = {
    "gaussian": lambda t: np.exp(-t),
    "student": lambda t: 1 / (1 + t),
    "quartic": lambda t: np.where(t < 1, (1 - t) ** 2, 0) + 1e-6 * np.exp(-t),
    "triweight": lambda t: np.where(t < 1, (1 - t) ** 3, 0) + 1e-6 * np.exp(-t),
}
every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
either_way = pytest.mark.parametrize("leave_one_out", [True, False])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture(name="X")
def data(rng):
    return rng.normal(3.0, 1.0, size=(14, 4))


@pytest.fixture(name="Y")
def place(rng):
    return 0.6 * rng.normal(size=(14, 2))


def cut_pairs(monkeypatch, **options):
    for module in (density_floor, leave_one_out, regression_pairs):
        monkeypatch.setattr(module, "over_pairs", partial(over_pairs, **options))


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    if request.param == "many blocks":
        cut_pairs(monkeypatch, arrays=1, budget=14 * 3)  # three rows each


def mixing_matrix(Y, kernel, leave_one_out):
    """B with columns that sum to one, by the definition."""
    K = PLAIN[kernel](cdist(Y, Y, "sqeuclidean"))
    if leave_one_out:
        np.fill_diagonal(K, 0)
    return K / K.sum(axis=0)


def central_differences(function, Y, step=1e-5):
    G = np.empty(np.shape(function(Y)) + Y.shape)
    for index in np.ndindex(Y.shape):
        change = np.zeros_like(Y)
        change[index] = step
        G[(..., *index)] = (function(Y + change) - function(Y - change)) / (2 * step)
    return G


def assert_gradient(objective, Y):
    gradient = objective.value_and_gradient(Y)[1]
    expected = central_differences(objective.value, Y)
    assert np.abs(gradient - expected).max() <= 1e-6 * np.abs(expected).max()


# --- the objective -----------------------------------------------------------------------------


@every_kernel
@either_way
@pytest.mark.usefixtures("blocks")
def test_the_loss_is_a_trace(X, Y, kernel, leave_one_out):
    residual = np.eye(14) - mixing_matrix(Y, kernel, leave_one_out)
    Xc = X - X.mean(axis=0)
    expected = np.trace(Xc @ Xc.T @ residual @ residual.T) / 14
    objective = UKRObjective(X, kernel=kernel, leave_one_out=leave_one_out)
    assert objective.value(Y) == pytest.approx(expected, rel=1e-12)
    assert objective.value_and_gradient(Y)[0] == pytest.approx(expected, rel=1e-12)


@every_kernel
@either_way
@pytest.mark.usefixtures("blocks")
def test_gradient(X, Y, kernel, leave_one_out):
    objective = UKRObjective(X, kernel=kernel, leave_one_out=leave_one_out)
    assert_gradient(objective, Y)
    gradient = objective.value_and_gradient(Y)[1]
    np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-13 * np.abs(gradient).max() * 14)


@every_kernel
@either_way
@pytest.mark.usefixtures("blocks")
def test_diagonal_curvature_is_that_of_gauss_and_newton(X, Y, kernel, leave_one_out):
    def fits(Y):
        return mixing_matrix(Y, kernel, leave_one_out).T @ X

    jacobian = central_differences(fits, Y)  # (n, n_features, n, d)
    expected = 2 / 14 * (jacobian**2).sum(axis=(0, 1))
    objective = UKRObjective(X, kernel=kernel, leave_one_out=leave_one_out)
    np.testing.assert_allclose(objective.diagonal_curvature(Y), expected, rtol=1e-6)


@every_kernel
@pytest.mark.parametrize("distance", [1.5, 4.0])
def test_gradient_at_isolated_points(X, Y, kernel, distance):
    Y = Y - Y.mean(axis=0)
    Y[0] += distance
    Y[1] -= distance
    assert_gradient(UKRObjective(X, kernel=kernel), Y)


@every_kernel
def test_a_point_far_from_all_is_predicted_as_the_nearest(X, Y, kernel):
    Y[0] = [300.0, 0.0]  # exp(−d²) underflows
    fit = UKRObjective(X, kernel=kernel).fitted(Y)
    nearest = 1 + np.argmin(np.linalg.norm(Y[1:] - Y[0], axis=1))
    if kernel == "student":  # its tails are heavy
        np.testing.assert_allclose(fit.values[0], X[1:].mean(axis=0), atol=0.1)
    else:
        np.testing.assert_allclose(fit.values[0], X[nearest], rtol=1e-9)
    value, gradient = UKRObjective(X, kernel=kernel).value_and_gradient(Y)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@every_kernel
def test_a_collapsed_embedding_predicts_the_mean_of_the_others(X, Y, kernel):
    objective = UKRObjective(X, kernel=kernel)
    collapsed = (14 / 13) ** 2 * X.var(axis=0).sum()
    assert objective.value(1e-6 * Y) == pytest.approx(collapsed, rel=1e-9)
    assert objective.variance == pytest.approx(X.var(axis=0).sum(), rel=1e-12)


@every_kernel
def test_leaving_out_is_fitting_without(X, Y, kernel):
    fit = UKRObjective(X, kernel=kernel).fitted(Y)
    for j in range(14):
        rest = np.delete(np.arange(14), j)
        weights = PLAIN[kernel](((Y[rest] - Y[j]) ** 2).sum(axis=1))
        np.testing.assert_allclose(fit.values[j], weights @ X[rest] / weights.sum(), rtol=1e-9)
    np.testing.assert_allclose(fit.errors, ((X - fit.values) ** 2).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(leave_one_out_errors(Y, X, kernel), fit.errors, rtol=1e-9)


def test_more_features_than_points(rng, Y):
    wide = rng.normal(size=(14, 40)) * np.geomspace(1, 1e-6, 40)
    padded = np.vstack([wide] * 3)  # 42 points: not reduced
    objective = UKRObjective(wide)
    assert objective.data.shape == (14, 14)
    inner = wide - wide.mean(axis=0)
    np.testing.assert_allclose(objective.data @ objective.data.T, inner @ inner.T, atol=1e-13)
    assert objective.value(Y) == pytest.approx(leave_one_out_errors(Y, wide).mean(), rel=1e-12)
    assert objective.fitted(Y).values.shape == (14, 40)
    assert UKRObjective(padded).data.shape == (42, 40)
    assert_gradient(objective, Y)


def test_offset_of_data_and_map_do_not_matter(X, Y):
    here = UKRObjective(X).value_and_gradient(Y)
    there = UKRObjective(X + 1e8).value_and_gradient(Y + 1e4)
    assert there[0] == pytest.approx(here[0], rel=1e-7)
    np.testing.assert_allclose(there[1], here[1], rtol=1e-5, atol=1e-7)


def test_the_input_stays_as_it_is(X, Y):
    before = X.copy(), Y.copy()
    UKRObjective(X).value_and_gradient(Y)
    best_regression_scale(Y, X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_curvature_is_positive_at_isolated_points(X):
    assert (UKRObjective(X).diagonal_curvature(np.zeros((14, 2))) > 0).all()
    alone = 100 * np.arange(14.0)[:, None]
    assert (UKRObjective(X).diagonal_curvature(alone) > 0).all()


def test_refusals(X, Y):
    with pytest.raises(ValueError, match="two rows or more"):
        UKRObjective(X[:1])
    with pytest.raises(ValueError, match=r"X is csr_array .* pass a dense array"):
        leave_one_out_errors(Y, sparse.csr_array(X))
    with pytest.raises(ValueError, match=r"shape \(13, 2\); pass an array with 14 rows"):
        leave_one_out_errors(Y[1:], X)
    with pytest.raises(ValueError, match="kernel='box' must be one of 'gaussian'"):
        UKRObjective(X, kernel="box")
    with pytest.raises(ValueError, match="half_width=0 must be"):
        Boxed(UKRObjective(X), 0)
    with pytest.raises(ValueError, match="floor=-1 must be"):
        DensityFloor(UKRObjective(X), -1)
    with pytest.raises(ValueError, match="all rows of Y coincide"):
        best_regression_scale(np.ones((14, 2)), X)


def test_the_neighbor_graph_is_passed_on_in_units_of_the_error(X):
    W = sparse.csr_array(np.eye(14)[::-1])
    objective = Boxed(DensityFloor(UKRObjective(X, W)), 2.0)
    variance = ((X - X.mean(axis=0)) ** 2).sum() / 14
    np.testing.assert_allclose(objective.attraction.toarray(), W.toarray() * variance / 14)
    assert objective.attraction is objective.attraction  # cached, so that it is factorized once
    assert objective.n == 14


@pytest.mark.parametrize("leave_one_out", [True, False])
def test_a_penalty_with_other_weights_is_added_as_well(X, Y, leave_one_out):
    """With equal kernels the weights are computed once, with different ones separately."""
    for kernel in ("gaussian", "student"):
        regression = UKRObjective(X, kernel=kernel, leave_one_out=leave_one_out)
        objective = DensityFloor(regression, 9.0, 0.3, "gaussian")
        assert objective.value(Y) > regression.value(Y)
        assert objective.value_and_gradient(Y)[0] == pytest.approx(objective.value(Y), rel=1e-13)
        assert_gradient(objective, Y)


def test_threads_do_not_change_a_bit(rng, monkeypatch):
    cut_pairs(monkeypatch, budget=2**12)
    X, Y = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    objective = DensityFloor(UKRObjective(X), 3.0)
    found = []
    for threads in (1, 3):
        with threads_allowed(threads):
            value, gradient = objective.value_and_gradient(Y)
            found.append((value, gradient, objective.diagonal_curvature(Y)))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_memory_grows_with_a_block_not_with_all_pairs(rng):
    X, Y = rng.normal(size=(6000, 3)), rng.normal(size=(6000, 1))
    objective = UKRObjective(X)
    tracemalloc.start()
    objective.value_and_gradient(Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000**2 * 8 / 3


# --- kernels -----------------------------------------------------------------------------------


@every_kernel
def test_derivatives_of_kernels(kernel):
    kappa, t, h = as_kernel(kernel), np.array([0.0, 0.3, 0.7, 0.95, 1.3, 6.0]) + 1e-3, 1e-6
    derivative = -(kappa.value(t + h) - kappa.value(t - h)) / (2 * h)
    second_derivative = -(kappa.negative_derivative(t + h) - kappa.negative_derivative(t - h)) / (
        2 * h
    )
    np.testing.assert_allclose(kappa.negative_derivative(t), derivative, atol=1e-8)
    np.testing.assert_allclose(kappa.second_derivative(t), second_derivative, atol=1e-8)
    assert kappa.value(np.zeros(1)) == 1


@every_kernel
@pytest.mark.parametrize("nearest", [0.0, 0.5, 0.999, 1.001, 30.0])
def test_regression_weights_are_ratios_of_the_kernel(kernel, nearest):
    D = nearest + np.array([[0.0, 0.2, 1.5], [0.1, 3.0, np.inf]])
    kappa, K = as_kernel(kernel), PLAIN[kernel](D)
    weights, derivative, log_kernel_sum = kappa.weights(D)
    np.testing.assert_allclose(weights, K / K.sum(axis=1, keepdims=True), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(log_kernel_sum, np.log(K.sum(axis=1)), rtol=1e-12, atol=1e-15)
    tail = 1e-6 * np.exp(-D) if kernel in ("quartic", "triweight") else 0
    total = K.sum(axis=1)[:, None]
    np.testing.assert_allclose(
        derivative, (kappa.negative_derivative(D) + tail) / total, rtol=1e-11, atol=1e-300
    )
    second_derivative = kappa.normalized_second_derivative(D, log_kernel_sum)
    np.testing.assert_allclose(
        second_derivative, (kappa.second_derivative(D) + tail) / total, rtol=1e-11, atol=1e-300
    )


# --- density -----------------------------------------------------------------------------------


@every_kernel
def test_penalty_of_low_density(X, Y, kernel):
    K = PLAIN[kernel](cdist(Y, Y, "sqeuclidean"))
    density = K.sum(axis=1) - K.diagonal()
    floor = float(np.median(density))
    lack = np.maximum(np.log(floor / density), 0)
    plain = UKRObjective(X, kernel=kernel)
    with_floor = DensityFloor(plain, floor, weight=3.0, kernel=kernel)
    expected = plain.value(Y) + 3 / 14 * (lack**2).sum()
    assert with_floor.value(Y) == pytest.approx(expected, rel=1e-12)
    assert_gradient(with_floor, Y)


def test_no_penalty_at_high_density(X, Y):
    plain = UKRObjective(X)
    with_floor = DensityFloor(plain, floor=1e-3)
    for expected, found in zip(
        plain.value_and_gradient(Y), with_floor.value_and_gradient(Y), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_curvature_of_the_penalty(X, Y):
    def lack(Y):
        K = np.exp(-cdist(Y, Y, "sqeuclidean"))
        return np.maximum(np.log(8.0 / (K.sum(axis=1) - 1)), 0)

    plain = UKRObjective(X)
    penalized = DensityFloor(plain, 8.0, weight=2.0)
    expected = 2 * 2 / 14 * (central_differences(lack, Y) ** 2).sum(axis=0)
    found = penalized.diagonal_curvature(Y) - plain.diagonal_curvature(Y)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_penalty_attracts_an_outlier(X, Y):
    Y[0] = [30.0, 0.0]
    lost = UKRObjective(X)
    assert np.abs(lost.value_and_gradient(Y)[1][0]).max() < 1e-12
    gradient = DensityFloor(lost, weight=0.01).value_and_gradient(Y)[1]
    assert gradient[0, 0] > 0.1


def test_reinsertion(rng):
    t = np.linspace(0, 12, 60)
    X, Y = np.column_stack([np.cos(t), np.sin(t), 0.3 * t]), t[:, None].copy()
    objective = UKRObjective(X)
    Y[[7, 40]] = [[90.0], [-50.0]]
    back = reinsert(objective, Y)
    np.testing.assert_allclose(back[[7, 40], 0], t[[7, 40]], atol=0.5)
    others = np.delete(np.arange(60), [7, 40])
    np.testing.assert_array_equal(back[others], Y[others])
    assert objective.value(back) < objective.value(Y)
    np.testing.assert_array_equal(reinsert(objective, t[:, None]), t[:, None])


# --- box ---------------------------------------------------------------------------------------


@either_way
def test_gradient_and_curvature_in_a_box(X, Y, leave_one_out):
    boxed = Boxed(UKRObjective(X, leave_one_out=leave_one_out), half_width=0.7)
    Z = 3 * Y  # well beyond the bounds
    assert np.abs(boxed.constrained(Z)).max() <= 0.7
    assert_gradient(boxed, Z)
    assert (boxed.diagonal_curvature(Z) > 0).all()
    inside = np.clip(Y, -0.69, 0.69)
    np.testing.assert_allclose(boxed.constrained(boxed.unconstrained(inside)), inside, rtol=1e-12)


def test_a_free_search_in_the_box_finds_what_a_bounded_one_finds(rng):
    t = rng.uniform(size=40)
    X = np.column_stack([np.cos(4 * t), np.sin(4 * t)])
    start = 4 * (t - 0.5)[:, None] + 0.1 * rng.normal(size=(40, 1))
    objective = UKRObjective(X, leave_one_out=False)
    boxed = Boxed(objective, half_width=3.0)

    def search(function, Y, **options):
        def flat(y):
            value, G = function(y.reshape(-1, 1))
            return value, G.ravel()

        strict = {"maxiter": 20000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9}
        return minimize(flat, Y.ravel(), jac=True, method="L-BFGS-B", options=strict, **options)

    bounds = [(-3.0, 3.0)] * 40
    bounded = search(objective.value_and_gradient, start, bounds=bounds)
    free = search(boxed.value_and_gradient, boxed.unconstrained(start))
    Y = boxed.constrained(free.x.reshape(-1, 1))
    assert np.abs(bounded.x).max() == 3.0  # the bounds are active
    assert np.abs(Y).max() == pytest.approx(3.0, abs=1e-6)
    assert objective.value(Y) <= 1.001 * bounded.fun


# --- scale -------------------------------------------------------------------------------------


@every_kernel
def test_best_scale_is_the_best_of_a_fine_grid(rng, kernel):
    t = rng.uniform(0, 10, size=80)
    X = np.column_stack([np.cos(t), np.sin(t), 0.2 * t]) + 0.1 * rng.normal(size=(80, 3))
    Y = 1e-3 * t[:, None] + 5
    found = best_regression_scale(Y, X, kernel)
    scales = np.geomspace(found.scale / 100, found.scale * 100, 400)
    values = [leave_one_out_errors(s * Y, X, kernel).mean() for s in scales]
    assert found.value <= min(values) * 1.001
    assert found.value == pytest.approx(
        leave_one_out_errors(found.scale * Y, X, kernel).mean(), rel=1e-9
    )


def test_patience_finds_the_same_scale_with_fewer_values(rng):
    t = rng.uniform(0, 10, size=80)
    X = np.column_stack([np.cos(t), np.sin(t), 0.2 * t]) + 0.1 * rng.normal(size=(80, 3))
    seen = []

    def value(Y):
        seen.append(np.ptp(Y))
        return float(leave_one_out_errors(Y, X).mean())

    every = minimize_over_scale(value, t[:, None])
    n_every, smallest = len(seen), min(seen)
    seen.clear()
    assert minimize_over_scale(value, t[:, None], patience=3) == every
    assert len(seen) < n_every
    assert min(seen) > 3 * smallest


def test_best_scale_does_not_depend_on_the_unit(rng):
    t = rng.uniform(0, 10, size=60)
    X, Y = np.column_stack([np.cos(t), np.sin(t)]), t[:, None]
    plain = best_regression_scale(Y, X)
    for unit in (1e-150, 1e150):
        other = best_regression_scale(unit * Y, X)
        assert other.scale * unit == pytest.approx(plain.scale, rel=1e-6)
        assert other.value == pytest.approx(plain.value, rel=1e-6)


def test_best_scale_with_coinciding_points(rng):
    t = np.repeat(rng.uniform(0, 10, size=20), 3)
    X = np.column_stack([np.cos(t), np.sin(t)])
    found = best_regression_scale(t[:, None], X)
    assert 0 < found.scale < np.inf
    assert found.value < 0.1
