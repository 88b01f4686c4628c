"""Comparison of constrained and other homotopies: ``python docs/studies/constrained_homotopy.py``.

Elastic embeddings of ten Swiss rolls of 250 points with three weights of repulsion. For every
algorithm the table has the final value, as an excess over the lowest of all algorithms on
that roll (mean, worst, and how often it was the lowest to four digits), and the number of
evaluations of the objective, without those for finding scales. It takes about five minutes.
"""

import sys

import numpy as np

from manifoldry import ElasticEmbedding
from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize import ConstrainedHomotopy, Homotopy

SEEDS = range(10)
WAYS = {
    "random start": {"init": "random"},
    "spectral start": {},
    "homotopy": {"optimizer": Homotopy(n_steps=30)},
    "homotopy off saddles": {"optimizer": Homotopy(n_steps=30, curvature=True)},
    "constrained, growing": {"optimizer": ConstrainedHomotopy(n_steps=30)},
    "constrained, growing, B = I": {
        "optimizer": ConstrainedHomotopy(n_steps=30, constraint_weights="uniform")
    },
    "constrained, 10 steps": {"optimizer": ConstrainedHomotopy(n_steps=10)},
    "constrained, size 1": {"optimizer": ConstrainedHomotopy(n_steps=30, grow_size=False)},
}


def results(weight):
    """Values and evaluations, (algorithms, seeds)."""
    rolls = [make_swiss_roll(250, random_state=seed).X for seed in SEEDS]
    models = [
        [
            ElasticEmbedding(weight=weight, perplexity=8, random_state=seed, **way).fit(X)
            for seed, X in enumerate(rolls)
        ]
        for way in WAYS.values()
    ]
    values = np.array([[model.loss_ for model in row] for row in models])
    return values, np.array([[model.n_evaluations_ for model in row] for row in models])


def main(weights):
    """Print one table for every weight."""
    for weight in weights:
        values, evaluations = results(weight)
        excess = 100 * (values / values.min(axis=0) - 1)
        print(f"\nweight {weight:g}: excess in %, mean, worst, times lowest; evaluations")
        for name, row, counts in zip(WAYS, excess, evaluations, strict=True):
            metrics = row.mean(), row.max(), (row < 0.01).sum(), np.median(counts)
            print(f"{name:28s}", "{:6.2f} {:6.2f} {:3d} {:7.0f}".format(*metrics))


if __name__ == "__main__":
    main([float(weight) for weight in sys.argv[1:]] or [10.0, 100.0, 1000.0])
