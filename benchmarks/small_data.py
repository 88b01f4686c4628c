"""Where the milliseconds of a small fit go, beside scikit-learn's time: a table for docs/scale.md.

``python -m benchmarks.small_data [rows]`` fits the 1797 digits of scikit-learn (or the first rows
of them) in turn by both packages, warm and in one thread, and prints medians of processor time. A
second table has the ratios for other data.
"""

import argparse
import time
import warnings
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from manifoldry.exceptions import ShortCircuitWarning, TangentSpaceWarning

RUNS = 10
STAGES = ("validation", "neighbors, distances", "matrix", "eigenproblem", "the rest")


class StageClock:
    """Processor time of nested stages; the time of an inner stage is not that of the outer."""

    def __init__(self):
        self.spent = defaultdict(float)
        self._open = []
        self._last = time.process_time()

    def _charge(self):
        now = time.process_time()
        self.spent[self._open[-1] if self._open else STAGES[-1]] += now - self._last
        self._last = now

    @contextmanager
    def stage(self, name):
        """Charge the time inside to the stage `name`."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def watch(self, owner, attribute, name):
        """Return a patch of ``owner.attribute`` that charges its calls to the stage `name`."""
        descriptor = vars(owner)[attribute]
        original = getattr(descriptor, "__func__", descriptor)

        def timed(*args, **kwargs):
            with self.stage(name):
                return original(*args, **kwargs)

        kind = type(descriptor) if isinstance(descriptor, classmethod | staticmethod) else None
        return patch.object(owner, attribute, kind(timed) if kind else timed)


def watched():
    """Functions and methods, each with the stage of its time."""
    from manifoldry.affinity.dense import RBF
    from manifoldry.base.embedder import Embedder
    from manifoldry.eigen.components import ComponentSolver
    from manifoldry.metrics import preservation
    from manifoldry.metrics.distance_rows import DistanceRows
    from manifoldry.metrics.pair import DataEmbeddingPair
    from manifoldry.neighbors import geodesics
    from manifoldry.neighbors.geodesics import Geodesics
    from manifoldry.neighbors.graph import NeighborGraph
    from manifoldry.spectral.base import SpectralEmbedder

    read, near, matrix, solve = STAGES[:4]
    return [
        (Embedder, "_read", read),
        (Embedder, "_read_new", read),
        (DataEmbeddingPair, "of", read),
        (NeighborGraph, "build", near),
        (NeighborGraph, "query", near),
        (RBF, "matrix", near),
        (DistanceRows, "neighbor_keys", near),
        (preservation, "smallest_entries", near),
        (Geodesics, "blocks_from_new", near),
        (geodesics, "_via_neighbors", matrix),
        (SpectralEmbedder, "_pose_input", matrix),
        (preservation, "ranks_of", matrix),
        (ComponentSolver, "solve", solve),
    ]


def tasks(X):
    """Names, and the same computation by manifoldry and by scikit-learn."""
    from sklearn import decomposition, manifold

    import manifoldry
    from manifoldry.metrics import trustworthiness

    Y, new = decomposition.PCA(2).fit_transform(X), X + 1e-3
    local = {
        "LLE": ("standard", "auto"),
        "ModifiedLLE": ("modified", "auto"),
        "HessianLLE": ("hessian", "dense"),  # ARPACK fails on the singular matrices of these two
        "LTSA": ("ltsa", "dense"),
    }
    near, kernel = {"n_neighbors": 10}, {"kernel": "rbf", "gamma": 1 / (X.shape[1] * X.var())}
    pairs = {
        "PCA": (manifoldry.PCA(2), decomposition.PCA(2)),
        "KernelPCA": (manifoldry.KernelPCA(2, **kernel), decomposition.KernelPCA(2, **kernel)),
        "LaplacianEigenmaps": (
            manifoldry.LaplacianEigenmaps(2, **near),
            manifold.SpectralEmbedding(2, affinity="nearest_neighbors", **near),
        ),
        "Isomap": (manifoldry.Isomap(2, **near), manifold.Isomap(n_components=2, **near)),
    } | {
        name: (
            getattr(manifoldry, name)(2, **near),
            manifold.LocallyLinearEmbedding(method=m, eigen_solver=solver, **near),
        )
        for name, (m, solver) in local.items()
    }
    for name, (ours, theirs) in pairs.items():
        yield f"`{name}`", lambda m=ours: m.fit(X), lambda m=theirs: m.fit(X)
        if hasattr(theirs, "transform"):
            ours.fit(X), theirs.fit(X)
            yield (
                f"`{name}.transform`",
                lambda m=ours: m.transform(new),
                lambda m=theirs: m.transform(new),
            )
    for k in (5, 15):
        yield (
            f"`trustworthiness`, {k} neighbors",
            lambda k=k: trustworthiness(X, Y, n_neighbors=k),
            lambda k=k: manifold.trustworthiness(X, Y, n_neighbors=k),
        )


def profile(ours, theirs):
    """Median milliseconds: by stage, in all, and of scikit-learn; runs alternate."""
    rows = []
    for _ in range(RUNS + 1):
        with ExitStack() as stack:
            clock = StageClock()
            for place in watched():
                stack.enter_context(clock.watch(*place))
            with clock.stage(STAGES[-1]):
                ours()
        spent = [clock.spent[name] for name in STAGES]
        start = time.process_time()
        theirs()
        rows.append([*spent, sum(spent), time.process_time() - start])
    return np.median(rows[1:], axis=0) * 1e3  # the first run compiles and imports


def print_profile(X):
    """Print the table of the digits."""
    print(f"| {len(X)} digits | {' | '.join(STAGES)} | all | scikit-learn | ratio |")
    print("|---|" + "---|" * (len(STAGES) + 3))
    for name, ours, theirs in tasks(X):
        *spent, whole, other = profile(ours, theirs)
        cells = [f"{ms:.1f}" for ms in (*spent, whole, other)]
        print(f"| {name} | {' | '.join(cells)} | {whole / other:.2f} |", flush=True)


def other_data():
    """Small sets beside the digits, by name."""
    from manifoldry.datasets import make_swiss_roll

    rng = np.random.default_rng(0)
    return {
        "roll of 1000": make_swiss_roll(1000, random_state=0).X,
        "roll of 2000": make_swiss_roll(2000, random_state=0).X,
        "Gaussian, 1000 × 20": rng.normal(size=(1000, 20)),
    }


def print_ratios(data):
    """Print the processor time of each task on some data, divided by that of scikit-learn."""
    print(f"| time / scikit-learn's | {' | '.join(data)} |")
    print("|---|" + "---|" * len(data))
    for rows in zip(*map(tasks, data.values()), strict=True):
        cells = []
        for _, ours, theirs in rows:
            *_, whole, other = profile(ours, theirs)
            cells.append(f"{whole / other:.2f}")
        print(f"| {rows[0][0]} | {' | '.join(cells)} |", flush=True)


def main(n=None):
    """Print both tables."""
    from sklearn.datasets import load_digits

    with threadpool_limits(1), warnings.catch_warnings():
        # Not NoveltyWarning: transform would not compare new rows with the training data.
        warnings.filterwarnings("ignore", module="sklearn")
        for category in (ShortCircuitWarning, TangentSpaceWarning):
            warnings.simplefilter("ignore", category)
        print_profile(load_digits().data[:n])
        print()
        print_ratios(other_data())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Times of small fits beside scikit-learn's.")
    parser.add_argument("n", nargs="?", type=int, help="number of digits (default: all 1797)")
    main(parser.parse_args().n)
