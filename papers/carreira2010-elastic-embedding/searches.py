"""E2.6: speed of search directions."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from common import (
    REPULSIONS,
    Criterion,
    Lab,
    small_roll,
    spectral_start,
)
from matplotlib import pyplot as plt

from manifoldry.objectives import Bifurcation, Pairwise
from manifoldry.optimize import (
    DiagonalHessian,
    Filter,
    Identity,
    Jacobi,
    SpectralDirection,
    Stopping,
    resolve_optimizer,
)

MULTIPLES = (2.0, 5.0, 20.0, 100.0, 1e3, 1e4)  # of λ₁
STEPS = 400
FILTERS = {
    "gradient": Identity(),
    "fixed point": Jacobi(),
    "diagonal Hessian": DiagonalHessian(),
    "spectral direction": SpectralDirection(),
}
# Variants of the library: other initial steps, or memory.
NAMED = {
    "gradient, Barzilai–Borwein": "gradient",
    "conjugate gradients": "cg",
    "L-BFGS": "lbfgs",
    "L-BFGS with spectral direction": "spectral-lbfgs",
}
CLOSE = 1.01  # target relative to the lowest value of all methods


class Run(NamedTuple):
    """Values by number of evaluations, and the number of shortened steps."""

    values: Any
    evaluations: Any
    shortened: int

    def evaluations_to(self, value: float) -> float:
        reached = np.flatnonzero(self.values <= value)
        return float(self.evaluations[reached[0]]) if len(reached) else np.inf

    @property
    def steps(self) -> int:
        return len(self.values) - 1


def printed_search(objective: Pairwise, Y: Any, filter: Filter, steps: int) -> Run:
    """X ← X + η·P with P = −F·G: η = 1, halved until the value decreases enough.

    For plain gradients η starts at twice the last value.
    """
    bound = filter.operator_for(objective)
    value, G = objective.value_and_gradient(Y)
    values, evaluations, shortened, eta = [value], [1], 0, 1.0
    while len(values) <= steps and evaluations[-1] < 2 * steps:
        P, count = -bound.apply(G, Y), evaluations[-1]
        eta = 1.0 if bound.newton_like else 2 * eta
        while True:
            there, slope = objective.value_and_gradient(Y + eta * P)
            count += 1
            if there <= value + 1e-4 * eta * np.vdot(G, P) or eta < 1e-12:
                break
            eta /= 2
            shortened += 1
        if eta < 1e-12 or value - there <= 1e-12 * value:
            break
        Y, value, G = Y + eta * P, there, slope
        values.append(value)
        evaluations.append(count)
    return Run(np.array(values), np.array(evaluations), shortened)


def library_search(objective: Pairwise, Y: Any, name: str, steps: int) -> Run:
    rule = Stopping(max_iter=steps, tol=1e-7, value_tol=1e-12, gradient_tol=1e-10)
    found = resolve_optimizer(name, rule).minimize(objective, Y)
    return Run(found.history("value"), found.history("evaluations"), 0)


def all_runs(objective: Pairwise, steps: int) -> dict[str, Run]:
    Y = spectral_start(objective)
    runs = {name: printed_search(objective, Y, f, steps) for name, f in FILTERS.items()}
    return runs | {name: library_search(objective, Y, key, steps) for name, key in NAMED.items()}


def directions(lab: Lab) -> Iterator[Criterion]:
    seeds, steps = lab.seeds(5), lab.choose(STEPS, 100)
    multiples = lab.choose(MULTIPLES, MULTIPLES[:5])
    runs = {}
    for seed in seeds:
        objective = small_roll(lab, seed, REPULSIONS[0])
        first = Bifurcation.of(objective, 2).weight
        for m in multiples:
            runs[seed, m] = all_runs(objective.with_weight(m * first), steps)
    costs = {m: median_costs([runs[seed, m] for seed in seeds]) for m in multiples}
    draw_costs(lab, costs)
    yield from compared(costs, len(seeds), spread_of_degrees(lab, seeds))
    yield from shortened_steps([runs[key] for key in runs], list(runs), len(seeds))


def median_costs(runs: list[dict[str, Run]]) -> dict[str, float]:
    """Evaluations until a value within 1 % of the lowest of all methods, median of the seeds."""
    out = {}
    lowest = [min(run.values.min() for run in each.values()) for each in runs]
    for name in runs[0]:
        needed = [
            each[name].evaluations_to(CLOSE * low) for each, low in zip(runs, lowest, strict=True)
        ]
        out[name] = float(np.median(needed))
    return out


def spread_of_degrees(lab: Lab, seeds: Any) -> float:
    """Largest ratio of two degrees of attraction, median of the seeds."""
    degrees = [
        np.asarray(small_roll(lab, seed, REPULSIONS[0]).affinity.sum(axis=1)) for seed in seeds
    ]
    return float(np.median([d.max() / d.min() for d in degrees]))


def compared(
    costs: dict[float, dict[str, float]], seeds: int, degrees: float
) -> Iterator[Criterion]:
    def listed(name: str) -> str:
        return ", ".join(number(c[name]) for c in costs.values())

    near = [c for m, c in costs.items() if m <= 100]
    twice = all(c["fixed point"] <= c["gradient"] / 2 for c in near)
    at = ", ".join(f"{m:g}" for m in costs)
    yield Criterion(
        "E2.6",
        f"evaluations to 1.01 of the lowest value, λ/λ₁ = {at}: fixed point against gradient",
        "many times faster",
        "at most half as many for λ ≤ 100·λ₁",
        f"{listed('fixed point')} against {listed('gradient')} "
        f"(conjugate gradients {listed('conjugate gradients')}; degrees vary by a factor "
        f"{degrees:.1f})",
        twice,
        seeds=seeds,
    )
    no_more = all(c["spectral direction"] <= c["fixed point"] for c in costs.values())
    yield Criterion(
        "E2.6",
        "the same: spectral direction against fixed point",
        "(not in the publication)",
        "no more evaluations at any λ",
        f"{listed('spectral direction')} against {listed('fixed point')}",
        no_more,
        seeds=seeds,
    )
    fewer = all(c["diagonal Hessian"] <= c["fixed point"] for c in costs.values())
    yield Criterion(
        "E2.6",
        "the same: diagonal of the Hessian against fixed point",
        "even better directions",
        "no more evaluations at any λ",
        f"{listed('diagonal Hessian')} against {listed('fixed point')}",
        fewer,
        seeds=seeds,
    )
    best = all(
        c["L-BFGS with spectral direction"] <= min(c[name] for name in FILTERS)
        for c in costs.values()
    )
    yield Criterion(
        "E2.6",
        "the same: L-BFGS with the spectral direction against the best of the four",
        "(ours: the library's default)",
        "no more evaluations at any λ",
        f"{listed('L-BFGS with spectral direction')} (plain L-BFGS {listed('L-BFGS')})",
        best,
        seeds=seeds,
    )


def number(value: float) -> str:
    return "–" if np.isinf(value) else f"{value:.0f}"


def shortened_steps(
    runs: list[dict[str, Run]], keys: list[tuple[int, float]], seeds: int
) -> Iterator[Criterion]:
    multiples = sorted({m for _, m in keys})

    def fractions(name: str) -> dict[float, float]:
        """Halvings per step, all seeds together."""
        out = {}
        for m in multiples:
            some = [run[name] for run, (_, at) in zip(runs, keys, strict=True) if at == m]
            out[m] = sum(r.shortened for r in some) / sum(r.steps for r in some)
        return out

    fixed, diagonal = fractions("fixed point"), fractions("diagonal Hessian")
    at = ", ".join(f"{m:g}" for m in multiples)
    none = all(fraction == 0 for m, fraction in fixed.items() if m <= 100)
    yield Criterion(
        "E2.6",
        f"fixed point with η = 1, λ/λ₁ = {at}: halvings per step",
        "none, except near a bifurcation",
        "0 for λ ≤ 100·λ₁",
        ", ".join(f"{s:.3f}" for s in fixed.values()),
        none,
        seeds=seeds,
    )
    few = all(fraction < 0.05 for fraction in diagonal.values())
    yield Criterion(
        "E2.6",
        f"diagonal of the Hessian with η = 1, λ/λ₁ = {at}: halvings per step",
        "(not stated)",
        "< .05 at all λ",
        ", ".join(f"{s:.3f}" for s in diagonal.values()),
        few,
        seeds=seeds,
    )


def draw_costs(lab: Lab, costs: dict[float, dict[str, float]]) -> None:
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name in costs[2.0]:
        style = "o-" if name in FILTERS else "s--"
        ax.loglog(list(costs), [c[name] for c in costs.values()], style, label=name, markersize=4)
    ax.set_xlabel("λ/λ₁")
    ax.set_ylabel("evaluations to 1 % above the lowest")
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    lab.save(figure, "directions")
