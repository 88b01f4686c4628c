"""New points of non-redundant coordinates, compared with linear interpolation on the sheet.

500 points of a roll, a strip or a ring are fitted and 500 others embedded. Their coordinates should
be those of linear interpolation between the fitted points in the sheet's own coordinates. The table
has the root mean square difference of the last coordinate, in standard deviations (mean of the
seeds), the fraction of points off by more than half of one, and how far a fitted point moves on the
map, in percent of the range, if it moves by 1e-7 in the data (largest of the seeds).

Run ``python docs/studies/nonredundant_new_points.py``; takes a minute.
"""

import warnings

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from manifoldry import DiffusionMaps, Isomap, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_ring, make_strip, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning

DATA = {
    "roll": (make_swiss_roll, {}, 2),
    "strip": (make_strip, {"aspect": 3.5}, 2),
    "ring": (make_ring, {}, 3),
}
METHODS = [LaplacianEigenmaps(), DiffusionMaps(affinity="gaussian"), Isomap(), KernelPCA()]


def rules(model, new):
    """Coordinates of new points by several rules."""
    extension = model.estimator_.extension_
    yield "this", model.transform(new)
    yield "formula of the method", extension.base.transform(new)
    indices, weights, _ = extension.points.neighbors(new)
    yield "interpolation", np.einsum("qk,qkl->ql", weights, extension.embedding[indices])


def measured(estimator, criterion, name, seed):
    """Figures of every rule for one data set."""
    make, options, k = DATA[name]
    X, sheet = make(1000, random_state=seed, **options)
    model = NonRedundant(estimator, k, criterion=criterion).fit(X[:500])
    Y = model.embedding_
    expected = LinearNDInterpolator(sheet[:500], Y)(sheet[500:])
    inside = np.isfinite(expected).all(axis=1)
    steps = np.random.default_rng(0).normal(size=(500, X.shape[1]))
    steps *= 1e-7 / np.linalg.norm(steps, axis=1, keepdims=True)
    moved = dict(rules(model, X[:500] + steps))
    for rule, Z in rules(model, X[500:]):
        errors = np.abs(Z - expected)[inside] / Y.std(axis=0)
        jump = (np.abs(moved[rule] - Y) / np.ptp(Y, axis=0)).max()
        yield rule, (np.sqrt((errors[:, -1] ** 2).mean()), (errors > 0.5).any(1).mean(), jump)


def main():
    """Print the table."""
    warnings.simplefilter("ignore", ManifoldryWarning)
    for criterion in ("gradient", "prediction"):
        for estimator in METHODS:
            for name in DATA:
                found = {}
                for seed in range(3):
                    for rule, figures in measured(estimator, criterion, name, seed):
                        found.setdefault(rule, []).append(figures)
                print(f"{criterion}, {type(estimator).__name__}, {name}")
                for rule, figures in found.items():
                    error, off, _ = np.mean(figures, axis=0)
                    jump = 100 * np.max(figures, axis=0)[2]
                    print(f"    {rule:22s} error {error:.3f}, off {off:.1%}, jump {jump:.2g} %")


if __name__ == "__main__":
    main()
