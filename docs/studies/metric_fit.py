"""Metric fit of LTSA and Hessian LLE with noise: ``python docs/studies/metric_fit.py``.

Sheets of known shape, with Gaussian noise of increasing size; the error is the distance to the
true coordinates after the best rigid motion, relative to their spread. Without the fit the
coordinates have unit variance, so the error after the best *similarity* is shown for them.
"""

import warnings

import numpy as np
from scipy.spatial import cKDTree

from manifoldry import LTSA, HessianLLE
from manifoldry.datasets import make_s_curve, make_strip, make_swiss_roll
from manifoldry.metrics import procrustes

SHEETS = {
    "Swiss roll": make_swiss_roll,
    "roll with a hole": lambda n, **kw: make_swiss_roll(n, hole=True, **kw),
    "S-curve": make_s_curve,
    "cylinder patch 4 x 1": lambda n, **kw: make_strip(n, aspect=4.0, curl=np.pi, **kw),
    "strip in 20 dimensions": lambda n, **kw: make_strip(
        n, aspect=4.0, curl=np.pi, n_features=20, **kw
    ),
}
NOISE = (0.0, 0.1, 0.25, 0.5, 1.0)  # in units of the mean distance to the nearest neighbor
POINTS, SEEDS, NEIGHBORS = 1500, 3, 12


def spacing(X):
    """Mean distance to the nearest neighbor."""
    return cKDTree(X).query(X, 2)[0][:, 1].mean()


def main():
    """Print the table of docs/decisions.md."""
    print(f"median of {SEEDS} seeds, {POINTS} points, {NEIGHBORS} neighbors")
    print("| sheet | method | map |" + "".join(f" {noise:g} |" for noise in NOISE))
    print("|---|---|---|" + "---|" * len(NOISE))
    for name, make in SHEETS.items():
        unit = spacing(make(POINTS, random_state=0).X)
        for method in (LTSA, HessianLLE):
            rows = {True: [], False: []}
            for noise in NOISE:
                errors = {True: [], False: []}
                for seed in range(SEEDS):
                    X, truth = make(POINTS, noise=noise * unit, random_state=seed)
                    for fit in (True, False):
                        model = method(2, n_neighbors=NEIGHBORS, metric_fit=fit)
                        Y = model.fit_transform(X)
                        allow = "rigid" if fit else "similarity"
                        errors[fit].append(procrustes(Y, truth, allow).error)
                for fit in (True, False):
                    rows[fit].append(np.median(errors[fit]))
            for fit, label in ((True, "fitted, rigid"), (False, "unit variance, similarity")):
                metrics = "".join(f" {value:.3f} |" for value in rows[fit])
                print(f"| {name} | {method.__name__} | {label} |{metrics}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
