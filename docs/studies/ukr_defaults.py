"""Study of the defaults of UKR: ``python docs/studies/ukr_defaults.py``, ten minutes.

Every row changes one default. Columns: trustworthiness and continuity (10
neighbors), area under R_NX, 1-NN accuracy (if labels are known) or the smallest R² of a true
coordinate predicted from the embedding (if those are known), leave-one-out error, steps, seconds.
The last table compares the defaults with the best of all settings.
Images are reduced to their first fifty principal components, to save time.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits

from manifoldry import PCA, UKR, ElasticEmbedding, Isomap, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import (
    load_coil20,
    load_pbmc,
    load_usps,
    make_helix,
    make_swiss_roll,
)
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import continuity, coranking, knn_accuracy, trustworthiness
from manifoldry.objectives.leave_one_out import best_regression_scale
from manifoldry.optimize import (
    LBFGS,
    DiagonalHessian,
    GradientDescent,
    Heat,
    Homotopy,
    SpectralDirection,
    Stopping,
)

FEATURES = 50
FIGURES = ("trust", "cont", "R_NX", "truth")


def labeled(load):
    """A generator of points with labels."""

    def draw(n, seed):
        X, y = load()
        X = np.asarray(X, dtype=float).reshape(len(X), -1)
        rows = np.random.default_rng(seed).permutation(len(X))[:n]
        X = X[rows] if X.shape[1] <= FEATURES else PCA(FEATURES).fit_transform(X[rows])
        return X, np.asarray(y)[rows], None

    return draw


def manifold(make, **options):
    """A generator of points with their true coordinates."""

    def draw(n, seed):
        X, coordinates = make(n, random_state=seed, **options)
        return X, None, coordinates

    return draw


def of_dataset(load):
    """Points and labels of a loader."""

    def read():
        data = load()
        return data.X, data.labels

    return labeled(read)


SETS = {
    "roll": manifold(make_swiss_roll),
    "roll, aspect 4": manifold(make_swiss_roll, aspect=4),
    "roll, aspect 8": manifold(make_swiss_roll, aspect=8),
    "noisy helix": manifold(make_helix),
    "digits": labeled(lambda: load_digits(return_X_y=True)),
    "USPS": of_dataset(load_usps),
    "COIL-20": of_dataset(load_coil20),
    "PBMC": of_dataset(load_pbmc),
}


SMOOTH = SpectralDirection(shift=0.1)


def until(tol, filter=SMOOTH):
    """The default optimizer with another tolerance, or another filter."""
    return {"optimizer": LBFGS(filter, stopping=Stopping(tol=tol, max_reference_size=10.0))}


ROUGH = Stopping(tol=2e-3)
SETTINGS = {
    "defaults": {},
    "no floor": {"density_floor": 0},
    "no floor, spectral start, tol 1e-5": {"density_floor": 0, "init": "spectral", **until(1e-5)},
    "floor 3": {"density_floor": 3},
    "floor 20": {"density_floor": 20},
    "start: Laplacian eigenmaps": {"init": "spectral"},
    "start: the same, 20 neighbors": {"init": "spectral", "n_neighbors": 20},
    "start: non-redundant": {"init": NonRedundant(LaplacianEigenmaps(n_neighbors=10))},
    "start: principal components": {"init": "pca"},
    "start: Isomap": {"init": Isomap(n_neighbors=6)},
    "start: elastic embedding": {"init": ElasticEmbedding()},
    "start: random, heat guidance": {"init": "random", **until(5e-3, Heat())},
    "kernel: student": {"kernel": "student"},
    "kernel: quartic": {"kernel": "quartic"},
    "kernel: triweight": {"kernel": "triweight"},
    "tol 1e-2": until(1e-2),
    "tol 1e-3": until(1e-3),
    "tol 1e-4": until(1e-4),
    "optimizer: spectral-lbfgs": {"optimizer": LBFGS(SpectralDirection(), stopping=ROUGH)},
    "optimizer: diagonal": {"optimizer": GradientDescent(DiagonalHessian(), stopping=ROUGH)},
    "homotopy": {"optimizer": Homotopy(n_steps=12)},
}


def predictable(Y, truth):
    """R² of a coordinate, predicted from the embedding by kernel regression."""
    t = (truth - truth.mean()) / truth.std()
    return 1 - best_regression_scale(Y / Y.std(), t[:, None]).value


def quality(X, labels, coordinates, Y):
    """Trustworthiness, continuity, R_NX area, and agreement with labels or true coordinates."""
    if labels is not None:
        truth = float(knn_accuracy(Y, labels, n_neighbors=1))
    else:
        truth = min(predictable(Y, t) for t in coordinates.T)
    near = [float(m(X, Y, n_neighbors=10)) for m in (trustworthiness, continuity)]
    return [*near, float(coranking(X, Y).area), truth]


def metrics(setting, sample, d):
    """All columns of one fit."""
    began = time.perf_counter()
    model = UKR(d, **setting).fit(sample[0])
    took = time.perf_counter() - began
    found = quality(*sample, model.embedding_)
    return [*found, model.leave_one_out_error_, model.n_iter_, took]


def study(name, n, seeds):
    """Print one table; return the metrics of all settings."""
    samples = [SETS[name](n, seed) for seed in range(seeds)]
    d = 1 if name == "noisy helix" else 2
    heading = " ".join(f"{column:>6s}" for column in (*FIGURES, "error", "steps", "s"))
    print(f"\n{name:36s}{heading}")
    rows = {}
    for setting, options in SETTINGS.items():
        row = np.mean([metrics(options, sample, d) for sample in samples], axis=0)
        print(
            f"{setting:36s}" + " ".join(f"{x:6.3f}" for x in row[:5]),
            f"{row[5]:6.0f} {row[6]:6.1f}",
            flush=True,
        )
        rows[setting] = row[: len(FIGURES)]
    return rows


def transforms(names, n, seeds):
    """Error of `transform` at training rows that are not recognized as such."""
    print("\nlargest error of the bare extension, as a fraction of the map")
    for name in names:
        d = 1 if name == "noisy helix" else 2
        errors = []
        for seed in range(seeds):
            X = SETS[name](n, seed)[0]
            with_floor = UKR(d).fit(X)
            start = with_floor.embedding_
            without = UKR(d, density_floor=0, init=start).fit(X)
            errors.append([model.extension_error(X) for model in (with_floor, without)])
        kept, lost = np.mean(errors, axis=0)
        print(f"{name:20s} with the floor {kept:.2f}, without {lost:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    given = parser.parse_args()
    warnings.simplefilter("ignore", ManifoldryWarning)
    found = {name: study(name, given.n, given.seeds) for name in given.sets}
    print("\nwhat the best setting of all has more than the defaults")
    for name, rows in found.items():
        gaps = np.max(list(rows.values()), axis=0) - rows["defaults"]
        named = zip(FIGURES, gaps, strict=True)
        print(f"{name:20s}" + " ".join(f"{figure} {gap:.3f}" for figure, gap in named))
    transforms(given.sets, given.n, given.seeds)
