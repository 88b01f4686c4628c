"""Kernel PCA of draws from a density against kernel PCA of the data.

The change in percent of the loss on pairs of unseen rows (as in E1.6 of
papers/bengio2003-eigenfunctions, kernel not centered), mean of the splits, for draws at random from
whole windows (width 1), stratified draws of width .3, and the rule of `FromDensity`. An asterisk
marks paired t tests with p < .05. The splits are not those on which the rule was fixed.

    python docs/studies/smoothed_density.py [n_splits]
"""

import sys
import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist, pdist
from scipy.stats import ttest_rel
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from manifoldry import FromDensity, KernelPCA
from manifoldry.datasets import load_usps, make_s_curve, make_swiss_roll
from manifoldry.density import ManifoldParzen

N, DRAWS, PAIRS = 100, 10, 1000
DIMENSIONS = (2, 5, 10)
FIRST = 1000  # seed of the first split


def s_curve():
    """An S-curve in ten dimensions with noise in all of them."""
    X = np.pad(make_s_curve(2000, random_state=0).X, ((0, 0), (0, 7)))
    return X + 0.1 * np.random.default_rng(0).standard_normal(X.shape)


DATA = {
    "wine": lambda: scale(load_wine().data),
    "iris": lambda: np.unique(load_iris().data, axis=0),
    "roll": lambda: make_swiss_roll(2000, random_state=0).X,
    "S-curve, 10 features": s_curve,
    "USPS": lambda: np.asarray(load_usps().X[:4000], dtype=float),
}
KINDS = ("random, width 1", "stratified, width .3", "`FromDensity`")


def split(X, seed):
    """Training rows, and two lists of other rows that form pairs."""
    rng = np.random.default_rng(seed)
    n = min(N, len(X) // 2)
    train, rest = np.split(X[rng.permutation(len(X))], [n])
    i, j = rng.integers(len(rest), size=(2, 2 * PAIRS))
    different = np.flatnonzero(i != j)[:PAIRS]
    return train, rest[i[different]], rest[j[different]]


def losses(S, gamma, A, B):
    """Mean loss on pairs for each number of eigenfunctions of the Gaussian kernel under S."""

    def kernel(P):
        return np.exp(-gamma * cdist(P, S, "sqeuclidean"))

    k = max(DIMENSIONS)
    values, vectors = eigh(kernel(S), subset_by_index=[len(S) - k, len(S) - 1])
    dual = vectors[:, ::-1] / np.sqrt(values[::-1])
    products = np.cumsum((kernel(A) @ dual) * (kernel(B) @ dual), axis=1)
    truth = np.exp(-gamma * ((A - B) ** 2).sum(axis=1))[:, None]
    return ((truth - products) ** 2).mean(axis=0)[np.array(DIMENSIONS) - 1]


def one_split(X, seed):
    """Losses of the rows and of each kind of draws, (n_kinds + 1, n_dimensions)."""
    train, A, B = split(X, seed)
    gamma, count = 1 / np.median(pdist(train, "sqeuclidean")), DRAWS * len(train)
    found = ManifoldParzen().fit(train)
    density = ManifoldParzen(found.n_components_, found.n_neighbors_ or None, found.noise_)

    def drawn(width):
        return found.sample(count, seed, width=width, stratified=True) if width else train

    chosen = []
    for i, d in enumerate(DIMENSIONS):
        model = FromDensity(KernelPCA(d, gamma=gamma), density, random_state=seed).fit(train)
        chosen.append(losses(drawn(model.width_), gamma, A, B)[i])
    plain = [train, found.sample(count, seed), drawn(0.3)]
    return np.array([*(losses(S, gamma, A, B) for S in plain), chosen])


def cells(found):
    """One cell per kind: the changes for all dimensions, with asterisks."""
    for kind in range(1, len(KINDS) + 1):
        change = 100 * (found[:, kind].mean(axis=0) / found[:, 0].mean(axis=0) - 1)
        p = ttest_rel(found[:, kind], found[:, 0]).pvalue  # NaN if all are equal
        yield " / ".join(f"{c:+.1f}{'*' * bool(q < 0.05)}" for c, q in zip(change, p, strict=True))


def main(n_splits=10):
    """Print the table of docs/decisions.md."""
    print("| 2 / 5 / 10 coordinates | " + " | ".join(KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    for name, load in DATA.items():
        X = load()
        found = np.array([one_split(X, FIRST + i) for i in range(n_splits)])
        print(f"| {name} | " + " | ".join(cells(found)) + " |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
