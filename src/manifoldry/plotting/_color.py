"""The `color` argument of plots: None, one color, classes, or continuous values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.plotting._style import (
    CLASSES_PER_MARKER,
    MARKERS,
    PALETTE,
    TEXT_COLOR,
    import_matplotlib,
)
from manifoldry.util.array_like import annotated_of, array_like
from manifoldry.util.typing import Array, IntArray

MAX_LEGEND = 40  # largest number of classes with a legend
_ROWS = 14  # rows of a legend before it has another column


@dataclass(frozen=True, eq=False)
class Coloring:
    """How points are colored.

    `kind` selects the attribute that applies: `single`, one color for all points; `values`,
    numbers for a color map; or, for classes, `codes`, indices into `classes`.
    """

    kind: Literal["single", "classes", "values"]
    single: Any = PALETTE[0]
    values: Array | None = None
    codes: IntArray | None = None
    classes: tuple[str, ...] = ()

    def rgba(self, chosen: IntArray) -> Any:
        """Colors of the chosen points, if they have classes."""
        assert self.codes is not None
        from matplotlib.colors import to_rgba_array

        return to_rgba_array(PALETTE)[self.codes[chosen] % len(PALETTE)]

    @property
    def legend_columns(self) -> int:
        """Number of columns of the legend."""
        return -(-len(self.classes) // _ROWS)

    def marker_groups(self, n: int) -> list[tuple[str, IntArray]]:
        """Markers and the points drawn with each; several if there are more classes than colors."""
        if self.codes is None:
            return [(MARKERS[0], np.arange(n))]
        round_ = self.codes // CLASSES_PER_MARKER % len(MARKERS)
        return [(MARKERS[r], np.flatnonzero(round_ == r)) for r in np.unique(round_)]

    def handles(self) -> list[Any]:
        """Legend entries, opaque and of fixed size."""
        from matplotlib.lines import Line2D

        styles = [
            (PALETTE[i % len(PALETTE)], MARKERS[i // CLASSES_PER_MARKER % len(MARKERS)])
            for i in range(len(self.classes))
        ]
        return [
            Line2D(
                [],
                [],
                color=color,
                marker=marker,
                linestyle="",
                markersize=6,
                label=name,
                markeredgewidth=0,
            )
            for (color, marker), name in zip(styles, self.classes, strict=True)
        ]


def read_color(color: Any, label: str | None, *embeddings: Any) -> tuple[Any, str | None]:
    """Return the color as a string or array-like, and the title of its legend.

    A string is a column of ``obs`` if an embedding is from an AnnData that has it; the column's
    name is then the default title.
    """
    if color is None or not isinstance(color, str):
        return (color if color is None else array_like(color, "color")), label
    found = [each for each in map(annotated_of, embeddings) if each is not None]
    if found and color in found[0].obs:
        return found[0].obs[color], label or color
    if found and not import_matplotlib("matplotlib.colors").is_color_like(color):
        columns = ", ".join(map(repr, found[0].obs))
        raise ValueError(
            f"color={color!r} is neither a column of obs, which has {columns}, nor a color"
        )
    return color, label


def resolve_color(color: Any, n: int, categorical: bool | None = None) -> Coloring:
    """Interpret the `color` argument.

    Strings, booleans and whole numbers with at most 40 different values are classes; other
    numbers are values. `categorical` overrides this.
    """
    if color is None:
        return Coloring("single")
    if isinstance(color, str):
        return Coloring("single", single=_known_color(color))
    array = _column(color, n)
    numeric = array.dtype.kind in "iuf"
    if categorical is False and not numeric:
        raise TypeError(
            f"color has dtype {array.dtype}, which is not numeric; pass categorical=True"
        )
    if categorical or (categorical is None and _looks_categorical(array)):
        return _classes(array)
    return _values(array)


def scatter(ax: Any, points: Array, coloring: Coloring, *, cmap: Any, **marker_options: Any) -> Any:
    """Draw points of two or three columns and return the last collection drawn.

    Points are drawn in a fixed random order, so that in data sorted by class the last class does
    not cover the others.
    """
    order = np.random.default_rng(0).permutation(len(points))
    drawn = None
    for marker, members in coloring.marker_groups(len(points)):
        chosen = order[np.isin(order, members)] if len(members) < len(order) else order
        columns = points[chosen].T
        drawn = ax.scatter(
            *columns,
            marker=marker,
            linewidths=0,
            **marker_options,
            **_color_options(coloring, chosen, cmap),
        )
    return drawn


def add_legend(ax: Any, coloring: Coloring, drawn: Any, label: str | None) -> None:
    """Add a legend of the classes, or a color bar, next to the axes."""
    if coloring.values is not None:
        style_colorbar(ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=25, pad=0.03), label)
    elif coloring.codes is not None:
        style_legend(
            ax.legend(
                **legend_options(coloring, label), loc="upper left", bbox_to_anchor=(1.0, 1.02)
            )
        )


def legend_options(coloring: Coloring, label: str | None) -> dict[str, Any]:
    """Return the options common to axes legends and figure legends."""
    return {
        "handles": coloring.handles(),
        "title": label,
        "ncols": max(1, coloring.legend_columns),
        "frameon": False,
        "fontsize": 9,
        "title_fontsize": 9,
        "handletextpad": 0.2,
        "columnspacing": 0.8,
        "labelspacing": 0.35,
        "alignment": "left",
        "labelcolor": TEXT_COLOR,
    }


def style_legend(legend: Any) -> None:
    """Set the color of a legend's title."""
    legend.get_title().set_color(TEXT_COLOR)


def style_colorbar(bar: Any, label: str | None) -> None:
    """Remove the frame of a color bar and make its colors opaque."""
    bar.outline.set_visible(False)
    bar.solids.set_alpha(1)
    bar.ax.tick_params(labelsize=9, length=0, labelcolor=TEXT_COLOR)
    if label:
        bar.set_label(label, fontsize=9, color=TEXT_COLOR)


def _color_options(coloring: Coloring, chosen: IntArray, cmap: Any) -> dict[str, Any]:
    if coloring.values is not None:
        low, high = coloring.values.min(), coloring.values.max()
        return {"c": coloring.values[chosen], "cmap": cmap, "vmin": low, "vmax": high}
    if coloring.codes is not None:
        return {"c": coloring.rgba(chosen)}
    return {"color": coloring.single}


def _column(color: Any, n: int) -> Any:
    array = np.asarray(array_like(color, "color"))
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n,):
        raise ValueError(
            f"color has shape {array.shape}, expected ({n},): one label or value per point"
        )
    return array


def _looks_categorical(array: Any) -> bool:
    if array.dtype.kind not in "iu":
        return array.dtype.kind != "f"
    count = len(np.unique(array))
    if count > MAX_LEGEND:
        warn(
            f"color has {count} different whole numbers, more than {MAX_LEGEND}, so they are drawn "
            "as values, with a color bar; pass categorical=True if they are labels, "
            "categorical=False if they are not",
            ManifoldryWarning,
        )
    return count <= MAX_LEGEND


def _classes(array: Any) -> Coloring:
    keys = array if array.dtype.kind in "iufbUS" else np.array([str(label) for label in array])
    _check_finite(keys)
    found, codes = np.unique(keys, return_inverse=True)
    order = sorted(range(len(found)), key=lambda i: _natural(found[i]))
    rank = np.argsort(order)  # position of each class in the natural order
    return Coloring("classes", codes=rank[codes], classes=tuple(str(found[i]) for i in order))


def _natural(label: Any) -> Any:
    """Sort key that puts "class 2" before "class 10"."""
    if not isinstance(label, str):
        return label
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part)
        for part in re.split(r"(\d+)", label)
    ]


def _values(array: Any) -> Coloring:
    _check_finite(array)
    return Coloring("values", values=array.astype(float))


def _check_finite(array: Any) -> None:
    bad = np.flatnonzero(~np.isfinite(array)) if array.dtype.kind == "f" else np.array([], int)
    if bad.size:
        raise ValueError(
            f"color has NaN or infinity in {bad.size} of {len(array)} entries (first: {bad[0]}); "
            "drop these points, or replace these entries"
        )


def _known_color(color: str) -> str:
    if not import_matplotlib("matplotlib.colors").is_color_like(color):
        raise ValueError(
            f"color={color!r} is not a matplotlib color; pass a color, or one label per point"
        )
    return color
