"""Complete fits from data to embedding, on digits and on 10 000 digits of MNIST."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import digits, fitted, mnist, trust
from benchmarks.workloads.tsne import between_neighbors, components

K = {"n_neighbors": 10}
METHODS = {  # our estimator, module and name of scikit-learn's, and equivalent options
    "laplacian": ("LaplacianEigenmaps", "sklearn.manifold", "SpectralEmbedding", K),
    "isomap": ("Isomap", "sklearn.manifold", "Isomap", K),
    "pca": ("PCA", "sklearn.decomposition", "PCA", {}),
}
REFERENCE = (
    Contestant("umap-learn", fitted("umap", "UMAP", random_state=0), "umap-learn", aside=True),
)


def open_tsne(X, **_):
    from openTSNE import TSNE

    yield
    return {"embedding": TSNE(random_state=0, n_jobs=-1).fit(X)}


def contestants(method, aside):
    name, module, theirs, options = METHODS[method]
    extra = {"affinity": "nearest_neighbors", "random_state": 0} if method == "laplacian" else {}
    peer = fitted(module, theirs, n_components=2, **options, **extra)
    found = [
        Contestant(name, fitted("manifoldry", name, n_components=2, **options)),
        Contestant(f"scikit-learn {theirs}", peer, "scikit-learn"),
    ]
    if aside:
        found += [*REFERENCE, Contestant("openTSNE", open_tsne, "openTSNE", aside=True)]
    return tuple(found)


def landmarks(X):
    from manifoldry import Isomap

    yield
    return {"embedding": Isomap(2, n_landmarks=500).fit(X).embedding_}


def trust_of_some(arrays, result):
    """Trustworthiness among 5000 of the points."""
    some = slice(None, None, max(1, len(arrays["X"]) // 5000))
    return trust({"X": arrays["X"][some]}, {"embedding": result["embedding"][some]})


def _workload(method, data_name, make, what, aside=False, **options):
    return Workload(
        f"embed-{method}-{data_name}", f"{METHODS[method][0]} of {what}, two coordinates", make,
        contestants(method, aside), trust, ("trust >= best - 0.02",), dataset=data_name, **options,
    )  # fmt: skip


WORKLOADS = [
    *[_workload(m, "digits", digits, "1797 digits", quick=True) for m in METHODS],
    *[
        _workload(m, "mnist-10k", partial(mnist, 10_000), "10 000 of MNIST", m == "laplacian")
        for m in METHODS
    ],
    _workload(
        "isomap", "mnist50-10k", partial(components, 10_000),
        "10 000 of MNIST in 50 principal components",
    ),
    Workload(
        "isomap-million", "Isomap with 500 landmarks of 1 000 000 points between digits",
        partial(between_neighbors, 1_000_000), (Contestant("Isomap", landmarks),), trust_of_some,
        timeout=1200.0,
    ),
]  # fmt: skip
