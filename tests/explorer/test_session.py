"""What the pages of one explorer share."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.explore import add_map, explored_data
from manifoldry.explorer.session import Session, described_map, described_methods
from manifoldry.explorer.worker import judge_map, refit_map
from manifoldry.io import Table
from manifoldry.methods.catalog import METHODS


@pytest.fixture
def events(session):
    found = []
    session.listen(lambda name, content: found.append((name, content)))
    return found


class Silent:
    def progress(self, fraction, status):
        assert status


def test_listeners_until_they_are_forgotten(session):
    heard = []
    forget = session.listen(lambda name, content: heard.append(name))
    other = session.listen(lambda name, content: heard.append("other"))
    session.tell("say", {})
    forget()
    session.tell("say", {})
    other()
    session.tell("say", {})
    assert heard == ["say", "other", "other"]


def test_a_listener_that_raises_is_dropped(session):
    """Such as a page that is gone; other pages and the work go on."""
    heard = []

    def gone(name, content):
        heard.append("gone")
        raise OSError("the page is closed")

    def leaving(name, content):
        forget()
        raise OSError("the page is closed")

    session.listen(gone)
    forget = session.listen(leaving)
    session.listen(lambda name, content: heard.append(name))
    session.tell("say", {})
    session.tell("say", {})
    assert heard == ["gone", "say", "say"]
    forget()  # again does nothing


def test_maps_are_turned_to_match_the_first(session):
    (first,) = session.maps.values()
    other = session.add_map("mirrored", first.embedding[:, ::-1] * [-30, 7 * 30 / 7] + 5)
    np.testing.assert_allclose(other.drawn, first.drawn, atol=1e-5)


def test_names_of_maps_differ(session):
    for _ in range(3):
        session.add_map("PCA", np.eye(150)[:, :2])
    assert [each.name for each in session.maps.values()] == ["PCA", "PCA 2", "PCA 3", "PCA 4"]


@pytest.mark.parametrize(
    "embedding",
    [np.zeros((149, 2)), np.zeros((2, 150)), np.zeros((150, 2, 2)), np.zeros(150, dtype="U1"),
     3.0, [["a", "b"]] * 150],
)  # fmt: skip
def test_maps_of_the_wrong_shape(session, events, embedding):
    with pytest.raises(ValueError, match=r"the map x has shape .* but the data have 150 rows"):
        session.add_map("x", embedding)
    assert len(session.maps) == 1
    assert events == []


def test_maps_of_one_coordinate_and_of_whole_numbers(session):
    line = session.add_map("line", np.arange(150))
    assert described_map(line)["n_components"] == 1
    assert described_map(line)["shown"] == [0, 0]
    assert np.abs(line.drawn).max() <= 1


def test_removed_maps(session, events):
    (shown,) = session.maps.values()
    session.remove_map(shown.id)
    assert events == [("removed", {"map": shown.id})]
    with pytest.raises(ValueError, match="not here any more; reload the page"):
        session.remove_map(shown.id)
    assert session.reference is None


def test_evidence_that_ends_after_its_map_was_removed(session, events):
    (shown,) = session.maps.values()
    values = [np.zeros(150, dtype=np.float32), ""]
    session.remove_map(shown.id)
    events.clear()
    session.work._keep_evidence(shown, {"colors": {"trustworthiness": values}, "stability": None})
    session.work._keep_stability(shown, {"color": values, "verdict": "", "n_refits": 5})
    assert events == []


def test_description_of_a_map(session):
    (shown,) = session.maps.values()
    told = described_map(shown)
    assert (told["name"], told["method"], told["n_components"]) == ("PCA", "pca", 2)
    assert (told["can_invert"], told["can_place"], told["why_not"]) == (True, True, "")
    assert (told["steps"], told["evidence"], told["n_unplaced"]) == ([], "none", 0)
    Y = np.random.default_rng(0).normal(size=(150, 2))
    Y[:7, 1] = np.nan
    assert described_map(session.add_map("gaps", Y))["n_unplaced"] == 7


def test_methods_are_all_of_the_catalog():
    found = {each["name"]: each for each in described_methods()}
    assert list(found) == [each.name for each in METHODS]
    homotopies = {name for name, each in found.items() if each["has_homotopy"]}
    assert {"tsne", "elastic-embedding"} <= homotopies
    assert "pca" not in homotopies
    settings = {each["name"]: each["value"] for each in found["isomap"]["settings"]}
    assert settings["metric"] == "euclidean"
    for each in METHODS:
        assert {setting["name"] for setting in found[each.name]["settings"]} <= set(
            each.make().get_params()
        )


def test_labels(session, events):
    session.label(np.array([3, 5]), " group ", " mine ")
    session.label(np.array([5]), "group", "yours")
    values = session.data.own_labels["group"]
    assert (values[3], values[5], values[4]) == ("mine", "yours", None)
    assert events[-1][1]["labels"][-1] == {"name": "group", "kind": "classes", "own": True}
    session.label(np.array([3, 5]), "group", " ")
    assert session.data.own_labels == {}
    assert [each["name"] for each in events[-1][1]["labels"]] == ["species"]


@pytest.mark.parametrize(
    ("column", "text"),
    [(" ", "the label has no name"), ("species", "a column 'species' already"),
     ("petal_width", "a column 'petal_width' already"), ("row", "a column 'row'"),
     ("id", "a column 'id'")],
)  # fmt: skip
def test_names_that_labels_cannot_have(session, column, text):
    with pytest.raises(ValueError, match=text):
        session.label(np.array([3]), column, "mine")
    assert session.data.own_labels == {}


def test_labels_are_kept_for_the_next_exploration(make_session, flowers, tmp_path):
    path = tmp_path / "labels.csv"
    first = make_session(flowers, labels_file=path)
    assert first.label(np.arange(3), "group", "mine") == str(path)
    assert pd.read_csv(path)["group"].value_counts().to_dict() == {"mine": 3}
    again = make_session(flowers, labels_file=path)
    assert again.data.own_labels["group"].tolist() == ["mine"] * 3 + [None] * 147
    assert any(str(path) in note for note in again.notes)


def test_a_labels_file_that_cannot_be_written(make_session, flowers, tmp_path):
    """The label is on the pages all the same."""
    made = make_session(flowers, labels_file=tmp_path / "missing" / "labels.csv")
    told = []
    made.listen(lambda name, content: told.append(name))
    with pytest.raises(OSError, match=r"labels\.csv|missing"):
        made.label(np.arange(3), "group", "mine")
    assert told == ["labels"]
    assert "group" in made.data.own_labels


def test_work_about_a_map_is_done_once(session, monkeypatch):
    monkeypatch.setattr(
        session.work.jobs, "add", lambda job: session.work.jobs.jobs.setdefault(job.id, job)
    )
    (shown,) = session.maps.values()
    first = session.work.assess(shown)
    assert session.work.assess(shown) is first
    assert session.work.refit(shown) is not first
    first.state = "failed"
    assert session.work.assess(shown) is not first


def task_of(session, shown, kind):
    return session.work._task_about(shown, kind)


def test_a_pipeline_is_judged_by_what_its_method_got(make_session, flowers):
    """Neighbors are those of the standardized flowers."""
    model = make_pipeline(StandardScaler(), manifoldry.PCA(2)).fit(flowers.X)
    session = make_session(flowers)
    session.work.assess_unasked = lambda shown: None
    add_map(session, "PCA", model)
    (shown,) = session.maps.values()
    found = judge_map(task_of(session, shown, "evidence"), Silent())
    scaled = StandardScaler().fit_transform(flowers.X)
    expected = manifoldry.assess(scaled, model[-1].embedding_, random_state=0).metrics
    values = {each["name"]: each["value"] for each in found["metrics"]}
    assert values["trustworthiness"] == pytest.approx(float(expected["trustworthiness"]))
    refits = refit_map(task_of(session, shown, "stability"), Silent())
    direct = manifoldry.metrics.stability(manifoldry.PCA(2), scaled, n_resamples=5, random_state=0)
    assert refits["variability"] == pytest.approx(float(direct.variability))


def test_coordinates_of_data_with_gaps_can_be_judged(flowers):
    gaps = flowers.X.copy()
    gaps[::9, 1] = np.nan
    data = explored_data(Table(gaps), [], fits=False)
    session = Session(data, "", [])
    try:
        shown = session.add_map("x", flowers.X[:, [0, 2]])
        found = judge_map(task_of(session, shown, "evidence"), Silent())
        filled = np.where(np.isnan(gaps), np.nanmedian(gaps, axis=0), gaps)
        expected = manifoldry.assess(filled, flowers.X[:, [0, 2]], random_state=0).metrics
        values = {each["name"]: each["value"] for each in found["metrics"]}
        assert values["continuity"] == pytest.approx(float(expected["continuity"]))
    finally:
        session.close()


def test_a_map_of_distances_is_judged_by_the_features(make_session):
    """Its model had distances of pairs, which are not here."""
    X = np.random.default_rng(0).normal(size=(90, 4)) * [4, 2, 1, 1]
    model = manifoldry.Isomap(metric="precomputed", n_neighbors=30)
    model.fit(cdist(X, X, "cityblock"))
    session = make_session(X)
    session.work.assess_unasked = lambda shown: None
    add_map(session, "Isomap", model)
    assert session.notes == []  # it is not asked to place the features
    (shown,) = session.maps.values()
    task = task_of(session, shown, "evidence")
    assert task["metric"] == "euclidean"
    values = {each["name"]: each["value"] for each in judge_map(task, Silent())["metrics"]}
    k = manifoldry.assess(X, model.embedding_).n_neighbors
    expected = trustworthiness(X, model.embedding_, n_neighbors=k)
    assert values["trustworthiness"] == pytest.approx(expected)


def test_labels_with_gaps_or_a_value_for_each_row_are_no_classes(make_session, flowers):
    for values in (np.arange(150).astype(str), np.array([None, "a", "b"] * 50, dtype=object)):
        session = make_session(Table(flowers.X, labels={"x": values}))
        shown = session.add_map("x", flowers.X[:, :2])
        assert task_of(session, shown, "evidence")["labels"] is None
    session = make_session(flowers)
    shown = session.add_map("x", flowers.X[:, :2])
    expected = np.unique(flowers.labels["species"], return_inverse=True)[1]
    np.testing.assert_array_equal(task_of(session, shown, "evidence")["labels"], expected)


def test_work_that_needs_what_is_not_there(make_session, session):
    alone = Session(ExploredData(Table(np.empty((5, 0))), None, restored=np.zeros((2, 2))), "", [])
    shown = alone.add_map("x", np.eye(5)[:, :2])
    for action in (lambda: alone.work.fit(METHODS[0]), lambda: alone.work.assess(shown)):
        with pytest.raises(ValueError, match="The data are not here, only the map"):
            action()
    alone.close()
    assert not alone.folder.exists()
    with pytest.raises(ValueError, match="pass a fitted estimator"):
        session.work.refit(session.add_map("x", np.random.default_rng(0).normal(size=(150, 2))))


def test_stability_comes_before_or_after_other_evidence(session, events):
    (shown,) = session.maps.values()
    refits = {"verdict": "stable", "variability": 0.1, "n_refits": 5}
    values = [np.zeros(150, dtype=np.float32), ""]
    session.work._keep_evidence(shown, {"colors": {"trustworthiness": values}, "stability": None})
    session.work._keep_stability(shown, {"color": values, **refits})
    assert shown.evidence["stability"] == refits
    session.work._keep_evidence(shown, {"colors": {}, "stability": None})
    assert shown.evidence["stability"] == refits
    assert [name for name, _ in events] == ["map", "evidence"] * 3
    assert described_map(shown)["evidence_colors"] == ["trustworthiness", "stability"]
    other = session.add_map("other", shown.embedding, shown.model)
    session.work._keep_stability(other, {"color": values, **refits})
    session.work._keep_evidence(other, {"colors": {}, "stability": None})
    assert other.evidence["stability"] == refits


def test_a_model_file_from_the_page_opens_the_same_map(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 5)) * [1, 1, 1, 1, 1e4] + [0, 0, 0, 0, 7e4]
    table = Table(X, names=("a", "b", "c", "d", "e"))
    data = explored_data(table, [])
    session = Session(data, "data", [], source=Path("flowers.csv"))
    try:
        assert [type(step).__name__ for step in data.steps] == ["StandardScaler"]
        model = manifoldry.PCA(2).fit(data.prepared)
        shown = session.add_map("PCA", model.embedding_, model, steps=data.steps, method="pca")
        name, content = session.model_to_keep(shown)
        (tmp_path / name).write_bytes(content)
        loaded = manifoldry.load(tmp_path / name)
        np.testing.assert_allclose(loaded.transform(X + 0.5), model.transform(
            data.steps[0].transform(X + 0.5)))  # fmt: skip
        training = manifoldry.read_info(tmp_path / name).training
        assert training["input"] == "flowers.csv"
        assert training["feature_names"] == ["a", "b", "c", "d", "e"]
        assert list(session.folder.iterdir()) == []
        with pytest.raises(ValueError, match="pass a fitted estimator"):
            session.model_to_keep(session.add_map("bare", X[:, :2]))
    finally:
        session.close()


@pytest.mark.parametrize("name", ["a/b", "../../x", "a__b", "π 1"])
def test_a_model_of_a_map_with_any_name(session, flowers, tmp_path, name):
    model = manifoldry.PCA(2).fit(flowers.X)
    shown = session.add_map(name, model.embedding_, model)
    (tmp_path / "x.model").write_bytes(session.model_to_keep(shown)[1])
    loaded = manifoldry.load(tmp_path / "x.model")
    np.testing.assert_allclose(loaded.transform(flowers.X), model.transform(flowers.X))
    assert list(session.folder.iterdir()) == []


def test_a_model_that_is_too_large_to_download(session, monkeypatch):
    monkeypatch.setattr("manifoldry.explorer.session._MOST_DOWNLOADED", 100)
    with pytest.raises(ValueError, match="too many to download from a page"):
        session.model_to_keep(next(iter(session.maps.values())))
    assert list(session.folder.iterdir()) == []
