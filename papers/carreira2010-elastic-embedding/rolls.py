"""E2.1, E2.2: the Swiss roll along λ, and the learned weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from common import (
    FAST,
    REPULSIONS,
    Criterion,
    Lab,
    decimals,
    draw_points,
    elastic_on,
    run_from_collapse,
    span,
)
from matplotlib import pyplot as plt
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from manifoldry import SNE, LaplacianEigenmaps
from manifoldry.datasets import ManifoldSample, make_swiss_roll
from manifoldry.metrics import neighbor_preservation, procrustes, trustworthiness
from manifoldry.objectives import Bifurcation, Pairwise, best_scale
from manifoldry.optimize import Homotopy, Path

NEIGHBORS = 20  # of the graph, as in the authors' later demonstration
APART = 12  # of a graph that connects no two windings; twenty do on three of five samples
FEW = 12  # of the quality metrics
LAST = 1e5


@dataclass(eq=False)
class Followed:
    """A roll and its embeddings for increasing λ."""

    sample: ManifoldSample
    objective: Pairwise
    path: Path
    monotone: bool

    @classmethod
    def along(
        cls,
        n: int,
        steps: int,
        seed: int,
        repulsion: str,
        rule: Homotopy,
        n_neighbors: int = NEIGHBORS,
    ) -> "Followed":
        sample = make_swiss_roll(n, random_state=seed)
        objective = elastic_on(sample.X, n_neighbors, repulsion)
        run = run_from_collapse(objective, rule)
        values = np.geomspace(1.05 * Bifurcation.of(objective, 2).weight, LAST, steps)
        searches = [run.advance(value, final=value == LAST).history("value") for value in values]
        # At the minimum, values differ by rounding.
        falling = all((np.diff(v) <= 1e-13 * np.abs(v[1:])).all() for v in searches)
        return cls(sample, objective, run.path, falling)

    @cached_property
    def errors(self) -> Any:
        """Procrustes errors of all embeddings, after a similarity."""
        maps = self.path.embeddings
        return np.array([procrustes(Y, self.sample.coordinates).error for Y in maps])

    @cached_property
    def best(self) -> int:
        """Index of the embedding closest to the sheet among those with trustworthiness .99."""
        order = np.argsort(self.errors)
        trusted = (i for i in order if self.trust(self.path.embeddings[i]) >= 0.99)
        return int(next(trusted, order[0]))

    def trust(self, Y: Any) -> float:
        return float(trustworthiness(self.sample.X, Y, n_neighbors=FEW))

    def kept(self, Y: Any) -> float:
        return float(neighbor_preservation(self.sample.X, Y, n_neighbors=FEW))

    @cached_property
    def error_from_truth(self) -> float:
        """Error of the minimum reached from the true sheet, at the best λ."""
        objective = self.objective.with_weight(self.path.steps[self.best].parameter)
        Y = self.sample.coordinates
        found = FAST.minimize(objective, best_scale(objective, Y) * Y).embedding
        return procrustes(found, Y).error

    @cached_property
    def eigenmaps(self) -> Any:
        return LaplacianEigenmaps(2, affinity="precomputed").fit_transform(self.objective.affinity)

    @cached_property
    def sne(self) -> Any:
        return SNE(2, perplexity=20, init="random", random_state=0).fit_transform(self.sample.X)


def rolls(lab: Lab) -> Iterator[Criterion]:
    (n, steps), seeds = lab.choose((1000, 50), (200, 12)), lab.seeds(5)
    for repulsion in REPULSIONS:
        found = [Followed.along(n, steps, seed, repulsion, Homotopy()) for seed in seeds]
        yield unrolled(found, repulsion)
        yield preserved(found, repulsion)
        yield Criterion(
            "E2.1",
            f"{repulsion}: values of every search along the path, {len(found[0].path)} values of λ",
            "(not stated)",
            "never rise, but for rounding",
            f"in {sum(f.monotone for f in found)} of {len(found)} paths",
            all(f.monotone for f in found),
            seeds=len(found),
            identity=True,
        )
        yield from learned(found, repulsion)
        if repulsion == REPULSIONS[0]:
            draw_maps(lab, found[0])
            draw_affinities(lab, found[0])
            rule = Homotopy(curvature=True)
            off_saddles = [Followed.along(n, steps, seed, repulsion, rule) for seed in seeds]
            yield unrolled(off_saddles, f"{repulsion}, path that leaves saddles")
            apart = [
                Followed.along(n, lab.choose(25, 12), seed, repulsion, Homotopy(), APART)
                for seed in seeds
            ]
            yield unrolled(apart, f"{repulsion}, graph of {APART} neighbors")
            yield preserved(apart, f"{repulsion}, graph of {APART} neighbors")


# ── E2.1 ─────────────────────────────────────────────────────────────────────────────────────


def unrolled(found: list[Followed], name: str) -> Criterion:
    errors = [float(f.errors[f.best]) for f in found]
    trust = [f.trust(f.path.embeddings[f.best]) for f in found]
    eigenmaps = [procrustes(f.eigenmaps, f.sample.coordinates).error for f in found]
    sne = [procrustes(f.sne, f.sample.coordinates).error for f in found]
    at = [f.path.steps[f.best].parameter for f in found]
    passed = (
        max(errors) <= 0.15
        and min(trust) >= 0.99
        and all(e < le for e, le in zip(errors, eigenmaps, strict=True))
    )
    return Criterion(
        "E2.1",
        f"{name}: the map of the path nearest to the true sheet",
        "best of all methods",
        "trustworthiness ≥ .99, similarity error ≤ .15 and below eigenmaps' in all seeds",
        f"trust {span(trust, 3)}; errors {decimals(errors)} at λ "
        f"{', '.join(f'{a:.0e}' for a in at)} (eigenmaps {span(eigenmaps)}, SNE {span(sne)}; "
        f"from the true sheet {decimals(f.error_from_truth for f in found)})",
        passed,
        seeds=len(found),
    )


def preserved(found: list[Followed], name: str) -> Criterion:
    elastic_kept = [f.kept(f.path.embeddings[f.best]) for f in found]
    best = [max(map(f.kept, f.path.embeddings[::5])) for f in found]
    sne = [f.kept(f.sne) for f in found]
    gaps = [ours - theirs for ours, theirs in zip(elastic_kept, sne, strict=True)]
    return Criterion(
        "E2.1",
        f"{name}: {FEW} neighbors that are kept, at that λ, less those that SNE keeps",
        "EE better than SNE",
        "≥ −.02 in all seeds",
        f"{span(gaps)} (EE {span(elastic_kept)}, at the λ best for it {span(best)}; "
        f"SNE {span(sne)})",
        min(gaps) >= -0.02,
        seeds=len(found),
    )


def draw_maps(lab: Lab, f: Followed) -> None:
    maps = {
        "true sheet": f.sample.coordinates,
        "Laplacian eigenmaps": f.eigenmaps,
        "SNE": f.sne,
    }
    for value in (1e-2, 1.0, 1e1, 1e3, 1e5):
        maps[f"EE, λ = {value:g}"] = f.path.embedding_at(value)
    figure, axes = plt.subplots(2, 4, figsize=(9, 4.4), layout="constrained")
    for ax, (name, Y) in zip(axes.flat, maps.items(), strict=True):
        draw_points(ax, Y, f.sample.coordinates[:, 0], name, most=1000)
    lab.save(figure, "rolls")


# ── E2.2 ─────────────────────────────────────────────────────────────────────────────────────


def learned(found: list[Followed], repulsion: str) -> Iterator[Criterion]:
    positive, ranks = zip(*(near_weights(f, 1e-2) for f in found), strict=True)
    yield Criterion(
        "E2.2",
        f"{repulsion}, λ = .01: learned weights of neighbors against distance",
        "Gaussian",
        "≥ 0 for 99 % of pairs, rank correlation < −.9",
        f"{span(positive, 3)} of pairs ≥ 0, correlation {span(ranks, 3)}",
        min(positive) >= 0.99 and max(ranks) < -0.9,
        seeds=len(found),
    )
    for value in (1e1, 1e3):
        hats = [Hat.at_center(f, value) for f in found]
        yield Criterion(
            "E2.2",
            f"{repulsion}, λ = {value:g}: learned weights at the roll's center",
            "Mexican hat" if value == 1e1 else "(λ not shown)",
            "positive near, then negative, far below 0 by less than 1 % of the lowest",
            f"lowest over nearest {span([h.lowest / h.near for h in hats], 3)}, at distance "
            f"{span([h.where for h in hats], 1)}; beyond 20 at most "
            f"{max(abs(h.far / h.lowest) for h in hats):.0e} of the lowest",
            all(h.is_hat for h in hats),
            seeds=len(found),
        )


def near_weights(f: Followed, value: float) -> tuple[float, float]:
    """Fraction of neighbors with a weight that is not negative; rank correlation with distance."""
    pattern = f.objective.affinity
    Y = f.path.embedding_at(value)
    W = f.objective.with_weight(value).learned_affinity_edges(Y, pattern).tocoo()
    distance = np.linalg.norm(f.sample.X[W.row] - f.sample.X[W.col], axis=1)
    return float((W.data >= 0).mean()), float(spearmanr(W.data, distance).statistic)


@dataclass(frozen=True)
class Hat:
    """Learned weights of one point: of its neighbors, the minimum, and at large distances."""

    near: float
    lowest: float
    where: float
    far: float

    @classmethod
    def at_center(cls, f: Followed, value: float) -> "Hat":
        distance, w = at_center(f, value)
        order = np.argsort(distance)
        distance, w = distance[order], w[order]
        lowest = int(np.argmin(w))
        far = w[distance > 20]
        return cls(w[:5].mean(), w[lowest], distance[lowest], far[np.argmax(np.abs(far))])

    @property
    def is_hat(self) -> bool:
        return self.near > 0 > self.lowest and 0 >= self.far > 0.01 * self.lowest


def at_center(f: Followed, value: float) -> tuple[Any, Any]:
    """Distances in the data and learned weights of the point in the middle of the sheet."""
    step = int(np.argmin(np.abs(np.log(f.path.column("parameter") / value))))
    objective = f.objective.with_weight(f.path.steps[step].parameter)
    C = f.sample.coordinates
    center = int(np.argmin(cdist(C, (C.min(axis=0) + C.max(axis=0))[None] / 2)))
    w = np.delete(objective.learned_affinity(f.path.embeddings[step])[center], center)
    distance = np.linalg.norm(f.sample.X - f.sample.X[center], axis=1)
    return np.delete(distance, center), w


def draw_affinities(lab: Lab, f: Followed) -> None:
    values = (1e-2, 1e1, 1e3)
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.4), layout="constrained", sharex=True)
    for column, value in zip(axes.T, values, strict=True):
        distance, w = at_center(f, value)
        for ax in column:
            ax.axhline(0, color="0.7", linewidth=0.8)
            ax.plot(distance, w, ".", markersize=2, antialiased=False)
            ax.tick_params(labelsize=7)
        column[0].set_title(f"λ = {value:g}", fontsize=8)
        lowest = min(w.min(), -1e-12)
        column[1].set_ylim(1.2 * lowest, -1.2 * lowest)
        column[1].set_title("zoom", fontsize=8)
        column[1].set_xlabel("distance in the data", fontsize=8)
    lab.save(figure, "affinities")
