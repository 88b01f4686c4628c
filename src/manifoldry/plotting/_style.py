"""Style of all plots: colors, new axes, frames. No global settings are changed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colors of different names, and twenty more that are as far as possible from all others:
# docs/studies/palette.py.
PALETTE = (
    *("#1f70c8", "#f07d0a", "#0f8050", "#d0203a", "#6a1fb0"),
    *("#5c3a1c", "#f27fcc", "#9aa0a5", "#e0d92e", "#86e6ea"),
    *("#776270", "#50d469", "#315153", "#e7aea2", "#929553"),
    *("#5b6403", "#41adfc", "#ce18ad", "#3a878c", "#8c1f4d"),
    *("#bec4f1", "#887bcf", "#8a7969", "#42496f", "#76a689"),
    *("#98573d", "#f6735f", "#a68991", "#efbd87", "#606b59"),
)
# Every further ten classes have another marker, so that 150 pairs of color and marker differ.
MARKERS = ("o", "^", "s", "D", "v")
CLASSES_PER_MARKER = 10

TEXT_COLOR = "#2b2b2b"
GRAY = "#8a8a8a"
LIGHT_GRAY = "#d9d9d9"


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
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set(color=GRAY, linewidth=0.8)
    ax.tick_params(
        color=GRAY, labelcolor=TEXT_COLOR, labelsize=9, width=0.8, length=3, which="both"
    )


def frame_without_ticks(ax: Any) -> None:
    """Draw a light box without ticks, since the units of an embedding are arbitrary."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(color=LIGHT_GRAY, linewidth=0.8)


def set_title(ax: Any, title: str | None) -> None:
    """Set a left-aligned title."""
    if title:
        ax.set_title(title, loc="left", fontsize=11, color=TEXT_COLOR)


def marker_area(ax: Any, n: int) -> float:
    """Area of a marker in points², so that all markers together cover about a fifth of the axes.

    It is bounded from above and below, for very few and very many points.
    """
    inches = np.prod(ax.bbox.size) / ax.figure.dpi**2
    return float(np.clip(0.2 * 72**2 * inches / n, 1.5, 30.0))


def should_rasterize(n: int, min_points: int = 5000) -> bool:
    """Whether to rasterize markers, since vector files with too many are slow to open."""
    return n >= min_points


def opacity(n: int) -> float:
    """Opacity of markers, from 0.9 for a thousand points to 0.5 for a hundred thousand."""
    return float(np.clip(0.9 - 0.2 * np.log10(n / 1000), 0.5, 0.9))
