"""Evidence of maps, against assess, stability and scikit-learn."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.manifold import trustworthiness

import manifoldry
from manifoldry.explorer import evidence as module
from manifoldry.explorer.evidence import evidence_of, stability_of
from manifoldry.metrics import stability, unpredictability

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)) * [4, 3, 1, 1, 0.5]
LABELS = (X[:, 0] > 0).astype(np.int32)
TASK = {"labels": LABELS, "metric": "euclidean", "seed": 4, "n_refits": 3}


def silent(fraction, text):
    assert text


@pytest.fixture(scope="module")
def model():
    return manifoldry.PCA(2).fit(X)


@pytest.fixture(scope="module")
def found(model):
    return evidence_of(X, model, model.embedding_, TASK, silent)


def metric(found, name):
    return next(each["value"] for each in found["metrics"] if each["name"] == name)


def test_metrics_are_those_of_assess_and_of_scikit_learn(found, model):
    expected = manifoldry.assess(X, model, LABELS, random_state=4)
    for each in found["metrics"]:
        value = expected.metrics[each["name"]]
        assert each["value"] == float(value)
        bounds = (None, None) if value.exact else (value.low, value.high)
        assert (each["low"], each["high"]) == bounds
    assert {"trustworthiness", "label_accuracy"} <= {e["name"] for e in found["metrics"]}
    assert metric(found, "trustworthiness") == pytest.approx(
        trustworthiness(X, model.embedding_, n_neighbors=expected.n_neighbors)
    )
    assert " ".join(found["sentences"])
    assert found["grade"] in ("good", "fair", "poor")
    assert found["sampled"] == ""


def test_values_of_rows_are_those_of_assess(found, model):
    expected = manifoldry.assess(X, model, LABELS, random_state=4).per_point
    assert {name.replace("_", " ") for name in expected} == set(found["colors"])
    for name, values in expected.items():
        color, note = found["colors"][name.replace("_", " ")]
        np.testing.assert_allclose(color, values, rtol=1e-6)
        assert color.dtype == np.float32
        assert note == ""


def test_spectrum_and_redundancy(found, model):
    variances = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    values = np.array(found["spectrum"]["values"])
    padded = np.append(variances, np.zeros(len(values) - 5))  # PCA has five, others are computed
    np.testing.assert_allclose(values / values[0], padded / padded[0], atol=1e-12)
    assert (found["spectrum"]["kept"], found["spectrum"]["title"]) == (2, "eigenvalues of PCA")
    np.testing.assert_allclose(found["redundancy"], unpredictability(model.embedding_))


def test_shepard_diagram(found, model):
    """A histogram of all pairs but the farthest, and the correlation of their ranks."""
    diagram = found["shepard"]
    data, on_map = pdist(X), pdist(model.embedding_)
    counts = diagram["counts"].reshape(diagram["bins"], diagram["bins"])
    expected, _, _ = np.histogram2d(on_map, data, bins=diagram["bins"], range=(
        (0, diagram["map_max"]), (0, diagram["data_max"])))  # fmt: skip
    np.testing.assert_array_equal(counts, expected)
    assert diagram["data_max"] == pytest.approx(np.quantile(data, 0.999))
    assert diagram["correlation"] == pytest.approx(spearmanr(data, on_map).statistic)


def test_kept_neighbors_of_every_size(found, model):
    """R_NX(k) from its definition (Lee & Verleysen 2009)."""
    curve, n = found["coranking"], len(X)
    near = [
        np.argsort(np.linalg.norm(Z[:, None] - Z, axis=2) + np.diag(np.full(n, np.inf)), axis=1)
        for Z in (X, model.embedding_)
    ]
    for k, kept in list(zip(curve["sizes"], curve["kept"], strict=True))[::9]:
        common = np.mean([len(np.intersect1d(a[:k], b[:k])) for a, b in zip(*near, strict=True)])
        assert kept == pytest.approx(((n - 1) * common / k - k) / (n - 1 - k))
    assert curve["sizes"][0] == 1


def test_coordinates_from_elsewhere(model):
    found = evidence_of(X, None, model.embedding_, TASK | {"labels": None}, silent)
    assert found["spectrum"] is None
    assert found["redundancy"] == []
    assert metric(found, "trustworthiness") == pytest.approx(
        float(manifoldry.assess(X, model.embedding_).metrics["trustworthiness"])
    )
    assert not {"label_accuracy"} & {each["name"] for each in found["metrics"]}


def test_another_metric(model):
    found = evidence_of(X, None, model.embedding_, TASK | {"metric": "cityblock"}, silent)
    expected = manifoldry.assess(X, model.embedding_, metric="cityblock")
    assert metric(found, "continuity") == float(expected.metrics["continuity"])


def test_rows_that_are_not_embedded(model):
    Y = model.embedding_.copy()
    Y[::4] = np.nan
    found = evidence_of(X, None, Y, TASK, silent)
    known = np.isfinite(Y).all(axis=1)
    values, _ = found["colors"]["trustworthiness"]
    np.testing.assert_array_equal(np.isfinite(values), known)
    alone = manifoldry.assess(X[known], Y[known]).per_point["trustworthiness"]
    np.testing.assert_allclose(values[known], alone, rtol=1e-6)


def test_values_of_many_rows_are_estimated_from_a_sample(model, monkeypatch):
    """Each row has the value of the nearest row of the sample, and the page says so."""
    monkeypatch.setattr(module, "_RANKED_PAIRS", 120 * 30)
    monkeypatch.setattr(module, "_LEAST_SAMPLE", 10)
    found = evidence_of(X, model, model.embedding_, TASK, silent)
    exact = manifoldry.assess(X, model, LABELS).per_point
    for name in ("trustworthiness", "continuity", "neighbor preservation"):
        values, note = found["colors"][name]
        assert note.startswith("estimated: each row has the value of the nearest of 30 random rows")
        rows = np.flatnonzero(np.isclose(values, exact[name.replace(" ", "_")], rtol=1e-6))
        assert 30 <= len(rows) < 120
        assert set(values) <= set(exact[name.replace(" ", "_")].astype(np.float32))
    for name in ("magnification", "anisotropy"):  # which are known for all
        values, note = found["colors"][name]
        np.testing.assert_allclose(values, exact[name], rtol=1e-6)
        assert note == ""


def test_stability(model):
    found = stability_of(X, manifoldry.PCA(2), model.embedding_, TASK)
    expected = stability(manifoldry.PCA(2), X, n_resamples=3, random_state=4)
    values, note = found["color"]
    np.testing.assert_allclose(values, expected.per_point, rtol=1e-6)
    assert (found["verdict"], found["n_refits"], note) == (expected.verdict, 3, "")
    assert found["variability"] == pytest.approx(float(expected.variability))


def test_stability_of_a_sample(model, monkeypatch):
    monkeypatch.setattr(module, "_MOST_REFITTED", 40)
    found = stability_of(X, manifoldry.PCA(2), model.embedding_, TASK)
    values, note = found["color"]
    assert note.startswith("of a random sample of 40 rows, embedded alone; estimated")
    assert values.shape == (120,)
    assert len(set(values)) <= 40
