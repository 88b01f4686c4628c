"""Lecture notes on non-linear dimension reduction (spring 2013).

Run ``python papers/lecture-notes/run.py``; README.md in this folder describes the tests.
References are implemented in plain numpy, with the formulas of the notes.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib import pyplot as plt
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

from manifoldry import LLE, PCA, ClassicalMDS, Isomap, KernelPCA, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import RankWarning, ShortCircuitWarning
from manifoldry.metrics import procrustes
from manifoldry.neighbors.neighborhoods import barycentric_weights
from manifoldry.neighbors.short_circuits import ShortCircuits
from manifoldry.plotting import plot_learning_curve, plot_spectrum

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from angles import conformal
from faces import faces, interpolation, rings
from kernels_and_landmarks import data_driven_kernels, landmarks_by_weights
from report import Criterion, Lab, main, within
from unfolding import dimensions, exact, rolls

SIZES = (300, 40)  # more and fewer points than the 64 pixels of a digit


def digits(n, seed):
    """Center n digits, as the notes do before anything else."""
    X = load_digits().data
    X = X[np.random.default_rng(seed).permutation(len(X))[:n]]
    return X - X.mean(axis=0)


def samples(lab):
    seeds = lab.seeds(5)
    return [digits(n, seed) for n in SIZES for seed in seeds]


def relative(A, B):
    """Largest difference of two arrays, relative to the largest entry of the second."""
    return float(np.abs(A - B).max() / np.abs(B).max())


def row(lab, id, what, published, errors, note=""):
    """One line of the table for an identity: the worst error of all samples against 1e-10."""
    return Criterion(
        id,
        what,
        published,
        "relative error ≤ 1e-10",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= 1e-10,
        note=note,
        seeds=len(lab.seeds(5)),
        identity=True,
    )


# ── E4.2: scaling from distances ─────────────────────────────────────────────────────────────


def gram_from_distances(delta):
    """Inner products of centered points from their distances alone, by the formula of the notes."""
    n, squares = len(delta), delta**2
    rows, columns = squares.sum(axis=1)[:, None], squares.sum(axis=0)[None, :]
    return rows / (2 * n) + columns / (2 * n) - squares.sum() / (2 * n**2) - squares / 2


def scaling(lab: Lab) -> Iterator[Criterion]:
    gram, full, tails, losses = [], [], [], []
    for X in samples(lab):
        delta = squareform(pdist(X))
        G = gram_from_distances(delta)
        gram.append(relative(G, X @ X.T))
        Y = ClassicalMDS(np.linalg.matrix_rank(X), metric="precomputed").fit_transform(delta)
        full.append(relative(Y @ Y.T, G))
        for d in (1, 2, 5, 10, 20):
            tail, loss = truncation_errors(G, delta, d)
            tails.append(tail)
            losses.append(loss)
    yield row(lab, "E4.2", "Gram matrix from distances against X Xᵀ", "equal", gram)
    yield row(lab, "E4.2", "classical MDS, all coordinates: Y Yᵀ against G", "err = 0", full)
    yield row(lab, "E4.2", "err of d = 1…20 coordinates against Σλ² of the rest", "equal", tails)
    yield row(lab, "E4.2", "`ClassicalMDS.loss_` against err / ΣG²", "(ours)", losses)


def truncation_errors(G, delta, d):
    """Relative errors of err(Y) = sum of the remaining λ², and of `loss_` = err(Y)."""
    model = ClassicalMDS(d, metric="precomputed").fit(delta)
    err = ((G - model.embedding_ @ model.embedding_.T) ** 2).sum()
    tail = (np.linalg.eigvalsh(G)[:-d] ** 2).sum()
    return abs(err / tail - 1), abs(model.loss_ * (G**2).sum() / err - 1)


# ── E4.3: PCA and scaling are two sides of one decomposition ─────────────────────────────────


FRAMES = "in the notes F Fᵀ = I, but F is N × D: its columns can be orthonormal, its rows cannot"
FACTOR = "the notes' proof is about XᵀX; with the 1/N of their K the eigenvalues differ by N"
FRACTION = (
    "the printed ratio is right for MDS, which approximates inner products. PCA leaves out squared "
    "distances, which add up as Σλ; for it the printed ratio is too optimistic (figure)"
)


def two_sides(lab: Lab) -> Iterator[Criterion]:
    found = [decomposition_errors(X) for X in samples(lab)]
    same, product, frames, factor = zip(*found, strict=True)
    fractions = [fraction_error(X, d) for X in samples(lab) for d in (2, 10)]
    yield row(
        lab, "E4.3", "PCA of X against classical MDS of its distances", "closely related", same
    )
    yield row(lab, "E4.3", "X = F·D·E with F, D from MDS and E from PCA", "equal", product)
    yield row(lab, "E4.3", "FᵀF = I and E Eᵀ = I", "F Fᵀ = I, E Eᵀ = I", frames, FRAMES)
    yield row(
        lab, "E4.3", "eigenvalues of G are N times those of K = XᵀX/N", "same", factor, FACTOR
    )
    yield row(
        lab, "E4.3", "fraction kept: PCA Σλ/Σλ, MDS Σλ²/Σλ²", "Σλ²/Σλ² both", fractions, FRACTION
    )
    draw_scaling(lab)


def decomposition_errors(X):
    n, rank = len(X), np.linalg.matrix_rank(X)
    pca = PCA(rank).fit(X)
    mds = ClassicalMDS(rank, metric="precomputed").fit(squareform(pdist(X)))
    signs = np.sign((pca.embedding_ * mds.embedding_).sum(axis=0))
    D = np.sqrt(mds.eigenvalues_)
    F, E = signs * mds.embedding_ / D, pca.components_
    covariance = np.linalg.eigvalsh(X.T @ X / n)[::-1][:rank]
    return (
        relative(mds.embedding_ * signs, pca.embedding_),
        relative((F * D) @ E, X),
        max(relative(F.T @ F, np.eye(rank)), relative(E @ E.T, np.eye(rank))),
        relative(mds.eigenvalues_, n * covariance),
    )


def fraction_error(X, d):
    """Errors of the fractions of both estimators relative to their definitions."""
    pca, mds = PCA(d).fit(X), ClassicalMDS(d).fit(X)
    left_out = ((X - pca.inverse_transform(pca.embedding_)) ** 2).sum() / (X**2).sum()
    G = X @ X.T
    strain = ((G - mds.embedding_ @ mds.embedding_.T) ** 2).sum() / (G**2).sum()
    return max(abs(1 - pca.explained_variance_ratio_.sum() - left_out), abs(mds.loss_ - strain))


def draw_scaling(lab: Lab) -> None:
    X, d = digits(SIZES[0], 0), np.arange(1, 31)
    values = np.linalg.eigvalsh(X @ X.T)[::-1]
    plain, squared = (np.cumsum(v)[: len(d)] / v.sum() for v in (values, values**2))
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained")
    plot_spectrum(PCA(len(d)).fit(X).eigenvalues_, 10, ax=axes[0], title="eigenvalues of G")
    curves = {"Σλ² of the rest / Σλ²": (d, 1 - squared)}
    look = {"xlabel": "coordinates d", "ylabel": ""}
    plot_learning_curve(curves, ax=axes[1], log="y", title="err / ΣG²", **look)
    losses = [ClassicalMDS(k).fit(X).loss_ for k in d]
    axes[1].plot(d, losses, "o", color="#2b2b2b", markersize=3, label="ClassicalMDS.loss_")
    axes[1].legend(frameon=False, fontsize=9)
    fractions = {"Σλ²/Σλ² (printed)": (d, squared), "Σλ/Σλ (PCA's)": (d, plain)}
    plot_learning_curve(fractions, ax=axes[2], title="fraction kept", **look)
    lab.save(figure, "scaling")


# ── E4.9: kernel PCA with a Gaussian kernel, a local isometry? ───────────────────────────────

SMALL = 0.1  # "small" distances: β·d² ≤ 0.1, where (1 − exp(−βd²))/βd² ≥ 0.952 by Taylor


def squared_ratios(X, beta, n_coordinates):
    """Squared distances βd² of all pairs, and squared embedding distances divided by 2βd²."""
    with warnings.catch_warnings():
        # All coordinates are requested, so some of them are below rounding errors.
        warnings.simplefilter("ignore", RankWarning)
        Y = KernelPCA(len(X) - 1, gamma=beta).fit_transform(X)
    t = beta * pdist(X, "sqeuclidean")
    return t, {d: pdist(Y[:, :d], "sqeuclidean") / (2 * t) for d in n_coordinates}


def local_isometry(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(500, 200)
    cases = {
        "Swiss roll, β = 1/250": ([make_swiss_roll(n, random_state=s).X for s in seeds], 1 / 250),
        "Swiss roll, β = 1/25": ([make_swiss_roll(n, random_state=s).X for s in seeds], 1 / 25),
        "digits, β = 1/5000": ([digits(n, s) for s in seeds], 1 / 5000),
    }
    for name, (data, beta) in cases.items():
        near = [near_ratios(X, beta) for X in data]
        yield isometry_criterion(name, near)
    draw_isometry(lab, make_swiss_roll(n, random_state=0).X, 1 / 250)


def near_ratios(X, beta):
    """Ratios of the pairs at small distance, with all coordinates and with the first two."""
    t, ratio = squared_ratios(X, beta, (2, len(X) - 1))
    return ratio[len(X) - 1][t <= SMALL], ratio[2][t <= SMALL]


def isometry_criterion(name, near):
    full, two = (np.concatenate(ratios) for ratios in zip(*near, strict=True))
    return Criterion(
        "E4.9",
        f"{name}, all coordinates: ‖Δy‖²/d² of the {len(full)} pairs with βd² ≤ {SMALL}",
        "approximately a local isometry",
        "2β·(0.95…1.05)",
        f"2β·({full.min():.3f}…{full.max():.3f})",
        within(full, 0.95, 1.05),
        note=f"with two coordinates instead of all, the median is 2β·{np.median(two):.2f}",
        seeds=len(near),
        identity=True,
    )


def draw_isometry(lab: Lab, X, beta) -> None:
    """Plot ratios of distances in embedding and data, by distance."""
    counts = {"all coordinates": len(X) - 1, "first 10": 10, "first 5": 5, "first 2": 2}
    t, ratios = squared_ratios(X, beta, counts.values())
    curves = {name: quantile_curve(t, ratios[d]) for name, d in counts.items()}
    ax = plot_learning_curve(curves, log="x", xlabel="β·d²", ylabel="‖Δy‖² / 2β·d²")
    ax.axhspan(0.95, 1.05, color="#8a8a8a", alpha=0.2, linewidth=0, zorder=0)
    ax.axvline(SMALL, color="#8a8a8a", linewidth=0.8, linestyle=":")
    ax.annotate("small ←", (SMALL, 0), xytext=(-4, 0), textcoords="offset points", ha="right")
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    lab.save(ax.figure, "isometry")


def quantile_curve(t, ratio, n_bins=25):
    """Median of the ratio in bins of t, and distances to the outer deciles."""
    bins = np.digitize(t, np.geomspace(3e-3, t.max(), n_bins))
    inside = [bins == b for b in np.unique(bins)]
    low, middle, high = np.array([np.quantile(ratio[i], [0.1, 0.5, 0.9]) for i in inside]).T
    center = np.array([np.exp(np.log(t[i]).mean()) for i in inside])
    return center, middle, np.array([middle - low, high - middle])


# ── E4.1, E4.5, E4.10: Isomap ────────────────────────────────────────────────────────────────


def recovery(lab: Lab) -> Iterator[Criterion]:
    sizes, seeds = lab.choose((500, 1000, 2000, 4000), (300, 600)), lab.seeds(5)
    errors = np.array([[roll_error(n, seed) for n in sizes] for seed in seeds])
    medians = np.median(errors, axis=0)
    shown = ", ".join(f"{e:.3f}" for e in medians)
    yield Criterion(
        "E4.1",
        f"Isomap of the Swiss roll, similarity error at N = {', '.join(map(str, sizes))}",
        "exact recovery as N grows",
        "decreasing, ≤ .05 at N = 2000",
        f"{shown} (medians of {len(seeds)})",
        bool((np.diff(medians) < 0).all() and (lab.quick or medians[2] <= 0.05)),
        seeds=len(seeds),
    )
    holes = np.median([roll_error(lab.choose(2000, 600), seed, hole=True) for seed in seeds])
    yield Criterion(
        "E4.1",
        "the same with a hole in the sheet",
        "convexity is needed",
        "error larger than without",
        f"{holes:.3f}",
        bool(holes > medians[min(2, len(medians) - 1)]),
        seeds=len(seeds),
    )


def roll_error(n, seed, hole=False):
    X, truth = make_swiss_roll(n, hole=hole, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortCircuitWarning)
        return procrustes(Isomap(2, n_neighbors=10).fit_transform(X), truth).error


def dimension(lab: Lab) -> Iterator[Criterion]:
    X = make_swiss_roll(lab.choose(1000, 400), random_state=1).X
    residual = Isomap(5, n_neighbors=10).fit(X).residual_variance_
    falls = -np.diff(residual)
    yield Criterion(
        "E4.5",
        "residual variance of Isomap with 1…5 coordinates",
        "shows the dimension",
        "elbow at 2",
        ", ".join(f"{r:.4f}" for r in residual),
        bool(falls[0] > 10 * np.abs(falls[1:]).max()),
    )
    values = LLE(5, n_neighbors=10).fit(X).eigenvalues_
    yield Criterion(
        "E4.5",
        "bottom eigenvalues of LLE",
        "do not show the dimension",
        "largest ratio of neighbors not after the second",
        ", ".join(f"{v:.1e}" for v in values),
        bool(np.argmax(values[1:] / values[:-1]) != 1),
    )


def shortcut(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(1000, 800)
    found = [bridge_effect(n, seed + 1) for seed in seeds]
    rises, flagged = (np.array(column) for column in zip(*found, strict=True))
    yield Criterion(
        "E4.10",
        "one point between two layers: residual variance against that without it",
        "shortcuts ruin Isomap",
        "at least 3 times",
        f"{rises.min():.0f} to {rises.max():.0f} times",
        bool((rises >= 3).all()),
        seeds=len(seeds),
    )
    yield Criterion(
        "E4.10",
        "the short-circuit check flags edges of that point and no others",
        "",
        "in all runs",
        f"{int(flagged.sum())}/{len(seeds)}",
        bool(flagged.all()),
        seeds=len(seeds),
    )


def bridge_effect(n, seed):
    """Residual variance added by a bridging point, and whether exactly this point is found."""
    X, coordinates = make_swiss_roll(n, random_state=seed)
    arc, height = coordinates.T
    middle = np.argsort(np.abs(height - np.median(height)))[: n // 5]
    D = np.linalg.norm(X[middle][:, None] - X[middle][None], axis=2)
    D[np.abs(arc[middle][:, None] - arc[middle][None]) < 25] = np.inf
    i, j = middle[list(np.unravel_index(np.argmin(D), D.shape))]
    bridged = np.vstack([X, (X[i] + X[j]) / 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortCircuitWarning)
        sound, broken = (
            Isomap(2, n_neighbors=10).fit(A).residual_variance_[1] for A in (X, bridged)
        )
    edges = ShortCircuits.of(NeighborGraph.build(bridged, 10)).edges
    return broken / sound, len(edges) > 0 and bool((edges == n).any(axis=1).all())


# ── E4.4: LLE's weights ──────────────────────────────────────────────────────────────────────


def invariance(lab: Lab) -> Iterator[Criterion]:
    errors = []
    for seed in lab.seeds(5):
        rng = np.random.default_rng(seed)
        local = rng.normal(size=(50, 10, 6))
        turned = 12.5 * local @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
        errors.append(relative(barycentric_weights(turned, 1e-3), barycentric_weights(local, 1e-3)))
    yield Criterion(
        "E4.4",
        "LLE's weights after rotation and scaling of neighborhoods",
        "invariant",
        "relative error ≤ 1e-8",
        f"{max(errors):.0e}",
        max(errors) <= 1e-8,
        seeds=len(errors),
        identity=True,
    )


# ── E4.12: growth ────────────────────────────────────────────────────────────────────────────


def growth(lab: Lab) -> Iterator[Criterion]:
    """Exponents of time in N; benchmarks/ has them for all methods, up to a million points."""
    cases = (
        ("Isomap", Isomap(n_neighbors=10), (1000, 2000, 4000), (1.7, 2.4), "2 to 2.3"),
        (
            "Isomap with 200 landmarks",
            Isomap(n_neighbors=10, n_landmarks=200),
            (5000, 20_000, 80_000),
            (0.8, 1.3),
            "1 to 1.2",
        ),
        ("LLE", LLE(n_neighbors=10), (5000, 20_000, 80_000), (0.8, 1.5), "1 to 1.4"),
    )
    for name, model, sizes, (low, high), published in cases:
        sizes = lab.choose(sizes, tuple(n // 10 for n in sizes))
        times = [min(seconds(model, n) for _ in range(3)) for n in sizes]
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        yield Criterion(
            "E4.12",
            f"{name}: exponent of its time from N = {sizes[0]} to {sizes[-1]}",
            published,
            f"between {low} and {high}",
            f"{exponent:.2f}",
            bool(low <= exponent <= high),
        )


def seconds(model, n):
    """Time of one fit to a Swiss roll."""
    X = make_swiss_roll(n, random_state=0).X
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start


if __name__ == "__main__":
    main(
        __file__,
        "Lecture notes on non-linear dimension reduction",
        [
            scaling,
            two_sides,
            local_isometry,
            recovery,
            invariance,
            dimension,
            shortcut,
            growth,
            data_driven_kernels,
            landmarks_by_weights,
            conformal,
            rolls,
            exact,
            dimensions,
            faces,
            rings,
            interpolation,
        ],
    )
