"""Cost of a constraint: the eigenproblem of Laplacian eigenmaps with fifty columns excluded."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import mnist, roll
from benchmarks.workloads.laplacian import (
    entries,
    largest_component,
    matrix,
    normalized,
    ours,
    over_gaps,
)

N_COORDINATES, N_COLUMNS = 2, 50


def with_columns(make, k, inverse):
    """Weights of the largest component, smooth columns on it, and reference eigenvalues."""
    import numpy as np

    X = make()["X"]
    W, rows = largest_component(X, k)
    C = waves(np.asarray(X, dtype=float)[rows])
    values = {
        "_plain": reference(W, excluded(W), inverse),
        "_constrained": reference(W, excluded(W, C), inverse),
    }
    return {**entries(W), "C": C, **values}


def waves(X):
    """Cosines along random directions, a few periods across the data."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).sum())
    directions, phases = rng.normal(0, 3, (X.shape[1], N_COLUMNS)), rng.uniform(0, 7, N_COLUMNS)
    return np.cos(X @ directions + phases)


def excluded(W, *columns):
    """Orthonormal basis, in the standard form, of the constant and further columns."""
    import numpy as np

    root = np.sqrt(W.sum(axis=1))[:, None]
    return np.linalg.qr(root * np.hstack([np.ones_like(root), *columns]))[0]


def reference(W, Q, inverse):
    """The smallest eigenvalues of the normalized Laplacian on the complement of Q, by scipy.

    With `inverse` through A⁻¹ − A⁻¹Q(QᵀA⁻¹Q)⁻¹QᵀA⁻¹, the inverse of a shifted A on the complement.
    """
    import numpy as np
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import LinearOperator, eigsh, splu

    A, n, shift = normalized(W), W.shape[0], 1e-6
    if inverse:
        symmetric = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}}
        factor = splu(csc_array((1 + shift) * eye_array(n) - A), diag_pivot_thresh=0, **symmetric)
        S = factor.solve(Q)
        small = np.linalg.inv(Q.T @ S)

    def product(x):
        if inverse:
            return factor.solve(x) - S @ (small @ (S.T @ x))
        x = A @ (x - Q @ (Q.T @ x))
        return x - Q @ (Q.T @ x)

    start = np.random.default_rng(0).normal(size=n)
    operator = LinearOperator((n, n), matvec=product, dtype=float)
    values = eigsh(operator, N_COORDINATES + 1, which="LA", v0=start - Q @ (Q.T @ start), ncv=60,
                   maxiter=10_000, tol=0, return_eigenvectors=False)  # fmt: skip
    return np.sort(1 / values - shift if inverse else 1 - values)


def solve(data, indices, indptr, C, constrained):
    import numpy as np

    problem = {"k": N_COORDINATES, "solver": "auto", "constraint": C if constrained else None}
    result = yield from ours(data, indices, indptr, **problem)
    return {**result, "constrained": np.array(constrained)}


def accuracy(arrays, result):
    """Largest residual divided by its gap on the complement, or fraction in the excluded space."""
    import numpy as np

    W = matrix(arrays["data"], arrays["indices"], arrays["indptr"])
    Q = excluded(W, arrays["C"]) if result["constrained"] else excluded(W)
    true = arrays["_constrained" if result["constrained"] else "_plain"]
    G = result["embedding"] * np.sqrt(W.sum(axis=1))[:, None]
    G = G / np.linalg.norm(G, axis=0)
    LG = G - normalized(W) @ G
    ratios = over_gaps(G, LG - Q @ (Q.T @ LG), np.append(-np.inf, true))
    return {"residual/gap": max(ratios.max(), np.abs(Q.T @ G).max())}


def _workload(name, what, make, k=10, inverse=True, **options):
    contestants = (
        Contestant("constrained", solve, options={"constrained": True}),
        Contestant("plain", solve, options={"constrained": False}, peer=True),
    )
    return Workload(
        f"constraint-{name}", f"Two eigenvectors of the graph Laplacian of {what}, with and without"
        f" {N_COLUMNS} smooth columns excluded", partial(with_columns, make, k, inverse),
        contestants, accuracy, ("residual/gap <= 1e-3",), timeout=300, **options,
    )  # fmt: skip


WORKLOADS = [
    _workload("roll-5k", "a Swiss roll of 5000", partial(roll, 5000), quick=True),
    _workload("roll-20k", "a Swiss roll of 20 000", partial(roll, 20_000)),
    _workload("roll-100k", "a Swiss roll of 100 000", partial(roll, 100_000)),
    _workload("mnist-20k", "20 000 of MNIST", partial(mnist, 20_000), 15, inverse=False),
]
