"""E3.1, E3.2, E3.4, E3.11 (rolls), E3.12, E3.13: manifolds whose true directions are known."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from common import (
    Criterion,
    Lab,
    correlation,
    decimals,
    draw_points,
    explained,
    in_pairs,
    left_out_means,
    linear_fraction,
    published,
    span,
    variants,
)
from matplotlib import pyplot as plt
from scipy.stats import spearmanr

from manifoldry import LLE, LTSA, HessianLLE, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import ManifoldSample, make_ring, make_strip, make_swiss_roll
from manifoldry.metrics import unpredictability
from manifoldry.nonredundant.baselines import (
    advection,
    select_by_regression,
    select_independent,
    sequential_regression,
)

# ── E3.1 and part of E3.11: Swiss rolls ──────────────────────────────────────────────────────

# metric_fit would mix the coordinates; the publication shows eigenvectors.
BASES = {
    "LLE": LLE(2, n_neighbors=12),
    "Hessian LLE": HessianLLE(2, n_neighbors=12, metric_fit=False),
    "LTSA": LTSA(2, n_neighbors=12, metric_fit=False),
}
SENSITIVITY = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


# Length over height, and noise; neither is published. The first was tried first; there LLE
# is not redundant in every sample. The second is, of 15 rolls (lengths 8, 10, 12 × height, noise
# .05 to .3), the only one on which all three original methods are, in seeds 0 to 4; it was
# selected by the original methods alone.
ROLLS = ((8, 0.2), (10, 0.15))


def long_roll(lab: Lab, seed: int, aspect: float, noise: float) -> ManifoldSample:
    return make_swiss_roll(lab.choose(2000, 800), aspect=aspect, noise=noise, random_state=seed)


def second_coordinate(Y: Any, sample: ManifoldSample) -> tuple[float, float, float]:
    """Error of predicting it from the first; rank correlation with height and with the angle."""
    arc, height = sample.coordinates.T
    ranks = [abs(spearmanr(Y[:, 1], x).statistic) for x in (height, arc)]
    return unpredictability(Y)[1], *ranks


def rolls(lab: Lab) -> Iterator[Criterion]:
    for aspect, noise in ROLLS:
        samples = [long_roll(lab, seed, aspect, noise) for seed in lab.seeds(5)]
        for name, base in BASES.items():
            for which, model in {"original": base, **variants(base, 2)}.items():
                found = [second_coordinate(model.fit_transform(s.X), s) for s in samples]
                yield roll_row(f"{name}, roll {aspect}:1, noise {noise}", which, np.array(found).T)
    draw_rolls(lab, samples[0])
    clean = [long_roll(lab, seed, ROLLS[-1][0], 0.0) for seed in lab.seeds(5)]
    yield from (clean_row(name, base, clean) for name, base in BASES.items() if name != "LLE")


def roll_row(name: str, which: str, found: Any) -> Criterion:
    r, height, angle = found
    original = which == "original"
    if original:
        passed = (r < 0.2).all() and (height < 0.3).all()
        asked = "r₂ < .2, |ρ(f₂, height)| < .3 in all seeds"
    else:
        passed = (r > 0.9).all() and (height > 0.85).all() and (angle < 0.2).all()
        asked = "r₂ > .9, |ρ(f₂, height)| > .85, |ρ(f₂, angle)| < .2 in all seeds"
    return Criterion(
        "E3.1",
        f"{name}: {which}",
        "f₂ a function of f₁" if original else "f₂ vertical",
        asked,
        f"r₂ {span(r)}, height {span(height)}, angle {span(angle)}",
        passed,
        seeds=len(r),
    )


def clean_row(name: str, base: Any, samples: list[ManifoldSample]) -> Criterion:
    r = [unpredictability(base.fit_transform(s.X))[1] for s in samples]
    return Criterion(
        "E3.1",
        f"{name}, roll {ROLLS[-1][0]}:1 without noise: original",
        "(not stated; ours)",
        "r₂ > .9: linear functions of a flat sheet cost nothing, so both directions come first",
        f"r₂ {span(r)}",
        min(r) > 0.9,
        seeds=len(r),
    )


def draw_rolls(lab: Lab, sample: ManifoldSample) -> None:
    figure, axes = plt.subplots(3, 3, figsize=(7, 5.6), layout="constrained")
    for row, (name, base) in zip(axes, BASES.items(), strict=True):
        models = {"original": base, **variants(base, 2)}
        del models["prediction, auto"]
        for ax, (which, model) in zip(row, models.items(), strict=True):
            Y = model.fit_transform(sample.X)
            draw_points(ax, Y, sample.coordinates[:, 1], f"{name}, {which}")
    lab.save(figure, "rolls")


def roll_sensitivity(lab: Lab) -> Iterator[Criterion]:
    samples = [long_roll(lab, seed, *ROLLS[-1]) for seed in lab.seeds(5)]
    for name, base in BASES.items():
        r = {
            alpha: [
                unpredictability(published(base, 2, alpha).fit_transform(s.X))[1] for s in samples
            ]
            for alpha in SENSITIVITY
        }
        yield Criterion(
            "E3.11",
            f"{name} on the roll, α = .1….6: r₂",
            "insensitive",
            "r₂ > .85 for every α and seed",
            f"worst of each α: {decimals(min(values) for values in r.values())}",
            all(value > 0.85 for values in r.values() for value in values),
            seeds=len(samples),
        )
        linear = [
            unpredictability(published(base, 2, smoother="local_linear").fit_transform(s.X))[1]
            for s in samples
        ]
        gaps = [abs(a - b) for a, b in zip(r[0.3], linear, strict=True)]
        yield Criterion(
            "E3.11",
            f"{name} on the roll: r₂ with local linear fits in place of local means",
            "no significant difference",
            "|Δr₂| < .05",
            f"{decimals([max(gaps)], 3)} (worst of {len(samples)})",
            max(gaps) < 0.05,
            seeds=len(samples),
        )


# ── E3.2: strips ─────────────────────────────────────────────────────────────────────────────

ASPECTS = (1.5, 2.5, 3.5)


def strips(lab: Lab) -> Iterator[Criterion]:
    n, seeds = lab.choose(3000, 600), lab.seeds(5)
    for aspect in ASPECTS:
        samples = [make_strip(n, aspect=aspect, random_state=seed) for seed in seeds]
        models = [LaplacianEigenmaps(6).fit(s.X) for s in samples]
        yield along_row(aspect, models, samples)
        yield eigenvalue_row(aspect, models)
        if aspect > 2:
            yield square_row(aspect, models)
    draw_strips(lab, n)


def along_row(aspect: float, models: list[Any], samples: list[ManifoldSample]) -> Criterion:
    counts = [
        leading_along(m.embedding_, s.coordinates[:, 0])
        for m, s in zip(models, samples, strict=True)
    ]
    return Criterion(
        "E3.2",
        f"strip {aspect} × 1: leading coordinates that are functions of the length (R² > .95)",
        f"⌊L₁/L₂⌋ = {int(aspect)}",
        f"{int(aspect)} in all seeds",
        ", ".join(map(str, counts)),
        all(count == int(aspect) for count in counts),
        seeds=len(counts),
    )


def leading_along(Y: Any, x: Any) -> int:
    for j, f in enumerate(Y.T):
        if explained(f, x) <= 0.95:
            return j
    return Y.shape[1]


def eigenvalue_row(aspect: float, models: list[Any], count: int = 6) -> Criterion:
    k = np.arange(8)
    all_values = np.sort(((k / aspect) ** 2 + k[:, None] ** 2).ravel())[1 : count + 1]
    theory = all_values / all_values[0]
    found = np.array([m.eigenvalues_[:count] / m.eigenvalues_[0] for m in models])
    worst = np.abs(found / theory - 1).max(axis=0)
    return Criterion(
        "E3.2",
        f"strip {aspect} × 1: eigenvalues over the first against (k₁/L₁)² + (k₂/L₂)²",
        "equal (eq. 2)",
        f"the first {count} within 10 %",
        f"worst {100 * worst.max():.0f} %; mean ratios {decimals(found.mean(axis=0))} "
        f"for {decimals(theory)}",
        (worst <= 0.1).all(),
        seeds=len(models),
    )


def square_row(aspect: float, models: list[Any]) -> Criterion:
    fractions = [linear_fraction(m.embedding_[:, 1], m.embedding_[:, :1] ** 2) for m in models]
    return Criterion(
        "E3.2",
        f"strip {aspect} × 1: f₂ against a + b·f₁²",
        "f₂ = 2f₁² − 1",
        "R² > .97",
        span(fractions, 3),
        min(fractions) > 0.97,
        seeds=len(models),
    )


def draw_strips(lab: Lab, n: int) -> None:
    figure, axes = plt.subplots(4, 5, figsize=(9, 4), layout="constrained")
    for row, aspect in zip(axes[:3], ASPECTS, strict=True):
        s = make_strip(n, aspect=aspect, random_state=0)
        draw_coordinates(row, s, LaplacianEigenmaps(5).fit_transform(s.X), f"{aspect} × 1, f")
    Y = NonRedundant(LaplacianEigenmaps(), 2).fit_transform(s.X)
    draw_coordinates(axes[3], s, Y, "gradient, f")
    lab.save(figure, "strips")


def draw_coordinates(axes: Any, sample: ManifoldSample, Y: Any, title: str) -> None:
    for j, ax in enumerate(axes):
        ax.set_axis_off()
        if j < Y.shape[1]:
            draw_points(ax, sample.coordinates, Y[:, j], f"{title}{'₁₂₃₄₅'[j]}")


# ── E3.4: the ring ───────────────────────────────────────────────────────────────────────────

BANDS = {"band": np.pi, "torus": 2 * np.pi}


def ring(lab: Lab) -> Iterator[Criterion]:
    n, seeds = lab.choose(2000, 400), lab.seeds(5)
    for name, band in BANDS.items():
        samples = [make_ring(n, band=band, random_state=seed) for seed in seeds]
        yield from harmonics(name, samples)
        yield from ring_rivals(name, samples)
        models = variants(LaplacianEigenmaps(), 3)
        yield from (ring_row(name, which, model, samples) for which, model in models.items())
        even = [even_ring(n, band, seed) for seed in seeds]
        for which in list(models)[:2]:
            yield ring_row(f"{name}, on a lattice (added later)", which, models[which], even)
    draw_ring(lab, make_ring(n, band=np.pi, random_state=0))


def even_ring(n: int, band: float, seed: int, radius: float = 1.0, tube: float = 0.3) -> Any:
    """A lattice on the ring, of nearly square cells of equal area, moved by a tenth of a cell."""
    around = round(np.sqrt(n * 2 * np.pi * (radius + tube / 2) / (tube * band)))
    across = n // around
    cells = np.stack(np.meshgrid(np.arange(around), np.arange(across)), axis=-1).reshape(-1, 2)
    rng = np.random.default_rng(seed)
    cells = rng.permutation(cells) + 0.5 + 0.1 * rng.normal(size=cells.shape)
    theta = 2 * np.pi * cells[:, 0] / around
    angles = np.linspace(-band / 2, band / 2, 10_001)
    area = radius * (angles + band / 2) + tube * (np.sin(angles) + np.sin(band / 2))
    phi = np.interp(cells[:, 1] / across, area / area[-1], angles)
    distance = radius + tube * np.cos(phi)
    X = np.column_stack([distance[:, None] * circle(theta), tube * np.sin(phi)])
    return ManifoldSample(X, np.column_stack([theta, phi]), ("outer angle", "inner angle"))


def circle(angle: Any) -> Any:
    return np.column_stack([np.cos(angle), np.sin(angle)])


def harmonics(name: str, samples: list[ManifoldSample]) -> Iterator[Criterion]:
    first, third = [], []
    for s in samples:
        Y, theta = LaplacianEigenmaps(3).fit_transform(s.X), s.coordinates[:, 0]
        first.append(min(linear_fraction(Y[:, j], circle(theta)) for j in (0, 1)))
        third.append(linear_fraction(Y[:, 2], circle(2 * theta)))
    for what, printed, fractions, least in (
        ("f₁, f₂ in the span of cos θ, sin θ", "cos θ, sin θ", first, 0.98),
        ("f₃ in the span of cos 2θ, sin 2θ", "sin(2θ + c)", third, 0.95),
    ):
        yield Criterion(
            "E3.4",
            f"{name}, eigenmaps: {what}",
            printed,
            f"R² > {least}",
            span(fractions, 3),
            min(fractions) > least,
            seeds=len(fractions),
        )


def ring_rivals(name: str, samples: list[ManifoldSample]) -> Iterator[Criterion]:
    for alpha in (0.3, 0.6, 0.8):  # not published; the last was added later
        maps = [
            sequential_regression(LaplacianEigenmaps(), s.X, 3, bandwidth=alpha) for s in samples
        ]
        r = [unpredictability(Y)[2] for Y in maps]
        inner = [
            explained(Y[:, 2], circle(s.coordinates[:, 1]))
            for Y, s in zip(maps, samples, strict=True)
        ]
        yield Criterion(
            "E3.4",
            f"{name}, sequential regression with bandwidth {alpha}: r₃",
            "f₃ still redundant",
            "r₃ < .5",
            f"{span(r)} (inner angle explains {span(inner)})",
            max(r) < 0.5,
            seeds=len(r),
        )
    yield advection_row(f"{name}, advection along f₁ (Gerber et al.)", samples, None)
    if name == "band":
        yield advection_row(f"{name}, advection with 15 neighbors (added later)", samples, 15)


def advection_row(what: str, samples: list[ManifoldSample], k: int | None) -> Criterion:
    ends = [advection(s.X, 2, n_neighbors=k) for s in samples]
    components = [end.n_connected_components for end in ends]
    return Criterion(
        "E3.4",
        f"{what}: components of the graph",
        "halts after one, two clusters",
        "2 components, one coordinate",
        f"components {', '.join(map(str, components))}",
        all(p == 2 for p in components) and all(e.embedding.shape[1] == 1 for e in ends),
        seeds=len(components),
    )


def ring_row(name: str, which: str, model: Any, samples: list[ManifoldSample]) -> Criterion:
    outer, inner, mixed = [], [], []
    for s in samples:
        f, (theta, phi) = model.fit_transform(s.X)[:, 2], s.coordinates.T
        outer.append(explained(f, circle(theta)))
        inner.append(explained(f, circle(phi)))
        mixed.append(linear_fraction(f, products(theta, phi, BANDS[name.split(",")[0]])))
    return Criterion(
        "E3.4",
        f"{name}, non-redundant eigenmaps, {which}: f₃ explained by either angle",
        "f₃ = inner angle",
        "R² on θ < .1, on the inner angle > .8",
        f"θ {span(outer)}, inner {span(inner)} (with products {span(mixed)})",
        max(outer) < 0.1 and min(inner) > 0.8,
        note=RING_MIXTURE,
        seeds=len(samples),
    )


def products(theta: Any, phi: Any, band: float) -> Any:
    """The smoothest functions g of the inner angle, and g·cos(mθ), g·sin(mθ) for m = 1…4."""
    closed = band == 2 * np.pi
    g = circle(phi) if closed else np.cos(np.pi * (phi / band + 0.5))[:, None]
    factors = [np.ones((len(theta), 1)), *(circle(m * theta) for m in range(1, 5))]
    return np.column_stack([a * b for a in g.T for b in np.hstack(factors).T])


RING_MIXTURE = (
    "in brackets the R² of g, g·cos mθ and g·sin mθ with m ≤ 4, g the smoothest function of the "
    "inner angle: f₁ and f₂ predict none of them"
)


def draw_ring(lab: Lab, sample: ManifoldSample) -> None:
    base = LaplacianEigenmaps(3)
    maps = {
        "eigenmaps": base.fit_transform(sample.X),
        "sequential": sequential_regression(base, sample.X, 3, bandwidth=0.6),
        "prediction α = .3": published(base, 3).fit_transform(sample.X),
        "gradient": NonRedundant(base, 3).fit_transform(sample.X),
    }
    figure, axes = plt.subplots(len(maps), 3, figsize=(7, 5), layout="constrained")
    for row, (name, Y) in zip(axes, maps.items(), strict=True):
        for j, ax in enumerate(row):
            draw_points(ax, sample.coordinates, Y[:, j], f"{name}, f{'₁₂₃'[j]}")
    lab.save(figure, "ring")


# ── E3.12: the rate of local means ───────────────────────────────────────────────────────────


def rate(lab: Lab) -> Iterator[Criterion]:
    """Mean squared error of local means of one predictor, at the best bandwidth for each N."""
    sizes, seeds = lab.choose((250, 500, 1000, 2000, 4000, 8000), (250, 1000)), lab.seeds(20)
    errors = np.array([np.mean([mean_error(n, s) for s in seeds], axis=0) for n in sizes])
    best = errors.min(axis=1)
    slope = np.polyfit(np.log(sizes), np.log(best), 1)[0]
    yield Criterion(
        "E3.12",
        f"local means of one predictor, N = {sizes[0]}…{sizes[-1]}: slope of log MSE in log N",
        "−4/(i + 3) = −.8 for i = 2",
        "−.8 ± .25",
        f"{slope:.2f}",
        -1.05 <= slope <= -0.55,
        seeds=len(seeds),
    )


def mean_error(n: int, seed: int) -> list[float]:
    """Error against the true conditional mean, at 300 points, for growing bandwidths."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 1))
    truth = np.cos(2 * np.pi * x)
    y = truth + 0.5 * rng.normal(size=(n, 1))
    rows = np.arange(min(n, 300))
    widths = np.geomspace(0.008, 0.15, 12)
    return [float(((left_out_means(x, y, h, rows) - truth[rows]) ** 2).mean()) for h in widths]


# ── E3.13: which direction does the next coordinate show? ────────────────────────────────────


def make_box(n: int, seed: int) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).uniform(size=(n, 3)) * [4, 2, 1]
    return X, np.cos(np.pi * X[:, 2])


def sheet(make: Any, *, across: float = 1.0, **options: Any) -> Any:
    """A generator of points and of the smoothest function across the sheet."""

    def points(n: int, seed: int) -> tuple[Any, Any]:
        s = make(n, random_state=seed, **options)
        width = s.coordinates[:, 1]
        low, high = (width.min(), width.max()) if across is None else (0.0, across)
        return s.X, np.cos(np.pi * (width - low) / (high - low))

    return points


# name → (points and the direction to be found, the coordinate that should be it, dimension)
TABLE = {
    "strip 1.5 × 1": (sheet(make_strip, aspect=1.5), 2, 2),
    "strip 2.5 × 1": (sheet(make_strip, aspect=2.5), 2, 2),
    "strip 3.5 × 1": (sheet(make_strip, aspect=3.5), 2, 2),
    "roll 4": (sheet(make_swiss_roll, aspect=4, across=None), 2, 2),
    "roll 8": (sheet(make_swiss_roll, aspect=8, across=None), 2, 2),
    "noisy roll 4": (sheet(make_swiss_roll, aspect=4, noise=0.5, across=None), 2, 2),
    "noisy roll 8": (sheet(make_swiss_roll, aspect=8, noise=0.5, across=None), 2, 2),
    "box 4 × 2 × 1": (make_box, 3, 3),
    "ring, band": (sheet(make_ring, band=np.pi, across=None), 3, 2),
}
CANDIDATES = 20  # number of candidate eigenvectors for selection
FEW = 5  # redundant coordinates are counted among so many eigenvectors
RIVALS = (
    "plain",
    "prediction α = .3",
    "prediction, auto",
    "gradient",
    "Dsilva et al.",
    "Chen & Meilă",
)


def directions(lab: Lab) -> Iterator[Criterion]:
    sizes, seeds = lab.choose((600, 3000), (200,)), lab.seeds(10)
    jobs = [(name, n, seed) for name in TABLE for n in sizes for seed in seeds]
    found = dict(zip(jobs, in_pairs(lab, compare, jobs), strict=True))
    for name in TABLE:
        for n in sizes:
            yield direction_row(name, n, [found[name, n, seed] for seed in seeds])
    draw_directions(lab, found, sizes, seeds)


def compare(name: str, n: int, seed: int) -> tuple[dict[str, float], dict[str, int]]:
    """|Correlation| of the new coordinate with the truth, and the number of redundant ones."""
    points, d, dimension = TABLE[name]
    X, truth = points(n, seed)
    plain = LaplacianEigenmaps(CANDIDATES).fit(X)
    Y = plain.embedding_
    maps = {"plain": Y, **{k: m.fit_transform(X) for k, m in variants(None, d).items()}}
    maps["Dsilva et al."] = Y[:, select_by_regression(Y, d)]
    maps["Chen & Meilă"] = Y[:, select_independent(Y, plain.affinity_, d, dimension=dimension)]
    corr = {which: correlation(Z[:, d - 1], truth) for which, Z in maps.items()}
    old = {which: int((unpredictability(Z[:, :d]) < 0.5).sum()) for which, Z in maps.items()}
    old["plain"] = int((unpredictability(Y[:, :FEW]) < 0.5).sum())
    return corr, old


def direction_row(name: str, n: int, found: list[Any]) -> Criterion:
    corr = {which: np.array([c[which] for c, _ in found]) for which in RIVALS}
    old = {which: [r[which] for _, r in found] for which in RIVALS}
    mean = {which: values.mean() for which, values in corr.items()}
    best = max(value for which, value in mean.items() if which != "gradient")
    d = TABLE[name][1]
    passed = mean["gradient"] >= max(0.9, best - 0.01) and max(old["gradient"]) == 0
    shown = "; ".join(
        f"{which} {decimals([v.mean()])} ± {decimals([v.std()])}" for which, v in corr.items()
    )
    return Criterion(
        "E3.13",
        f"{name}, n = {n}: redundant ones among the first {FEW} eigenmaps, then of {d} "
        f"non-redundant; |correlation| of coordinate {d} with cos πx across",
        "(ours)",
        "gradient: none redundant, mean ≥ .9 and no other more than .01 better",
        f"redundant {np.mean(old['plain']):.1f} → prediction "
        f"{np.mean(old['prediction α = .3']):.1f}, gradient {np.mean(old['gradient']):.1f}; "
        + shown,
        passed,
        seeds=len(found),
    )


def draw_directions(lab: Lab, found: Any, sizes: Any, seeds: Any) -> None:
    figure, axes = plt.subplots(
        1, len(sizes), figsize=(5 * len(sizes) + 1, 4.2), layout="constrained", squeeze=False
    )
    for ax, n in zip(axes[0], sizes, strict=True):
        for j, which in enumerate(RIVALS):
            values = np.array([[found[k, n, s][0][which] for s in seeds] for k in TABLE])
            at = np.arange(len(TABLE)) + 0.12 * (j - 2.5)
            spread = [values.mean(1) - values.min(1), values.max(1) - values.mean(1)]
            ax.errorbar(values.mean(1), at, xerr=spread, fmt="o", markersize=4, lw=0.8, label=which)
        ax.set(yticks=np.arange(len(TABLE)), yticklabels=list(TABLE), xlim=(0, 1), title=f"n = {n}")
        ax.invert_yaxis()
        ax.set_xlabel("|correlation| with the new direction: mean, least and most")
        ax.spines[["top", "right"]].set_visible(False)
    lines, names = axes[0][0].get_legend_handles_labels()
    figure.legend(lines, names, frameon=False, fontsize=8, ncols=6, loc="outside lower center")
    lab.save(figure, "directions")
