"""E4.6 and E4.7: maximum variance unfolding shows the dimension, and landmarks make it fast.

The notes give the semidefinite program and state that its rank reveals the dimension. Additional
tests: whether the program is solved (compared with a general solver, and with the bound of every
fit), and whether the embedding is the true sheet, compared with Isomap.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse

from manifoldry import PCA, Isomap, MaximumVarianceUnfolding
from manifoldry.datasets import make_s_curve, make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding, plot_learning_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab, not_yet

K = 6  # neighbors, the default of MaximumVarianceUnfolding
SEEDS = {400: 5, 1000: 3, 2000: 2}
METHODS = {
    "MVU": MaximumVarianceUnfolding(2),
    "MVU, 100 landmarks": MaximumVarianceUnfolding(2, n_landmarks=100),
    "MVU, 50 landmarks": MaximumVarianceUnfolding(2, n_landmarks=50),
    f"Isomap, {K} neighbors": Isomap(2, n_neighbors=K),
    "Isomap, its default": Isomap(2),
}
OURS = [name for name in METHODS if name.startswith("MVU")]
ISOMAPS = [name for name in METHODS if name.startswith("Isomap")]


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about nearby windings and zero coordinates
        return model.fit(X)


# ── E4.6, E4.7: rolls, with and without a hole ───────────────────────────────────────────────


@dataclass(frozen=True)
class Outcome:
    """Results of one fit: errors of the embedding and, for MVU, the quality of the solution."""

    map: Any
    rigid: float
    similar: float
    seconds: float
    processor: float  # seconds of processor time, which other processes hardly affect
    fraction: float = np.nan  # of the first two eigenvalues
    gain: float = np.nan  # variance relative to that of the data
    edge_error: float = np.nan
    map_edge_error: float = np.nan


def outcome(name, X, truth):
    start = np.array([perf_counter(), process_time()])
    model = fit(METHODS[name], X)
    seconds, processor = np.array([perf_counter(), process_time()]) - start
    rigid, similar = (procrustes(model, truth, how).error for how in ("rigid", "similarity"))
    shown = (model.embedding_, rigid, similar, seconds, processor)
    if name in ISOMAPS:
        return Outcome(*shown)
    gain = model.variance_ / ((X - X.mean(axis=0)) ** 2).sum()
    fraction = model.explained_variance_ratio_[:2].sum()
    return Outcome(*shown, fraction, gain, model.mean_edge_error_, model.map_edge_error_)


def study(lab):
    """Outcomes of every method by (hole, number of points), one per seed."""
    found = {}
    for hole, (n, count) in product((False, True), lab.choose(SEEDS, {110: 1}).items()):
        samples = [make_swiss_roll(n, hole=hole, random_state=seed) for seed in range(count)]
        # Roll by roll with all methods, so that other processes affect all methods.
        runs = [[outcome(name, *sample) for name in METHODS] for sample in samples]
        found[hole, n] = dict(zip(METHODS, zip(*runs, strict=True), strict=True))
    return found


def rolls(lab: Lab) -> Iterator[Criterion]:
    found = study(lab)
    smallest = min(n for _, n in found)
    yield from rank_rows(smallest, found[False, smallest]["MVU"])
    yield from sheet_rows(found)
    yield from length_rows(found)
    yield from landmark_rows(found)
    draw_maps(lab, found)
    draw_curves(lab, found)


def values(outcomes, field):
    return np.array([getattr(each, field) for each in outcomes])


def rank_rows(n, outcomes):
    """The criteria as they were set, for the default."""
    fraction, gain, edge = (values(outcomes, f) for f in ("fraction", "gain", "edge_error"))
    rank = "rank reveals the dimension"
    yield rank_row(
        n, "fraction of the first two eigenvalues", rank, "> .98", fraction, fraction > 0.98
    )
    yield rank_row(n, "variance over that of the roll", "maximal", "> 1", gain, gain > 1)
    yield rank_row(n, "mean error of edge lengths", "kept", "< 1 %", edge, edge < 0.01)


def rank_row(n, what, published, criterion, found, passed):
    return Criterion(
        "E4.6",
        f"MVU of the Swiss roll, N = {n}: {what}",
        published,
        criterion,
        f"{found.min():.4f} to {found.max():.4f}",
        passed.all(),
        seeds=len(found),
    )


def sheet_rows(found):
    """Errors relative to the sheet, compared with both Isomaps in every fit."""
    for hole, name in product((False, True), OURS):
        cells = {n: methods for (with_hole, n), methods in found.items() if with_hole == hole}
        worse = [f"N = {n}: {each}" for n, methods in cells.items() for each in lost(methods, name)]
        yield Criterion(
            "E4.6",
            f"{name}, roll {'with a' if hole else 'without'} hole: mean rigid (similarity) error, "
            f"against Isomap with {K} neighbors and with 10",
            "(ours)",
            f"{'less' if hole else 'no more'} than either Isomap's in every fit, both errors",
            "; ".join(f"N = {n}: {beside(methods, name)}" for n, methods in cells.items()),
            not worse,
            note=f"{len(worse)} comparisons are lost: {'; '.join(worse)}" if worse else "",
            seeds=max(len(methods[name]) for methods in cells.values()),
        )


def lost(methods, name):
    """Comparisons with Isomap in which the error is not the smaller one."""
    for isomap, field in product(ISOMAPS, ("rigid", "similar")):
        ours, theirs = values(methods[name], field), values(methods[isomap], field)
        for seed in np.flatnonzero(ours >= theirs):
            yield f"seed {seed}, {field}, {ours[seed]:.3f} against {theirs[seed]:.3f}"


def beside(methods, name):
    means = (
        f"{values(methods[each], 'rigid').mean():.3f} "
        f"({values(methods[each], 'similar').mean():.3f})"
        for each in (name, *ISOMAPS)
    )
    return "{} against {}, {}".format(*means)


def length_rows(found):
    for name in OURS:
        outcomes = [each for methods in found.values() for each in methods[name]]
        edge, on_map = values(outcomes, "edge_error"), values(outcomes, "map_edge_error")
        yield Criterion(
            "E4.6",
            f"{name}, all {len(outcomes)} rolls: mean error of edge lengths, worst fit",
            "(ours)",
            "< 0.5 %",
            f"{edge.max():.2%} (mean {edge.mean():.2%}; on the two coordinates of the map "
            f"{on_map.mean():.1%})",
            bool(edge.max() < 0.005),
            seeds=max(SEEDS.values()),
        )


def landmark_rows(found):
    """How much faster landmarks are, roll by roll."""
    n = max(n for _, n in found)
    full, *others = (
        [each for hole in (False, True) for each in found[hole, n][name]] for name in OURS
    )
    for name, outcomes in zip(OURS[1:], others, strict=True):
        fraction = values(outcomes, "fraction")
        wall, processor = (
            values(full, clock) / values(outcomes, clock) for clock in ("seconds", "processor")
        )
        seconds = [np.median(values(each, "seconds")) for each in (full, outcomes)]
        yield Criterion(
            "E4.7",
            f"{name}, N = {n}: how many times as fast as without, median of {len(wall)} rolls; "
            "fraction of the first two eigenvalues",
            "faster",
            "≥ 10 times, > .95",
            f"{np.median(wall):.1f} times ({wall.min():.1f} to {wall.max():.1f}; "
            f"{seconds[0]:.1f} s to {seconds[1]:.2f} s), {fraction.min():.4f} or more",
            bool(np.median(wall) >= 10 and fraction.min() > 0.95),
            note=f"by processor time {np.median(processor):.1f} times "
            f"({processor.min():.1f} to {processor.max():.1f})",
            seeds=len(wall) // 2,
        )


def draw_maps(lab: Lab, found) -> None:
    """Plot the roll with a hole: the true sheet and aligned embeddings."""
    n = lab.choose(1000, 110)
    X, truth = make_swiss_roll(n, hole=True, random_state=0)
    maps = {"truth": truth, "PCA": PCA(2).fit_transform(X)}
    maps |= {name: found[True, n][name][0].map for name in [*ISOMAPS, *OURS[:2]]}
    figure, axes = plt.subplots(2, 3, figsize=(8, 3.4), layout="constrained")
    for ax, (name, Y) in zip(axes.flat, maps.items(), strict=True):
        moved = procrustes(Y, truth, "rigid")
        title = name if name == "truth" else f"{name}: {moved.error:.3f}"
        shown = moved.aligned[::2]
        plot_embedding(shown, truth[::2, 0], ax=ax, legend=False, size=4, title=title)
    lab.save(figure, "unfolding")


def draw_curves(lab: Lab, found) -> None:
    """Errors and times by the number of points, on rolls with a hole."""
    cells = {n: methods for (hole, n), methods in found.items() if hole}
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.3), layout="constrained")
    for ax, field, label in zip(
        axes, ("rigid", "seconds"), ("rigid error", "seconds"), strict=True
    ):
        curves = {
            name: (list(cells), [values(m[name], field).mean() for m in cells.values()])
            for name in METHODS
        }
        plot_learning_curve(curves, ax=ax, log="xy", xlabel="points", ylabel=label)
    lab.save(figure, "unfolding-landmarks")


# ── E4.6: the program itself, by an interior-point solver ────────────────────────────────────


TOLERANCE = 0.005  # relative tolerance of lengths, the default
LIMITS = {"equal": "equal ± 0.5 %", "at_most": "at most + 0.5 %"}


def exact(lab: Lab) -> Iterator[Criterion]:
    if find_spec("cvxpy") is None:
        yield not_yet("E4.6", "the exact semidefinite program", "cvxpy, which is not here")
        return
    for n, count in lab.choose({40: 3, 70: 1}, {16: 1}).items():
        for constraint in LIMITS:
            yield exact_row(n, constraint, [compared(n, constraint, s) for s in range(count)])


def compared(n, constraint, seed):
    """Our variance and bound relative to the exact variance, and the excess of lengths."""
    X = make_swiss_roll(n, turns=0.75, random_state=seed).X
    model = fit(MaximumVarianceUnfolding(10, constraint=constraint), X)  # all directions
    best = exact_variance(X, model.edges_, constraint)
    i, j = model.edges_.T
    lengths = np.linalg.norm(X[i] - X[j], axis=1)
    change = np.linalg.norm(model.embedding_[i] - model.embedding_[j], axis=1) / lengths - 1
    off = (np.abs(change) if constraint == "equal" else change).max() - TOLERANCE
    return (model.embedding_**2).sum() / best, model.variance_bound_ / best, max(off, 0.0)


def exact_variance(X, edges, constraint):
    """The largest trace of K ⪰ 0 with K1 = 0 that keeps the lengths."""
    import cvxpy

    n, (i, j), rows = len(X), edges.T, np.arange(len(edges))
    squares = ((X[i] - X[j]) ** 2).sum(axis=1)
    unit = squares.mean()
    columns = np.concatenate([i * n + i, j * n + j, i * n + j])
    signs = np.repeat([1.0, 1.0, -2.0], len(edges))
    A = sparse.csr_array((signs, (np.tile(rows, 3), columns)), shape=(len(edges), n * n))
    K = cvxpy.Variable((n, n), PSD=True)
    kept = A @ cvxpy.vec(K, order="C")
    limits = [cvxpy.sum(K) == 0, kept <= (1 + TOLERANCE) ** 2 * squares / unit]
    if constraint == "equal":
        limits.append(kept >= (1 - TOLERANCE) ** 2 * squares / unit)
    program = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), limits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "inaccurate" means a gap between 1e-8 and 5e-5
        program.solve(solver="CLARABEL")
    if program.status not in ("optimal", "optimal_inaccurate"):
        raise RuntimeError(f"the interior-point solver stopped: {program.status}")
    return program.value * unit


def exact_row(n, constraint, found):
    ours, bound, off = np.array(found).T
    return Criterion(
        "E4.6",
        f"half a roll, N = {n}, edges {LIMITS[constraint]}: variance against the "
        "exact program's (Clarabel); our bound against it",
        "(ours)",
        "within 1 %; below by no more than its gap, 5e-5",
        f"{100 * (ours.min() - 1):+.2f} to {100 * (ours.max() - 1):+.2f} %, lengths exceeded by "
        f"at most {off.max():.2%}; {100 * (bound.min() - 1):+.2f} % or more",
        bool((np.abs(ours - 1) < 0.01).all() and (bound >= 1 - 5e-5).all()),
        seeds=len(found),
        identity=True,
    )


# ── E4.6: the dimension from the eigenvalues ─────────────────────────────────────────────────


def spiral(n, seed):
    return make_swiss_roll(n, random_state=seed).X[:, [0, 2]]


def sheet(n, seed):
    return make_swiss_roll(n, random_state=seed).X


def block(n, seed):
    third = np.random.default_rng(seed).uniform(0, 2, n)
    return np.column_stack([make_s_curve(n, random_state=seed).X, third])


SHAPES = {"spiral": (spiral, 1), "Swiss roll": (sheet, 2), "bent block in 4-d": (block, 3)}


def dimensions(lab: Lab) -> Iterator[Criterion]:
    n, seeds = lab.choose(400, 40), lab.seeds(lab.choose(5, 1))
    drawn = {}
    for name, (make, dimension) in SHAPES.items():
        found = [spectra(make(n, seed)) for seed in seeds]
        drawn[name] = found[0]
        yield dimension_row(name, dimension, found, n)
    draw_fractions(lab, drawn)


def spectra(X):
    """Fractions of the eigenvalues of three methods."""
    eigenvalues = {
        "MVU": fit(MaximumVarianceUnfolding(1), X).eigenvalues_,
        "Isomap": fit(Isomap(10, n_neighbors=K), X).eigenvalues_,
        "PCA": PCA(X.shape[1]).fit(X).eigenvalues_,
    }
    return {name: positive(each) / positive(each).sum() for name, each in eigenvalues.items()}


def positive(eigenvalues):
    return np.maximum(eigenvalues, 0.0)


def dimension_row(name, dimension, found, n):
    counts = {method: [int((each[method] > 0.01).sum()) for each in found] for method in found[0]}
    left = max(1 - each["MVU"][:dimension].sum() for each in found)
    others = ", ".join(f"{method} {counted(counts[method])}" for method in ("Isomap", "PCA"))
    return Criterion(
        "E4.6",
        f"{name}, N = {n}: eigenvalues of MVU above 1 % (of the first ten of Isomap, of PCA)",
        "rank reveals the dimension",
        f"{dimension} in every fit",
        f"{counted(counts['MVU'])}, all others together ≤ {left:.2%} ({others})",
        set(counts["MVU"]) == {dimension},
        note="" if set(counts["MVU"]) == {dimension} else f"by seed {counts['MVU']}",
        seeds=len(found),
    )


def counted(counts):
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def draw_fractions(lab: Lab, drawn) -> None:
    figure, axes = plt.subplots(1, len(drawn), figsize=(10, 3), layout="constrained", sharey=True)
    for ax, (name, fractions) in zip(axes, drawn.items(), strict=True):
        for offset, (method, each) in enumerate(fractions.items()):
            shown = each[:6]
            ax.bar(np.arange(1, len(shown) + 1) + 0.27 * (offset - 1), shown, 0.25, label=method)
        ax.axhline(0.01, color="#8a8a8a", linewidth=0.8, linestyle=":")
        ax.set(yscale="log", ylim=(1e-5, 1.3), xlabel="eigenvalue", title=name)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("fraction")
    axes[-1].legend(frameon=False, fontsize=9)
    lab.save(figure, "fractions")
