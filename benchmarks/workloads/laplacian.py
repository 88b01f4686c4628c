"""The eigenproblem of Laplacian eigenmaps, given the weights of the graph, and whole fits."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import digits, mnist, pbmc, roll

MOST = 10  # coordinates of the larger problem


def tori(n):
    """Product of three circles: gaps like those of a surface, fill-in like that of a solid."""
    import numpy as np

    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, (n, 3))
    circles = np.stack([np.cos(angles), np.sin(angles)], axis=2) * [[1.0], [0.8], [0.6]]
    return {"X": circles.reshape(n, 6)}


def weights(make, k, inverse):
    """Self-tuning weights of the largest component, and reference eigenvalues by scipy."""
    W, _ = largest_component(make()["X"], k)
    return {**entries(W), "_values": reference(W, inverse)}


def largest_component(X, k):
    """Self-tuning weights of the largest component of the graph, and the indices of its points."""
    import numpy as np

    from manifoldry import NeighborGraph
    from manifoldry.affinity import SelfTuning

    graph = NeighborGraph.build(np.asarray(X), k)
    _, labels = graph.components()
    rows = np.flatnonzero(labels == np.bincount(labels).argmax())
    return SelfTuning().fit(graph).matrix(graph)[rows][:, rows].tocsr(), rows


def reference(W, inverse):
    """The MOST + 2 smallest eigenvalues of the normalized Laplacian, to machine precision."""
    import numpy as np
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import eigsh

    A, n = normalized(W), W.shape[0]
    start = np.random.default_rng(0).normal(size=n)
    options = {"k": MOST + 2, "v0": start, "tol": 0, "return_eigenvectors": False}
    if n <= 2000:
        return np.linalg.eigvalsh((eye_array(n) - A).toarray())[: MOST + 2]
    if inverse:
        return np.sort(eigsh(eye_array(n) - A, sigma=-1e-9, **options))
    return np.sort(1 - eigsh(A, which="LA", ncv=100, maxiter=10_000, **options))


def normalized(W):
    """D^-½ W D^-½."""
    import numpy as np
    from scipy.sparse import diags_array

    root = diags_array(1 / np.sqrt(W.sum(axis=1)))
    return (root @ W @ root).tocsr()


def entries(W):
    """A sparse matrix as arrays, with the index type of ARPACK."""
    indices, indptr = W.indices.astype("int32"), W.indptr.astype("int32")
    return {"data": W.data, "indices": indices, "indptr": indptr}


def matrix(data, indices, indptr):
    import numpy as np
    from scipy.sparse import csr_array

    n = len(indptr) - 1
    return csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=(n, n))


def accuracy(arrays, result):
    """Largest residual divided by its gap, and the relative error of the second eigenvalue."""
    import numpy as np

    W = matrix(arrays["data"], arrays["indices"], arrays["indptr"])
    G = result["embedding"] * np.sqrt(W.sum(axis=1))[:, None]
    G = G / np.linalg.norm(G, axis=0)
    LG, true = G - normalized(W) @ G, arrays["_values"]
    error = abs(G[:, 0] @ LG[:, 0] - true[1]) / true[1]
    return {"residual/gap": over_gaps(G, LG, true).max(), "λ₂-error": error}


def over_gaps(G, LG, true):
    """Residuals divided by gaps; `true` eigenvalues include the one before the requested ones."""
    import numpy as np

    quotients, k = (G * LG).sum(axis=0), G.shape[1]
    residuals = np.linalg.norm(LG - quotients * G, axis=0)
    gaps = np.diff(true)[: k + 1]
    # A vector close to another eigenvector has a small residual, so eigenvalues are compared, too.
    wrong = np.abs(quotients - true[1 : k + 1])
    return np.maximum(residuals, wrong) / np.minimum(gaps[:-1], gaps[1:])


def import_multigrid():
    """Import it beforehand, so that it does not count in the time of a solve."""
    import pyamg  # noqa: F401 (to have it imported)


def ours(data, indices, indptr, k, solver, constraint=None):
    import numpy as np
    from scipy.sparse import csr_array, diags_array

    from manifoldry.eigen import SpectralProblem, resolve_solver

    import_multigrid()
    W = matrix(data, indices, indptr)
    yield
    degree = W.sum(axis=1)
    L = csr_array(diags_array(degree) - W)
    constant = np.ones(len(degree))
    problem = SpectralProblem(L, "smallest", degree, constant, constraint, bounds=(0.0, 2.0))
    spectrum = resolve_solver(solver).solve(problem, k, np.random.default_rng(0))
    return {"embedding": spectrum.vectors}


def sklearn(data, indices, indptr, k, solver):
    from sklearn.manifold import spectral_embedding

    import_multigrid()
    W = matrix(data, indices, indptr)
    yield
    return {"embedding": spectral_embedding(
        W, n_components=k, eigen_solver=solver, random_state=0
    )}  # fmt: skip


def our_fit(X):
    from manifoldry import LaplacianEigenmaps

    LaplacianEigenmaps(2, n_neighbors=10).fit(X[:25_000])  # read compiled functions
    yield
    model = LaplacianEigenmaps(2, n_neighbors=10).fit(X)
    return {"embedding": model.embedding_, **entries(model.affinity_)}


def sklearn_fit(X, solver, tol="auto"):
    """scikit-learn's fit; with multigrid its default tolerance is too large for a surface."""
    from scipy.sparse import csr_array
    from sklearn.manifold import SpectralEmbedding

    import_multigrid()
    yield
    model = SpectralEmbedding(
        2, affinity="nearest_neighbors", n_neighbors=10, eigen_solver=solver, eigen_tol=tol,
        random_state=0, n_jobs=-1,
    ).fit(X)  # fmt: skip
    W = model.affinity_matrix_
    W.setdiag(0)
    W.eliminate_zeros()
    return {"embedding": model.embedding_, **entries(csr_array(W))}


def accuracy_of_fit(arrays, result):
    """Accuracy of the eigenvectors of each package's own graph."""
    W = matrix(result["data"], result["indices"], result["indptr"])
    return accuracy({**entries(W), "_values": reference(W, inverse=True)}, result)


OURS = ("auto", "lanczos", "shift_invert", "lobpcg", "randomized", "dense")
THEIRS = ("arpack", "lobpcg", "amg")
FLOORS = ("residual/gap <= 1e-3", "λ₂-error <= 1e-2")


def contestants(k, large):
    """Every solver; the dense and the randomized one only if they are feasible."""
    for solver in OURS[: -2 if large else None]:
        yield Contestant(solver, ours, options={"k": k, "solver": solver})
    for solver in THEIRS:
        options = {"k": k, "solver": solver}
        yield Contestant(f"scikit-learn {solver}", sklearn, "scikit-learn", options)


def _workloads(name, what, make, n_neighbors=10, inverse=True, large=True, **options):
    data = partial(weights, make, n_neighbors, inverse)
    for k in (2, MOST):
        yield Workload(
            f"laplacian-{name}-{k}", f"{k} eigenvectors of the graph Laplacian of {what}", data,
            tuple(contestants(k, large)), accuracy, FLOORS, f"laplacian-{name}", **options,
        )  # fmt: skip


def _peer_fit(name, **options):
    return Contestant(f"scikit-learn {name}", sklearn_fit, "scikit-learn", options)


FITS = (
    Contestant("LaplacianEigenmaps", our_fit),
    _peer_fit("arpack", solver="arpack"),
    _peer_fit("amg", solver="amg"),
    _peer_fit("amg, eigen_tol=1e-8", solver="amg", tol=1e-8),
)
WORKLOADS = [
    Workload(
        "fit-laplacian-roll",
        "LaplacianEigenmaps of a Swiss roll of 60 000, graph included",
        partial(roll, 60_000),
        FITS,
        accuracy_of_fit,
        FLOORS,
        timeout=60,
    ),
    *_workloads("digits", "1797 digits", digits, large=False, quick=True),
    *_workloads("pbmc", "700 blood cells", pbmc, large=False),
    *_workloads("roll-5k", "a Swiss roll of 5000", partial(roll, 5000), large=False, quick=True),
    *_workloads("roll", "a Swiss roll of 100 000", partial(roll, 100_000), timeout=60),
    *_workloads(
        "tori", "three circles' product, 30 000", partial(tori, 30_000), 15, False, timeout=60
    ),
    *_workloads("mnist", "MNIST, 70 000 digits", mnist, 15, inverse=False, timeout=45),
]
