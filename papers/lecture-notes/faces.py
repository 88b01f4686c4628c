"""E4.6 and E4.11 on images: faces by pose and light, objects on a turntable, faces in between.

Unfolding and Isomap use pixels only; light and pose of the faces and the angle of the turntable
are used for testing. Both methods have the same number of neighbors.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.offsetbox import AnnotationBbox, OffsetImage

from manifoldry import PCA, Isomap, MaximumVarianceUnfolding
from manifoldry.datasets import (
    find_data,
    load_coil20,
    load_isomap_faces,
    load_rotating_monkey,
)
from manifoldry.extension.regression import LocalRegression
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding
from manifoldry.semidefinite import EdgeConstraint

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Experiment, Lab, not_yet

K = 6  # neighbors, the default of MaximumVarianceUnfolding and Isomap's own for these faces


def needs(names: Iterable[str], id: str, figure: str) -> Callable[..., Experiment]:
    """In a quick run, yield "not yet" if a data file is missing; a full run requires it."""

    def with_data(experiment: Experiment) -> Experiment:
        @wraps(experiment)
        def run(lab: Lab) -> Iterator[Criterion]:
            missing = [name for name in names if find_data(name) is None]
            if not (lab.quick and missing):
                yield from experiment(lab)
                return
            waits_for = f"{missing[0]}.npz, which is not here"
            yield not_yet(id, experiment.__name__, waits_for)
            lab.save(plt.figure(figsize=(1, 1)), figure)

        return run

    return with_data


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about similar views, such as both sides of a cup
        return model.fit(X)


# ── E4.6: faces ──────────────────────────────────────────────────────────────────────────────


@cache
def faces_and_maps(every):
    """Pixels, light and pose of every k-th face, and embeddings of them."""
    data = load_isomap_faces()
    X, truth = data.X[::every].astype(np.float64), data.coordinates[::every]
    models = {
        "MVU": MaximumVarianceUnfolding(3),
        "Isomap": Isomap(3, n_neighbors=K),
        "Isomap, its default": Isomap(3),
        "PCA": PCA(3),
    }
    return X, truth, {name: fit(model, X) for name, model in models.items()}


@needs(["isomap_faces32"], "E4.6", "faces")
def faces(lab: Lab) -> Iterator[Criterion]:
    X, truth, models = faces_and_maps(lab.choose(1, 10))
    mvu = models["MVU"]
    fractions = ", ".join(f"{fraction:.3f}" for fraction in mvu.explained_variance_ratio_[:5])
    yield Criterion(
        "E4.6",
        f"MVU of {len(X)} faces: eigenvalues above 1 %",
        "rank reveals the dimension",
        "3: light and two of pose",
        f"{mvu.dimension_hint_}; fractions {fractions}, …",
        mvu.dimension_hint_ == 3,
        note=f"variance within {mvu.gap_:.1%} of the maximum, mean edge error "
        f"{mvu.mean_edge_error_:.2%}",
    )
    yield pose_row(truth, models)
    draw_faces(lab, X, models)


def pose_row(truth, models):
    """R² of light and pose by linear regression on three coordinates."""
    R2 = {name: explained(model.embedding_, truth) for name, model in models.items()}
    left = {name: procrustes(model, truth, "affine").error for name, model in models.items()}
    shown = "; ".join(
        f"{name} {R2[name].mean():.3f} ({', '.join(f'{r:.2f}' for r in R2[name])})" for name in R2
    )
    return Criterion(
        "E4.6",
        "faces: R² of light, pose left-right and pose up-down from three coordinates, mean (each)",
        "(ours)",
        f"MVU's mean no less than that of Isomap with {K} neighbors",
        shown,
        bool(R2["MVU"].mean() >= R2["Isomap"].mean()),
        note=f"affine Procrustes error {left['MVU']:.3f} against {left['Isomap']:.3f}",
    )


def explained(Y, truth):
    """R² of every true coordinate by linear regression on the embedding."""
    A = np.column_stack([np.ones(len(Y)), Y])
    residual = truth - A @ np.linalg.lstsq(A, truth, rcond=None)[0]
    return 1 - residual.var(axis=0) / truth.var(axis=0)


def draw_faces(lab: Lab, X, models) -> None:
    """Plot faces at their positions in MVU and Isomap."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for ax, name in zip(axes, ("MVU", "Isomap"), strict=True):
        Y = models[name].embedding_[:, :2]
        plot_embedding(Y, ax=ax, size=3, title=name)
        for row in apart(Y, 24):
            image = OffsetImage(X[row].reshape(32, 32), zoom=0.7, cmap="gray")
            ax.add_artist(AnnotationBbox(image, Y[row], frameon=False))
    lab.save(figure, "faces")


def apart(Y, count):
    """Rows far from each other, each the farthest from those before."""
    rows = [int(np.argmax(np.linalg.norm(Y - Y.mean(axis=0), axis=1)))]
    distance = np.full(len(Y), np.inf)
    while len(rows) < min(count, len(Y)):
        distance = np.minimum(distance, np.linalg.norm(Y - Y[rows[-1]], axis=1))
        rows.append(int(np.argmax(distance)))
    return rows


# ── E4.6: turning objects are rings ──────────────────────────────────────────────────────────

BESIDE = 4  # neighbors of a view: two on either side


@dataclass(frozen=True)
class Ring:
    """Arrangement of a closed series of views around the center of its embedding."""

    turns: int
    onward: int  # steps between views with the predominant sense of rotation
    views: int

    @classmethod
    def of(cls, Y):
        angles = np.arctan2(Y[:, 1], Y[:, 0])
        steps = (np.diff(angles, append=angles[0]) + np.pi) % (2 * np.pi) - np.pi
        turns = round(steps.sum() / (2 * np.pi))
        return cls(abs(turns), int((np.sign(steps) == np.sign(turns)).sum()), len(Y))

    @property
    def in_order(self):
        return self.turns > 0 and self.onward == self.views


def unfolded(X, n_neighbors=BESIDE, **parameters):
    return fit(MaximumVarianceUnfolding(2, n_neighbors=n_neighbors, **parameters), X)


def ring_of_two(X):
    """Unfolding that keeps only the lengths to the two nearest views."""
    return unfolded(X, 2, constraint=EdgeConstraint(cliques=False))


def isomap(X, n_neighbors=BESIDE):
    return fit(Isomap(2, n_neighbors=n_neighbors), X)


@needs(["coil20", "rotating_monkey"], "E4.6", "rings")
def rings(lab: Lab) -> Iterator[Criterion]:
    objects = lab.choose(range(1, 21), [1])
    views = {number: load_coil20(objects=[number]).X for number in objects}
    maps = {number: (unfolded(X), isomap(X)) for number, X in views.items()}
    yield duck_row(maps[1][0])
    yield objects_row("4 neighbors", maps)
    sparser = {number: (ring_of_two(X), isomap(X, 2)) for number, X in views.items()}
    yield objects_row("2 neighbors, no cliques", sparser)
    yield from monkey_rows(lab)
    draw_rings(lab, views, maps)


def duck_row(model):
    ring, fractions = Ring.of(model.embedding_), model.explained_variance_ratio_
    return Criterion(
        "E4.6",
        "MVU of the duck (COIL-20, object 1), 4 neighbors: eigenvalues above 1 %; steps onward",
        "(ours)",
        "2; all 72, once around",
        f"{model.dimension_hint_} (fractions {fractions[0]:.3f}, {fractions[1]:.3f}, "
        f"{fractions[2]:.3f}, …); "
        f"{ring.onward}, around {ring.turns} time",
        model.dimension_hint_ == 2 and ring.in_order and ring.turns == 1,
    )


def objects_row(how, maps):
    """How many objects are rings in the right order, symmetric ones around more than once."""
    ours, others = zip(
        *([Ring.of(m.embedding_) for m in pair] for pair in maps.values()), strict=True
    )
    counts = [sum(ring.in_order for ring in found) for found in (ours, others)]
    once = [sum(ring.in_order and ring.turns == 1 for ring in found) for found in (ours, others)]
    return Criterion(
        "E4.6",
        f"{len(maps)} objects of COIL-20, {how}: with all 72 views in order (once around)",
        "(ours)",
        "no fewer than Isomap",
        f"MVU {counts[0]} ({once[0]}), Isomap {counts[1]} ({once[1]})",
        counts[0] >= counts[1],
    )


def monkey_rows(lab: Lab) -> Iterator[Criterion]:
    frames = load_rotating_monkey().X
    turns = [frames[start : start + 40] for start in lab.choose((0, 40, 80), (0,))]
    models = [unfolded(X) for X in turns]
    yield monkey_row("4 neighbors", models, [isomap(X) for X in turns])
    models = [ring_of_two(X) for X in turns]
    yield monkey_row("2 neighbors, no cliques", models, [isomap(X, 2) for X in turns])


def monkey_row(how, models, others):
    ours, theirs = ([Ring.of(m.embedding_) for m in found] for found in (models, others))
    return Criterion(
        "E4.6",
        f"a head turned about {len(models)} axes, 40 frames each, {how}: steps onward "
        "(eigenvalues above 1 %)",
        "(ours)",
        "all 40, once around",
        f"MVU {', '.join(str(ring.onward) for ring in ours)} "
        f"({', '.join(str(m.dimension_hint_) for m in models)}); "
        f"Isomap {', '.join(str(ring.onward) for ring in theirs)}",
        all(ring.in_order and ring.turns == 1 for ring in ours),
    )


def draw_rings(lab: Lab, views, maps) -> None:
    shown = [number for number in (1, 4, 14) if number in maps]
    figure, axes = plt.subplots(1, 6, figsize=(12, 2.5), layout="constrained")
    angle = np.arange(0, 360, 5)
    for pair, number in zip(axes.reshape(-1, 2), shown, strict=False):
        for ax, model, name in zip(pair, maps[number], ("MVU", "Isomap"), strict=True):
            Y = model.embedding_
            look = {"cmap": "twilight", "legend": False, "size": 12}
            plot_embedding(Y, angle, ax=ax, title=f"object {number}, {name}", **look)
            picture(ax, (0.5, 0.5), views[number][0].reshape(128, 128)[::3, ::3])
    lab.save(figure, "rings")


def picture(ax, place, image):
    """Plot an image at a position given as a fraction of the axes."""
    box = OffsetImage(image, zoom=0.9, cmap="gray")
    ax.add_artist(AnnotationBbox(box, place, xycoords="axes fraction", frameon=False))


# ── E4.11: faces in between ──────────────────────────────────────────────────────────────────

BETWEEN = np.array([0.25, 0.5, 0.75])[:, None]  # positions between two faces
PAIRS = 6  # of faces, per seed


@needs(["isomap_faces32"], "E4.11", "interpolation")
def interpolation(lab: Lab) -> Iterator[Criterion]:
    X, _, models = faces_and_maps(lab.choose(1, 10))
    seeds = lab.seeds(5)
    pairs = [pair for seed in seeds for pair in random_pairs(len(X), seed, lab.choose(PAIRS, 2))]
    blends = np.array([blended(X, *pair) for pair in pairs])
    for name in ("Isomap", "MVU"):
        Z = models[name].embedding_
        found = np.array([on_the_way(X, Z, *pair) for pair in pairs])
        yield between_row(name, found, blends, X, pairs, len(seeds))
    draw_interpolation(lab, X, models, pairs)


def random_pairs(n, seed, count):
    rng = np.random.default_rng(seed)
    return [rng.choice(n, 2, replace=False) for _ in range(count)]


def between(A, a, b):
    return (1 - BETWEEN) * A[a] + BETWEEN * A[b]


def psnr(A, B):
    return -10 * np.log10(((A - B) ** 2).mean(axis=-1))


def blended(X, a, b):
    """PSNR of mixtures of pixels to the most similar face other than the two."""
    likeness = psnr(between(X, a, b)[:, None], np.delete(X, [a, b], axis=0))
    return likeness.max(axis=1)


def on_the_way(X, Z, a, b):
    """PSNR of decoded positions to the nearest face in the embedding, which was left out.

    The image at a position is computed by regression on all faces except those nearest to
    positions on the line, and compared with the nearest one.
    """
    places = between(Z, a, b)
    squares = ((places[:, None] - Z) ** 2).sum(axis=2)
    squares[:, [a, b]] = np.inf
    nearest = squares.argmin(axis=1)
    others = np.delete(np.arange(len(X)), nearest)
    return psnr(LocalRegression(Z[others], X[others]).predict(places), X[nearest])


def between_row(name, found, blends, X, pairs, n_seeds):
    near = np.argsort([np.linalg.norm(X[a] - X[b]) for a, b in pairs])[: len(pairs) // 4]
    return Criterion(
        "E4.11",
        f"{len(pairs)} pairs of faces, three places on the way in {name}'s space: PSNR against the "
        "nearest real face there, left out (mixtures of pixels, against the most like face)",
        "interpolates between faces",
        "no less, in the mean",
        f"{found.mean():.1f} dB ({blends.mean():.1f}); halfway {found[:, 1].mean():.1f} "
        f"({blends[:, 1].mean():.1f}), of the most like quarter of pairs "
        f"{found[near].mean():.1f} ({blends[near].mean():.1f}); higher in "
        f"{(found > blends).mean():.0%} of places",
        bool(found.mean() >= blends.mean()),
        seeds=n_seeds,
    )


def draw_interpolation(lab: Lab, X, models, pairs) -> None:
    """Plot mixtures of pixels and images along lines in two embeddings, for the farthest pair."""
    a, b = max(pairs, key=lambda pair: np.linalg.norm(X[pair[0]] - X[pair[1]]))
    ways = {"pixels": between(X, a, b)}
    for name in ("Isomap", "MVU"):
        ways[name] = models[name].inverse_transform(between(models[name].embedding_, a, b))
    figure, axes = plt.subplots(3, 5, figsize=(6, 3.8), layout="constrained")
    for row, (name, images) in zip(axes, ways.items(), strict=True):
        for ax, image in zip(row, [X[a], *images, X[b]], strict=True):
            ax.imshow(image.reshape(32, 32), cmap="gray", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name)
    lab.save(figure, "interpolation")
