"""Fits whose workers, scheduler or data fail, with real worker processes."""

import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest

from manifoldry import PCA, TSNE, Isomap, KernelPCA, LaplacianEigenmaps
from manifoldry.distributed import using_options
from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.scheduler import (
    broadcast,
    compute,
    delayed,
    persist,
    persist_all,
    tasks_of_fit,
)
from manifoldry.util.progress import listening

ROWS, COLUMNS = 400, 5
LIMITS = ("700 MiB", "1000 MiB")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Two worker processes with two memory limits; what is longer than 4 MB is spilled."""
    from distributed import Nanny, Scheduler, SpecCluster

    settings = {
        "distributed.worker.memory.target": 4e6 / 700 / 2**20,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "port": 0, "dashboard": False}}
    common = {"nthreads": 1, "local_directory": str(tmp_path_factory.mktemp("spilled"))}
    nannies = {
        i: {"cls": Nanny, "options": common | {"memory_limit": limit}}
        for i, limit in enumerate(LIMITS)
    }
    with (
        dask.config.set(settings),
        SpecCluster(workers=nannies, scheduler=scheduler, silence_logs=50) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(workers):
    from distributed import Client

    with Client(workers) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


@pytest.fixture(params=["threads", "workers"])
def anywhere(request):
    """Tasks are run by threads of this process, or by workers."""
    if request.param == "workers":
        request.getfixturevalue("client")


def numbers(i):
    X = np.random.default_rng(i).normal(size=(ROWS, COLUMNS)) / np.arange(1, 1 + COLUMNS)
    return X.astype(np.float32)


def once(i, at, flag, action):
    """The numbers of a block; at one of them, something happens the first time."""
    if i == at and not flag.exists():
        flag.touch()
        action()
    time.sleep(0.01)
    return numbers(i)


def kill(pid=None):
    os.kill(pid or os.getpid(), signal.SIGKILL)
    time.sleep(60)


def failing(i, at, error):
    if i == at:
        raise error
    return numbers(i)


def made(block, count=20, **options):
    """A Dask array of delayed blocks."""
    read = dask.delayed(partial(block, **options))
    blocks = [da.from_delayed(read(i), (ROWS, COLUMNS), np.float32) for i in range(count)]
    return da.concatenate(blocks)


def fitted(estimator, X, landmarks=300):
    with using_options(landmarks=landmarks):
        return estimator.fit(X)


FITS = {
    "passes": lambda X: PCA(2).fit(X),
    "graph": lambda X: LaplacianEigenmaps(2).fit(X),
    "landmarks": lambda X: fitted(LaplacianEigenmaps(2), X),
}


def test_workers_have_two_limits(client):
    limits = [
        each["memory_limit"] for each in client.scheduler_info(n_workers=-1)["workers"].values()
    ]
    assert sorted(limits) == [700 * 2**20, 1000 * 2**20]


@pytest.mark.parametrize("fit", ["passes", "landmarks"])
def test_same_map_if_a_worker_is_killed_while_it_reads(client, tmp_path, fit):
    flag = tmp_path / "killed"
    expected = FITS[fit](made(numbers, 5)).embedding_.compute()
    model = FITS[fit](made(once, 5, at=3, flag=flag, action=kill))
    assert flag.exists()
    np.testing.assert_array_equal(model.embedding_.compute(), expected)


def test_same_map_if_a_worker_is_killed_between_iterations(client):
    X, pids, steps = made(numbers, 3), list(client.run(os.getpid).values()), []

    def kill_one(fraction, text):
        steps.append(text)
        if steps.count(text) == 4 and text.startswith("inner products"):
            os.kill(pids.pop(), signal.SIGKILL)

    expected = LaplacianEigenmaps(2).fit(X).embedding_.compute()
    with listening(kill_one):
        model = LaplacianEigenmaps(2).fit(X)
    assert len(pids) == 1
    np.testing.assert_array_equal(model.embedding_.compute(), expected)


def test_same_map_if_a_worker_is_killed_while_rows_are_placed(client, tmp_path):
    X, flag = made(numbers), tmp_path / "killed"
    expected = fitted(LaplacianEigenmaps(2), X).embedding_.compute()
    model = fitted(LaplacianEigenmaps(2), X)
    again = model.transform(made(once, at=11, flag=flag, action=kill)).compute()
    assert flag.exists()
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("size", [10, 10**6])
def test_shared_values_survive_the_loss_of_all_workers(client, size):
    value = broadcast(np.arange(size))
    total = delayed(np.sum)(value)
    assert compute([total], "sum") == [size * (size - 1) // 2]
    pids = client.run(os.getpid)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    assert compute([delayed(np.sum)(value)], "sum") == [size * (size - 1) // 2]
    assert not set(pids.values()) & set(client.run(os.getpid).values())


def test_data_that_are_spilled(client):
    from distributed import wait

    def on_disk(dask_worker):
        return dask_worker.data.spilled_total.disk

    def data():
        return da.random.default_rng(0).normal(size=(400_000, COLUMNS), chunks=(20_000, COLUMNS))

    X = data().persist()  # 16 MB, of which 4 and 6 MB stay
    wait(X)
    assert sum(client.run(on_disk).values()) > 2e6
    found, expected = (PCA(2).fit(each).embedding_[-ROWS:].compute() for each in (X, data()))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("fit", FITS)
def test_unreadable_chunk(fit):
    X = made(failing, at=17, error=OSError("input/output error"))
    message = r"chunk 17 of X \(rows 6800 to 7199\) cannot be read: OSError: input/output error"
    with pytest.raises(RuntimeError, match=message) as caught:
        FITS[fit](X)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.usefixtures("anywhere")
def test_unreadable_data_of_many_steps():
    X = made(failing, at=17, error=OSError("gone"))
    with pytest.raises(RuntimeError, match=r"chunk 8 of X \(rows 6400 to 7199\)"):
        PCA(2).fit(X.rechunk({0: 2 * ROWS}) * 2 - 1)


@pytest.mark.usefixtures("anywhere")
def test_unreadable_partition():
    """Rows of data frames are counted first."""
    import dask.dataframe as dd

    def part(i):
        if i == 17:
            raise OSError("input/output error")
        return pd.DataFrame(numbers(i), columns=list("abcde"))

    message = r"chunk 17 of X cannot be read: OSError: input/output error"
    with pytest.raises(RuntimeError, match=message) as caught:
        PCA(2).fit(dd.from_map(part, range(20), meta=part(0)[:0]))
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize(
    "make", [LaplacianEigenmaps, partial(Isomap, n_landmarks=50), partial(TSNE, max_iter=5)]
)
def test_map_that_cannot_be_made(make, monkeypatch):
    """What comes last in a fit has to exist before the model is set."""
    X = made(numbers, 3)
    model = make(random_state=0)
    with monkeypatch.context() as patch:
        lost = made(failing, 3, at=2, error=OSError("disk full"))[:, :2]
        patch.setattr(RowOrder, "restored", lambda *_: lost)
        with (
            using_options(refine=int(isinstance(model, TSNE)), **few_landmarks(model)),
            pytest.raises(OSError, match="disk full"),
        ):
            model.fit(X)
    assert set(vars(model)) == set(model.get_params())


def few_landmarks(model):
    return {"landmarks": 100} if isinstance(model, TSNE) else {}


@pytest.mark.usefixtures("anywhere")
def test_kept_results_exist():
    blocks = persist_all([delayed(numbers)(i) for i in range(3)], "numbers")
    X = da.concatenate([da.from_delayed(b, (ROWS, COLUMNS), np.float32) for b in blocks])
    [kept] = persist_all([X], "numbers")
    assert kept.shape == X.shape
    with pytest.raises(OSError, match="gone"):
        persist_all([*blocks, delayed(failing)(1, 1, OSError("gone"))], "numbers")
    assert persist_all([], "nothing") == []


def test_kept_results_of_workers_that_die(client):
    def die():
        kill()

    def allow(count, dask_scheduler):
        dask_scheduler.allowed_failures = count

    client.run_on_scheduler(allow, 0)
    try:
        with pytest.raises(RuntimeError, match="lack of memory"):
            persist_all([delayed(die)()], "dying")
    finally:
        client.run_on_scheduler(allow, 3)


def test_lazy_results_outlive_a_cluster():
    """Also those of models that are too large to send again and again in a fit."""
    from distributed import Client, LocalCluster, futures_of

    X = made(numbers, 3)
    wide = da.concatenate([X] * 250, axis=1).rechunk({1: -1})
    options = {"processes": False, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        model = fitted(KernelPCA(2), wide, 1000)
        assert len(pickle.dumps(model.landmark_model_)) > 4e6
        lazy = model.transform(wide)
        assert not futures_of([lazy, model.embedding_])
        assert soon(lambda: not client.futures)
        expected = lazy.compute()
    np.testing.assert_array_equal(lazy.compute(), expected)
    again = pickle.loads(pickle.dumps(model.embedding_))
    np.testing.assert_array_equal(again.compute(), expected)


def test_two_threads_import_dask():
    """The client is asked for while another thread imports `distributed` for the first time."""
    code = """
import sys, threading
from manifoldry.distributed.scheduler import current_client
def load():
    import distributed
loading = threading.Thread(target=load)
loading.start()
while "distributed" not in sys.modules:
    pass
assert current_client() is None
loading.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("anywhere")
def test_an_error_that_is_not_of_the_data_keeps_its_type():
    def wrong(block):
        raise ZeroDivisionError(f"{len(block)} rows")

    from manifoldry.distributed import Rows

    with pytest.raises(ZeroDivisionError, match="400 rows"):
        compute(Rows.read(made(numbers)).tasks(wrong), "dividing")


@pytest.mark.usefixtures("anywhere")
def test_corrupt_chunk_of_zarr(tmp_path):
    store = tmp_path / "data.zarr"
    made(numbers).to_zarr(str(store))
    (store / "c" / "17" / "0").write_bytes(b"not what was written")
    with pytest.raises(RuntimeError, match=r"chunk 17 of X \(rows 6800 to 7199\) cannot be read"):
        PCA(2).fit(store)


@pytest.mark.usefixtures("anywhere")
def test_missing_chunk_of_zarr_has_its_fill_value(tmp_path):
    """Zarr leaves out chunks of fill values, so no reader can tell whether a file was lost."""
    import zarr

    store = tmp_path / "data.zarr"
    target = zarr.create_array(
        store, shape=(20 * ROWS, COLUMNS), chunks=(ROWS, COLUMNS), dtype="f4", fill_value=np.nan
    )
    made(numbers).store(target, lock=False)
    PCA(2).fit(store)
    (store / "c" / "17" / "0").unlink()
    with pytest.raises(ValueError, match=r"NaN in chunk 17 \(row 6800, column 0\)"):
        PCA(2).fit(store)


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("fit", FITS)
def test_nan_is_named(fit):
    X = made(numbers)
    X[17 * ROWS + 3, 2] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN in chunk 17 \(row 6803, column 2\)"):
        FITS[fit](X)


@pytest.mark.usefixtures("anywhere")
def test_chunk_of_another_shape():
    read = dask.delayed(numbers)
    shapes = [(ROWS, COLUMNS), (ROWS - 1, COLUMNS)]
    X = da.concatenate([da.from_delayed(read(i), s, np.float32) for i, s in enumerate(shapes)])
    message = r"chunk 1 of X has shape \(400, 5\), but the array declares \(399, 5\)"
    with pytest.raises(ValueError, match=message):
        PCA(2).fit(X)


@pytest.mark.usefixtures("anywhere")
def test_empty_partitions():
    import dask.dataframe as dd

    frame = pd.DataFrame(np.concatenate([numbers(i) for i in range(3)]), columns=list("abcde"))
    bounds = [0, 0, 500, 500, 1200, 1200]

    def part(i):
        return frame[bounds[i] : bounds[i + 1]]

    model = PCA(2).fit(dd.from_map(part, range(5), meta=frame[:0]))
    expected = PCA(2).fit(frame)
    np.testing.assert_allclose(
        np.abs(model.embedding_.compute()), np.abs(expected.embedding_), atol=1e-5
    )


def test_interrupted_fit_cancels_its_tasks(client, tmp_path):
    model = PCA(2).fit(made(numbers))
    kept, flag = dict(vars(model)), tmp_path / "begun"
    X = made(once, 150, at=7, flag=flag, action=partial(time.sleep, 0.2))
    with pytest.raises(KeyboardInterrupt) as caught, interrupted_after(flag):
        model.fit(X)
    assert vars(model) == kept
    del model, kept
    assert soon(lambda: remaining(client) == 0)
    assert caught.value.__traceback__ is not None  # which refers to futures


@contextmanager
def interrupted_after(flag):
    """Context in which the calling thread is interrupted as soon as a file exists."""
    thread = ctypes.c_ulong(threading.get_ident())

    def interrupt():
        if soon(flag.exists):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(KeyboardInterrupt))

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        yield
    finally:
        interrupter.join()


def test_persisted_results_of_a_failed_fit_are_released(client):
    kept = []

    def fails():
        with tasks_of_fit():
            kept.extend(persist(delayed(numbers)(i) for i in range(5)))
            assert len(compute(kept, "numbers")) == 5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert soon(lambda: remaining(client) == 0)


def remaining(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def soon(reached, seconds=10):
    end = time.monotonic() + seconds
    while not (done := reached()) and time.monotonic() < end:
        time.sleep(0.05)
    return done


def test_task_that_needs_more_memory_than_workers_have(client):
    def large(i):
        held = np.ones(140 * 2**20)  # 1.1 GiB
        time.sleep(30)
        return held[:ROWS]

    def allow(count, dask_scheduler):
        dask_scheduler.allowed_failures = count

    client.run_on_scheduler(allow, 0)  # the default, 3, takes four times as long
    model = PCA(2).fit(made(numbers))
    kept = model.landmark_model_
    try:
        with pytest.raises(RuntimeError, match=r"lack of memory.*smaller chunks"):
            model.fit(made(large, 2))
    finally:
        client.run_on_scheduler(allow, 3)
    assert model.landmark_model_ is kept


@pytest.fixture
def own_scheduler(tmp_path):
    """A scheduler and a worker as processes of their own; the scheduler's pid."""
    from distributed import Client

    file = tmp_path / "scheduler.json"
    log = (tmp_path / "log").open("w")
    start = partial(subprocess.Popen, stdout=log, stderr=log)
    python = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
    scheduler = start([*python, *options, "--scheduler-file", str(file)])
    assert soon(file.exists, 30)
    python = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1"]
    options = ["--no-dashboard", "--death-timeout", "5", "--scheduler-file", str(file)]
    worker = start([*python, *options, "--local-directory", str(tmp_path)])
    client = Client(scheduler_file=str(file))
    client.wait_for_workers(1, timeout=30)
    yield scheduler.pid
    for process in (scheduler, worker):
        process.kill()
        process.wait()
    with suppress(TimeoutError):  # of one that lost its scheduler
        client.close(timeout=0.1)
    log.close()


@pytest.mark.parametrize(
    "fit",
    ["passes", *(pytest.param(fit, marks=pytest.mark.slow) for fit in ("graph", "landmarks"))],
)
def test_scheduler_that_goes_away(own_scheduler, tmp_path, fit):
    model = PCA(2).fit(made(numbers))
    kept = dict(vars(model))
    flag = tmp_path / "killed"
    X = made(once, at=7, flag=flag, action=partial(kill, own_scheduler))
    with pytest.raises(RuntimeError, match=r"scheduler no longer answers.*connect a new Client"):
        model.fit(X)
    with pytest.raises(RuntimeError, match="scheduler no longer answers"):  # not on this machine
        compute([delayed(numbers)(0)], "numbers")
    assert time.time() - flag.stat().st_mtime < 10  # Dask waits 30 s for another scheduler
    assert vars(model) == kept
