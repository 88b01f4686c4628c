"""Metrics computed on a device are those of the CPU."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

import manifoldry
from manifoldry import metrics
from manifoldry.device import using_device
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import distance_rows
from manifoldry.metrics.coranking import all_ranks
from manifoldry.metrics.on_device import average_ranks
from manifoldry.metrics.pair import DataEmbeddingPair
from manifoldry.metrics.shepard import shepard_of

N = 230


def gaussian(n_features, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(N, n_features)).astype(dtype)


def gray_levels():
    """Whole numbers with many equal distances, and rows that repeat others."""
    X = np.random.default_rng(1).integers(0, 3, size=(N, 20)).astype(float)
    X[7] = X[100] = X[3]
    return X


DATA = {
    "few": gaussian(3),
    "many": gaussian(40),
    "single": gaussian(40, np.float32),
    "odd": gaussian(15),
    "ties": gray_levels(),
    "far": gaussian(30) + 1e6,
    "tiny": 1e-20 * gaussian(30),
    "line": np.arange(N, dtype=float)[:, None],
}


def embedding(X):
    rng = np.random.default_rng(2)
    return X[:, :2] / np.abs(X[:, :2]).max() + 0.1 * rng.normal(size=(len(X), 1))


RANKS = {
    "trustworthiness": lambda X, Y: metrics.trustworthiness(X, Y, per_point=True),
    "many neighbors": lambda X, Y: metrics.trustworthiness(X, Y, n_neighbors=70, per_point=True),
    "continuity": lambda X, Y: metrics.continuity(X, Y, per_point=True),
    "preservation": lambda X, Y: metrics.neighbor_preservation(X, Y, per_point=True),
    "sample": lambda X, Y: metrics.trustworthiness(X, Y, sample=50, random_state=0),
    "coranking": lambda X, Y: metrics.coranking(X, Y).q_nx,
    "area": lambda X, Y: metrics.coranking(X, Y, sample=60, random_state=0).area_per_point,
    "matrix": lambda X, Y: metrics.coranking_matrix(X, Y),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("metric", RANKS)
def test_ranks_are_those_of_the_cpu(device, name, metric):
    X, value = DATA[name], RANKS[metric]
    Y = embedding(X)
    with using_device(device), warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldryWarning)
        found = value(X, Y)
    np.testing.assert_allclose(found, value(X, Y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", ["trustworthiness", "sample", "coranking"])
def test_ranks_of_many_blocks(device, metric, monkeypatch):
    monkeypatch.setattr(distance_rows, "pairs_at_a_time", lambda device: 20 * N)
    test_ranks_are_those_of_the_cpu(device, "many", metric)


@pytest.mark.parametrize("metric", ["trustworthiness", "coranking"])
def test_precomputed_distances(device, metric):
    X = gray_levels()
    Y, D = embedding(X), cdist(X, X).astype(np.float32)

    def value():
        return getattr(metrics, metric)(D, Y, metric="precomputed")

    with using_device(device):
        found = value()
    assert getattr(found, "area", found) == getattr(value(), "area", value())


def test_many_neighbors_are_sorted(device, monkeypatch):
    monkeypatch.setattr("manifoldry.metrics.on_device._MOST_SELECTED", 10)
    X = DATA["ties"]
    with using_device(device):
        found = RANKS["many neighbors"](X, embedding(X))
    np.testing.assert_array_equal(found, RANKS["many neighbors"](X, embedding(X)))


def test_all_ranks_of_rows(device):
    keys = np.random.default_rng(0).integers(0, 40, size=(300, 70)) / 7.0
    keys[5], keys[:, 3] = 0.0, np.inf
    with using_device(device):
        found = device.host(all_ranks(device.array(keys)))
    np.testing.assert_array_equal(found, all_ranks(keys))


OTHERS = {
    "distortion": lambda X, Y: metrics.local_distortion(X, Y).stretch,
    "stress of points": lambda X, Y: metrics.stress(X, Y, per_point=True),
    "stress": lambda X, Y: metrics.stress(X, Y),
    "silhouettes": lambda X, Y: metrics.silhouette(Y, LABELS, per_point=True),
    "silhouettes in data": lambda X, Y: metrics.silhouette(X, LABELS, per_point=True),
    "accuracy": lambda X, Y: metrics.knn_accuracy(Y, LABELS),
}
LABELS = np.arange(N) % 3


@pytest.mark.parametrize("name", ["few", "many", "single", "ties"])
@pytest.mark.parametrize("metric", OTHERS)
def test_other_metrics_are_those_of_the_cpu(device, name, metric):
    X, value = DATA[name], OTHERS[metric]
    with using_device(device), warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldryWarning)
        found = value(X, embedding(X))
    np.testing.assert_allclose(found, value(X, embedding(X)), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", DATA)
def test_shepard_diagram_of_groups(device, name):
    pair = DataEmbeddingPair.of(DATA[name], embedding(DATA[name]))
    options = {"random_state": 0, "all_pairs_up_to": 100, "group_size": 20}
    expected = shepard_of(pair, **options)
    with using_device(device):
        found = shepard_of(DataEmbeddingPair.of(DATA[name], embedding(DATA[name])), **options)
        spearman = found.spearman
    unit = expected.data_distances.max()
    for part in ("data_distances", "embedding_distances"):
        values = getattr(found, part) / unit, getattr(expected, part) / unit
        np.testing.assert_allclose(*values, rtol=1e-6, atol=1e-12)
    assert found.batches == expected.batches
    assert spearman == pytest.approx(expected.spearman, abs=2e-3)


def test_average_ranks(device):
    values = np.random.default_rng(0).integers(0, 1000, 40_000) / 7
    with using_device(device):
        np.testing.assert_array_equal(average_ranks(values), rankdata(values))


@pytest.mark.parametrize("name", ["single", "ties"])
def test_assessment(device, name):
    X = DATA[name]
    with using_device(device):
        found = manifoldry.assess(X, embedding(X), LABELS)
    expected = manifoldry.assess(X, embedding(X), LABELS)
    tol = 2e-3 if name == "ties" else 1e-6  # rounding breaks ties of distances in Shepard diagrams
    for part in ("metrics", "baseline", "gains"):
        for key, value in getattr(expected, part).items():
            assert getattr(found, part)[key] == pytest.approx(value, rel=tol, abs=1e-9), key
    with using_device(device):
        per_point = found.per_point
    for key, values in expected.per_point.items():
        np.testing.assert_allclose(per_point[key], values, rtol=1e-6, err_msg=key)


def test_other_distances_are_compared_on_the_cpu(device):
    X = DATA["few"]
    message = "comparison of all pairs runs on the CPU.*only Euclidean"
    with using_device(device), pytest.warns(ManifoldryWarning, match=message):
        found = metrics.trustworthiness(X, embedding(X), metric="manhattan")
    assert found == metrics.trustworthiness(X, embedding(X), metric="manhattan")


def test_too_little_memory_is_said(device, monkeypatch):
    X = DATA["many"]
    monkeypatch.setattr(type(device), "free_memory", 1000)
    with using_device(device), pytest.raises(MemoryError, match="comparing 230 points"):
        metrics.trustworthiness(X, embedding(X))
