"""The `color` argument of plots: None, one color, classes, or continuous values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.plotting._labels import (
    Mask,
    categories_of,
    inferred,
    missing_entries,
    sorted_names,
    spread,
)
from manifoldry.plotting._style import (
    CLASSES_PER_MARKER,
    LIGHT_GRAY,
    MARKERS,
    PALETTE,
    TEXT_COLOR,
    import_matplotlib,
)
from manifoldry.util.array_like import annotated_of, array_like, named_values
from manifoldry.util.typing import Array, IntArray

MAX_LEGEND = 40  # largest number of classes with a legend
MISSING = "missing"  # class of the points without a label
_ROWS = 14  # rows of a legend before it has another column


@dataclass(frozen=True, eq=False)
class Coloring:
    """How points are colored.

    `kind` selects the attribute that applies: `single`, one color for all points; `values`,
    numbers for a color map, NaN if missing; or, for classes, `codes`, indices into `classes`. With
    `has_missing` some points have no label or value and are drawn gray; they are the last class.
    """

    kind: Literal["single", "classes", "values"]
    single: Any = PALETTE[0]
    values: Array | None = None
    codes: IntArray | None = None
    classes: tuple[str, ...] = ()
    has_missing: bool = False

    @property
    def categorical(self) -> bool | None:
        """Whether there are classes; None if all points have one color."""
        return None if self.kind == "single" else self.kind == "classes"

    @property
    def styles(self) -> list[tuple[str, str]]:
        """Color and marker of each class."""
        styles = [
            (PALETTE[i % len(PALETTE)], MARKERS[i // CLASSES_PER_MARKER % len(MARKERS)])
            for i in range(len(self.classes))
        ]
        return [*styles[:-1], (LIGHT_GRAY, MARKERS[0])] if self.has_missing else styles

    def rgba(self, chosen: IntArray) -> Any:
        """Colors of the chosen points, if they have classes."""
        assert self.codes is not None
        from matplotlib.colors import to_rgba_array

        return to_rgba_array([color for color, _ in self.styles])[self.codes[chosen]]

    @property
    def legend_columns(self) -> int:
        """Number of columns of the legend."""
        return -(-len(self.classes) // _ROWS)

    def marker_groups(self, n: int) -> list[tuple[str, IntArray]]:
        """Markers and the points drawn with each; several if there are more classes than colors."""
        if self.codes is None:
            return [(MARKERS[0], np.arange(n))]
        marker = np.array([MARKERS.index(each) for _, each in self.styles])[self.codes]
        return [(MARKERS[m], np.flatnonzero(marker == m)) for m in np.unique(marker)]

    def handles(self) -> list[Any]:
        """Legend entries, opaque and of fixed size."""
        from matplotlib.lines import Line2D

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
            for (color, marker), name in zip(self.styles, self.classes, strict=True)
        ]

    def bar_label(self, label: str | None) -> str | None:
        """Label of the color bar, which says what gray points are if there are any."""
        if not self.has_missing:
            return label
        return f"{label}; gray: {MISSING}" if label else f"gray: {MISSING}"


def read_color(color: Any, label: str | None, *embeddings: Any) -> tuple[Any, str | None]:
    """Return the color as a string or array-like, and the title of its legend.

    A string is a column of ``obs``, or a name in ``var_names``, if an embedding is from an AnnData
    that has it; this name is then the default title.
    """
    if color is None or not isinstance(color, str):
        return (color if color is None else array_like(color, "color")), label
    found = [each for each in map(annotated_of, embeddings) if each is not None]
    values = named_values(found[0], color) if found else None
    if values is not None:
        return values, label or color
    if found and not import_matplotlib("matplotlib.colors").is_color_like(color):
        columns = ", ".join(map(repr, found[0].obs))
        raise ValueError(
            f"color={color!r} is neither a column of obs, which has {columns}, nor one of the "
            f"{len(getattr(found[0], 'var_names', ()))} names in var_names, nor a color"
        )
    return color, label


def resolve_color(
    color: Any, n: int, categorical: bool | None = None, drawn: Mask | None = None
) -> Coloring:
    """Interpret the `color` argument, for the points in the mask `drawn`, by default all.

    Classes do not depend on the mask, so that panels with different points have the same colors.
    Strings, booleans, categories of pandas and whole numbers with at most 40 different values are
    classes; other numbers are values. `categorical` overrides this. None and NaN are missing.
    """
    if color is None:
        return Coloring("single")
    if isinstance(color, str):
        return Coloring("single", single=_known_color(color))
    drawn = np.ones(n, dtype=bool) if drawn is None else drawn
    given = categories_of(color)
    if given is not None and categorical is not False:
        return _classes(_column(given[0], n), given[1], drawn)
    array = _column(color, n)
    missing = missing_entries(array)
    known = inferred(array[~missing])
    if categorical is False and known.dtype.kind not in "iuf":
        raise TypeError(
            f"color has dtype {array.dtype}, which is not numeric; pass categorical=True"
        )
    _check_finite(known)
    if not len(known) or categorical or (categorical is None and _looks_categorical(known)):
        names, codes = sorted_names(known)
        return _classes(spread(codes, missing, -1), names, drawn)
    values = spread(known.astype(float), missing, np.nan)[drawn]
    return Coloring("values", values=values, has_missing=bool(np.isnan(values).any()))


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


def point_colors(coloring: Coloring, chosen: IntArray, cmap: Any) -> Any:
    """Colors of the chosen points; light gray if all points have one color."""
    if coloring.codes is not None:
        return coloring.rgba(chosen)
    if coloring.values is None:
        return LIGHT_GRAY
    options = _color_options(coloring, chosen, cmap)
    normalize = import_matplotlib("matplotlib.colors").Normalize(options["vmin"], options["vmax"])
    return options["cmap"](normalize(np.ma.masked_invalid(options["c"])))


def add_legend(ax: Any, coloring: Coloring, drawn: Any, label: str | None) -> None:
    """Add a legend of the classes, or a color bar, next to the axes."""
    if coloring.values is not None:
        bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=25, pad=0.03)
        style_colorbar(bar, coloring.bar_label(label))
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
        low, high = np.nanmin(coloring.values), np.nanmax(coloring.values)
        shades = import_matplotlib("matplotlib").colormaps.get_cmap(cmap)
        return {
            "c": coloring.values[chosen],
            "cmap": shades.with_extremes(bad=LIGHT_GRAY),
            "plotnonfinite": True,
            "vmin": low,
            "vmax": high,
        }
    if coloring.codes is not None:
        return {"c": coloring.rgba(chosen)}
    return {"color": coloring.single}


def _column(color: Any, n: int) -> Any:
    # In an array of strings, None and NaN of a list would become "None" and "nan".
    array = np.asarray(array_like(color, "color"))
    if isinstance(color, list | tuple) and array.dtype.kind in "US":
        array = np.asarray(color, dtype=object)
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


def _classes(codes: IntArray, names: list[str], drawn: Mask) -> Coloring:
    """Classes that have points, from indices into `names`, or -1 if the label is missing."""
    used = np.unique(codes[codes >= 0])
    classes = [names[i] for i in used]
    codes = np.where(codes < 0, len(used), np.searchsorted(used, codes))[drawn]
    if has_missing := bool((codes == len(used)).any()):
        classes.append(MISSING)
    return Coloring("classes", codes=codes, classes=tuple(classes), has_missing=has_missing)


def _check_finite(known: Any) -> None:
    infinite = np.isinf(known).sum() if known.dtype.kind == "f" else 0
    if infinite:
        raise ValueError(
            f"color has infinity in {infinite} entries; drop these points, or replace these "
            "entries by NaN, which is drawn gray"
        )


def _known_color(color: str) -> str:
    if not import_matplotlib("matplotlib.colors").is_color_like(color):
        raise ValueError(
            f"color={color!r} is not a matplotlib color; pass a color, or one label per point"
        )
    return color
