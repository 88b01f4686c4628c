"""The neighbor graph: 15 nearest neighbors of every point."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, mnist, roll

K, N_SAMPLE = 15, 1000
FEW = 12  # features, for which our search needs no compiled code


def with_exact(make, n):
    """The data, and the exact neighbors of a sample by a search in double precision."""
    import numpy as np
    from scipy.spatial.distance import cdist

    arrays = make(n)
    X = arrays["X"]
    sample = np.sort(np.random.default_rng(0).choice(len(X), N_SAMPLE, replace=False))
    reach = np.empty(N_SAMPLE)
    for i in range(0, N_SAMPLE, 50):
        squares = cdist(X[sample[i : i + 50]], X, "sqeuclidean")
        # Column K, because the point itself is the nearest.
        reach[i : i + 50] = np.sqrt(np.partition(squares, K, axis=1)[:, K])
    return {"X": X, "sample": sample, "_reach": reach}


def recall(arrays, result):
    """Fraction of the returned neighbors that are as close as the true k-th one, including ties."""
    import numpy as np

    if "indices" not in result:
        return {}
    X, sample, found = arrays["X"], arrays["sample"], result["indices"]
    difference = X[np.maximum(found, 0)].astype(float) - X[sample].astype(float)[:, None]
    distances = np.linalg.norm(difference, axis=2)
    right = (distances <= arrays["_reach"][:, None] * (1 + 1e-6)) & (found >= 0)
    right &= found != sample[:, None]
    return {"recall": right.mean()}


def _rows(found, sample):
    """K neighbors of the sample from K + 1 or more, which may contain the point itself."""
    import numpy as np

    return {"indices": np.array([
        [j for j in row if j != i][:K] for i, row in zip(sample, found[sample], strict=True)
    ])}  # fmt: skip


def ours(X, sample, search="auto"):
    from manifoldry import NeighborGraph

    NeighborGraph.build(few(X), K)
    if X.shape[1] > FEW:  # loads the compiled code, which few points do not use
        NeighborGraph.build(few(X), K, search="approximate")
    yield
    graph = NeighborGraph.build(X, K, search=search)
    return {"indices": graph.indices.reshape(-1, K)[sample]}


def sgemm(X, sample):
    """Lower bound of exact search: all inner products in single precision, nothing else."""
    import numpy as np

    X = np.ascontiguousarray(X, dtype=np.float32)
    yield
    block = np.empty((2048, len(X)), dtype=np.float32)
    for i in range(0, len(X), 2048):
        rows = X[i : i + 2048]
        np.matmul(rows, X.T, out=block[: len(rows)])
    return {}


def pynndescent(X, sample, warm=False):
    from pynndescent import NNDescent

    if warm:
        NNDescent(X, n_neighbors=K + 1, random_state=0)
    yield
    return _rows(NNDescent(X, n_neighbors=K + 1, random_state=0).neighbor_graph[0], sample)


def usearch(X, sample, **options):
    import numpy as np
    from usearch.index import Index

    yield
    index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32", **options)
    index.add(np.arange(len(X)), np.asarray(X, dtype=np.float32))
    return _rows(index.search(np.asarray(X, dtype=np.float32), K + 1).keys.astype(int), sample)


def hnswlib(X, sample, ef=50, **options):
    from hnswlib import Index

    yield
    index = Index("l2", X.shape[1])
    index.init_index(len(X), **options)
    index.set_ef(ef)
    index.add_items(X)
    return _rows(index.knn_query(X, K + 1)[0].astype(int), sample)


def faiss(X, sample, factory, tune=None):
    import faiss
    import numpy as np

    yield
    X = np.ascontiguousarray(X, dtype=np.float32)
    index = (
        faiss.IndexNNDescentFlat(X.shape[1], 2 * K)  # not available from the factory
        if factory == "NNDescent"
        else faiss.index_factory(X.shape[1], factory)
    )
    index.train(X)
    index.add(X)
    if tune:
        faiss.ParameterSpace().set_index_parameters(index, tune)
    return _rows(index.search(X, K + 1)[1], sample)


def sklearn(X, sample, algorithm):
    from sklearn.neighbors import NearestNeighbors

    NearestNeighbors(n_neighbors=K, algorithm=algorithm).fit(few(X)).kneighbors()
    yield
    search = NearestNeighbors(n_neighbors=K, algorithm=algorithm, n_jobs=-1).fit(X)
    return {"indices": search.kneighbors()[1][sample]}


def kdtree(X, sample):
    from scipy.spatial import cKDTree

    yield
    return _rows(cKDTree(X).query(X, K + 1, workers=-1)[1], sample)


DESCENT = (
    Contestant("pynndescent, cold", pynndescent, "pynndescent", quick=False),
    Contestant("pynndescent, warm", pynndescent, "pynndescent", {"warm": True}),
)
MANY_FEATURES = (
    Contestant("NeighborGraph", ours),
    Contestant("NeighborGraph, exact", ours, options={"search": "exact"}),
    *DESCENT,
    Contestant("usearch", usearch, "usearch"),
    Contestant("usearch, search 256", usearch, "usearch", {"expansion_search": 256}, quick=False),
    Contestant("hnswlib", hnswlib, "hnswlib"),
    Contestant("hnswlib, M=32, ef=200", hnswlib, "hnswlib", {"M": 32, "ef": 200}, quick=False),
    Contestant("faiss HNSW32", faiss, "faiss-cpu", {"factory": "HNSW32", "tune": "efSearch=64"}),
    Contestant("faiss IVF", faiss, "faiss-cpu", {"factory": "IVF256,Flat", "tune": "nprobe=16"}),
    Contestant("faiss NNDescent", faiss, "faiss-cpu", {"factory": "NNDescent"}),
    Contestant("faiss, exact", faiss, "faiss-cpu", {"factory": "Flat"}),
    Contestant("scikit-learn brute", sklearn, "scikit-learn", {"algorithm": "brute"}),
    Contestant("sgemm alone", sgemm, aside=True),
)
# At 70 000 points: without those that take minutes and are never the best of equal recall.
MOST_POINTS = tuple(
    c for c in MANY_FEATURES
    if c.name not in ("faiss NNDescent", "scikit-learn brute", "sgemm alone")
)  # fmt: skip
FEW_FEATURES = (
    Contestant("NeighborGraph", ours),
    Contestant("scipy cKDTree", kdtree, "scikit-learn"),
    Contestant("scikit-learn kd_tree", sklearn, "scikit-learn", {"algorithm": "kd_tree"}),
    *DESCENT,
)
FLOORS = ("recall >= 0.9", "recall >= 0.98", "recall >= 0.999")


def _workload(name, what, make, n, contestants, **options):
    data = partial(with_exact, make, n)
    return Workload(name, f"15 neighbors of {what}", data, contestants, recall, FLOORS, **options)


WORKLOADS = [
    _workload("knn-mnist-5k", "5000 digits × 784", mnist, 5000, MANY_FEATURES, quick=True),
    _workload("knn-mnist", "MNIST, 70 000 × 784", mnist, None, MOST_POINTS, timeout=900),
    _workload("knn-roll-50k", "a Swiss roll of 50 000", roll, 50_000, FEW_FEATURES, quick=True),
    _workload("knn-roll", "a Swiss roll of 1 000 000", roll, 1_000_000, FEW_FEATURES),
]
