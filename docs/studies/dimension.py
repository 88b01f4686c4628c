"""Estimates of known dimensions: ``python docs/studies/dimension.py``.

Prints the mean estimate of every method on sets of known dimension, over several seeds, with the
consensus of the report; and with ``--coverage`` how often their 95 % intervals contain the mean
estimate of the method: they account for sampling variation, not for the bias of the method.
"""

import argparse
import warnings

import numpy as np

from manifoldry.datasets import make_swiss_roll
from manifoldry.dimension import (
    correlation_dimension,
    diffusion_slope,
    estimate_dimension,
    local_pca,
    maximum_likelihood,
    two_nn,
)

METHODS = (
    "two_nn",
    "maximum_likelihood",
    "correlation_dimension",
    "local_pca",
    "diffusion_slope",
    "residual_variance_elbow",
    "pca_dimension",
    "gram_rank",
)
CONTINUOUS = (two_nn, maximum_likelihood, correlation_dimension, local_pca, diffusion_slope)
ROLL_NOISE = 0.4  # a fifth of the mean distance to the tenth neighbor of 1500 points


def cube(d):
    """Uniform in a cube."""
    return lambda n, rng: rng.uniform(size=(n, d))


def line(n, rng):
    """A straight line in ten dimensions."""
    return rng.uniform(size=(n, 1)) * rng.normal(size=10)


def sphere(n, rng):
    """A sphere."""
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1)[:, None]


def roll(n, rng):
    """A Swiss roll."""
    return make_swiss_roll(n, random_state=rng).X


def noisy_roll(n, rng):
    """The same with noise."""
    return make_swiss_roll(n, noise=ROLL_NOISE, random_state=rng).X


def clusters(n, rng):
    """A square and a five-dimensional cube, far from each other."""
    X = rng.uniform(size=(n, 5))
    X[: n // 2, 2:] = 0
    X[n // 2 :] += 5
    return X


SETS = {
    "line": (line, "1"),
    "Swiss roll": (roll, "2"),
    "noisy roll": (noisy_roll, "2"),
    "sphere": (sphere, "2"),
    "square": (cube(2), "2"),
    "cube of 5": (cube(5), "5"),
    "cube of 10": (cube(10), "10"),
    "clusters": (clusters, "2 and 5"),
}


def table(n, seeds):
    """Print mean estimates, and the consensus and range of the first seed."""
    print(f"mean of {seeds} seeds, {n} points")
    print("| set | true | " + " | ".join(METHODS) + " | consensus |")
    print("|---" * (len(METHODS) + 3) + "|")
    for name, (draw, true) in SETS.items():
        reports = [estimate_dimension(draw(n, np.random.default_rng(s))) for s in range(seeds)]
        means = [np.mean([float(report[method]) for report in reports]) for method in METHODS]
        first = reports[0]
        told = " | ".join(f"{mean:.2f}" for mean in means)
        right = sum(report.dimension == first.dimension for report in reports)
        consensus = f"{first.dimension} ({first.low} to {first.high}), {right} of {seeds}"
        print(f"| {name} | {true} | {told} | {consensus} |", flush=True)


def coverage(n, seeds):
    """Print how often intervals contain the mean, and their width relative to the true spread."""
    print(f"fraction of {seeds} intervals that hold the mean; standard error said over true")
    print("| set | " + " | ".join(method.__name__ for method in CONTINUOUS) + " |")
    print("|---" * (len(CONTINUOUS) + 1) + "|")
    for name, (draw, _) in SETS.items():
        cells = []
        for method in CONTINUOUS:
            found = [method(draw(n, np.random.default_rng(s))).value for s in range(seeds)]
            mean, spread = np.mean(found), np.std(found)
            held = np.mean([value.low <= mean <= value.high for value in found])
            said = np.mean([(value.high - value.low) / 2 / 1.96 for value in found])
            same = spread < 1e-6 * mean
            cells.append("always the same" if same else f"{held:.2f}; {said / spread:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main():
    """Print the tables of docs/decisions.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--coverage", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    (coverage if options.coverage else table)(options.n, options.seeds)


if __name__ == "__main__":
    main()
