"""manifoldry.explore: what can be passed, and what comes back."""

import asyncio
import gc
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import manifoldry
from manifoldry.explorer.actions import answer
from manifoldry.explorer.jobs import JobQueue


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """Work in the background is noted, not done."""

    def add(queue, job):
        queue.jobs[job.id] = job
        return job

    monkeypatch.setattr(JobQueue, "add", add)


@pytest.fixture
def explore():
    made = []

    def make(*args, **options):
        made.append(manifoldry.explore(*args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


X = np.random.default_rng(0).normal(size=(40, 5))
LABELS = np.repeat(["a", "b"], 20)


@pytest.fixture(scope="module")
def model():
    return manifoldry.PCA(2).fit(X)


def names(explorer):
    return [each.name for each in explorer._session.maps.values()]


def only_map(explorer):
    (shown,) = explorer._session.maps.values()
    return shown


def test_an_estimator(explore, model):
    explorer = explore(model, X, LABELS)
    assert repr(explorer) == "Explorer of 40 rows: PCA"
    assert only_map(explorer).embedding is model.embedding_
    assert explorer.models == {"PCA": model}
    assert explorer._session.described_labels() == [
        {"name": "label", "kind": "classes", "own": False}
    ]
    (job,) = explorer._session.work.jobs.jobs.values()
    assert job.kind == "evidence"


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, list])
def test_an_array(explore, model, container):
    explorer = explore(container(model.embedding_), X)
    np.testing.assert_allclose(only_map(explorer).embedding, model.embedding_)
    assert explorer.models == {}
    assert names(explorer) == ["Map"]


def test_several(explore, model):
    other = manifoldry.Isomap(n_neighbors=10).fit(X)
    assert names(explore([model, other, model, X[:, :2]], X)) == ["PCA", "Isomap", "PCA (2)", "Map"]
    assert names(explore((model, other), X)) == ["PCA", "Isomap"]
    named = explore({"first": model, "second": X[:, :3]}, X)
    assert names(named) == ["first", "second"]
    assert list(named.models) == ["first"]
    assert names(explore((each for each in (model, other)), X)) == ["PCA", "Isomap"]
    assert names(explore({"first": model, "second": other}.values(), X)) == ["PCA", "Isomap"]
    assert names(explore(iter([X[:, :2]]), X)) == ["Map"]


def test_a_pipeline(explore):
    pipeline = make_pipeline(StandardScaler(), manifoldry.PCA(3)).fit(X)
    shown = only_map(explore(pipeline, X))
    np.testing.assert_allclose(shown.place(X)[0], shown.drawn, atol=1e-5)
    at = shown.drawn[:4].astype(float)
    np.testing.assert_allclose(shown.invert(at).data, pipeline.inverse_transform(
        pipeline[-1].embedding_[:4]), atol=1e-4)  # fmt: skip


FRAME = pd.DataFrame(X * [1, 10, 100, 1, 1] + 5, columns=list("vwxyz"))
STEPS = {
    "StandardScaler": StandardScaler,
    "ColumnTransformer by names": lambda: ColumnTransformer(
        [("large", StandardScaler(), ["x", "w"]), ("others", "passthrough", ["z", "v"])]
    ),
    "frames between steps": lambda: make_pipeline(StandardScaler()).set_output(transform="pandas"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("last", [lambda: manifoldry.PCA(2), lambda: PCA(2)])
@pytest.mark.parametrize("step", STEPS)
def test_a_pipeline_that_was_fitted_on_a_frame(explore, step, last):
    """Its steps know columns by name, so they get a frame again, without a warning."""
    pipeline = make_pipeline(STEPS[step](), last()).fit(FRAME)
    explorer = explore(pipeline, FRAME)
    assert explorer._session.notes == []
    shown = only_map(explorer)
    expected = np.asarray(pipeline.transform(FRAME))
    np.testing.assert_allclose(shown.embedding, expected, atol=1e-8)
    np.testing.assert_allclose(shown.place(FRAME.to_numpy())[0], shown.drawn, atol=1e-5)
    text = "\n".join(" ".join(map(repr, row)) for row in FRAME.to_numpy()[:3].tolist())
    reply = answer(explorer._session, {"id": 1, "ask": "place", "with": {"text": text}}, "page")
    np.testing.assert_allclose(reply["reply"]["xy"][shown.id], shown.drawn[:3], atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_models_that_were_fitted_on_frames(explore):
    """Without a pipeline, also those of other packages, in which names are checked."""
    ours, other = manifoldry.PCA(2).fit(FRAME), Isomap(n_neighbors=9).fit(FRAME)
    explorer = explore([ours, other], FRAME)
    for shown in explorer._session.maps.values():
        np.testing.assert_allclose(shown.place(FRAME.to_numpy())[0], shown.drawn, atol=1e-4)
    assert explorer._session.notes == []


def test_only_data(explore):
    explorer = explore(X=X)
    assert repr(explorer) == "Explorer of 40 rows: no map yet"
    (job,) = explorer._session.work.jobs.jobs.values()
    assert (job.kind, job.what) == ("map", "PCA of 40 rows")


@pytest.mark.parametrize("container", [pd.DataFrame, sparse.csr_array, sparse.csr_matrix])
def test_other_containers(explore, model, container):
    explorer = explore(model, container(X))
    np.testing.assert_allclose(explorer._session.data.rows([3]), X[[3]])
    assert explorer._session.data.n_features == 5


def test_a_frame_with_names_and_labels(explore, model):
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(kind=LABELS)
    explorer = explore(model, frame, "kind")
    assert explorer._session.data.feature_names == list("vwxyz")
    assert list(explorer._session.data.labels) == ["kind"]


def test_only_a_model(explore, model):
    """What its inverse restores stands for the data."""
    explorer = explore(model, labels=LABELS)
    data = explorer._session.data
    assert (data.n, data.n_features, data.has_data) == (40, 5, False)
    restored = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(data.moments.mean, restored.mean(axis=0), atol=1e-12)
    assert explorer._session.work.jobs.jobs == {}


def test_a_pipeline_whose_steps_cannot_be_undone(explore):
    pipeline = make_pipeline(Normalizer(), manifoldry.PCA(2)).fit(X)
    for explorer in (explore(pipeline), explore(pipeline, X)):
        assert not only_map(explorer).can_invert
        assert "Normalizer" in only_map(explorer).why_not
    assert only_map(explorer).can_place


def test_only_coordinates(explore):
    explorer = explore(X[:, :2])
    assert explorer._session.data.n_features == 0
    assert not only_map(explorer).can_invert


@pytest.mark.parametrize("text", ["iris.csv", "umap", Path("iris.csv")])
@pytest.mark.parametrize("data", [None, X])
def test_a_file_is_no_map(text, data):
    with pytest.raises(TypeError, match=r"maps='.*' is a text; .* X=, or a model"):
        manifoldry.explore(text, data)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_data_are_no_map(explore, container):
    """As they would be if they were passed first, as to assess."""
    wide = np.random.default_rng(0).normal(size=(40, 11))
    with pytest.raises(ValueError, match=r"maps has 11 columns, .* pass the data as X="):
        manifoldry.explore(container(wide))
    assert only_map(explore(wide[:, :10])).embedding.shape == (40, 10)
    assert only_map(explore(wide, wide)).embedding.shape == (40, 11)  # they may be both


def test_labels_by_name_need_data(model):
    for maps in (model, X[:, :2]):
        with pytest.raises(ValueError, match=r"labels='kind' is a name; pass the data .* X="):
            manifoldry.explore(maps, labels="kind")


@pytest.mark.parametrize("nothing", [None, [], {}, ()])
def test_nothing(nothing):
    with pytest.raises(ValueError, match="there is nothing to explore"):
        manifoldry.explore(nothing)


def test_an_estimator_that_is_not_fitted(model):
    for wrong in (manifoldry.PCA(2), make_pipeline(StandardScaler(), manifoldry.PCA(2))):
        with pytest.raises(ValueError, match="the estimator PCA is not fitted; call its fit first"):
            manifoldry.explore(wrong, X)


def test_an_estimator_without_embedding(explore):
    """Its map is what its transform gives for the data."""
    plain, whiten = PCA(2).fit(X), make_pipeline(StandardScaler(), PCA(3)).fit(X)
    explorer = explore({"plain": plain, "piped": whiten}, X)
    for shown, model in zip(explorer._session.maps.values(), (plain, whiten), strict=True):
        np.testing.assert_allclose(shown.embedding, model.transform(X))
        np.testing.assert_allclose(shown.place(X)[0], shown.drawn, atol=1e-5)
        restored = shown.invert(shown.drawn[:4].astype(float)).data
        expected = model.inverse_transform(model.transform(X[:4]))
        np.testing.assert_allclose(restored, expected, atol=1e-4)
    assert explorer._session.notes == []


def test_an_estimator_without_embedding_needs_data():
    with pytest.raises(ValueError, match=r"has no embedding_.* pass the data as X"):
        manifoldry.explore(PCA(2).fit(X))
    with pytest.raises(ValueError, match="the estimator KernelDensity has no embedding_ and no"):
        manifoldry.explore(KernelDensity().fit(X), X)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((X[:30, :2], X), "has shape .30, 2., but the data have 40 rows"),
        ((X[:, :2], X, LABELS[:30]), "30"),
        ((X[:, :2], None, LABELS[:30]), "labels has 30 entries, but the map has 40 rows"),
        (([X[:, :2], X[:30, :2]],), "but the data have 40 rows"),
    ],
)
def test_lengths_that_differ(args, text):
    with pytest.raises(ValueError, match=text):
        manifoldry.explore(*args)


def test_data_of_other_columns(explore, model):
    """The map is there; that its model cannot place such rows is said."""
    explorer = explore(model, X[:, :3])
    assert only_map(explorer).embedding is model.embedding_
    (note,) = explorer._session.notes
    assert note.startswith("PCA cannot place the rows of the data: ")
    assert "3" in note
    assert "5" in note


@pytest.mark.parametrize("error", [RuntimeError("out of order"), KeyError("x"), ValueError("no")])
def test_a_model_that_cannot_place_rows(explore, error):
    class Broken(manifoldry.PCA):
        def transform(self, X):
            raise error

    explorer = explore(Broken(2).fit(X), X)
    (note,) = explorer._session.notes
    assert note.startswith("Broken cannot place the rows of the data: ")
    assert str(error) in note
    assert len(names(explorer)) == 1


def test_data_of_other_rows_are_noticed(explore, model):
    explorer = explore(model, X[::-1])
    assert any("not where the map has them" in note for note in explorer._session.notes)
    assert not any("not where" in note for note in explore(model, X)._session.notes)


@pytest.mark.parametrize(
    ("shape", "text"), [((2, 2), "4 pixels, but the data have 5 columns"), ((5,), "must be"),
                        ((1, 5, 2), "must be"), (5, "must be"), ("5x1", "must be"),
                        ((0.5, 10), "must be")],
)  # fmt: skip
def test_shapes_that_are_no_images(model, shape, text):
    with pytest.raises((ValueError, TypeError), match=text):
        manifoldry.explore(model, X, image_shape=shape)


def test_images(explore, model):
    explorer = explore(model, X, image_shape=(1, 5), dark_ink=True)
    assert explorer._session.data.row_kind == "image"
    assert explorer._session.data.image.dark_ink


def test_missing_values(explore):
    """They are filled for new maps; a map from elsewhere is shown as it is."""
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    explorer = explore(X[:, :2], gaps)
    data = explorer._session.data
    assert np.isnan(data.rows([0])[0, 2])
    np.testing.assert_allclose(data.prepared[0, 2], np.nanmedian(gaps[:, 2]))
    assert any("median" in note for note in explorer._session.notes)


def test_a_model_of_filled_data_beside_data_with_gaps(explore, model):
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    explorer = explore(model, gaps)
    assert only_map(explorer).embedding is model.embedding_


def test_selection(explore, model):
    explorer = explore(model, X)
    told = []
    forget = explorer._session.listen(
        lambda name, content: told.append((name, content["rows"].tolist()))
    )
    explorer.select([5, 3, 5])
    np.testing.assert_array_equal(explorer.selection, [3, 5])
    explorer.select(LABELS == "b")
    np.testing.assert_array_equal(explorer.selection, np.arange(20, 40))
    assert told == [("select", [3, 5]), ("select", list(range(20, 40)))]
    forget()
    explorer.select([])
    assert len(explorer.selection) == 0
    for wrong in ([40], [-1], [1.5], [True, False], ["a"], [[1]]):
        with pytest.raises((ValueError, TypeError), match="row"):
            explorer.select(wrong)
    assert len(explorer.selection) == 0


def test_labels_are_copies(explore, model):
    explorer = explore(model, X)
    explorer._session.label(np.array([3]), "mine", "a")
    assert explorer.labels["mine"].tolist() == [None] * 3 + ["a"] + [None] * 36
    explorer.labels["mine"][:] = "b"
    assert explorer.labels["mine"][0] is None


def test_added_maps(explore, model):
    explorer = explore(model, X)
    explorer.add("mine", X[:, 3:])
    assert names(explorer) == ["PCA", "mine"]
    with pytest.raises(ValueError, match="but the data have 40 rows"):
        explorer.add("short", X[:3, :2])


def test_the_end_deletes_its_files(model):
    explorer = manifoldry.explore(model, X)
    folder = explorer._session.folder
    assert folder.exists()
    explorer.close()
    assert not folder.exists()
    explorer.close()  # again does nothing
    forgotten = manifoldry.explore(model, X)
    folder = forgotten._session.folder
    del forgotten
    gc.collect()
    assert not folder.exists()


ENDED = "this explorer has ended; make another one with manifoldry.explore"


def test_nothing_can_be_done_after_the_end(model):
    explorer = manifoldry.explore(model, X)
    explorer.select([3])
    explorer.close()
    actions = (lambda: explorer.select([5]), lambda: explorer.add("mine", X[:, :2]),
               lambda: explorer.serve(0, browser=False))  # fmt: skip
    for action in actions:
        with pytest.raises(RuntimeError, match=ENDED):
            action()
    assert explorer.selection.tolist() == [3]  # what was done there is still known
    assert names(explorer) == ["PCA"]


def test_a_server_that_ends_is_the_end(explore, model, monkeypatch, capsys):
    uvicorn = pytest.importorskip("uvicorn")
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: server.ready())
    explorer = explore(model, X)
    explorer.serve(0, browser=False)
    said = capsys.readouterr().out
    assert "Explorer of 40 rows: PCA\nhttp://127.0.0.1:" in said
    assert "?token=" in said
    with pytest.raises(RuntimeError, match=ENDED):
        explorer.select([3])


def test_a_server_in_a_notebook_is_refused(explore, model):
    """There an event loop runs already; the explorer can be shown all the same."""
    pytest.importorskip("uvicorn")
    explorer = explore(model, X)

    async def cell():
        explorer.serve(0, browser=False)

    with pytest.raises(RuntimeError, match="in a notebook; write the explorer as the last line"):
        asyncio.run(cell())
    explorer.select([3])
    assert explorer.selection.tolist() == [3]
    assert explorer._session.folder.exists()


def test_a_port_that_is_taken_is_not_the_end(explore, model):
    pytest.importorskip("uvicorn")
    explorer = explore(model, X)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="is taken by another program"):
            explorer.serve(other.getsockname()[1], browser=False)
    explorer.select([3])


def test_an_error_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="not fitted"):
        manifoldry.explore(manifoldry.PCA(2), X)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("height", [0, 199, "tall", 1.5])
def test_heights(model, height):
    with pytest.raises((ValueError, TypeError), match="height"):
        manifoldry.explore(model, X, height=height)


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), manifoldry.PCA(2)).fit(frame)
    with pytest.raises(ValueError, match=r"another order .* from 'c' on"):
        manifoldry.explore(model, frame[["a", "c", "b"]])
