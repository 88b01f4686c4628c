"""Scattered points: their order, markers and colors."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifoldry.plotting._style import (
    MARKERS,
    import_matplotlib,
    marker_area,
    opacity,
    should_rasterize,
    tones,
)
from manifoldry.plotting.coloring import Coloring
from manifoldry.plotting.point_labels import Mask
from manifoldry.util.typing import Array, IntArray

# A class with less than this fraction of the mean number of points is rare. If sizes are chosen
# from the number of points, rare classes together cover up to 2 % of the axes, in markers of up
# to 9 points².
_RARE = 0.05
_RARE_COVER = 0.02
_RARE_AREA = 9.0
# As many points cover each other, so those of one color are shaded by their number in each cell of
# a grid on the map, of which there is one for 16 points.
_SHADED_FROM = 50_000
_POINTS_PER_CELL = 16


def marker_options(
    ax: Any,
    points: Array,
    size: float | None,
    alpha: float | None,
    rasterized: bool | None,
) -> dict[str, Any]:
    """Size and opacity of the markers, and whether they are rasterized; None is by their number."""
    n, dimensions = points.shape
    return {
        "s": marker_area(ax, n, square=dimensions > 1) if size is None else size,
        "alpha": opacity(n) if alpha is None else alpha,
        "rasterized": should_rasterize(n) if rasterized is None else rasterized,
    }


def scatter(
    ax: Any,
    points: Array,
    coloring: Coloring,
    *,
    cmap: Any,
    size: float | None,
    alpha: float | None,
    rasterized: bool | None,
    **options: Any,
) -> Any:
    """Draw points of two or three columns and return the last collection of those not rare.

    Points are drawn in a fixed random order, so that in data sorted by class the last class does
    not cover the others; but points without a label before all others, and rare classes after
    them, or they could not be seen.
    """
    options |= marker_options(ax, points, size, alpha, rasterized)
    order = np.random.default_rng(0).permutation(len(points))
    if coloring.missing is not None:
        order = order[np.argsort(~coloring.missing[order], kind="stable")]
    rare = _rare_points(coloring)
    if rare is None:
        return _draw(ax, points, coloring, order, cmap, options)
    on_top = order[rare[order]]
    drawn = _draw(ax, points, coloring, order[~rare[order]], cmap, options)
    if size is None:
        options["s"] = max(options["s"], _rare_area(ax, len(on_top)))
    if alpha is None:
        options["alpha"] = opacity(len(on_top))
    _draw(ax, points, coloring, on_top, cmap, options)
    return drawn


def _rare_points(coloring: Coloring) -> Mask | None:
    """Which points are of rare classes; None if there are none."""
    if coloring.codes is None:
        return None
    counts = coloring.counts()
    named = len(counts) - coloring.has_missing
    rare = counts < _RARE * counts[:named].sum() / max(named, 1)
    rare[named:] = False
    return np.asarray(rare[coloring.codes]) if rare[counts > 0].any() else None


def _rare_area(ax: Any, n: int) -> float:
    width, height = ax.bbox.size / ax.figure.dpi * 72
    return float(min(_RARE_AREA, _RARE_COVER * width * height / n))


def _draw(
    ax: Any, points: Array, coloring: Coloring, order: IntArray, cmap: Any, options: dict[str, Any]
) -> Any:
    """Draw points in this order; several collections if they have several markers in space."""
    markers = _markers(coloring, order)
    used = [0] if markers is None else list(np.unique(markers))
    if markers is not None and len(used) > 1 and points.shape[1] == 2:
        drawn = ax.scatter(
            *points[order].T, linewidths=0, **options, **color_options(coloring, order, cmap)
        )
        # One path per point keeps the order; a collection per marker would not.
        paths = [_marker_path(marker) for marker in MARKERS]
        drawn.set_paths([paths[each] for each in markers])
        return drawn
    if coloring.kind == "single" and points.shape[1] == 2 and len(points) >= _SHADED_FROM:
        return ax.scatter(
            *points[order].T, linewidths=0, **options,
            c=_shades_of_density(points[order], coloring.single, tones(ax).paper),
        )  # fmt: skip
    drawn = None
    for marker in used:
        chosen = order if len(used) == 1 else order[markers == marker]
        drawn = ax.scatter(
            *points[chosen].T,
            marker=MARKERS[marker],
            linewidths=0,
            **options,
            **color_options(coloring, chosen, cmap),
        )
    return drawn


def _shades_of_density(points: Array, color: Any, paper: Any) -> Array:
    """Colors of points, from pale where there are few to dark where there are many."""
    colors = import_matplotlib("matplotlib.colors")
    base, background = np.array(colors.to_rgb(color)), np.array(colors.to_rgb(paper))
    strongest = 0.35 * base + 0.65 * (1 - background)
    scale = colors.LinearSegmentedColormap.from_list(
        "density", [0.45 * base + 0.55 * background, base, strongest]
    )
    side = int(np.sqrt(len(points) / _POINTS_PER_CELL))
    counts, *edges = np.histogram2d(points[:, 0], points[:, 1], bins=side)
    cells = (np.searchsorted(e[1:-1], column) for e, column in zip(edges, points.T, strict=True))
    logarithm = np.log(counts[tuple(cells)].clip(1))
    return np.asarray(scale(logarithm / max(logarithm.max(), 1e-12)))


def _markers(coloring: Coloring, order: IntArray) -> IntArray | None:
    """Index of the marker of each point; None if all have the first."""
    if coloring.codes is None:
        return None
    of_class = np.array([MARKERS.index(marker) for _, marker in coloring.styles])
    return np.asarray(of_class[coloring.codes[order]])


def _marker_path(marker: str) -> Any:
    style = import_matplotlib("matplotlib.markers").MarkerStyle(marker)
    return style.get_path().transformed(style.get_transform())


def point_colors(ax: Any, coloring: Coloring, chosen: IntArray, cmap: Any) -> Any:
    """Colors of the chosen points; faint if all points have one color."""
    if coloring.codes is not None:
        return coloring.rgba(chosen)
    if coloring.values is None:
        return tones(ax).faint
    options = color_options(coloring, chosen, cmap)
    normalize = import_matplotlib("matplotlib.colors").Normalize(options["vmin"], options["vmax"])
    return options["cmap"](normalize(np.ma.masked_invalid(options["c"])))


def color_options(coloring: Coloring, chosen: IntArray, cmap: Any) -> dict[str, Any]:
    """Options of matplotlib's scatter that color the chosen points."""
    if coloring.values is not None:
        low, high = np.nanmin(coloring.values), np.nanmax(coloring.values)
        shades = import_matplotlib("matplotlib").colormaps.get_cmap(cmap)
        return {
            "c": coloring.values[chosen],
            "cmap": shades.with_extremes(bad=coloring.gray),
            "plotnonfinite": True,
            "vmin": low,
            "vmax": high,
        }
    if coloring.codes is not None:
        return {"c": coloring.rgba(chosen)}
    return {"color": coloring.single}
