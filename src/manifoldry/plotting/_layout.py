"""Room beside axes: their place in the figure is divided."""

from __future__ import annotations

from typing import Any, Literal


def make_room(ax: Any, fraction: float, side: Literal["bottom", "right"]) -> Any:
    """Shrink axes within their place, and return the part of it that is free at this side.

    It is a subplot specification for `Figure.add_subplot`, or bounds for `Figure.add_axes` if the
    axes were made by that.
    """
    place = ax.get_subplotspec()
    if place is None:
        left, bottom, width, height = ax.get_position(original=True).bounds
        if side == "right":
            ax.set_position((left, bottom, (1 - fraction) * width, height))
            return (left + (1 - fraction) * width, bottom, fraction * width, height)
        ax.set_position((left, bottom + fraction * height, width, (1 - fraction) * height))
        return (left, bottom, width, 0.96 * fraction * height)
    ratios = (1 - fraction, fraction)
    if side == "right":
        parts = place.subgridspec(1, 2, width_ratios=ratios, wspace=0.0)
    else:
        parts = place.subgridspec(2, 1, height_ratios=ratios, hspace=0.04)
    ax.set_subplotspec(parts[0])
    return parts[1]
