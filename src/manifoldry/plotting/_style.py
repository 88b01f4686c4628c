"""Style of all plots: colors, new axes, frames. No global settings are changed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colors that remain distinct under the common color vision deficiencies: M. A. Petroff,
# "Accessible color sequences for data visualization", 2021 (matplotlib's "petroff10").
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
# Each further ten classes get the same ten colors with another marker.
MARKERS = ("o", "^", "s", "D", "v")

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
