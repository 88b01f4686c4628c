"""Unsupervised kernel regression of a helix: ``python docs/studies/kernel_regression.py``.

A noisy helix of 300 points, embedded in one dimension: from Laplacian eigenmaps at the scale of
smallest leave-one-out error, with every kernel; from random starts, with and without a bound on
the density of isolated points; and within a box, with several transformations to an unconstrained
problem. The optimizer is scipy's L-BFGS. Solved means an error of at most twice that of the noise,
and the right order.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import spearmanr

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import make_helix
from manifoldry.objectives.kernel_regression import UKRObjective, reinsert
from manifoldry.objectives.leave_one_out import best_regression_scale
from manifoldry.objectives.regression_kernels import KERNELS
from manifoldry.objectives.transformed import Boxed

SEEDS = range(10)
FLOOR = 2 * 0.15**2  # squared noise across the curve


def search(value_and_gradient, Y, iterations=400, bounds=None, **options):
    """The embedding, its value and the number of evaluations."""

    def flat(y):
        value, G = value_and_gradient(y.reshape(Y.shape))
        return value, G.ravel()

    options = {"maxiter": iterations, "maxfun": 20 * iterations, "maxcor": 20, **options}
    bounds = None if bounds is None else [(-bounds, bounds)] * Y.size
    found = minimize(flat, Y.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x.reshape(Y.shape), found.fun, found.nfev


def order(angle, Y):
    """Absolute rank correlation of the coordinate with the angle."""
    return abs(spearmanr(angle[:, 0], Y[:, 0])[0])


def report(what, rows):
    """`rows` are pairs of error and order."""
    errors, orders = np.array(rows).T
    solved = int(((errors <= 2 * FLOOR) & (orders >= 0.99)).sum())
    metrics = f"median {np.median(errors):.3f}, {errors.min():.3f} to {errors.max():.3f}"
    print(f"{what:44s} solved {solved:2d}/{len(rows)}   error {metrics}", flush=True)


def spectral_starts(kernel, turns):
    """From Laplacian eigenmaps at the best scale."""
    rows = []
    for seed in SEEDS:
        X, angle = make_helix(300, turns=turns, random_state=seed)
        Y = LaplacianEigenmaps(n_components=1).fit_transform(X)
        objective = UKRObjective(X, kernel=kernel)
        start = best_regression_scale(Y, X, kernel).scale * Y
        Y, value, _ = search(objective.value_and_gradient, start)
        rows.append((value, order(angle, Y)))
    report(f"{turns} turns, spectral start, {kernel}", rows)


def random_starts(turns):
    """From normally distributed starts."""
    rows = {"as they are": [], "isolated points moved back, twice": []}
    for seed in SEEDS:
        X, angle = make_helix(300, turns=turns, random_state=seed)
        objective = UKRObjective(X)
        start = np.random.default_rng(seed).normal(size=(300, 1))
        Y, value, _ = search(objective.value_and_gradient, start, 200)
        rows["as they are"].append((value, order(angle, Y)))
        for _ in range(2):
            Y, value, _ = search(objective.value_and_gradient, reinsert(objective, Y), 200)
        rows["isolated points moved back, twice"].append((value, order(angle, Y)))
    for what, found in rows.items():
        report(f"{turns} turns, random starts, {what}", found)


def boxes(half_width):
    """Error and evaluations of transformed problems, relative to L-BFGS-B with bounds."""
    strict = {"iterations": 1000, "ftol": 1e-10, "gtol": 1e-7}
    rows = {"sine": [], "tanh": []}
    for seed in SEEDS:
        X, _ = make_helix(150, random_state=seed)
        Y = LaplacianEigenmaps(n_components=1).fit_transform(X)
        Y *= 0.95 * half_width / np.abs(Y).max()
        objective = UKRObjective(X, leave_one_out=False)
        boxed = Boxed(objective, half_width)
        _, best, count = search(objective.value_and_gradient, Y, bounds=half_width, **strict)

        def tanh(Z, objective=objective):
            t = np.tanh(Z / half_width)
            value, G = objective.value_and_gradient(half_width * t)
            return value, G * (1 - t**2)

        for way, function, start in (
            ("sine", boxed.value_and_gradient, boxed.unconstrained(Y)),
            ("tanh", tanh, half_width * np.arctanh(Y / half_width)),
        ):
            _, value, evaluations = search(function, start, **strict)
            rows[way].append((value / best, evaluations / count))
    for way, found in rows.items():
        error, evaluations = np.median(found, axis=0)
        worst = np.max(found, axis=0)[0]
        print(
            f"box of half width {half_width:g}, {way}: error {error:.4f} (at most {worst:.4f}) and "
            f"evaluations {evaluations:.1f} times those of a bounded search",
            flush=True,
        )


if __name__ == "__main__":
    for turns in (2, 4):
        for kernel in KERNELS:
            spectral_starts(kernel, turns)
        random_starts(turns)
    for half_width in (3.0, 8.0):
        boxes(half_width)
