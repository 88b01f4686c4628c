"""Study of the defaults of the iterative methods: ``python -m benchmarks.defaults --help``.

Every method is run with default parameters and with many other settings on several data sets.
Each embedding has four metrics: trustworthiness, continuity, area under R_NX (log k) and accuracy
of 1-NN. With several seeds they are means over random subsets. The tables of docs/iterative.md
compare each metric of the defaults with that of the best setting. openTSNE, if installed, is run
with its own defaults for comparison.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import load_digits

import manifoldry as mf
from benchmarks.report import write_whole
from manifoldry.datasets import (
    load_coil20,
    load_frey_faces,
    load_glove,
    load_isomap_faces,
    load_mnist,
    load_pbmc,
    load_usps,
    make_s_curve,
    make_swiss_roll,
)
from manifoldry.metrics import continuity, coranking, knn_accuracy, trustworthiness
from manifoldry.optimize import LBFGS, Homotopy, SpectralDirection, Stopping

ROUGH = Stopping(tol=2e-3)
LONGER = Stopping(tol=1e-3, max_reference_size=10.0)
NEIGHBORS = 12  # of trustworthiness and continuity
DIMENSIONS = 50  # images are reduced to so many principal components first
FIGURES = ("trustworthiness", "continuity", "area", "accuracy")
RESULTS = Path(__file__).parent / "results" / "defaults.json"


def reduced(X):
    X = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    return mf.PCA(DIMENSIONS).fit_transform(X) if X.shape[1] > DIMENSIONS else X


def of_dataset(load, **options):
    data = load(**options)
    return reduced(data.X), getattr(data, "y", None)


def of_digits():
    digits = load_digits()
    return digits.data, digits.target


# Sets on which the defaults were chosen; then those for confirmation.
SETS: dict[str, Callable] = {
    "roll": lambda: (make_swiss_roll(2000, random_state=0).X, None),
    "COIL-20": partial(of_dataset, load_coil20),
    "digits": of_digits,
    "cells": partial(of_dataset, load_pbmc),
    "USPS": partial(of_dataset, load_usps, n_samples=3000, random_state=0),
    "MNIST": partial(of_dataset, load_mnist, n_samples=10_000, random_state=0),
    "noisy S-curve": lambda: (make_s_curve(1000, noise=0.1, random_state=1).X, None),
    "faces": partial(of_dataset, load_isomap_faces),
    "video": partial(of_dataset, load_frey_faces),
    "words": partial(of_dataset, load_glove, n_samples=2000, random_state=0),
    "roll of aspect 4": lambda: (make_swiss_roll(1000, aspect=4, random_state=2).X, None),
}
CONFIRMING = ("noisy S-curve", "faces", "video", "words", "roll of aspect 4")
PERPLEXITIES = (10, 20, 30, 50, 100)


def by_perplexity(method, what="", values=PERPLEXITIES, **options):
    return {f"perplexity {p}{what}": partial(method, perplexity=p, **options) for p in values}


def starts(method):
    """Settings of SNE and symmetric SNE: perplexities, from given starts and along a homotopy."""
    return {
        "default": method,
        **by_perplexity(method, ", spectral", init="spectral"),
        **by_perplexity(method, ", pca", (10, 15, 20), init="pca"),
        **by_perplexity(method, ", homotopy", (15, 20, 30), optimizer=Homotopy(n_steps=20)),
        "perplexity 10, longer homotopy": partial(method, perplexity=10, optimizer=Homotopy()),
        "random": partial(method, perplexity=30, init="random"),
        "lbfgs": partial(method, optimizer=Homotopy(n_steps=20, optimizer="lbfgs")),
    }


def searches(method, *words):
    return {word: partial(method, optimizer=word) for word in words}


def with_init(method, *words):
    return {f"init {word}": partial(method, init=word) for word in words}


def elastic(weights, **options):
    return {
        f"{options['repulsion']} {weight:g}": partial(mf.ElasticEmbedding, weight=weight, **options)
        for weight in weights
    }


SETTINGS: dict[str, dict[str, Callable]] = {
    "SNE": starts(mf.SNE),
    "SymmetricSNE": starts(mf.SymmetricSNE),
    "TSNE": {
        "default": mf.TSNE,
        **by_perplexity(mf.TSNE),
        **with_init(mf.TSNE, "spectral", "random"),
        **by_perplexity(mf.TSNE, ", homotopy", (10, 20, 30, 50), optimizer=Homotopy(n_steps=20)),
        "1000 steps": partial(mf.TSNE, max_iter=1000),
        "no exaggeration": partial(mf.TSNE, early_exaggeration=1),
        **searches(mf.TSNE, "lbfgs", "spectral-lbfgs"),
    },
    "ElasticEmbedding": {
        "default": mf.ElasticEmbedding,
        **by_perplexity(mf.ElasticEmbedding, values=(10, 30, 50, 100)),
        **with_init(mf.ElasticEmbedding, "pca", "random"),
        "homotopy": partial(mf.ElasticEmbedding, optimizer="homotopy"),
        **searches(mf.ElasticEmbedding, "lbfgs"),
        "uniform auto": partial(mf.ElasticEmbedding, repulsion="uniform"),
        **elastic((10.0, 30.0, 100.0, 300.0, 1000.0), repulsion="uniform"),
        **elastic((1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6), repulsion="squared_distance"),
    },
    "UKR": {
        "default": mf.UKR,
        **{f"kernel {k}": partial(mf.UKR, kernel=k) for k in ("student", "quartic")},
        **with_init(mf.UKR, "pca", "spectral"),
        "lbfgs, tol 2e-3": partial(mf.UKR, optimizer=LBFGS(stopping=ROUGH)),
        "spectral-lbfgs, tol 2e-3": partial(
            mf.UKR, optimizer=LBFGS(SpectralDirection(), stopping=ROUGH)
        ),
        "longer": partial(mf.UKR, optimizer=LBFGS(SpectralDirection(shift=0.1), stopping=LONGER)),
    },
}
LARGEST = {"UKR": 3000}


@cache
def data(name):
    return SETS[name]()


def drawn(name, seed):
    """The whole set for the first seed, nine tenths of it at random for others."""
    X, labels = data(name)
    if seed == 0:
        return X, labels
    rows = np.random.default_rng(seed).choice(len(X), 9 * len(X) // 10, replace=False)
    return X[rows], None if labels is None else labels[rows]


def metrics(X, Y, labels):
    """The four metrics of an embedding."""
    out = {
        "trustworthiness": float(trustworthiness(X, Y, n_neighbors=NEIGHBORS)),
        "continuity": float(continuity(X, Y, n_neighbors=NEIGHBORS)),
        "area": float(coranking(X, Y).area),
    }
    if labels is not None:
        out["accuracy"] = float(knn_accuracy(Y, labels, n_neighbors=1))
    return out


def run(name, method, setting, seed):
    """One cell of the study."""
    X, labels = drawn(name, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SETTINGS[method][setting](n_jobs=1, random_state=seed).fit(X)
    cell = {
        "set": name,
        "method": method,
        "setting": setting,
        "seed": seed,
        "seconds": time.process_time() - began,
        "evaluations": model.n_evaluations_,
        "loss": float(model.loss_),
        "status": model.status_,
        "weight": getattr(model, "weight_", None),
        **metrics(X, model.embedding_, labels),
    }
    print(json.dumps(cell), flush=True)
    return cell


def run_peer(name, seed):
    """The same for openTSNE with its defaults."""
    from openTSNE import TSNE

    X, labels = drawn(name, seed)
    began = time.process_time()
    Y = np.asarray(TSNE(n_jobs=1, random_state=seed).fit(X))
    seconds = time.process_time() - began
    cell = {"set": name, "method": "TSNE", "setting": "openTSNE", "seed": seed, "seconds": seconds}
    return {**cell, **metrics(X, Y, labels)}


def has_peer():
    try:
        import openTSNE  # noqa: F401 (is it there?)
    except ImportError:
        return False
    return True


def jobs(sets, methods, seeds, settings=None):
    """All cells, the slowest first."""
    sizes = {name: len(data(name)[0]) for name in sets}
    for name in sorted(sets, key=lambda name: -sizes[name]):
        for seed in range(seeds):
            for method in methods:
                if sizes[name] <= LARGEST.get(method, np.inf):
                    for setting in SETTINGS[method]:
                        if setting in (settings or SETTINGS[method]):
                            yield joblib.delayed(run)(name, method, setting, seed)
            if "TSNE" in methods and has_peer() and "openTSNE" in (settings or ["openTSNE"]):
                yield joblib.delayed(run_peer)(name, seed)


def merged(path, cells):
    """Recorded cells, updated with those measured again."""
    kept = json.loads(path.read_text()) if path.exists() else []
    names = [tuple(c[k] for k in ("set", "method", "setting", "seed")) for c in cells]
    old = [
        c for c in kept if tuple(c[k] for k in ("set", "method", "setting", "seed")) not in names
    ]
    return old + list(cells)


def table(cells):
    """Each metric of the default next to the best setting; rows are methods and data sets."""
    lines = [
        "| method | set | " + " | ".join(FIGURES) + " | worst deficit |",
        "|---|---|" + "---|" * (len(FIGURES) + 1),
    ]
    for method, name in dict.fromkeys((c["method"], c["set"]) for c in cells):
        mine = [c for c in cells if (c["method"], c["set"]) == (method, name)]
        means = {
            setting: {
                f: np.mean([c[f] for c in mine if c["setting"] == setting])
                for f in FIGURES
                if f in mine[0]
            }
            for setting in dict.fromkeys(c["setting"] for c in mine)
        }
        default, entries, worst = means["default"], [], 0.0
        for f in FIGURES:
            if f not in default:
                entries.append("")
                continue
            best = max(means, key=lambda setting: means[setting][f])
            worst = max(worst, means[best][f] - default[f])
            entries.append(f"{default[f]:.3f} ({means[best][f]:.3f} {best})")
        lines.append(f"| {method} | {name} | " + " | ".join(entries) + f" | {worst:.3f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(SETTINGS))
    parser.add_argument("--settings", nargs="*", help="only these, such as: default")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    work = jobs(options.sets, options.methods, options.seeds, options.settings)
    parallel = joblib.Parallel(options.jobs, batch_size=1, return_as="generator_unordered")
    for cell in parallel(work):
        cells = merged(options.results, [cell])
        write_whole(options.results, "[\n" + ",\n".join(map(json.dumps, cells)) + "\n]\n")
    print(table(cells))


if __name__ == "__main__":
    main()
