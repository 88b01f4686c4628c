"""E1.9, E1.10, E5.10: generators of transformations, and extrapolation with them.

The transformations, the spectral derivative and the local linear methods for comparison are
implemented in plain numpy. Amounts are learned in arbitrary units; the true ones are used only to
convert them to pixels or radians.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy.linalg import qr
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.spatial.distance import cdist

from manifoldry.datasets import DataNotFoundError, load_mnist
from manifoldry.lie import LieTransform
from manifoldry.plotting import plot_learning_curve

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab, not_yet


def unit_of(model: LieTransform, true: Any) -> float:
    """Learned amount of one true unit: the slope of one on the other over the training pairs."""
    return float(model.amounts_[:, 0] @ true / (true @ true))


def cosine(A: Any, B: Any) -> float:
    return float(abs((A * B).sum()) / np.linalg.norm(A) / np.linalg.norm(B))


def angle(a: Any, b: Any) -> float:
    """Angle between lines, in degrees."""
    return float(np.degrees(np.arccos(min(1.0, cosine(a, b)))))


def psnr(found: Any, truth: Any) -> Any:
    """10·log₁₀(range²/MSE) of every image."""
    error = ((found - truth) ** 2).mean(axis=1)
    return 10 * np.log10(np.ptp(truth, axis=1) ** 2 / error)


def best_on_tangent(X: Any, T: Any, truth: Any) -> Any:
    """The point of the line x + τ·t closest to the truth: the best linear prediction."""
    tau = ((truth - X) * T).sum(axis=1) / (T**2).sum(axis=1)
    return X + tau[:, None] * T


# ── E1.9: translation of one-dimensional signals ─────────────────────────────────────────────

PIXELS = 20
FREQUENCIES = np.fft.fftfreq(PIXELS) * PIXELS
BAND = np.abs(FREQUENCIES) < PIXELS / 2  # the Nyquist frequency cannot be shifted


def shifted(X: Any, pixels: Any) -> Any:
    """Band-limited cyclic signals shifted exactly by any number of pixels."""
    phase = np.exp(2j * np.pi * FREQUENCIES * BAND * np.reshape(pixels, (-1, 1)) / PIXELS)
    return np.fft.ifft(np.fft.fft(X) * phase).real


def signals(n: int, rng: Any) -> Any:
    return np.fft.ifft(np.fft.fft(rng.normal(size=(n, PIXELS))) * BAND).real


def derivative() -> Any:
    factor = 2j * np.pi * FREQUENCIES * BAND / PIXELS
    return np.fft.ifft(factor[:, None] * np.fft.fft(np.eye(PIXELS), axis=0), axis=0).real


def translation(lab: Lab) -> Iterator[Criterion]:
    seeds, n, D = lab.seeds(5), lab.choose(400, 200), derivative()
    kinds = {"first order": False, "refined": True}
    cosines: dict[str, list[float]] = {kind: [] for kind in kinds}
    errors: dict[str, list[Any]] = {kind: [] for kind in kinds}
    rises, models = [], {}
    far = np.arange(1, 6)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, pixels, fresh = signals(n, rng), rng.uniform(-0.2, 0.2, n), signals(50, rng)
        for kind, refine in kinds.items():
            model = models[kind] = LieTransform(refine=refine).fit(X, shifted(X, pixels))
            cosines[kind].append(cosine(model.generators_[0], D))
            unit = unit_of(model, pixels)
            errors[kind].append([shift_error(model, fresh, s * unit, s) for s in (*-far, *far)])
            rises.append(np.diff(model.trace_).max(initial=0.0))
    yield Criterion(
        "E1.9",
        f"generator of translation from {n} pairs of {PIXELS} pixels, moved by up to 0.2: first "
        "order",
        "learned by quadratic optimization",
        "cosine with the spectral derivative > .99",
        f"{min(cosines['first order']):.4f} (worst of {len(seeds)} seeds)",
        min(cosines["first order"]) > 0.99,
        seeds=len(seeds),
    )
    yield Criterion(
        "E1.9",
        "the same with the true exponential",
        "",
        "cosine > .99",
        f"{min(cosines['refined']):.6f} (worst of {len(seeds)} seeds)",
        min(cosines["refined"]) > 0.99,
        seeds=len(seeds),
    )
    yield Criterion(
        "E1.9",
        "objective of the alternation, sweep by sweep",
        "each step quadratic",
        "never rises",
        f"largest rise {max(rises):.0e}",
        max(rises) <= 1e-12,
        seeds=len(seeds),
        identity=True,
    )
    worst = {kind: np.max(found, axis=0) for kind, found in errors.items()}
    yield Criterion(
        "E1.9",
        "exp(αG) of new signals, α = ±1…±5 pixels, refined",
        "long-range deformation",
        "relative error < 10 %",
        f"{worst['refined'].max():.1%} (first order {worst['first order'].max():.0%}), worst of "
        f"{len(seeds)} seeds",
        worst["refined"].max() < 0.1,
        seeds=len(seeds),
    )
    draw_translation(lab, models, D, far, errors)


def shift_error(model: LieTransform, X: Any, amount: float, pixels: float) -> float:
    truth = shifted(X, pixels)
    return float(np.linalg.norm(model.apply(X, amount) - truth) / np.linalg.norm(truth))


def draw_translation(lab: Lab, models: Any, D: Any, far: Any, errors: Any) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.9), layout="constrained")
    first, refined = (models[kind].generators_[0] for kind in ("first order", "refined"))
    for ax, G, title in zip(
        axes, (D, first, refined), ("spectral derivative", "first order", "refined"), strict=False
    ):
        G = G * np.sign((G * D).sum()) / np.abs(G).max()
        ax.imshow(G, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=9, loc="left")
    curves = {}
    for kind, found in errors.items():
        table = np.array(found)[:, len(far) :]
        curves[kind] = (far, table.mean(axis=0), table.std(axis=0) / np.sqrt(len(table)))
    plot_learning_curve(
        curves, ax=axes[3], log="y", xlabel="pixels", ylabel="", title="relative error of exp(αG)x"
    )
    lab.save(figure, "lie_translation")


# ── E1.10: a bar that moves is too curved for local methods ──────────────────────────────────

SIDE = 32
NEIGHBORS = 6


def bar() -> Any:
    image = np.zeros((SIDE, SIDE))
    image[8:24, 14:18] = 1.0
    return image


def rolled(images: Any, pixels: int) -> Any:
    return np.roll(images, pixels, axis=-1)


def rectangles(n: int, rng: Any) -> Any:
    """Black images with one to three white rectangles; the bar is not among them."""
    images = np.zeros((n, SIDE, SIDE))
    for image in images:
        for _ in range(rng.integers(1, 4)):
            rows, columns = (rng.integers(SIDE) + np.arange(rng.integers(3, 17)) for _ in range(2))
            image[np.ix_(rows % SIDE, columns % SIDE)] = 1.0
    return images


def moved_right(images: Any, pixels: Any) -> Any:
    """Images shifted by fractions of a pixel, with Fourier coefficients along rows."""
    frequency = np.fft.fftfreq(SIDE) * SIDE
    frequency[np.abs(frequency) >= SIDE / 2] = 0
    phase = np.exp(-2j * np.pi * frequency * pixels[:, None, None] / SIDE)
    return np.fft.ifft(np.fft.fft(images) * phase).real


def curved(lab: Lab) -> Iterator[Criterion]:
    path = np.stack([rolled(bar(), s).ravel() for s in range(SIDE)])
    yield from local_tangents(path)
    seeds, n, r = lab.seeds(5), lab.choose(2000, 250), lab.choose(256, 60)
    shifts = lab.choose(range(2, 17), (2, 5, 8))
    x, tangent = path[:1], (path[1:2] - path[-1:]) / 2
    truth = np.stack([path[s] for s in shifts])
    linear = x + np.array(shifts)[:, None] * tangent
    tangent_best = best_on_tangent(np.repeat(x, len(shifts), 0), tangent, truth)
    scores, predictions = [], None
    for seed in seeds:
        rng = np.random.default_rng(seed)
        images, pixels = rectangles(n, rng), rng.uniform(-1, 1, n)
        X, Y = (rows.reshape(n, -1) for rows in (images, moved_right(images, pixels)))
        model = LieTransform(n_components=r).fit(X, Y)
        amounts = unit_of(model, pixels) * np.array(shifts)
        predictions = model.apply(np.repeat(x, len(shifts), axis=0), amounts)
        scores.append(psnr(predictions, truth))
    lie = np.min(scores, axis=0)  # the worst seed at every shift
    for name, rival in {
        "prediction along the tangent": linear,
        "the best point of the tangent": tangent_best,
    }.items():
        gain = lie - psnr(rival, truth)
        yield Criterion(
            "E1.10",
            f"the bar moved by {shifts[0]}…{shifts[-1]} pixels: exp(αG), learned from rectangles "
            f"moved by up to one, against {name}",
            "global parameters generalize far",
            "more than 5 dB higher PSNR",
            f"{gain.min():+.1f}…{gain.max():+.1f} dB ({lie.mean():.1f} on average, worst of "
            f"{len(seeds)} seeds)",
            gain.min() > 5,
            seeds=len(seeds),
        )
    curves = {
        "Lie": (shifts, np.mean(scores, axis=0), np.std(scores, axis=0)),
        "tangent": (shifts, psnr(linear, truth)),
        "best on the tangent": (shifts, psnr(tangent_best, truth)),
    }
    draw_bar(lab, curves, shifts, truth, predictions, linear)


def local_tangents(path: Any) -> Iterator[Criterion]:
    """Tangents of the moving bar, estimated from neighbors."""
    ahead = rolled_rows(path, 1) - path
    yield Criterion(
        "E1.10",
        f"bar image of {SIDE} × {SIDE}, one pixel per step: angle between neighboring chords",
        "highly curved",
        "> 45°",
        f"{angle(ahead[0], ahead[1]):.0f}°",
        angle(ahead[0], ahead[1]) > 45,
        identity=True,
    )
    truth = rolled_rows(path, 1) - rolled_rows(path, -1)
    D = cdist(path, path)
    errors, misses = [], []
    for x, distances, tangent in zip(path, D, truth, strict=True):
        nearest = np.argsort(distances, kind="stable")[1 : NEIGHBORS + 1]
        offsets = path[nearest] - x
        errors.append(angle(np.linalg.svd(offsets, full_matrices=False)[2][0], tangent))
        misses.append(np.linalg.norm(lle_residual(offsets)) / distances[nearest[0]])
    yield Criterion(
        "E1.10",
        f"tangent of manifold Parzen windows, {NEIGHBORS} neighbors: angle to the central "
        "difference",
        "local methods fail",
        "> 45° everywhere",
        f"{min(errors):.0f}…{max(errors):.0f}°",
        min(errors) > 45,
        identity=True,
    )
    yield Criterion(
        "E1.10",
        f"LLE, {NEIGHBORS} neighbors: distance of an image from its reconstruction, over that of "
        "its nearest neighbor",
        "local methods fail",
        "> .5 everywhere",
        f"{min(misses):.2f}…{max(misses):.2f}",
        min(misses) > 0.5,
        identity=True,
    )


def rolled_rows(path: Any, step: int) -> Any:
    return np.roll(path, -step, axis=0)


def lle_residual(offsets: Any) -> Any:
    """Residual of the reconstruction of a point by the weights of LLE, penalty 1e-3."""
    C = offsets @ offsets.T
    w = np.linalg.solve(C + 1e-3 * np.trace(C) * np.eye(len(C)), np.ones(len(C)))
    return (w / w.sum()) @ offsets


def draw_bar(lab: Lab, curves: Any, shifts: Any, truth: Any, lie: Any, linear: Any) -> None:
    figure = plt.figure(figsize=(9.6, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    columns = [0, len(shifts) // 2, len(shifts) - 1]
    kinds = {"truth": truth, "Lie": lie, "tangent": linear}
    axes = left.subplots(len(columns), len(kinds))
    for ax, name in zip(axes[0], kinds, strict=True):
        ax.set_title(name, fontsize=9)
    for row, column in zip(axes, columns, strict=True):
        for ax, images in zip(row, kinds.values(), strict=True):
            show(ax, images[column], SIDE, 0, 1)
        row[0].set_ylabel(f"{shifts[column]} pixels", fontsize=8)
    plot_learning_curve(
        curves, ax=right.subplots(), xlabel="pixels", ylabel="", title="PSNR of the moved bar, dB"
    )
    lab.save(figure, "lie_bar")


def show(ax: Any, image: Any, side: int, low: float, high: float) -> None:
    ax.imshow(image.reshape(side, side), cmap="gray", vmin=low, vmax=high)
    ax.set(xticks=[], yticks=[])


# ── E5.10: rotation, scaling and translation of images ───────────────────────────────────────

BLOB_SIDE, DIGIT_SIDE = 20, 28


@dataclass(frozen=True)
class Family:
    """Plane maps p → A(t)p + b(t), the range of training amounts, and those to extrapolate to."""

    matrix: Callable[[float], Any]
    offset: Callable[[float], Any]
    largest: float
    far: tuple[float, ...]
    label: Callable[[float], str]


def turn(t: float) -> Any:
    return np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])


def still(t: float) -> Any:
    return np.zeros(2)


FAMILIES = {
    "rotation": Family(
        turn,
        still,
        np.radians(10),
        (np.radians(30), np.radians(60), np.radians(90)),
        lambda t: f"{np.degrees(t):.0f}°",
    ),
    "scaling": Family(
        lambda t: np.exp(t) * np.eye(2),
        still,
        0.1,
        (np.log(0.7), np.log(0.8), np.log(1.3)),
        lambda t: f"×{np.exp(t):.1f}",
    ),
    "translation": Family(
        lambda t: np.eye(2),
        lambda t: np.array([0.0, t]),
        0.5,
        (1.0, 2.0, 3.0),
        lambda t: f"{t:g} px",
    ),
}


@dataclass(frozen=True)
class Blobs:
    """Images that are sums of Gaussian bumps, so that any plane map of them is exact."""

    centers: Any  # (n, bumps, 2), about the middle of the image
    widths: Any  # (n, bumps)
    heights: Any

    @classmethod
    def drawn(cls, n: int, rng: Any, side: int = BLOB_SIDE, bumps: int = 6) -> "Blobs":
        radius = 0.27 * side * np.sqrt(rng.uniform(size=(n, bumps)))
        direction = rng.uniform(0, 2 * np.pi, (n, bumps))
        centers = radius[..., None] * np.stack([np.cos(direction), np.sin(direction)], axis=-1)
        return cls(centers, rng.uniform(1.2, 2.2, (n, bumps)), rng.normal(size=(n, bumps)))

    def images(self, side: int = BLOB_SIDE) -> Any:
        grid = np.arange(side) - (side - 1) / 2
        rows, columns = (
            np.exp(-((grid - self.centers[..., i, None]) ** 2) / (2 * self.widths[..., None] ** 2))
            for i in range(2)
        )
        pixels = np.einsum("nb,nbi,nbj->nij", self.heights, rows, columns)
        return pixels.reshape(len(pixels), -1)

    def mapped(self, family: Family, amounts: Any) -> "Blobs":
        A = np.array([family.matrix(t) for t in amounts])
        b = np.array([family.offset(t) for t in amounts])
        centers = np.einsum("nij,nbj->nbi", A, self.centers) + b[:, None]
        growth = np.sqrt(np.abs(np.linalg.det(A)))
        return Blobs(centers, self.widths * growth[:, None], self.heights)


@dataclass(frozen=True)
class Digits:
    """Handwritten digits, slightly blurred so that cubic interpolation is accurate."""

    pixels: Any  # (n, 28, 28)

    def images(self) -> Any:
        return self.pixels.reshape(len(self.pixels), -1)

    def mapped(self, family: Family, amounts: Any) -> "Digits":
        middle = (DIGIT_SIDE - 1) / 2
        grid = np.indices((DIGIT_SIDE, DIGIT_SIDE)).reshape(2, -1) - middle
        out = np.empty_like(self.pixels)
        for image, t, target in zip(self.pixels, amounts, out, strict=True):
            source = np.linalg.solve(family.matrix(t), grid - family.offset(t)[:, None]) + middle
            target[:] = map_coordinates(image, source, order=3).reshape(target.shape)
        return Digits(out)


def digits(n: int, seed: int) -> Digits:
    data = load_mnist(n, random_state=seed, download_if_missing=False)
    pixels = data.X.reshape(-1, DIGIT_SIDE, DIGIT_SIDE).astype(float)
    return Digits(gaussian_filter(pixels, (0, 1, 1)))


def learn(pictures: Any, family: Family, rng: Any, r: int) -> tuple[LieTransform, float, float]:
    """The generator, learned amount of a true unit, correlation of learned and true amounts."""
    X = pictures.images()
    true = rng.uniform(-family.largest, family.largest, len(X))
    model = LieTransform(n_components=r).fit(X, pictures.mapped(family, true).images())
    agreement = abs(np.corrcoef(model.amounts_[:, 0], true)[0, 1])
    return model, unit_of(model, true), float(agreement)


def extrapolated(model: LieTransform, unit: float, fresh: Any, family: Family, t: float) -> Any:
    """Truth, exp(αG)x and the best point of the true tangent, for new images."""
    X, ones = fresh.images(), np.ones(len(fresh.images()))
    step = family.largest / 2
    ahead, behind = (fresh.mapped(family, s * step * ones).images() for s in (1, -1))
    truth = fresh.mapped(family, t * ones).images()
    return truth, model.apply(X, t * unit), best_on_tangent(X, ahead - behind, truth)


def images(lab: Lab) -> Iterator[Criterion]:
    n, r, seeds = lab.choose(800, 120), lab.choose(150, 30), lab.seeds(5)
    shown = {}
    for name, family in FAMILIES.items():
        results = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            model, unit, agreement = learn(Blobs.drawn(n, rng), family, rng, r)
            fresh = Blobs.drawn(40, rng)
            guesses = [extrapolated(model, unit, fresh, family, t) for t in family.far]
            results.append((agreement, guesses))
        shown[name] = [[each[0] for each in guess] for guess in guesses]
        yield from judged(name, family, "smooth random images of 20 × 20", results)
    try:
        yield from digit_images(lab, shown)
    except DataNotFoundError:
        yield not_yet("E5.10", "rotated, scaled and translated digits", "MNIST on this machine")
    draw_images(lab, shown)


def digit_images(lab: Lab, shown: dict[str, Any]) -> Iterator[Criterion]:
    n, r, seeds = lab.choose(800, 120), lab.choose(150, 30), lab.seeds(5)
    for name, family in FAMILIES.items():
        results = []
        for seed in seeds:
            both = digits(n + 40, seed).pixels
            rng = np.random.default_rng(seed)
            model, unit, agreement = learn(Digits(both[:n]), family, rng, r)
            fresh = Digits(both[n:])
            guesses = [extrapolated(model, unit, fresh, family, t) for t in family.far]
            results.append((agreement, guesses))
        shown[f"digits, {name}"] = [[each[0] for each in guess] for guess in guesses]
        yield from judged(name, family, "MNIST digits", results)


def judged(name: str, family: Family, data: str, results: Any) -> Iterator[Criterion]:
    agreements = [agreement for agreement, _ in results]
    yield Criterion(
        "E5.10",
        f"{name} of {data}: learned against true amounts of the training pairs",
        "",
        "correlation > .99",
        f"{min(agreements):.4f} (worst of {len(results)} seeds)",
        min(agreements) > 0.99,
        seeds=len(results),
    )
    lie, tangent = (
        np.array([[psnr(g[k], g[0]).mean() for g in guesses] for _, guesses in results])
        for k in (1, 2)
    )
    gain = (lie - tangent).min(axis=0)
    reach = ", ".join(family.label(t) for t in family.far)
    yield Criterion(
        "E5.10",
        f"{name} of new {data} by {reach}, from pairs within {family.label(family.largest)}: "
        "exp(αG) against the best point of the true tangent",
        "extrapolates",
        "more than 5 dB higher PSNR",
        ", ".join(f"{g:+.0f}" for g in gain)
        + f" dB (PSNR {', '.join(f'{p:.0f}' for p in lie.min(axis=0))}), worst of {len(results)}",
        gain.min() > 5,
        seeds=len(results),
    )


def draw_images(lab: Lab, shown: dict[str, Any]) -> None:
    """One row per transformation: three amounts, each as truth, prediction, best on tangent."""
    figure, axes = plt.subplots(
        len(shown), 9, figsize=(9.2, 1.12 * len(shown) + 0.2), layout="constrained"
    )
    for row, (name, guesses) in zip(axes, shown.items(), strict=True):
        family = FAMILIES[name.removeprefix("digits, ")]
        for k, (t, images_) in enumerate(zip(family.far, guesses, strict=True)):
            low, high = images_[0].min(), images_[0].max()
            for ax, image in zip(row[3 * k : 3 * k + 3], images_, strict=True):
                show(ax, image, round(np.sqrt(len(image))), low, high)
            row[3 * k].set_xlabel(family.label(t), fontsize=8)
        row[0].set_ylabel(name.replace(", ", ",\n"), fontsize=8)
    for ax, title in zip(axes[0], 3 * ["truth", "Lie", "tangent"], strict=True):
        ax.set_title(title, fontsize=8)
    lab.save(figure, "lie_images")


def together(lab: Lab) -> Iterator[Criterion]:
    """Rotation and both translations at once: three generators that do not commute."""
    side, n, r = 12, lab.choose(500, 200), lab.choose(40, 20)
    rng = np.random.default_rng(0)
    blobs = Blobs.drawn(n, rng, side)
    scales = np.array([0.2, 0.5, 0.5])
    motions = (
        Family(turn, still, 0.2, (), str),
        Family(lambda t: np.eye(2), lambda t: np.array([t, 0.0]), 0.5, (), str),
        Family(lambda t: np.eye(2), lambda t: np.array([0.0, t]), 0.5, (), str),
    )
    true = scales * rng.uniform(-1, 1, (n, 3))
    both, singles = blobs, []
    for family, amounts in zip(reversed(motions), true.T[::-1], strict=True):
        both = both.mapped(family, amounts)
        alone = LieTransform(n_components=r).fit(
            blobs.images(side), blobs.mapped(family, amounts).images(side)
        )
        singles.append(alone.generators_[0].ravel())
    model = LieTransform(3, n_components=r).fit(blobs.images(side), both.images(side))
    span = qr(model.generators_.reshape(3, -1).T, mode="economic")[0]
    inside = np.linalg.norm(span.T @ np.array(singles).T, axis=0)
    yield Criterion(
        "E5.10",
        "rotation and both translations learned at once: fraction of each generator, learned "
        "alone, "
        "in the span of the three",
        "Σᵢ αᵢGᵢ",
        "> .9",
        ", ".join(f"{fraction:.3f}" for fraction in inside) + f"; loss {model.loss_:.1e}",
        inside.min() > 0.9,
        seeds=1,
    )
