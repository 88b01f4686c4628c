"""Time and memory of each of our methods against n, on the Swiss roll (E4.12) and on digits."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, mnist, roll

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
DIGIT_SIZES = (1000, 3000, 10_000)
DIGIT_LIMIT = 120
ITERATIVE = {name: {} for name in ("TSNE", "SNE", "ElasticEmbedding", "UKR")}
UNFOLDING = {"MVU": {}, "MVU, 100 landmarks": {"n_landmarks": 100}}
METHODS_OF_DIGITS = {**METHODS, **ITERATIVE, **UNFOLDING}


def fit(X, method, n):
    import manifoldry

    make = getattr(manifoldry, method.split(",")[0])
    work = make.build if method == "NeighborGraph" else make(**METHODS_OF_DIGITS[method]).fit
    work(few(X, 200))
    X = X[:n].copy()
    yield
    work(X)
    return {}


def _contestants(sizes, methods=METHODS):
    for n in sizes:
        for method in methods:
            if method not in DENSE or n <= DENSE_UP_TO:
                options = {"method": method, "n": n}
                yield Contestant(f"{method}, n={n}", fit, options=options, series=method, size=n)


def _workload(name, sizes, **options):
    what = f"Time and memory of our methods on the Swiss roll, n from {sizes[0]} to {sizes[-1]}."
    return Workload(
        name, what, partial(roll, sizes[-1]), tuple(_contestants(sizes)), timeout=LIMIT, **options
    )


WORKLOADS = [
    _workload("growth-small", SIZES[:2], quick=True),
    _workload("growth", SIZES),
    Workload(
        "digits-growth",
        "Processor time and memory of our methods on handwritten digits (MNIST), n up to 10 000.",
        partial(mnist, DIGIT_SIZES[-1]),
        tuple(_contestants(DIGIT_SIZES, METHODS_OF_DIGITS)),
        timeout=DIGIT_LIMIT,
        processor_time=True,
    ),
]
