"""E2.4, E2.5, E2.6 (convergence), E2.9: properties of minima and how to reach the lowest."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    EXACT,
    FAST,
    REPULSIONS,
    Criterion,
    Lab,
    constrained_run,
    draw_points,
    imbalance,
    minimize,
    powers,
    random_start,
    run_from_collapse,
    small_roll,
    small_sample,
    span,
    spectral_start,
    within,
)
from matplotlib import pyplot as plt
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist

from manifoldry.objectives import Bifurcation, Pairwise
from manifoldry.optimize import (
    Constrained,
    ConstrainedHomotopy,
    GradientDescent,
    Homotopy,
    Jacobi,
    SpectralDirection,
    Stopping,
)

# ── E2.4: large λ ────────────────────────────────────────────────────────────────────────────


def large_weights(lab: Lab) -> Iterator[Criterion]:
    values = np.geomspace(1e6, 1e9, 7)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for i, repulsion in enumerate(REPULSIONS):
        slopes, orders, spacings = [], [], []
        for seed in lab.seeds(5):
            maps = maps_at(small_roll(lab, seed, repulsion), values)
            spacings.append([float(np.median(nearest_squares(Y))) for Y in maps])
            slopes.append(float(np.polyfit(np.log(values), spacings[-1], 1)[0]))
            orders.append(bond_order(maps[-1]))
        axes[0].semilogx(values, spacings[0], ".-", label=repulsion)
        length = small_sample(lab, seed).coordinates[:, 0]
        draw_points(axes[i + 1], maps[-1], length, f"{repulsion}, λ = 1e9")
        yield Criterion(
            "E2.4",
            f"roll, {repulsion}: slope of the median squared distance to the nearest by ln λ, "
            "λ = 1e6…1e9",
            "scale grows logarithmically",
            "between .7 and 1.4",
            span(slopes),
            within(slopes, 0.7, 1.4),
            seeds=len(slopes),
        )
        yield Criterion(
            "E2.4",
            f"roll, {repulsion}, λ = 1e9: median |ψ₆| of points inside the map",
            "hexagonal grid",
            "> .6",
            span(orders),
            min(orders) > 0.6,
            seeds=len(orders),
        )
    axes[0].set_xlabel("λ", fontsize=8)
    axes[0].set_title("median squared distance to the nearest", fontsize=8)
    axes[0].legend(fontsize=7)
    lab.save(figure, "large-weights")


def maps_at(objective: Pairwise, values: Any) -> list[Any]:
    """Minimizers at some weights, the last ones of a homotopy."""
    run = run_from_collapse(objective, Homotopy())
    first = 1.05 * Bifurcation.of(objective, 2).weight
    for value in np.geomspace(first, values[0], 30)[:-1]:
        run.advance(float(value))
    return [run.advance(float(value), final=True).embedding for value in values]


def nearest_squares(Y: Any) -> Any:
    D = cdist(Y, Y, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    return D.min(axis=1)


def bond_order(Y: Any) -> float:
    """Median |ψ₆| = |mean of exp(6iθ)| over the six nearest neighbors, for interior points."""
    D = cdist(Y, Y)
    np.fill_diagonal(D, np.inf)
    bonds = Y[np.argsort(D, axis=1)[:, :6]] - Y[:, None]
    theta = np.sort(np.arctan2(bonds[..., 1], bonds[..., 0]), axis=1)
    gaps = np.diff(theta, axis=1, append=theta[:, :1] + 2 * np.pi)
    inside = gaps.max(axis=1) < np.radians(120)
    return float(np.median(np.abs(np.exp(6j * theta).mean(axis=1))[inside]))


# ── E2.5: stationary points ──────────────────────────────────────────────────────────────────


def stationary_points(lab: Lab) -> Iterator[Criterion]:
    rest = Stopping(max_iter=lab.choose(20000, 500), tol=1e-6, value_tol=0.0, gradient_tol=0.0)
    descent = GradientDescent(SpectralDirection(), stopping=rest)
    for value in (1e2, 1e4):
        found, steps, paths = [], [], []
        for seed in lab.seeds(5):
            objective = small_roll(lab, seed, REPULSIONS[0]).with_weight(value)
            solution = descent.minimize(objective, spectral_start(objective))
            found.append(imbalance(objective, solution.embedding))
            steps.append(solution.n_iter)
            paths.append(imbalance(objective, minimize(objective, value).embedding))
        for name, values, more in (
            ("spectral direction, tol 1e-6", found, f" in {min(steps)}…{max(steps)} steps"),
            ("homotopy with default tolerances", paths, ""),
        ):
            yield Criterion(
                "E2.5",
                f"roll, λ = {value:g}, {name}: ‖L_w X‖ over ‖L⁺X‖",
                "X in the nullspace of the learned Laplacian",
                "< 1e-3",
                powers(values) + more,
                max(values) < 1e-3,
                seeds=len(values),
            )


# ── global convergence ───────────────────────────────────────────────────────────────────────


def global_convergence(lab: Lab) -> Iterator[Criterion]:
    rest = Stopping(max_iter=lab.choose(20000, 200), tol=0.0, value_tol=0.0, gradient_tol=1e-7)
    search = GradientDescent(Jacobi(), stopping=rest)
    objective = small_roll(lab, 0, REPULSIONS[0])
    first = Bifurcation.of(objective, 2).weight
    for multiple in (20.0, 1e3):
        posed = objective.with_weight(multiple * first)
        found = [
            imbalance(posed, search.minimize(posed, random_start(posed, seed, 1.0)).embedding)
            for seed in lab.seeds(10)
        ]
        passed = max(found) < 1e-4
        yield Criterion(
            "E2.6",
            f"fixed point from random maps of size one, λ = {multiple:g}·λ₁: ‖L_w X‖ over ‖L⁺X‖",
            "converges from any start",
            "< 1e-4",
            powers(found),
            passed,
            seeds=len(found),
        )


# ── E2.9: ways of training ───────────────────────────────────────────────────────────────────


def ways_of_training(lab: Lab) -> Iterator[Criterion]:
    objectives = [small_roll(lab, seed, REPULSIONS[0]) for seed in lab.seeds(10)]
    for value in (1.0, 1e2, 1e4):
        posed = [objective.with_weight(value) for objective in objectives]
        cold = [FAST.minimize(o, random_start(o, seed)).value for seed, o in enumerate(posed)]
        spectral = [FAST.minimize(o, spectral_start(o)).value for o in posed]
        for name, rule in HOMOTOPIES.items():
            followed = [minimize(o, value, rule).value for o in posed]
            yield no_higher(f"roll, λ = {value:g}, {name}", followed, cold, spectral)
    yield from without_repulsion(objectives)


HOMOTOPIES = {
    "homotopy": Homotopy(),
    "homotopy from eigenmaps, constrained, of growing size": ConstrainedHomotopy(30),
    "homotopy from eigenmaps, constrained as published": ConstrainedHomotopy(30, grow_size=False),
}


def no_higher(
    name: str, followed: list[float], cold: list[float], spectral: list[float]
) -> Criterion:
    wins, as_good = (
        sum(a <= b * (1 + 1e-6) for a, b in zip(followed, others, strict=True))
        for others in (cold, spectral)
    )
    passed = wins >= round(0.8 * len(followed))
    return Criterion(
        "E2.9",
        f"{name}: value against that from a random start",
        "very good optima, but slow",
        "no higher in 8 of 10",
        f"in {wins} of {len(followed)}; median ratio "
        f"{np.median(np.divide(followed, cold)):.3f} (no higher than from eigenmaps in "
        f"{as_good}, ratio {np.median(np.divide(followed, spectral)):.3f})",
        passed,
        seeds=len(followed),
    )


def without_repulsion(objectives: list[Pairwise]) -> Iterator[Criterion]:
    """Whether λ = 0 under YᵀDY = I is eigenmaps, from their own start and from a random one."""
    begun, searched = [], []
    for seed, objective in enumerate(objectives):
        degree = np.asarray(objective.attraction.sum(axis=1)).ravel()
        springs, eigenmaps = objective.with_weight(0.0), spectral_start(objective)
        run = constrained_run(objective, ConstrainedHomotopy())
        run.advance(Bifurcation.of(objective, 2).weight)
        begun.append(angle(run.path.embeddings[0], eigenmaps, degree))
        found = Constrained(EXACT, degree).minimize(springs, random_start(springs, seed, 1.0))
        searched.append(angle(found.embedding, eigenmaps, degree))
    for name, angles in (
        ("first map of a constrained homotopy", begun),
        ("minimum found from a random map", searched),
    ):
        yield Criterion(
            "E2.9",
            f"roll, λ = 0 with XᵀD⁺X = I, {name}: angle to `LaplacianEigenmaps`",
            "begins at Laplacian eigenmaps",
            "< 1e-4",
            powers(angles),
            max(angles) < 1e-4,
            seeds=len(angles),
        )


def angle(Y: Any, Z: Any, mass: Any) -> float:
    """Largest angle between the subspaces of two embeddings, about their means."""
    Y, Z = (A - np.average(A, axis=0, weights=mass) for A in (Y, Z))
    return float(subspace_angles(Y, Z)[0])
