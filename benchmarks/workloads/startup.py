"""Start-up: imports, and the first graph in a new process."""

from functools import partial
from importlib import import_module

from benchmarks.workload import EMPTY, SHARED, Contestant, Workload
from benchmarks.workloads.common import mnist


def load(module):
    yield
    import_module(module)


def first_graph(X):
    yield
    from manifoldry import NeighborGraph

    NeighborGraph.build(X, 15)


def first_descent(X):
    yield
    from pynndescent import NNDescent

    _ = NNDescent(X, n_neighbors=16, random_state=0).neighbor_graph


def _import(name, module, env, **more):
    return Contestant(f"import {name}", load, env, {"module": module}, **more)


IMPORTS = (
    _import("manifoldry", "manifoldry", "manifoldry"),
    _import("manifoldry, the estimators", "manifoldry.spectral.lle", "manifoldry"),
    _import("sklearn.manifold", "sklearn.manifold", "scikit-learn"),
    _import("tapkee", "tapkee", "tapkee", aside=True),  # a C++ library without Python dependencies
    _import("pynndescent", "pynndescent", "pynndescent"),
    _import("umap", "umap", "umap-learn"),
    _import("openTSNE", "openTSNE", "openTSNE"),
)
COLD, WARM = {"NUMBA_CACHE_DIR": EMPTY}, {"NUMBA_CACHE_DIR": SHARED}
GRAPHS = (
    Contestant("NeighborGraph, compiled before", first_graph, environ=WARM, rehearse=True),
    Contestant("NeighborGraph, nothing compiled", first_graph, environ=COLD),
    Contestant("pynndescent, nothing compiled", first_descent, "pynndescent", environ=COLD),
)


def _first(name, n, **options):
    what = f"the first neighbor graph of a fresh process, import included, {n or 70_000} × 784"
    return Workload(name, what, partial(mnist, n), GRAPHS, **options)


WORKLOADS = [
    Workload("startup-import", "importing the package", dict, IMPORTS, timeout=60, quick=True),
    _first("startup-graph-5k", 5000, quick=True),
    _first("startup-graph", None),
]
