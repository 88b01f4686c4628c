"""Names of outputs, and run files that repeat a run with the same words."""

import tomllib

import numpy as np
import pytest

import manifoldry
from manifoldry.cli.methods import parse_settings
from manifoldry.io import read_table

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
X = np.random.default_rng(0).normal(size=(30, 3))
EMBED = "embed", "-m", "pca", "--no-picture", "--no-assess"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("d.csv", X, delimiter=",", header="a,b,c", comments="")
    return tmp_path


def options(path):
    return tomllib.loads(path.read_text())


def test_transform_leaves_the_files_of_embed(run, folder):
    run(*EMBED, "d.csv")
    before = {file.name: file.read_bytes() for file in folder.glob("d-pca.*")}
    run("transform", "d-pca.model", "d.csv")
    assert {file.name: file.read_bytes() for file in folder.glob("d-pca.*")} == before
    assert options(folder / "d-pca-placed.run.toml")["command"] == "transform"
    placed = read_table("d-pca-placed.csv")
    assert placed.names == ("pca0", "pca1", "novelty")
    assert (folder / "d-pca-placed.png").exists()
    run("transform", "d-pca.model", "d.csv", "-o", "placed.csv")
    assert (folder / "placed.png").exists()


def test_a_run_file_of_another_command_stays(run, folder):
    run(*EMBED, "d.csv", "-o", "x.csv")
    before = (folder / "x.run.toml").read_bytes()
    for _ in range(2):  # its own is replaced
        run("transform", "x.model", "d.csv", "-o", "x.npy")
    assert (folder / "x.run.toml").read_bytes() == before
    assert options(folder / "x-transform.run.toml")["output"] == "x.npy"
    assert {file.name for file in folder.glob("*.toml")} == {"x.run.toml", "x-transform.run.toml"}
    (folder / "y.run.toml").write_text("no run file")
    run(*EMBED, "d.csv", "-o", "y.csv")
    assert (folder / "y.run.toml").read_text() == "no run file"
    run("embed", "--run", "y-embed.run.toml")


def test_features_of_arrays_have_names_too(run):
    """An array without names has the features in their order."""
    np.savez("train.npz", X=X, columns=np.array(["a", "b", "c"]))
    np.savez("other.npz", X=X[:, [2, 0, 1]], columns=np.array(["c", "a", "b"]))
    np.savez("plain.npz", X=X)
    run(*EMBED, "train.npz", "-o", "train.npy")
    for name in "other", "plain":
        run("transform", "train.model", f"{name}.npz", "-o", f"{name}.npy")
        np.testing.assert_allclose(np.load(f"{name}.npy"), np.load("train.npy"), atol=1e-12)


def test_features_of_a_zarr_store_have_names_too(run):
    zarr = pytest.importorskip("zarr")
    run(*EMBED, "d.csv", "-o", "train.npy")
    group = zarr.open_group("other.zarr", mode="w")
    group["X"] = X[:, [2, 0, 1]]
    group["columns"] = np.array(["c", "a", "b"])
    run("transform", "train.model", "other.zarr", "-o", "stored.npy")
    np.testing.assert_allclose(np.load("stored.npy"), np.load("train.npy"), atol=1e-12)


def test_run_files_have_the_names_of_options(run, folder):
    (folder / "named.csv").write_text(
        "name,a,b,kind\n" + "".join(f"r{i},{x},{y},k{i % 2}\n" for i, (x, y, _) in enumerate(X))
    )
    run(*EMBED, "named.csv", "--no-model", "--id", "name", "--label", "kind", "-o", "map.csv")
    written = options(folder / "map.run.toml")
    assert written["id"] == "name"
    assert written["label"] == ["kind"]
    assert [written[name] for name in ("assess", "model", "picture")] == 3 * [False]
    run("embed", "--run", "map.run.toml", "-o", "again.csv")
    assert (folder / "again.csv").read_bytes() == (folder / "map.csv").read_bytes()
    assert not (folder / "again.model").exists()
    run("assess", "named.csv", "map.csv", "-o", "points.csv", "--map-columns", "pca0,pca1")
    assert options(folder / "points.run.toml")["map-columns"] == ["pca0,pca1"]
    run("assess", "--run", "points.run.toml")


def test_names_with_commas(run, folder):
    (folder / "e.csv").write_text('"a,1",b,"c,2",d\n1,2,3,4\n4,3,1,1\n2,2,5,3\n')
    written = {}
    for i, given in enumerate((
        ["--columns", '"a,1",b'], ["--columns", '"a,1"', "--columns", "b"],
        ["--drop", 'd,"c,2"'],
    )):  # fmt: skip
        run(*EMBED, "e.csv", *given, "-o", f"e{i}.csv")
        written[i] = (folder / f"e{i}.csv").read_bytes()
        assert manifoldry.read_info(f"e{i}.model").training["feature_names"] == ["a,1", "b"]
    assert written[0] == written[1] == written[2]
    run("embed", "--run", "e0.run.toml", "-o", "again.csv")
    assert (folder / "again.csv").read_bytes() == written[0]


@pytest.mark.parametrize("text", ['"5"', "5", "none", "'none'", "[1, 2]", "'[1, 2]'", "' a'", "a"])
def test_a_run_file_has_the_same_values(text, folder):
    """As from the command line: the value in the file is read to what it was."""
    from types import SimpleNamespace

    from manifoldry.cli.run_file import read_run, write_run

    ctx = SimpleNamespace(
        params={"settings": [f"a={text}"]}, command=SimpleNamespace(name="embed", params=[])
    )
    path = write_run(folder / "map.csv", ctx)
    read_run(ctx, path)
    assert parse_settings(ctx.default_map["settings"]) == parse_settings([f"a={text}"])


def test_help_says_what_is_done(run):
    text = " ".join(run("inverse", "--help")[0].split())
    assert ".parquet" in text
    assert ".h5ad" not in text
    report = " ".join(run("report", "--help")[0].split())
    assert "[default: median]" in report


def test_a_computed_column_replaces_an_older_one(run, folder):
    run(*EMBED, "d.csv", "-o", "m.csv")
    novelty = manifoldry.load("m.model").novelty(X)
    (folder / "old.csv").write_text(
        "a,b,c,novelty\n" + "".join(",".join(map(repr, [*row, 7.5])) + "\n" for row in X.tolist())
    )
    _, err = run("transform", "m.model", "old.csv", "--label", "novelty", "-o", "placed.csv")
    assert "the output has a new column 'novelty' in place of the one of the data" in err
    np.testing.assert_allclose(read_table("placed.csv").X[:, 2], novelty)


def test_a_computed_column_replaces_an_older_one_of_an_anndata(run):
    anndata = pytest.importorskip("anndata")
    run(*EMBED, "d.csv", "-o", "m.csv")
    adata = anndata.AnnData(X)
    adata.var_names = ["a", "b", "c"]
    adata.obs["novelty"] = 7.5
    adata.write_h5ad("old.h5ad")
    run("transform", "m.model", "old.h5ad", "-o", "placed.h5ad")
    found = anndata.read_h5ad("placed.h5ad")
    novelty = manifoldry.load("m.model").novelty(X)
    np.testing.assert_allclose(found.obs["novelty"], novelty, rtol=1e-5)
