"""E0.1 to E0.3: the partitioned circle, and the projection of the gradient."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    Criterion,
    Lab,
    Problem,
    at,
    draw_curves,
    gaussian_sne,
    learning_curves,
    random_start,
    span,
)
from matplotlib import pyplot as plt
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from manifoldry.datasets import ManifoldSample, make_partitioned_circle
from manifoldry.optimize import EveryStep, Identity, Never, Power, Projector, clustering_matrix

NEGLIGIBLE = 1e-3  # largest kernel between arcs
SHOWN = (1, 10, -1)  # line searches whose values are compared


def bandwidth(sample: ManifoldSample, most: float = NEGLIGIBLE) -> float:
    """The largest h whose kernel between arcs is below `most`; it is not published."""
    D2 = cdist(sample.X, sample.X, "sqeuclidean")
    return float(D2[sample.labels[:, None] != sample.labels].min() / -np.log(0.99 * most))


def leading(M: Any, count: int) -> tuple[Any, Any]:
    """The largest eigenvalues, largest first, and their eigenvectors."""
    values, vectors = np.linalg.eigh(M)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def unevenness(v: Any, labels: Any) -> float:
    """Spread within the arcs divided by the smallest difference between their means."""
    pieces = [v[labels == label] for label in np.unique(labels)]
    gaps = np.diff(np.sort([piece.mean() for piece in pieces]))
    return float(np.sqrt(np.mean([piece.var() for piece in pieces])) / gaps.min())


# ── E0.1 ─────────────────────────────────────────────────────────────────────────────────────


def eigenvectors(lab: Lab) -> Iterator[Criterion]:
    samples = [make_partitioned_circle(150, random_state=seed) for seed in lab.seeds(5)]
    matrices = [clustering_matrix(s.X, gamma=1 / bandwidth(s)) for s in samples]
    found = [leading(M, 4) for M in matrices]
    yield from level_rows(samples, matrices, [vectors for _, vectors in found])
    yield value_row("partitioned circle", np.array([values for values, _ in found]))
    wider = [clustering_matrix(s.X, gamma=1 / bandwidth(s, 0.01)) for s in samples]
    setting = "partitioned circle, kernels between arcs up to .01"
    yield value_row(setting, np.array([leading(M, 4)[0] for M in wider]))
    pairs = zip(found, samples, strict=True)
    clusters = [found_again(vectors[:, 1:3], s.labels) for (_, vectors), s in pairs]
    yield Criterion(
        "E0.1",
        "k-means on the second and third eigenvector against the arcs",
        "they reflect the clustering",
        "adjusted Rand index 1",
        span(clusters),
        min(clusters) == 1,
        seeds=len(samples),
    )
    outside = [
        M[s.labels[:, None] != s.labels].sum() / M.sum()
        for M, s in zip(matrices, samples, strict=True)
    ]
    yield Criterion(
        "E0.1",
        "fraction of M, sorted by arc, outside its diagonal blocks",
        "block-diagonal",
        "below 5 %",
        f"{100 * max(outside):.2f} % (largest)",
        max(outside) < 0.05,
        seeds=len(samples),
    )


def value_row(setting: str, values: Any) -> Criterion:
    return Criterion(
        "E0.1",
        f"{setting}: leading eigenvalues of M",
        "three eigenvectors show the clusters",
        "λ₁, λ₂, λ₃ > .95, and λ₄ lower by .02 or more",
        f"λ₃ {span(values[:, 2], 4)}, λ₄ {span(values[:, 3], 3)}",
        values[:, 2].min() > 0.95 and (values[:, 2] - values[:, 3]).min() >= 0.02,
        seeds=len(values),
    )


def found_again(V: Any, labels: Any) -> float:
    clusters = KMeans(3, n_init=10, random_state=0).fit_predict(V)
    return float(adjusted_rand_score(labels, clusters))


def level_rows(samples: Any, matrices: Any, vectors: Any) -> Iterator[Criterion]:
    pairs = list(zip(samples, vectors, strict=True))
    as_they_are = [[unevenness(V[:, j], s.labels) for s, V in pairs] for j in (1, 2)]
    yield Criterion(
        "E0.1",
        "v₂, v₃: spread within arcs over the smallest gap between levels",
        "piecewise constant on three levels",
        "below .1",
        f"v₂ {span(as_they_are[0])}, v₃ {span(as_they_are[1])}",
        max(map(max, as_they_are)) < 0.1,
        seeds=len(samples),
    )
    plane = [in_plane(V[:, :3] / V[:, :1], s.labels) for s, V in pairs]
    yield Criterion(
        "E0.1",
        "the same of v₂/v₁ and v₃/v₁ as points of a plane, which rotations do not change",
        "(not stated; ours)",
        "below .1",
        span(plane, 3),
        max(plane) < 0.1,
        seeds=len(samples),
    )


def in_plane(V: Any, labels: Any) -> float:
    """Root mean square distance from the mean of the arc divided by the least between two means."""
    centers = np.array([V[labels == label].mean(axis=0) for label in np.unique(labels)])
    within = np.sqrt(((V - centers[labels]) ** 2).sum(axis=1).mean())
    between = cdist(centers, centers)
    return float(within / between[~np.eye(len(centers), dtype=bool)].min())


# ── E0.2 ─────────────────────────────────────────────────────────────────────────────────────


def circle_problem(seed: int) -> Problem:
    sample = make_partitioned_circle(150, random_state=seed)
    h = bandwidth(sample)
    M = clustering_matrix(sample.X, gamma=1 / h)
    filters = {
        "plain": Identity(),
        "l = 2": Projector(start=2, drop_first=True, matrix=M, schedule=Never()),
        "growing l": Projector(matrix=M, schedule=EveryStep()),
        "growing l, without v₁": Projector(drop_first=True, matrix=M, schedule=EveryStep()),
        "M^ν": Power(10, matrix=M, schedule=EveryStep()),
    }
    return Problem(gaussian_sne(sample.X, h), random_start(150, 2, 0.01, seed), filters)


def circle_curves(lab: Lab) -> Iterator[Criterion]:
    steps, seeds = lab.choose(200, 30), lab.seeds(20)
    curves = learning_curves(lab, circle_problem, seeds, steps)
    draw_circle(lab, curves)
    values = {name: {k: at(c, k) for k in SHOWN} for name, c in curves.items()}
    plain, fixed, growing, dropped, power = values.values()
    n = len(seeds)
    yield curve_row("growing l: after 10", "faster", "<", growing[10], plain[10], n)
    yield curve_row("growing l without v₁: after 10", "(ours)", "<", dropped[10], plain[10], n)
    yield curve_row("M^ν, ν = 10, 9, …: after 10", "(ours)", "<", power[10], plain[10], n)
    yield curve_row("l = 2 throughout: after 10", "faster", "<", fixed[10], plain[10], n)
    yield curve_row("l = 2 throughout: after 1", "(ours)", "<", fixed[1], plain[1], n)
    yield curve_row("l = 2 throughout: after all 200", "worse", ">", fixed[-1], plain[-1], n)
    yield curve_row("growing l: after all 200", "better", "≤", growing[-1], plain[-1], n)
    yield curve_row("M^ν: after all 200", "(ours)", "≤", power[-1], plain[-1], n)


def curve_row(
    what: str, published: str, sign: str, value: float, plain: float, n: int
) -> Criterion:
    holds = {"<": value < plain, ">": value > plain, "≤": value <= plain}[sign]
    return Criterion(
        "E0.2",
        f"SNE of the circle, {what} line searches, median",
        published,
        f"{sign} plain",
        f"{value:.4f}; plain {plain:.4f}",
        holds,
        seeds=n,
    )


def draw_circle(lab: Lab, curves: dict[str, Any]) -> None:
    sample = make_partitioned_circle(150, random_state=0)
    M = clustering_matrix(sample.X, gamma=1 / bandwidth(sample))
    around = np.argsort(sample.coordinates[:, 0])
    M = M[np.ix_(around, around)]
    figure, axes = plt.subplots(2, 2, figsize=(7, 5.6), layout="constrained")
    (data, matrix), (vectors, learning) = axes
    data.scatter(*sample.X.T, c=sample.labels, s=6, cmap="viridis")
    data.set_aspect("equal")
    matrix.imshow(M, cmap="gray_r")
    vectors.plot(leading(M, 3)[1], ".", ms=3, label=["v₁", "v₂", "v₃"])
    vectors.legend(fontsize=6)
    for ax, title in ((data, "data"), (matrix, "M"), (vectors, "leading eigenvectors")):
        ax.set_title(title, fontsize=8)
    draw_curves(learning, curves, "SNE")
    lab.save(figure, "circle")


# ── E0.3 ─────────────────────────────────────────────────────────────────────────────────────


def aggregation(lab: Lab) -> Iterator[Criterion]:
    sizes = (20, 30, 50)
    labels = np.repeat(np.arange(3), sizes)
    M = np.where(labels[:, None] == labels, 1.0 / np.array(sizes)[labels], 0.0)
    projector = Projector(start=3, matrix=M, schedule=Never())
    objective = gaussian_sne(np.random.default_rng(0).standard_normal((100, 3)), 1.0)
    G = np.random.default_rng(1).standard_normal((100, 2))
    aggregated = projector.operator_for(objective).apply(G, G)
    means = np.array([G[labels == label].mean(axis=0) for label in range(3)])[labels]
    error = float(np.abs(aggregated - means).max())
    yield Criterion(
        "E0.3",
        "three clusters exactly, l = 3: the filtered gradient against the clusters' means",
        "points of a cluster move together (Fig. 2)",
        "equal to 1e-12",
        f"{error:.0e}",
        error <= 1e-12,
        identity=True,
    )
