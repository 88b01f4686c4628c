"""The command explore: what it opens, with the server replaced by a look at the session."""

import io
import json
import socket

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry
from manifoldry.cli import exploring
from manifoldry.cli.main import main
from manifoldry.explorer.jobs import JobQueue
from manifoldry.explorer.worker import Reporter, fit_method

pytest.importorskip("typer")
pytest.importorskip("uvicorn")
X, TARGET = load_iris(return_X_y=True)
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a file of flowers."""
    monkeypatch.chdir(tmp_path)
    lines = [",".join(["id", *NAMES, "species"])]
    species = load_iris().target_names[TARGET]
    for i, row in enumerate(X):
        lines.append(",".join([f"flower{i}", *map(repr, map(float, row)), species[i]]))
    (tmp_path / "iris.csv").write_text("\n".join(lines))
    return tmp_path


class Opened:
    """What would be served."""

    def __init__(self, session, address, browser):
        self.session, self.browser = session, browser
        self.host = address.listening.getsockname()[0]
        self.maps = list(session.maps.values())
        self.jobs = list(session.work.jobs.jobs.values())
        self.tasks = [job.task() for job in self.jobs if job.kind == "map"]


@pytest.fixture
def explore(run, monkeypatch):
    """Function that runs the command, with work in the background that does not begin."""
    opened = []

    def serve(session, address, *, browser, ready):
        ready()
        opened.append(Opened(session, address, browser))
        session.close()
        address.listening.close()

    monkeypatch.setattr(exploring, "serve", serve)
    monkeypatch.setattr(JobQueue, "add", lambda queue, job: queue.jobs.setdefault(job.id, job))

    def explored(*arguments):
        out, err = run("explore", "--port", "0", *arguments)
        opened[-1].out, opened[-1].err = out, "\n".join(err)
        return opened[-1]

    return explored


def test_a_file(explore, folder):
    found = explore("iris.csv")
    data = found.session.data
    np.testing.assert_allclose(data.table.X, X)
    assert data.feature_names == NAMES
    assert list(data.labels) == ["species"]
    assert [task["method"] for task in found.tasks] == ["pca", "laplacian-eigenmaps", "isomap",
                                                        "tsne"]  # fmt: skip
    assert found.session.title == "iris.csv"
    assert "http://127.0.0.1:" in found.out
    assert "?token=" in found.out
    assert "Ctrl-C" in found.out
    assert found.browser
    assert found.host == "127.0.0.1"
    assert not found.session.folder.exists()


def test_without_a_file_there_are_digits(explore):
    found = explore("--no-browser")
    np.testing.assert_array_equal(found.session.data.table.X, load_digits().data)
    assert found.session.data.image.shape == (8, 8)
    assert found.session.data.image.dark_ink
    assert not found.browser


def test_the_link_as_json(explore):
    found = explore("iris.csv", "--json")
    result = json.loads(found.out)
    assert result["n_samples"] == 150
    assert result["link"].startswith("http://127.0.0.1:")
    assert not found.browser


def test_methods_and_settings(explore):
    found = explore("iris.csv", "-m", "isomap", "-m", "pca", "--set", "n_neighbors=20", "-d", 3,
                    "--seed", 7)  # fmt: skip
    chosen = {task["method"]: task["settings"] for task in found.tasks}
    assert chosen["isomap"] == {"n_components": "3", "n_neighbors": "20"}
    assert chosen["pca"] == {"n_components": "3"}
    assert {task["seed"] for task in found.tasks} == {7}


def test_a_model_with_its_data(explore, folder):
    model = make_pipeline(StandardScaler(), manifoldry.PCA(2)).fit(X)
    manifoldry.save(model, folder / "iris.model")
    found = explore("iris.csv", "iris.model")
    (shown,) = found.maps
    np.testing.assert_allclose(shown.embedding, model[-1].embedding_)
    np.testing.assert_allclose(shown.place(X)[0], shown.drawn, atol=1e-5)
    assert found.tasks == []
    assert found.session.title == "iris.csv, iris.model"


def test_a_model_alone(explore, folder):
    manifoldry.save(manifoldry.PCA(2).fit(X), folder / "flowers.model")
    found = explore("flowers.model")
    assert not found.session.data.has_data
    assert "only maps are shown" in found.err
    assert found.jobs == []


def test_a_model_finds_its_data_beside_it(explore, run, folder):
    run("embed", "iris.csv", "-m", "pca", "--no-picture", "--no-assess")
    found = explore("iris-pca.model")
    np.testing.assert_allclose(found.session.data.table.X, X)
    assert "the data of iris-pca.model" in found.err
    (shown,) = found.maps
    np.testing.assert_allclose(shown.place(X)[0], shown.drawn, atol=1e-5)


def test_maps_of_other_programs(explore, folder):
    np.save(folder / "umap.npy", X[:, [2, 0]])
    (shown,) = explore("iris.csv", "--map", "umap.npy").maps
    assert shown.name == "umap"
    np.testing.assert_allclose(shown.embedding, X[:, [2, 0]])


def test_few_rows_get_a_map_that_they_allow(explore, folder):
    np.savetxt(folder / "few.csv", X[:9], delimiter=",")
    assert [task["method"] for task in explore("few.csv").tasks] == ["pca"]


def test_many_rows_get_few_maps(explore, folder, monkeypatch):
    monkeypatch.setattr(exploring, "_FEW_ENOUGH", 100)
    found = explore("iris.csv")
    assert found.tasks[0]["method"] == "pca"
    assert len(found.tasks) <= 2
    assert "only maps by pca and" in found.err


def test_missing_values_are_filled_for_the_methods(explore, folder):
    text = (folder / "iris.csv").read_text().replace("flower3,4.6", "flower3,")
    (folder / "iris.csv").write_text(text)
    data = explore("iris.csv").session.data
    assert np.isnan(data.table.X[3, 0])
    assert np.isfinite(data.prepared).all()


def test_data_of_one_column(explore, folder):
    """Their maps have one coordinate, by all methods that are chosen unasked."""
    values = np.random.default_rng(0).normal(size=(40, 1))
    np.savetxt(folder / "one.csv", values, header="x", comments="")
    found = explore("one.csv")
    assert len(found.tasks) == 4
    for task in found.tasks:
        assert (task["n_components"], task["settings"]) == (1, {})
        np.save(folder / "data.npy", values)
        fit_method(task | {"data": str(folder / "data.npy"), "model": str(folder / "m.model")},
                   Reporter(io.BytesIO()))  # fmt: skip
        assert manifoldry.load(folder / "m.model").embedding_.shape == (40, 1)


def test_components_are_passed_on_only_if_they_are_given(explore):
    assert all("n_components" not in task["settings"] for task in explore("iris.csv").tasks)
    tasks = explore("iris.csv", "--components", 1, "-m", "pca").tasks
    assert [task["settings"] for task in tasks] == [{"n_components": "1"}]
    tasks = explore("iris.csv", "-d", 1, "-m", "pca", "--set", "n_components=3").tasks
    assert [task["settings"] for task in tasks] == [{"n_components": "3"}]


def test_quiet_still_says_where_the_page_is(explore):
    found = explore("iris.csv", "--quiet")
    assert found.out.startswith("http://127.0.0.1:")
    assert found.out.count("\n") == 1
    assert found.err == ""
    result = json.loads(explore("iris.csv", "--quiet", "--json").out)
    assert result["link"].startswith("http://127.0.0.1:")


def test_notes_of_the_file_are_printed_once(explore, folder):
    lines = (folder / "iris.csv").read_text().splitlines()
    lines = [f"{line},{'when' if i == 0 else f'2024-01-{i % 28 + 1:02}'}"
             for i, line in enumerate(lines)]  # fmt: skip
    lines[4] = lines[4].replace("flower3,4.6", "flower3,")
    (folder / "iris.csv").write_text("\n".join(lines))
    found = explore("iris.csv")
    notes = found.session.data.table.notes
    assert notes
    for note in [*notes, "missing value replaced by the median"]:
        assert " ".join(found.err.split()).count(" ".join(note.split())) == 1
        assert any(note in known for known in found.session.notes)


@pytest.mark.parametrize("text", ["group\na\n", "row,group\n1,a\n", "my notes"])
def test_a_file_that_would_be_lost_is_refused(explore, folder, capsys, text):
    """One line, and the file of labels is as it was."""
    for name in ("iris-labels.csv", "mine.csv"):
        (folder / name).write_text(text)
        output = [] if name == "iris-labels.csv" else ["-o", "mine.csv"]
        assert main(["explore", "iris.csv", "--port", "0", *output]) == 1
        error = capsys.readouterr().err.strip().splitlines()[-1]  # after the notes of the data
        assert error.startswith("manifoldry: error: ")
        assert name in error
        assert "so it is not replaced; move it away" in error
        assert (folder / name).read_text() == text
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("given", "shape"), [("8x8", (8, 8)), ("4,16", (4, 16)), ("4x4x4", (4, 4, 4))]
)
def test_images(explore, folder, given, shape):
    np.save(folder / "digits.npy", load_digits().data[:50])
    found = explore("digits.npy", "--image-shape", given)
    assert found.session.data.image.shape == shape
    assert not found.session.data.image.dark_ink


def test_labels_are_kept_beside_the_data(explore, folder):
    found = explore("iris.csv")
    assert found.session.labels_file.path.name == "iris-labels.csv"
    found.session.label(np.arange(3), "group", "mine")
    again = explore("iris.csv")
    assert again.session.data.own_labels["group"].tolist() == ["mine"] * 3 + [None] * 147
    assert "earlier exploration" in again.err
    other = explore("iris.csv", "-o", "mine.parquet")
    assert other.session.data.own_labels == {}


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["missing.csv"], 1, ["missing.csv"]),
        (["iris.csv", "iris.csv"], 2, ["both data", ".model"]),
        (["iris.csv", "-m", "isomaps"], 2, ["isomaps", "did you mean isomap"]),
        (["iris.csv", "--image-shape", "8by8"], 2, ["8by8", "28x28"]),
        (["iris.csv", "--image-shape", "8x8"], 1, ["64 pixels", "4 columns"]),
        (["iris.csv", "-o", "labels.npy"], 2, [".npy", ".csv"]),
        (["iris.csv", "-o", "labels.txt"], 2, [".txt", ".csv"]),
        (["iris.csv", "--port", "70000"], 2, ["--port", "65535"]),
        (["iris.csv", "--map", "nothing.npy"], 1, ["nothing.npy"]),
    ],
)
def test_errors(explore, capsys, monkeypatch, tmp_path, arguments, code, texts):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    port = [] if "--port" in arguments else ["--port", "0"]
    assert main(["explore", *arguments, *port]) == code
    said = capsys.readouterr().err
    for text in texts:
        assert text in said
    assert list(temporary.iterdir()) == []


def test_a_port_that_is_taken(explore, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["explore", "iris.csv", "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"port {port} is taken" in said
    assert "--port 0" in said
