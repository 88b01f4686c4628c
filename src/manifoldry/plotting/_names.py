"""Names of classes on a map, shifted so that they do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, IdentityTransform

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.plotting._style import halo, tones
from manifoldry.util.typing import Array

_WIDTH = 22  # letters of a line of a name
_LISTED = 10  # names that a warning lists


def write_names(ax: Any, anchors: Sequence[Array], names: Sequence[str]) -> None:
    """Write names centered on their anchors, or near them where an earlier name is in the way."""
    texts = [_write(ax, anchor, name) for anchor, name in zip(anchors, names, strict=True)]
    ax.add_artist(NameLayout(texts))


def _write(ax: Any, anchor: Array, name: str) -> Text:
    text: Text = ax.text(
        *anchor,
        fill(name, _WIDTH),
        fontsize=9,
        fontweight="bold",
        color=tones(ax).text,
        ha="center",
        va="center",
        zorder=4,  # below new points
        in_layout=False,  # they are inside the axes when they are drawn
        path_effects=halo(ax),
    )
    return text


class NameLayout(Artist):
    """Shift names apart each time the axes are drawn, so that any size, zoom or angle is right.

    A name that was shifted off its anchor is joined to it by a line. Those that have no room within
    `reach` lines of text are left out, with a warning.
    """

    def __init__(self, texts: list[Text], reach: float = 12.0) -> None:
        super().__init__()
        self.set_zorder(3.5)  # above the points, and before the names are drawn
        self.set_in_layout(False)
        self.texts = texts
        self.reach = reach
        self.shifts = [Affine2D() for _ in texts]
        self._has_warned = False

    def draw(self, renderer: Any) -> None:
        """Place the names, and draw the lines to those that were shifted."""
        ax: Any = self.axes
        for text in self.texts:
            text.set_visible(True)  # a name that the last draw left out has no extent
        boxes = [text.get_window_extent(renderer) for text in self.texts]
        # A little more than their extent, so that names on one line do not read as one.
        sizes = np.array([[box.width + 0.4 * box.height, box.height] for box in boxes])
        anchors = np.array([_place(ax, text) for text in self.texts])
        places = arrange(anchors, sizes, np.array(ax.bbox.extents), self.reach)
        for text, shift, anchor, place, size in zip(
            self.texts, self.shifts, anchors, places, sizes, strict=True
        ):
            has_room = bool(np.isfinite(place).all())
            text.set_visible(has_room)
            if has_room:
                shift.clear().translate(*(place - anchor))
                text.set_transform(ax.transData + shift)
                if (np.abs(place - anchor) > size / 2).any():
                    _draw_line(renderer, place, anchor, tones(ax).line)
        self._warn([text.get_text() for text in self.texts if not text.get_visible()])

    def _warn(self, left_out: list[str]) -> None:
        if left_out and not self._has_warned:
            self._has_warned = True
            warn(
                f"{len(left_out)} of {len(self.texts)} names have no room on the map and are left "
                f"out: {_listed(left_out)}; draw on larger axes, or pass legend=True",
                ManifoldryWarning,
            )


def arrange(anchors: Array, sizes: Array, bounds: Array, reach: float) -> Array:
    """Return centers of boxes near their anchors that do not overlap; NaN for those without room.

    Each box in turn takes the nearest free place of a fixed set around its anchor, inside the
    bounds (left, bottom, right, top), at most `reach` of its heights away.
    """
    rings = np.arange(1, int(2 * reach) + 1) / 2
    angles = np.arange(16) * np.pi / 8
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    offsets = np.vstack([np.zeros((1, 2)), (rings[:, None, None] * around).reshape(-1, 2)])
    places = np.full(anchors.shape, np.nan)
    for i, (anchor, size) in enumerate(zip(anchors, sizes, strict=True)):
        low, high = bounds[:2] + size / 2, bounds[2:] - size / 2
        candidates = np.clip(anchor + offsets * size[1], low, np.maximum(low, high))
        taken = np.isfinite(places[:i, 0])
        distances = np.abs(candidates[:, None] - places[:i][taken])
        free = (distances >= (size + sizes[:i][taken]) / 2).any(axis=2).all(axis=1)
        if free.any():
            places[i] = candidates[free.argmax()]
    return places


def _place(ax: Any, text: Any) -> Array:
    """Position of a text in pixels, before it is shifted."""
    if hasattr(text, "get_position_3d"):
        from mpl_toolkits.mplot3d.proj3d import proj_transform

        position = proj_transform(*text.get_position_3d(), ax.get_proj())[:2]
    else:
        position = text.get_position()
    return np.asarray(ax.transData.transform(position))


def _draw_line(renderer: Any, start: Array, end: Array, color: str) -> None:
    line = Line2D(*np.transpose([start, end]), color=color, linewidth=0.7)
    line.set_transform(IdentityTransform())
    line.draw(renderer)


def _listed(names: list[str]) -> str:
    shown = ", ".join(" ".join(name.split()) for name in names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED} more" if len(names) > _LISTED else shown
