"""Local methods on the Swiss roll: LLE, LTSA, Hessian LLE."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, roll, sheet_error, timing

K = 12
SKLEARN = {"LLE": "standard", "LTSA": "ltsa", "HessianLLE": "hessian"}
TAPKEE = {"LLE": "lle", "LTSA": "ltsa", "HessianLLE": "hlle"}


def ours(X, method):
    import manifoldry
    from manifoldry.eigen import Auto

    make = getattr(manifoldry, method)
    make(2, n_neighbors=K).fit_transform(few(X))
    yield
    with timing(Auto, "solve") as spent:
        Y = make(2, n_neighbors=K).fit_transform(X)
    return {"embedding": Y, "eigenproblem": sum(spent)}


def sklearn(X, method):
    import sklearn.manifold._locally_linear as inside  # its functions are timed
    from sklearn.manifold import LocallyLinearEmbedding

    options = {"eigen_solver": "arpack", "random_state": 0, "n_jobs": -1}
    model = LocallyLinearEmbedding(n_neighbors=K, method=SKLEARN[method], **options)
    model.fit_transform(few(X))
    yield
    with timing(inside, "null_space") as spent:
        Y = model.fit_transform(X)
    return {"embedding": Y, "eigenproblem": sum(spent)}


def tapkee(X, method):
    import numpy as np
    import tapkee as library

    options = {"method": TAPKEE[method], "num_neighbors": K, "target_dimension": 2}
    library.embed(np.asfortranarray(few(X).T), **options)
    X = np.asfortranarray(X.T)
    yield
    Y = library.embed(X, **options)
    return {"embedding": Y if Y.shape[1] == 2 else Y.T}


def sklearn_contestant(run, method):
    """scikit-learn's estimator; only for reference if it computes something else.

    "hessian" of version 1.9.1 uses all columns of a full QR factor instead of those of the Hessian,
    so its matrix is that of LTSA.
    """
    other = method == "HessianLLE"
    name = "scikit-learn, in effect LTSA" if other else "scikit-learn"
    return Contestant(name, run, "scikit-learn", {"method": method}, aside=other)


def _workload(method, n, **options):
    contestants = (
        Contestant(method, ours, options={"method": method}),
        sklearn_contestant(sklearn, method),
        Contestant("tapkee", tapkee, "tapkee", {"method": method}),
    )
    what = f"{method} of a Swiss roll of {n}, {K} neighbors"
    return Workload(
        f"local-{method.lower()}-{n // 1000}k", what, partial(roll, n), contestants, sheet_error,
        ("error <= best + 0.02",), dataset=f"roll-{n}", **options,
    )  # fmt: skip


WORKLOADS = [
    *[_workload(method, 2000, quick=True) for method in SKLEARN],
    *[_workload(method, 10_000) for method in SKLEARN],
    _workload("LLE", 50_000),
]
