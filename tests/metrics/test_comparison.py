"""Several embeddings in one table, from this and other packages."""

from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.decomposition
from scipy.spatial import procrustes as scipy_procrustes
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.manifold import Isomap as SklearnIsomap
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import manifoldry
from manifoldry import PCA, Isomap, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import assess, compare, procrustes

X, y = load_iris(return_X_y=True)
X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
Y = X[:, :2]


@pytest.fixture(scope="module")
def found():
    return compare(X, {"raw": Y, "PCA": PCA(2), "maps": LaplacianEigenmaps().fit(X)}, y)


def test_metrics_are_those_of_assess(found):
    own = assess(X, Y, y)
    assert {k: v for k, v in found.metrics["raw"].items() if k != "alignment_error"} == own.metrics
    fitted = assess(X, LaplacianEigenmaps().fit(X), y)
    assert found.metrics["maps"]["unpredictability"] == fitted.metrics["unpredictability"]
    assert float(found.curves["PCA"].area) == float(own.baseline["rnx_area"])


def test_embeddings_are_aligned_with_the_first(found):
    np.testing.assert_allclose(found.aligned["raw"], Y)
    disparity = scipy_procrustes(Y, PCA(2).fit_transform(X))[2]
    assert found.metrics["PCA"]["alignment_error"] ** 2 == pytest.approx(disparity)
    assert found.metrics["raw"]["alignment_error"] == pytest.approx(0, abs=1e-12)


def test_embeddings_are_aligned_with_a_named_one():
    other = compare(X, {"raw": Y, "PCA": PCA(2)}, align_to="PCA")
    assert other.align_to == "PCA"
    expected = procrustes(Y, PCA(2).fit(X)).aligned
    np.testing.assert_allclose(other.aligned["raw"], expected)


def test_the_table(found):
    lines = str(found).splitlines()
    assert "3 embeddings of 150 points; data: 4 features; neighborhoods of 15" in lines[0]
    assert lines[2].split() == ["raw", "PCA", "maps"]
    trust = next(line for line in lines if line.startswith("trustworthiness")).split()[1:]
    values = [found.metrics[name]["trustworthiness"] for name in ("raw", "PCA", "maps")]
    best = int(np.argmax(values))
    assert [cell.endswith("*") for cell in trust] == [i == best for i in range(3)]
    stress = next(line for line in lines if line.startswith("stress")).split()[1:]
    least = int(np.argmin([found.metrics[name]["stress"] for name in ("raw", "PCA", "maps")]))
    assert stress[least].endswith("*")


def test_rows_and_frame(found):
    rows = found.rows()
    assert [row["embedding"] for row in rows] == ["raw", "PCA", "maps"]
    assert rows[0]["unpredictability"] is None
    frame = found.to_frame()
    assert frame.loc["PCA", "stress"] == found.metrics["PCA"]["stress"]
    assert found.best("stress") == frame["stress"].idxmin()
    with pytest.raises(ValueError, match="must be one of trustworthiness"):
        found.best("beauty")


def test_estimators_that_are_not_fitted_stay_so():
    model = PCA(2)
    result = compare(X, {"PCA": model})
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(result.models["PCA"])
    assert result.models["PCA"].embedding_.shape == (150, 2)


def test_fitted_estimators_are_used_as_they_are():
    model = PCA(2).fit(X)
    assert compare(X, {"PCA": model}).models["PCA"] is model


def test_estimators_of_scikit_learn():
    maps = {
        "isomap": SklearnIsomap(),
        "pca": sklearn.decomposition.PCA(2).fit(X),  # it has no embedding_
        "pipeline": make_pipeline("passthrough", sklearn.decomposition.PCA(2)),
        "ours": PCA(2),
    }
    result = compare(X, maps)
    for name in ("pca", "pipeline"):
        assert result.metrics[name]["stress"] == pytest.approx(result.metrics["ours"]["stress"])


@pytest.mark.parametrize("fit", [True, False])
def test_pipelines_that_change_the_data_are_refused(fit):
    pipeline = make_pipeline(StandardScaler(), Isomap(2))
    pipeline = pipeline.fit(X) if fit else pipeline
    with pytest.raises(ValueError, match=r"embeddings\['scaled'\]: .*\(by 'standardscaler'\)"):
        compare(X, {"pca": PCA(2), "scaled": pipeline})
    remedy = compare(pipeline[:-1].fit_transform(X), {"scaled": pipeline[-1]})
    expected = assess(X, pipeline.fit(X)).metrics
    assert remedy.metrics["scaled"]["stress"] == pytest.approx(expected["stress"])


def test_points_that_one_embedding_leaves_out_are_left_out_of_all():
    partial = Y.copy()
    partial[:20] = np.nan
    result = compare(X, {"all": Y, "partial": partial}, y)
    assert "the 130 of 150 points that all contain" in str(result)
    one, two = (
        {k: v for k, v in result.metrics[name].items() if k != "alignment_error"}
        for name in ("all", "partial")
    )
    assert one == two == assess(X, partial, y).metrics
    assert np.isnan(result.aligned["partial"][:20]).all()
    assert np.isfinite(result.aligned["all"]).all()


def test_a_sample_is_stated_and_the_same_for_all():
    result = compare(X, {"a": Y, "b": 2 * Y[:, ::-1] + 1}, sample=40, random_state=3)
    assert "a random sample of 40 for neighbors" in str(result)
    assert result.metrics["a"]["rnx_area"] == result.metrics["b"]["rnx_area"]
    rng = np.random.default_rng(0)
    result = compare(X, {"a": Y, "b": 2 * Y[:, ::-1] + 1}, sample=40, random_state=rng)
    assert result.metrics["a"]["rnx_area"] == result.metrics["b"]["rnx_area"]


def test_distances_graphs_and_annotated_data():
    graph = NeighborGraph.build(X, 60)
    along = compare(graph, {"map": Isomap(), "raw": Y})
    assert "distances along a graph" in str(along)
    annotated = SimpleNamespace(X=X, obsm={"X_map": Y}, obs={"kind": y})
    result = compare(annotated, {"stored": "X_map", "PCA": PCA(2)}, "kind")
    assert result.metrics["stored"]["label_accuracy"] == assess(X, Y, y).metrics["label_accuracy"]


def test_embeddings_of_other_dimensions_are_not_projected():
    result = compare(X, {"two": PCA(2), "three": PCA(3), "one": PCA(1)})
    assert [each.shape[1] for each in result.aligned.values()] == [2, 3, 2]
    three = PCA(3).fit_transform(X)
    expected = scipy_procrustes(np.pad(PCA(2).fit_transform(X), [(0, 0), (0, 1)]), three)[2]
    assert result.metrics["three"]["alignment_error"] ** 2 == pytest.approx(expected)


def test_the_alignment_error_is_the_same_in_both_directions():
    maps = {"line": Y[:, 0], "plane": Y}
    one, two = (compare(X, maps, align_to=name).metrics for name in maps)
    expected = two["line"]["alignment_error"]
    assert one["plane"]["alignment_error"] == pytest.approx(expected, rel=1e-9)
    assert expected > 0.1
    partial = np.where(np.arange(150)[:, None] < 9, np.nan, Y[:, :1])
    aligned = compare(X, {"line": partial, "plane": Y}).aligned["plane"]
    assert np.isfinite(aligned).all()


def test_the_smallest_alignment_error_is_the_best():
    near = Y + 0.01 * np.random.default_rng(0).normal(size=Y.shape)
    result = compare(X, {"raw": Y, "random": near[::-1], "near": near})
    assert result.best("alignment_error") == "near"
    with pytest.raises(ValueError, match=r"metric='alignment_error' must be one of trust"):
        compare(X, {"raw": Y}).best("alignment_error")


def stars(result, metric):
    line = next(line for line in str(result).splitlines() if line.startswith(metric + " "))
    return [cell.endswith("*") for cell in line.split()[1:]]


def test_equal_values_are_marked_alike():
    result = compare(X, {"a": Y, "same": Y.copy(), "turned": 3 * Y[:, ::-1], "worse": Y[::-1]})
    for metric in ("trustworthiness", "stress", "rnx_area"):
        assert stars(result, metric) == [True, True, True, False]


def test_a_value_without_others_is_not_marked(found):
    assert stars(compare(X, {"raw": Y, "maps": LaplacianEigenmaps()}), "unpredictability") == [
        False
    ]
    assert stars(found, "trustworthiness").count(True) == 1


class Unfittable(PCA):
    def fit(self, X, y=None):
        raise AssertionError("fitted before the arguments were checked")

    fit_transform = fit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": np.where(np.arange(150) < 9, np.nan, y)}, "labels"),
        ({"labels": y[:50]}, "labels"),
        ({"labels": np.arange(150.0)}, "labels has 150 different values"),
        ({"n_neighbors": 10**6}, r"n_neighbors=1000000 must be less than 75"),
        ({"sample": "few"}, "sample='few'"),
        ({"metric": "fast"}, "fast"),
        ({"other": Y[:50]}, r"embeddings\['other'\]: X has 150 rows and the embedding has 50"),
        ({"other": "X_umap"}, r"embeddings\['other'\]"),
        ({"other": PCA}, r"embeddings\['other'\] is a class"),
        ({"other": PCA(2).fit(X[:50])}, r"embeddings\['other'\]: X has 150 rows"),
        ({"other": np.where(np.arange(150)[:, None] < 148, np.nan, Y)}, "2 of 150 points"),
    ],
)
def test_arguments_are_checked_before_fits(arguments, message):
    given = {"first": Unfittable(2), "other": arguments.pop("other", Y)}
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, given, **arguments)


def test_errors_of_fits_name_the_embedding():
    with pytest.raises(ValueError, match=r"embeddings\['maps'\]: n_neighbors=999"):
        compare(X, {"raw": Y, "maps": Isomap(n_neighbors=999)})


def test_errors_of_the_data_name_no_embedding():
    with pytest.raises(ValueError, match=r"^(?!embeddings).*NaN"):
        compare(np.where(X > 7, np.nan, X), {"raw": Y})


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ({}, "at least one name"),
        ([Y], "mapping"),
        ({"a": Y, "b": Y[:50]}, "'a' has 150, 'b' has 50"),
        ({"a": Y[:50]}, r"embeddings\['a'\]: X has 150 rows and the embedding has 50"),
        ({"a": "X_umap"}, r"embeddings\['a'\]: .*AnnData"),
        ({"a": PCA}, r"embeddings\['a'\] is a class; pass an instance: PCA\(\)"),
    ],
)
def test_wrong_embeddings(embeddings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, embeddings)


def test_wrong_reference():
    with pytest.raises(ValueError, match=r"align_to='c' must be one of the embeddings: 'a', 'b'"):
        compare(X, {"a": Y, "b": Y}, align_to="c")


def test_a_good_map_wins_on_a_roll():
    data, sheet = make_swiss_roll(300, random_state=0)
    result = manifoldry.compare(data, {"PCA": PCA(2), "sheet": sheet})
    assert result.best("trustworthiness") == result.best("rnx_area") == "sheet"
