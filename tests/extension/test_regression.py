"""Local regression of the data on the embedding, and the distance from the embedding."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from manifoldry.extension import regression as regression_module
from manifoldry.extension.regression import (
    EmbeddingSpacing,
    LocalRegression,
    PredictionErrors,
    Smoother,
    gaussian_weights,
    linear_weights,
    prediction_error,
)


@pytest.fixture
def rng():
    return np.random.default_rng(13)


def with_smoother(regression, degree, bandwidth):
    regression.__dict__["smoother"] = Smoother(degree, bandwidth)
    return regression


# --- weights -----------------------------------------------------------------------------------


def test_gaussian_weights_are_the_formula(rng):
    distances = np.sort(rng.uniform(size=(6, 9)), axis=1)
    width = rng.uniform(0.3, 1, 6)
    raw = np.exp(-(distances**2) / (2 * width[:, None] ** 2))
    np.testing.assert_allclose(
        gaussian_weights(distances, width), raw / raw.sum(axis=1, keepdims=True), rtol=1e-13
    )


def test_gaussian_weights_never_divide_zero_by_zero():
    distances = np.array([[1e8, 1e8 + 1, 2e8], [0, 0, 1], [0, 1e-300, 1], [1e-320, 1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = gaussian_weights(distances, np.array([1.0, 0.0, 1e-301, 1e-320]))
    np.testing.assert_array_equal(weights[0], [1, 0, 0])
    np.testing.assert_array_equal(weights[1], [0.5, 0.5, 0])
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_linear_weights_are_weighted_least_squares(rng):
    neighbors, Z = rng.normal(size=(5, 12, 3)), rng.normal(size=(5, 3))
    weights = rng.uniform(0.1, 1, size=(5, 12))
    weights /= weights.sum(axis=1, keepdims=True)
    X = rng.normal(size=(5, 12))
    actual = (linear_weights(weights, neighbors, Z) * X).sum(axis=1)
    for q in range(5):
        design = np.hstack([np.ones((12, 1)), neighbors[q] - Z[q]])
        root = np.sqrt(weights[q])
        expected = np.linalg.lstsq(design * root[:, None], X[q] * root, rcond=None)[0][0]
        np.testing.assert_allclose(actual[q], expected, rtol=1e-8)


def test_linear_weights_fade_to_constant_where_there_is_no_spread(rng):
    """Neighbors on a line: the gradient across it cannot be estimated."""
    t = rng.normal(size=(1, 10, 1))
    neighbors = np.concatenate([t, 2 * t], axis=2)
    weights = np.full((1, 10), 0.1)
    on_line = linear_weights(weights, neighbors, np.array([[0.3, 0.6]]))
    off_line = linear_weights(weights, neighbors, np.array([[0.3 + 2.0, 0.6 - 1.0]]))
    np.testing.assert_allclose((on_line * t[..., 0]).sum(), 0.3, rtol=1e-9)
    np.testing.assert_allclose(off_line, on_line, atol=1e-8)


def test_far_positions_get_what_the_edge_of_the_neighbors_supports(rng):
    """A linear function grows with distance; the prediction must not."""
    neighbors = rng.uniform(size=(1, 30, 2))
    X = neighbors[0] @ np.array([3.0, -2.0])
    weights = np.full((1, 30), 1 / 30)
    near, far = (
        float(linear_weights(weights, neighbors, np.array([[t, t]]))[0] @ X) for t in (2e3, 2e6)
    )
    np.testing.assert_allclose(near, far, rtol=1e-3)
    assert abs(far - X.mean()) <= 5 * np.sqrt(2) * X.std()


def test_between_neighbors_a_fit_stays_near_those_that_have_the_weight(rng):
    """A steep fit to the few neighbors of large weight must not be extrapolated to the others."""
    neighbors, X = rng.normal(size=(200, 48, 2)), rng.normal(size=(200, 48))
    neighbors[:, :3] *= [0.1, 1e-3]  # three of weight, nearly on a line
    weights = np.full((200, 48), 1e-9)
    weights[:, :3] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    Z = np.full((200, 2), 0.1)
    value = (linear_weights(weights, neighbors, Z) * X).sum(axis=1)
    mean = (weights * X).sum(axis=1)
    spread = np.sqrt((weights * (X - mean[:, None]) ** 2).sum(axis=1))
    assert (abs(value - mean) <= 5 * np.sqrt(2) * spread).all()


def test_linear_weights_of_coinciding_neighbors_are_the_kernel_weights():
    weights = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_array_equal(
        linear_weights(weights, np.ones((1, 3, 2)), np.zeros((1, 2))), weights
    )


# --- regression --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_components", "bandwidth"),
    # A narrower window has fewer neighbors of weight than unknowns, and is not followed far.
    [(1, 0.5), (1, 1.0), (1, 8.0), (2, 0.5), (2, 1.0), (2, 8.0), (4, 2.0), (4, 8.0)],
)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_degree_one_reproduces_linear_functions(rng, bandwidth, n_components, offset):
    Z = rng.uniform(size=(200, n_components))
    A, b = rng.normal(size=(n_components, 5)), rng.normal(size=5)
    regression = with_smoother(LocalRegression(Z + offset, Z @ A + b), 1, bandwidth)
    margin = 0.02 if n_components < 3 else 0.0  # in four dimensions corners are far from anything
    new = rng.uniform(-margin, 1 + margin, size=(50, n_components))
    predicted = regression.predict(new + offset)
    rounding = 1e-9 if offset == 0 else 1e-7  # positions at 1e6 are themselves rounded to 1e-10
    np.testing.assert_allclose(predicted, new @ A + b, atol=rounding)


@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1e9, 1e120])
def test_units_of_map_and_data_do_not_matter(rng, scale):
    Z = rng.uniform(size=(120, 2))
    X = np.sin(3 * Z) + 0.05 * rng.normal(size=(120, 2))
    new = rng.uniform(size=(20, 2))
    plain, scaled = LocalRegression(Z, X), LocalRegression(Z * scale, X / scale)
    assert plain.smoother == scaled.smoother
    np.testing.assert_allclose(scaled.predict(new * scale) * scale, plain.predict(new), rtol=1e-9)
    np.testing.assert_allclose(scaled.error * scale, plain.error, rtol=1e-9)


def test_data_whose_squares_overflow_still_get_the_best_bandwidth(rng):
    Z = rng.uniform(size=(300, 1))
    X = np.sin(6 * Z) + 0.3 * rng.normal(size=(300, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        huge = LocalRegression(Z, X * 1e200)
        assert huge.smoother == LocalRegression(Z, X).smoother
        assert np.isfinite(huge.error)


@pytest.mark.parametrize("seed", range(3))
def test_the_bandwidth_chosen_beats_the_extremes_on_a_noisy_sine(seed):
    rng = np.random.default_rng(seed)
    Z = np.sort(rng.uniform(0, 6, size=(400, 1)), axis=0)
    X = np.sin(Z) + 0.3 * rng.normal(size=Z.shape)
    new = np.linspace(0.2, 5.8, 200)[:, None]
    truth = np.sin(new)

    def true_error(degree=None, bandwidth=None):
        regression = LocalRegression(Z, X)
        if degree is not None:
            with_smoother(regression, degree, bandwidth)
        return np.sqrt(((regression.predict(new) - truth) ** 2).mean())

    chosen = true_error()
    narrow = min(LocalRegression.bandwidths)
    assert chosen < 0.6 * true_error(0, narrow)
    assert chosen < 0.6 * true_error(1, narrow)
    everything = np.sqrt((truth**2).mean())  # what a constant would leave
    assert chosen < 0.25 * everything
    best = min(true_error(*smoother) for smoother in LocalRegression(Z, X)._candidates)
    assert chosen < 1.5 * best


def test_the_error_is_that_of_leaving_out_explicitly(rng):
    Z = rng.uniform(size=(60, 2))
    X = np.sin(4 * Z) + 0.1 * rng.normal(size=Z.shape)
    regression = LocalRegression(Z, X)
    left_out = []
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        smaller = with_smoother(LocalRegression(Z[rest], X[rest]), *regression.smoother)
        left_out.append(((smaller.predict(Z[i : i + 1]) - X[i]) ** 2).sum())
    np.testing.assert_allclose(regression.error, np.sqrt(np.mean(left_out)), rtol=1e-10)


def test_outliers_of_the_embedding_do_not_choose_the_smoother(rng):
    """Smooth data: the linear fit is far better except at five outliers."""
    Z = np.vstack([rng.uniform(size=(400, 2)), rng.uniform(20, 40, size=(5, 2))])
    X = np.hstack([np.sin(Z), np.cos(Z)])
    regression = LocalRegression(Z, X)
    assert regression.smoother.degree == 1


def test_the_sample_is_spread_over_sorted_data():
    spacing = EmbeddingSpacing(np.arange(1999.0)[:, None])
    assert len(spacing.sample) == 1000
    assert spacing.sample[0] == 0
    assert spacing.sample[-1] >= 1996
    assert set(np.diff(spacing.sample)) <= {1, 2}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_few_points(rng, n, n_components):
    Z, X = rng.normal(size=(n, n_components)), rng.normal(size=(n, 4))
    regression = LocalRegression(Z, X)
    predicted = regression.predict(np.vstack([Z, rng.normal(size=(5, n_components)) * 10]))
    assert np.isfinite(predicted).all()
    assert np.isfinite(regression.error)
    if regression.smoother.degree == 0:  # an average stays between the data
        assert (predicted >= X.min(axis=0) - 1e-12).all()
        assert (predicted <= X.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("bandwidth", [0.25, 8.0])
def test_coinciding_positions(rng, degree, bandwidth):
    Z = np.repeat(rng.normal(size=(8, 2)), 10, axis=0)
    X = rng.normal(size=(80, 3))
    regression = with_smoother(LocalRegression(Z, X), degree, bandwidth)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = regression.predict(Z[::10])
    groups = X.reshape(8, 10, 3).mean(axis=1)
    np.testing.assert_allclose(
        predicted, groups, atol=1e-12
    )  # the mean of the data at the position
    assert np.isfinite(LocalRegression(Z, X).error)


def test_all_positions_coincide(rng):
    Z, X = np.ones((9, 2)), rng.normal(size=(9, 3))
    regression = LocalRegression(Z, X)
    assert np.isfinite(regression.predict(np.array([[1.0, 1.0], [5.0, 0.0]]))).all()


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("distance", [1e3, 1e8, 1e16, 1e40])
def test_far_positions_are_finite(rng, degree, distance):
    regression = LocalRegression(rng.normal(size=(100, 2)), rng.normal(size=(100, 3)))
    with_smoother(regression, degree, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = regression.predict(np.array([[distance, 0.0], [0.0, -distance]]))
    assert np.isfinite(predicted).all()
    if degree == 0:
        assert np.abs(predicted).max() <= np.abs(regression.X).max()


def test_predictions_do_not_depend_on_the_batch(rng, monkeypatch):
    Z = rng.uniform(size=(150, 2))
    regression = LocalRegression(Z, np.hstack([np.sin(5 * Z), np.cos(5 * Z)]))
    new = rng.uniform(-0.1, 1.1, size=(40, 2))
    together = regression.predict(new)
    alone = np.vstack([regression.predict(new[i : i + 1]) for i in range(40)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-13)
    blocks = [slice(start, start + 7) for start in range(0, 40, 7)]
    monkeypatch.setattr(regression_module, "row_blocks", lambda n, width: blocks)
    np.testing.assert_allclose(regression.predict(new), together, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_data_are_predicted_dense_and_alike(rng, dtype):
    Z = rng.uniform(size=(90, 2))
    X = (np.sin(5 * Z) * (Z > 0.5)).astype(dtype)
    new = rng.uniform(size=(10, 2))
    dense, from_sparse = LocalRegression(Z, X), LocalRegression(Z, sparse.csr_array(X))
    assert dense.smoother == from_sparse.smoother
    np.testing.assert_allclose(from_sparse.predict(new), dense.predict(new), atol=1e-12)
    assert isinstance(from_sparse.predict(new), np.ndarray)
    np.testing.assert_allclose(from_sparse.error, dense.error)


def test_a_single_precision_map_is_read_in_double(rng):
    Z = rng.uniform(size=(90, 2)).astype(np.float32)
    X = np.sin(5 * Z.astype(float))
    single, double = LocalRegression(Z, X), LocalRegression(Z.astype(float), X)
    np.testing.assert_array_equal(single.predict(Z[:9]), double.predict(Z[:9].astype(float)))
    assert single.error == double.error


# --- spacing -----------------------------------------------------------------------------------


def test_sampled_neighbors_leave_the_point_itself_out(rng):
    Z = np.repeat(rng.normal(size=(30, 2)), 2, axis=0)
    indices, distances = EmbeddingSpacing(Z).sample_neighbors
    assert not (indices == np.arange(60)[:, None]).any()
    np.testing.assert_array_equal(distances[:, 0], 0)  # its duplicate
    assert (distances[:, 1] > 0).all()


@pytest.mark.parametrize("case", ["distinct", "duplicates", "constant", "nothing before"])
def test_errors_of_several_functions_are_those_of_each(case):
    rng = np.random.default_rng(0)
    before = rng.normal(size=(300, 2))
    if case == "duplicates":
        before[150:] = before[:150]
    if case == "nothing before":
        before[:] = 1.0
    errors = PredictionErrors(before)
    for f in (np.sin(before[:, 0]) + 0.1 * rng.normal(size=300), before[:, 1] ** 2, np.zeros(300)):
        f = np.ones(300) if case == "constant" else f
        assert errors(f) == pytest.approx(prediction_error(before, f), rel=1e-12, abs=1e-12)
