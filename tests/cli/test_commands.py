"""The commands, called as from a shell but in this process."""

import io
import json
import signal
import sys
import tomllib

import numpy as np
import pytest
import sklearn.decomposition
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manifoldry
from manifoldry.datasets import make_swiss_roll
from manifoldry.io import ColumnChoice, read_table
from manifoldry.util.hints import for_command

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")
X, TARGET = load_iris(return_X_y=True)
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = load_iris().target_names[TARGET]
ONLY_MAP = ["--no-picture", "--no-assess", "--no-model"]


def rows(values, species=SPECIES):
    """Lines of a CSV file; a missing value is an empty cell."""
    yield ",".join(["id", *NAMES, "species"])
    for i, row in enumerate(values):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in row]
        yield ",".join([f"flower{i}", *cells, species[i]])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a file of flowers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris.csv").write_text("\n".join(rows(X)))
    return tmp_path


def found(run, *arguments, code=0):
    return json.loads(run(*arguments, "--json", code=code)[0])


def test_embed_writes_map_picture_model_and_run_file(run, folder):
    result = found(run, "embed", "iris.csv", "--method", "pca")
    expected = manifoldry.PCA(2).fit(X)
    table = read_table("iris-pca.csv")
    np.testing.assert_allclose(table.X, expected.embedding_, atol=1e-12)
    assert table.ids[0] == "flower0"
    assert list(table.labels["species"]) == list(SPECIES)
    assert (folder / "iris-pca.png").read_bytes().startswith(b"\x89PNG")
    loaded = manifoldry.load("iris-pca.model")
    np.testing.assert_array_equal(loaded.transform(X[:5]), expected.transform(X[:5]))
    assert set(result["files"]) == {"map", "model", "picture", "run"}
    assert result["metrics"]["trustworthiness"] == pytest.approx(
        float(manifoldry.assess(X, expected, SPECIES, random_state=0).metrics["trustworthiness"])
    )
    assert any("'species'" in note for note in result["notes"])


def test_a_run_file_repeats_a_run(run, folder):
    run("embed", "iris.csv", "-m", "Isomap", "--set", "n_neighbors=20", "--scale", *ONLY_MAP)
    options = tomllib.loads((folder / "iris-isomap.run.toml").read_text())
    assert options["set"] == {"n_neighbors": 20}
    first = (folder / "iris-isomap.csv").read_bytes()
    run("embed", "--run", "iris-isomap.run.toml", "-o", "again.csv")
    assert (folder / "again.csv").read_bytes() == first
    run("embed", "--run", "iris-isomap.run.toml", "-o", "other.csv", "--set", "n_neighbors=30")
    assert (folder / "other.csv").read_bytes() != first


def test_parameters_reach_the_estimator(run):
    setting = ["--set", "metric=cityblock", "--set", "radius=none", "--set", "n_neighbors=12"]
    run("embed", "iris.csv", "-m", "laplacian_eigenmaps", *setting, "-d", 3, "--no-picture")
    model = manifoldry.load("iris-laplacian-eigenmaps.model")
    assert (model.metric, model.radius, model.n_neighbors) == ("cityblock", None, 12)
    assert model.embedding_.shape == (150, 3)


def test_nested_parameters(run):
    setting = ["--set", "estimator__n_neighbors=30"]
    run("embed", "iris.csv", "-m", "nonredundant", *setting, "--no-picture", "--no-assess")
    model = manifoldry.load("iris-nonredundant.model")
    assert model.estimator.n_neighbors == 30


def test_preprocessing_there_and_back(run, folder):
    """The steps are those of a scikit-learn pipeline; new rows are filled with training medians."""
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    (folder / "gaps.csv").write_text("\n".join(rows(gaps)))
    steps = ["--impute", "median", "--log1p", "--scale", "--pca", "3"]
    run("embed", "gaps.csv", "-m", "pca", *steps, "--no-picture", "--no-assess")
    reference = make_pipeline(
        SimpleImputer(strategy="median"), FunctionTransformer(np.log1p, np.expm1),
        StandardScaler(), sklearn.decomposition.PCA(3), manifoldry.PCA(2),
    ).fit(gaps)  # fmt: skip
    expected = reference[-1].embedding_
    np.testing.assert_allclose(read_table("gaps-pca.csv").X, expected, atol=1e-10)
    new = np.vstack([X[:3], gaps[:1]])
    (folder / "new.csv").write_text("\n".join(rows(new)))
    run("transform", "gaps-pca.model", "new.csv")
    placed = read_table("new-pca-placed.csv")
    np.testing.assert_allclose(placed.X[:, :2], reference.transform(new), atol=1e-10)
    assert placed.names[2:] == ("novelty",)
    run("inverse", "gaps-pca.model", "new-pca-placed.csv", "-o", "back.csv")
    back = read_table("back.csv")
    decoded = reference[1:].inverse_transform(reference.transform(new))
    np.testing.assert_allclose(back.X[:, :-1], decoded, atol=1e-8)
    assert back.names == (*NAMES, "distance_from_map")


def test_transform_finds_columns_by_name(run, folder):
    run("embed", "iris.csv", "-m", "pca", "--no-picture", "--no-assess")
    order = [3, 0, 2, 1]
    lines = [",".join(["extra", *(NAMES[j] for j in order)])]
    lines += [",".join(["7", *(repr(float(v)) for v in row[order])]) for row in X[:9]]
    (folder / "new.csv").write_text("\n".join(lines))
    run("transform", "iris-pca.model", "new.csv", "-o", "new.npy")
    np.testing.assert_allclose(np.load("new.npy"), read_table("iris-pca.csv").X[:9], atol=1e-12)
    np.save("new-x.npy", X[:9])
    run("transform", "iris-pca.model", "new-x.npy", "-o", "same.npy")
    np.testing.assert_array_equal(np.load("same.npy"), np.load("new.npy"))
    (folder / "new.csv").write_text("sepal_length,sepal_width\n1,2\n3,4\n")
    _, err = run("transform", "iris-pca.model", "new.csv", code=1)
    assert "no column 'petal_length'" in err[-1]


def test_inverse_needs_the_coordinates(run, folder):
    run("embed", "iris.csv", "-m", "pca", "--no-picture", "--no-assess")
    model = manifoldry.load("iris-pca.model")
    positions = np.array([[1.0, 0.0], [2.0, 0.0]])
    expected = np.column_stack(model.inverse_transform(positions, return_distance=True))
    for text in "pca1,pca0,score\n0,1,5\n0,2,6\n", "pca1,pca0\n0,1\n0,2\n", "x,y\n1,0\n2,0\n":
        (folder / "z.csv").write_text(text)
        run("inverse", "iris-pca.model", "z.csv", "-o", "back.csv")
        back = read_table("back.csv")
        np.testing.assert_allclose(back.X, expected)
        assert back.names[-1] == "distance_from_map"
    (folder / "z.csv").write_text("a,b,c\n0,1,5\n0,2,6\n")
    _, err = run("inverse", "iris-pca.model", "z.csv", code=1)
    assert "3 columns of numbers, but the map of this model has 2" in err[-1]


@pytest.mark.parametrize("names", ["pca0,pca1", "embedding0,embedding1"])
def test_inverse_knows_the_coordinates_of_a_model_saved_in_python(run, folder, names):
    model = manifoldry.PCA(2).fit(X)
    manifoldry.save(model, "own.model")
    # The first column is numbers, not row names; the last has no bearing on the positions.
    (folder / "z.csv").write_text(f"batch,{names},score\n7,1,0,\n7,2,0,5\n8,2,1,6\n")
    run("inverse", "own.model", "z.csv", "-o", "back.csv")
    expected = model.inverse_transform(np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 1.0]]))
    np.testing.assert_allclose(read_table("back.csv").X[:, :4], expected)
    (folder / "z.csv").write_text(f"{names}\n1,0\n2,\n")
    _, err = run("inverse", "own.model", "z.csv", code=1)
    assert "a coordinate of row 2 is missing or infinite; leave out such rows" in err[-1]


def test_compare_methods_and_maps(run, folder):
    np.savetxt("mine.csv", X[:, :2], delimiter=",", header="u,v", comments="")
    arguments = ["-m", "pca", "-m", "isomap", "--map", "mine.csv"]
    result = found(run, "compare", "iris.csv", *arguments)
    several = {"pca": manifoldry.PCA(2), "isomap": manifoldry.Isomap(2), "mine": X[:, :2]}
    expected = manifoldry.compare(X, several, SPECIES, random_state=0)
    for name, metrics in expected.metrics.items():
        assert result["metrics"][name] == pytest.approx({k: float(v) for k, v in metrics.items()})
    assert (folder / "iris-compare.png").exists()
    options = tomllib.loads((folder / "iris-compare.run.toml").read_text())
    assert options["map"] == [str(folder / "mine.csv")]


def test_compare_with_parameters_of_each_method(run, folder):
    options = ["--set", "isomap.n_neighbors=20", "--set", "n_neighbors=12", "--no-picture"]
    methods = ["-m", "isomap", "-m", "ltsa", "-m", "pca"]
    first = found(run, "compare", "iris.csv", *methods, *options)["metrics"]
    for name, count in {"isomap": 20, "ltsa": 12}.items():
        alone = ["-m", name, "--set", f"n_neighbors={count}", "--no-assess", "--no-picture"]
        run("embed", "iris.csv", *alone, "-o", f"{name}.csv")
        same = found(run, "assess", "iris.csv", f"{name}.csv")["metrics"]
        assert same["trustworthiness"] == pytest.approx(first[name]["trustworthiness"], abs=1e-9)
    written = (folder / "iris-compare.run.toml").read_text()
    assert '"isomap.n_neighbors" = 20' in written
    again = found(run, "compare", "--run", "iris-compare.run.toml")["metrics"]
    assert again == first


def test_assess_any_map(run, folder):
    """Rows are matched by their names if both files have the same ones."""
    order = np.random.default_rng(0).permutation(150)
    Y = X[:, :2]
    lines = ["id,u,v", *(f"flower{i},{Y[i, 0]},{Y[i, 1]}" for i in order)]
    (folder / "mine.csv").write_text("\n".join(lines))
    result = found(run, "assess", "iris.csv", "mine.csv")
    expected = manifoldry.assess(X, Y, SPECIES, random_state=0)
    assert result["metrics"] == pytest.approx({k: float(v) for k, v in expected.metrics.items()})
    assert result["summary"] == for_command(expected.summary)
    out, _ = run("assess", "iris.csv", "mine.csv", "-o", "points.csv")
    assert for_command(str(expected)) in out
    points = read_table("points.csv", ColumnChoice(features=["trustworthiness"]))
    np.testing.assert_allclose(points.X[:, 0], expected.per_point["trustworthiness"])
    assert list(points.ids[:2]) == ["flower0", "flower1"]


def test_maps_of_very_few_rows_are_not_assessed(run, folder):
    (folder / "short.csv").write_text("a,b\n1,2\n3,4\n4,5\n")
    result = found(run, "embed", "short.csv", "--no-picture")
    assert result["method"] == "pca"
    assert "the map is not assessed: " in result["notes"][-1]


def test_dimension(run):
    result = found(run, "dimension", "iris.csv")
    assert result["dimension"] == manifoldry.estimate_dimension(X, random_state=0).dimension


def test_columns_of_other_units_are_standardized(run, folder):
    (folder / "units.csv").write_text("\n".join(rows(X * [1000, 1, 1, 1])))
    embed = "embed", "units.csv", "-m", "pca", *ONLY_MAP, "-o"
    _, err = run(*embed, "auto.npy")
    assert any("'sepal_length' has 100.0% of the variance" in line for line in err)
    for option in "--scale", "--no-scale":
        _, err = run(*embed, f"with{option}.npy", option)
        assert not any("of the variance" in line for line in err)
    again = run("embed", "--run", "auto.run.toml", "-o", "again.npy")[1]
    assert not any("of the variance" in line for line in again)  # the file has the decision
    auto, scaled, kept, repeated = (
        np.load(folder / f"{name}.npy")
        for name in ("auto", "with--scale", "with--no-scale", "again")
    )
    assert np.array_equal(auto, scaled)
    assert np.array_equal(auto, repeated)
    expected = manifoldry.PCA(2).fit_transform(StandardScaler().fit_transform(X * [1000, 1, 1, 1]))
    assert np.allclose(auto, expected, atol=1e-10)
    assert np.allclose(kept, manifoldry.PCA(2).fit_transform(X * [1000, 1, 1, 1]))
    _, err = run("embed", "iris.csv", "-m", "pca", *ONLY_MAP)
    assert not any("of the variance" in line for line in err)


def test_columns_that_hardly_vary_are_noted(run, folder):
    """None has most of the variance, so nothing is decided, but half of them have no weight."""
    values = X * [100, 200, 1, 1]
    (folder / "units.csv").write_text("\n".join(rows(values)))
    fraction = values[:, 2:].var(axis=0).sum() / values.var(axis=0).sum()
    note = (
        f"2 of 4 columns together have {fraction:.1g} of the variance, so distances hardly depend "
        "on them; if units differ, standardize with --scale (scale=True)"
    )
    embed = "embed", "units.csv", "-m", "pca", *ONLY_MAP
    compare = "compare", "units.csv", "-m", "pca", "--no-picture"
    for command in embed, compare:
        assert [line for line in run(*command)[1] if "variance" in line] == [note]
        for option in "--scale", "--no-scale", "--log1p":
            assert not any("variance" in line for line in run(*command, option)[1])
    np.save("units.npy", values)  # columns need no names
    assert note in run("embed", "units.npy", *embed[2:])[1]


def test_distances_are_assessed_as_distances(run, folder):
    D = pairwise_distances(X, metric="cityblock")
    np.save("distances.npy", D)
    setting = ["-m", "isomap", "--set", "metric=precomputed", "--no-picture"]
    result = found(run, "embed", "distances.npy", *setting)
    model = manifoldry.load("distances-isomap.model")
    expected = manifoldry.assess(D, model, metric="precomputed", random_state=0)
    assert result["metrics"] == pytest.approx({k: float(v) for k, v in expected.metrics.items()})


def test_progress_is_shown_to_who_watches(run, monkeypatch):
    from manifoldry.cli.console import Console

    monkeypatch.setattr(Console, "is_interactive", property(lambda self: True))
    _, err = run("embed", "iris.csv", "-m", "tsne", "--set", "max_iter=30", *ONLY_MAP)
    assert any("TSNE: " in line for line in err)
    run("embed", "iris.csv", "-m", "pca", "--no-picture", "--no-model")


def test_methods_and_info(run, folder):
    out, _ = run("methods")
    assert "tsne" in out
    out, _ = run("methods", "T-SNE")
    assert "perplexity : float" in out
    run("embed", "iris.csv", "-m", "pca", "--no-picture", "--no-assess")
    out, _ = run("info", "iris-pca.model")
    assert "n_samples" in out
    assert "petal_width" in out
    assert found(run, "info", "iris-pca.model")["training"]["feature_names"] == NAMES
    assert found(run, "info")["manifoldry"] == manifoldry.__version__
    assert run("--version")[0].strip() == manifoldry.__version__
    assert "embed" in run()[0]


def test_information_from_a_file_cannot_control_the_terminal(run):
    model = manifoldry.PCA().fit(X)
    manifoldry.save(model, "odd.model", facts={"input": "\x1b[2J\x07cleared", "\x1b]0;x": 1})
    out, _ = run("info", "odd.model")
    assert "?[2J?cleared" in out
    assert "\x1b" not in out


def test_every_method_of_the_list_exists(run):
    from manifoldry.methods.catalog import METHODS

    for method in METHODS:
        assert hasattr(method.make(), "fit_transform")
        assert method.class_name in ("NonRedundant", type(method.make()).__name__)


def test_demo(run, folder):
    result = found(run, "demo", "-m", "pca", "--no-assess")
    assert result["n_samples"] == 1797
    assert (folder / "digits-pca.png").exists()


def write_zarr(path):
    pytest.importorskip("zarr").save_group(path, X=X, y=TARGET)


def write_h5ad(path):
    pytest.importorskip("anndata").AnnData(X).write_h5ad(path)


FORMATS = {
    "x.tsv": lambda path: np.savetxt(path, X, delimiter="\t"),
    "x.txt.gz": lambda path: np.savetxt(path, X, header=" ".join(NAMES)),
    "x.parquet": lambda path: parquet.write_table(pa.table(list(X.T), NAMES), path),
    "x.feather": lambda path: feather.write_feather(pa.table(list(X.T), NAMES), path),
    "x.npy": lambda path: np.save(path, X),
    "x.npz": lambda path: np.savez(path, X=X, y=TARGET),
    "s.npz": lambda path: sparse.save_npz(path, sparse.csc_matrix(X)),
    "x.zarr": write_zarr,
    "x.h5ad": write_h5ad,
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_map(run, name):
    FORMATS[name](name)
    run("embed", name, "-m", "pca", "-o", "map.npy", *ONLY_MAP)
    expected = manifoldry.PCA(2).fit_transform(X)
    np.testing.assert_allclose(np.load("map.npy"), expected, atol=1e-5 * np.abs(expected).max())


def test_standard_input(run, monkeypatch, folder):
    content = (folder / "iris.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    run("embed", "-", "-m", "pca", "-o", "map.csv", *ONLY_MAP)
    assert read_table("map.csv").n == 150


def test_images(run, folder):
    image = pytest.importorskip("PIL.Image")
    (folder / "pictures").mkdir()
    for k in range(12):
        pixels = np.full((6, 5), 20 * k, dtype=np.uint8)
        pixels[k % 6] = 255 - pixels[k % 6]
        image.fromarray(pixels).save(folder / "pictures" / f"{k:02}.png")
    run("embed", "pictures", "-m", "pca", "--no-assess")
    assert read_table("pictures-pca.csv").ids[3] == "03.png"
    assert (folder / "pictures-pca.png").exists()


def test_h5ad(run, folder):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(X).write_h5ad("cells.h5ad")
    run("embed", "cells.h5ad", "-m", "pca", "-o", "out.h5ad", "--no-picture", "--no-assess")
    adata = anndata.read_h5ad("out.h5ad")
    np.testing.assert_allclose(adata.obsm["X_pca"], manifoldry.PCA(2).fit_transform(X), atol=1e-6)
    assert found(run, "assess", "cells.h5ad", "out.h5ad", "--map-key", "X_pca")["n_samples"] == 150


def test_annotated_zarr_and_its_graph(run, folder):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("zarr")
    adata = anndata.AnnData(X)
    graph = manifoldry.NeighborGraph.build(X, 60)  # connected
    D = graph.matrix()
    adata.obsp["distances"] = sparse.csr_matrix(D)
    adata.obsp["connectivities"] = sparse.csr_matrix(D + D.T)
    adata.write_zarr("cells.zarr")
    options = ("--key", "distances", "-m", "isomap", "-o", "out.zarr", *ONLY_MAP)
    settings = {"metric": "precomputed", "n_neighbors": 60}
    precomputed = [part for name in settings for part in ("--set", f"{name}={settings[name]}")]
    run("embed", "cells.zarr", *options, *precomputed)
    expected = manifoldry.Isomap(2, **settings).fit(graph.matrix())
    adata = anndata.read_zarr("out.zarr")
    np.testing.assert_allclose(adata.obsm["X_isomap"], expected.embedding_, atol=1e-6)
    np.testing.assert_array_equal(adata.X, X)
    result = found(run, "embed", "cells.zarr", *options[:6], *precomputed, "--no-picture")
    assert result["metrics"]["trustworthiness"] > 0.9  # compared with paths in the graph
    result = found(run, "embed", "cells.zarr", "--key", "connectivities", "-m", "diffusion-maps",
                   "--set", "affinity=precomputed", "--no-picture")  # fmt: skip
    assert result["notes"][-1] == "the map is not assessed: only weights are known, not distances"
    for code, arguments, message in (
        (1, ("embed", "cells.zarr", *options), "--method isomap --set metric=precomputed"),
        (1, ("dimension", "cells.zarr", "--key", "distances"), "distances or weights of pairs"),
        (
            2,
            ("embed", "cells.zarr", *options, *precomputed, "--scale"),
            "--scale cannot be applied",
        ),
    ):
        _, err = run(*arguments, code=code)
        assert message in err[-1]


def test_a_model_that_cannot_be_saved_is_noted(run, folder, monkeypatch):
    from manifoldry.cli import embedding
    from manifoldry.io import UnsavableError

    def refuse(*arguments, **options):
        raise UnsavableError("a part of it")

    monkeypatch.setattr(embedding, "save", refuse)
    result = found(run, "embed", "iris.csv", "-m", "pca", "--no-assess")
    assert result["notes"][-1] == "the model is not saved: a part of it"
    assert set(result["files"]) == {"map", "picture", "run"}


@pytest.fixture
def ctrl_c():
    """Raise what Ctrl-C does, also in processes in the background, which shells keep from it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_the_map_so_far(run, monkeypatch, folder, ctrl_c):
    from manifoldry.cli import fitting
    from manifoldry.optimize import Callback

    def interrupt(iterate):
        if iterate.step.iteration == 40:
            ctrl_c()

    monkeypatch.setattr(fitting, "Callback", lambda **options: Callback(interrupt, **options))
    result = found(run, "embed", "iris.csv", "-m", "tsne", code=130)
    assert result["interrupted"]
    assert read_table("iris-tsne-interrupted.csv").X.shape == (150, 2)
    assert manifoldry.load("iris-tsne-interrupted.model").n_iter_ <= 41
    assert "the map so far is in iris-tsne-interrupted.csv" in result["warnings"][-1]
    assert not list(folder.glob("iris-tsne.*"))  # where complete files would be
    options = tomllib.loads((folder / "iris-tsne-interrupted.run.toml").read_text())
    assert options["output"] == "iris-tsne.csv"


def test_a_missing_extra_is_named_before_the_fit(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    _, err = run("embed", "iris.csv", "-o", "map.h5ad", code=1)
    assert err == [
        "manifoldry: error: writing .h5ad needs the package anndata: pip install "
        "'manifoldry[anndata]'"
    ]


def test_ctrl_c_before_there_is_a_map(run, monkeypatch, ctrl_c):
    from manifoldry.cli import inputs

    monkeypatch.setattr(inputs, "read_table", lambda *arguments, **options: ctrl_c())
    _, err = run("embed", "iris.csv", code=130)
    assert err == ["manifoldry: error: interrupted; no unfinished file was left behind"]


USAGE_ERRORS = {
    "there is no method 'tsen'; did you mean tsne": ["embed", "iris.csv", "-m", "tsen"],
    "no parameter 'perplexty'; did you mean perplexity": [
        *("embed", "iris.csv", "-m", "tsne", "--set", "perplexty=3")
    ],
    "must be name=value": ["embed", "iris.csv", "-m", "pca", "--set", "perplexity"],
    "No such option": ["embed", "iris.csv", "--bogus"],
    "Missing argument": ["embed"],
    "No such command": ["bogus"],
    "--impute": ["embed", "iris.csv", "--impute", "often"],
    "there is no folder none": ["embed", "iris.csv", "-o", "none/x.csv"],
    "format '.xlsx' cannot be written": ["embed", "iris.csv", "-o", "x.xlsx"],
    "iris.csv is the input": ["embed", "iris.csv", "-o", "iris.csv"],
    "none of the methods has a parameter 'bogus'": [*("compare", "iris.csv", "--set", "bogus=3")],
    "tsne has no parameter 'perplexty'; did you mean perplexity": [
        *("compare", "iris.csv", "--set", "tsne.perplexty=3")
    ],
    "sne is not among the methods": [
        "compare",
        "iris.csv",
        "-m",
        "pca",
        "--set",
        "sne.perplexity=3",
    ],
    "must have different names": [
        *("compare", "iris.csv", "-m", "pca", "--map", "iris.csv", "--map", "iris.csv")
    ],
    "iris.csv is no run file": ["embed", "--run", "iris.csv"],
    "none.toml cannot be read": ["embed", "--run", "none.toml"],
    "unknown option 'mehtod'; did you mean method": ["embed", "--run", "unknown.toml"],
    "is for `manifoldry compare`": ["embed", "--run", "compare.toml"],
}
DATA_ERRORS = {
    "there is no file none.csv": ["embed", "none.csv"],
    "No such file or directory: none.model": ["transform", "none.model", "iris.csv"],
    "no model file of manifoldry": ["transform", "iris.csv", "iris.csv"],
    "no column 'petal'; did you mean 'petal_width'": ["embed", "iris.csv", "--drop", "petal"],
    "n_neighbors=1000 must be less than": [
        *("embed", "iris.csv", "-m", "isomap", "--set", "n_neighbors=1000")
    ],
    "row 2, column 'b' is missing; fill in": ["embed", "gap.csv"],
    "line 3 has 1 fields, the first line has 2; name another with --delimiter": [
        *("embed", "ragged.csv")
    ],
    "long.csv has a single line of 300003 characters": ["embed", "long.csv"],
    "short.csv has 3 rows, but the data have 150": ["assess", "iris.csv", "short.csv"],
    "log1p needs values above -1": ["embed", "negative.csv", "--log1p"],
}


@pytest.mark.parametrize("message", [*USAGE_ERRORS, *DATA_ERRORS])
def test_errors_are_one_line(run, folder, message):
    (folder / "gap.csv").write_text("a,b\n1,2\n3,\n4,5\n")
    (folder / "short.csv").write_text("a,b\n1,2\n3,4\n4,5\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (folder / "long.csv").write_text("a,b" + "x" * 300_000)
    (folder / "negative.csv").write_text("a,b\n1,2\n-3,4\n")
    (folder / "unknown.toml").write_text('data = "iris.csv"\nmehtod = "pca"\n')
    (folder / "compare.toml").write_text('command = "compare"\n')
    arguments = {**USAGE_ERRORS, **DATA_ERRORS}[message]
    out, err = run(*arguments, code=2 if message in USAGE_ERRORS else 1)
    assert out == ""
    assert sum(line.startswith("manifoldry: error: ") for line in err) == 1
    assert message in err[-1]
    assert not any("Traceback" in line for line in err)


def test_errors_as_json(run):
    for arguments, code in ((["embed", "none.csv"], 1), (["embed"], 2), (["bogus"], 2)):
        out, err = run(*arguments, "--json", code=code)
        result = json.loads(out)
        assert result["exit_code"] == code
        assert err == [f"manifoldry: error: {result['error']}"]


def test_tracebacks_on_demand(run):
    _, err = run("embed", "none.csv", "--traceback", code=1)
    assert err[0].startswith("Traceback")
    assert err[-1].startswith("manifoldry: error: there is no file")


def test_unforeseen_errors_are_one_line_too(run, monkeypatch):
    from manifoldry.cli import inputs

    def fail(*arguments, **options):
        raise ZeroDivisionError("of a\nkind")

    monkeypatch.setattr(inputs, "read_table", fail)
    _, err = run("embed", "iris.csv", code=1)
    assert err == ["manifoldry: error: ZeroDivisionError: of a kind (--traceback shows where)"]


def test_quiet_prints_nothing_but_warnings(run, folder):
    assert run("embed", "iris.csv", "-m", "pca", "-q", *ONLY_MAP) == ("", [])
    _, err = run("embed", "iris.csv", "-m", "isomap", "--set", "n_neighbors=4", "-q", *ONLY_MAP)
    assert err
    assert all(line.startswith("manifoldry: warning: ") for line in err)


def test_without_typer_the_extra_is_named(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("manifoldry.cli.")]:
        if name not in ("manifoldry.cli.main", "manifoldry.cli.errors"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    _, err = run("embed", "iris.csv", code=1)
    assert err == [
        "manifoldry: error: the command needs the package typer: pip install 'manifoldry[cli]'"
    ]


def test_the_default_method_follows_the_data():
    from manifoldry.methods.choice import default_method

    roll = make_swiss_roll(800, random_state=0).X
    noise = 0.3 * np.random.default_rng(0).normal(size=roll.shape)
    assert default_method(roll, 0).method == "isomap"
    assert default_method(roll + noise, 0).method == "isomap"
    assert default_method(np.random.default_rng(0).normal(size=(400, 5)), 0).method == "tsne"
    chosen = default_method(X, 0)
    assert chosen.method == "tsne"
    assert "2 separate parts" in chosen.reason
    assert default_method(X[:10], 0).method == "pca"
    equal = np.repeat(X[[0, 90]], 30, axis=0)
    assert default_method(equal, 0).reason.startswith("too few rows differ")


def test_isomap_of_many_rows_has_landmarks(capsys):
    from manifoldry.cli.console import Console
    from manifoldry.methods.choice import suited_to_size

    console = Console(quiet=False, as_json=False)
    assert suited_to_size(manifoldry.Isomap(), 6000, console.note).n_landmarks == 500
    assert "500 landmarks" in capsys.readouterr().err
    assert suited_to_size(manifoldry.Isomap(n_landmarks=9), 6000, console.note).n_landmarks == 9
    assert suited_to_size(manifoldry.Isomap(), 4000, console.note).n_landmarks is None


def test_maps_of_many_rows_are_assessed_from_fewer(run, monkeypatch):
    from manifoldry.methods import choice

    monkeypatch.setattr(choice, "_RANKED_PAIRS", 150 * 60)
    monkeypatch.setattr(choice, "_LEAST_SAMPLE", 20)
    result = found(run, "embed", "iris.csv", "-m", "pca", "--no-picture")
    assert "metrics of 150 rows are estimated from 60 of them" in result["notes"]
    expected = manifoldry.assess(X, manifoldry.PCA().fit(X), sample=60, random_state=0).metrics
    assert result["metrics"]["trustworthiness"] == pytest.approx(expected["trustworthiness"])


def test_texts_of_files_do_not_control_the_terminal(folder, run):
    red = "\x1b[31m\x9b31m\u202eß"
    (folder / f"{red}.csv").write_text((folder / "iris.csv").read_text())
    command = ["embed", f"{red}.csv", "-m", "pca", *ONLY_MAP]
    out, err = run(*command)
    assert any("?[31m?31m?ß" in line for line in err)
    assert all(line.isprintable() for line in [*out.split("\n"), *err])
    for code, arguments in (0, []), (1, ["--columns", "z"]):
        out, err = run(*command, "--json", *arguments, code=code)
        assert all(line.isprintable() for line in [*out.split("\n"), *err])
        found = json.loads(out)
        assert red in (found["error"] if code else "".join(found["notes"]))


def test_a_first_line_of_numbers_can_be_data(folder, run):
    (folder / "x.csv").write_text("".join(f"{i},{i + 1}\n" for i in range(30)))
    command = ["embed", "x.csv", "-m", "pca", *ONLY_MAP, "-o", "map.csv", "--json"]
    notes = {}
    for option, n in (None, 30), ("--no-header", 30), ("--header", 29):
        out, _ = run(*command, *([option] if option else []))
        notes[option] = "".join(json.loads(out)["notes"])
        assert read_table("map.csv").n == n
        run("embed", "--run", "map.run.toml", "x.csv")
        assert read_table("map.csv").n == n
    assert "no header recognized" in notes[None]
    assert "header" not in notes["--no-header"] + notes["--header"]
