"""Sums over all pairs of embedded points, compared with plain C (vectorized loops, OpenMP)."""

import time
from functools import partial
from itertools import product

from benchmarks.workload import Contestant, Missing, Workload

FLAGS = ("-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC")
PAIRS = 2_000_000_000  # pairs in one measurement, over several calls
FLOORS = {"float32": "error <= 1e-5", "float64": "error <= 1e-12"}
THREADS = {"": {}, "-alone": {"OMP_NUM_THREADS": "1"}}


def spread(n, dtype):
    """An embedding after repulsion: most pairs are too far apart for a Gaussian kernel."""
    import numpy as np

    return {"Y": 3 * np.random.default_rng(0).normal(size=(n, 2)).astype(dtype)}


def called(sums, n):
    """Result of a contestant: the sums, and the seconds of every call."""
    import numpy as np

    seconds = []
    for _ in range(PAIRS // n**2):
        start = time.perf_counter()
        mass, force = sums()
        seconds.append(time.perf_counter() - start)
    return {"mass": mass, "force": force, "each": np.array(seconds)}


def ours(Y, kernel):
    from manifoldry.objectives import Exact, GaussianKernel, StudentKernel

    sums = partial(
        Exact().sums, {"gaussian": GaussianKernel, "student": StudentKernel}[kernel](), Y
    )
    sums()
    yield
    return called(sums, len(Y))


def plain_c(Y, kernel):
    import ctypes

    import numpy as np

    loop = getattr(library(), f"{kernel}_{Y.dtype}")
    X = np.ascontiguousarray(Y.T)
    mass, force = np.empty(len(Y)), np.empty_like(Y)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (X[0], X[1], mass, force)]

    def sums():
        loop(*pointers[:2], ctypes.c_ssize_t(len(Y)), *pointers[2:])
        return mass, force

    sums()
    yield
    return called(sums, len(Y))


def library():
    """The C source in the parent folder, compiled for this machine."""
    import ctypes
    import shutil
    import subprocess
    import tempfile
    from pathlib import Path

    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Missing("no C compiler, neither gcc nor cc")
    source = Path(__file__).parents[1] / "pair_sums.c"
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "pair_sums.so"
        subprocess.run([compiler, *FLAGS, source, "-o", built, "-lm"], check=True)
        return ctypes.CDLL(str(built))


def accuracy(kernel, arrays, result):
    """Largest error over some points, relative to the largest value; and the best speed."""
    import numpy as np

    Y = arrays["Y"].astype(float)
    rows = np.arange(0, len(Y), len(Y) // 100)
    steps = Y[rows, None] - Y
    D = (steps**2).sum(axis=2)
    K, u = (np.exp(-D), 1) if kernel == "gaussian" else (1 / (1 + D), 1 + D)
    force, mass = ((K / u)[:, :, None] * steps).sum(axis=1), K.sum(axis=1) - 1
    pairs = ((result["mass"][rows], mass), (result["force"][rows], force))
    error = max(np.abs(found - true).max() / np.abs(true).max() for found, true in pairs)
    return {"error": error, "Gpairs/s": len(Y) ** 2 / result["each"].min() / 1e9}


def _workload(kernel, dtype, n, threads):
    name = f"pairs-{kernel}-{dtype}-{n // 1000}k{threads}"
    what = f"{kernel.title()} sums over the pairs of {n} points in the plane, {dtype}"
    what += ", one thread" if threads else ""
    what += f", {PAIRS // n**2} times; C: {' '.join(FLAGS[:4])}"
    options = {"options": {"kernel": kernel}, "environ": THREADS[threads]}
    contestants = (
        Contestant(f"{kernel}_sums", ours, **options),
        Contestant("C", plain_c, peer=True, **options),
    )
    return Workload(
        name, what, partial(spread, n, dtype), contestants, partial(accuracy, kernel),
        (FLOORS[dtype],), dataset=f"spread-{n}-{dtype}", quick=n == 2000 and not threads,
    )  # fmt: skip


WORKLOADS = [
    _workload(*choice)
    for choice in product(("gaussian", "student"), FLOORS, (2000, 10_000), THREADS)
]
