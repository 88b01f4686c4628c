"""Any data: new points and the inverse."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from .models import models
from .outcomes import Refusal, attempt, embedded, fitted
from .samples import samples


def check_distances(distances, n):
    """Infinite ones are allowed: rows far beyond the data, or all training rows coincide."""
    assert distances.shape == (n,)
    assert not np.isnan(distances).any()
    assert (distances >= 0).all()


def size_of(estimator):
    return np.abs(estimator.embedding_[embedded(estimator)]).max()


@given(models(), samples(least=2))
def test_training_rows_get_their_coordinates(model, sample):
    M = model.input(sample.points)
    estimator = fitted(model, sample.points)
    assume(not isinstance(estimator, Refusal))
    placed = attempt(lambda: estimator.transform(M))
    assert not isinstance(placed, Refusal)
    # Of identical rows the coordinates of the first are returned.
    first = np.array([np.flatnonzero((row == M).all(axis=1))[0] for row in M])
    expected = estimator.embedding_[first]
    if model.finds_training_rows:
        np.testing.assert_array_equal(placed, expected)
        return
    rows = embedded(estimator) & (first == np.arange(len(M)))
    error = np.abs(placed[rows] - expected[rows]).max(initial=0.0)
    rounding = 100 * np.finfo(M.dtype).eps
    assert error <= 1e6 * rounding * size_of(estimator) + rounding * np.abs(M).max()


@given(models(), samples(least=4), st.integers(0, 99))
def test_rows_do_not_depend_on_one_another(model, sample, seed):
    X, rng = sample.points, np.random.default_rng(seed)
    estimator = fitted(model, X)
    assume(not isinstance(estimator, Refusal))
    near = X[rng.integers(0, len(X), 4)] * (1 + 0.01 * rng.standard_normal((4, 1)))
    new = model.between(np.vstack([X[:2], near.astype(X.dtype)]), X)
    together = attempt(lambda: estimator.transform(new))
    assume(not isinstance(together, Refusal))
    tolerance = 1e-7 if X.dtype == np.float64 else 1e-5
    for i in range(len(new)):
        alone = attempt(lambda i=i: estimator.transform(new[i : i + 1]))
        np.testing.assert_allclose(
            alone[0], together[i], rtol=tolerance, atol=tolerance * size_of(estimator)
        )


@given(models(), samples(least=4), st.sampled_from([0.0, 0.5, 1.1, -3.0, 1e6]), st.integers(0, 99))
def test_new_points_are_finite(model, sample, factor, seed):
    X = sample.points
    estimator = fitted(model, X)
    assume(not isinstance(estimator, Refusal))
    noise = np.random.default_rng(seed).standard_normal((5, X.shape[1])) * np.abs(X).max() / 100
    rows = (X[:5] * factor + noise[: len(X)]).astype(X.dtype)
    assume(np.isfinite(rows).all())
    new = model.between(rows, X)
    placed = attempt(lambda: estimator.transform(new))
    distances = attempt(lambda: estimator.novelty(new))
    if not isinstance(distances, Refusal):
        check_distances(distances, len(rows))
        both = attempt(lambda: estimator.transform(new, return_distance=True))
        expected = placed if isinstance(placed, Refusal) else (placed, distances)
        np.testing.assert_equal(both, expected)
    if not isinstance(placed, Refusal) and embedded(estimator).all():
        assert placed.shape == (len(rows), estimator.embedding_.shape[1])
        assert placed.dtype == X.dtype
        assert np.isfinite(placed).all()


@given(models(lambda method: method.takes == "data"), samples(least=4), st.integers(0, 99))
def test_inverse_is_finite(model, sample, seed):
    X = sample.points
    estimator = fitted(model, X)
    assume(not isinstance(estimator, Refusal))
    Y = estimator.embedding_[embedded(estimator)]
    noise = np.random.default_rng(seed).standard_normal(Y.shape) * size_of(estimator)
    with np.errstate(over="ignore"):
        Z = np.vstack([Y, Y + noise.astype(Y.dtype), Y[:1] * 0])
    assume(np.isfinite(Z).all())
    both = attempt(lambda: estimator.inverse_transform(Z, return_distance=True))
    assume(not isinstance(both, Refusal))
    back, distances = both
    check_distances(distances, len(Z))
    np.testing.assert_array_equal(attempt(lambda: estimator.inverse_transform(Z)), back)
    assert back.shape == (len(Z), X.shape[1])
    assert np.isfinite(back).all()
