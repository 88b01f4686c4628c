"""What fits cost on any cluster: tasks, bytes and operations of their stages, and a simulation.

A stage has numbers that follow from the algorithm: its tasks, what its tasks read and compute, what
moves between workers, what reaches the client, and what workers hold. The rates of a cluster turn
them into times. The scheduler, the workers, the network and the store work at the same time, so a
stage takes as long as the slowest of them. ``python -m benchmarks.cluster_model`` prints the table.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "distributed.json"
# Chunks per worker that another one computes than the one that read them: so many were measured.
STOLEN = 1.0
# What the scheduler and the client keep for each task, in bytes.
PER_TASK = 3000
# Limits: Dask's own advice for the number of tasks of one computation, and a patience of an hour.
MOST_TASKS, MOST_SECONDS = 10**6, 3600.0
# Bytes of the coarse matrix of the preconditioner of eigenproblems, on each worker.
COARSE = 8.0 * 3000**2


@dataclass(frozen=True)
class Cluster:
    """Rates and sizes; those of workers are of one worker."""

    workers: int
    threads: int
    memory: float  # bytes
    client_memory: float
    network: float  # bytes per second
    store: float  # bytes per second
    products: float  # operations per second and thread, in matrix products in double precision
    per_pair: float  # seconds of a thread to select neighbors, besides products, for each distance
    per_task: float  # seconds of the scheduler
    process: float = 2.5e8  # bytes of a worker that holds no data
    scheduler_memory: float = 16 * 2**30


@dataclass(frozen=True)
class Data:
    """Rows, features in single precision, and rows of a chunk."""

    n: int
    d: int
    chunk: int

    @property
    def parts(self):
        return max(1, -(-self.n // self.chunk))

    @property
    def size(self):
        return 4.0 * self.n * self.d


@dataclass(frozen=True)
class Stage:
    """What a step of a fit needs, on all workers together if nothing else is said."""

    name: str
    tasks: float
    flops: float = 0.0  # in matrix products
    pairs: float = 0.0  # of rows that are compared
    features: int = 0  # of these rows
    serial_pairs: float = 0.0  # on one thread
    read: float = 0.0  # bytes from the store, and to it
    moved: float = 0.0  # bytes between workers
    gathered: float = 0.0  # bytes that reach the client
    held: float = 0.0  # bytes that stay on the workers while the stage runs
    working: float = 0.0  # bytes of one task
    rounds: int = 1  # times that the stage is done, one after the other

    def times(self, cluster):
        """Seconds that each resource is busy."""
        n = cluster.workers
        per_pair = self.per_pair(cluster)
        parallel = self.flops / cluster.products + self.pairs * per_pair
        return {
            "scheduler": self.rounds * self.tasks * cluster.per_task,
            "threads": self.rounds * parallel / (n * cluster.threads),
            "one thread": self.rounds * self.serial_pairs * per_pair,
            "network": self.rounds * (self.moved / n + self.gathered) / cluster.network,
            "store": self.rounds * self.read / (n * cluster.store),
        }

    def per_pair(self, cluster):
        """Seconds of a thread to compare two rows, by products in single precision."""
        return self.features / cluster.products + cluster.per_pair

    def seconds(self, cluster):
        return max(self.times(cluster).values())

    def memory(self, cluster):
        """Bytes of a worker."""
        return cluster.process + self.held / cluster.workers + cluster.threads * self.working

    def client(self):
        """Bytes of the client, for its graph and what it gathers."""
        return self.tasks * PER_TASK + self.gathered

    def scheduler(self):
        """Bytes of the scheduler: of each round it keeps the tasks, by which it repairs losses."""
        return self.rounds * self.tasks * PER_TASK

    def strain(self, cluster):
        """Each limit, and the multiple of it that is needed."""
        return {
            "memory of workers": self.memory(cluster) / cluster.memory,
            "memory of the client": self.client() / cluster.client_memory,
            "memory of the scheduler": self.scheduler() / cluster.scheduler_memory,
            "number of tasks": self.tasks / MOST_TASKS,
            "time of one thread": self.serial_pairs * self.per_pair(cluster) / MOST_SECONDS,
        }


def crossing(cluster):
    """Fraction of what goes to a random worker that leaves its own."""
    return (cluster.workers - 1) / cluster.workers


def reading(data, name, cluster, **options):
    """A stage whose tasks read all chunks: to read, to check, and to compute."""
    given = {"tasks": 3.0 * data.parts, "read": data.size, "working": 16.0 * data.chunk * data.d}
    given["moved"] = STOLEN * cluster.workers * crossing(cluster) * data.size / data.parts
    for key, value in options.items():
        given[key] = value + given.get(key, 0.0) if key in ("tasks", "moved", "read") else value
    return Stage(name, **given)


def pca(data, cluster, k=10):
    """Two passes for the scatter matrix, one for the coordinates."""
    P, d, away = data.parts, data.d, crossing(cluster)
    return [
        reading(data, "first look", cluster, tasks=2.2 * P, flops=6.0 * data.n * d),
        reading(
            data, "scatter matrix", cluster, tasks=3.1 * P, flops=2.0 * data.n * d * d,
            moved=8.0 * d * d * P * away, gathered=8.0 * d * d,
            working=16.0 * data.chunk * d + 64.0 * d * d,
        ),
        reading(
            data, "coordinates", cluster, tasks=1.0 * P, flops=2.0 * data.n * d * k,
            read=4.0 * data.n * k,
        ),
    ]  # fmt: skip


def landmarks(data, cluster, m=2000):
    """A sample is fitted on one worker; all rows are compared with it."""
    model = 8.0 * m * data.d + 300.0 * m
    return [
        reading(data, "sample", cluster, moved=4.0 * m * data.d),
        Stage(
            "fit of the landmarks", 1, serial_pairs=2.0 * m * m, features=data.d, gathered=model,
            working=4 * model,
        ),
        reading(
            data, "placing all rows", cluster, tasks=1.0 * data.parts,
            pairs=1.0 * data.n * m, features=data.d, read=8.0 * data.n,
            moved=model * (cluster.workers - 1),
            working=16.0 * data.chunk * data.d + 3 * model,
        ),
    ]  # fmt: skip


def graph(data, cluster, k=15, cells=8, near=8):
    """Approximate neighbors: `cells` cells are searched per row, in `near` parts per part."""
    n, d, P, size = data.n, data.d, data.parts, data.size
    near = min(near, P - 1)
    C = max(np.sqrt(n), 16 * P)
    sampled = min(50 * C, max(C, 2**27 / d))
    steps = 2 if P * P > 2500 else 1
    pieces = float(2 * P**1.5 if steps == 2 else P * P)
    away, rows = crossing(cluster), size / P
    return [
        reading(
            data, "cells of a sample", cluster, tasks=2.0 * P, features=d,
            serial_pairs=8.0 * sampled * C, moved=4 * sampled * d, working=8.0 * sampled * d,
        ),
        reading(data, "cells of all rows", cluster, tasks=1.2 * P, pairs=n * C, features=d),
        reading(
            data, "moving rows to parts", cluster, tasks=pieces + 5.0 * P,
            moved=steps * size * away, held=(1 + steps) * size, working=4 * rows,
            gathered=8.0 * P * min(P, data.chunk),
        ),
        Stage(
            "neighbors in near cells", P * (near + 4), moved=near * size * away,
            pairs=n * (C + cells * n / C), features=d, held=size + (16.0 * k + 4 * cells) * n,
            working=6 * rows,
        ),
    ]  # fmt: skip


def eigenpairs(data, cluster, k=15, pairs=3, iterations=30, halo=0.3, near=8):
    """Block iterations: `halo` rows of other parts are needed per row of a part."""
    n, P = data.n, data.parts
    m, near = pairs + 7, min(near, P - 1)
    basis = 3 * m
    return [
        Stage(
            f"eigenvectors, {iterations} iterations", P * (8.0 + near), rounds=iterations,
            flops=2.0 * n * (2 * k * m + 3 * basis * basis), gathered=24.0 * basis * basis,
            moved=8.0 * halo * n * m * crossing(cluster) + 24.0 * basis * basis * P,
            held=data.size + 8.0 * n * 7 * m + 32.0 * k * n + cluster.workers * COARSE,
            working=8.0 * data.chunk * 2 * basis,
        )
    ]  # fmt: skip


def isomap(data, cluster, k=15, m=500, rounds=30, halo=0.3, near=8):
    """Paths from landmarks to all rows, in rounds between parts."""
    n, P = data.n, data.parts
    near = min(near, P - 1)
    return [
        Stage(
            f"paths to {m} landmarks, {rounds} rounds", P * (3.0 + near), rounds=rounds,
            flops=20.0 * 2 * k * n * m / rounds, held=data.size + 4.0 * n * m + 32.0 * k * n,
            moved=4.0 * halo * n * m * crossing(cluster), working=4.0 * data.chunk * m * 2,
        ),
        Stage(
            "coordinates", 2.0 * P, flops=4.0 * n * m, held=data.size + 4.0 * n * m,
            working=8.0 * data.chunk * m,
        ),
    ]  # fmt: skip


def refinement(data, cluster, k=15, rounds=50, halo=0.3, near=8, nodes=160_000):
    """Rounds of t-SNE of all rows with sums on a mesh of so many nodes."""
    n, P = data.n, data.parts
    near = min(near, P - 1)
    return [
        Stage(
            f"refinement, {rounds} rounds", P * (10.0 + near), rounds=rounds,
            flops=n * (60.0 * k + 400.0), held=data.size + n * (36.0 * k + 8 * 12),
            moved=8.0 * nodes * (1.1 * P + cluster.workers) + 16.0 * halo * n,
            working=36.0 * k * data.chunk + 16.0 * nodes,
        )
    ]  # fmt: skip


FITS = {
    "PCA": lambda data, cluster: pca(data, cluster),
    "20 000 landmarks": lambda data, cluster: landmarks(data, cluster, 20_000),
    "neighbor graph": lambda data, cluster: graph(data, cluster),
    "Laplacian eigenmaps, after the graph": lambda data, cluster: eigenpairs(data, cluster),
    "Isomap, after the graph": lambda data, cluster: isomap(data, cluster),
    "refinement of t-SNE, after the graph": lambda data, cluster: refinement(data, cluster),
}


# The stages of measured fits; the last one is the writing of the map.
MEASURED = {
    "pca": lambda data, cluster: pca(data, cluster),
    "landmarks": lambda data, cluster: landmarks(data, cluster),
    "eigenmaps": lambda data, cluster: [
        *graph(data, cluster, k=10),
        *eigenpairs(data, cluster, k=10),
        *landmarks(data, cluster, min(20_000, data.n))[:2],
        Stage("writing", 6.0 * data.parts, read=8.0 * data.n),
    ],
}


def predicted(name, data, cluster):
    """Seconds of a fit and of writing its map, bytes that move, tasks, and memory of a worker."""
    *fit, write = MEASURED[name](data, cluster)
    return {
        "fit": sum(stage.seconds(cluster) for stage in fit),
        "write": write.seconds(cluster),
        "moved": sum(stage.moved * stage.rounds for stage in [*fit, write]),
        "tasks": sum(stage.tasks * stage.rounds for stage in [*fit, write]),
        "memory": max(stage.memory(cluster) for stage in [*fit, write]),
    }


def hundred_workers(constants):
    """100 workers of 16 threads and 64 GiB with 10 Gbit/s; threads have the rates measured here."""
    sizes = {"workers": 100, "threads": 16, "memory": 64 * 2**30, "client_memory": 16 * 2**30}
    own = {key: constants[key] for key in ("products", "per_pair")}
    return Cluster(**sizes, network=1.25e9, store=5e8, per_task=1e-3, **own)


def this_machine(constants, workers, memory):
    """The cluster of the measurements."""
    return Cluster(workers, 1, memory, client_memory=16 * 2**30, **constants)


def simulated(data, cluster):
    """Every stage of every fit: time, volume, memory, and what is short first."""
    rows = []
    for name, stages_of in FITS.items():
        for stage in stages_of(data, cluster):
            times, strain = stage.times(cluster), stage.strain(cluster)
            rows.append({
                "fit": name,
                "stage": stage.name,
                "tasks": stage.tasks * stage.rounds,
                "seconds": stage.seconds(cluster),
                "busiest": max(times, key=times.get),
                "moved": stage.moved * stage.rounds,
                "memory": stage.memory(cluster),
                "client": stage.client(),
                "scheduler": stage.scheduler(),
                "beyond": {limit: ratio for limit, ratio in strain.items() if ratio > 1},
            })  # fmt: skip
    return rows


def breaks(cluster, d, chunk_bytes=2**27):
    """For each fit, the largest n, and what is short beyond."""
    return {name: largest(cluster, d, chunk_bytes, name) for name in FITS}


def largest(cluster, d, chunk_bytes=2**27, name="neighbor graph"):
    """The largest n up to 10¹¹ for which nothing is short, and what is short beyond."""
    fits = 0
    for exponent in np.arange(5, 11.01, 0.1):
        n = int(10 ** round(exponent, 1))
        data = Data(n, d, int(chunk_bytes / (4 * d)))
        strains = [stage.strain(cluster) for stage in FITS[name](data, cluster)]
        worst = {key: max(each[key] for each in strains) for key in strains[0]}
        scarce = max(worst, key=worst.get)
        if worst[scarce] > 1:
            return fits, scarce
        fits = n
    return fits, None


def measure_constants(client, data):
    """Rates of this machine, while it does whatever else it does."""
    here, there, *_ = client.run(float)

    def nothing(i):
        return None

    def tasks(count=2000):
        client.gather(client.map(nothing, range(count), pure=False))
        return count

    size = 10**8

    def transfer():
        sent = client.submit(np.ones, size, np.uint8, workers=[here], pure=False)
        sent.result()
        start = time.perf_counter()
        client.submit(len, sent, workers=[there], pure=False).result()
        return size / (time.perf_counter() - start)

    def on_worker(function):
        return max(client.submit(function, data, pure=False).result() for _ in range(5))

    return {
        "per_task": 1 / max(rate(tasks) for _ in range(5)),
        "network": max(transfer() for _ in range(5)),
        "store": on_worker(read),
        "products": on_worker(product),
        "per_pair": min(client.submit(selection, data, pure=False).result() for _ in range(5)),
    }


def rate(work):
    """What work returns, per second."""
    start = time.perf_counter()
    amount = work()
    return amount / (time.perf_counter() - start)


def read(path):
    """Bytes per second of a store; the system may have them in memory."""
    import zarr

    store = zarr.open_array(path)
    return rate(
        lambda: sum(store[i : i + store.chunks[0]].nbytes for i in range(0, 200_000, 50_000))
    )


def product(path):
    """Operations per second of a matrix product on one thread."""
    from threadpoolctl import threadpool_limits

    A = np.ones((1500, 1500))
    with threadpool_limits(1):
        return rate(lambda: 2 * len(A @ A) ** 3)


def selection(path):
    """Seconds to find the nearest of 2000 points, per pair, less those of products."""
    import zarr

    from manifoldry.neighbors.choose import choose_index
    from manifoldry.util.threads import one_blas_thread, threads_allowed

    X = zarr.open_array(path)[:22_000]
    near, far = X[:2000], X[2000:]
    with threads_allowed(1), one_blas_thread():
        index = choose_index(near, "euclidean", search="exact")
        products = 1 / rate(lambda: np.size(far @ near.T))
        return max(0.0, 1 / rate(lambda: len(index.nearest(far, 10)[0]) * len(near)) - products)


def main(arguments=None):
    """Print the simulated stages for other data, or another cluster."""
    constants = json.loads(RESULTS.read_text())["work"]["machine"]["constants"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--chunk-mb", type=float, default=128)
    for name, value in asdict(hundred_workers(constants)).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, help=f"such as {value:g}")
    options = vars(parser.parse_args(arguments))
    names = {each.name for each in fields(Cluster)}
    own = {k: v for k, v in options.items() if k in names and v is not None}
    cluster = replace(hundred_workers(constants), **own)
    chunk = int(options["chunk_mb"] * 2**20 / (4 * options["features"]))
    data = Data(int(options["rows"]), options["features"], chunk)
    for row in simulated(data, cluster):
        short = "".join(f"; {limit} × {ratio:.1f}" for limit, ratio in row["beyond"].items())
        print(
            f"{row['fit']:38} {row['stage']:34} {row['tasks']:10.2g} tasks {row['seconds']:9.0f} s "
            f"({row['busiest']}), {row['moved'] / 1e9:9.0f} GB moved, "
            f"{row['memory'] / 2**30:6.1f} GiB per worker, {row['client'] / 2**30:6.1f} GiB client"
            f", {row['scheduler'] / 2**30:6.1f} GiB scheduler" + short
        )


if __name__ == "__main__":
    main()
