"""What a cluster costs: ``python -m benchmarks.distributed --help``.

A scheduler, two workers of one thread and a client are processes of their own on this machine. Data
are made chunk by chunk and written to Zarr; a fit reads them there, and its map is written to Zarr.
Memory is the resident set of each process, sampled every 20 ms. Bytes are those that the kernel has
counted on the sockets of each process. Fits of 100 000 rows are done five times, of which the
fastest counts, since other work may share the machine. They take turns with fits in memory.
"""

import argparse
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.machine import last_line, machine, source

RESULTS = Path(__file__).parent / "results" / "distributed.json"
FEATURES, CHUNK, LANDMARKS = 50, 50_000, 2000
WORKERS, MEMORY = 2, 2 * 2**30


@dataclass(frozen=True)
class Work:
    """A fit of so many rows, and where it runs."""

    what: str
    rows: int
    make: Callable
    fit: Callable

    @property
    def in_memory(self):
        """Whether a fit in memory is measured beside."""
        return self.rows <= 10**5

    @property
    def repeats(self):
        return 5 if self.in_memory else 1


def pca():
    from manifoldry import PCA

    return PCA(10)


def eigenmaps():
    from manifoldry import LaplacianEigenmaps

    return LaplacianEigenmaps(2, n_neighbors=10)


def to_landmarks(X, model):
    from manifoldry.distributed import using_options

    with using_options(landmarks=LANDMARKS):
        return model.fit(X)


def to_all_rows(X, model):
    return model.fit(X)


FITS = {
    "pca": ("PCA, all rows", pca, to_all_rows),
    "landmarks": (f"Laplacian eigenmaps, {LANDMARKS} landmarks", eigenmaps, to_landmarks),
    "eigenmaps": ("Laplacian eigenmaps, all rows", eigenmaps, to_all_rows),
}
SIZES = {"1e5": 10**5, "1e6": 10**6, "1e7": 10**7}
WORK = {
    f"{name}-{size}": Work(what, rows, make, fit)
    for name, (what, make, fit) in FITS.items()
    for size, rows in SIZES.items()
}


def block(number, rows):
    """A roll in 50 dimensions with noise: the rows of one chunk, the same in each run."""
    rng = np.random.default_rng([0, number])
    angle, height = 1.5 * np.pi * (1 + 2 * rng.random(rows)), 21 * rng.random(rows)
    roll = np.stack([angle * np.cos(angle), height, angle * np.sin(angle)], axis=1)
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(FEATURES, 3)))[0]
    X = (roll @ turned.T).astype(np.float32)
    X += np.float32(0.05) * rng.standard_normal((rows, FEATURES), dtype=np.float32)
    return X


def write(folder, rows):
    """The data as a Zarr store without compression, which noise does not allow."""
    import zarr

    path, shape = folder / "data.zarr", (rows, FEATURES)
    chunks = (min(CHUNK, rows // 4), FEATURES)
    store = zarr.create_array(path, shape=shape, chunks=chunks, dtype="f4", compressors=None)
    for i, start in enumerate(range(0, rows, chunks[0])):
        stop = min(start + chunks[0], rows)
        store[start:stop] = block(i, stop - start)
    return path


def main(arguments=None):
    """Measure each piece of work in a process of its own, and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="work", help=", ".join([*WORK, "machine"]))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--folder", type=Path, help="for the data, which are deleted afterwards")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for each")
    parser.add_argument("--one", action="store_true", help="measure here, and print a line of JSON")
    parser.add_argument("--commit", help="if this is no checkout")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {*WORK, "machine"}
    if unknown:
        parser.error(f"{sorted(unknown)} must be among {', '.join([*WORK, 'machine'])}")
    if options.one:
        print(json.dumps(measured(options.names[0], options.folder)))
        return
    kept = json.loads(options.out.read_text()) if options.out.exists() else {"work": {}}
    kept |= {"machine": machine(), "versions": versions()}
    for name in options.names or [*WORK, "machine"]:
        found = in_process(name, options)
        found["commit"] = options.commit or source("manifoldry")["commit"]
        kept["work"][name] = found
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
        print(name, json.dumps(found), flush=True)


def versions():
    """Versions of Python and of what computes."""
    from importlib.metadata import version

    packages = {name: version(name) for name in ("dask", "distributed", "zarr", "numpy")}
    return {"python": sys.version.split()[0]} | packages


def in_process(name, options):
    command = [sys.executable, "-m", "benchmarks.distributed", "--one", name]
    if options.folder is not None:
        command += ["--folder", str(options.folder)]
    return last_line(command, options.timeout)


def measured(name, folder=None):
    """The stages of a piece of work, on data that are deleted at the end."""
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(dir=folder))
    try:
        if name == "machine":
            found = constants(folder)
        else:
            work = WORK[name]
            data = write(folder, work.rows)
            found = {"what": work.what, "rows": work.rows, **on_cluster(work, data, folder)}
    finally:
        shutil.rmtree(folder)
    return found | {"time": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())}


def in_memory(work, data, out):
    """Seconds to read all data, to fit them, or to fit a sample and place all, and to write."""
    import zarr

    start = time.perf_counter()
    X = zarr.open_array(data)[:]
    if work.fit is to_landmarks:
        drawn = np.random.default_rng(0).choice(len(X), LANDMARKS, replace=False)
        Y = work.make().fit(X[drawn]).transform(X)
    else:
        Y = work.make().fit(X).embedding_
    zarr.save_array(out, np.asarray(Y))
    return time.perf_counter() - start


def warm_up(make):
    """Compile what a fit needs, before the clock starts."""
    X = block(0, 3000)
    make().fit(X[:2000]).transform(X)


def on_cluster(work, data, folder):
    """A fit on two workers, and its map, which is written by them; in turn with one in memory."""
    beside = []
    one = ProcessPoolExecutor(1, get_context("spawn"))
    with cluster(folder) as (client, processes), one as process:
        client.run(warm_up, work.make)
        stages = Stages(processes, partial(traffic, client))
        if work.in_memory:
            process.submit(warm_up, work.make).result()
        for turn in range(work.repeats):
            if work.in_memory:
                args = work, data, folder / f"beside-{turn}.zarr"
                beside.append(process.submit(in_memory, *args).result())
            with stages.measuring("fit"):
                model = work.fit(str(data), work.make())
            with stages.measuring("write"):
                model.embedding_.to_zarr(str(folder / f"map-{turn}.zarr"))
        found = {"fitted_on": model.fitted_on_, "stages": stages.found, "memory_limit": MEMORY}
    return found | {"in_memory": min(beside, default=None)}


@contextmanager
def cluster(folder):
    """A client, and the numbers of the processes of the scheduler, the workers and the client."""
    from distributed import Client

    file, log = folder / "scheduler.json", (folder / "log").open("w")
    start = partial(subprocess.Popen, stdout=log, stderr=log)
    python, there = [sys.executable, "-m"], ["--scheduler-file", str(file), "--no-dashboard"]
    here = ["--host", "127.0.0.1"]
    scheduler = start([*python, "distributed.cli.dask_scheduler", *there, *here, "--port", "0"])
    workers = start([
        *python, "distributed.cli.dask_worker", *there, *here, "--nworkers", str(WORKERS),
        "--nthreads", "1", "--memory-limit", str(MEMORY), "--local-directory", str(folder),
    ])  # fmt: skip
    try:
        while not file.exists():
            time.sleep(0.05)
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(WORKERS)
            client.register_plugin(_counter())
            yield (
                client,
                {
                    "client": [os.getpid()],
                    "scheduler": [client.run_on_scheduler(os.getpid)],
                    "workers": list(client.run(os.getpid).values()),
                },
            )
    finally:
        for process in (workers, scheduler):
            process.terminate()
            process.wait()
        log.close()


def _counter():
    from distributed import SchedulerPlugin

    class TaskCounter(SchedulerPlugin):
        """Counts tasks that were computed."""

        name = "tasks"
        count = 0

        def transition(self, key, start, finish, *args, **kwargs):
            self.count += start == "processing" and finish == "memory"

    return TaskCounter()


def _of_scheduler(dask_scheduler):
    return {"tasks": dask_scheduler.plugins["tasks"].count, **socket_bytes()}


def traffic(client):
    """Number of tasks so far, and bytes that processes have received and sent."""
    of_scheduler = client.run_on_scheduler(_of_scheduler)
    of_workers = client.run(socket_bytes).values()
    return {
        "tasks": of_scheduler["tasks"],
        "client_received": socket_bytes()["received"],
        "client_sent": socket_bytes()["sent"],
        "scheduler_received": of_scheduler["received"],
        "workers_received": sum(each["received"] for each in of_workers),
    }


def socket_bytes():
    """Bytes that this process has received and sent on its open TCP connections."""
    received = sent = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            if not os.readlink(link).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(link.name))) as each:
                info = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        except OSError:
            continue  # closed by now, or not of TCP
        acknowledged, got = struct.unpack_from("=QQ", info, 120)
        received, sent = received + got, sent + acknowledged
    return {"received": received, "sent": sent}


class Stages:
    """Seconds, tasks, bytes and peaks of memory of the stages of a piece of work."""

    def __init__(self, processes, counted):
        self.processes, self.counted, self.found = processes, counted, {}

    @contextmanager
    def measuring(self, name):
        before, start = self.counted(), time.perf_counter()
        with Sampler(self.processes) as memory:
            yield
        seconds, after = time.perf_counter() - start, self.counted()
        counted = {key: after[key] - before[key] for key in after}
        if seconds < self.found.get(name, {"seconds": np.inf})["seconds"]:
            self.found[name] = {"seconds": seconds, "peak": memory.peak, **counted}


class Sampler:
    """The largest resident set of a process of each kind, in bytes."""

    def __init__(self, processes):
        import psutil

        self.processes = {
            kind: [psutil.Process(number) for number in numbers]
            for kind, numbers in processes.items()
        }
        self.peak = dict.fromkeys(processes, 0)

    def __enter__(self):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.wait(0.02):
            for kind, processes in self.processes.items():
                largest = max(each.memory_info().rss for each in processes)
                self.peak[kind] = max(self.peak[kind], largest)

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def constants(folder):
    """What the model of costs needs to know of this machine: see `benchmarks.cluster_model`."""
    from benchmarks.cluster_model import measure_constants

    with cluster(folder) as (client, _):
        return {"constants": measure_constants(client, str(write(folder, SIZES["1e6"])))}


if __name__ == "__main__":
    main()
