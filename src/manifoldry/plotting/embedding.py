"""Scatter plots of an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.plotting._color import (
    MAX_LEGEND,
    Coloring,
    add_legend,
    read_color,
    resolve_color,
    scatter,
)
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
        Axes to draw on; None makes a new figure. Three columns need ``projection="3d"``.
    title : str, default=None
        Title of the axes.
    color_label : str, default=None
        Title of the legend or label of the color bar.
    categorical : bool, default=None
        Whether `color` has classes; None decides as described there.
    legend : bool, default=None
        Whether to add a legend or color bar; None does for up to 40 classes without `names`.
    cmap : str or Colormap, default="viridis"
        Color map for values.
    size, alpha : float, default=None
        Area in points² and opacity of the markers; None chooses them from the number of points
        and the size of the axes.
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
    n, dimensions = points.shape
    new = None if new_embedding is None else _read_new(new_embedding, components, dimensions)
    with_legend = dimensions > 1 and shows_legend(coloring, legend, names)
    is_new = ax is None
    ax = axes_or_new(ax, dimensions=dimensions, size=_size(dimensions, coloring, with_legend))
    if is_new and dimensions == 2:
        ax.set_box_aspect(1)  # whatever the width of the legend
        ax.set_anchor("W")
    marker_options = {
        "s": marker_area(ax, n) if size is None else size,
        "alpha": opacity(n) if alpha is None else alpha,
        "rasterized": should_rasterize(n) if rasterized is None else rasterized,
    }
    draw = {1: _draw_line, 2: _draw_plane, 3: _draw_space}[dimensions]
    drawn = draw(ax, points, coloring, ticks=ticks, label=color_label, cmap=cmap, **marker_options)
    if names:
        _write_names(ax, points, coloring)
    if new is not None:
        _draw_new(ax, new, marker_options["s"])
    if with_legend:
        add_legend(ax, coloring, drawn, color_label)
    set_title(ax, title)
    return ax


def shows_legend(coloring: Coloring, legend: bool | None, names: bool = False) -> bool:
    """Resolve `legend`: None shows one unless classes are named on their points, or too many."""
    if legend is not None:
        return legend
    count = len(coloring.classes)
    if count and names:
        return False
    if count > MAX_LEGEND:
        warn(
            f"color has {count} classes, more than {MAX_LEGEND}, so there is no legend; pass "
            "legend=True for one, or names=True to write their names on the points",
            ManifoldryWarning,
        )
    return count <= MAX_LEGEND


def _size(dimensions: int, coloring: Coloring, with_legend: bool) -> tuple[float, float]:
    """Width and height of a new figure, in inches."""
    if dimensions == 1:
        return (5.6, 1.2 + 0.34 * max(len(coloring.classes), 1 if coloring.values is None else 8))
    longest = max(map(len, coloring.classes), default=0)
    column = 0.55 + 0.075 * max(longest, 6)  # the marker, and 0.075 inches per letter
    beside = {"single": 0.0, "values": 1.0, "classes": coloring.legend_columns * column}
    return (4.6 + with_legend * beside[coloring.kind], 4.6)


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
    extent = np.ptp(points, axis=0)
    sides = np.maximum(extent, 0.05 * extent.max()) if extent.max() > 0 else None
    _fit_box(ax, sides)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0.97, 0.97, 0.97, 1))
        axis.line.set(color=LIGHT_GRAY, linewidth=0.8)
        axis.set_tick_params(labelsize=8, labelcolor=TEXT_COLOR, color=LIGHT_GRAY)
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
        ax.set_ylabel(coloring.bar_label(label or "value"), fontsize=9, color=TEXT_COLOR)
    else:
        _name_rows(ax, coloring.classes)
    ax.set_xlabel("coordinate", fontsize=9, color=TEXT_COLOR)
    return drawn


def _heights(coloring: Coloring) -> Array | None:
    """The values, and for missing ones a height below all others."""
    if coloring.values is None:
        return None
    low, high = np.nanmin(coloring.values), np.nanmax(coloring.values)
    below = low - 0.1 * (high - low or 1.0)
    return np.where(np.isnan(coloring.values), below, coloring.values)


def _name_rows(ax: Any, classes: tuple[str, ...]) -> None:
    ax.set_yticks(range(len(classes)), classes)
    ax.set_ylim(max(len(classes), 1) - 0.4, -0.6)  # the first class at the top, as in a legend
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
