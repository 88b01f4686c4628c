"""E2.7, E2.8: objects on a turntable; embedding and reconstruction of new views."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from common import Criterion, Lab, decimals, draw_points, needs, span
from matplotlib import pyplot as plt
from scipy.spatial.distance import pdist

from manifoldry import PCA, SNE, TSNE, ElasticEmbedding, LaplacianEigenmaps
from manifoldry.datasets import load_coil20
from manifoldry.extension.elastic_inverse import ElasticInverse
from manifoldry.extension.regression import LocalRegression
from manifoldry.metrics import knn_accuracy
from manifoldry.neighbors.choose import choose_index
from manifoldry.optimize import Homotopy, Momentum, Stopping

OBJECTS, VIEWS = 10, 72
PERPLEXITY, WEIGHT = 20, 100.0


class Views(NamedTuple):
    """Images in an orthonormal basis of all of them, which keeps all distances."""

    X: Any
    objects: Any
    basis: PCA

    def images(self, X: Any) -> Any:
        return self.basis.inverse_transform(X).reshape(-1, 128, 128)


def views(lab: Lab) -> Views:
    """All views of ten objects, in the order of their angles; two objects in a quick run."""
    data = load_coil20(objects=lab.choose(OBJECTS, 2))
    order = np.lexsort((np.ravel(data.coordinates), data.y))
    X = data.X[order].astype(float)
    # At most as many features as images, with the same distances: 16384 pixels are slow.
    basis = PCA(len(X) - 1).fit(X)
    return Views(basis.transform(X), np.asarray(data.y)[order], basis)


def elastic(**more: Any) -> ElasticEmbedding:
    settings = {"perplexity": PERPLEXITY, "weight": WEIGHT, "init": "random"}
    return ElasticEmbedding(2, repulsion="squared_distance", **(settings | more))


# ── E2.7 ─────────────────────────────────────────────────────────────────────────────────────


@needs("coil20", ["E2.7"], ["coil"])
def objects_on_a_turntable(lab: Lab) -> Iterator[Criterion]:
    data, seeds = views(lab), lab.seeds(5)
    path = Homotopy(values=tuple(np.logspace(-2, 2, 50)))
    methods = {
        "EE, λ = 100": [elastic(random_state=seed) for seed in seeds],
        "EE, λ = 1000": [elastic(weight=1000.0, random_state=seed) for seed in seeds],
        "EE, homotopy": [elastic(optimizer=path)],
        "SNE": [SNE(2, perplexity=PERPLEXITY, init="random", random_state=s) for s in seeds],
        "t-SNE": [tsne(seed) for seed in seeds],
        "eigenmaps": [LaplacianEigenmaps(2, n_neighbors=PERPLEXITY)],
        "EE, λ = 100, spectral direction": [
            elastic(optimizer="spectral", random_state=seed) for seed in seeds
        ],
        "EE, λ = 10⁴": [elastic(weight=1e4, random_state=seed) for seed in seeds],
        "EE, λ = 10⁴, perplexity 5": [
            elastic(weight=1e4, perplexity=5, random_state=seed) for seed in seeds
        ],
    }
    taken = {name: [seconds(m, data.X) for m in models] for name, models in methods.items()}
    maps = {name: [m.embedding_ for m in models] for name, models in methods.items()}
    nearest = {name: [accuracy(Y, data) for Y in some] for name, some in maps.items()}
    for name in [*list(maps)[:3], *list(maps)[-2:]]:
        yield separated(name, nearest)
        rounds = [roundness(Y) for Y in maps[name]]
        yield Criterion(
            "E2.7",
            f"{name}: distance of adjacent views over the object's diameter, mean of objects",
            "closed loops",
            "< .25",
            f"{span(rounds, 3)} (eigenmaps {span(map(roundness, maps['eigenmaps']), 3)})",
            max(rounds) < 0.25,
            seeds=len(rounds) if len(rounds) > 1 else 0,
        )
    yield faster_than_tsne(taken, len(seeds))
    draw_objects(lab, {name: some[0] for name, some in list(maps.items())[:6]}, data.objects)


def tsne(seed: int) -> TSNE:
    # The number of steps is not published; a thousand is common, and not yet converged.
    search = Momentum(stopping=Stopping(max_iter=1000, tol=0.0, value_tol=1e-5))
    return TSNE(2, perplexity=PERPLEXITY, init="random", random_state=seed, optimizer=search)


def accuracy(Y: Any, data: Views) -> float:
    return float(knn_accuracy(Y, data.objects, n_neighbors=1))


def roundness(Y: Any) -> float:
    """Mean distance of consecutive views of an object, divided by its diameter."""
    loops = Y.reshape(-1, VIEWS, 2)
    steps = np.linalg.norm(loops - np.roll(loops, 1, axis=1), axis=2).mean(axis=1)
    return float(np.mean([step / pdist(Z).max() for step, Z in zip(steps, loops, strict=True)]))


def separated(name: str, nearest: dict[str, list[float]]) -> Criterion:
    found, (eigenmaps,) = nearest[name], nearest["eigenmaps"]
    passed = min(found) >= 0.97 and min(found) >= eigenmaps + 0.1
    rest = ", ".join(f"{which} {span(nearest[which], 3)}" for which in ("SNE", "t-SNE"))
    return Criterion(
        "E2.7",
        f"{name}: fraction of views whose nearest on the map shows the same object",
        "objects separated; eigenmaps collapse",
        "≥ .97, and .1 more than eigenmaps",
        f"{span(found, 3)}; eigenmaps {decimals([eigenmaps], 3)}, {rest}",
        passed,
        seeds=len(found) if len(found) > 1 else 0,
    )


def faster_than_tsne(taken: dict[str, list[float]], seeds: int) -> Criterion:
    middle = {name: float(np.median(times)) for name, times in taken.items()}
    ours, theirs = middle["EE, λ = 100, spectral direction"], middle["t-SNE"]
    return Criterion(
        "E2.7",
        "seconds of a fit: EE with the spectral direction, and t-SNE (exact, 1000 steps)",
        "(not stated)",
        "less than t-SNE, medians",
        f"{ours:.1f} against {theirs:.1f} (EE with L-BFGS as well {middle['EE, λ = 100']:.1f}, "
        f"SNE {middle['SNE']:.1f})",
        ours < theirs,
        seeds=seeds,
    )


def seconds(model: Any, X: Any) -> float:
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start


def draw_objects(lab: Lab, maps: dict[str, Any], objects: Any) -> None:
    figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
    for ax, (name, Y) in zip(axes.flat, maps.items(), strict=True):
        draw_points(ax, Y, objects.astype(str), name, most=len(Y))
    lab.save(figure, "coil")


# ── E2.8 ─────────────────────────────────────────────────────────────────────────────────────


class Split(NamedTuple):
    """Every other view is new; its adjacent training views are those before and after it."""

    train: Any
    new: Any
    before: Any
    after: Any

    @classmethod
    def of(cls, n: int) -> "Split":
        rows = np.arange(n).reshape(-1, VIEWS)
        half = np.arange(n // 2).reshape(-1, VIEWS // 2)  # indices among the training views
        return cls(
            rows[:, ::2].ravel(),
            rows[:, 1::2].ravel(),
            half.ravel(),
            np.roll(half, -1, axis=1).ravel(),
        )


# Perplexity and λ: those of E2.7, and of nine pairs (5, 10, 20; 1e2, 1e3, 1e4) the best by both
# criteria for one homotopy, so that the second is fitted to them.
SETTINGS = ((PERPLEXITY, WEIGHT), (5, 1e4))


@needs("coil20", ["E2.8"], ["views"])
def new_views(lab: Lab) -> Iterator[Criterion]:
    data = views(lab)
    split = Split.of(len(data.X))
    X, new = data.X[split.train], data.X[split.new]
    means = (X[split.before] + X[split.after]) / 2
    for perplexity, weight in SETTINGS:
        name = f"perplexity {perplexity}, λ = {weight:g}"
        some = {"perplexity": perplexity, "weight": weight}
        starts = [{"random_state": seed} for seed in lab.seeds(2)]
        model = partial(elastic, inverse="elastic", **some)
        models = [model(**more).fit(X) for more in [*starts, {"optimizer": Homotopy(25)}]]
        places = [model.transform(new) for model in models]
        of_all = elastic(**some, **starts[0]).fit_transform(data.X)
        rebuilt = [
            {which: inverse.predict(Z) for which, inverse in ways(model, X).items()}
            for model, Z in zip(models, places, strict=True)
        ]
        yield between(name, models, places, split, data.X, of_all)
        yield from rebuilt_views(name, rebuilt, new, means)
        name += ", the homotopy alone"
        yield between(name, models[-1:], places[-1:], split, data.X, of_all)
        yield rebuilt_row(name, "own", rebuilt[-1:], new, means)
    draw_views(lab, data, new, rebuilt[-1])


def between(
    name: str, models: list[Any], places: list[Any], split: Split, X: Any, of_all: Any
) -> Criterion:
    """Whether the two training views adjacent to a new one are the two nearest in the embedding."""
    pairs = zip(models, places, strict=True)
    both, either = zip(*(beside(split, m.embedding_, Z) for m, Z in pairs), strict=True)
    data, _ = beside(split, X[split.train], X[split.new])
    known, _ = beside(split, of_all[split.train], of_all[split.new])
    maps = "; two random starts and a homotopy" if len(models) > 1 else ""
    return Criterion(
        "E2.8",
        f"{name}: new views whose two nearest training views on the map are the adjacent ones",
        "projections interleave on the loops",
        "≥ 80 %",
        f"{decimals(both)} (the nearest is an adjacent one: {decimals(either)}){maps}. In the data "
        f"{decimals([data])}; on a map of all views, none new, {decimals([known])}",
        min(both) >= 0.8,
        seeds=len(both) - 1,
    )


def beside(split: Split, train: Any, new: Any) -> tuple[float, float]:
    """Fraction of new views with both adjacent ones nearest, and with one of them nearest."""
    two = choose_index(train).nearest(new, 2)[0]
    found = (two == split.before[:, None]) | (two == split.after[:, None])
    return float(found.all(axis=1).mean()), float(found[:, 0].mean())


def ways(model: ElasticEmbedding, X: Any) -> dict[str, Any]:
    """The inverses: local regression, the published one, and that with widths chosen on `X`."""
    return {
        "regression": LocalRegression(model.embedding_, X),
        "own, published widths": published(model.inverse_),
        "own, without repulsion": replace(published(model.inverse_), repulsion_width=0.0),
        "own": model.inverse_,
    }


def published(inverse: ElasticInverse) -> ElasticInverse:
    """Argmin over y of the pair energy, with the kernels of training."""
    return replace(inverse, attraction_width=1.0, repulsion_width=1.0)


def noise_ratio(X: Any, Z: Any) -> Any:
    """Peak signal-to-noise ratio of images with pixels from 0 to 1, in decibels."""
    return -10 * np.log10(np.square(X - Z).sum(axis=1) / 128**2)


def rebuilt_views(
    name: str, rebuilt: list[dict[str, Any]], new: Any, means: Any
) -> Iterator[Criterion]:
    for which in ("regression", "own, published widths", "own"):
        yield rebuilt_row(name, which, rebuilt, new, means)


def rebuilt_row(
    name: str, which: str, rebuilt: list[dict[str, Any]], new: Any, means: Any
) -> Criterion:
    bar = noise_ratio(new, means).mean()
    gains = {w: [float(noise_ratio(new, some[w]).mean() - bar) for some in rebuilt] for w in ROWS}
    passed = min(gains[which]) >= -1
    alone = decimals(gains["own, without repulsion"])
    more = f" (without repulsion {alone})" if which == "own, published widths" else ""
    return Criterion(
        "E2.8",
        f"{name}, new views projected and rebuilt, {which}: PSNR less that of the mean of the "
        "adjacent two",
        "look right",
        "≥ −1 dB",
        f"{decimals(gains[which])} dB{more} of {bar:.1f}",
        passed,
        seeds=len(rebuilt) - 1,
    )


ROWS = ("regression", "own, published widths", "own, without repulsion", "own")


def draw_views(lab: Lab, data: Views, new: Any, rebuilt: dict[str, Any]) -> None:
    rows = {"new view": new, "regression": rebuilt["regression"], "own": rebuilt["own"]}
    each = VIEWS // 2
    chosen = [o * each + 9 for o in range(len(new) // each)]
    figure, axes = plt.subplots(3, len(chosen), figsize=(7.5, 2.6), layout="constrained")
    for row, (name, X) in zip(axes, rows.items(), strict=True):
        for ax, image in zip(row, data.images(X[chosen]), strict=True):
            ax.imshow(image[::2, ::2], cmap="gray", vmin=0, vmax=1)
            ax.set_xticks([])
            ax.set_yticks([])
        row[0].set_ylabel(name, fontsize=8)
    lab.save(figure, "views")
