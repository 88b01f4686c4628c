import sys

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.manifold import TSNE
from sklearn.manifold import trustworthiness as reference

from manifoldry import PCA, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import assess, continuity, coranking, knn_accuracy, shepard, stress

X, y = load_iris(return_X_y=True)
Y = X[:, :2] + np.random.default_rng(0).normal(scale=0.05, size=(150, 2))


@pytest.fixture(scope="module")
def found():
    return assess(X, Y, y, n_neighbors=10)


def test_metrics_equal_those_of_the_functions(found):
    assert found.metrics["trustworthiness"] == pytest.approx(reference(X, Y, n_neighbors=10), 1e-3)
    assert found.metrics["continuity"] == continuity(X, Y, n_neighbors=10)
    assert found.metrics["rnx_area"] == coranking(X, Y).area
    assert found.metrics["distance_rank_correlation"] == shepard(X, Y).spearman
    assert found.metrics["stress"] == stress(X, Y)
    assert found.metrics["label_accuracy"] == knn_accuracy(Y, y, n_neighbors=10)
    assert found.metrics["label_accuracy_in_data"] == knn_accuracy(X, y, n_neighbors=10)
    assert found.baseline["rnx_area"] == coranking(X, PCA(2).fit(X)).area


def test_values_per_point_average_to_the_metrics(found):
    for name in ("trustworthiness", "continuity", "neighbor_preservation"):
        assert found.per_point[name].mean() == pytest.approx(found.metrics[name])
    assert {"anisotropy", "magnification"} <= found.per_point.keys()
    assert all(values.shape == (150,) for values in found.per_point.values())


def test_the_summary_recommends_pca_if_it_is_better(found):
    assert "PCA keeps more neighbors" in found.summary
    assert "PCA keeps more neighbors" in str(found)
    assert found.gains["rnx_area"].high < 0


def test_pca_is_not_compared_with_itself():
    same = 3 * PCA(2).fit_transform(X)[:, ::-1]
    found = assess(X, same.astype(np.float32))
    assert found.is_pca
    assert "PCA" not in str(found)
    assert found.metrics["rnx_area"] == pytest.approx(found.baseline["rnx_area"], abs=1e-3)
    jittered = assess(X, same + 0.01 * np.random.default_rng(0).normal(size=same.shape))
    assert not jittered.is_pca
    assert "as many neighbors as PCA" in jittered.summary


def test_an_estimator_may_have_more_coordinates_than_the_data(recwarn):
    found = assess(X[:, :2], LaplacianEigenmaps(4).fit(X[:, :2]))
    assert not [w for w in recwarn if "pass the data first" in str(w.message)]
    assert found.baseline == {}


def test_the_summary_of_good_and_random_embeddings():
    digits = load_digits()
    data, labels = digits.data[:600], digits.target[:600]
    good = assess(data, TSNE(2, random_state=0).fit_transform(data), labels)
    assert "Points that are close in this embedding are close in the data." in good.summary
    assert "keeps more neighbors than PCA" in good.summary
    assert "Labels are separated as well as in the data" in good.summary
    noise = assess(data, np.random.default_rng(0).normal(size=(600, 2)), labels)
    assert "no better than a random one" in noise.summary
    flat = assess(data, PCA(2).fit(data), labels)
    assert "close in this embedding are far apart in the data" in flat.summary
    assert "their neighbors are far from them in the data" in flat.summary
    assert "Labels are mixed more" in flat.summary


def test_redundant_coordinates_are_mentioned():
    strip = make_strip(500, aspect=6, random_state=0).X
    model = LaplacianEigenmaps(2).fit(strip)
    assert "almost a function of those before it" in assess(strip, model).summary
    # Coordinates of an array have no order and may be rotated.
    assert "unpredictability" not in assess(strip, model.embedding_).metrics


def test_unusual_input():
    with pytest.warns(ManifoldryWarning, match="pass the data first"):
        assess(Y, X)
    assert "rough indication" in assess(X[::10], Y[::10]).summary
    many = np.random.default_rng(0).normal(size=(200, 30))
    assert np.isfinite(assess(many, many[:, :20]).metrics["magnification"])
    copies = np.vstack([np.zeros((20, 2)), np.random.default_rng(0).normal(size=(40, 2))])
    assert np.isfinite(assess(copies, copies).metrics["magnification"])


def test_frames_of_different_order_are_refused():
    frame, shuffled = pandas.DataFrame(X), pandas.DataFrame(Y).sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="different indexes"):
        assess(frame, shuffled)
    assert assess(frame, shuffled.loc[frame.index]).metrics == assess(X, Y).metrics


def test_labels_that_no_map_separates_are_called_so():
    rng = np.random.default_rng(1)
    by_chance = rng.integers(4, size=150)
    found = assess(X, Y, by_chance)
    largest = np.bincount(by_chance).max() / 150
    assert found.largest_label == pytest.approx(largest)
    accuracies = [found.metrics[f"label_accuracy{end}"] for end in ("", "_in_data")]
    said = (
        "Labels are not clearly separated, neither in this embedding nor in the data: label "
        f"accuracy {accuracies[0]:.2f}, {accuracies[1]:.2f} in the data, and {largest:.2f} of the "
        "points have the most frequent label."
    )
    assert said in found.summary
    # Nine in ten by naming the most frequent label alone.
    rare = np.arange(150) % 10 == 0
    assert assess(X, Y, rare).metrics["label_accuracy"] > 0.85
    assert "Labels are not clearly separated, neither" in assess(X, Y, rare).summary


def test_labels_that_a_map_does_not_separate():
    rng = np.random.default_rng(0)
    plane, floor = rng.uniform(0, 10, (200, 2)), np.arange(200) % 2
    said = assess(np.column_stack([plane, 8 * floor]), plane, floor).summary
    assert "Labels are not clearly separated in this embedding: label accuracy" in said
    assert "1.00 in the data, and 0.50 of the points have the most frequent label." in said
    # A rare label that the map finds is separated, although few points are left for that.
    rare = np.arange(200) < 12
    far = plane + 100 * rare[:, None]
    found = assess(np.column_stack([far, floor]), far, rare)
    assert found.largest_label == 0.94
    assert "Labels are separated as well as in the data" in found.summary


@pytest.mark.parametrize("labels", [np.zeros(150), np.arange(150), X[:, 0] + np.arange(150)])
def test_labels_that_are_not_groups_are_refused(labels):
    with pytest.raises(ValueError, match="but must have 2 to 75"):
        assess(X, Y, labels)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_labels_are_found_before_the_work(missing, monkeypatch):
    module = sys.modules["manifoldry.metrics.assess"]  # the function hides its module
    monkeypatch.setattr(module, "compare_ranks", lambda *_: pytest.fail("metrics were computed"))
    labels = np.array(list("ab") * 75, dtype=object)
    labels[7] = missing
    with pytest.raises(ValueError, match=r"labels are missing .* for 1 of 150 points"):
        assess(X, Y, labels)
    with pytest.raises(ValueError, match="but must have 2 to 75"):
        assess(X, Y, np.zeros(150))


def test_distances_along_a_graph_have_no_baseline():
    roll, sheet = make_swiss_roll(1000, random_state=0)
    graph = NeighborGraph.build(roll, 7)
    found = assess(graph, sheet)
    assert found.baseline == {}
    assert found.metrics["distance_rank_correlation"] > 0.99
    assert "magnification" not in found.per_point
    assert "PCA" not in str(found)


def test_points_that_were_not_embedded_are_nan():
    without = Y.copy()
    without[:3] = np.nan
    values = assess(X, without, y).per_point["trustworthiness"]
    assert np.isnan(values[:3]).all()
    assert np.isfinite(values[3:]).all()


@pytest.mark.parametrize("n", [4, 5, 10])
def test_a_few_points(n):
    assert 0 <= assess(X[::15][:n], Y[::15][:n]).metrics["trustworthiness"] <= 1


def test_coinciding_points_are_refused():
    with pytest.raises(ValueError, match="coincide"):
        assess(np.ones((30, 3)), np.arange(30.0))
