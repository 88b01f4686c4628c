"""E5.9: classification with 300 labels on coordinates computed with unlabeled points.

The talk says that unlabeled data "can be used to discover the lower-dimensional representation",
and names semi-supervised learning as a use. E3.9 has Blau & Michaeli's table of that kind. Here
every embedding uses all points and no labels; then classifiers are trained on ten random sets of
300 labels, with parameters chosen by cross-validation among those 300, and tested on all other
points. Coordinates are not rescaled, except for one common factor.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from manifoldry import (
    LLE,
    LTSA,
    PCA,
    ClassicalMDS,
    DiffusionMaps,
    HessianLLE,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    NonRedundant,
    SpectralClustering,
)
from manifoldry.datasets import find_data, load_mnist
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.plotting import plot_learning_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab, not_yet

LABELS = 300
D = 16  # coordinates, at which the error of Blau & Michaeli is least
CLASSIFIERS = {
    "kNN": GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}, cv=5),
    "SVM": GridSearchCV(SVC(), {"C": [1, 10, 100]}, cv=5),
}


def nonredundant() -> NonRedundant:
    return NonRedundant(LaplacianEigenmaps(), D, criterion="prediction", bandwidth=0.6)


METHODS: dict[str, Callable[[], Any]] = {
    "Isomap": lambda: Isomap(D, n_landmarks=300),
    "Laplacian eigenmaps": lambda: LaplacianEigenmaps(D),
    "diffusion maps": lambda: DiffusionMaps(D, affinity="gaussian"),
    "spectral clustering": lambda: SpectralClustering(D),
    "LLE": lambda: LLE(D),
    "non-redundant eigenmaps": nonredundant,
    "kernel PCA": lambda: KernelPCA(D),
    "classical MDS, city-block": lambda: ClassicalMDS(D, metric="cityblock"),
    "LTSA": lambda: LTSA(D, n_neighbors=D + 4),
    "Hessian LLE, 5 coordinates": lambda: HessianLLE(5),
}
BASELINES: dict[str, Callable[[Any], Any]] = {
    "pixels": lambda X: X,
    "PCA": lambda X: PCA(D).fit_transform(X),
}


def semisupervised(lab: Lab) -> Iterator[Criterion]:
    if lab.quick and find_data("mnist") is None:
        yield not_yet("E5.9", "classification from few labels", "mnist.npz, which is not here")
        lab.save(plt.figure(figsize=(1, 1)), "few-labels")
        return
    X, y = mnist(lab.choose(10_000, 600))
    n = lab.choose(5000, 600)
    sets = {"MNIST": (X[:n], y[:n]), "digits": small_digits(lab.choose(1797, 400))}
    errors = {name: all_errors(lab, *data) for name, data in sets.items()}
    for name, found in errors.items():
        for method in list(found)[len(BASELINES) :]:
            yield method_row(f"{name}, {len(sets[name][1])} points", method, found)
    by_points = unlabeled_errors(lab, X, y)
    yield points_row(by_points)
    by_labels = label_errors(lab, *sets["MNIST"])
    yield labels_row(by_labels)
    draw(lab, errors, by_points, by_labels)


def mnist(n):
    """Digits in random order, so that the first rows are a random sample."""
    X, y = load_mnist(n, random_state=0)
    order = np.random.default_rng(0).permutation(n)
    return X[order].astype(np.float64), y[order]


def small_digits(n):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order], y[order]


def embedded(model, X):
    with warnings.catch_warnings():
        # Digits are clusters, so there are warnings about short circuits and disconnected graphs.
        warnings.simplefilter("ignore", ManifoldryWarning)
        return model.fit_transform(X)


def split_errors(Z, y, kinds, labeled, tested):
    """Errors in per cent of classifiers trained on the labeled rows alone."""
    found = []
    for classifier in (CLASSIFIERS[kind] for kind in kinds):
        with warnings.catch_warnings():
            # Among 100 random labels a digit may occur less often than there are folds.
            warnings.simplefilter("ignore", UserWarning)
            classifier.fit(Z[labeled], y[labeled])
        found.append(100 * (1 - classifier.score(Z[tested], y[tested])))
    return found


def labels_drawn(n, labels, seed):
    """Labeled rows, and the other rows."""
    return np.split(np.random.default_rng(seed).permutation(n), [labels])


def errors_of(lab: Lab, Z, y, labels=LABELS, kinds=tuple(CLASSIFIERS)):
    """Errors (n_draws, n_kinds) over random sets of labels, the same for every embedding."""
    Z = (Z - Z.mean(axis=0)) / np.sqrt(Z.var())  # one factor for all coordinates
    draws = [labels_drawn(len(y), labels, seed) for seed in lab.seeds(10)]
    return np.array([split_errors(Z, y, kinds, *draw) for draw in draws])


def all_errors(lab: Lab, X, y):
    maps = {name: make(X) for name, make in BASELINES.items()}
    chosen = lab.choose(list(METHODS), list(METHODS)[:3])
    maps |= {name: embedded(METHODS[name](), X) for name in chosen}
    return {name: errors_of(lab, Z, y) for name, Z in maps.items()}


def method_row(data, method, found):
    below = [excess(found[method], found[base]) for base in BASELINES]
    passed = bool((np.array(below) < 0).all())
    listed = "; ".join(f"{name} {both(found[name])}" for name in (method, *BASELINES))
    return Criterion(
        "E5.9",
        f"{data}, {LABELS} labels: errors in % of kNN and SVM on {method}",
        "unlabeled data help",
        "below pixels and PCA with both classifiers (95 % interval of paired differences)",
        listed,
        passed,
        seeds=len(found[method]),
    )


def excess(errors, others):
    """Upper end of the 95 % interval of the mean paired difference, per classifier."""
    differences = errors - others
    spread = differences.std(axis=0, ddof=1) / np.sqrt(len(differences))
    return differences.mean(axis=0) + 2.26 * spread  # Student's, nine degrees of freedom


def both(errors):
    return " and ".join(f"{e:.1f}" for e in errors.mean(axis=0))


def unlabeled_errors(lab: Lab, X, y):
    """Errors on the first 1000 points, by the number of further points in the embedding."""
    inside, found = lab.choose(1000, 400), {}
    for n in lab.choose((1000, 2500, 5000, 10_000), (400, 600)):
        Z = embedded(LaplacianEigenmaps(D), X[:n])[:inside]
        found[n] = errors_of(lab, Z, y[:inside])
    return found


def points_row(found):
    few, many = (found[n].mean(axis=0) for n in (min(found), max(found)))
    passed = bool((few - many >= 2).all())
    return Criterion(
        "E5.9",
        f"MNIST, {LABELS} labels, the same {min(found)} points: errors in % of kNN and SVM on "
        f"eigenmaps of {', '.join(map(str, found))} points",
        "unlabeled data help",
        "both decrease by 2 percentage points or more from the first to the last",
        "; ".join(both(e) for e in found.values()),
        passed,
        seeds=len(found[min(found)]),
    )


def label_errors(lab: Lab, X, y):
    """Errors of kNN by the number of labels."""
    maps = {
        "pixels": X,
        "PCA": BASELINES["PCA"](X),
        "Laplacian eigenmaps": embedded(LaplacianEigenmaps(D), X),
        "diffusion maps": embedded(DiffusionMaps(D, affinity="gaussian"), X),
    }
    counts = lab.choose((100, 300, 1000, 3000), (100, 300))

    def mean(Z, m):
        return errors_of(lab, Z, y, m, ["kNN"]).mean()

    return {name: {m: mean(Z, m) for m in counts} for name, Z in maps.items()}


def labels_row(found):
    plain, graph = found["PCA"], found["Laplacian eigenmaps"]
    gains = [plain[m] - graph[m] for m in plain]
    passed = bool(gains[0] > gains[-1])
    return Criterion(
        "E5.9",
        f"MNIST: what eigenmaps gain over PCA with {', '.join(map(str, plain))} labels, kNN, in "
        "percentage points",
        "unlabeled data help",
        "more with the fewest labels than with the most",
        ", ".join(f"{gain:.1f}" for gain in gains),
        passed,
    )


def draw(lab: Lab, errors, by_points, by_labels) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    draw_methods(axes[0], errors["MNIST"])
    points = np.array(list(by_points))
    means = np.array([e.mean(axis=0) for e in by_points.values()])
    lines = {name: (points, means[:, i]) for i, name in enumerate(CLASSIFIERS)}
    labels = {"ylabel": "test error in %", "log": "x"}
    plot_learning_curve(
        lines, ax=axes[1], xlabel="points that eigenmaps saw", title="unlabeled points", **labels
    )
    curves = {
        name: (np.array(list(e)), np.array(list(e.values()))) for name, e in by_labels.items()
    }
    plot_learning_curve(curves, ax=axes[2], xlabel="labels", title="labels, kNN", **labels)
    for ax, ticks in zip(axes[1:], (points, list(by_labels["PCA"])), strict=True):
        ax.minorticks_off()
        ax.set_xticks(ticks, [str(t) for t in ticks])
    lab.save(figure, "few-labels")


def draw_methods(ax, found) -> None:
    names = sorted(found, key=lambda name: -found[name][:, 0].mean())
    place = np.arange(len(names))
    for i, (kind, marker) in enumerate(zip(CLASSIFIERS, "os", strict=True)):
        means = [found[name][:, i].mean() for name in names]
        spread = [found[name][:, i].std() for name in names]
        color = ("#0072b2", "#d55e00")[i]
        ax.errorbar(means, place, xerr=spread, fmt=marker, color=color, markersize=5, label=kind)
    ax.set_yticks(place, names, fontsize=8)
    ax.set_xlabel(f"test error in %, MNIST, {LABELS} labels", fontsize=9)
    ax.grid(axis="x", color="#d9d9d9", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
