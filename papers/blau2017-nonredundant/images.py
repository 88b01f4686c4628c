"""E3.6, E3.7: faces and patches of a photograph, reconstructed from few coordinates."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    Criterion,
    Lab,
    correlation,
    decimals,
    draw_points,
    left_out_means,
    needs,
    published,
    standardized,
)
from matplotlib import pyplot as plt

from manifoldry import LTSA, Isomap, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import load_isomap_faces, load_photographs
from manifoldry.metrics import unpredictability
from manifoldry.nonredundant.baselines import regression_errors

WIDTHS = np.geomspace(0.02, 1.0, 12)  # of the regression, in standard deviations of the map


def rebuilt(Y: Any, X: Any, score: Any) -> tuple[float, Any]:
    """The best score over bandwidths of leave-one-out predictions of images from the embedding."""
    Z, images = standardized(Y), X.astype(float)
    tries = [left_out_means(Z, images, width) for width in WIDTHS]
    scores = [score(images, guess) for guess in tries]
    return max(scores), tries[int(np.argmax(scores))]


def mean_psnr(images: Any, guess: Any) -> float:
    """Mean over images of 10·log₁₀(1/MSE), the peak being 1."""
    return float(np.mean(-10 * np.log10(((images - guess) ** 2).mean(axis=1))))


# ── E3.6: heads ──────────────────────────────────────────────────────────────────────────────

FACES = "faces of 32 × 32 pixels for 64 × 64, the subset cut by standardized pose and light"
NEIGHBORS = (6, 8, 10, 12, 15, 20)  # the best by leave-one-out, for every method
PRINTED = {"eigenmaps": (18.0, 19.2, 0.8), "LTSA": (18.2, 19.9, 1.2)}
KINDS = ("original", "prediction α = .3", "prediction, best α", "gradient")


def heads() -> tuple[Any, Any]:
    """Images and poses (horizontal, vertical) in the parameter range of the publication."""
    faces = load_isomap_faces()
    light, aside, up = faces.coordinates.T

    def degrees(x: Any, low: float, high: float) -> Any:
        return low + (high - low) * (x - x.min()) / np.ptp(x)

    part = (np.abs(degrees(up, -10, 10)) <= 8) & (degrees(light, 105, 255) <= 175)
    return faces.X[part], np.column_stack([aside, up])[part]


def head_model(method: str, kind: str, k: int, alpha: float) -> Any:
    base = (
        LaplacianEigenmaps(2, n_neighbors=k)
        if method == "eigenmaps"
        else LTSA(2, n_neighbors=k, metric_fit=False)
    )
    if kind == "original":
        return base
    return NonRedundant(base, 2) if kind == "gradient" else published(base, 2, alpha)


def best_heads(X: Any, method: str, kind: str, neighbors: Any) -> tuple[float, Any, str]:
    """PSNR, embedding and parameters, selected by leave-one-out reconstruction."""
    alphas = (0.15, 0.3, 0.45, 0.6) if kind == "prediction, best α" else (0.3,)
    tries = []
    for k in neighbors:
        for alpha in alphas:
            Y = head_model(method, kind, k, alpha).fit_transform(X)
            chosen = f"k = {k}" + (f", α = {alpha:g}" if len(alphas) > 1 else "")
            tries.append((rebuilt(Y, X, mean_psnr)[0], Y, chosen))
    return max(tries, key=lambda each: each[0])


@needs("isomap_faces32", ["E3.6"], ["heads"])
def faces(lab: Lab) -> Iterator[Criterion]:
    X, pose = heads()
    yield Criterion(
        "E3.6",
        "faces in the reduced range of pose and light",
        "257",
        "257",
        str(len(X)),
        len(X) == 257,
        note="degrees are not known: cut as if pose and light ranged over ±10° and 105°…255°",
        surrogate=FACES,
    )
    maps = {}
    for method, (plain, new, gain) in PRINTED.items():
        for kind in KINDS:
            maps[method, kind] = best_heads(X, method, kind, lab.choose(NEIGHBORS, (8,)))
        first = maps[method, "original"][0]
        for kind in KINDS[1:]:
            yield gain_row(method, kind, first, maps[method, kind], (plain, new, gain))
        for kind in KINDS:
            yield pose_row(method, kind, maps[method, kind], pose)
    draw_heads(lab, maps, pose)


def gain_row(method: str, kind: str, first: float, found: Any, printed: Any) -> Criterion:
    psnr, _, chosen = found
    plain, new, gain = printed
    passed = psnr - first >= gain
    return Criterion(
        "E3.6",
        f"{method}, {kind} ({chosen}): mean PSNR from two coordinates against the original's",
        f"{plain} → {new} dB",
        f"gain ≥ {gain} dB (the published values are for larger images)",
        f"{first:.1f} → {psnr:.1f} dB",
        passed,
        surrogate=FACES,
    )


def pose_row(method: str, kind: str, found: Any, pose: Any) -> Criterion:
    Y, (aside, up) = found[1], pose.T
    first, second = correlation(Y[:, 0], aside), correlation(Y[:, 1], up)
    original = kind == "original"
    passed = first >= 0.9 and (second <= 0.3 if original else second >= 0.7)
    return Criterion(
        "E3.6",
        f"{method}, {kind} ({found[2]}): |correlation| of f₁ with the pose left-right, of f₂ with "
        "that up-down",
        "f₂ function of f₁" if original else "f₂ the vertical angle",
        f"f₁ ≥ .9, f₂ {'≤ .3' if original else '≥ .7'}",
        decimals([first, second]),
        passed,
        surrogate=FACES,
    )


def draw_heads(lab: Lab, maps: Any, pose: Any) -> None:
    figure, axes = plt.subplots(2, len(KINDS), figsize=(9, 4.2), layout="constrained")
    for row, method in zip(axes, PRINTED, strict=True):
        for ax, kind in zip(row, KINDS, strict=True):
            psnr, Y, _ = maps[method, kind]
            draw_points(ax, Y, pose[:, 1], f"{method}, {kind}\n{psnr:.1f} dB")
    lab.save(figure, "heads")


# ── E3.7: patches ────────────────────────────────────────────────────────────────────────────

SIDE, STEP, LANDMARKS = 7, 4, 1000
GREYS = plt.get_cmap("gray", 8)  # few gray levels give a small file
PHOTOGRAPH = "another photograph, with 1000 landmarks"


def photograph(lab: Lab) -> Any:
    image = load_photographs(names=["chelsea"])["chelsea"]
    return image[: lab.choose(300, 80), : lab.choose(400, 80)].astype(float)


def corners(image: Any) -> tuple[Any, Any]:
    rows = np.arange(0, image.shape[0] - SIDE + 1, STEP)
    columns = np.arange(0, image.shape[1] - SIDE + 1, STEP)
    return rows, columns


def patches(image: Any) -> Any:
    rows, columns = corners(image)
    return np.array([image[i : i + SIDE, j : j + SIDE].ravel() for i in rows for j in columns])


def put_together(image: Any, flat: Any) -> tuple[Any, Any]:
    """The mean of overlapping patches, and the image where patches exist."""
    rows, columns = corners(image)
    total, count = np.zeros(image.shape), np.zeros(image.shape)
    places = ((i, j) for i in rows for j in columns)
    for (i, j), patch in zip(places, flat, strict=True):
        total[i : i + SIDE, j : j + SIDE] += patch.reshape(SIDE, SIDE)
        count[i : i + SIDE, j : j + SIDE] += 1
    covered = np.s_[: rows[-1] + SIDE, : columns[-1] + SIDE]
    return total[covered] / count[covered], image[covered]


def image_psnr(image: Any) -> Any:
    def score(_: Any, guess: Any) -> float:
        made, truth = put_together(image, guess)
        return float(-10 * np.log10(((made - truth) ** 2).mean()))

    return score


@needs("photos_more", ["E3.7"], ["patches"])
def image_patches(lab: Lab) -> Iterator[Criterion]:
    image = photograph(lab)
    X = patches(image)
    base = Isomap(3, n_neighbors=12, n_landmarks=min(LANDMARKS, len(X) // 2), random_state=0)
    models = {
        "original": base,
        "prediction α = .3": published(base, 3),
        "prediction, auto": published(base, 3, "auto"),
        "gradient": NonRedundant(base, 3),
    }
    maps = {kind: model.fit_transform(X) for kind, model in models.items()}
    made = {kind: rebuilt(Y, X, image_psnr(image)) for kind, Y in maps.items()}
    for kind in list(models)[1:]:
        yield patch_gain(kind, made["original"][0], made[kind][0], len(X))
    for kind in models:
        yield patch_redundancy(kind, maps[kind])
        if kind != "original":
            yield patch_edges(kind, maps[kind], X)
    draw_patches(lab, image, maps, made)


def patch_gain(kind: str, first: float, psnr: float, n: int) -> Criterion:
    passed = psnr >= first + 0.1
    return Criterion(
        "E3.7",
        f"{n} patches, Isomap, {kind}: PSNR of the image from three coordinates against the "
        "original's",
        "32.9 → 33.2 dB",
        "gain ≥ .1 dB",
        f"{first:.2f} → {psnr:.2f} dB",
        passed,
        surrogate=PHOTOGRAPH,
    )


def patch_redundancy(kind: str, Y: Any) -> Criterion:
    r, wide = unpredictability(Y)[1], regression_errors(Y)[1]
    original = kind == "original"
    passed = r < 0.5 if original else r > 0.9
    return Criterion(
        "E3.7",
        f"patches, Isomap, {kind}: r₂ (by Dsilva's measure in brackets)",
        "f₂ function of f₁" if original else "f₂ not a function of f₁",
        "r₂ < .5" if original else "r₂ > .9",
        f"{r:.2f} ({wide:.2f})",
        passed,
        surrogate=PHOTOGRAPH,
    )


def gradients_of(X: Any) -> Any:
    """Mean vertical and horizontal derivative of every patch."""
    P = X.reshape(-1, SIDE, SIDE)
    ramp = np.arange(SIDE) - (SIDE - 1) / 2
    return np.column_stack([(P * ramp[:, None]).sum((1, 2)), (P * ramp).sum((1, 2))])


def patch_edges(kind: str, Y: Any, X: Any) -> Criterion:
    """f₂ and f₃ against the two derivatives, in the order that fits better."""
    down, across = gradients_of(X).T
    table = np.array([[correlation(Y[:, j], g) for g in (down, across)] for j in (1, 2)])
    pairs = max(((table[0, 0], table[1, 1]), (table[0, 1], table[1, 0])), key=min)
    passed = min(pairs) > 0.6
    return Criterion(
        "E3.7",
        f"patches, Isomap, {kind}: |correlation| of f₂, f₃ with the slopes down and across",
        "vertical and horizontal edges",
        "both > .6",
        f"{decimals(pairs)} (f₂: {decimals(table[0])}; f₃: {decimals(table[1])})",
        passed,
        surrogate=PHOTOGRAPH,
    )


def draw_patches(lab: Lab, image: Any, maps: Any, made: Any) -> None:
    rows, columns = (len(side) for side in corners(image))
    shown = {kind: Y for kind, Y in maps.items() if kind != "prediction, auto"}
    figure, axes = plt.subplots(len(shown), 4, figsize=(6, 3.4), layout="constrained")
    for row, (kind, Y) in zip(axes, shown.items(), strict=True):
        for j, ax in enumerate(row):
            ax.set_axis_off()
            if j < 3:
                low, high = np.quantile(Y[:, j], [0.02, 0.98])
                ax.imshow(
                    Y[:, j].reshape(rows, columns),
                    cmap=GREYS,
                    interpolation="nearest",
                    vmin=low,
                    vmax=high,
                )
                ax.set_title(f"{kind}, f{'₁₂₃'[j]}", fontsize=7)
            else:
                whole = put_together(image, made[kind][1])[0][::2, ::2]
                ax.imshow(whole, cmap=GREYS, interpolation="nearest", vmin=0, vmax=1)
                ax.set_title(f"rebuilt, {made[kind][0]:.2f} dB", fontsize=7)
    lab.save(figure, "patches")
