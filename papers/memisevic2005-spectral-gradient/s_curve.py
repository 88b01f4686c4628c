"""E0.5 to E0.8: SNE of the s-curve, quasi-Newton methods, and the number of coordinates."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from common import (
    Criterion,
    Lab,
    Problem,
    at,
    curve,
    descend,
    draw_curves,
    for_steps,
    gaussian_sne,
    in_pairs,
    learning_curves,
    random_start,
)
from matplotlib import pyplot as plt

from manifoldry.datasets import make_helix, make_s_curve
from manifoldry.objectives import UKRObjective
from manifoldry.optimize import (
    LBFGS,
    Armijo,
    ConjugateGradient,
    DeflatedPower,
    EveryStep,
    Filter,
    Heat,
    Identity,
    Power,
    StrongWolfe,
    clustering_matrix,
    kernel_pca_matrix,
)

H = 0.5  # bandwidth, as published
NU = 20  # as published
SMALL = 0.01  # spread of the start; not published, larger values remove the early gain
SEARCHES = {"near-exact": StrongWolfe(c2=0.1), "one or two trials": Armijo()}


def problem(seed: int, n: int, filters: Any) -> Problem:
    X = make_s_curve(n, noise=0.05, random_state=seed).X
    return Problem(gaussian_sne(X, H), random_start(n, 2, SMALL, seed), filters(X))


def five(X: Any) -> dict[str, Filter]:
    """The curves of Figs. 5 and 6, under their names there."""
    M, kernel = clustering_matrix(X, gamma=1 / H), kernel_pca_matrix(X, gamma=1 / H)
    return {
        "SNE": Identity(),
        "spec-clus": Power(NU, matrix=M, schedule=EveryStep()),
        "pow-clus": DeflatedPower(NU, matrix=M, schedule=EveryStep()),
        "spec-kpca": Power(NU, matrix=kernel, schedule=EveryStep()),
        "pow-kpca": DeflatedPower(NU, matrix=kernel, schedule=EveryStep()),
    }


# ── E0.5 and E0.6 ────────────────────────────────────────────────────────────────────────────


def two_hundred_points(lab: Lab) -> Iterator[Criterion]:
    steps, seeds = lab.choose(150, 12), lab.seeds(20)
    for name, line_search in SEARCHES.items():
        make = partial(problem, n=200, filters=five)
        curves = learning_curves(lab, make, seeds, steps, line_search)
        yield from early_rows("E0.5", f"200 points, {name} line search", curves)
        yield from final_rows(f"200 points, {name} line search", curves)
    draw_five(lab, curves, "two_hundred_points", "s-curve, 200 points")


def five_hundred_points(lab: Lab) -> Iterator[Criterion]:
    steps = lab.choose(100, 15)
    make = partial(problem, n=500, filters=five)
    curves = learning_curves(lab, make, lab.seeds(10), steps)
    setting = "500 points, one or two trials line search"
    yield from early_rows("E0.6", setting, curves)
    plain = at(curves["SNE"], -1)
    for name in ("spec-clus", "pow-clus"):
        final = at(curves[name], -1)
        yield row(
            "E0.6",
            f"{name}, {setting}: median at the end",
            "no better; pow slightly worse",
            "within 15 % of plain",
            f"{final:.4f}; plain {plain:.4f}",
            abs(final / plain - 1) <= 0.15,
            curves,
        )
    draw_five(lab, curves, "five_hundred_points", "s-curve, 500 points")


def row(
    id: str,
    what: str,
    published: str,
    asked: str,
    measured: str,
    passed: bool,
    curves: Any,
) -> Criterion:
    n = len(curves["SNE"])
    return Criterion(id, what, published, asked, measured, passed, seeds=n)


def early_rows(id: str, setting: str, curves: Any) -> Iterator[Criterion]:
    clus, plain = at(curves["spec-clus"], 3), at(curves["SNE"], 3)
    yield row(
        id,
        f"spec-clus, {setting}: median after 3 searches",
        "significant speed-up at the beginning",
        "< .7 × plain",
        f"{clus:.3f}; plain {plain:.3f}",
        clus < 0.7 * plain,
        curves,
    )
    kernel, plain = at(curves["spec-kpca"], 10), at(curves["SNE"], 10)
    yield row(
        id,
        f"spec-kpca, {setting}: median after 10 searches",
        "slower than plain at the beginning",
        "≥ plain",
        f"{kernel:.3f}; plain {plain:.3f}",
        kernel >= plain,
        curves,
    )


def final_rows(setting: str, curves: Any) -> Iterator[Criterion]:
    plain = curves["SNE"][:, -1]
    for name in ("spec-clus", "pow-clus", "spec-kpca", "pow-kpca"):
        final, kernel = curves[name][:, -1], name.endswith("kpca")
        bound = 1.05 if kernel else 1.0
        yield row(
            "E0.5",
            f"{name}, {setting}: median at the end",
            "better minimum",
            f"≤ {bound:g} × plain" if kernel else "≤ plain",
            f"{np.median(final):.4f}; plain {np.median(plain):.4f}; "
            f"lower in {(final < plain).sum()} of {len(plain)}",
            float(np.median(final)) <= bound * float(np.median(plain)),
            curves,
        )


def draw_five(lab: Lab, curves: Any, name: str, title: str) -> None:
    figure, ax = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
    draw_curves(ax, curves, title)
    lab.save(figure, name)


# ── E0.7: conjugate gradients and quasi-Newton ───────────────────────────────────────────────


def smoothing(X: Any) -> dict[str, Filter]:
    M = clustering_matrix(X, gamma=1 / H)
    return {
        "plain": Identity(),
        "M^ν, every step": Power(NU, matrix=M, schedule=EveryStep()),
        "M^ν, on slow progress": Power(NU, matrix=M),
        "heat, on slow progress": Heat(40.0, matrix=M),
    }


def quasi_newton(lab: Lab) -> Iterator[Criterion]:
    steps = lab.choose(150, 60)
    methods = {"L-BFGS": LBFGS, "conjugate gradients": ConjugateGradient}
    drawn = {}
    for method, optimizer in methods.items():
        runs = in_pairs(lab, searched, [(optimizer, seed, steps) for seed in lab.seeds(20)])
        found = {name: [run[name] for run in runs] for name in runs[0]}
        drawn |= {f"{method}, {name}": np.array([c for c, _ in f]) for name, f in found.items()}
        for name in list(found)[1:]:
            yield quasi_row(f"{method}, {name}", found["plain"], found[name])
    figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
    draw_curves(ax, {k: v for k, v in drawn.items() if k.startswith("L-BFGS")}, "SNE, s-curve")
    lab.save(figure, "quasi_newton")


def searched(optimizer: Any, seed: int, steps: int) -> dict[str, tuple[Any, Any]]:
    """Values and evaluations after every step, by filter."""
    found, each = {}, problem(seed, 200, smoothing)
    for name, filter in each.filters.items():
        method = optimizer(filter, stopping=for_steps(steps))
        solution = method.minimize(each.objective, each.start)
        found[name] = curve(solution, steps), solution.history("evaluations")
    return found


def quasi_row(name: str, plain: list[Any], guided: list[Any]) -> Criterion:
    pairs = list(zip(plain, guided, strict=True))
    reached = [first_below(g, p[50]) for (p, _), (g, _) in pairs]
    ratio = np.array([g[-1] / p[-1] for (p, _), (g, _) in pairs])
    steps = zip(reached, plain, guided, strict=True)
    spent = [counted(e, k) / counted(e0, 50) for k, (_, e0), (_, e) in steps]
    return Criterion(
        "E0.7",
        f"{name}: steps to the value of the plain method after 50, and the end",
        "left open",
        "median ≤ 35 steps, final ≤ 1.1 × plain in every seed",
        f"{np.median(reached):.0f} steps, {np.median(spent):.2f} × the evaluations; final ratio "
        f"median {np.median(ratio):.2f}, worst {ratio.max():.2f}, lower in "
        f"{(ratio < 1).sum()} of {len(ratio)}",
        float(np.median(reached)) <= 35 and ratio.max() <= 1.1,
        seeds=len(ratio),
    )


def first_below(values: Any, bound: float) -> int:
    """Steps until the bound is reached; the number of steps plus one if it never is."""
    below = np.flatnonzero(values <= bound)
    return int(below[0]) if len(below) else len(values)


def counted(evaluations: Any, step: int) -> float:
    return float(evaluations[min(step, len(evaluations) - 1)])


# ── E0.8: the number of coordinates ──────────────────────────────────────────────────────────


def coordinates(lab: Lab) -> Iterator[Criterion]:
    steps = lab.choose(100, 20)
    sets = {"UKR of the helix": helix_gain, "SNE of the s-curve": s_curve_gain}
    for name, gain in sets.items():
        for when in ("after 5 searches", f"after {steps}"):
            k = 5 if when.startswith("after 5 ") else steps
            jobs = [[(seed, q, k) for seed in lab.seeds(10)] for q in (1, 2, 3)]
            ratios = [in_pairs(lab, gain, some) for some in jobs]
            medians = [float(np.median(r)) for r in ratios]
            yield Criterion(
                "E0.8",
                f"{name}: error of plain over that of M^ν {when}, 1, 2 and 3 coordinates",
                "works best for one",
                "decreasing",
                ", ".join(f"{m:.2f}" for m in medians),
                medians[0] > medians[1] > medians[2],
                seeds=len(ratios[0]),
            )


def gain(objective: Any, start: Any, M: Any, steps: int) -> float:
    guided = Power(NU, matrix=M, schedule=EveryStep())
    plain, better = (descend(objective, start, f, steps).value for f in (None, guided))
    return plain / better


def helix_gain(seed: int, q: int, steps: int) -> float:
    X = make_helix(200, random_state=seed).X
    start = random_start(200, q, 0.1, seed)
    return gain(UKRObjective(X), start, clustering_matrix(X, gamma=1.0), steps)


def s_curve_gain(seed: int, q: int, steps: int) -> float:
    X = make_s_curve(200, noise=0.05, random_state=seed).X
    start = random_start(200, q, SMALL, seed)
    return gain(gaussian_sne(X, H), start, clustering_matrix(X, gamma=1 / H), steps)
