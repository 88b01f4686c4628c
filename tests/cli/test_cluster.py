"""Commands on Dask workers: in this process, and with workers of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import manifoldry
from manifoldry.cli import cluster, workers
from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.distributed.failures import explained
from manifoldry.eigen.distributed import _REMEDY
from manifoldry.io import read_table
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.spectral.distributed_eigenmaps import check_solver
from manifoldry.util.hints import for_command

pytest.importorskip("typer")
distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")
da = pytest.importorskip("dask.array")
pandas = pytest.importorskip("pandas")
N = 600
X = np.random.default_rng(0).normal(size=(N, 4)) * [4, 3, 2, 1]
EMBED = "embed", "-m", "pca", "--workers", "1", "--no-picture", "--no-assess"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Data as Zarr and Parquet, whose parts have different numbers of rows."""
    monkeypatch.chdir(tmp_path)
    da.from_array(X, chunks=(150, 4)).to_zarr("d.zarr")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame["name"] = [f"row{i}" for i in range(N)]
    frame["kind"] = np.where(X[:, 0] > 0, "left", "right")
    (tmp_path / "d.parquet").mkdir()
    for i, rows in enumerate(np.split(np.arange(N), [100, 120, 480])):
        frame.iloc[rows].to_parquet(f"d.parquet/part.{i}.parquet", index=False)
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Compute by threads of this process instead of workers, which take seconds to start."""
    monkeypatch.setattr(cluster, "workers", lambda params, console: nullcontext())


@pytest.fixture
def in_memory():
    return manifoldry.PCA(2).fit(X)


def same_up_to_signs(found, expected):
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("output", ["map.zarr", "map.parquet", "map.csv", "map.npy"])
def test_embed_writes_the_map_in_memory(run, here, in_memory, output):
    out, _ = run(*EMBED, "d.parquet", "-o", output, "--no-scale", "--json")
    found = json.loads(out)
    assert found["files"] == {"map": output, "model": "map.model", "run": "map.run.toml"}
    table = read_table(output)
    same_up_to_signs(table.X, in_memory.embedding_)
    if output in ("map.parquet", "map.csv"):
        assert table.names == ("pca0", "pca1")
        assert list(table.ids[:2]) == ["row0", "row1"]
        np.testing.assert_array_equal(table.labels["kind"], np.where(X[:, 0] > 0, "left", "right"))
    placed = manifoldry.load("map.model").transform(X)
    same_up_to_signs(placed, in_memory.embedding_)


def test_embed_draws_assesses_and_says_what_was_fitted(run, here, folder):
    out, err = run(
        "embed", "d.parquet", "--workers", 1, "-m", "pca", "--landmarks", 300, "-o", "m.parquet"
    )
    assert "pca was fitted to 300 of 600 rows; the others are placed by transform" in err
    assert "d.parquet: column 'name' names the rows" in err
    assert out.startswith("Embedding of 600 points in 2 coordinates; data: 4 features")
    assert "label_accuracy" in out
    options = tomllib.loads((folder / "m.run.toml").read_text())
    assert (options["workers"], options["landmarks"]) == (1, 300)
    assert (folder / "m.png").stat().st_size > 1000
    again, _ = run("embed", "--run", "m.run.toml", "d.parquet")
    assert again == out


def test_a_missing_file_starts_no_workers(run, folder):
    _, err = run("embed", "nothing.zarr", "--workers", 2, code=1)
    assert err == ["manifoldry: error: there is no file nothing.zarr"]


def test_outputs_take_the_format_and_the_name_of_the_data(run, here, folder):
    run(*EMBED, "d.zarr")
    assert read_table("d-pca.zarr").X.shape == (N, 2)
    run("transform", "d-pca.model", "d.zarr", "--workers", 1, "--no-picture")
    np.testing.assert_allclose(read_table("d-pca-placed.zarr").X, read_table("d-pca.zarr").X)


def test_steps_before_the_method_are_those_in_memory(run, here):
    positive = np.exp(X) * [1, 1, 1, 5]
    da.from_array(positive, chunks=(250, 4)).to_zarr("p.zarr")
    np.save("p.npy", positive)
    run(*EMBED, "p.zarr", "--log1p", "--scale")
    run("embed", "-m", "pca", "p.npy", "--log1p", "--scale", "--no-picture", "--no-assess")
    same_up_to_signs(read_table("p-pca.zarr").X, read_table("p-pca.csv").X)
    placed = manifoldry.load("p-pca.model").transform(positive)
    same_up_to_signs(placed, read_table("p-pca.csv").X)


def test_a_dominating_column_is_scaled_as_in_memory(run, here):
    frame = pandas.DataFrame(X * [1000, 1, 1, 1], columns=list("abcd"))
    frame.to_parquet("s.parquet")
    err = run(*EMBED, "s.parquet")[1]
    assert any("column 'a' has 100.0% of the variance" in line for line in err)
    assert tomllib.loads(Path("s-pca.run.toml").read_text())["scale"] is True


def test_method_is_chosen_by_a_sample(run, here):
    err = run("embed", "d.zarr", "--landmarks", 50, *EMBED[3:])[1]
    assert any(line.startswith("method tsne: ") for line in err)


def test_transform_and_inverse_agree_with_those_in_memory(run, here):
    run(*EMBED, "d.parquet", "-o", "m.parquet")
    options = "d.parquet", "--no-picture", "-o"
    run("transform", "m.model", *options, "here.parquet", "--workers", 1)
    frame = pandas.read_parquet("d.parquet").to_csv("d.csv", index=False)
    assert frame is None  # written
    run("transform", "m.model", "d.csv", "--no-picture", "-o", "there.csv")
    found, expected = pandas.read_parquet("here.parquet"), pandas.read_csv("there.csv")
    columns = ["pca0", "pca1", "novelty"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=1e-6)
    assert list(found["id"]) == list(expected["id"])
    run("inverse", "m.model", "m.parquet", "--workers", 1, "-o", "back.parquet")
    run("inverse", "m.model", "there.csv", "-o", "back.csv")
    found, expected = pandas.read_parquet("back.parquet"), pandas.read_csv("back.csv")
    columns = [*"abcd", "distance_from_map"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=1e-5, atol=1e-6)


def test_assess_and_dimension(run, here):
    run(*EMBED, "d.parquet", "-o", "m.parquet", "--no-scale")
    out, err = run("assess", "d.parquet", "m.parquet", "--workers", 1, "--no-scale", "--json")
    found = json.loads(out)
    expected = manifoldry.assess(X, manifoldry.PCA(2).fit_transform(X))
    value = found["metrics"]["trustworthiness"]
    assert value == pytest.approx(float(expected.metrics["trustworthiness"]), abs=1e-9)
    assert "rows of the map and of the data have the same names, in the same order" in err
    run(*EMBED, "d.zarr", "-o", "m.zarr")
    out, err = run("assess", "d.zarr", "m.zarr", "--workers", 1, "--json")
    assert "rows of the map and of the data belong together by their order" in err
    trust = json.loads(out)["metrics"]["trustworthiness"]
    assert trust == pytest.approx(value, abs=1e-9)
    out, _ = run("dimension", "d.zarr", "--workers", 1, "--json")
    assert json.loads(out)["dimension"] == manifoldry.estimate_dimension(X).dimension


def test_an_earlier_map_stays_if_a_later_one_fails(run, here, folder, monkeypatch):
    run(*EMBED, "d.zarr", "-o", "m.zarr")
    before = read_table("m.zarr").X
    bad = X.copy()
    bad[400, 1] = np.nan
    da.from_array(bad, chunks=(150, 4)).to_zarr("bad.zarr")
    _, err = run(*EMBED, "bad.zarr", "-o", "m.zarr", code=1)
    assert "bad.zarr contains NaN in chunk 2 (row 400, column 1)" in err[-1]

    def fails(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("manifoldry.io.write_parts._write_chunk", fails)
    assert "disk full" in run(*EMBED, "d.zarr", "-o", "m.zarr", code=1)[1][-1]
    np.testing.assert_array_equal(read_table("m.zarr").X, before)
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["d.zarr", "--workers", "0"], "Invalid value for '--workers'"),
        (["d.zarr", "--workers", "2", "--scheduler", "tcp://h:1"], "pass one of them"),
        (["d.zarr", "--memory-limit", "1GiB"], "pass --workers N, too"),
        (["d.zarr", "--landmarks", "500"], "--landmarks is for --workers or --scheduler"),
        (["d.csv", "--workers", "2"], "write them as one of these, or leave the option out"),
        (["d.zarr", "--workers", "2", "--pca", "3"], "--pca cannot be used with --workers"),
        (["d.zarr", "--workers", "2", "--impute", "mean"], "--impute cannot be used"),
        (["d.zarr", "--workers", "2", "--jobs", "2"], "each worker has one thread"),
        (["d.zarr", "--workers", "2", "--device", "cpu"], "workers compute on CPUs"),
        (["d.zarr", "--workers", "2", "-o", "m.h5ad"], "choose .zarr, .parquet, .csv, .tsv, .npy"),
        (["d.zarr", "--workers", "2", "--set", "metric=precomputed"], "cannot be used with"),
        (["d.zarr", "--workers", "2", "--memory-limit", "lots"], "such as 2GiB"),
        (["d.zarr", "--workers", "2", "--memory-limit", "0.25GB"], "pass 512MiB or more"),
        (["d.zarr", "--scheduler", "host"], "must be an address, such as tcp://"),
        (["d.zarr", "--scheduler", "tls://127.0.0.1:1"], "distributed.comm.tls.ca-file"),
    ],
)
def test_options_that_cannot_be_meant(run, arguments, message):
    _, err = run("embed", *arguments, code=2)
    assert message in err[-1]
    assert len(err) == 1


def test_a_scheduler_that_does_not_answer(run, folder):
    _, err = run("embed", "d.zarr", "--scheduler", "tcp://127.0.0.1:1", code=1)
    assert "no Dask scheduler answers at tcp://127.0.0.1:1 (" in err[-1]
    assert "start one with `dask scheduler`" in err[-1]
    assert len(err) == 1


def test_without_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    _, err = run("embed", "d.zarr", "--workers", 1, code=1)
    assert "pip install 'manifoldry[dask]'" in err[-1]


def test_one_file_has_a_limit(run, here, monkeypatch):
    monkeypatch.setattr("manifoldry.io.write_parts._MOST_VALUES_IN_ONE_FILE", 1200)
    run(*EMBED, "d.zarr", "-o", "m.csv")
    _, err = run(*EMBED, "d.zarr", "-d", 3, "-o", "m.csv", code=1)
    assert "m.csv would have 600 rows of 3 columns" in err[-1]
    assert "m.parquet" in err[-1]
    _, err = run("inverse", "m.model", "d.parquet", "--columns", "a,b", "--workers", 1, "-o",
                 "back.csv", code=1)  # fmt: skip
    assert "back.csv would have 600 rows of 5 columns" in err[-1]


def test_memory():
    assert workers.memory_of("1.5GiB") == 3 * 2**29
    with pytest.raises(UsageError, match="--memory-limit 5 must be an amount of memory"):
        workers.memory_of("5")


@pytest.mark.parametrize("output", ["m.zarr", "m.parquet", "m.csv"])
def test_rows_that_are_not_embedded_are_left_out(run, here, folder, output):
    apart = X + np.where(np.arange(N) % 6 == 5, 1000, 0)[:, None]
    frame = pandas.DataFrame(apart, columns=list("abcd"))
    frame["kind"] = np.where(X[:, 0] > 0, "left", "right")
    frame.to_parquet("apart.parquet", row_group_size=150)
    fit = "embed", "apart.parquet", "-m", "laplacian-eigenmaps", "--set", "disconnected=largest"
    out, err = run(*fit, "--workers", 1, "--no-scale", "-o", output, "--json")
    Y = read_table(output, missing=True).X[:, :2]
    np.testing.assert_array_equal(np.isnan(Y).all(axis=1), np.arange(N) % 6 == 5)
    assert any(line.startswith("100 of 600 rows were not embedded: they are NaN") for line in err)
    assert not [line for line in err if "using_options" in line or "not assessed" in line]
    files = {"map": output, "model": "m.model", "picture": "m.png", "run": "m.run.toml"}
    found = json.loads(out)
    assert found["files"] == files
    assert all(Path(file).exists() for file in files.values())
    expected = manifoldry.assess(apart, Y, frame["kind"])
    assert found["metrics"]["continuity"] == pytest.approx(float(expected.metrics["continuity"]))


def test_a_picture_has_a_sample_without_missing_rows():
    Y = X[:, :2].copy()
    Y[::3] = np.nan
    for each in (Y, da.from_array(Y, chunks=(70, 1))):
        rows, drawn = cluster.drawn_rows(each, 0, 300)
        np.testing.assert_array_equal(drawn, Y[rows])
        assert np.isfinite(drawn).all()
        assert 150 < len(drawn) < 250


def test_samples_of_more_rows_than_one_sample(run, here, monkeypatch):
    monkeypatch.setattr("manifoldry.metrics.distributed.SAMPLE", 100)
    monkeypatch.setattr("manifoldry.metrics.distributed.POINTS", 80)
    run(*EMBED, "d.parquet", "-o", "m.parquet", "--no-scale")
    out, _ = run("assess", "d.parquet", "m.parquet", "--workers", 1, "--no-scale", "--json")
    expected = manifoldry.assess(X, read_table("m.parquet").X)
    for name, tolerance in (("continuity", 0.05), ("trustworthiness", 0.05)):
        value = json.loads(out)["metrics"][name]
        assert value != expected.metrics[name]
        assert value == pytest.approx(float(expected.metrics[name]), abs=tolerance)


@pytest.mark.parametrize("row_names", [[], ["--id", "name"]])
def test_rows_of_a_map_in_another_order_are_refused(run, here, row_names):
    run(*EMBED, "d.parquet", "-o", "m.parquet", "--no-scale")
    frame = pandas.read_parquet("m.parquet")
    frame.iloc[np.r_[:130, 131, 130, 132:N]].to_parquet("other.parquet")
    assess = "assess", "d.parquet", "other.parquet", "--workers", 1, "--no-scale", *row_names
    _, err = run(*assess, code=1)
    assert "row 131 is 'row131' in other.parquet, but 'row130' in the data" in err[-1]
    assert "pass --in-order" in err[-1]
    _, err = run(*assess, "--in-order")
    assert "rows of the map and of the data belong together by their order" in err
    frame[:500].to_parquet("short.parquet")
    _, err = run("assess", "d.parquet", "short.parquet", "--workers", 1, code=1)
    assert "short.parquet has 500 rows, but the data have 600" in err[-1]


def test_advice_can_be_followed_on_workers(run, here):
    noise = np.random.default_rng(1).normal(size=(N, 2))
    pandas.DataFrame(X[:, :2] + 3 * noise, columns=["u", "v"]).to_parquet("poor.parquet")
    assess = "assess", "d.parquet", "poor.parquet"
    for options, advised in (((), True), (("--workers", 1), False)):
        out, _ = run(*assess, *options)
        assert "of the points have a trustworthiness below" in out
        assert ("points.csv" in out) is advised


def test_landmarks_are_an_option_of_the_command():
    with pytest.raises(ValueError, match="metric='cityblock' is not supported") as found:
        DistributedGraph.build(da.from_array(X, chunks=(150, 4)), metric="cityblock")
    text = for_command(str(found.value))
    assert text.endswith("which are in memory, with another metric: --landmarks 20000")
    with pytest.raises(ValueError, match="solves problems in memory") as found:
        check_solver("arpack")
    assert for_command(str(found.value)).endswith("or fit a sample: with --landmarks 20000")
    text = for_command(f"not converged; {_REMEDY}")
    assert (
        text
        == "not converged; fit to landmarks, which are solved in memory, with --landmarks 20000"
    )
    text = for_command(
        str(
            explained(
                distributed.scheduler.KilledWorker("task", SimpleNamespace(address="tcp://h:1"), 3),
                None,
            )
        )
    )
    assert "write the data in smaller chunks, or fit fewer landmarks: with --landmarks 5000" in text


def test_no_workers(monkeypatch):
    class Without:
        def wait_for_workers(self, count, timeout):
            raise TimeoutError

    console = Console(quiet=True, as_json=False)
    for address, text in ((None, "start fewer with --workers"), ("tcp://h:1", "worker tcp://h:1`")):
        with pytest.raises(ConnectionError, match=text) as found:
            workers._wait_for_workers(Without(), address, console)
        assert "None" not in str(found.value)


class Page(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize("kind", ["silent", "web"])
def test_a_port_of_something_else(run, monkeypatch, kind):
    monkeypatch.setattr(workers, "_SECONDS_TO_ANSWER", 1)
    server = HTTPServer(("127.0.0.1", 0), Page)  # which listens, even if it does not answer
    if kind == "web":
        threading.Thread(target=server.serve_forever, daemon=True).start()
    address, start = f"tcp://127.0.0.1:{server.server_port}", time.monotonic()
    _, err = run("embed", "d.zarr", "--scheduler", address, code=1)
    assert time.monotonic() - start < 10
    assert len(err) == 1
    assert f"no Dask scheduler answers at {address} (no answer after 1 s); start one" in err[0]
    if kind == "web":
        server.shutdown()
    server.server_close()


def test_workers_of_a_scheduler(run, in_memory):
    from distributed import LocalCluster

    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as running:
        address = running.scheduler_address
        run(*EMBED[:3], "d.zarr", "--scheduler", address, "--no-picture", "--no-assess")
        assert tomllib.loads(Path("d-pca.run.toml").read_text())["scheduler"] == address
        assert len(running.workers) == 1  # it goes on
        worker = running.workers[0].worker_address
        _, err = run(*EMBED[:3], "d.zarr", "--scheduler", worker, code=1)
        assert f"no Dask scheduler answers at {worker} (a Dask Worker does)" in err[-1]
    same_up_to_signs(read_table("d-pca.zarr").X, in_memory.embedding_)


def start(*arguments):
    """The command as a process that has a group of its own, as in a shell."""
    return subprocess.Popen(
        [sys.executable, "-m", "manifoldry", *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def members(group):
    """Processes of a group that are still running."""
    psutil = pytest.importorskip("psutil")
    found = []
    for process in psutil.process_iter(["pid", "status"]):
        try:
            own = os.getpgid(process.pid) == group
        except ProcessLookupError:
            continue
        if own and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def gone(group, seconds=10):
    """Whether all processes of a group end in time."""
    until = time.monotonic() + seconds
    while members(group) and time.monotonic() < until:
        time.sleep(0.1)
    return not members(group)


def test_from_zarr_to_a_map_with_two_workers(folder, in_memory):
    options = "--workers", "2", "--memory-limit", "512MiB", "-o", "m.zarr", "--no-picture"
    process = start("embed", "d.zarr", "-m", "pca", *options)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert err.startswith("2 workers of one thread and at most 0.5 GiB each\n")
    assert len(err.splitlines()) == 2  # and what was fitted
    assert out.startswith("Embedding of 600 points")
    assert gone(process.pid)
    same_up_to_signs(read_table("m.zarr").X, in_memory.embedding_)
    written = {path.name for path in folder.iterdir()} - {"d.zarr", "d.parquet"}
    assert written == {"m.zarr", "m.model", "m.run.toml"}


def test_ctrl_c_ends_workers_and_leaves_nothing(folder):
    process = start("embed", "d.zarr", "-m", "tsne", "--workers", "2", "--set", "max_iter=100000")
    assert "2 workers" in process.stderr.readline()  # they are running
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == (
        "manifoldry: error: interrupted; no unfinished file was left behind"
    )
    assert "Traceback" not in err
    assert gone(process.pid)
    assert {path.name for path in folder.iterdir()} == {"d.zarr", "d.parquet"}
