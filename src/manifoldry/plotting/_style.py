"""Style of all plots: colors, new axes, frames. No global settings are changed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colors of different names that also differ in color-blind vision, and twenty more that are as
# far as possible from all others: docs/studies/palette.py.
PALETTE = (
    *("#106dff", "#dd8516", "#047c63", "#ca1140", "#711391"),
    *("#653805", "#c57bb8", "#99a097", "#f2d659", "#22e6fe"),
    *("#4fdf97", "#5b6403", "#6a6579", "#a2adef", "#f6735f"),
    *("#f4b6be", "#317b8f", "#6a9e4f", "#9c807a", "#6e3c4c"),
    *("#264e71", "#685d4b", "#32514f", "#be22d3", "#2fa2f0"),
    *("#92cd16", "#997725", "#5fa7a3", "#1f5628", "#c1a07d"),
)
# Every further ten classes have another marker, so that 150 pairs of color and marker differ.
MARKERS = ("o", "^", "s", "D", "v")
CLASSES_PER_MARKER = 10


@dataclass(frozen=True)
class Tones:
    """Colors of everything but data: text, lines, points without a label, and backgrounds."""

    text: str
    line: str
    faint: str
    missing: str
    paper: str
    pane: str


ON_LIGHT = Tones("#2b2b2b", "#8a8a8a", "#d9d9d9", "#c4c4c4", "#ffffff", "#f7f7f7")
ON_DARK = Tones("#e4e4e4", "#8a8a8a", "#4d4d4d", "#5c5c5c", "#000000", "#161616")


def tones(ax: Any) -> Tones:
    """Colors that can be read on the background of the figure."""
    to_rgba = import_matplotlib("matplotlib.colors").to_rgba
    for figure in (ax.figure, ax.figure.figure):  # a subfigure is transparent by default
        red, green, blue, alpha = to_rgba(figure.get_facecolor())
        if alpha > 0.5:
            return ON_DARK if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else ON_LIGHT
    return ON_LIGHT  # the usual background of pages


def halo(ax: Any) -> list[Any]:
    """Effect that makes text readable on points."""
    effects = import_matplotlib("matplotlib.patheffects")
    return [effects.withStroke(linewidth=2.5, foreground=tones(ax).paper, alpha=0.9)]


def import_matplotlib(module: str = "matplotlib.pyplot") -> Any:
    """Import a module of matplotlib, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        message = 'plotting needs matplotlib; install it with: pip install "manifoldry[plot]"'
        raise ImportError(message) from error


def new_figure(width: float, height: float) -> Any:
    """Make a figure whose layout leaves room for legends outside the axes."""
    return import_matplotlib().figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Axes | None, *, dimensions: int = 2, size: tuple[float, float]) -> Any:
    """Return the axes passed, after checking their projection, or new ones."""
    if ax is None:
        figure = new_figure(*size)
        return figure.add_subplot(projection="3d" if dimensions == 3 else None)
    if not hasattr(ax, "scatter"):
        raise TypeError(f"ax={ax!r} is not a matplotlib Axes; pass one, or None for a new figure")
    if (ax.name == "3d") != (dimensions == 3):
        remedy = "pass axes made with projection='3d'" if dimensions == 3 else "pass plain axes"
        raise ValueError(
            f"ax has projection {ax.name!r}, but the data have {dimensions} columns; {remedy}"
        )
    return ax


def style_frame(ax: Any) -> None:
    """Show thin left and bottom spines only, with small ticks."""
    colors = tones(ax)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=colors.line, linewidth=0.8)
    ax.tick_params(
        color=colors.line, labelcolor=colors.text, labelsize=9, width=0.8, length=3, which="both"
    )


def frame_without_ticks(ax: Any) -> None:
    """Draw a light box without ticks, since the units of an embedding are arbitrary."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(color=tones(ax).faint, linewidth=0.8)


def set_title(ax: Any, title: str | None) -> None:
    """Set a left-aligned title."""
    if title:
        ax.set_title(title, loc="left", fontsize=11, color=tones(ax).text)


def label_axes(ax: Any, xlabel: str | None = None, ylabel: str | None = None) -> None:
    """Set the labels of the axes that are given."""
    if xlabel is not None:
        ax.set_xlabel(xlabel, fontsize=9, color=tones(ax).text)
    if ylabel is not None:
        ax.set_ylabel(ylabel, fontsize=9, color=tones(ax).text)


def marker_area(ax: Any, n: int, *, square: bool = False) -> float:
    """Area of a marker in points², so that all markers together cover about a fifth of the axes.

    It is bounded: from above for few points, and from below for many, by 1.5 up to a hundred
    thousand points and by .5, about a pixel, from a million. With `square` only the largest square
    in the axes counts, since a map has equal units and need not fill the longer side.
    """
    width, height = ax.bbox.size / ax.figure.dpi * 72
    area = min(width, height) ** 2 if square else width * height
    least = np.clip(1.5 * np.sqrt(1e5 / n), 0.5, 1.5)
    return float(np.clip(0.2 * area / n, least, 30.0))


def should_rasterize(n: int, min_points: int = 5000) -> bool:
    """Whether to rasterize markers, since vector files with too many are slow to open."""
    return n >= min_points


def opacity(n: int) -> float:
    """Opacity of markers, from 0.9 for a thousand points to 0.5 for a hundred thousand."""
    return float(np.clip(0.9 - 0.2 * np.log10(n / 1000), 0.5, 0.9))
