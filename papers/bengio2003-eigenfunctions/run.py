"""Bengio, spectral dimensionality reduction via learning eigenfunctions.

Run ``python papers/bengio2003-eigenfunctions/run.py``; README.md in this folder describes the
tests. Functions called `…_kernel` are references: formulas of the publication in plain numpy, with
which the estimators of the library are compared.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from numpy.polynomial.legendre import leggauss
from scipy import sparse
from scipy.linalg import eigh, eigvalsh
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import kneighbors_graph

from manifoldry import (
    LLE,
    ClassicalMDS,
    DiffusionMaps,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    SpectralClustering,
)
from manifoldry.datasets import make_s_curve, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import kernel_loss
from manifoldry.plotting import plot_embedding, plot_grid, plot_learning_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lie import curved, images, together, translation
from report import Criterion, Lab, main, within
from semisupervised import semisupervised
from sensitivity import training_set_sensitivity
from smoothed import smoothed_density

GAMMA = 0.02  # Gaussian width on the roll, whose windings are about 6 apart


# ── The publication's equivalent kernels ─────────────────────────────────────────────────────


def city_block(A, B):
    return -0.5 * cdist(A, B, "cityblock") ** 2


def euclidean(A, B):
    return -0.5 * cdist(A, B, "sqeuclidean")


def gaussian(A, B):
    return np.exp(-GAMMA * cdist(A, B, "sqeuclidean"))


def centered_kernel(k, A, B, X):
    """MDS and kernel PCA: subtract means over the training set X, whatever A and B are."""
    return k(A, B) - k(A, X).mean(1)[:, None] - k(B, X).mean(1) + k(X, X).mean()


def normalized_kernel(k, A, B, X):
    """Laplacian eigenmaps: divide by the square roots of both degrees, without self-loops."""

    def w(P, Q):
        return k(P, Q) * (cdist(P, Q) > 0)

    return w(A, B) / np.sqrt(np.outer(w(A, X).sum(1), w(B, X).sum(1)))


@dataclass(frozen=True)
class Method:
    """An estimator of the library and its equivalent kernel according to the publication."""

    model: Any
    equivalent: Callable[..., Any]
    k: Callable[..., Any]

    def kernel(self, A, B, X):
        return self.equivalent(self.k, A, B, X)

    def eigenvalues(self):
        """Eigenvalues ℓ of the equivalent kernel; eigenmaps report the Laplacian's, 1 − ℓ."""
        values = self.model.eigenvalues_
        return 1 - values if self.equivalent is normalized_kernel else values

    def factors(self, X):
        """Coordinates whose inner products approximate the equivalent kernel."""
        if self.equivalent is not normalized_kernel:
            return self.model.embedding_
        # Eigenmaps leave out the constant (ℓ = 1, v ∝ √degree); the kernel has it.
        degree = self.k(X, X).sum(axis=1) - 1
        constant = np.sqrt(degree / degree.sum())
        return np.column_stack([constant, self.model.embedding_ * np.sqrt(self.eigenvalues())])


# ── E1.1: Nyström's formula returns the embedding at the training points ─────────────────────


def roll(n, seed):
    return make_swiss_roll(n, noise=0.2, random_state=seed).X


def digits(n, seed):
    X = load_digits().data
    return X[np.random.default_rng(seed).permutation(len(X))[:n]]


METHODS = {
    "classical MDS": Method(ClassicalMDS(2), centered_kernel, euclidean),
    "classical MDS, city-block": Method(
        ClassicalMDS(2, metric="cityblock"), centered_kernel, city_block
    ),
    "kernel PCA": Method(KernelPCA(2, gamma=GAMMA), centered_kernel, gaussian),
    "Laplacian eigenmaps, all pairs": Method(
        LaplacianEigenmaps(2, radius=1e3, affinity="gaussian", gamma=GAMMA, normalization="sym"),
        normalized_kernel,
        gaussian,
    ),
}
# Without Euclidean MDS: the library computes its embedding by the extension, so it cannot differ.
TRAINING_METHODS = {
    "classical MDS, city-block": ClassicalMDS(2, metric="cityblock"),
    "kernel PCA": KernelPCA(2),
    "Laplacian eigenmaps, rw": LaplacianEigenmaps(2, n_neighbors=12),
    "Laplacian eigenmaps, sym": LaplacianEigenmaps(2, n_neighbors=12, normalization="sym"),
    "Laplacian eigenmaps, none": LaplacianEigenmaps(2, n_neighbors=12, normalization="none"),
}


def nystrom_at_training_points(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(500, 200)
    for name, model in TRAINING_METHODS.items():
        samples = [data(n, seed) for data in (roll, digits) for seed in seeds]
        errors = [model.fit(X).extension_error(X) for X in samples]
        yield _training_row(f"{name}: roll and digits", errors, seeds)
    yield bare_error("Isomap", Isomap(2, n_neighbors=12), 1e-6, seeds, n)
    yield bare_error("LLE", LLE(2, n_neighbors=12), 1e-8, seeds, n)


def bare_error(name, model, bound, seeds, n):
    """Error of the out-of-sample formula at training rows; it need not be zero."""
    errors = [model.fit(X).extension_error(X) for X in (roll(n, seed) for seed in seeds)]
    return Criterion(
        "E1.1",
        f"{name}: roll, formula at training rows",
        "equal (theorem)",
        f"relative error ≤ {bound:.0e}",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= bound,
        seeds=len(seeds),
    )


def _training_row(what, errors, seeds):
    return Criterion(
        "E1.1",
        f"{what}, formula at training rows",
        "equal (theorem)",
        "relative error ≤ 1e-8",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= 1e-8,
        seeds=len(seeds),
        identity=True,
    )


def published_formula(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(400, 150)
    for name, method in METHODS.items():
        errors = []
        for seed in seeds:
            X, new = np.split(roll(n + 100, seed), [n])
            Y = method.model.fit(X).embedding_
            placed = np.vstack([Y, method.model.transform(new)])
            expected = method.kernel(np.vstack([X, new]), X, X) @ (Y / method.eigenvalues())
            errors.append(np.abs(placed - expected).max() / np.abs(Y).max())
        yield Criterion(
            "E1.1",
            f"{name}: `embedding_`, `transform` of 100 new points against the published formula",
            "(1/ℓ) Σᵢ vᵢ K(x, xᵢ)",
            "relative difference ≤ 1e-8",
            f"{max(errors):.0e} (worst of {len(seeds)} seeds)",
            max(errors) <= 1e-8,
            seeds=len(seeds),
            identity=True,
        )
    draw_extension(lab)


def draw_extension(lab: Lab) -> None:
    """Embeddings of digits of four classes; points with a dark edge are new."""
    X, label = load_digits(n_class=4, return_X_y=True)
    X, new, label, new_label = train_test_split(X, label, test_size=120, random_state=0)
    # The first coordinate of eigenmaps only separates the zeros: plot the next two.
    models = {
        "classical MDS": (ClassicalMDS(2), [0, 1]),
        "kernel PCA": (KernelPCA(2), [0, 1]),
        "Laplacian eigenmaps (2, 3)": (LaplacianEigenmaps(3, n_neighbors=20), [1, 2]),
    }
    maps = {name: model.fit(X).embedding_[:, pair] for name, (model, pair) in models.items()}
    axes = plot_grid(maps, label, color_label="digit", size=9, alpha=0.45)
    for ax, (model, pair) in zip(axes, models.values(), strict=True):
        placed = model.transform(new)[:, pair]
        plot_embedding(placed, new_label, ax=ax, size=20, alpha=1, legend=False)
        ax.collections[-1].set(edgecolor="#2b2b2b", linewidth=0.7)
    lab.save(axes[0].figure, "extension")


# ── E1.3: eigenvectors converge to eigenfunctions ────────────────────────────────────────────

WIDTH = 4.0  # exp(−4·d²) on [−1, 1]: four eigenvalues well apart
N_FUNCTIONS = 4


def reference_eigenfunctions(n_nodes=200):
    """Eigenfunctions of the centered Gaussian kernel under the uniform density, by quadrature."""
    x, w = leggauss(n_nodes)
    w = w / 2  # the density is ½ on [−1, 1]
    K = np.exp(-WIDTH * (x[:, None] - x) ** 2)
    means = K @ w
    K = K - means[:, None] - means + w @ means
    root = np.sqrt(w)
    _, U = eigh(root[:, None] * K * root, subset_by_index=[n_nodes - N_FUNCTIONS, n_nodes - 1])
    return x[:, None], w, U[:, ::-1] / root[:, None]


def nystrom_eigenfunctions(X, *wheres):
    """Values of √n·v(x) at each set of points, from kernel PCA's coordinates √ℓ·v(x)."""
    model = KernelPCA(N_FUNCTIONS, gamma=WIDTH).fit(X)
    return [model.transform(x) * np.sqrt(len(X) / model.eigenvalues_) for x in wheres]


def convergence(lab: Lab) -> Iterator[Criterion]:
    seeds, sizes = lab.seeds(10), lab.choose([100, 200, 400, 800, 1600, 3200], [100, 200, 400])
    x, w, F = reference_eigenfunctions()
    errors = np.empty((len(seeds), len(sizes), N_FUNCTIONS))  # L²(p) distance to the reference
    norms, sketch = np.empty_like(errors), None
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for i, n in enumerate(sizes):
            X, fresh = rng.uniform(-1, 1, (n, 1)), rng.uniform(-1, 1, (5000, 1))
            f, on_fresh = nystrom_eigenfunctions(X, x, fresh)
            f = f * np.sign(w @ (f * F))  # the sign of an eigenvector is arbitrary
            errors[seed, i] = np.sqrt(w @ (f - F) ** 2)
            norms[seed, i] = np.sqrt((on_fresh**2).mean(axis=0))
            sketch = f if sketch is None else sketch
    draw_convergence(lab, x, F, sketch, sizes, errors)
    yield slope_criterion(sizes, errors)
    yield norm_criterion(sizes[-1], norms[:, -1])


def slope_criterion(sizes, errors):
    slopes = fitted_slopes(sizes, np.sqrt((errors**2).mean(axis=0)))
    single = np.array([fitted_slopes(sizes, e) for e in errors])
    inside = ((single >= -0.7) & (single <= -0.3)).mean()
    return Criterion(
        "E1.3",
        f"L² error of {N_FUNCTIONS} eigenfunctions, n = {sizes[0]}…{sizes[-1]}",
        "converge in probability",
        "slope of the error in log n in −0.7…−0.3",
        ", ".join(f"{slope:.2f}" for slope in slopes),
        within(slopes, -0.7, -0.3),
        note=f"slope of the root mean square over seeds; a single seed is noisy: {inside:.0%} of "
        f"its slopes lie inside (mean {single.mean():.2f}, standard deviation {single.std():.2f})",
        seeds=len(errors),
    )


def fitted_slopes(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


def norm_criterion(n, norms):
    off = np.abs(norms - 1).max(axis=1)
    return Criterion(
        "E1.3",
        f"norm of the {N_FUNCTIONS} eigenfunctions on 5000 fresh points, n = {n}",
        "tends to 1",
        "all within 0.05 of 1",
        f"{norms.min():.3f}…{norms.max():.3f}, {(off < 0.05).sum()}/{len(off)} seeds",
        (off < 0.05).all(),
        seeds=len(off),
    )


def draw_convergence(lab: Lab, x, F, sketch, sizes, errors) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    names = [f"$f_{k + 1}$" for k in range(N_FUNCTIONS)]
    exact = {name: (x[:, 0], F[:, k]) for k, name in enumerate(names)}
    title = f"exact (solid) and from {sizes[0]} points (dotted)"
    plot_learning_curve(exact, ax=left, xlabel="x", ylabel="", title=title, legend=False)
    for line, values in zip(list(left.lines), sketch.T, strict=True):
        left.plot(x[:, 0], values, ":", color=line.get_color(), linewidth=1.6)
    left.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1, 2])
    rms, spread = np.sqrt((errors**2).mean(axis=0)), standard_error(errors)
    curves = {name: (sizes, rms[:, k], spread[:, k]) for k, name in enumerate(names)}
    title = f"L² error, root mean square over {len(errors)} seeds"
    plot_learning_curve(curves, ax=right, log="xy", xlabel="n", ylabel="", title=title)
    guide = 0.55 * rms.min(axis=1)[0] * np.sqrt(sizes[0] / np.array(sizes))
    right.plot(sizes, guide, "--", color="#8a8a8a", linewidth=1)
    right.annotate("slope −½", (sizes[0], guide[0]), xytext=(-2, -30), textcoords="offset points")
    label_ticks(right, sizes, [0.03, 0.1, 0.3])
    lab.save(figure, "convergence")


def label_ticks(ax, x, y=None) -> None:
    """Plain numbers on logarithmic axes."""
    ax.minorticks_off()
    ax.set_xticks(x, [f"{value:g}" for value in x])
    if y is not None:
        ax.set_yticks(y, [f"{value:g}" for value in y])


# ── E1.5: what the methods minimize, and how it generalizes ──────────────────────────────────


def loss(K, Y):
    """Squared error of the kernel's approximation by inner products, for every pair."""
    return (K - Y @ Y.T) ** 2


def training_loss(lab: Lab) -> Iterator[Criterion]:
    seeds, n = lab.seeds(5), lab.choose(300, 120)
    for name, method in METHODS.items():
        errors = []
        for seed in seeds:
            X = roll(n, seed)
            method.model.fit(X)
            K, Y = method.kernel(X, X, X), method.factors(X)
            tail = (eigvalsh(K)[: -Y.shape[1]] ** 2).sum() / n**2
            errors.append(abs(loss(K, Y).mean() / tail - 1))
        yield Criterion(
            "E1.5",
            f"{name}: training average of the loss against the tail Σℓ²/n²",
            "the methods minimize it",
            "relative difference ≤ 1e-10",
            f"{max(errors):.0e} (worst of {len(seeds)} seeds)",
            max(errors) <= 1e-10,
            seeds=len(seeds),
            identity=True,
        )


def generalization(lab: Lab) -> Iterator[Criterion]:
    seeds, sizes = lab.seeds(40), lab.choose([50, 100, 200, 400], [50, 100, 200])
    curves = {}
    for name in ("kernel PCA", "classical MDS, city-block"):
        found = np.array([[average_losses(METHODS[name], n, s) for n in sizes] for s in seeds])
        curves[name] = dict(zip(LOSSES, np.moveaxis(found, 2, 0), strict=True))
        for training in LOSSES[1:]:
            yield gap_criterion(name, sizes, curves[name], training)
    draw_generalization(lab, sizes, curves)


def s_curve(n, seed):
    return make_s_curve(n, noise=0.05, random_state=seed).X


@dataclass(frozen=True)
class GraphMethod:
    """A method with a data-dependent kernel."""

    make: Callable[[int], Any]  # the estimator for n points
    n_kept: int  # eigenvectors that the loss subtracts, with one that the embedding leaves out
    data: Callable[[int, int], Any] = roll


GRAPH_METHODS = {
    "Laplacian eigenmaps, all pairs": GraphMethod(
        lambda n: LaplacianEigenmaps(2, radius=1e3, affinity="gaussian", gamma=GAMMA), 3
    ),
    "Laplacian eigenmaps, 10 neighbors": GraphMethod(
        lambda n: LaplacianEigenmaps(2, n_neighbors=10), 3
    ),
    "Laplacian eigenmaps, n/10 neighbors": GraphMethod(
        lambda n: LaplacianEigenmaps(2, n_neighbors=n // 10), 3
    ),
    "spectral clustering, 10 neighbors": GraphMethod(
        lambda n: SpectralClustering(2, n_neighbors=10), 2
    ),
    "spectral clustering, n/10 neighbors": GraphMethod(
        lambda n: SpectralClustering(2, n_neighbors=n // 10), 2
    ),
    "diffusion maps, 20 neighbors": GraphMethod(
        lambda n: DiffusionMaps(2, n_neighbors=20, affinity="gaussian"), 3
    ),
    "diffusion maps, n/5 neighbors": GraphMethod(
        lambda n: DiffusionMaps(2, n_neighbors=n // 5, affinity="gaussian"), 3
    ),
    "Isomap, 10 neighbors": GraphMethod(lambda n: Isomap(2, n_neighbors=10), 2),
    "Isomap of the S-curve, 10 neighbors": GraphMethod(
        lambda n: Isomap(2, n_neighbors=10), 2, s_curve
    ),
    "LLE, 10 neighbors, pairs with training points": GraphMethod(
        lambda n: LLE(2, n_neighbors=10), 3
    ),
}


def graph_generalization(lab: Lab) -> Iterator[Criterion]:
    """The same for kernels that depend on the training data, by `metrics.kernel_loss`."""
    seeds, sizes = lab.seeds(40), lab.choose([50, 100, 200, 400], [50, 100, 200])
    for name, method in GRAPH_METHODS.items():
        found = np.array([[graph_losses(method, n, s) for n in sizes] for s in seeds])
        curves = dict(zip(LOSSES, np.moveaxis(found, 2, 0), strict=True))
        # These kernels scale with n, so that a gap in fixed units shrinks by itself.
        unit = curves["held out"].mean(axis=0)
        for training in LOSSES[1:]:
            yield gap_criterion(name, sizes, curves, training, unit)


LOSSES = ("held out", "training, all pairs", "training, without self-pairs")


def graph_losses(method, n, seed):
    """The three averages of `LOSSES`."""
    X, fresh = np.split(method.data(2 * n, seed), 2)
    model = method.make(n)
    with warnings.catch_warnings():
        # Few points on a roll have short circuits and several components; both sides have them.
        warnings.simplefilter("ignore", ManifoldryWarning)
        model.fit(X)
        found = kernel_loss(model, fresh)
    # `kernel_loss` of training rows counts self-pairs for LLE only; here both averages are needed.
    values, V = eigh(as_dense(model.equivalent_kernel(X)))
    training = loss_of_rest(values[: -method.n_kept], V[:, : -method.n_kept])
    different = ~np.eye(n, dtype=bool)
    held_out = found.losses[-1] * found.kernel_rms**2
    return held_out, training.mean(), training[different].mean()


def loss_of_rest(values, V):
    """Squared error at every pair if these eigenvectors are left out."""
    return ((V * values) @ V.T) ** 2


def as_dense(K):
    return K.toarray() if sparse.issparse(K) else K


def average_losses(method, n, seed):
    """The three averages of `LOSSES`; held-out pairs are of two different new points."""
    X, fresh = np.split(roll(2 * n, seed), 2)
    Y, Z = method.model.fit(X).embedding_, method.model.transform(fresh)
    training = loss(method.kernel(X, X, X), Y)
    held_out = loss(method.kernel(fresh, fresh, X), Z)
    different = ~np.eye(n, dtype=bool)
    return held_out[different].mean(), training.mean(), training[different].mean()


def gap_criterion(name, sizes, curves, training, unit=None):
    """`unit` is one loss or one for every size; by default the held-out loss at the largest."""
    held_out = curves["held out"].mean(axis=0)
    unit = held_out[-1] if unit is None else unit
    gaps = (held_out - curves[training].mean(axis=0)) / unit
    passed = (gaps >= 0).all() and (np.diff(gaps) < 0).all()
    return Criterion(
        "E1.5",
        f"{name}: held-out loss minus that of {training}, n = {', '.join(map(str, sizes))}",
        "expected loss is the generalization error",
        "≥ 0 on average, shrinking with n",
        ", ".join(f"{gap:+.0%}" for gap in gaps),
        passed,
        seeds=len(curves[training]),
    )


def draw_generalization(lab: Lab, sizes, curves) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    for ax, (name, losses) in zip(axes, curves.items(), strict=True):
        unit = losses["held out"][:, -1].mean()
        lines = {
            kind: (sizes, found.mean(axis=0) / unit, 1.96 * standard_error(found) / unit)
            for kind, found in losses.items()
        }
        plot_learning_curve(
            lines, ax=ax, log="x", xlabel="n", ylabel="loss, held out at largest n = 1", title=name
        )
        label_ticks(ax, sizes)
    lab.save(figure, "generalization")


def standard_error(found):
    return found.std(axis=0) / np.sqrt(len(found))


# ── E1.2, E1.7, E1.8: the methods in the talk's pictures ─────────────────────────────────────


def landmarks(lab: Lab) -> Iterator[Criterion]:
    errors = []
    for seed in lab.seeds(5):
        X = roll(lab.choose(500, 200), seed)
        model = Isomap(2, n_neighbors=12, n_landmarks=50, random_state=seed).fit(X)
        D2 = geodesics_squared(X, 12, model.landmarks_)
        B = D2[model.landmarks_]
        ell, V = eigh(-0.5 * (B - B.mean(0) - B.mean(1)[:, None] + B.mean()))
        expected = 0.5 * (B.mean(axis=1) - D2) @ V[:, :-3:-1] / np.sqrt(ell[:-3:-1])
        signs = np.sign((expected * model.embedding_).sum(axis=0))
        errors.append(np.abs(expected * signs - model.embedding_).max() / np.abs(expected).max())
    yield Criterion(
        "E1.2",
        "landmark Isomap against triangulation written out",
        "equal (corollary)",
        "relative error ≤ 1e-10",
        f"{max(errors):.0e} (worst of {len(errors)} fits)",
        max(errors) <= 1e-10,
        seeds=len(errors),
        identity=True,
    )


def geodesics_squared(X, k, targets):
    """Squared shortest-path distances with scikit-learn and scipy, for comparison."""
    G = kneighbors_graph(X, k, mode="distance")
    return shortest_path(G.maximum(G.T), directed=False, indices=targets).T ** 2


def clustering(lab: Lab) -> Iterator[Criterion]:
    shapes = {
        "rings": lambda seed: make_circles(400, factor=0.4, noise=0.04, random_state=seed),
        "moons": lambda seed: make_moons(400, noise=0.05, random_state=seed),
    }
    for name, make in shapes.items():
        scores = []
        for seed in lab.seeds(5):
            X, y = make(seed)
            plain = KMeans(2, n_init=10, random_state=seed).fit_predict(X)
            found = SpectralClustering(2, random_state=seed).fit_predict(X)
            scores.append((adjusted_rand_score(y, found), adjusted_rand_score(y, plain)))
        ours, raw = np.array(scores).T
        yield Criterion(
            "E1.7",
            f"spectral clustering of {name}: agreement with the truth (k-means on the data)",
            "clusters of any shape",
            "1, and below .5",
            f"{ours.min():.2f} ({raw.max():.2f}), worst of {len(scores)}",
            bool((ours == 1).all() and (raw < 0.5).all()),
            seeds=len(scores),
        )


def pictures(lab: Lab) -> Iterator[Criterion]:
    X, truth = make_swiss_roll(lab.choose(2000, 800), random_state=1)
    Y = LLE(2, n_neighbors=12).fit_transform(X)
    design = np.column_stack([np.ones(len(Y)), Y])
    residual = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    explained = 1 - residual.var(axis=0) / truth.var(axis=0)
    yield Criterion(
        "E1.8",
        "LLE of the roll, 12 neighbors: R² of an affine fit to arc length and height",
        "shape only",
        "both > .9",
        f"{explained[0]:.3f}, {explained[1]:.3f}",
        bool((explained > 0.9).all()),
    )
    Z = Isomap(2, n_neighbors=10).fit_transform(X)
    Z, centered = Z - Z.mean(axis=0), truth - truth.mean(axis=0)
    U, s, Vt = np.linalg.svd(Z.T @ centered)
    error = np.linalg.norm(s.sum() / (Z**2).sum() * Z @ U @ Vt - centered)
    yield Criterion(
        "E1.8",
        "Isomap of the roll: similarity error",
        "shape only",
        "≤ .08",
        f"{error / np.linalg.norm(centered):.3f}",
        bool(error <= 0.08 * np.linalg.norm(centered)),
    )


if __name__ == "__main__":
    main(
        __file__,
        "Bengio, Spectral dimensionality reduction via learning eigenfunctions",
        [
            nystrom_at_training_points,
            published_formula,
            convergence,
            training_loss,
            generalization,
            graph_generalization,
            landmarks,
            clustering,
            pictures,
            training_set_sensitivity,
            smoothed_density,
            translation,
            curved,
            semisupervised,
            images,
            together,
        ],
    )
