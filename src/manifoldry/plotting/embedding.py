"""Scatter plots of an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.plotting._color import MAX_LEGEND, Coloring, add_legend, resolve_color, scatter
from manifoldry.plotting._data import read_points
from manifoldry.plotting._style import (
    LIGHT_GRAY,
    TEXT_COLOR,
    axes_or_new,
    frame_without_ticks,
    marker_area,
    opacity,
    set_title,
    should_rasterize,
    style_frame,
)
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_embedding(
    embedding: Any,
    color: Any = None,
    *,
    components: Sequence[int] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    color_label: str | None = None,
    categorical: bool | None = None,
    legend: bool | None = None,
    cmap: Any = "viridis",
    size: float | None = None,
    alpha: float | None = None,
    ticks: bool = False,
    rasterized: bool | None = None,
) -> Axes:
    """Plot an embedding of one, two or three columns, colored by classes or values.

    The embedding may come from any package. Axes have equal units and, since those are usually
    arbitrary, no ticks. A single column is plotted against the values of `color`, or with one row
    per class.

    Parameters
    ----------
    embedding : array-like of shape (n_samples,) or (n_samples, 1 to 3), or fitted estimator
        The points, or an object with `embedding_`.
    color : str or array-like of shape (n_samples,), default=None
        A color for all points, or one label or value per point. Strings, booleans and whole
        numbers with at most 20 different values are classes, other numbers are values.
    components : sequence of int, default=None
        Columns to draw; required if there are more than three.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure. Three columns need ``projection="3d"``.
    title : str, default=None
        Title of the axes.
    color_label : str, default=None
        Title of the legend or label of the color bar.
    categorical : bool, default=None
        Whether `color` has classes; None decides as described there.
    legend : bool, default=None
        Whether to add a legend or color bar; None does for up to 20 classes.
    cmap : str or Colormap, default="viridis"
        Color map for values.
    size, alpha : float, default=None
        Area in points² and opacity of the markers; None chooses them from the number of points
        and the size of the axes.
    ticks : bool, default=False
        Whether to show ticks.
    rasterized : bool, default=None
        Whether to rasterize points in vector files; None does so from 5000 points.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.plotting import plot_embedding
    >>> X, coordinates = make_s_curve(300, random_state=0)
    >>> ax = plot_embedding(coordinates, coordinates[:, 0], color_label="arc length")
    >>> ax.figure.savefig("map.png")  # doctest: +SKIP
    """
    points, color = _drop_missing(read_points(embedding, components), color)
    n, dimensions = points.shape
    coloring = resolve_color(color, n, categorical)
    ax = axes_or_new(ax, dimensions=dimensions, size=_figure_size(dimensions, coloring))
    marker_options = {
        "s": marker_area(ax, n) if size is None else size,
        "alpha": opacity(n) if alpha is None else alpha,
        "rasterized": should_rasterize(n) if rasterized is None else rasterized,
    }
    draw = {1: _draw_line, 2: _draw_plane, 3: _draw_space}[dimensions]
    drawn = draw(ax, points, coloring, ticks=ticks, label=color_label, cmap=cmap, **marker_options)
    if dimensions > 1 and shows_legend(coloring, legend):
        add_legend(ax, coloring, drawn, color_label)
    set_title(ax, title)
    return ax


def _drop_missing(points: Array, color: Any) -> tuple[Array, Any]:
    """Drop points that were not embedded, together with their colors."""
    kept = ~np.isnan(points).all(axis=1)
    listed = color is not None and not isinstance(color, str)
    if kept.all() or (listed and len(color) != len(points)):
        return points, color
    return points[kept], np.asarray(color)[kept] if listed else color


def shows_legend(coloring: Coloring, legend: bool | None) -> bool:
    """Resolve `legend`: None shows a legend for up to 20 classes."""
    return len(coloring.classes) <= MAX_LEGEND if legend is None else legend


def _figure_size(dimensions: int, coloring: Coloring) -> tuple[float, float]:
    if dimensions == 1:
        return (5.6, 1.2 + 0.34 * max(len(coloring.classes), 1 if coloring.values is None else 8))
    beside = {"single": 0.0, "values": 1.0, "classes": 1.0 if len(coloring.classes) <= 12 else 2.2}
    return (4.6 + beside[coloring.kind], 4.6)


def _draw_plane(
    ax: Any,
    points: Array,
    coloring: Coloring,
    *,
    ticks: bool,
    label: str | None,
    **marker_options: Any,
) -> Any:
    drawn = scatter(ax, points, coloring, **marker_options)
    # Adjusting the data limits keeps all panels of a grid the same shape; matplotlib does not
    # allow it if both axes are shared.
    shared = all(
        len(group.get_siblings(ax)) > 1
        for group in (ax.get_shared_x_axes(), ax.get_shared_y_axes())
    )
    ax.set_aspect("equal", adjustable="box" if shared else "datalim")
    style_frame(ax) if ticks else frame_without_ticks(ax)
    return drawn


def _draw_space(
    ax: Any,
    points: Array,
    coloring: Coloring,
    *,
    ticks: bool,
    label: str | None,
    **marker_options: Any,
) -> Any:
    # Without matplotlib's depth shading, which fades most points; light panes show depth.
    drawn = scatter(ax, points, coloring, depthshade=False, **marker_options)
    extent = np.ptp(points, axis=0)
    sides = np.maximum(extent, 0.05 * extent.max()) if extent.max() > 0 else None
    ax.set_box_aspect(sides, zoom=1.1)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0.97, 0.97, 0.97, 1))
        axis.line.set(color=LIGHT_GRAY, linewidth=0.8)
        axis.set_tick_params(labelsize=8, labelcolor=TEXT_COLOR, color=LIGHT_GRAY)
    ax.grid(False)
    if not ticks:
        ax.set(xticks=[], yticks=[], zticks=[])
    return drawn


def _draw_line(
    ax: Any,
    points: Array,
    coloring: Coloring,
    *,
    ticks: bool,
    label: str | None,
    **marker_options: Any,
) -> Any:
    """Plot one column against the values, the classes, or random heights if there are neither."""
    jitter = np.random.default_rng(1).uniform(-0.3, 0.3, len(points))
    height = {"values": coloring.values, "single": jitter}.get(coloring.kind)
    height = coloring.codes + jitter if height is None else height  # type: ignore[operator]  # classes have codes
    drawn = scatter(ax, np.column_stack([points, height]), coloring, **marker_options)
    style_frame(ax)
    if coloring.values is not None:
        ax.set_ylabel(label or "value", fontsize=9, color=TEXT_COLOR)
    else:
        _name_rows(ax, coloring.classes)
    ax.set_xlabel("coordinate", fontsize=9, color=TEXT_COLOR)
    return drawn


def _name_rows(ax: Any, classes: tuple[str, ...]) -> None:
    ax.set_yticks(range(len(classes)), classes)
    ax.set_ylim(max(len(classes), 1) - 0.4, -0.6)  # the first class at the top, as in a legend
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
