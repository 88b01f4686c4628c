"""E5.1 and E5.2: larger sets, bandwidths of M, and minima over many sets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from common import Criterion, Lab, curve, descend, gaussian_sne, in_pairs, random_start
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits, load_iris

from manifoldry.affinity import Entropic
from manifoldry.datasets import (
    make_helix,
    make_hemisphere,
    make_partitioned_circle,
    make_s_curve,
    make_swiss_roll,
)
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives import Objective, Pairwise, UKRObjective, elastic, sne
from manifoldry.optimize import LBFGS, EveryStep, Filter, Heat, Power, Stopping, clustering_matrix
from manifoldry.optimize.guidance_matrix import neighborhood_gamma
from manifoldry.util.estimate import Estimate


def entropic_sne(X: Any, perplexity: float) -> Pairwise:
    """SNE with a perplexity and few neighbors, as it is used today."""
    return sne(probabilities(X, perplexity))


def probabilities(X: Any, perplexity: float) -> Any:
    graph = NeighborGraph.build(X, int(3 * perplexity))
    return Entropic(perplexity).fit(graph).conditional(graph)


# ── E5.1: sizes and bandwidths ───────────────────────────────────────────────────────────────

WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # h over the squared distance to the tenth neighbor
RULE = 3.0
NU = 20
# Points, line searches, seeds and bandwidths; fewer for larger sets.
SIZES = ((500, 60, 5, WIDTHS), (1000, 60, 5, WIDTHS), (2000, 40, 2, WIDTHS), (5000, 15, 1, (RULE,)))
QUICK = ((300, 10, 2, (1.0, 3.0)), (600, 10, 2, (1.0, 3.0)))
MAKERS: dict[str, Callable[..., Any]] = {
    "s-curve": lambda n, seed: make_s_curve(n, noise=0.05, random_state=seed).X,
    "roll": lambda n, seed: make_swiss_roll(n, noise=0.2, random_state=seed).X,
}


def sizes_and_bandwidths(lab: Lab) -> Iterator[Criterion]:
    tables: dict[str, dict[int, Any]] = {name: {} for name in MAKERS}
    for name, make in MAKERS.items():
        for n, steps, seeds, widths in lab.choose(SIZES, QUICK):
            jobs = [(make(n, seed), seed, steps, widths) for seed in range(seeds)]
            ratios = np.array(in_pairs(lab, of_plain, jobs))
            tables[name][n] = dict(zip(widths, np.median(ratios, axis=0), strict=True))
            yield size_row(name, n, steps, seeds, tables[name][n])
    yield from rule_rows(tables)
    draw_sizes(lab, tables)


def of_plain(X: Any, seed: int, steps: int, widths: tuple[float, ...]) -> Any:
    """Values with guidance relative to those without, after 5 and all steps, (bandwidths, 2)."""
    objective, start = entropic_sne(X, 20), random_start(len(X), 2, 0.01, seed)
    gamma = neighborhood_gamma(X)
    plain = curve(descend(objective, start, None, steps), steps)
    rows = []
    for width in widths:
        M = clustering_matrix(X, gamma=gamma / width)
        guided = descend(objective, start, Power(NU, matrix=M, schedule=EveryStep()), steps)
        rows.append((curve(guided, steps) / plain)[[5, steps]])
    return np.array(rows)


def size_row(name: str, n: int, steps: int, seeds: int, ratios: dict[float, Any]) -> Criterion:
    early, late = (
        "; ".join(f"{width:g}: {r[i]:.2f}" for width, r in ratios.items()) for i in (0, 1)
    )
    return Criterion(
        "E5.1",
        f"SNE, {name}, {n} points: value with M^ν over plain, by h in units of the squared "
        "distance to the tenth neighbor",
        "left open",
        f"with h = {RULE:g} units below 1, after 5 searches and after {steps}",
        f"after 5: {early}. After {steps}: {late}",
        max(ratios[RULE]) < 1,
        seeds=seeds,
    )


def rule_rows(tables: dict[str, dict[int, Any]]) -> Iterator[Criterion]:
    for name, table in tables.items():
        several = {n: ratios for n, ratios in table.items() if len(ratios) > 1}
        best = {n: min(ratios, key=lambda w: ratios[w][1]) for n, ratios in several.items()}
        lost = [ratios[RULE][1] / ratios[best[n]][1] for n, ratios in several.items()]
        yield Criterion(
            "E5.1",
            f"SNE, {name}: the h of the smallest value at the end, by number of points",
            "(ours: a rule for h)",
            f"at most a factor of four from {RULE:g} units at every size",
            ", ".join(f"{n}: {width:g}" for n, width in best.items())
            + f"; {RULE:g} units end {max(lost):.2f} times as high at most",
            all(RULE / 4 <= width <= RULE * 4 for width in best.values()),
        )
        gains = [ratios[RULE][1] for ratios in several.values()]
        yield Criterion(
            "E5.1",
            f"SNE, {name}: value with h = {RULE:g} units over plain at the end, as sets grow",
            "left open",
            "decreases with every size",
            ", ".join(f"{n}: {gain:.2f}" for n, gain in zip(several, gains, strict=True)),
            all(a > b for a, b in pairwise(gains)),
        )


def draw_sizes(lab: Lab, tables: dict[str, dict[int, Any]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained", sharey=True)
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        for n, ratios in table.items():
            ax.plot(list(ratios), [r[1] for r in ratios.values()], "o-", ms=3, label=f"{n} points")
        ax.axhline(1, color="0.6", lw=0.8)
        ax.set(xscale="log", yscale="log", xlabel="h / (distance to 10th neighbor)²")
        ax.set_title(f"SNE, {name}: value over plain at the end", fontsize=8)
        ax.legend(fontsize=6)
    lab.save(figure, "bandwidths")


# ── E5.2: minima over many sets ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Setting:
    """Data by seed, the objective, coordinates, and the spread of the start."""

    data: Callable[[int], Any]
    objective: Callable[[Any], Objective]
    dimension: int = 2
    spread: float = 0.01


def fifteen_neighbors(X: Any) -> Objective:
    return entropic_sne(X, 15)


def entropic_elastic(X: Any) -> Objective:
    P = probabilities(X, 15)
    return elastic((P + P.T) / (2 * len(X)), weight=100.0)


def some(rows: Any, n: int, seed: int) -> Any:
    return rows[np.random.default_rng(seed).permutation(len(rows))[:n]]


def circle(seed: int) -> Any:
    return make_partitioned_circle(200, random_state=seed).X


def roll(seed: int) -> Any:
    return make_swiss_roll(300, noise=0.2, random_state=seed).X


def s_curve(seed: int) -> Any:
    return make_s_curve(200, noise=0.05, random_state=seed).X


SETS = {
    "SNE, s-curve, h = ½": Setting(s_curve, lambda X: gaussian_sne(X, 0.5)),
    "SNE, partitioned circle": Setting(circle, fifteen_neighbors),
    "SNE, Swiss roll": Setting(roll, fifteen_neighbors),
    "SNE, hemisphere": Setting(
        lambda seed: make_hemisphere(200, noise=0.02, random_state=seed).X, fifteen_neighbors
    ),
    "SNE, digits": Setting(lambda seed: some(load_digits().data, 250, seed), fifteen_neighbors),
    "SNE, iris": Setting(lambda seed: load_iris().data, fifteen_neighbors),
    "UKR, helix, 1 coordinate": Setting(
        lambda seed: make_helix(250, random_state=seed).X, UKRObjective, 1, 0.1
    ),
    "UKR, s-curve": Setting(s_curve, UKRObjective, 2, 0.1),
    "elastic embedding, Swiss roll": Setting(roll, entropic_elastic),
}
GUIDES: dict[str, Callable[[Any], Filter]] = {
    "M^ν": lambda M: Power(NU, matrix=M, schedule=EveryStep()),
    "heat": lambda M: Heat(40.0, matrix=M),
}
WORSE = 1.02  # a larger ratio counts as worse, a ratio below its inverse as better


def many_sets(lab: Lab) -> Iterator[Criterion]:
    logs: dict[str, dict[str, Any]] = {guide: {} for guide in GUIDES}
    for name in list(SETS)[:: lab.choose(1, 3)]:
        jobs = [(name, seed, lab.choose(300, 40)) for seed in lab.seeds(10)]
        found = np.array(in_pairs(lab, minima, jobs))
        for i, guide in enumerate(GUIDES):
            logs[guide][name] = np.log(found[:, i + 1] / found[:, 0])
    for guide, by_set in logs.items():
        yield from (set_row(guide, name, ratios) for name, ratios in by_set.items())
        yield overall_row(guide, by_set)
    draw_sets(lab, logs)


def minima(name: str, seed: int, steps: int) -> list[float]:
    """Final values of plain and guided descent, 60 line searches each, followed by L-BFGS."""
    setting = SETS[name]
    X = setting.data(seed)
    objective = setting.objective(X)
    start = random_start(len(X), setting.dimension, setting.spread, seed)
    M = clustering_matrix(X, gamma=neighborhood_gamma(X) / RULE)
    finish = LBFGS(stopping=Stopping(max_iter=steps))
    filters = [None, *(guide(M) for guide in GUIDES.values())]
    ends = (descend(objective, start, filter, 60).embedding for filter in filters)
    return [finish.minimize(objective, Y).value for Y in ends]


def ratio_of(log: Estimate) -> Estimate:
    return Estimate(np.exp(log), float(np.exp(log.low)), float(np.exp(log.high)))


def set_row(guide: str, name: str, logs: Any) -> Criterion:
    ratio = ratio_of(Estimate.of_mean(logs))
    better, worse = (int((sign * logs > np.log(WORSE)).sum()) for sign in (-1, 1))
    return Criterion(
        "E5.2",
        f"{name}: minimum with {guide} over that without, same data and start",
        "not worse in general",
        "the interval of the mean ratio does not lie above 1",
        f"{ratio}; lower by 2 % in {better}, higher in {worse} of {len(logs)}",
        ratio.low <= 1,
        seeds=len(logs),
    )


def overall_row(guide: str, logs: dict[str, Any]) -> Criterion:
    ratio = ratio_of(Estimate.of_mean(np.array([values.mean() for values in logs.values()])))
    pairs = np.concatenate(list(logs.values()))
    better, worse = (int((sign * pairs > np.log(WORSE)).sum()) for sign in (-1, 1))
    return Criterion(
        "E5.2",
        f"all {len(logs)} sets: mean ratio with {guide}, interval over the sets",
        "not worse in general",
        "upper end of the interval below 1.05",
        f"{ratio}; of {len(pairs)} pairs lower by 2 % in {better}, higher in {worse}",
        ratio.high < 1.05,
        seeds=len(pairs) // len(logs),
    )


def draw_sets(lab: Lab, logs: dict[str, dict[str, Any]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for ax, (guide, by_set) in zip(axes, logs.items(), strict=True):
        for i, values in enumerate(by_set.values()):
            ax.plot(np.exp(values), np.full(len(values), i), "o", ms=3, alpha=0.5)
            ax.plot(np.exp(values.mean()), i, "k|", ms=12)
        ax.axvline(1, color="0.6", lw=0.8)
        ax.set(xscale="log", yticks=range(len(by_set)), yticklabels=list(by_set))
        ax.tick_params(labelsize=6)
        ax.set_title(f"minimum with {guide} over that without", fontsize=8)
    lab.save(figure, "minima")
