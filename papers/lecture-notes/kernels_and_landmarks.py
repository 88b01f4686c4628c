"""E5.7 and E5.8: remarks of the notes on kernels (page 6) and landmarks (page 3).

The notes only state that LLE's weights "can reconstruct" from landmarks. The construction used
here is that of landmark versions of semidefinite methods: the landmarks keep their positions, and
the other points minimize Σᵢ‖yᵢ − Σⱼ wᵢⱼyⱼ‖², a sparse linear system. "Directly" means the weights
of a point on its nearest landmarks alone.
"""

import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import splu
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from manifoldry import (
    LLE,
    LTSA,
    ClassicalMDS,
    DiffusionMaps,
    HessianLLE,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    NeighborGraph,
)
from manifoldry.datasets import make_s_curve, make_swiss_roll
from manifoldry.exceptions import ShortCircuitWarning
from manifoldry.metrics import procrustes
from manifoldry.neighbors.neighborhoods import barycentric_weights
from manifoldry.plotting import plot_embedding, plot_learning_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab

K = 12  # neighbors of all methods
CENTERED = {
    "classical MDS, city-block": ClassicalMDS(2, metric="cityblock"),
    "kernel PCA": KernelPCA(2),
    "Isomap": Isomap(2, n_neighbors=K),
    "LLE": LLE(2, n_neighbors=K),
    "LTSA": LTSA(2, n_neighbors=K, metric_fit=False),
    "Hessian LLE": HessianLLE(2, n_neighbors=K, metric_fit=False),
    "Laplacian eigenmaps, none": LaplacianEigenmaps(2, n_neighbors=K, normalization="none"),
}
DIVIDED = {
    "Laplacian eigenmaps, rw": LaplacianEigenmaps(2, n_neighbors=K),
    "Laplacian eigenmaps, sym": LaplacianEigenmaps(2, n_neighbors=K, normalization="sym"),
    "diffusion maps": DiffusionMaps(2, n_neighbors=K, affinity="gaussian"),
}
LENGTHS = ("classical MDS, city-block", "kernel PCA", "Isomap")  # coordinates √ℓ·v themselves


def roll(n, seed):
    return make_swiss_roll(n, random_state=seed).X


def digits(n, seed):
    X = load_digits().data
    return X[np.random.default_rng(seed).permutation(len(X))[:n]]


def fit(model, X):
    with warnings.catch_warnings():
        # With few points windings are as close as neighbors, which does not affect the identities.
        warnings.simplefilter("ignore", ShortCircuitWarning)
        return model.fit(X)


# ── E5.7: spectral methods as data-driven kernels ────────────────────────────────────────────


def data_driven_kernels(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(400, 200)
    samples = [(data, seed) for data in (roll, digits) for seed in seeds]
    for name, model in CENTERED.items():
        errors = [through_kernel_pca(model, data(n, seed), name) for data, seed in samples]
        yield kernel_row(f"{name}: kernel PCA of its kernel against its map", errors, len(seeds))
    for name, model in DIVIDED.items():
        found = [divided_errors(model, data(n, seed)) for data, seed in samples]
        direct, centered = zip(*found, strict=True)
        yield kernel_row(f"{name}: eigenvectors 2, 3 over the first", direct, len(seeds))
        yield centering_row(name, centered, len(seeds))
    for name in (*LENGTHS, "LLE", "LTSA", "Hessian LLE"):
        errors = [new_points_error(CENTERED[name], n, seed) for seed in seeds]
        yield new_points_row(name, errors)
    draw_kernels(lab, 300)


def kernel_of(model, X):
    G = fit(model, X).equivalent_kernel(X)
    return G.toarray() if sparse.issparse(G) else G


def through_kernel_pca(model, X, name):
    Y = KernelPCA(2, kernel="precomputed").fit_transform(kernel_of(model, X))
    return difference(Y, model.embedding_, in_length=name in LENGTHS)


def difference(Y, target, in_length=False):
    """Largest difference up to signs and, unless lengths count, the norms of columns."""
    if not in_length:
        Y, target = (A / np.linalg.norm(A, axis=0) for A in (Y, target))
    Y = Y * np.sign((Y * target).sum(axis=0))
    return float(np.abs(Y - target).max() / np.abs(target).max())


def divided_errors(model, X):
    """Without centering, after the first eigenvector; and with kernel PCA, up to an affine map."""
    G = kernel_of(model, X)
    first, V = np.split(eigh(G)[1][:, :-4:-1], [1], axis=1)
    over = 1.0 if getattr(model, "normalization", "rw") == "sym" else first
    centered = KernelPCA(2, kernel="precomputed").fit_transform(G)
    return difference(V / over, model.embedding_), procrustes(
        centered, model.embedding_, "affine"
    ).error


def kernel_row(what, errors, seeds):
    return Criterion(
        "E5.7",
        f"{what}, roll and digits",
        "data-driven kernels",
        "relative difference ≤ 1e-6",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= 1e-6,
        seeds=seeds,
        identity=True,
    )


def centering_row(name, errors, seeds):
    return Criterion(
        "E5.7",
        f"{name}: kernel PCA of its kernel, which centers it, against its map",
        "data-driven kernels",
        "what an affine map leaves ≤ 1e-6",
        f"{min(errors):.0e} to {max(errors):.0e} ({len(errors)} fits)",
        max(errors) <= 1e-6,
        seeds=seeds,
    )


def new_points_error(model, n, seed):
    """Kernel PCA's formula for new points, on the method's kernel, against its `transform`."""
    X, new = np.split(roll(n + 100, seed), [n])
    pca = KernelPCA(2, kernel="precomputed").fit(kernel_of(model, X))
    placed, own = pca.transform(model.equivalent_kernel(new)), model.transform(new)
    ratio = (pca.embedding_ * model.embedding_).sum(axis=0) / (pca.embedding_**2).sum(axis=0)
    return float(np.abs(placed * ratio - own).max() / np.abs(own).max())


def new_points_row(name, errors):
    bound = 1e-6 if name in LENGTHS else 1e-2
    return Criterion(
        "E5.7",
        f"{name}: new points by kernel PCA of its kernel against `transform`, roll",
        "",
        f"relative difference ≤ {bound:.0e}",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= bound,
        note=""
        if name in LENGTHS
        else "the kernel is μI − M; `transform` is its limit of large μ, which differs by λ/μ",
        seeds=len(errors),
        identity=name in LENGTHS,
    )


def draw_kernels(lab: Lab, n) -> None:
    """Kernels of an S-curve, its points in the order of their arc length; kernel PCA of each."""
    X, coordinates = make_s_curve(n, random_state=0)
    order = np.argsort(coordinates[:, 0])
    X, arc = X[order], coordinates[order, 0]
    names = ("kernel PCA", "Isomap", "LLE", "LTSA", "Laplacian eigenmaps, none")
    figure, axes = plt.subplots(2, len(names), figsize=(10, 4.0), layout="constrained")
    for name, (above, below) in zip(names, axes.T, strict=True):
        G = kernel_of(CENTERED[name], X)
        off = np.abs(G - np.diag(np.diag(G)))
        reach = np.quantile(off[off > 1e-12], 0.95)  # the diagonal μ would dominate the plot
        shades = plt.get_cmap("RdBu_r", 15)  # few enough to keep the file small
        above.imshow(G, cmap=shades, vmin=-reach, vmax=reach, interpolation="nearest")
        above.set(xticks=[], yticks=[])
        above.set_title(name, fontsize=9)
        Y = KernelPCA(2, kernel="precomputed").fit_transform(G)
        plot_embedding(Y, arc, ax=below, legend=False, size=6)
        below.set_aspect("auto")
    lab.save(figure, "kernels")


# ── E5.8: reconstruction from landmarks by LLE's weights ─────────────────────────────────────

METHODS: dict[str, tuple[Any, str]] = {
    "classical MDS, city-block": (ClassicalMDS(2, metric="cityblock"), "similarity"),
    "kernel PCA": (KernelPCA(2), "similarity"),
    "Isomap": (Isomap(2, n_neighbors=K), "similarity"),
    "Laplacian eigenmaps": (LaplacianEigenmaps(2, n_neighbors=K), "affine"),
    "diffusion maps": (DiffusionMaps(2, affinity="gaussian"), "affine"),
    "LLE": (LLE(2, n_neighbors=K), "affine"),
    "LTSA": (LTSA(2, n_neighbors=K), "similarity"),
    "Hessian LLE": (HessianLLE(2, n_neighbors=K), "similarity"),
}


def weights_on(X, reference, nearest):
    """Weights of LLE of every row of X on its nearest reference points."""
    w = barycentric_weights(reference[nearest] - X[:, None], 1e-3)
    starts = np.arange(len(X) + 1) * nearest.shape[1]
    return sparse.csr_array((w.ravel(), nearest.ravel(), starts), (len(X), len(reference)))


def least_squares(X, landmarks, Y):
    """Positions of all points that minimize Σ‖yᵢ − Σ wᵢⱼyⱼ‖², with the landmarks fixed at Y."""
    n = len(X)
    nearest = NeighborGraph.build(X, K).indices.reshape(n, K)
    residual = sparse.csc_array(sparse.eye_array(n) - weights_on(X, X, nearest))
    others = np.setdiff1d(np.arange(n), landmarks)
    A = residual[:, others]
    placed = np.empty((n, Y.shape[1]))
    placed[landmarks] = Y
    normal = sparse.csc_array(A.T @ A)
    placed[others] = splu(normal).solve(-(A.T @ (residual[:, landmarks] @ Y)))
    return placed


def directly(X, landmarks, Y):
    """All points by their weights on the nearest landmarks."""
    nearest = np.argsort(cdist(X, X[landmarks]), axis=1)[:, : min(K, len(landmarks))]
    placed = weights_on(X, X[landmarks], nearest) @ Y
    placed[landmarks] = Y
    return placed


WAYS = {"least squares": least_squares, "directly": directly}


def draw_landmarks_of(n, m, seed):
    return np.sort(np.random.default_rng(seed).choice(n, m, replace=False))


def landmarks_by_weights(lab: Lab) -> Iterator[Criterion]:
    yield from carried_over(lab)
    yield from fitted_on_landmarks(lab)
    yield from landmark_isomap(lab)


def carried_over(lab: Lab) -> Iterator[Criterion]:
    """Some random points keep their positions; the weights determine the others."""
    for name, (model, _) in METHODS.items():
        yield carried_row(lab, name, model)
    narrow = KernelPCA(2, gamma=0.1)  # about a winding wide
    yield carried_row(lab, "kernel PCA, γ = .1", narrow)
    yield carried_row(lab, "kernel PCA, γ = .1", narrow, "fifth", 5)


def carried_row(lab, name, model, part="tenth", points_per_landmark=10):
    n, seeds = lab.choose(2000, 400), lab.seeds(5)
    found = [carrying_errors(model, n, n // points_per_landmark, seed) for seed in seeds]
    errors, direct = np.median(found, axis=0)
    return Criterion(
        "E5.8",
        f"{name} of the roll: all points from a {part} of its map (directly)",
        "can reconstruct from landmarks",
        "error ≤ .05, and less than directly",
        f"{errors:.4f} ({direct:.3f})",
        bool(errors <= 0.05 and errors < direct),
        seeds=len(seeds),
    )


def carrying_errors(model, n, n_landmarks, seed):
    X = roll(n, seed)
    Y = fit(model, X).embedding_
    landmarks = draw_landmarks_of(n, n_landmarks, seed)
    return [procrustes(way(X, landmarks, Y[landmarks]), Y).error for way in WAYS.values()]


def fitted_on_landmarks(lab: Lab) -> Iterator[Criterion]:
    """The method is fitted to the landmarks only, a fifth of the points."""
    seeds = lab.seeds(5)
    for data, n in ((s_curve, lab.choose(2000, 400)), (digits, lab.choose(1500, 300))):
        for name, (model, allow) in METHODS.items():
            found = np.array([end_to_end_errors(model, allow, data(n, s), s) for s in seeds])
            yield end_to_end_row(data.__name__.replace("_", "-"), name, found)


def s_curve(n, seed):
    return make_s_curve(n, random_state=seed).X


def end_to_end_row(data, name, found):
    alone, own, errors, direct, apart = np.median(found, axis=0)
    worst = float((found[:, 2] / found[:, 1]).max())
    return Criterion(
        "E5.8",
        f"{name} of a fifth of the {data}, all others by weights: how far from `transform`'s map; "
        "error against the map of all (of landmarks alone, by `transform`, directly)",
        "can reconstruct from landmarks",
        "differ by ≤ .05, and in every run at most 1.1 times the error of `transform`",
        f"{apart:.3f}; {errors:.3f} ({alone:.3f}, {own:.3f}, {direct:.3f}), {worst:.2f} times",
        bool(worst <= 1.1 and apart <= 0.05),
        seeds=len(found),
    )


def end_to_end_errors(model, allow, X, seed):
    Y = fit(model, X).embedding_
    landmarks = draw_landmarks_of(len(X), len(X) // 5, seed)
    own = fit(model, X[landmarks]).transform(X)
    at = own[landmarks]
    maps = [own, *(way(X, landmarks, at) for way in WAYS.values())]
    error = partial(procrustes, transformation=allow)
    found = [error(at, Y[landmarks]).error, *(error(Z, Y).error for Z in maps)]
    return [*found, float(np.linalg.norm(maps[1] - own) / np.linalg.norm(own - own.mean(axis=0)))]


def landmark_isomap(lab: Lab) -> Iterator[Criterion]:
    """Landmark Isomap triangulates the other points; the notes also suggest interpolation."""
    n, seeds = lab.choose(2000, 400), lab.seeds(5)
    counts = lab.choose((10, 20, 50, 100, 200, 400), (20, 100))
    found = np.array([[isomap_errors(n, m, seed) for m in counts] for seed in seeds])
    triangulated, errors, direct = np.moveaxis(np.median(found, axis=0), 1, 0)
    enough = np.array(counts) >= 50
    yield Criterion(
        "E5.8",
        f"Isomap of the roll from {', '.join(map(str, counts))} landmarks: error against the truth "
        "by weights (by triangulation)",
        "interpolate for other data points",
        "at most 1.5 times that of triangulation from 50 landmarks on",
        ", ".join(f"{a:.3f} ({b:.3f})" for a, b in zip(errors, triangulated, strict=True)),
        bool((errors <= 1.5 * triangulated)[enough].all()),
        seeds=len(seeds),
    )
    curves = {"triangulation": triangulated, "least squares": errors, "directly": direct}
    draw_landmarks(lab, n, counts, curves)


def isomap_errors(n, m, seed):
    X, truth = make_swiss_roll(n, random_state=seed)
    model = fit(Isomap(2, n_neighbors=K, n_landmarks=m, random_state=seed), X)
    landmarks, Y = model.landmarks_, model.embedding_
    maps = [Y, *(way(X, landmarks, Y[landmarks]) for way in WAYS.values())]
    return [procrustes(Z, truth).error for Z in maps]


def draw_landmarks(lab: Lab, n, counts, curves) -> None:
    X, truth = make_swiss_roll(n, random_state=0)
    model = fit(Isomap(2, n_neighbors=K, n_landmarks=50, random_state=0), X)
    landmarks = model.landmarks_
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
    lines = {name: (np.array(counts), errors) for name, errors in curves.items()}
    label = {"xlabel": "landmarks", "ylabel": "error against the truth"}
    plot_learning_curve(lines, ax=axes[0], log="xy", title=f"Isomap, roll of {n}", **label)
    axes[0].minorticks_off()
    axes[0].set_xticks(counts, [str(m) for m in counts])
    for ax, (name, way) in zip(axes[1:], WAYS.items(), strict=True):
        Z = way(X, landmarks, model.embedding_[landmarks])
        Z = procrustes(Z, truth).aligned
        plot_embedding(Z, truth[:, 0], ax=ax, legend=False, size=5)
        ax.plot(*Z[landmarks].T, "o", color="#2b2b2b", markersize=3)
        ax.set_title(f"from 50 landmarks: {name}", fontsize=9)
    lab.save(figure, "landmarks")
