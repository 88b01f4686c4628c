import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import silhouette_samples, silhouette_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from zadu.measures import neighborhood_hit

from manifoldry.metrics import knn_accuracy, silhouette

X, y = load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=1e-6, size=X.shape)  # no ties


@pytest.mark.parametrize("k", [1, 5, 9])
def test_accuracy_is_that_of_leaving_one_out(k):
    voted = cross_val_predict(KNeighborsClassifier(k), X, y, cv=LeaveOneOut())
    # With odd k and two labels at a border ties do not occur; elsewhere there is one label.
    assert knn_accuracy(X, y, n_neighbors=k) == pytest.approx((voted == y).mean())


def test_fraction_of_neighbors_is_zadus_hit():
    hit = neighborhood_hit.measure(X, y, 7)["neighborhood_hit"]
    assert knn_accuracy(X, y, n_neighbors=7, per_point=True).mean() == pytest.approx(hit)


def test_ties_go_to_the_nearest():
    line = np.array([0.0, 1.0, -2.0, 10.0, 11.0])
    # Of the two nearest of the first point one has each label; the nearer is "b".
    assert knn_accuracy(line, list("abaab"), n_neighbors=2, per_point=True)[0] == 0.5
    assert knn_accuracy(line[:3], list("aba"), n_neighbors=2) == pytest.approx(1 / 3)


def test_silhouettes_are_scikit_learns():
    assert silhouette(X, y) == pytest.approx(silhouette_score(X, y))
    np.testing.assert_allclose(silhouette(X, y, per_point=True), silhouette_samples(X, y))
    alone = np.append(y[:-1], 7)  # a label of one point has silhouette 0
    np.testing.assert_allclose(silhouette(X, alone, per_point=True), silhouette_samples(X, alone))


def test_sampled_silhouettes_cover_the_exact():
    found = [silhouette(X, y, sample=60, random_state=seed) for seed in range(40)]
    exact = silhouette_score(X, y)
    assert np.mean([each.low <= exact <= each.high for each in found]) >= 0.85


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (y[:-1], r"expected \(150,\)"),
        (np.zeros(150), "1 different values"),
        (np.arange(150), "fewer than the number of points"),
        (np.full(150, np.nan), "missing"),
        (["a", None, "b"] * 50, "missing .* for 50 of 150"),
        (np.array(["a", np.nan, "b"] * 50, dtype=object), "missing"),
    ],
)
def test_bad_labels_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        silhouette(X, labels)


def test_too_many_neighbors():
    with pytest.raises(ValueError, match="n_neighbors=150 must be less than the 150"):
        knn_accuracy(X, y, n_neighbors=150)


def test_labels_of_two_types_differ_and_sparse_data_are_read():
    from scipy import sparse

    line = np.arange(4.0)[:, None]
    assert knn_accuracy(line, np.array([1, "1", 1, "1"], dtype=object), n_neighbors=1) == 0
    assert knn_accuracy(sparse.csr_array(X), y) == knn_accuracy(X, y)
    assert knn_accuracy(line[:3], [0, 0, 0]) == 1  # as many voters as there are
