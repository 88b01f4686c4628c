"""Spectral clustering: connected components, shapes k-means cannot separate, new points."""

import warnings

import numpy as np
import pytest
from sklearn import cluster
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import SpectralClustering
from manifoldry.affinity import Binary
from manifoldry.datasets import make_partitioned_circle
from manifoldry.exceptions import DisconnectedGraphWarning


@pytest.mark.slow  # the contract runs them for the defaults
@pytest.mark.parametrize("options", [{"normalize_rows": False}, {"affinity": "binary"}])
def test_scikit_learns_checks_pass(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(SpectralClustering(**options), on_fail=None, on_skip=None)
    assert not [(o["check_name"], o["exception"]) for o in outcomes if o["status"] == "failed"]
    assert not [o for o in outcomes if o["status"] == "xfail"]


def test_components_of_the_graph_are_clusters():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(n, 2)) + 40 * i for i, n in enumerate((50, 30, 70))])
    y = np.repeat([0, 1, 2], [50, 30, 70])
    model = SpectralClustering(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_allclose(model.eigenvalues_, 0, atol=1e-12)


@pytest.mark.parametrize("normalize_rows", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        make_circles(400, factor=0.4, noise=0.04, random_state=0),
        make_moons(400, noise=0.05, random_state=0),
    ],
    ids=["rings", "moons"],
)
def test_shapes_that_k_means_cannot_separate(data, normalize_rows):
    """E1.7."""
    X, y = data
    model = SpectralClustering(2, normalize_rows=normalize_rows, random_state=0)
    assert adjusted_rand_score(y, model.fit_predict(X)) == 1
    plain = cluster.KMeans(2, n_init=10, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, plain) < 0.5


def test_functions_are_nearly_constant_on_arcs():
    sample = make_partitioned_circle(150, random_state=0)
    X, labels = sample.X, sample.labels
    model = SpectralClustering(3, normalize_rows=False, n_neighbors=12).fit(X)
    assert adjusted_rand_score(labels, model.labels_) == 1
    means = np.array([model.embedding_[labels == c].mean(axis=0) for c in range(3)])
    inside = max(model.embedding_[labels == c].std(axis=0).max() for c in range(3))
    between = min(np.linalg.norm(means[a] - means[b]) for a, b in [(0, 1), (0, 2), (1, 2)])
    assert inside < 0.1 * between


def test_agrees_with_scikit_learn():
    X, _ = make_moons(300, noise=0.08, random_state=1)
    ours = SpectralClustering(  # scikit-learn counts the point itself, and keeps rows as they are
        2, n_neighbors=9, affinity=Binary(symmetrize="mean"), normalize_rows=False
    ).fit_predict(X)
    theirs = cluster.SpectralClustering(
        2, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit_predict(X)
    assert adjusted_rand_score(ours, theirs) > 0.95


def test_new_points_join_the_right_cluster():
    X, y = make_circles(600, factor=0.4, noise=0.04, random_state=0)
    model = SpectralClustering(2).fit(X[:400])
    assert np.array_equal(model.predict(X[:400]), model.labels_)
    truth = adjusted_rand_score(
        np.r_[y[:400], y[400:]], np.r_[model.labels_, model.predict(X[400:])]
    )
    assert truth == 1
    alone = np.concatenate([model.predict(x[None]) for x in X[400:420]])
    assert np.array_equal(alone, model.predict(X[400:420]))


def test_the_order_of_rows_does_not_matter():
    X, _ = make_moons(200, noise=0.05, random_state=0)
    order = np.random.default_rng(0).permutation(200)
    plain, shuffled = SpectralClustering(2).fit(X), SpectralClustering(2).fit(X[order])
    assert adjusted_rand_score(plain.labels_[order], shuffled.labels_) == 1


def test_too_many_clusters():
    with pytest.raises(ValueError, match="n_clusters=9 must be at most n_samples - 1=4"):
        SpectralClustering(9).fit(np.random.default_rng(0).normal(size=(5, 2)))


@pytest.mark.parametrize("given", [None, 2.0, "3", True])
def test_the_number_of_clusters_is_a_whole_number(given):
    with pytest.raises(TypeError, match=f"n_clusters={given!r} must be a whole number; pass n_cl"):
        SpectralClustering(n_clusters=given).fit(np.random.default_rng(0).normal(size=(30, 2)))


def test_new_points_have_unit_rows_too():
    X, _ = make_moons(200, noise=0.05, random_state=0)
    model = SpectralClustering(2).fit(X[:150])
    for Y in (model.embedding_, model.transform(X[150:])):
        np.testing.assert_allclose(np.linalg.norm(Y, axis=1), 1.0)
    plain = SpectralClustering(2, normalize_rows=False).fit(X[:150])
    assert np.ptp(np.linalg.norm(plain.transform(X[150:]), axis=1)) > 1e-3


def test_more_components_than_clusters_are_named():
    X, _ = make_blobs(200, centers=[[0, 0], [50, 0], [0, 50], [50, 50]], random_state=0)
    with pytest.warns(
        DisconnectedGraphWarning, match="4 connected components, more than n_clusters=2"
    ):
        SpectralClustering(2).fit(X)


def test_the_hint_counts_compact_clusters():
    X, _ = make_blobs(500, centers=5, random_state=0)
    assert SpectralClustering(3).fit(X).dimension_hint_ == 5
