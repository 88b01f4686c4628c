"""Grids of several embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.plotting._data import read_points
from manifoldry.plotting._legend import add_shared_legend, legend_width, shows_legend
from manifoldry.plotting._style import new_figure, set_title
from manifoldry.plotting.coloring import Coloring, read_color, resolve_color
from manifoldry.plotting.embedding import plot_embedding


def plot_grid(
    embeddings: Mapping[str, Any],
    color: Any = None,
    *,
    axes: Any = None,
    n_columns: int | None = None,
    panel: float = 2.6,
    color_label: str | None = None,
    categorical: bool | None = None,
    legend: bool | None = None,
    **options: Any,
) -> NDArray[Any]:
    """Plot embeddings in a grid with one legend, to compare methods or parameters.

    Parameters
    ----------
    embeddings : mapping of str to array-like or fitted estimator
        Title and embedding of each panel, as for `plot_embedding`.
    color : str, array-like of shape (n_samples,) or mapping, default=None
        As for `plot_embedding`, shared by all panels; or a mapping from titles to colors, which
        gives each panel its own legend.
    axes : array of matplotlib Axes, default=None
        Axes to draw on, at least one per embedding; None makes a new figure. On given axes a
        shared legend is drawn only if ``legend=True``, since there may be no room for it.
    n_columns : int, default=None
        Panels per row; None uses at most four.
    panel : float, default=2.6
        Width and height of a panel in inches.
    color_label : str, default=None
        Title of the legend or label of the color bar.
    categorical : bool, default=None
        Whether `color` has classes; None decides as `plot_embedding` does.
    legend : bool, default=None
        Whether to add a legend or color bar; None does so in a new figure.
    **options
        Further options of `plot_embedding`, for all panels.

    Returns
    -------
    ndarray of matplotlib Axes of shape (n_embeddings,)
        The axes drawn on, in the order of `embeddings`.

    See Also
    --------
    plot_embedding : one embedding.
    plot_comparison : embeddings aligned with each other, with their metrics.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.plotting import plot_grid
    >>> X, truth = make_swiss_roll(300, random_state=0)
    >>> axes = plot_grid({"from above": X[:, [0, 2]], "unrolled": truth}, truth[:, 0])
    >>> [ax.get_title(loc="left") for ax in axes]
    ['from above', 'unrolled']
    """
    if not isinstance(embeddings, Mapping) or not embeddings:
        raise ValueError("embeddings must be a mapping of at least one title to an embedding")
    own = isinstance(color, Mapping)
    components = options.pop("components", None)
    points = {title: read_points(each, components) for title, each in embeddings.items()}
    if not own:
        color, color_label = read_color(color, color_label, *embeddings.values())
    colors = _colors_by_title(color, points) if own else dict.fromkeys(points, color)
    # All colors are validated before a figure is created.
    colorings = _colorings(colors, points, categorical, shared=not own)
    shared = legend if axes is None else bool(legend)
    with_legend = not own and shows_legend(colorings[0], shared, options.get("names", False))
    panels = _panels(points, axes, n_columns, panel)
    if axes is None:
        _widen(panels, colorings, legend, own=own, shared=with_legend)
    options["color_label"] = color_label
    for ax, coloring, (title, each) in zip(panels, colorings, points.items(), strict=True):
        options["categorical"] = coloring.categorical
        mine = legend if own else False
        plot_embedding(each, colors[title], ax=ax, title=str(title), legend=mine, **options)
    if with_legend:
        add_shared_legend(panels, colorings[0].on(panels[0]), color_label, legend)
    return panels


def plot_comparison(
    comparison: Any,
    color: Any = None,
    *,
    metrics: Sequence[str] = ("trustworthiness", "rnx_area"),
    **options: Any,
) -> NDArray[Any]:
    """Plot compared embeddings, aligned with each other, with some of their metrics.

    Parameters
    ----------
    comparison : Comparison
        Result of :func:`manifoldry.compare`.
    color : str or array-like of shape (n_samples,), default=None
        As for `plot_embedding`, also a name in the AnnData that was compared; by default the
        labels of the comparison.
    metrics : sequence of str, default=("trustworthiness", "rnx_area")
        Metrics in the titles.
    **options
        Further options of `plot_grid`.

    Returns
    -------
    ndarray of matplotlib Axes of shape (n_embeddings,)
        The axes drawn on, in the order of the comparison.

    See Also
    --------
    manifoldry.compare : makes the comparison.
    plot_grid : embeddings as they are.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import compare
    >>> from manifoldry.plotting import plot_comparison
    >>> X, sheet = make_swiss_roll(200, random_state=0)
    >>> axes = plot_comparison(compare(X, {"sheet": sheet, "PCA": PCA(2)}), sheet[:, 0])
    >>> len(axes)
    2
    """
    if not hasattr(comparison, "aligned"):
        raise TypeError(
            f"comparison is of type {type(comparison).__name__}; pass the result of "
            "manifoldry.compare, or draw embeddings with plot_grid"
        )
    color, label = read_color(color, options.pop("color_label", None), comparison.annotated)
    color = comparison.labels if color is None else color
    axes = plot_grid(comparison.aligned, color, color_label=label, **options)
    for ax, (name, found) in zip(axes, comparison.metrics.items(), strict=True):
        values = (f"{m} {found[m]:.3g}" for m in metrics if m in found)
        set_title(ax, "\n".join([str(name), *values]))
    return axes


def _panels(points: dict[str, Any], axes: Any, n_columns: int | None, panel: float) -> NDArray[Any]:
    if axes is None:
        return _new_panels([each.shape[1] for each in points.values()], n_columns, panel)
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) < len(points):
        raise ValueError(
            f"axes has {len(given)} axes for {len(points)} embeddings; pass one for each"
        )
    return given[: len(points)]


def _new_panels(dimensions: list[int], n_columns: int | None, panel: float) -> NDArray[Any]:
    n = len(dimensions)
    # At most four per row, in rows of nearly equal length.
    columns = int(np.ceil(n / np.ceil(n / 4))) if n_columns is None else max(1, min(n_columns, n))
    rows = -(-n // columns)
    figure = new_figure(panel * columns, panel * rows * 1.08)
    panels = np.empty(n, dtype=object)
    for i, d in enumerate(dimensions):
        projection = "3d" if d == 3 else None
        panels[i] = figure.add_subplot(rows, columns, i + 1, projection=projection)
    return panels


def _colors_by_title(color: Mapping[str, Any], points: dict[str, Any]) -> Mapping[str, Any]:
    if missing := [title for title in points if title not in color]:
        raise ValueError(f"color has no entry for {missing}; pass one for each embedding")
    return color


def _colorings(
    colors: Mapping[str, Any], points: dict[str, Any], categorical: bool | None, *, shared: bool
) -> list[Coloring]:
    """Coloring of each panel; a shared color is found to be categorical, or not, only once."""
    found: list[Coloring] = []
    for title, each in points.items():
        found.append(resolve_color(colors[title], len(each), categorical))
        categorical = found[0].categorical if shared else categorical
    return found


def _widen(
    panels: NDArray[Any], colorings: list[Coloring], legend: bool | None, *, own: bool, shared: bool
) -> None:
    """Make a new figure wider by its legends."""
    figure = panels[0].figure
    width, height = figure.get_size_inches()
    if shared:
        width += legend_width(colorings[0], legend, height)
    elif own and legend is not False:
        rows, columns = panels[0].get_gridspec().get_geometry()
        width += columns * max(legend_width(each, legend, height / rows) for each in colorings)
    figure.set_size_inches(width, height)
