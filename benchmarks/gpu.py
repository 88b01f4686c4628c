"""What a GPU computes, and how fast: ``python -m benchmarks.gpu --help``.

Each piece of work runs in a process of its own, on data in the memory of the host, with results
there at the end. The first call includes the compilation of kernels, unless an earlier process left
them in CuPy's cache; the time is the best of the following calls. Memory is that of the card which
is not free, sampled every two milliseconds, less that before the first call.
"""

import argparse
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.machine import last_line, machine, source

RESULTS = Path(__file__).parent / "results"
BASE = "nvidia-h200"


@dataclass(frozen=True)
class Work:
    """A function of data and a device, and how good its result has to be."""

    what: str
    data: Callable
    run: Callable
    quality: Callable
    target: float | None = None  # seconds
    repeats: int = 3
    limits: dict = field(default_factory=dict)
    """By name of a figure: ("<=" or ">=", bound)."""


def mnist(n=70_000):
    from manifoldry.datasets import load_mnist

    X = np.asarray(load_mnist().X, dtype=np.float32)
    return X if n == len(X) else X[np.random.default_rng(0).permutation(len(X))[:n]]


def clusters(n, m, count=200):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(count, m)).astype(np.float32)
    labels = rng.integers(count, size=n)
    return centers[labels] + rng.standard_normal((n, m), dtype=np.float32)


def tsne(X, device, **options):
    from manifoldry import TSNE

    return TSNE(random_state=0, device=device, **options).fit(X)


def tsne_by_fft(X, device, **options):
    from manifoldry.objectives import FFTInterpolation, using_pair_sums

    with using_pair_sums(FFTInterpolation()):
        return tsne(X, device, **options)


def torchdr_tsne(X, device, **options):
    import torch
    from torchdr import TSNE

    model = TSNE(perplexity=30, device=device, verbose=False, random_state=0, **options)
    Y = model.fit_transform(torch.from_numpy(X))
    return np.asarray(Y.cpu())


def elastic(X, device, **options):
    """At a given weight, from principal components, 100 evaluations."""
    from manifoldry import ElasticEmbedding

    model = ElasticEmbedding(
        weight=100.0, repulsion="uniform", init="pca", max_iter=90, device=device, **options
    )
    return model.fit(X)


def elastic_by_fft(X, device):
    from manifoldry.objectives import FFTInterpolation, using_pair_sums

    with using_pair_sums(FFTInterpolation()):
        return elastic(X, device)


def elastic_homotopy(X, device):
    from manifoldry import ElasticEmbedding

    return ElasticEmbedding(device=device).fit(X)


def neighbors(X, device, k=15):
    from manifoldry import NeighborGraph, using_device

    with using_device(device):
        return NeighborGraph.build(X, k)


def eigenmaps(X, device):
    from manifoldry import LaplacianEigenmaps

    return LaplacianEigenmaps(2, device=device).fit(X)


def isomap(X, device):
    from manifoldry import Isomap

    options = {"n_landmarks": 500, "landmarks": "random", "random_state": 0}
    return Isomap(2, short_circuits="ignore", device=device, **options).fit(X)


def nonredundant(X, device, criterion="prediction"):
    from manifoldry import LaplacianEigenmaps, NonRedundant

    bandwidth = 0.3
    base = LaplacianEigenmaps(11, n_neighbors=10, device=device)
    return NonRedundant(base, 11, criterion=criterion, bandwidth=bandwidth).fit(X)


def trust(X, device):
    from manifoldry import using_device
    from manifoldry.metrics import trustworthiness

    with using_device(device):
        return trustworthiness(*X, sample="all")


def pair_sums(Y, device):
    """Sums of the kernel of t-SNE over all pairs of points, and of its gradient."""
    from manifoldry import using_device
    from manifoldry.device.primitives import KernelShape

    with using_device(device) as there:
        sums, steps = there.pair_sums(there.array(Y), None, KernelShape(1.0, 1.0), 1)
        return there.host(sums), there.host(steps)


def error_of_sums(Y, result, sample=20):
    """The largest relative error at some points, against double precision."""
    D = Y[:sample, None].astype(np.float64) - Y
    K = 1 / (1 + np.square(D).sum(axis=2))
    expected = K.sum(axis=1) - 1
    return {"relative error": float(np.abs(result[0][:sample] / expected - 1).max())}


def divergence(X, result):
    """KL(P‖Q) of a map with the affinities of perplexity 30, exact."""
    from dataclasses import replace

    from manifoldry import TSNE, using_device
    from manifoldry.objectives import Exact

    Y = result if isinstance(result, np.ndarray) else result.embedding_
    if not isinstance(result, np.ndarray) and "exact" in result.pairs_:
        return {"KL": float(result.loss_), "iterations": int(result.n_iter_)}
    device = getattr(result, "device", "cuda")
    with using_device(device):
        model = TSNE(perplexity=30, init=Y, early_exaggeration=1.0, max_iter=1, device=device)
        objective = model.fit(X).objective_
        value = replace(objective, pair_sums=Exact()).value(Y.astype(np.float64))
    return {"KL": float(value), "iterations": getattr(result, "n_iter_", None)}


def of_search(X, result):
    return {
        "evaluations": int(result.n_evaluations_),
        "loss": float(result.loss_),
        "weight": float(getattr(result, "weight_", np.nan)),
    }


def recall(X, graph, sample=200):
    """Of the neighbors of some points, in double precision, the fraction that was found."""
    rng, k, rows = np.random.default_rng(1), graph.n_neighbors, np.arange(sample)
    points = rng.choice(len(X), sample, replace=False)
    D = np.empty((sample, len(X)))
    for first in range(0, len(X), 2**16):
        block = slice(first, first + 2**16)
        Z = X[block].astype(np.float64) - X[points].mean(axis=0)
        Q = X[points].astype(np.float64) - X[points].mean(axis=0)
        D[:, block] = np.square(Q).sum(axis=1)[:, None] + np.square(Z).sum(axis=1) - 2 * Q @ Z.T
    D[rows, points] = np.inf
    radius = np.partition(D, k - 1, axis=1)[:, k - 1] * (1 + 1e-9)
    indices = graph.indices.reshape(len(X), k)[points]
    return {"recall": float((D[rows[:, None], indices] <= radius[:, None]).mean())}


def residuals(X, result):
    return {"residual / gap": float(np.max(result.residuals_ / result.gaps_))}


def novelty(X, result):
    return {"unpredictability": float(np.mean(result.unpredictability()[1:]))}


def trust_data():
    from manifoldry import PCA

    X = mnist()
    return X, np.asarray(PCA(2).fit(X).embedding_)


def the_estimate(X, result):
    return {"trustworthiness": float(getattr(result, "value", result))}


WORK = {
    "neighbors": Work("15 neighbors, MNIST 70 000 × 784", mnist, neighbors, recall, 0.2,
                      limits={"recall": (">=", 0.98)}),
    "neighbors-million": Work("15 neighbors, 1 000 000 × 128 in 200 clusters",
                              lambda: clusters(1_000_000, 128), neighbors, recall, 5.0,
                              limits={"recall": (">=", 0.98)}),
    "tsne": Work("t-SNE, exact, MNIST 70 000 × 784", mnist, tsne, divergence, 1.5,
                 limits={"KL": ("<=", 2.90)}),
    "tsne-fft": Work("the same with FFT interpolation", mnist, tsne_by_fft, divergence, 0.7,
                     limits={"KL": ("<=", 2.90)}),
    "elastic": Work("elastic embedding at a given weight, 100 evaluations, MNIST 70 000", mnist,
                    elastic, of_search, 0.5),
    "elastic-fft": Work("the same with FFT interpolation", mnist, elastic_by_fft, of_search, 0.7),
    "elastic-homotopy": Work("elastic embedding, homotopy, weight found, MNIST 70 000", mnist,
                             elastic_homotopy, of_search, 30.0, repeats=1),
    "eigenmaps": Work("Laplacian eigenmaps, MNIST 70 000 × 784", mnist, eigenmaps, residuals, 0.5,
                      limits={"residual / gap": ("<=", 1e-3)}),
    "isomap": Work("Isomap, 500 random landmarks, MNIST 70 000 × 784", mnist, isomap, residuals,
                   limits={"residual / gap": ("<=", 1e-3)}),
    "nonredundant-prediction": Work(
        "NonRedundant, 15 000 of MNIST, 11 coordinates, prediction", lambda: mnist(15_000),
        nonredundant, novelty, 2.0),
    "nonredundant-gradient": Work(
        "the same, gradient", lambda: mnist(15_000),
        lambda X, device: nonredundant(X, device, "gradient"), novelty, 2.0),
    "trustworthiness": Work("trustworthiness, exact, MNIST 70 000 and a map", trust_data, trust,
                            the_estimate, 1.0),
    "tsne-million-fft": Work(
        "t-SNE, FFT, 1 000 000 × 50, 750 iterations", lambda: clusters(1_000_000, 50),
        lambda X, device: tsne_by_fft(X, device, max_iter=638), of_search, 15.0, repeats=1),
    "tsne-million": Work(
        "t-SNE, exact, 1 000 000 × 50, 750 iterations", lambda: clusters(1_000_000, 50),
        lambda X, device: million_exact(X, device), of_search, 360.0, repeats=0),
    "pair-sums-million": Work(
        "sums over all pairs and their gradient, exact, 1 000 000 points in 2 dimensions",
        lambda: 100 * np.random.default_rng(0).standard_normal((1_000_000, 2), dtype=np.float32),
        pair_sums, error_of_sums, limits={"relative error": ("<=", 1e-5)}),
    "tsne-20k": Work("t-SNE, exact, 20 000 of MNIST", lambda: mnist(20_000), tsne, divergence),
    "torchdr-20k": Work("the same by TorchDR", lambda: mnist(20_000), torchdr_tsne, divergence,
                        repeats=1),
}  # fmt: skip


def million_exact(X, device):
    from manifoldry.objectives import Exact, using_pair_sums

    with using_pair_sums(Exact()):
        return tsne(X, device, max_iter=638)


def main(arguments=None):
    """Measure each piece of work in a process of its own, and store what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="work", help=", ".join(WORK))
    parser.add_argument("--out", type=Path, default=RESULTS / f"{BASE}.json")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each")
    parser.add_argument("--one", action="store_true", help="measure here, and print a line of JSON")
    parser.add_argument("--repeats", type=int, default=None)
    parser.add_argument("--commit", help="if this is no checkout")
    parser.add_argument("--device", default="cuda", help="cpu measures the same without a GPU")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(WORK)
    if unknown:
        parser.error(f"{sorted(unknown)} must be among {', '.join(WORK)}")
    if options.one:
        print(json.dumps(measured(WORK[options.names[0]], options.device, options.repeats)))
        return
    kept = json.loads(options.out.read_text()) if options.out.exists() else {"work": {}}
    kept["machine"] = machine() | (card() if options.device != "cpu" else {})
    kept["commit"] = options.commit or source("manifoldry")["commit"]
    for name in options.names or WORK:
        kept["work"][name] = in_process(name, options)
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
        print(name, json.dumps(kept["work"][name]), flush=True)
    options.out.with_suffix(".md").write_text(table(kept))


def in_process(name, options):
    command = [sys.executable, "-m", "benchmarks.gpu", "--one", name, "--device", options.device]
    if options.repeats is not None:
        command += ["--repeats", str(options.repeats)]
    return last_line(command, options.timeout)


def measured(work, device, repeats=None):
    """First call, best of the others, memory of the card, and quality of the result."""
    warnings.simplefilter("ignore")
    X = work.data()
    with nullcontext() if device == "cpu" else Sampler() as memory:
        seconds = []
        for _ in range(1 + (work.repeats if repeats is None else repeats)):
            start = time.perf_counter()
            result = work.run(X, device)
            seconds.append(time.perf_counter() - start)
    return {
        "first": seconds[0],
        "best": min(seconds[1:], default=seconds[0]),
        "memory_gb": memory.peak / 1e9 if memory else None,
        "quality": work.quality(X, result),
        "date": time.strftime("%Y-%m-%d"),
    }


class Sampler:
    """The largest amount of memory of the card that was in use, sampled by a thread."""

    peak = 0

    def __enter__(self):
        import cupy

        self.get = cupy.cuda.runtime.memGetInfo
        self.before = self.get()[0]
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.stop.wait(0.002):
            self.peak = max(self.peak, self.before - self.get()[0])

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def card():
    """Model of the card, and versions."""
    import cupy

    from manifoldry.device import resolve_device

    device = resolve_device("cuda")
    memory = cupy.cuda.runtime.memGetInfo()[1]
    return {
        "card": device.model,
        "card_memory_gb": round(memory / 2**30, 1),
        "versions": device.versions,
        "python": sys.version.split()[0],
        "threads": os.cpu_count(),
    }


def table(kept):
    """The results as a table of Markdown."""
    rows = [_row(WORK[name], found) for name, found in kept["work"].items() if name in WORK]
    about = kept["machine"]
    head = "| work | time | at most | reached | first call | memory | quality |"
    rule = "| --- | --- | --- | --- | --- | --- | --- |"
    if "card" in about:
        where = (
            f"{about['card']}, {about['card_memory_gb']} GB; {about['versions']}; Python "
            f"{about['python']}; {about['threads']} processors beside it"
        )
    else:
        where = f"{about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB"
    return "\n".join([head, rule, *rows, "", f"{where}. Commit {kept['commit'][:12]}.", ""])


def _row(work, found):
    if "error" in found:
        return f"| {work.what} | {found['error']} | {_time(work.target)} | no | | | |"
    bounds = [_holds(found["quality"][name], *limit) for name, limit in work.limits.items()]
    if work.target is not None:
        bounds.append(found["best"] <= work.target)
    reached = "" if not bounds else "yes" if all(bounds) else "no"
    quality = ", ".join(f"{name} {value:.4g}" for name, value in found["quality"].items() if value)
    cells = [work.what, _time(found["best"]), _time(work.target), reached, _time(found["first"])]
    memory = "" if found["memory_gb"] is None else f"{found['memory_gb']:.1f} GB"
    return "| " + " | ".join([*cells, memory, quality]) + " |"


def _holds(value, sign, bound):
    return value <= bound if sign == "<=" else value >= bound


def _time(seconds):
    return "" if seconds is None else f"{seconds:.3g} s"


if __name__ == "__main__":
    main()
