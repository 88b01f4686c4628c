"""Legends of classes and color bars of values, beside axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.plotting._layout import make_room
from manifoldry.plotting._style import Tones, tones
from manifoldry.plotting.coloring import Coloring

MAX_LEGEND = 40  # largest number of entries of a legend that was not asked for
_ROWS = 14  # rows of a legend before it has another column, if three columns suffice
_ROW_HEIGHT = 0.188  # of the text of 9 points, in inches
_LONGEST = 60  # letters of a name


@dataclass(frozen=True, eq=False)
class Legend:
    """Entries of a legend: classes by their index, and the number of those left out."""

    coloring: Coloring
    shown: list[int]

    @classmethod
    def of(cls, coloring: Coloring, legend: bool | None, most: int = MAX_LEGEND) -> Legend:
        """All classes; if there are more than `most` and `legend` is None, the largest of them."""
        count = len(coloring.classes)
        if legend or count <= most:
            return cls(coloring, list(range(count)))
        sizes = coloring.counts()
        if coloring.has_missing:
            sizes[-1] = sizes.sum() + 1  # always shown
        largest = np.argsort(-sizes, kind="stable")[: max(most - 1, 1)]
        return cls(coloring, sorted(largest.tolist()))

    @classmethod
    def beside(cls, ax: Any, coloring: Coloring, legend: bool | None) -> Legend:
        """The entries that have room beside axes, in columns of up to half of their width."""
        width, height = ax.bbox.size / ax.figure.dpi
        every = cls.of(coloring, True)
        columns = max(1, int(0.5 * width / every.column_width))
        return cls.of(coloring, legend, min(MAX_LEGEND, columns * _rows(height)))

    @property
    def names(self) -> list[str]:
        """Text of the entries; the last one says how many classes are left out."""
        names = [_shortened(self.coloring.classes[i]) for i in self.shown]
        left_out = len(self.coloring.classes) - len(names)
        return [*names, f"and {left_out} more"] if left_out else names

    @property
    def column_width(self) -> float:
        """About how wide a column is, in inches: the marker, and the letters."""
        return 0.55 + 0.075 * max(6, *map(len, self.names))

    def columns(self, height: float) -> int:
        """Number of columns of this height in inches."""
        rows, count = _rows(height), len(self.names)
        return -(-count // (min(rows, _ROWS) if count <= 3 * _ROWS else rows))

    def handles(self) -> list[Any]:
        """Entries, opaque and of fixed size."""
        from matplotlib.lines import Line2D

        styles = self.coloring.styles
        entries = [styles[i] for i in self.shown]
        entries += [("none", "")] * (len(self.names) - len(entries))
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
            for (color, marker), name in zip(entries, self.names, strict=True)
        ]

    def options(self, label: str | None, height: float, colors: Tones) -> dict[str, Any]:
        """Options common to axes legends and figure legends."""
        return {
            "handles": self.handles(),
            "title": label,
            "ncols": max(1, self.columns(height)),
            "frameon": False,
            "fontsize": 9,
            "title_fontsize": 9,
            "handletextpad": 0.2,
            "columnspacing": 0.8,
            "labelspacing": 0.35,
            "alignment": "left",
            "labelcolor": colors.text,
        }


def shows_legend(coloring: Coloring, legend: bool | None, names: bool = False) -> bool:
    """Resolve `legend`: None shows one unless classes are named on their points."""
    return not (coloring.classes and names) if legend is None else legend


def legend_width(coloring: Coloring, legend: bool | None, height: float) -> float:
    """Inches beside axes of this height that a legend or color bar needs."""
    if coloring.kind == "classes":
        entries = Legend.of(coloring, legend)
        return entries.columns(height) * entries.column_width
    return 1.0 if coloring.kind == "values" else 0.0


def add_legend(
    ax: Any,
    coloring: Coloring,
    drawn: Any,
    label: str | None,
    legend: bool | None,
    *,
    height: float | None,
) -> None:
    """Add a legend of the classes, or a color bar, next to the axes.

    A `height` in inches is that of a figure with room for the legend, by `legend_width`; None is
    for axes that were given, where `legend` None leaves out classes without room.
    """
    if coloring.values is not None:
        bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.8, aspect=25, pad=0.03)
        style_colorbar(bar, coloring.bar_label(label))
    elif coloring.codes is not None:
        if height is None:
            entries = Legend.beside(ax, coloring, legend)
            height = ax.bbox.height / ax.figure.dpi
        else:
            entries = Legend.of(coloring, legend)
        options = entries.options(label, height, tones(ax))
        added = ax.legend(**options, loc="upper left", bbox_to_anchor=(1.0, 1.02))
        added.get_title().set_color(tones(ax).text)
        _make_room_for(ax, added)


def add_shared_legend(
    panels: Any, coloring: Coloring, label: str | None, legend: bool | None
) -> None:
    """Add a legend or color bar for all panels at the right of the figure."""
    figure = panels[0].figure
    if coloring.values is not None:
        drawn = panels[-1].collections[-1]
        bar = figure.colorbar(drawn, ax=list(panels), shrink=0.8, aspect=30, pad=0.02)
        style_colorbar(bar, coloring.bar_label(label))
    elif coloring.codes is not None:
        entries = Legend.of(coloring, legend)
        colors = tones(panels[0])
        options = entries.options(label, figure.get_figheight(), colors)
        added = figure.legend(**options, loc="outside right upper")
        added.get_title().set_color(colors.text)


def style_colorbar(bar: Any, label: str | None) -> None:
    """Remove the frame of a color bar and make its colors opaque."""
    text = tones(bar.ax).text
    bar.outline.set_visible(False)
    bar.solids.set_alpha(1)
    bar.ax.tick_params(labelsize=9, length=0, labelcolor=text)
    if label:
        bar.set_label(label, fontsize=9, color=text)


def _make_room_for(ax: Any, legend: Any, most: float = 0.6) -> None:
    """Shrink axes without room for the legend, if their figure does not arrange its parts."""
    if ax.figure.get_layout_engine() is not None:
        return
    box = legend.get_window_extent()
    others = [each for each in ax.figure.axes if each is not ax and each.get_visible()]
    if box.x1 > ax.figure.bbox.x1 or any(box.overlaps(each.bbox) for each in others):
        make_room(ax, min(box.width / ax.bbox.width, most), "right")


def _rows(height: float) -> int:
    """Number of rows below the title of a legend of this height in inches."""
    return max(4, int(height / _ROW_HEIGHT) - 2)


def _shortened(name: str) -> str:
    """A name without the middle if it is too long, since names often differ at their end."""
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[1 - half :]}"
