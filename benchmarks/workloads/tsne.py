"""t-SNE with two coordinates and default parameters, compared with scikit-learn and openTSNE."""

from dataclasses import replace
from functools import partial

from benchmarks.workload import Contestant, Missing, Workload
from benchmarks.workloads.common import fitted, trust_of_sample

PERPLEXITY, COMPONENTS = 30, 50
FLOORS = ("KL <= best + 0.05", "area >= best - 0.01")
ALL_RANKS = 20_000  # number of points up to which the ranks of all pairs are compared


def labeled_digits():
    """scikit-learn's 1797 digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return {"X": X, "_labels": y}


def components(n):
    """MNIST in its first principal components, the same for all contestants."""
    from manifoldry import PCA
    from manifoldry.datasets import DataNotFoundError, load_mnist

    try:
        X, y = load_mnist(n_samples=n, random_state=0)
    except DataNotFoundError as error:
        raise Missing("load_mnist finds no data; set MANIFOLDRY_DATA") from error
    return {"X": PCA(COMPONENTS).fit_transform(X.astype("float64")), "_labels": y}


def between_neighbors(n):
    """MNIST in its first components, and points between its rows and one of ten neighbors."""
    import numpy as np

    from manifoldry import NeighborGraph

    digits, rng = components(70_000)["X"].astype("float32"), np.random.default_rng(0)
    graph = NeighborGraph.build(digits, 10)
    neighbors, lengths = (a.reshape(-1, 10) for a in (graph.indices, graph.distances))
    i = rng.integers(0, len(digits), n - len(digits))
    j = neighbors[i, rng.integers(0, 10, len(i))]
    t = rng.random((len(i), 1), dtype="float32")
    X = digits[i] + t * (digits[j] - digits[i])
    noise = 0.3 * np.median(lengths[:, 0]) / COMPONENTS**0.5
    X += noise * rng.standard_normal(X.shape, dtype="float32")
    return {"X": rng.permutation(np.concatenate([digits, X]))}


def sklearn(method):
    options = {"perplexity": PERPLEXITY, "init": "pca", "random_state": 0, "n_jobs": -1}
    return fitted("sklearn.manifold", "TSNE", method=method, **options)


def open_tsne(X):
    from openTSNE import TSNE

    make = partial(TSNE, perplexity=PERPLEXITY, random_state=0, n_jobs=-1)
    make().fit(X[:200].copy())
    yield
    return {"embedding": make().fit(X)}


def metrics(arrays, result):
    """The divergence for the same P for all contestants, and quality metrics of the embedding."""
    from manifoldry import NeighborGraph
    from manifoldry.affinity import Entropic
    from manifoldry.metrics import coranking, knn_accuracy, trustworthiness
    from manifoldry.objectives import Exact, tsne

    X, Y = arrays["X"], result["embedding"].astype(float)
    affinity = Entropic(PERPLEXITY)
    graph = NeighborGraph.build(X, affinity.neighbors(len(X)), search="exact")
    P = affinity.fit(graph).matrix(graph)
    found = {
        "KL": replace(tsne(P / P.sum()), pair_sums=Exact()).value(Y),
        "trust": trustworthiness(X, Y),
        "1-NN": knn_accuracy(Y, arrays["_labels"], n_neighbors=1),
    }
    return found if len(X) > ALL_RANKS else {**found, "area": coranking(X, Y).area}


def metrics_of_many(arrays, result):
    """The divergence by approximate sums, and the trustworthiness of a sample of the points."""
    return {"KL": float(result["loss"]), "trust": trust_of_sample(arrays, result)}


def million(X):
    import numpy as np

    from manifoldry import TSNE

    yield
    model = TSNE(perplexity=PERPLEXITY).fit(X)
    # As an array, since a plain number is taken for a part of the time.
    return {"embedding": model.embedding_, "loss": np.array(model.loss_)}


OURS = Contestant("TSNE", fitted("manifoldry", "TSNE", perplexity=PERPLEXITY))
EXACT = Contestant("scikit-learn, exact", sklearn("exact"), "scikit-learn")
APPROXIMATE = (
    Contestant("scikit-learn, Barnes–Hut", sklearn("barnes_hut"), "scikit-learn"),
    Contestant("openTSNE", open_tsne, "openTSNE"),
    Contestant("umap-learn", fitted("umap", "UMAP", random_state=0), "umap-learn", aside=True),
)


def _workload(name, data, what, contestants, floors=FLOORS, **options):
    return Workload(
        f"tsne-{name}", f"t-SNE of {what}, perplexity {PERPLEXITY}", data, contestants, metrics,
        floors, **options,
    )  # fmt: skip


WORKLOADS = [
    _workload("digits", labeled_digits, "1797 digits", (OURS, EXACT, *APPROXIMATE), quick=True),
    _workload(
        "mnist-2k", partial(components, 2000), "2000 of MNIST in 50 principal components",
        (OURS, EXACT, *APPROXIMATE),
    ),
    _workload(  # scikit-learn's exact method takes 15 minutes
        "mnist-5k", partial(components, 5000), "5000 of MNIST in 50 principal components",
        (OURS, *APPROXIMATE),
    ),
    _workload(
        "mnist-10k", partial(components, 10_000), "10 000 of MNIST in 50 principal components",
        (OURS, *APPROXIMATE),
    ),
    _workload(  # scikit-learn's takes ten minutes
        "mnist-70k", partial(components, 70_000), "MNIST in 50 principal components",
        (OURS, *APPROXIMATE[1:]), FLOORS[:1],
    ),
    Workload(
        "tsne-million", "t-SNE of 1 000 000 points between digits, perplexity 30",
        partial(between_neighbors, 1_000_000), (Contestant("TSNE", million),), metrics_of_many,
        timeout=2400.0,
    ),
]  # fmt: skip
