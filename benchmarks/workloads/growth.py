"""Time and memory of our methods and of peers against n: Swiss roll (E4.12), digits."""

from functools import partial
from importlib import import_module

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, mnist, roll
from benchmarks.workloads.tsne import PERPLEXITY, between_neighbors

SIZES = (1000, 10_000, 100_000, 300_000, 1_000_000)
SMALL = (1000, 3000, 10_000)  # of methods with an n × n matrix, and of slow peers
LIMIT, PEER_LIMIT = 120, 60  # seconds for one size; beyond it larger sizes are left out
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
DENSE = ("KernelPCA", "Isomap")
# The last size of the others, if it is not the largest: a million would exceed the limit, or take
# as long as for a similar method that is measured.
UP_TO = {
    "ClassicalMDS": 100_000, "DiffusionMaps": 100_000, "HessianLLE": 100_000, "LTSA": 100_000,
    "SpectralClustering": 100_000, "LLE": 300_000, "TSNE": 100_000,
}  # fmt: skip
DIGIT_LIMIT = 120
ITERATIVE = {name: {} for name in ("TSNE", "SNE", "ElasticEmbedding", "UKR")}
UNFOLDING = {"MVU": {}, "MVU, 100 landmarks": {"n_landmarks": 100}}
METHODS_OF_DIGITS = {**METHODS, **ITERATIVE, **UNFOLDING}
METHODS_OF_POINTS = ("NeighborGraph", "PCA", "LaplacianEigenmaps", "TSNE")


def timed(work, X, n):
    """Do the work on a few points, then on n."""
    work(few(X, 200))
    X = X[:n].copy()
    yield
    work(X)
    return {}


def fit(X, method, n):
    import manifoldry

    make = getattr(manifoldry, method.split(",")[0])
    work = make.build if method == "NeighborGraph" else make(**METHODS_OF_DIGITS[method]).fit
    return (yield from timed(work, X, n))


def peer(X, n, make, options):
    """Fit a peer, given as ``"module:class"``; pynndescent computes in its constructor."""
    module, name = make.split(":")
    make = partial(getattr(import_module(module), name), **options)
    work = make if name == "NNDescent" else lambda data: make().fit(data)
    return (yield from timed(work, X, n))


def tree(X, n):
    """Neighbors by scipy's k-d tree."""
    from scipy.spatial import cKDTree

    X = X[:n].copy()
    yield
    cKDTree(X).query(X, 16, workers=-1)
    return {}


SKLEARN, SEED, JOBS = "scikit-learn", {"random_state": 0}, {"n_jobs": -1}
LOCAL = "sklearn.manifold:LocallyLinearEmbedding"
# Task, package, what is fitted, its options, and sizes.
PEERS_ON_ROLL = (
    ("LaplacianEigenmaps", SKLEARN, "sklearn.manifold:SpectralEmbedding",
     {"affinity": "nearest_neighbors", **K, **SEED, **JOBS}, SIZES[:4]),
    ("LLE", SKLEARN, LOCAL, {**K, **SEED, **JOBS}, SIZES[:3]),
    ("LTSA", SKLEARN, LOCAL, {"method": "ltsa", **K, **SEED, **JOBS}, (*SMALL, 30_000)),
    ("Isomap", SKLEARN, "sklearn.manifold:Isomap", {**K, **JOBS}, SMALL),
    ("KernelPCA", SKLEARN, "sklearn.decomposition:KernelPCA",
     {"n_components": 2, "kernel": "rbf", **SEED, **JOBS}, SMALL),
)  # fmt: skip
PEERS_ON_POINTS = (
    # It compiles for half a minute before the clock starts, so it has few sizes.
    ("NeighborGraph", "pynndescent", "pynndescent:NNDescent", {"n_neighbors": 16, **SEED},
     SIZES[1:4]),
    ("PCA", SKLEARN, "sklearn.decomposition:PCA", {"n_components": 2, **SEED}, SIZES),
    ("LaplacianEigenmaps", SKLEARN, "sklearn.manifold:SpectralEmbedding",
     {"affinity": "nearest_neighbors", **K, **SEED, **JOBS}, SIZES[:3]),
    ("TSNE", "openTSNE", "openTSNE:TSNE", {"perplexity": PERPLEXITY, **SEED, **JOBS}, SIZES[:3]),
)  # fmt: skip


def sizes_of(method):
    """Sizes of one of our methods."""
    return SMALL if method in DENSE else [n for n in SIZES if n <= UP_TO.get(method, SIZES[-1])]


def ours(methods, sizes=sizes_of):
    """A contestant for every method and every one of its sizes."""
    return [
        Contestant(f"{method}, n={n}", fit, options={"method": method, "n": n}, series=method,
                   size=n, task=method.split(",")[0])
        for method in methods for n in sizes(method)
    ]  # fmt: skip


def theirs(peers):
    """A contestant for every peer and every one of its sizes."""
    return [
        _peer(task, env, n, partial(peer, make=make, options=options))
        for task, env, make, options, sizes in peers for n in sizes
    ]  # fmt: skip


def _peer(task, env, n, run, name=None):
    name = f"{name or env} ({task})"
    return Contestant(f"{name}, n={n}", run, env, {"n": n}, series=name, size=n, task=task,
                      timeout=PEER_LIMIT)  # fmt: skip


TREES = [_peer("NeighborGraph", SKLEARN, n, tree, "scipy") for n in SIZES]
WORKLOADS = [
    Workload(
        "growth-small", "Time and memory of our methods on the Swiss roll, n = 1000 and 3000.",
        partial(roll, SMALL[1]), ours(METHODS, lambda _: SMALL[:2]), timeout=LIMIT, quick=True,
    ),
    Workload(
        "growth", "Time and memory on the Swiss roll, n from 1000 to 1 000 000.",
        partial(roll, SIZES[-1]), [*ours(METHODS), *TREES, *theirs(PEERS_ON_ROLL)], timeout=LIMIT,
    ),
    Workload(
        "growth-points", "Time and memory on points between digits (50 components of MNIST), "
        "n from 1000 to 1 000 000.",
        partial(between_neighbors, SIZES[-1]),
        [*ours(METHODS_OF_POINTS), *theirs(PEERS_ON_POINTS)], timeout=LIMIT,
    ),
    Workload(
        "digits-growth",
        "Processor time and memory of our methods on handwritten digits (MNIST), n up to 10 000.",
        partial(mnist, SMALL[-1]), ours(METHODS_OF_DIGITS, lambda _: SMALL), timeout=DIGIT_LIMIT,
        processor_time=True,
    ),
]  # fmt: skip
