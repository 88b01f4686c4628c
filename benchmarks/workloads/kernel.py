"""Methods with an n × n matrix: kernel PCA and classical scaling."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import fitted, roll

GAMMA = 0.01  # of exp(−gamma·d²): a bandwidth of ten, for a sheet of about ninety by twenty


def with_kernel(n):
    """A roll, and the two leading eigenvalues of its centered kernel matrix by scipy."""
    import numpy as np
    from scipy.sparse.linalg import eigsh
    from scipy.spatial.distance import cdist

    X = roll(n)["X"]
    K = np.exp(-GAMMA * cdist(X, X, "sqeuclidean"))
    K -= K.mean(axis=0)
    K -= K.mean(axis=1, keepdims=True)
    return {"X": X, "_values": eigsh(K, 2, which="LA", return_eigenvectors=False)[::-1]}


def with_variances(n, precomputed=False):
    """A roll or its distances, and the eigenvalues of its Gram matrix."""
    import numpy as np
    from scipy.spatial.distance import cdist

    X = roll(n)["X"]
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2] ** 2
    return {"X": cdist(X, X) if precomputed else X, "_values": values}


def eigenvalue_error(arrays, result):
    """Largest relative error of the squared lengths of the coordinates, which are eigenvalues."""
    import numpy as np

    found = (result["embedding"] ** 2).sum(axis=0)
    return {"λ-error": np.abs(found / arrays["_values"] - 1).max()}


def kernel_pca(n, **options):
    kernel = {"n_components": 2, "kernel": "rbf", "gamma": GAMMA}
    arpack = {"eigen_solver": "arpack", "random_state": 0, "n_jobs": -1}
    theirs = fitted("sklearn.decomposition", "KernelPCA", **kernel, **arpack)
    contestants = (
        Contestant("KernelPCA", fitted("manifoldry", "KernelPCA", **kernel)),
        Contestant("scikit-learn arpack", theirs, "scikit-learn"),
    )
    data, what = partial(with_kernel, n), f"Gaussian kernel PCA of {n} points"
    return _workload("kernel-pca", n, what, data, contestants, **options)


def mds(n, metric, **options):
    arguments = {"n_components": 2, "metric": metric}
    theirs = fitted("sklearn.manifold", "ClassicalMDS", **arguments)
    contestants = (
        Contestant("ClassicalMDS", fitted("manifoldry", "ClassicalMDS", **arguments)),
        Contestant("scikit-learn", theirs, "scikit-learn"),
    )
    data = partial(with_variances, n, metric == "precomputed")
    what = f"classical scaling of {n} points, metric={metric}"
    return _workload(f"mds-{metric}", n, what, data, contestants, **options)


def _workload(name, n, what, data, contestants, **options):
    quality = (eigenvalue_error, ("λ-error <= 1e-6",))
    name = f"{name}-{n // 1000}k"
    return Workload(name, what, data, contestants, *quality, timeout=120, **options)


WORKLOADS = [
    kernel_pca(2000, quick=True),
    kernel_pca(10_000),
    *[mds(2000, metric, quick=True) for metric in ("euclidean", "precomputed")],
    *[mds(10_000, metric) for metric in ("euclidean", "precomputed")],
]
