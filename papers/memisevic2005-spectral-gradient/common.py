"""Common code of the experiments: published objectives, a fixed number of steps, curves."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.objectives import Objective, Pairwise, sne
from manifoldry.optimize import Armijo, Filter, GradientDescent, Identity, Solution, Stopping

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion as Criterion
from report import Lab as Lab


@dataclass(frozen=True, eq=False)
class Problem:
    """The problem of one seed: an objective, a start, and the filters to compare."""

    objective: Objective
    start: Any
    filters: Mapping[str, Filter]


def gaussian_sne(X: Any, h: float) -> Pairwise:
    """SNE with one bandwidth and each point among its own neighbors: eqs. 1 to 3."""
    K = np.exp(-cdist(X, X, "sqeuclidean") / h)
    return sne(sparse.csr_array(K / K.sum(axis=1, keepdims=True)), include_self=True)


def random_start(n: int, dimension: int, scale: float, seed: int) -> Any:
    """Random points, with other seeds than the data."""
    return scale * np.random.default_rng(1000 + seed).standard_normal((n, dimension))


def for_steps(steps: int) -> Stopping:
    """A stopping rule after a fixed number of line searches."""
    return Stopping(max_iter=steps, tol=0, value_tol=0, gradient_tol=0)


def descend(
    objective: Objective,
    start: Any,
    filter: Filter | None = None,
    steps: int = 200,
    line_search: Any = Armijo(),  # noqa: B008 (frozen)
) -> Solution:
    """Gradient descent with line searches, the method of the publication."""
    method = GradientDescent(
        filter or Identity(), line_search=line_search, stopping=for_steps(steps)
    )
    return method.minimize(objective, start)


def curve(solution: Solution, steps: int) -> Any:
    """Values after 0, 1, … line searches; after a stop due to rounding, the last value."""
    values = solution.history("value")
    return np.pad(values, (0, steps + 1 - len(values)), mode="edge")


def learning_curves(
    lab: Lab,
    make: Callable[[int], Problem],
    seeds: Iterable[int],
    steps: int,
    line_search: Any = Armijo(),  # noqa: B008 (frozen)
) -> dict[str, Any]:
    """Values of every filter on the problem of every seed, (n_seeds, steps + 1)."""
    found = in_pairs(lab, curves_of, [(make, seed, steps, line_search) for seed in seeds])
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def curves_of(
    make: Callable[[int], Problem], seed: int, steps: int, line_search: Any
) -> dict[str, Any]:
    """Values of every filter on the problem of one seed."""
    problem = make(seed)
    return {
        name: curve(descend(problem.objective, problem.start, filter, steps, line_search), steps)
        for name, filter in problem.filters.items()
    }


def in_pairs(lab: Lab, task: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Run a task on each job's arguments, two at a time if it is worth starting a process."""
    workers = lab.choose(2, 1)
    return list(Parallel(n_jobs=workers)(delayed(task)(*job) for job in jobs))


def at(curves: Any, step: int) -> float:
    """Median over the runs of the value after so many line searches."""
    return float(np.median(curves[:, step]))


def draw_curves(ax: Any, curves: Mapping[str, Any], title: str) -> None:
    """Plot median learning curves on two logarithmic scales, as published."""
    for name, values in curves.items():
        steps = np.arange(1, values.shape[1])
        ax.plot(steps, np.median(values, axis=0)[1:], label=name, lw=1.3)
    ax.set(xscale="log", yscale="log", xlabel="line searches", ylabel="objective (median)")
    ax.set_title(title, fontsize=8)
    ax.legend(fontsize=6)


def decimals(values: Iterable[float], digits: int = 2) -> str:
    """Numbers formatted for a table: .93, 1.01."""
    return ", ".join(re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}") for value in values)


def span(values: Iterable[float], digits: int = 2) -> str:
    """The smallest and the largest of some values."""
    values = list(values)
    low, high = decimals([min(values)], digits), decimals([max(values)], digits)
    return low if low == high else f"{low}…{high}"
