"""E5.6: embedding and reconstruction of points beyond the boundary of the training data."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from coil import published
from common import Criterion, Lab, decimals
from matplotlib import pyplot as plt

from manifoldry import ElasticEmbedding
from manifoldry.datasets import ManifoldSample, make_s_curve
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.regression import LocalRegression
from manifoldry.metrics import procrustes

EDGE = 5.0  # arc length of the training data; the S-curve has length 3π
SETTINGS = {"λ = 100": (100.0, 20), "λ = 100, perplexity 40": (100.0, 40), "λ = 10000": (1e4, 20)}
BEYOND = (0.1, 0.2, 0.4, 0.8)  # distances beyond the boundary; the radius of the curve is 1


class Seen(NamedTuple):
    """An embedding of one part of a sheet, aligned with the sheet."""

    sample: ManifoldSample
    X: Any
    model: ElasticEmbedding
    motion: Any

    @classmethod
    def of(cls, n: int, seed: int, weight: float, perplexity: int) -> "Seen":
        sample = make_s_curve(n, random_state=seed)
        seen = sample.coordinates[:, 0] < EDGE
        X = sample.X[seen]
        model = ElasticEmbedding(
            2,
            perplexity=perplexity,
            weight=weight,
            repulsion="squared_distance",
            init="spectral",
            inverse="elastic",
        ).fit(X)
        # Local: near the boundary the scale differs from that of the whole embedding.
        near = sample.coordinates[seen][:, 0] > EDGE - 1
        fitted = procrustes(model.embedding_[near], sample.coordinates[seen][near], "affine")
        return cls(sample, X, model, fitted.alignment)

    def past(self, distance: float, n: int = 40) -> Any:
        """Sheet coordinates at a distance beyond the boundary, away from the corners."""
        across = self.sample.coordinates[:, 1]
        width = np.linspace(*np.quantile(across, [0.15, 0.85]), n)
        return np.column_stack([np.full(n, EDGE + distance), width])

    def on_map(self, coordinates: Any) -> Any:
        """Affine continuation of the embedding."""
        A, shift = affine(self.motion, self.model.embedding_.shape[1])
        return (coordinates - shift) @ np.linalg.inv(A)

    def reached(self, Z: Any) -> Any:
        """Arc length beyond the boundary of positions in the embedding."""
        return self.motion.apply(Z)[:, 0] - EDGE


def affine(motion: Any, d: int) -> tuple[Any, Any]:
    """A and b of z ↦ z·A + b."""
    shift = motion.apply(np.zeros((1, d)))[0]
    return motion.apply(np.eye(d)) - shift, shift


def forward_maps(seen: Seen) -> dict[str, Any]:
    """Extensions to new data: that of EE, local means and local linear regression."""
    regression = LocalRegression(seen.X, seen.model.embedding_.astype(float))
    return {
        "own": seen.model.transform,
        "local means": KernelRegressionMap(
            seen.X / 0.15, seen.model.embedding_.astype(float), "gaussian"
        ).predict,
        "local regression": regression.predict,
    }


def backward_maps(seen: Seen) -> dict[str, Any]:
    means = KernelRegressionMap(seen.model.embedding_.astype(float), seen.X, "gaussian")
    return {
        "own": seen.model.inverse_.predict,
        "own, published widths": published(seen.model.inverse_).predict,
        "local means": means.predict,
        "local regression": LocalRegression(seen.model.embedding_, seen.X).predict,
    }


def beyond_the_edge(lab: Lab) -> Iterator[Criterion]:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, setting in SETTINGS.items():
        sheets = [Seen.of(lab.choose(800, 200), seed, *setting) for seed in lab.seeds(5)]
        reached = [projected(seen) for seen in sheets]
        errors = [rebuilt(seen) for seen in sheets]
        outermost = np.array([seen.reached(seen.model.embedding_).max() for seen in sheets])
        yield from projection_rows(name, reached, outermost)
        for which in ("own, published widths", "own"):
            yield reconstruction_row(name, errors, which)
    draw_beyond(axes, reached, errors, name)
    lab.save(figure, "beyond")


def projected(seen: Seen) -> dict[str, Any]:
    """Mean arc length beyond the boundary of embedded new points, by distance."""
    out = {}
    for name, forward in forward_maps(seen).items():
        places = [forward(rescaled(name, seen.sample.embed(seen.past(d)))) for d in BEYOND]
        out[name] = np.array([seen.reached(Z).mean() for Z in places])
    return out


def rescaled(name: str, X: Any) -> Any:
    """Local means have a kernel of width one; the data are in units of it."""
    return X / 0.15 if name == "local means" else X


def rebuilt(seen: Seen) -> dict[str, Any]:
    """Root mean squared error of the reconstruction, by distance."""
    out = {}
    for name, backward in backward_maps(seen).items():
        errors = []
        for d in BEYOND:
            true = seen.past(d)
            X = backward(seen.on_map(true))
            errors.append(np.sqrt(((X - seen.sample.embed(true)) ** 2).sum(axis=1).mean()))
        out[name] = np.array(errors)
    return out


def mean(figures: list[dict[str, Any]], name: str) -> Any:
    return np.mean([f[name] for f in figures], axis=0)


def projection_rows(
    name: str, reached: list[dict[str, Any]], outermost: Any
) -> Iterator[Criterion]:
    seeds, at = len(reached), ", ".join(map(str, BEYOND))
    own = np.array([f["own"] for f in reached])
    regression = np.array([f["local means"] for f in reached])
    beyond = bool((own > 0).all())
    yield Criterion(
        "E5.6",
        f"{name}, points {at} past the edge: how far past it they are put",
        "extrapolates beyond the data set",
        "past the edge at every distance and seed",
        f"own {decimals(own.mean(axis=0))}{within_edge(own, outermost)}; local means "
        f"{decimals(regression.mean(axis=0))}; local regression "
        f"{decimals(mean(reached, 'local regression'))}",
        beyond,
        seeds=seeds,
    )
    target = np.array(BEYOND)
    better = bool((np.abs(own - target) < np.abs(regression - target)).all())
    yield Criterion(
        "E5.6",
        f"{name}: error of that distance, own against local means",
        "regression cannot leave the hull",
        "smaller at every distance and seed",
        f"{decimals(np.abs(own - target).mean(axis=0))} against "
        f"{decimals(np.abs(regression - target).mean(axis=0))}",
        better,
        seeds=seeds,
    )


def within_edge(own: Any, outermost: Any) -> str:
    """Points that are not put past the edge, and where the training data end on the map."""
    missed = [
        f"{decimals([own[i, j]])} for {BEYOND[j]} in sample {i}, whose outermost training point is "
        f"at {decimals([outermost[i]])}"
        for i, j in np.argwhere(own <= 0)
    ]
    past = int((own > outermost[:, None]).sum())
    farther = f"past the outermost training point in {past} of {own.size}"
    return f" ({'; '.join([*missed, farther])})"


def reconstruction_row(name: str, errors: list[dict[str, Any]], which: str) -> Criterion:
    own, means = mean(errors, which), mean(errors, "local means")
    passed = bool((own < means).all())
    return Criterion(
        "E5.6",
        f"{name}, {which}: error of the sheet rebuilt {', '.join(map(str, BEYOND))} past the edge",
        "extrapolates beyond the data set",
        "own below local means, at every distance",
        f"own {decimals(own)}; local means {decimals(means)}; local regression "
        f"{decimals(mean(errors, 'local regression'))}",
        passed,
        seeds=len(errors),
    )


def draw_beyond(axes: Any, reached: list[Any], errors: list[Any], title: str) -> None:
    for method in reached[0]:
        axes[0].plot(BEYOND, mean(reached, method), "o-", markersize=4, label=method)
        axes[1].plot(BEYOND, mean(errors, method), "o-", markersize=4, label=method)
    axes[0].plot(BEYOND, BEYOND, "k:", label="true")
    axes[0].set_title(f"{title}: where points are put", fontsize=8)
    axes[1].set_title("error of what is rebuilt", fontsize=8)
    for ax in axes:
        ax.set_xlabel("distance past the edge", fontsize=8)
        ax.legend(fontsize=7)
