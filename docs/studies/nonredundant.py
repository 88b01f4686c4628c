"""Study of the defaults of NonRedundant: criterion, bandwidth, number of coordinates.

Prints, for every data set, the mean absolute correlation of a coordinate with the true direction it
should show, and how many coordinates n_components="auto" finds.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_ring, make_strip, make_swiss_roll
from manifoldry.nonredundant.baselines import select_by_regression, select_independent

CANDIDATES = 20  # number of candidate eigenvectors for selection
RULES = {
    "prediction, 0.3": {"criterion": "prediction"},
    "prediction, 0.6": {"criterion": "prediction", "bandwidth": 0.6},
    "prediction, auto": {"criterion": "prediction", "bandwidth": "auto"},
    "local linear, 0.3": {"criterion": "prediction", "smoother": "local_linear"},
    "gradient": {"criterion": "gradient"},
}


def wave(u):
    """The first function of a coordinate on an interval."""
    return np.cos(np.pi * (u - u.min()) / np.ptp(u))


def sheet(make, **options):
    """A generator of points on a sheet, with a function of the width."""

    def draw(n, seed):
        X, coordinates = make(n, random_state=seed, **options)
        return X, wave(coordinates[:, 1])

    return draw


def noisy_roll(n, seed):
    """A roll of aspect 4 with noise of 3 % of its height."""
    X, coordinates = make_swiss_roll(n, aspect=4, random_state=seed)
    noise = 0.03 * np.ptp(coordinates[:, 1])
    rng = np.random.default_rng(seed + 1000)
    return X + noise * rng.normal(size=X.shape), wave(coordinates[:, 1])


def box(n, seed):
    """A solid box, with a function of its shortest side."""
    U = np.random.default_rng(seed).uniform(size=(n, 3))
    return U * [4, 2, 1], wave(U[:, 2])


def ring(n, seed):
    """A band around a ring, with a function of the angle across it."""
    X, coordinates = make_ring(n, tube=0.3, band=np.pi / 2, random_state=seed)
    return X, wave(coordinates[:, 1])


# Data, the coordinate that should show the direction, and the number of directions.
SETS: dict[str, tuple[Callable, int, int]] = {
    **{f"strip {a}": (sheet(make_strip, aspect=a), 1, 2) for a in (1.5, 2.5, 3.5)},
    **{f"roll {a}": (sheet(make_swiss_roll, aspect=a), 1, 2) for a in (4, 8)},
    "noisy roll 4": (noisy_roll, 1, 2),
    "box 4×2×1": (box, 2, 3),
    "ring": (ring, 2, 3),
}


def correlation(f, g):
    """Absolute correlation."""
    return abs(np.corrcoef(f, g)[0, 1])


def metrics(draw, which, n, seed):
    """Correlations of all rules on one sample, and the number found by "auto"."""
    X, truth = draw(n, seed)
    base = LaplacianEigenmaps(n_neighbors=12)
    many = LaplacianEigenmaps(CANDIDATES, n_neighbors=12).fit(X)
    Y = many.embedding_
    out = {"plain": correlation(Y[:, which], truth)}
    out["best of 20"] = max(correlation(f, truth) for f in Y.T)
    chosen = select_by_regression(Y, which + 1)
    out["Dsilva"] = correlation(Y[:, sorted(chosen)[which]], truth)
    chosen = select_independent(Y, many.affinity_, which + 1)
    out["Chen & Meilă"] = correlation(Y[:, sorted(chosen)[which]], truth)
    for name, options in RULES.items():
        model = NonRedundant(base, which + 1, **options).fit(X)
        out[name] = correlation(model.embedding_[:, which], truth)
    out["auto"] = NonRedundant(base, "auto").fit(X).n_components_
    return out


def main():
    """Print the tables of docs/decisions.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, (draw, which, true) in SETS.items():
        rows = [metrics(draw, which, options.n, seed) for seed in range(options.seeds)]
        right = sum(row["auto"] == true for row in rows)
        means = {k: np.mean([row[k] for row in rows]) for k in rows[0] if k != "auto"}
        told = ", ".join(f"{k} {v:.2f}" for k, v in means.items())
        print(f"{name}: {told}; auto finds {true} in {right} of {len(rows)}", flush=True)


if __name__ == "__main__":
    main()
