"""E2.3, E5.5: the values of λ at which the rank of the embedding becomes 1 and 2."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    EXACT,
    REPULSIONS,
    Criterion,
    Lab,
    decimals,
    elastic_on,
    learned_laplacian,
    powers,
    random_start,
    run_from_collapse,
    small_roll,
    span,
    within,
)
from matplotlib import pyplot as plt
from scipy.linalg import eigh

from manifoldry.objectives import Bifurcation, Pairwise
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize import Homotopy

# ── E2.3: the first bifurcation ──────────────────────────────────────────────────────────────


def bifurcation(lab: Lab) -> Iterator[Criterion]:
    for repulsion in REPULSIONS:
        objectives = {
            f"roll of {lab.choose(300, 120)}": [
                small_roll(lab, s, repulsion) for s in lab.seeds(5)
            ],
            "12 points at random": [twelve_points(s, repulsion) for s in lab.seeds(5)],
        }
        for name, some in objectives.items():
            yield from critical_weight(f"{name}, {repulsion}", some)
            yield from either_side(f"{name}, {repulsion}", some)


def twelve_points(seed: int, repulsion: str) -> Pairwise:
    X = 4 * np.random.default_rng(seed).standard_normal((12, 3))
    return elastic_on(X, 11, repulsion)


def reference_weight(objective: Pairwise) -> float:
    """The smallest eigenvalue of (L⁺, L⁻) on vectors that sum to zero, as published."""
    n = objective.n
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]
    plus = graph_laplacian(objective.attraction).toarray()
    minus = objective.repulsion_at_zero.laplacian()
    return float(eigh(basis.T @ plus @ basis, basis.T @ minus @ basis, eigvals_only=True)[0])


def critical_weight(name: str, objectives: list[Pairwise]) -> Iterator[Criterion]:
    found = [Bifurcation.of(objective, 2) for objective in objectives]
    exact = [reference_weight(objective) for objective in objectives]
    errors = [abs(b.weight / w - 1) for b, w in zip(found, exact, strict=True)]
    yield Criterion(
        "E2.3",
        f"{name}: `Bifurcation.weight` against the smallest eigenvalue of (L⁺, L⁻)",
        "λ₁ where L⁺ − λL⁻ ceases to be positive",
        "relative error ≤ 1e-8",
        f"{max(errors):.0e} (λ₁ {span(exact, 4)})",
        max(errors) <= 1e-8,
        seeds=len(found),
        identity=True,
    )
    low = [b.lower / w for b, w in zip(found, exact, strict=True)]
    high = [b.upper / w for b, w in zip(found, exact, strict=True)]
    yield Criterion(
        "E2.3",
        f"{name}: the bounds, over λ₁",
        "lower ≤ λ₁ ≤ upper",
        "lower ≤ 1 ≤ upper, to 1e-8",
        f"{span(low)} and {span(high)}",
        max(low) <= 1 + 1e-8 and min(high) >= 1 - 1e-8,
        seeds=len(found),
        identity=True,
    )


def either_side(name: str, objectives: list[Pairwise]) -> Iterator[Criterion]:
    below, flat, cosines = [], [], []
    for seed, objective in enumerate(objectives):
        critical = Bifurcation.of(objective, 1)
        start = random_start(objective, seed, 1e-3)
        collapsed = EXACT.minimize(objective.with_weight(0.95 * critical.weight), start)
        below.append(float(np.ptp(collapsed.embedding, axis=0).max()))
        opened = EXACT.minimize(objective.with_weight(1.05 * critical.weight), start)
        U, s, _ = np.linalg.svd(opened.embedding - opened.embedding.mean(axis=0), False)
        flat.append(float(s[1] / s[0]))
        cosines.append(float(abs(U[:, 0] @ critical.directions[:, 0])))
    yield Criterion(
        "E2.3",
        f"{name}: extent at .95·λ₁ from a random start",
        "X = 0",
        "≤ 1e-6",
        powers(below),
        max(below) <= 1e-6,
        seeds=len(below),
    )
    yield Criterion(
        "E2.3",
        f"{name}: map at 1.05·λ₁, σ₂/σ₁ and |cosine| with the eigenvector",
        "expands along the trailing eigenvector",
        "σ₂/σ₁ < 1e-3, |cosine| > .99",
        f"{powers(flat)}; {span(cosines, 4)}",
        max(flat) < 1e-3 and min(cosines) > 0.99,
        seeds=len(flat),
    )


# ── E5.5: the series of bifurcations ─────────────────────────────────────────────────────────


# Jitter, ten thousand times as much, and a step along the direction of negative curvature.
PATHS = {
    "default": Homotopy(tol=1e-4),
    "jitter .01": Homotopy(tol=1e-4, jitter=1e-2),
    "leaves saddles": Homotopy(tol=1e-4, curvature=True),
}


def series_of_bifurcations(lab: Lab) -> Iterator[Criterion]:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for ax, repulsion in zip(axes, REPULSIONS, strict=True):
        objectives = [small_roll(lab, seed, repulsion) for seed in lab.seeds(5)]
        critical = [Bifurcation.of(objective, 2).weight for objective in objectives]
        second = [second_bifurcation(objective) for objective in objectives]
        ratios = [b / a for a, b in zip(critical, second, strict=True)]
        yield Criterion(
            "E2.3",
            f"roll, {repulsion}: where the line of the first bifurcation opens into the plane",
            "dimension grows at some bifurcations",
            "at a larger λ",
            f"λ₂/λ₁ {span(ratios)}",
            all(np.isfinite(second)) and min(ratios) > 1,
            seeds=len(second),
        )
        for name, rule in PATHS.items():
            paths = [past_both(lab, o, w, rule) for o, w in zip(objectives, critical, strict=True)]
            yield ranks_row(f"{repulsion}, {name}", paths, second)
        yield curvature_row(repulsion, paths)
        draw_path(ax, paths[0], critical[0], second[0], repulsion)
    lab.save(figure, "bifurcations")


def second_bifurcation(objective: Pairwise, factor: float = 1.05) -> float:
    """λ₂: the value at which an embedding on a line becomes a saddle point.

    Perpendicular to the line the Hessian is four times the learned Laplacian, which is zero for
    translations and rotations: at λ₂ it gets a negative eigenvalue.
    """
    run = run_from_collapse(objective, Homotopy(), d=1)
    run.optimizer = EXACT
    value = 1.05 * Bifurcation.of(objective, 1).weight
    for _ in range(300):
        Y = run.advance(value, final=True).embedding
        lowest = np.linalg.eigvalsh(learned_laplacian(objective.with_weight(value), Y))[0]
        if lowest < -1e-9:
            return value
        value *= factor
    return np.inf


def past_both(lab: Lab, objective: Pairwise, critical: float, rule: Homotopy) -> Any:
    run = run_from_collapse(objective, rule)
    for value in critical * np.geomspace(0.5, 50, lab.choose(24, 10)):
        run.advance(float(value))
    return run.path


def ranks_row(name: str, paths: list[Any], second: list[float]) -> Criterion:
    ranks = [path.column("rank") for path in paths]
    opened = [p.column("parameter")[np.argmax(r == 2)] for p, r in zip(paths, ranks, strict=True)]
    late = [a / b for a, b in zip(opened, second, strict=True)]
    grows = all((np.diff(r) >= 0).all() and set(r) == {0, 1, 2} for r in ranks)
    passed = grows and within(late, 1 / 1.3, 1.3)
    return Criterion(
        "E5.5",
        f"roll, {name}: rank along the path, first λ of rank 2 over λ₂",
        "a series of bifurcations, dim X grows at some",
        "0, 1, 2 in this order; within a factor 1.3 (the steps of the path are 1.22)",
        f"{'0, 1, 2' if grows else 'another order'}; {decimals(late)}",
        passed,
        seeds=len(paths),
    )


def curvature_row(repulsion: str, paths: list[Any]) -> Criterion:
    fractions = [float((path.column("curvature") > -1e-6).mean()) for path in paths]
    passed = min(fractions) == 1
    return Criterion(
        "E5.5",
        f"roll, {repulsion}: smallest curvature along the path, but for rigid motions",
        "an eigenvalue becomes negative at bifurcations",
        "≥ 0 (to 1e-6) at every map of the path: it has left all saddles",
        f"at {span(fractions)} of the maps",
        passed,
        seeds=len(paths),
    )


def draw_path(ax: Any, path: Any, first: float, second: float, title: str) -> None:
    at = path.column("parameter") / first
    ax.axhline(0, color="0.7", linewidth=0.8)
    ax.semilogx(at, path.column("curvature"), ".-", label="smallest curvature")
    ax.set_yscale("symlog", linthresh=1e-5)
    for x, name in ((1.0, "λ₁"), (second / first, "λ₂")):
        ax.axvline(x, color="0.5", linestyle=":")
        ax.annotate(name, (x, ax.get_ylim()[1]), fontsize=8)
    ranks = ax.twinx()
    ranks.step(at, path.column("rank"), where="mid", color="C1", label="rank")
    ranks.set_yticks([0, 1, 2])
    ax.set_xlabel("λ/λ₁", fontsize=8)
    ax.set_ylabel("smallest curvature", fontsize=8)
    ranks.set_ylabel("rank of the map", fontsize=8)
    ax.set_title(title, fontsize=8, pad=14)
