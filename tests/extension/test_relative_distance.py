"""Relative distances, against scikit-learn's neighbors and scipy's distributions."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from manifoldry.exceptions import NoveltyWarning
from manifoldry.extension.relative_distance import FAR, RelativeDistance, are_many, upper_quantile


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
    np.testing.assert_allclose(RelativeDistance.of_points(X * 1e6).of(new * 1e6), found)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_rows(rng, n):
    X = rng.normal(size=(n, 2))
    found = RelativeDistance.of_points(X).of(np.vstack([X, X[:1] + 1e3]))
    assert np.isfinite(found).all()
    assert (found[:-1] <= FAR).all()
    assert found[-1] > FAR


def test_all_rows_coincide():
    found = RelativeDistance.of_points(np.ones((9, 2))).of(np.array([[1.0, 1.0], [1.0, 4.0]]))
    assert found[0] == 0
    assert np.isfinite(found[1])
    assert found[1] > FAR


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
    assert distance.index.n_reference == 5000
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
