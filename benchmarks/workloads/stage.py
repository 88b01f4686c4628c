"""From neighbors to the matrix of the eigenproblem: the local fits of LLE, LTSA, Hessian LLE."""

from functools import partial
from unittest.mock import patch

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, roll
from benchmarks.workloads.laplacian import entries, matrix
from benchmarks.workloads.local import SKLEARN, K, sklearn_contestant


def ours(X, method):
    import manifoldry
    from manifoldry.eigen import EigenSolver

    class Posed(Exception):  # noqa: N818 (where the stage ends, not a mistake)
        pass

    class Stop(EigenSolver):
        def solve(self, problem, k, rng):
            raise Posed(problem)

    def posed(graph):
        try:
            getattr(manifoldry, method)(2, eigen_solver=Stop()).fit(graph)
        except Posed as stop:
            return stop.args[0].operator

    posed(manifoldry.NeighborGraph.build(few(X), K))
    graph = manifoldry.NeighborGraph.build(X, K)
    yield
    return entries(posed(graph))


def sklearn(X, method):
    import sklearn.manifold._locally_linear as inside  # functions are replaced
    from sklearn.neighbors import NearestNeighbors

    def neighbors(X):
        return NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X, return_distance=False)

    def posed(X, found):
        class Found(NearestNeighbors):
            def kneighbors(self, *args, **kwargs):
                return found

        cut = {"NearestNeighbors": Found, "null_space": lambda M, *args, **kwargs: (M, 0.0)}
        options = {"n_neighbors": K, "n_components": 2, "eigen_solver": "arpack"}
        with patch.multiple(inside, **cut):
            return inside.locally_linear_embedding(X, method=SKLEARN[method], **options)[0]

    posed(few(X), neighbors(few(X)))
    found = neighbors(X)
    yield
    return entries(posed(X, found))


def roughness(arrays, result):
    """Decimal logarithm of the quadratic form at the true coordinates, relative to that of noise.

    The quadratic form should vanish for linear functions on the sheet.
    """
    import numpy as np

    M, Y = matrix(**result), arrays["_truth"] - arrays["_truth"].mean(axis=0)
    energy = (Y * (M @ Y)).sum() / (Y * Y).sum()
    return {"log-roughness": np.log10(energy / M.diagonal().mean())}


def _workload(method, n, **options):
    contestants = (
        Contestant(method, ours, options={"method": method}),
        sklearn_contestant(sklearn, method),
    )
    what = f"The matrix of {method} of a Swiss roll of {n}, given {K} neighbors"
    return Workload(
        f"stage-{method.lower()}-{n // 1000}k", what, partial(roll, n), contestants, roughness,
        ("log-roughness <= best + 0.3",), dataset=f"roll-{n}", **options,
    )  # fmt: skip


WORKLOADS = [
    *[_workload(method, 2000, quick=True) for method in SKLEARN],
    *[_workload(method, 10_000) for method in SKLEARN],
]
