"""New points with a fixed embedding, and the inverse of the elastic embedding.

Run ``python docs/studies/frozen.py``. Half of scikit-learn's digits are embedded by its t-SNE; the
other half is added by minimizing the divergence of the new row alone or the joint divergence. Then
rolls and digits are embedded by the elastic embedding (exact, by L-BFGS along λ), and held-out
points are embedded and reconstructed by its own inverse and by local regression. The last column
compares the steps of Newton's method with those of the fixed-point iteration, whose curvature is
that of attraction alone. About a minute on one core.
"""

import warnings

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsClassifier

from manifoldry.datasets import make_swiss_roll
from manifoldry.extension.elastic_inverse import ElasticInverse
from manifoldry.extension.new_point_objective import NewPointObjective
from manifoldry.extension.new_points import NewPointOptimizer
from manifoldry.extension.regression import LocalRegression
from manifoldry.objectives import (
    Joint,
    Pairwise,
    PerPoint,
    StudentKernel,
    elastic,
    squared_distance_weights,
)


def entropic(D, perplexity):
    """Rows of given perplexity over the 3·perplexity nearest, their precisions and normalizers."""
    k = int(3 * perplexity)
    nearest = np.argsort(D, axis=1)[:, :k]
    d = np.take_along_axis(D, nearest, axis=1)
    low, high = np.full((len(D), 1), -60.0), np.full((len(D), 1), 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        P = np.exp(-np.exp(middle) * (d - d[:, :1]))
        total = P.sum(axis=1, keepdims=True)
        P /= total
        wide = -(P * np.log(np.maximum(P, 1e-300))).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    rows = np.zeros_like(D)
    np.put_along_axis(rows, nearest, P, axis=1)
    precision = np.exp(middle[:, 0])
    return rows, precision, np.log(total[:, 0]) - precision * d[:, 0]


def without_self(X):
    """Squared distances with an infinite diagonal."""
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    return D


def evenly(n):
    """Affinities of training points, whose positions are fixed, so that only the sum counts."""
    return (1 - np.eye(n)) / (n * (n - 1))


def study_tsne(seed, perplexity=30):
    """Print how accurately the two divergences embed the other half of the digits."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    train, new = order[:898], order[898:]
    Y = TSNE(perplexity=perplexity, random_state=seed).fit_transform(X[train]).astype(float)
    D = cdist(X[new], X[train], "sqeuclidean")
    P, among = entropic(D, perplexity)[0], evenly(len(Y))
    itself = entropic(cdist(X[train], X[train], "sqeuclidean"), perplexity)[0]
    target = Y[np.argsort(D, axis=1)[:, :5]].mean(axis=1)
    spacing = np.median(np.sort(cdist(Y, Y), axis=1)[:, 5])
    labels = KNeighborsClassifier(1).fit(Y, y[train])
    for normalizer in (PerPoint(1 / len(Y)), Joint()):
        objective = Pairwise(among, StudentKernel(), normalizer)
        optimizer = NewPointOptimizer(Y, objective.for_new_points(Y))
        placed, moved = optimizer.minimize(P), optimizer.minimize(itself).positions - Y
        away = np.linalg.norm(placed.positions - target, axis=1)
        right = labels.score(placed.positions, y[new])
        print(
            f"{seed} {type(normalizer).__name__:8} labels {right:.3f}"
            f"  from neighbors: mean {away.mean():.2f}, median {np.median(away):.2f}"
            f"  training points moved {np.quantile(np.linalg.norm(moved, axis=1), 0.9):.2f}"
            f" of {spacing:.2f}  steps {placed.n_iter.mean():.1f}, at most {placed.n_iter.max()}"
        )


def elastic_map(X, strength, perplexity=20):
    """An elastic embedding with squared distances as repulsive weights."""
    n = len(X)
    P, precision, log_total = entropic(without_self(X), perplexity)
    W, far = (P + P.T) / (2 * n), cdist(X, X, "sqeuclidean")
    far /= far.sum()

    def energy(y, strength):
        Y = y.reshape(n, 2)
        D = cdist(Y, Y, "sqeuclidean")
        K = strength * far * np.exp(-D)
        T = W - K
        return (W * D).sum() + K.sum(), 4 * (T.sum(axis=1)[:, None] * Y - T @ Y).ravel()

    degree = np.diag(W.sum(axis=1))
    Y = eigh(degree - W, degree, subset_by_index=(1, 2))[1]
    Y = (Y / Y.std(axis=0)).ravel()
    for current in np.geomspace(strength / 20, strength, 6):
        Y = minimize(energy, Y, (current,), "L-BFGS-B", True, options={"maxiter": 120}).x
    return Y.reshape(n, 2), precision**-0.5, -log_total - np.log(n)


def fixed_point_steps(objective, Z, most=2000):
    """Steps until x ← x − gradient/(2Σp), the fixed-point iteration, moves less than 1e-9."""
    rows, steps = np.arange(len(Z)), np.full(len(Z), most)
    for step in range(most):
        gradient = objective.at(Z, rows).gradient
        Z = Z - gradient / 2
        steps[(np.abs(gradient).max(axis=1) < 2e-9) & (steps == most)] = step
        if (steps < most).all():
            break
    return steps


def study_elastic(name, X, strength):
    """Print the reconstruction errors of both inverses on held-out points."""
    train, new = X[:600], X[600:]
    Y, widths, log_scale = elastic_map(train, strength)
    D = cdist(new, train, "sqeuclidean")
    P, weights = entropic(D, 20)[0], D / cdist(train, train, "sqeuclidean").sum()
    repulsion = squared_distance_weights(train)
    posed = elastic(evenly(len(train)), repulsion, strength).for_new_points(Y)
    optimizer = NewPointOptimizer(Y, posed, 3)
    placed = optimizer.minimize(P, weights)
    objective = NewPointObjective(Y, sparse.csr_array(P), posed, weights)
    steps = fixed_point_steps(objective, P @ Y)
    flat = np.full(len(train), -np.log(20.0 * len(train)))
    inverses = {
        "regression": LocalRegression(Y, train),
        "own, entropic weights": ElasticInverse(train, Y, widths, log_scale, strength),
        "own, equal heights": ElasticInverse(train, Y, widths, flat, strength),
    }
    whole = np.sqrt(((new - train.mean(axis=0)) ** 2).sum(axis=1).mean())
    errors = {
        which: np.sqrt(((new - inverse.predict(placed.positions)) ** 2).sum(axis=1).mean()) / whole
        for which, inverse in inverses.items()
    }
    print(
        f"{name:6} λ={strength:<5g}",
        "  ".join(f"{which} {error:.3f}" for which, error in errors.items()),
        f"  steps: Newton {placed.n_iter.mean():.1f}, at most {placed.n_iter.max()};"
        f" fixed point {np.median(steps):.0f}, at most {steps.max()}",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for seed in range(3):
        study_tsne(seed)
    digits = load_digits().data[np.random.default_rng(0).permutation(1797)[:1000]]
    for strength in (10.0, 100.0, 1000.0):
        study_elastic("roll", make_swiss_roll(1000, random_state=0)[0], strength)
        study_elastic("digits", digits, strength)
