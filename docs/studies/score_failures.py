"""Constructed failures of the held-out score: ``python docs/studies/score_failures.py``.

Prints tables of docs/choosing.md: a distorted embedding with the same score; redundant functions
of the length of a long roll, which are preferred to its height; numbers of neighbors selected on
subsets of the data; and the kernel reconstruction loss, which prefers wide kernels.
"""

import argparse
import warnings

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_val_score

from manifoldry import LTSA, Isomap, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_s_curve, make_strip, make_swiss_roll
from manifoldry.metrics import coranking, kernel_loss, procrustes, reconstruction, unpredictability

SHEETS = {
    "S-curve": make_s_curve,
    "noisy strip in 20 dimensions": lambda n, **kw: make_strip(
        n, aspect=4.0, curl=np.pi, n_features=20, noise=0.05, **kw
    ),
}


class Bent(BaseEstimator):
    """A fitted embedding bent into a horseshoe along its first coordinate, with the inverse."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y=None):
        """Compute the extent of the embedding."""
        Y = self.model.embedding_
        self.low_, self.size_ = Y.min(axis=0), np.ptp(Y, axis=0)
        return self

    def transform(self, X):
        """Map the length to an angle of up to 300 degrees, the width to a radius."""
        along, across = ((self.model.transform(X) - self.low_) / self.size_).T
        radius, angle = 1.1 + across, 5.2 * along
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def inverse_transform(self, Z):
        """Undo the bending, then apply the inverse of the model."""
        angle = np.mod(np.arctan2(Z[:, 1], Z[:, 0]) + 0.5, 2 * np.pi) - 0.5
        unit = np.column_stack([angle / 5.2, np.linalg.norm(Z, axis=1) - 1.1])
        return self.model.inverse_transform(unit * self.size_ + self.low_)


def print_bent(n):
    """The score does not detect an invertible distortion."""
    print("\n### An S-curve, and the same map bent into a horseshoe\n")
    X, truth = make_s_curve(n, random_state=0)
    X_new, _ = make_s_curve(n, random_state=1)
    model = LTSA(2, n_neighbors=12).fit(X)
    head("map", "score", "R_NX", "affine error")
    for name, each in (("LTSA", model), ("bent", Bent(model).fit(X))):
        Y = each.transform(X)
        area, error = coranking(X, Y).area, procrustes(Y, truth, "affine").error
        row(name, f"{reconstruction(each, X_new):.4f}", f"{area:.2f}", f"{error:.2f}")


def print_long(n, seeds):
    """The score prefers a second function of the length to the height of a long roll."""
    print("\n### The roll of aspect 8, two coordinates, 8 neighbors\n")
    head("method", "score", "R_NX", "unpredictability of the second", "R² of the height")
    plain = LaplacianEigenmaps(2, n_neighbors=8)
    for model in (plain, NonRedundant(plain, 2), Isomap(2, n_neighbors=8)):
        metrics = []
        for seed in seeds:
            X, truth = make_swiss_roll(n, aspect=8, random_state=seed)
            score = cross_val_score(model, X, cv=KFold(3, shuffle=True, random_state=seed)).mean()
            Y = model.fit_transform(X)
            shown = 1 - procrustes(Y, truth[:, 1:], "affine").error ** 2
            metrics.append([score, coranking(X, Y).area, unpredictability(Y)[1], shown])
        row(type(model).__name__, *(f"{value:.2f}" for value in np.mean(metrics, axis=0)))


def print_folds(n, seeds):
    """The best number of neighbors for two thirds of the data differs from that for all."""
    print("\n### Isomap of the roll of aspect 4: three folds and ten\n")
    head("neighbors", "score, 3 folds", "score, 10 folds", "R_NX", "affine error")
    for k in (4, 5, 6, 7, 8, 10):
        metrics = []
        for seed in seeds:
            X, truth = make_swiss_roll(n, aspect=4, random_state=seed)
            model = Isomap(2, n_neighbors=k)
            folds = [KFold(m, shuffle=True, random_state=seed) for m in (3, 10)]
            scores = [cross_val_score(model, X, cv=cv).mean() for cv in folds]
            Y = model.fit_transform(X)
            error = procrustes(Y, truth, "affine").error
            metrics.append([*scores, coranking(X, Y).area, error])
        row(k, *(f"{value:.3f}" for value in np.mean(metrics, axis=0)))


def print_kernel_loss(n, seeds):
    """The loss decreases with the bandwidth; `best_n_components` counts what generalizes."""
    print("\n### Kernel PCA by width: held-out kernel loss of 2 coordinates, best of 12, score\n")
    head("data", "gamma", "loss", "best", "score", "affine error")
    for name, draw in SHEETS.items():
        for factor in (64, 16, 4, 1, 1 / 4, 1 / 16):
            metrics = []
            for seed in seeds:
                X, truth = draw(n, random_state=seed)
                train, test = np.arange(n) < 2 * n // 3, np.arange(n) >= 2 * n // 3
                gamma = factor * KernelPCA(1).fit(X[train]).gamma_
                found = kernel_loss(KernelPCA(12, gamma=gamma).fit(X[train]), X[test])
                model = KernelPCA(2, gamma=gamma).fit(X[train])
                error = procrustes(model.embedding_, truth[train], "affine").error
                score = model.score(X[test])
                metrics.append([float(found.losses[2]), found.best_n_components, score, error])
            loss, best, score, error = np.mean(metrics, axis=0)
            row(name, f"{factor:g}", f"{loss:.3f}", f"{best:.0f}", f"{score:.2f}", f"{error:.2f}")


def row(*cells):
    """One line of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*names):
    """The first lines of a table."""
    row(*names)
    print("|" + "---|" * len(names))


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed, few points")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n, seeds = (200, range(1)) if options.quick else (options.n, range(options.seeds))
    print_bent(n)
    print_long(n, seeds)
    print_folds(n, seeds)
    print_kernel_loss(n, seeds)


if __name__ == "__main__":
    main()
