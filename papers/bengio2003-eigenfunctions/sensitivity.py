"""E1.4: error of the extension compared with the effect of exchanging training points.

The published protocol is :func:`manifoldry.metrics.sensitivity`; this module has the data, the
plots and the criteria. The talk shows the plot without numbers; sizes and settings follow the
article on the same experiment (Bengio et al., NIPS 16, 2004).
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import LLE, ClassicalMDS, Isomap, LaplacianEigenmaps
from manifoldry.datasets import DataNotFoundError, load_isomap_faces, make_swiss_roll
from manifoldry.metrics import sensitivity
from manifoldry.plotting import plot_sensitivity

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab

METHODS = {
    "classical MDS": ClassicalMDS(2),
    "Laplacian eigenmaps": LaplacianEigenmaps(2, n_neighbors=10),
    "Isomap": Isomap(2, n_neighbors=10),
    "LLE": LLE(2, n_neighbors=10),
}
LATEST = {"classical MDS": 0.10}  # where the curve has to be above 0; 0.05 for the others
FRACTIONS = (0.002, 0.01, 0.02, 0.05, 0.1, 0.2)  # the first exchanges a single point
LEFT_OUT = 4  # points in each split and fraction, instead of all


def training_set_sensitivity(lab: Lab) -> Iterator[Criterion]:
    """Variability minus out-of-sample error for four methods on two data sets."""
    faces, surrogate = faces_or_digits(lab)
    data = {"digits" if surrogate else "faces": (faces, surrogate), "roll": (swiss_roll(lab), "")}
    found = {
        (name, method): sensitivity(
            model,
            X,
            fractions=lab.choose(FRACTIONS, (0.02, 0.1)),
            n_splits=len(lab.seeds(20)),
            n_left_out=lab.choose(LEFT_OUT, 1),
            n_jobs=lab.choose(2, 1),
        )
        for name, (X, _) in data.items()
        for method, model in METHODS.items()
    }
    draw(lab, found)
    for (name, method), result in found.items():
        X, stand_in = data[name]
        yield increasing(f"{method}, {len(X)} {POINTS[name]}", result, stand_in)
        yield crosses(
            f"{method}, {len(X)} {POINTS[name]}", result, stand_in, LATEST.get(method, 0.05)
        )


POINTS = {"faces": "faces", "digits": "digits", "roll": "points of a Swiss roll"}


def faces_or_digits(lab: Lab):
    """The 698 faces at 32 × 32 pixels, or digits if they are not available."""
    try:
        X, surrogate = load_isomap_faces().X, ""
    except DataNotFoundError:
        X, surrogate = load_digits().data, "digits in place of the faces"
    order = np.random.default_rng(0).permutation(len(X))
    most = 1000 if surrogate else len(X)
    return X[np.sort(order[: lab.choose(most, 120)])], surrogate


def swiss_roll(lab: Lab):
    """A sample whose graph of ten neighbors connects no two windings."""
    return make_swiss_roll(lab.choose(500, 120), random_state=1).X


def increasing(what, result, surrogate):
    steps = np.diff(np.array(result.difference, dtype=float))
    passed = (steps > 0).all()
    ends = result.difference[0], result.difference[-1]
    first, last = (
        f"{100 * end:+.1f} [{100 * end.low:+.1f}, {100 * end.high:+.1f}]" for end in ends
    )
    return Criterion(
        "E1.4",
        f"{what}: variability less out-of-sample error by fraction exchanged",
        "increasing (figure)",
        "mean increases at every step",
        f"{first} % of the map's spread at {percent(result.fractions[0])}, {last} at "
        f"{percent(result.fractions[-1])}; {(steps > 0).sum()} of {len(steps)} steps up",
        passed,
        seeds=result.variabilities.shape[1],
        surrogate=surrogate,
    )


def crosses(what, result, surrogate, latest):
    crossing = result.crossing
    return Criterion(
        "E1.4",
        f"{what}: fraction at which the difference becomes 0",
        "small (figure)",
        f"≤ {latest:.0%}",
        f"{percent(crossing)} [{percent(crossing.low)}, {percent(crossing.high)}]",
        crossing <= latest,
        seeds=result.variabilities.shape[1],
        surrogate=surrogate,
    )


def percent(fraction):
    return f"{100 * fraction:.2g} %" if np.isfinite(fraction) else "beyond the last"


def draw(lab: Lab, found) -> None:
    """One row of panels per data set, one column per method, as published but for the log axis."""
    figure, axes = plt.subplots(2, 4, figsize=(11.5, 5), layout="constrained")
    for ax, ((name, method), result) in zip(axes.ravel(), found.items(), strict=True):
        plot_sensitivity(result, ax=ax, title=f"{method}, {name}")
        ax.set_xscale("log")
        ax.minorticks_off()
        ticks = result.fractions[[0, *range(1, len(result.fractions), 2)]]
        ax.set_xticks(ticks, [f"{100 * tick:.2g} %" for tick in ticks])
        ax.set_xlabel("exchanged" if name == "roll" else "")
        ax.set_ylabel("")
    figure.supylabel("variability − out-of-sample error", fontsize=9)
    lab.save(figure, "sensitivity")
