"""Relative distances, against scikit-learn's neighbors and scipy's distributions."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from manifoldry import PCA
from manifoldry.exceptions import NoveltyWarning
from manifoldry.extension.far_rows import FAR, VERY_FAR, are_many
from manifoldry.extension.relative_distance import RelativeDistance, upper_quantile


@pytest.fixture(name="rng")
def generator():
    return np.random.default_rng(0)


def ratios(X, new=None):
    """Mean distance to three rows, over the root of local times median spacing, by scikit-learn."""
    index = NearestNeighbors(n_neighbors=10).fit(X)
    spacing = index.kneighbors()[0][:, :3].mean(axis=1)
    distances, neighbors = index.kneighbors(new)
    scale = np.sqrt(spacing[neighbors].mean(axis=1) * np.median(spacing))
    return distances[:, :3].mean(axis=1) / scale


def test_one_is_the_median_of_the_references_and_one_percent_exceed_two(rng):
    X = rng.normal(size=(999, 4))
    own = ratios(X)
    typical, far = np.median(own), np.sort(own)[-10]
    assert (own > far).mean() < 0.01
    new = rng.normal(size=(200, 4)) * 2
    ratio = ratios(X, new) / typical
    expected = np.where(ratio < 1, ratio, 1 + (ratio - 1) / (far / typical - 1))
    np.testing.assert_allclose(RelativeDistance.of_points(X).of(new), expected, rtol=1e-10)


@pytest.mark.parametrize("contrast", [1.0, 30.0])
def test_held_out_rows_are_rarely_far_whatever_the_density(rng, contrast):
    """Two clusters, one of them sparser by `contrast`: rows of both are alike near."""
    X = rng.normal(size=(1200, 3)) * np.repeat([1.0, contrast], 600)[:, None]
    X[600:] += 20 * contrast
    seen, held = X[::2], X[1::2]
    distance = RelativeDistance.of_points(seen).of(held)
    assert (distance > FAR).mean() < 0.03
    assert 0.8 < np.median(distance) < 1.2
    assert (RelativeDistance.of_points(seen).of(seen) <= FAR).mean() > 0.99


def test_grows_with_the_distance_from_the_data(rng):
    X = rng.uniform(size=(2000, 2))
    distance = RelativeDistance.of_points(X)
    inside = distance.of(rng.uniform(0.1, 0.9, size=(500, 2)))
    assert 0.8 < np.median(inside) < 1.2
    line = np.column_stack([np.linspace(1.1, 5.0, 30), np.full(30, 0.5)])
    outside = distance.of(line)
    assert (np.diff(outside) > 0).all()
    assert (outside > FAR).all()


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_has_no_unit(rng, scale):
    X, new = rng.uniform(size=(100, 2)), rng.uniform(-1, 2, size=(20, 2))
    expected = RelativeDistance.of_points(X).of(new)
    found = RelativeDistance.of_points(X * scale).of(new * scale)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_of_rows_most_of_which_coincide(rng):
    X = np.vstack([np.zeros((60, 2)), rng.normal(size=(20, 2))])
    new = np.array([[0.0, 0.0], [9.0, 9.0], [90.0, 90.0]])
    found = RelativeDistance.of_points(X).of(new)
    assert np.isfinite(found).all()
    assert found[0] == 0
    assert found[2] > found[1] > FAR
    apart = RelativeDistance.of_points(np.vstack([X, np.full((60, 2), 500.0)]))
    assert apart.of(np.full((1, 2), 500.0)) == 0
    np.testing.assert_allclose(RelativeDistance.of_points(X * 1e6).of(new * 1e6), found)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_rows(rng, n):
    X = rng.normal(size=(n, 2))
    found = RelativeDistance.of_points(X).of(np.vstack([X, X[:1] + 1e3]))
    assert np.isfinite(found).all()
    assert (found[:-1] <= FAR).all()
    assert found[-1] > FAR


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_all_rows_coincide(scale):
    """There is no unit, so that any other row is infinitely far."""
    new = scale * np.array([[1.0, 1.0], [1.0, 4.0]])
    found = RelativeDistance.of_points(np.full((9, 2), scale)).of(new)
    assert np.array_equal(found, [0, np.inf])
    given = RelativeDistance.of_distances(np.zeros((9, 9))).of(np.array([[0.0] * 9, [scale] * 9]))
    assert np.array_equal(given, [0, np.inf])


@pytest.mark.parametrize("repeat", [np.repeat, lambda X, k, axis: np.tile(X, (k, 1))])
def test_of_repeated_rows_one_counts(rng, repeat):
    X, new = rng.normal(size=(200, 3)), rng.normal(size=(50, 3))
    expected = RelativeDistance.of_points(X).of(new)
    repeated = repeat(X, 4, axis=0)
    np.testing.assert_allclose(RelativeDistance.of_points(repeated).of(new), expected)
    given = RelativeDistance.of_distances(cdist(repeated, repeated)).of(cdist(new, repeated))
    np.testing.assert_allclose(given, expected, rtol=1e-9)
    stored = RelativeDistance.of_points(sparse.csr_array(repeated)).of(sparse.csr_array(new))
    np.testing.assert_allclose(stored, expected, rtol=1e-9)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_features", [3, 30])
def test_rows_whose_distances_overflow_are_infinitely_far(rng, as_rows, n_features):
    X, new = rng.normal(size=(80, n_features)), rng.normal(size=(3, n_features))
    distance = RelativeDistance.of_points(as_rows(X))
    expected = distance.of(as_rows(new))
    found = distance.of(as_rows(np.vstack([new, np.full((1, n_features), 1e200)])))
    assert found[3] == np.inf
    np.testing.assert_allclose(found[:3], expected)


def test_errors_of_a_metric_are_raised(rng):
    """They once counted as far rows."""

    def metric(x, y):
        if max(x[0], y[0]) > 9:
            raise ValueError("out of the domain")
        return np.abs(x - y).sum()

    distance = RelativeDistance.of_points(rng.normal(size=(20, 2)), metric)
    with pytest.raises(ValueError, match="out of the domain"):
        distance.warn_if_far(np.array([[99.0, 0.0]]))


def test_the_number_of_distances_is_bounded(rng):
    """Those among the references are computed once, and new rows need one distance to each."""
    calls = 0

    def metric(x, y):
        nonlocal calls
        calls += 1
        return abs(x[0] - y[0])

    distance = RelativeDistance.of_points(rng.normal(size=(1000, 1)), metric)
    assert calls == 0  # until they are needed
    distance.warn_if_far(np.zeros((1, 1)))
    assert calls <= 300**2 + 300
    calls = 0
    distance.warn_if_far(np.zeros((1, 1)))
    assert calls == 300


def test_nothing_is_measured_if_the_warning_is_ignored():
    def metric(x, y):
        return abs(x[0] - y[0])

    distance = RelativeDistance.of_points(np.arange(20.0)[:, None], metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("ignore", message="another")
        distance.warn_if_far(None)  # the rows are not looked at
        warnings.simplefilter("error", NoveltyWarning)
        with pytest.raises(NoveltyWarning):
            distance.warn_if_far(np.full((5, 1), 999.0))


def test_distances_and_sparse_rows_give_the_same(rng):
    X, new = rng.normal(size=(80, 5)), rng.normal(size=(30, 5))
    expected = RelativeDistance.of_points(X).of(new)
    given = RelativeDistance.of_distances(cdist(X, X)).of(cdist(new, X))
    np.testing.assert_allclose(given, expected, rtol=1e-9)
    stored = RelativeDistance.of_points(sparse.csr_array(X)).of(sparse.csr_array(new))
    np.testing.assert_allclose(stored, expected, rtol=1e-9)


def test_of_many_rows_some_are_kept(rng):
    X = rng.normal(size=(12_000, 2))
    distance = RelativeDistance.of_points(X)
    assert distance.index.n_reference == 1000
    assert 0.8 < np.median(distance.of(rng.normal(size=(500, 2)))) < 1.2


@pytest.mark.parametrize("n_training", [10, 99, 1000])
def test_how_many_far_rows_are_many(n_training):
    """As many as the beta-binomial distribution makes improbable, and a twentieth of the rows."""
    a = 0.01 * (n_training + 1)
    for total in (1, 7, 300):
        chance = stats.betabinom(total, a, n_training + 1 - a)
        for far in range(total + 1):
            expected = far > 0 and far >= total / 20 and chance.sf(far - 1) <= 0.01 + 1e-9
            assert are_many(far, total, n_training) == expected


def test_the_quantile_of_few_values_is_that_of_an_exponential_tail():
    """Of values whose excess over the median is exponential, about 1 % are above it."""
    draws = np.random.default_rng(1).exponential(size=(4000, 20))
    above = np.exp(-np.array([upper_quantile(row) for row in draws]))
    assert 0.005 < np.median(above) < 0.02
    assert upper_quantile(np.arange(199.0)) == 197


def test_warns_once_and_says_how_many(rng):
    distance = RelativeDistance.of_points(rng.normal(size=(300, 3)))
    with pytest.warns(NoveltyWarning, match=r"^6 of 20 rows are unlike the data") as caught:
        distance.warn_if_far(np.vstack([np.zeros((14, 3)), np.full((6, 3), 50.0)]))
    assert len(caught) == 1
    with pytest.warns(NoveltyWarning, match="about 100% of 3000 rows are unlike"):
        distance.warn_if_far(np.full((3000, 3), 50.0))


def test_a_single_row_is_reported_if_it_is_very_far(rng):
    """One of twenty, which as a number could be chance."""
    distance = RelativeDistance.of_points(rng.normal(size=(300, 3)))
    rows = np.vstack([np.zeros((19, 3)), [[9.0, 9.0, 9.0]]])
    largest = distance.of(rows).max()
    assert largest > VERY_FAR
    assert not are_many(1, 20, 300)
    with pytest.warns(NoveltyWarning, match=r"^1 of 20 rows is unlike") as caught:
        distance.warn_if_far(rows)
    assert f"distances up to {largest:.3g} (1 is usual" in str(caught[0].message)
    many = np.repeat(rows[-1:], 10, axis=0)
    with pytest.warns(NoveltyWarning, match=r"^10 of 10 rows are unlike.* up to"):
        distance.warn_if_far(many)
    large = np.vstack([rows[-1:], np.zeros((2999, 3))])
    with pytest.warns(NoveltyWarning, match=r"^1 of 300 rows, measured of 3000, is unlike"):
        distance.warn_if_far(large)


def test_a_single_row_that_is_not_very_far_may_be_chance(rng, recwarn):
    distance = RelativeDistance.of_points(rng.normal(size=(300, 3)))
    rows = np.vstack([np.zeros((19, 3)), [[3.5, 3.5, 0.0]]])
    assert FAR < distance.of(rows).max() < VERY_FAR
    distance.warn_if_far(rows)
    assert not recwarn.list


@pytest.mark.parametrize("n", [200, 1500])
def test_distances_measured_later_are_those_of_the_fit(rng, n):
    X, new = rng.normal(size=(n, 15)), rng.normal(size=(20, 15))
    early, late, given = PCA().fit(X), PCA().fit(X), X.copy()
    expected = early.novelty(new)
    X[:] = 0.0
    np.testing.assert_array_equal(late.novelty(new), expected)
    again = pickle.loads(pickle.dumps(PCA().fit(given)))
    np.testing.assert_array_equal(again.novelty(new), expected)
