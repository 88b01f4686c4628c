"""Common code of the experiments: the objective on a roll, homotopies in λ, learned weights."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

from manifoldry import LaplacianEigenmaps, NeighborGraph
from manifoldry.affinity import Gaussian
from manifoldry.datasets import ManifoldSample, find_data, make_swiss_roll
from manifoldry.objectives import (
    Bifurcation,
    Pairwise,
    best_scale,
    elastic,
    squared_distance_weights,
)
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize import (
    LBFGS,
    ConstrainedHomotopy,
    Homotopy,
    HomotopyRun,
    SpectralDirection,
    Stopping,
)
from manifoldry.plotting import plot_embedding

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion as Criterion
from report import Experiment, not_yet
from report import Lab as Lab
from report import within as within

# Repulsion by squared distances, as in the publication, and by default up to 20 000 points.
REPULSIONS = ("squared_distance", "uniform")
WIDTH = 5.0  # σ of the weights on rolls, as in the authors' later demonstration

FAST = LBFGS(SpectralDirection())
# High accuracy, for properties of the minimizer itself.
EXACT = LBFGS(
    SpectralDirection(),
    stopping=Stopping(max_iter=5000, tol=0.0, value_tol=0.0, gradient_tol=1e-10),
)


def elastic_on(X: Any, n_neighbors: int, repulsion: str) -> Pairwise:
    """Gaussian weights of neighbors, σ = 5, against repulsion; both sum to one."""
    graph = NeighborGraph.build(X, n_neighbors)
    W = Gaussian(gamma=1 / (2 * WIDTH**2)).fit(graph).matrix(graph)
    return elastic(W / W.sum(), repulsive_weights(X, repulsion))


def small_roll(lab: Lab, seed: int, repulsion: str) -> Pairwise:
    """A roll with a graph of ten neighbors: twenty would connect its windings."""
    return elastic_on(small_sample(lab, seed).X, 10, repulsion)


def small_sample(lab: Lab, seed: int) -> ManifoldSample:
    return make_swiss_roll(lab.choose(300, 120), random_state=seed)


def repulsive_weights(X: Any, repulsion: str) -> Any:
    return repulsion if repulsion == "uniform" else squared_distance_weights(X, np.float64)


def spectral_start(objective: Pairwise) -> Any:
    """Laplacian eigenmaps of the same weights, at the scale with the least value."""
    Y = LaplacianEigenmaps(2, affinity="precomputed").fit_transform(objective.affinity)
    return best_scale(objective, Y) * Y


def random_start(objective: Pairwise, seed: int, size: float = 1e-2) -> Any:
    """Random points with a small spread."""
    return size * np.random.default_rng(seed).standard_normal((objective.n, 2))


def run_from_collapse(objective: Pairwise, rule: Homotopy, d: int = 2) -> HomotopyRun:
    """A homotopy from nearly a single point, as `ElasticEmbedding` starts it."""
    opening = 1e-2 * np.sqrt(objective.n) * Bifurcation.of(objective, d).directions
    return HomotopyRun(rule, objective.with_weight, opening, FAST, np.random.default_rng(0))


def constrained_run(objective: Pairwise, rule: ConstrainedHomotopy) -> HomotopyRun:
    """A homotopy that starts from Laplacian eigenmaps."""
    rng = np.random.default_rng(0)
    return rule.run(objective.with_weight, rule.start(objective, 2, rng), FAST, rng)


def minimize(objective: Pairwise, weight: float, rule: Homotopy | None = None) -> Any:
    """The final embedding of a homotopy from λ₁ to `weight`."""
    rule = rule or Homotopy()
    constrained = isinstance(rule, ConstrainedHomotopy)
    run = (constrained_run if constrained else run_from_collapse)(objective, rule)
    first = 1.05 * Bifurcation.of(objective, 2).weight
    return rule.follow(run, rule.values_between(first, weight))


def learned_laplacian(objective: Any, Y: Any) -> Any:
    """D − W of the learned weights W = W⁺ − λW̃⁻, dense."""
    W = objective.learned_affinity(Y)
    return np.diag(W.sum(axis=1)) - W


def imbalance(objective: Any, Y: Any) -> float:
    """‖L_w Y‖ divided by that of attraction alone: zero at a stationary point."""
    attraction = graph_laplacian(objective.attraction) @ Y
    return float(np.linalg.norm(learned_laplacian(objective, Y) @ Y) / np.linalg.norm(attraction))


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


def decimals(values: Iterable[float], digits: int = 2) -> str:
    """Numbers formatted for a table: .93, 1.01."""
    return ", ".join(_short(value, digits) for value in values)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def span(values: Iterable[float], digits: int = 2) -> str:
    """The smallest and the largest of some values."""
    values = list(values)
    low, high = _short(min(values), digits), _short(max(values), digits)
    return low if low == high else f"{low}…{high}"


def powers(values: Iterable[float]) -> str:
    """The smallest and the largest of some small numbers, as powers of ten."""
    values = list(values)
    low, high = f"{min(values):.0e}", f"{max(values):.0e}"
    return low if low == high else f"{low}…{high}"


def draw_points(ax: Any, Y: Any, color: Any, title: str, most: int = 400) -> None:
    """Plot the first points of an embedding, with markers that give small files."""
    plot_embedding(Y[:most], color[:most], ax=ax, legend=False, alpha=1.0)
    for points in ax.collections:
        points.set_antialiased(False)
        points.set_linewidth(0)
    ax.set_title(title, fontsize=8)
