"""Sheets that noise hides: ``python docs/studies/noisy_sheets.py``, three minutes on one core.

S-curves, rolls and strips of 1000 points with noise, embedded by LTSA, modified and Hessian LLE
with 8 to 20 neighbors. An embedding is good if an affine map of it explains 0.9 of the variance of
both coordinates of the sheet, and bad if it explains less than 0.5 of one. The table counts which
warning such embeddings have: of a redundant coordinate, of tangent spaces that do not fit, another
one, or none. Bad ones without a warning of the first two kinds, and good ones with one of the
first, are listed.
"""

import warnings
from collections import Counter

import numpy as np

from manifoldry import LTSA, HessianLLE, ModifiedLLE
from manifoldry.datasets import make_s_curve, make_strip, make_swiss_roll
from manifoldry.exceptions import RedundantCoordinateWarning, TangentSpaceWarning


def wide(seed):
    """A flat strip in space, twice as long as wide."""
    return flat(2, seed)


def long(seed):
    """A flat strip in space, four times as long as wide."""
    return flat(4, seed)


def flat(aspect, seed):
    """A flat strip in space."""
    X, sheet = make_strip(1000, aspect=aspect, random_state=seed)
    return np.column_stack([X, np.zeros(len(X))]), sheet


SHEETS = {
    "S-curve": (lambda seed: make_s_curve(1000, random_state=seed), (0, 0.02, 0.03, 0.05, 0.1)),
    "roll": (lambda seed: make_swiss_roll(1000, random_state=seed), (0, 0.1, 0.2, 0.3)),
    "strip 1:2": (wide, (0, 0.01, 0.02, 0.05)),
    "strip 1:4": (long, (0, 0.02, 0.03, 0.05)),
}


def explained(Y, sheet):
    """Fraction of the variance of each coordinate of the sheet that an affine map explains."""
    A = np.column_stack([np.ones(len(Y)), Y])
    residuals = sheet - A @ np.linalg.lstsq(A, sheet, rcond=None)[0]
    return 1 - residuals.var(axis=0) / sheet.var(axis=0)


def judged(model, X, sheet):
    """Quality of the embedding, and the warning that the fit gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        least = explained(model.fit(X).embedding_, sheet).min()
    categories = {each.category for each in caught}
    quality = "bad" if least < 0.5 else "good" if least >= 0.9 else "fair"
    for category, name in (
        (RedundantCoordinateWarning, "redundant"),
        (TangentSpaceWarning, "tangent spaces"),
    ):
        if category in categories:
            return quality, name
    return quality, "other" if categories else "none"


def main():
    """Print the table."""
    counts = Counter()
    for name, (make, noises) in SHEETS.items():
        for noise in noises:
            for seed in range(3):
                X, sheet = make(seed)
                X = X + noise * np.random.default_rng(seed + 1).normal(size=X.shape)
                for method in (LTSA, ModifiedLLE, HessianLLE):
                    for k in (8, 10, 15, 20):
                        found = judged(method(2, n_neighbors=k), X, sheet)
                        counts[method.__name__, *found] += 1
                        if found in (("bad", "none"), ("bad", "other"), ("good", "redundant")):
                            print(name, noise, seed, method.__name__, k, *found)
    for key in sorted(counts):
        print(*key, counts[key])


if __name__ == "__main__":
    main()
