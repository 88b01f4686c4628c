"""Common code of the experiments: the methods compared, and references in numpy."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib import pyplot as plt
from scipy.spatial.distance import cdist

from manifoldry import NonRedundant
from manifoldry.datasets import find_data
from manifoldry.plotting import plot_embedding

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion as Criterion
from report import Experiment, not_yet
from report import Lab as Lab
from report import within as within

ALPHAS = (0.3, 0.45, 0.6)  # candidate bandwidths, chosen on the tune set; published: 0.1 to 0.6


def published(base: Any, d: int, alpha: float | str = 0.3, **more: Any) -> NonRedundant:
    """The publication's method: unpredictable by a smoother of relative bandwidth α."""
    return NonRedundant(base, d, criterion="prediction", bandwidth=alpha, **more)


def variants(base: Any, d: int) -> dict[str, Any]:
    """The publication's method, the same with its bandwidth chosen, and the library's default."""
    return {
        "prediction α = .3": published(base, d),
        "prediction, auto": published(base, d, "auto"),
        "gradient": NonRedundant(base, d),
    }


def in_pairs(lab: Lab, task: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Run a task on each job's arguments, two at a time if it is worth starting a process."""
    workers = lab.choose(2, 1)
    return list(Parallel(n_jobs=workers)(delayed(task)(*job) for job in jobs))


def needs(name: str, ids: Iterable[str], figures: Iterable[str]) -> Callable[..., Experiment]:
    """In a quick run, yield "not yet" if a data file is missing; a full run requires it."""

    def with_data(experiment: Experiment) -> Experiment:
        @wraps(experiment)
        def run(lab: Lab) -> Iterator[Criterion]:
            if find_data(name) is not None or not lab.quick:
                yield from experiment(lab)
                return
            for id in ids:
                yield not_yet(id, experiment.__name__, f"{name}.npz, which is not here")
            for figure in figures:
                lab.save(plt.figure(figsize=(1, 1)), figure)

        return run

    return with_data


def standardized(Y: Any) -> Any:
    return (Y - Y.mean(axis=0)) / Y.std(axis=0)


def correlation(a: Any, b: Any) -> float:
    return float(abs(np.corrcoef(a, b)[0, 1]))


def linear_fraction(f: Any, columns: Any) -> float:
    """R² of f in the span of some columns and the constant."""
    A = np.column_stack([np.ones(len(f)), columns])
    rest = f - A @ np.linalg.lstsq(A, f, rcond=None)[0]
    return float(1 - rest.var() / f.var())


WIDTHS = (0.02, 0.04, 0.08, 0.15, 0.3, 0.6)  # in standard deviations of the predictor


def left_out_means(Z: Any, X: Any, width: float, rows: Any = None) -> Any:
    """Nadaraya–Watson predictions of X (n, p) at Z (n, q), each point left out."""
    rows = np.arange(len(Z)) if rows is None else rows
    predicted = np.empty((len(rows), X.shape[1]))
    for start in range(0, len(rows), 1000):
        some = rows[start : start + 1000]
        D2 = cdist(Z[some], Z, "sqeuclidean")
        D2[np.arange(len(some)), some] = np.inf
        D2 -= D2.min(axis=1, keepdims=True)  # the nearest point always has a weight
        w = np.exp(-D2 / (2 * width**2))
        predicted[start : start + 1000] = w @ X / w.sum(axis=1, keepdims=True)
    return predicted


def explained(f: Any, predictors: Any) -> float:
    """R² of f regressed on predictors by local means, leaving each point out; 0 if negative."""
    Z = np.asarray(predictors, dtype=float).reshape(len(f), -1)
    Z, f = standardized(Z), standardized(np.asarray(f)).reshape(-1, 1)
    rows = np.arange(min(len(f), 1000))  # of a sample in random order
    errors = [((f[rows] - left_out_means(Z, f, width, rows)) ** 2).mean() for width in WIDTHS]
    return max(0.0, 1 - min(errors))


def decimals(values: Iterable[float], digits: int = 2) -> str:
    """Numbers formatted for a table: .93, 1.01."""
    return ", ".join(f"{value:.{digits}f}".removeprefix("0") for value in values)


def span(values: Iterable[float], digits: int = 2) -> str:
    """The smallest and the largest of some values."""
    values = list(values)
    low, high = decimals([min(values)], digits), decimals([max(values)], digits)
    return low if low == high else f"{low}…{high}"


def draw_points(ax: Any, Y: Any, color: Any, title: str) -> None:
    """Plot the first 400 points of an embedding, with markers that give small files."""
    plot_embedding(Y[:400], color[:400], ax=ax, legend=False, alpha=1.0)
    for points in ax.collections:
        points.set_antialiased(False)
        points.set_linewidth(0)
    ax.set_aspect("auto")
    ax.set_title(title, fontsize=8)
