"""Scatter plots of an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.plotting._data import read_points
from manifoldry.plotting._legend import add_legend, legend_width, shows_legend
from manifoldry.plotting._points import marker_options, scatter
from manifoldry.plotting._style import (
    axes_or_new,
    frame_without_ticks,
    label_axes,
    set_title,
    style_frame,
    tones,
)
from manifoldry.plotting.coloring import Coloring, read_color, resolve_color
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TALLEST = 14.0  # inches of the rows of classes, if there is one column


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
    names: bool = False,
    new_embedding: Any = None,
) -> Axes:
    """Plot an embedding of one, two or three columns, colored by classes or values.

    The embedding may come from any package. Axes have equal units and, since those are usually
    arbitrary, no ticks. A single column is plotted against the values of `color`, or with one row
    per class.

    Parameters
    ----------
    embedding : array-like of shape (n_samples,) or (n_samples, 1 to 3), or fitted estimator
        The points, an object with `embedding_`, or ``(adata, key)`` for an entry of the ``obsm``
        of an AnnData.
    color : str or array-like of shape (n_samples,), default=None
        A color for all points, or one label or value per point; with an AnnData also the name of
        a column of ``obs``, or else one of ``var_names``, such as a gene, for its values in
        ``adata.X``. scanpy's plots read ``adata.raw`` instead, if there is one: for its values pass
        ``adata.raw.obs_vector(name)``, and ``adata.obs_vector(name, layer=layer)`` for those in a
        layer. Strings, booleans and whole numbers with at most 40 different values are classes,
        other numbers are values. A pandas Categorical keeps the order of its categories. Points
        whose label or value is None or NaN are gray.
    components : sequence of int, default=None
        Columns to draw; required if there are more than three.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure. Three columns need ``projection="3d"``. If there
        is no room for a legend beside them, and their figure has no layout engine, they shrink.
    title : str, default=None
        Title of the axes.
    color_label : str, default=None
        Title of the legend or label of the color bar.
    categorical : bool, default=None
        Whether `color` has classes; None decides as described there.
    legend : bool, default=None
        Whether to add a legend or color bar; None does, unless there are `names`. Of more than 40
        classes, or more than have room beside given axes, it shows the largest and the number of
        the others; with True it shows all.
    cmap : str or Colormap, default="viridis"
        Color map for values.
    size, alpha : float, default=None
        Area in points² and opacity of the markers; None chooses them from the number of points
        and the size of the axes. Points are drawn in random order, those without a label first,
        and classes with less than 5 % of the mean number of points last; with None these are
        larger if there are very many points. Without classes or values, 50 000 points or more are
        darker where there are many of them.
    ticks : bool, default=False
        Whether to show ticks.
    rasterized : bool, default=None
        Whether to rasterize points in vector files; None does so from 5000 points.
    names : bool, default=False
        Whether to write the name of each class on its points, near their median. Names that would
        overlap are shifted when the figure is drawn, and left out with a warning if there is no
        room for them.
    new_embedding : array-like of shape (n_new, n_components), default=None
        Coordinates of new points, such as ``model.transform(X_new)``, drawn on top as
        white dots with a black edge.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_grid : several embeddings in a grid.
    plot_images : images on their points.
    plot_comparison : embeddings aligned with each other.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.plotting import plot_embedding
    >>> X, coordinates = make_s_curve(300, random_state=0)
    >>> ax = plot_embedding(coordinates, coordinates[:, 0], color_label="arc length")
    >>> ax.figure.savefig("map.png")  # doctest: +SKIP
    """
    points = read_points(embedding, components)
    color, color_label = read_color(color, color_label, embedding)
    embedded = np.logical_not(np.isnan(points).all(axis=1))
    coloring = resolve_color(color, len(points), categorical, embedded)
    points = points[embedded]
    dimensions = points.shape[1]
    new = None if new_embedding is None else _read_new(new_embedding, components, dimensions)
    with_legend = dimensions > 1 and shows_legend(coloring, legend, names)
    is_new = ax is None
    width, height = _size(dimensions, coloring, names)
    beside = legend_width(coloring, legend, height) if with_legend else 0.0
    ax = axes_or_new(ax, dimensions=dimensions, size=(width + beside, height))
    coloring = coloring.on(ax)
    if is_new and dimensions > 1:
        ax.set_anchor("W")  # beside a legend of any width
    if is_new and dimensions == 2:
        ax.set_box_aspect(1)
    markers = {"cmap": cmap, "size": size, "alpha": alpha, "rasterized": rasterized}
    draw = {1: _draw_line, 2: _draw_plane, 3: _draw_space}[dimensions]
    drawn = draw(ax, points, coloring, ticks=ticks, label=color_label, **markers)
    if names:
        _write_names(ax, points, coloring)
    if new is not None:
        _draw_new(ax, new, marker_options(ax, points, size, alpha, rasterized)["s"])
    if with_legend:
        room = height if is_new else None
        add_legend(ax, coloring, drawn, color_label, legend, height=room)
    set_title(ax, title)
    return ax


def _size(dimensions: int, coloring: Coloring, names: bool) -> tuple[float, float]:
    """Width and height of a new figure without a legend, in inches."""
    count = len(coloring.classes)
    if dimensions == 1:
        rows = max(count, 1 if coloring.values is None else 8)
        return (5.6, 1.2 + min(0.34 * rows, _TALLEST))
    side = 4.6 * np.clip(np.sqrt(count / 40), 1.0, 2.2) if names else 4.6  # room for the names
    return (float(side), float(side))


def _read_new(new: Any, components: Sequence[int] | None, dimensions: int) -> Array:
    points = read_points(new, components)
    if points.shape[1] != dimensions or dimensions == 1:
        raise ValueError(
            f"new_embedding has {points.shape[1]} columns and the embedding {dimensions}; both "
            "must have two or three"
        )
    return points


def _draw_new(ax: Any, new: Array, area: float) -> None:
    """Draw new points on top of all others, large enough to be found among them."""
    three = {"depthshade": False} if new.shape[1] == 3 else {}
    if three:
        # Otherwise matplotlib draws the collection whose nearest point is farthest away first.
        ax.computed_zorder = False
    style = {"facecolors": "white", "edgecolors": "black", "linewidths": 0.9}
    ax.scatter(*new.T, s=max(2 * area, 25.0), zorder=5, label="new points", **style, **three)


def _write_names(ax: Any, points: Array, coloring: Coloring) -> None:
    """Write the name of each class at its point nearest to the median, the largest class first."""
    if points.shape[1] == 1 or coloring.codes is None:
        return  # a line names its rows
    from manifoldry.plotting._names import write_names  # late, since it imports matplotlib

    # Points without a label may lie anywhere.
    named = coloring.classes[:-1] if coloring.has_missing else coloring.classes
    counts = np.bincount(coloring.codes, minlength=len(named))[: len(named)]
    order = [code for code in np.argsort(-counts, kind="stable") if counts[code]]
    anchors = [_central_point(points[coloring.codes == code]) for code in order]
    write_names(ax, anchors, [named[code] for code in order])


def _central_point(members: Array) -> Array:
    """The point nearest to the median."""
    distance = np.linalg.norm(members - np.median(members, axis=0), axis=1)
    return np.asarray(members[distance.argmin()])


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
    colors = tones(ax)
    extent = np.ptp(points, axis=0)
    sides = np.maximum(extent, 0.05 * extent.max()) if extent.max() > 0 else None
    _fit_box(ax, sides)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color(colors.pane)
        axis.line.set(color=colors.faint, linewidth=0.8)
        axis.set_tick_params(labelsize=8, labelcolor=colors.text, color=colors.faint)
    ax.grid(False)
    if not ticks:
        ax.set(xticks=[], yticks=[], zticks=[])
    return drawn


def _fit_box(ax: Any, sides: Array | None, reach: float = 0.47) -> None:
    """Zoom so that the corners of the box are inside the axes, `reach` of them from the center."""
    from mpl_toolkits.mplot3d.proj3d import proj_transform

    zoom = 1.0
    for _ in range(3):  # the perspective depends a little on the zoom
        ax.set_box_aspect(sides, zoom=zoom)
        bounds = ax.get_xlim(), ax.get_ylim(), ax.get_zlim()
        corners = [proj_transform(*corner, ax.get_proj())[:2] for corner in product(*bounds)]
        places = ax.transAxes.inverted().transform(ax.transData.transform(corners))
        zoom *= reach / np.abs(places - 0.5).max()
    ax.set_box_aspect(sides, zoom=zoom)


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
    height = {"values": _heights(coloring), "single": jitter}.get(coloring.kind)
    height = coloring.codes + jitter if height is None else height  # type: ignore[operator]  # classes have codes
    drawn = scatter(ax, np.column_stack([points, height]), coloring, **marker_options)
    style_frame(ax)
    if coloring.values is not None:
        label_axes(ax, ylabel=coloring.bar_label(label or "value"))
    else:
        _name_rows(ax, coloring.classes)
    label_axes(ax, "coordinate")
    return drawn


def _heights(coloring: Coloring) -> Array | None:
    """The values, and for missing ones a height below all others."""
    if coloring.values is None:
        return None
    low, high = np.nanmin(coloring.values), np.nanmax(coloring.values)
    below = low - 0.1 * (high - low or 1.0)
    return np.where(np.isnan(coloring.values), below, coloring.values)


def _name_rows(ax: Any, classes: tuple[str, ...]) -> None:
    """Name each row, in letters as large as have room, or every second one, and so on."""
    pitch = ax.bbox.height / ax.figure.dpi * 72 / max(len(classes), 1)
    size = float(np.clip(0.8 * pitch, 5.0, 9.0))
    every = int(np.ceil(size / pitch / 1.1))
    ax.set_yticks(range(0, len(classes), every), classes[::every])
    ax.set_ylim(max(len(classes), 1) - 0.4, -0.6)  # the first class at the top, as in a legend
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0, labelsize=size)
