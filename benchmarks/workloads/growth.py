"""Time and memory of each of our methods against n, on the Swiss roll (E4.12)."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, roll

SIZES = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
LIMIT = 180  # time limit of one size in seconds; beyond it larger sizes are left out
DENSE = ("ClassicalMDS", "KernelPCA", "Isomap")  # n × n in general: up to DENSE_UP_TO
DENSE_UP_TO = 10_000
K = {"n_neighbors": 12}
METHODS = {
    "NeighborGraph": {},
    "PCA": {},
    "ClassicalMDS": {},
    "KernelPCA": {},
    "LaplacianEigenmaps": K,
    "DiffusionMaps": K,
    "Isomap": K,
    "Isomap, 100 landmarks": {**K, "n_landmarks": 100},
    "LLE": K,
    "HessianLLE": K,
    "LTSA": K,
    "SpectralClustering": {"n_clusters": 8},
}


def fit(X, method, n):
    import manifoldry

    make = getattr(manifoldry, method.split(",")[0])
    work = make.build if method == "NeighborGraph" else make(**METHODS[method]).fit
    work(few(X, 500))
    X = X[:n].copy()
    yield
    work(X)
    return {}


def _contestants(sizes):
    for n in sizes:
        for method in METHODS:
            if method not in DENSE or n <= DENSE_UP_TO:
                options = {"method": method, "n": n}
                yield Contestant(f"{method}, n={n}", fit, options=options, series=method, size=n)


def _workload(name, sizes, **options):
    what = f"Time and memory of our methods on the Swiss roll, n from {sizes[0]} to {sizes[-1]}."
    return Workload(
        name, what, partial(roll, sizes[-1]), tuple(_contestants(sizes)), timeout=LIMIT, **options
    )


WORKLOADS = [_workload("growth-small", SIZES[:2], quick=True), _workload("growth", SIZES)]
