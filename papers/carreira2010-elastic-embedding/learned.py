"""E5.3, E5.4: learned affinities in a spectral method; homotopies and affinities of SNE."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from coil import views
from common import EXACT, Criterion, Lab, decimals, draw_points, imbalance, needs, span
from matplotlib import pyplot as plt
from scipy.linalg import eigh, subspace_angles
from sklearn.datasets import load_digits

from manifoldry import SNE, ElasticEmbedding, LaplacianEigenmaps, SymmetricSNE
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import coranking, knn_accuracy, procrustes
from manifoldry.optimize import Homotopy

# ── E5.3 ─────────────────────────────────────────────────────────────────────────────────────

WEIGHTS = (1.0, 100.0)  # λ at which affinities are learned
PERPLEXITY = 10  # thirty neighbors do not connect the windings of 500 points


class Data(NamedTuple):
    """Data with labels or true coordinates."""

    X: Any
    labels: Any = None
    sheet: Any = None


def data_sets(lab: Lab, name: str) -> list[Data]:
    n = lab.choose(500, 120)
    if name == "roll":
        samples = [make_swiss_roll(n, random_state=seed) for seed in lab.seeds(5)]
        return [Data(s.X, sheet=s.coordinates) for s in samples]
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        draws = [np.random.default_rng(seed).permutation(len(X))[:n] for seed in lab.seeds(5)]
        return [Data(X[rows], y[rows]) for rows in draws]
    found = views(lab)
    return [Data(found.X, found.objects)]


def learned_in_spectral(lab: Lab) -> Iterator[Criterion]:
    for name in ("roll", "digits"):
        yield from compared_affinities(name, data_sets(lab, name))


@needs("coil20", ["E5.3"], [])
def learned_in_spectral_coil(lab: Lab) -> Iterator[Criterion]:
    yield from compared_affinities("COIL-20", data_sets(lab, "COIL-20"))


def compared_affinities(name: str, sets: list[Data]) -> Iterator[Criterion]:
    for weight in WEIGHTS:
        models = [fitted(data.X, weight) for data in sets]
        maps = [affinity_maps(model) for model in models]
        figures = [
            {which: quality(data, Y) for which, Y in some.items()}
            for data, some in zip(sets, maps, strict=True)
        ]
        first, second = zip(*((f["W⁺"][0], f["max(w, 0)"][0]) for f in figures), strict=True)
        passed = all(b > a for a, b in zip(first, second, strict=True))
        listed = "; ".join(f"{which} {figure_text(figures, which)}" for which in figures[0])
        yield Criterion(
            "E5.3",
            f"{name}, λ = {weight:g}: area under R_NX of eigenmaps of W⁺ and of learned w "
            f"(in brackets {'similarity error' if name == 'roll' else '1-NN accuracy'})",
            "might perform better than Gaussian",
            "eigenmaps of max(w, 0) better than of W⁺ in every sample",
            listed,
            passed,
            seeds=len(sets) if len(sets) > 1 else 0,
        )
        yield nullspace(name, weight, models)


def fitted(X: Any, weight: float) -> ElasticEmbedding:
    model = ElasticEmbedding(
        2,
        perplexity=PERPLEXITY,
        weight=weight,
        repulsion="squared_distance",
        init="spectral",
        optimizer=EXACT,  # other eigenvalues of the learned Laplacian are almost zero as well
    )
    return model.fit(X)


def affinity_maps(model: ElasticEmbedding) -> dict[str, Any]:
    w = model.learned_affinity_
    return {
        "W⁺": eigenmaps(model.affinity_),
        "max(w, 0)": eigenmaps(np.maximum(w, 0)),
        "signed w": signed_eigenmaps(w),
        "EE itself": model.embedding_,
    }


def eigenmaps(W: Any) -> Any:
    return LaplacianEigenmaps(2, affinity="precomputed").fit_transform(W)


def signed_eigenmaps(w: Any) -> Any:
    """The two lowest eigenvectors of D − w other than the constant."""
    return eigh(signed_laplacian(w), subset_by_index=(0, 1))[1]


def signed_laplacian(w: Any) -> Any:
    """D − w, with the eigenvalue of the constant shifted."""
    L = np.diag(w.sum(axis=1)) - w
    return L + np.abs(L).sum(axis=1).max() / len(w)


def quality(data: Data, Y: Any) -> tuple[float, float]:
    """Area under R_NX, and agreement with labels or true coordinates."""
    area = float(coranking(data.X, Y).area)
    if data.sheet is not None:
        return area, procrustes(Y, data.sheet).error
    return area, float(knn_accuracy(Y, data.labels, n_neighbors=1))


def figure_text(figures: list[dict[str, tuple[float, float]]], which: str) -> str:
    area, known = np.mean([f[which] for f in figures], axis=0)
    return f"{decimals([area])} ({decimals([known])})"


def nullspace(name: str, weight: float, models: list[ElasticEmbedding]) -> Criterion:
    """Whether the embedding is what a signed spectral method would return."""
    angles, negative = [], []
    for model in models:
        w, Y = model.learned_affinity_, model.embedding_ - model.embedding_.mean(axis=0)
        values, V = eigh(signed_laplacian(w))
        near = V[:, np.argsort(np.abs(values))[:2]]
        angles.append(float(np.degrees(subspace_angles(near, Y)[0])))
        negative.append(int((values < -1e-3 * np.abs(values).max()).sum()))
    return Criterion(
        "E5.3",
        f"{name}, λ = {weight:g}: angle between the map and the signed Laplacian's eigenvectors "
        "nearest to 0",
        "X is in the nullspace of L",
        "< 1°",
        f"{span(angles, 1)}°; clearly negative eigenvalues {min(negative)}…{max(negative)}",
        max(angles) < 1,
        seeds=len(models) if len(models) > 1 else 0,
    )


# ── E5.4 ─────────────────────────────────────────────────────────────────────────────────────

METHODS = {"SNE": SNE, "symmetric SNE": SymmetricSNE}


def homotopies_of_sne(lab: Lab) -> Iterator[Criterion]:
    figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
    for row, (name, method) in zip(axes, METHODS.items(), strict=True):
        samples = [make_swiss_roll(lab.choose(500, 120), random_state=s) for s in lab.seeds(10)]
        followed, straighter = (
            [method(2, perplexity=p, optimizer=Homotopy(30)).fit(s.X) for s in samples]
            for p in (8, 5)
        )
        cold = [
            method(2, perplexity=8, init="random", random_state=seed).fit(sample.X)
            for seed, sample in enumerate(samples)
        ]
        yield lower_divergence(name, followed, cold)
        yield from shape_of_affinities(name, followed, samples)
        yield from shape_of_affinities(f"{name}, perplexity 5", straighter, samples)
        draw_sne(row, name, followed[0], cold[0], samples[0])
    lab.save(figure, "sne")


def lower_divergence(name: str, followed: list[Any], cold: list[Any]) -> Criterion:
    ours, theirs = ([m.loss_ for m in models] for models in (followed, cold))
    wins = sum(a <= b * (1 + 1e-6) for a, b in zip(ours, theirs, strict=True))
    ranks = [m.path_.column("rank") for m in followed]
    grows = sum(bool((np.diff(r) >= 0).all() and r[0] == 1 and r[-1] == 2) for r in ranks)
    passed = wins >= round(0.8 * len(ours))
    return Criterion(
        "E5.4",
        f"{name}, roll: divergence after a homotopy over the weight of repulsion, against that "
        "from a random start",
        "insights carry over to SNE",
        "no higher in 8 of 10",
        f"in {wins} of {len(ours)}, median ratio {np.median(np.divide(ours, theirs)):.3f}; rank "
        f"grows from 1 to 2 in {grows}",
        passed,
        seeds=len(ours),
    )


def shape_of_affinities(name: str, models: list[Any], samples: list[Any]) -> Iterator[Criterion]:
    near, middle, rest, errors = [], [], [], []
    for model, sample in zip(models, samples, strict=True):
        w, bins = profile(model, sample)
        near.append(bins[0] / np.abs(w).max())
        middle.append(min(bins) / np.abs(w).max())
        rest.append(abs(bins[-1] / min(bins)) if min(bins) < 0 else np.inf)
        errors.append(imbalance(model.objective_, model.embedding_))
    passed = min(near) > 0 > max(middle) and max(rest) < 0.01
    yield Criterion(
        "E5.4",
        f"{name}, roll: learned affinities by distance on the sheet (means of bins)",
        "Mexican hats",
        "positive near, negative at some distance, then below 1 % of that",
        f"near {span(near, 3)}, lowest {span(middle, 4)} of the largest; last bin at most "
        f"{max(rest):.0e} of the lowest",
        passed,
        seeds=len(models),
    )
    yield Criterion(
        "E5.4",
        f"{name}, roll: ‖L_w X‖ over ‖L⁺X‖ with the learned affinities",
        "a stationary point",
        "< 1e-2",
        span(errors, 4),
        max(errors) < 1e-2,
        seeds=len(models),
    )


EDGES = (0, 3, 6, 9, 12, 15, 20, 30, 50, 100)  # of distances on the sheet, 90 × 21


def profile(model: Any, sample: Any) -> tuple[Any, Any]:
    """Learned affinities of all pairs, and their means in bins of distance on the sheet."""
    w = model.learned_affinity_
    C = sample.coordinates
    distance = np.linalg.norm(C[:, None] - C, axis=2)
    off = ~np.eye(len(w), dtype=bool)
    number = np.digitize(distance[off], EDGES)
    bins = [w[off][number == i].mean() for i in range(1, len(EDGES)) if (number == i).any()]
    return w, np.array(bins)


def draw_sne(row: Any, name: str, followed: Any, cold: Any, sample: Any) -> None:
    draw_points(row[0], followed.embedding_, sample.coordinates[:, 0], f"{name}, homotopy")
    draw_points(row[1], cold.embedding_, sample.coordinates[:, 0], f"{name}, random start")
    bins = profile(followed, sample)[1]
    row[2].axhline(0, color="0.7", linewidth=0.8)
    row[2].plot(EDGES[: len(bins)], bins, ".-")
    row[2].set_yscale("symlog", linthresh=1e-2 * np.abs(bins).max())
    row[2].set_xlabel("distance on the sheet", fontsize=8)
    row[2].set_title("learned affinity", fontsize=8)
