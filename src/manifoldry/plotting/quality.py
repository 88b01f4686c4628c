"""Draw how far a map can be trusted, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.plotting._style import (
    LIGHT_GRAY,
    TEXT_COLOR,
    axes_or_new,
    new_figure,
    set_title,
    style_frame,
)
from manifoldry.plotting.curves import plot_learning_curve
from manifoldry.plotting.embedding import plot_embedding

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_coranking(curves: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the neighbors that maps keep beyond chance, for every size of neighborhood.

    The higher the better: 1 is perfect, 0 chance. Left are the nearest neighbors, right the large
    structure. The area, in the legend, is the one figure of each map.

    Parameters
    ----------
    curves : CoRanking, or mapping of str to CoRanking
        What :func:`manifoldry.metrics.coranking` returned, for several maps with their names.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import coranking
    >>> from manifoldry.plotting import plot_coranking
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> curves = {"sheet": coranking(X, sheet), "PCA": coranking(X, PCA(2).fit(X))}
    >>> ax = plot_coranking(curves)
    >>> len(ax.lines)
    2
    """
    several = isinstance(curves, Mapping)
    named = dict(curves) if several else {"R_NX": curves}
    if not named or not all(hasattr(curve, "r_nx") for curve in named.values()):
        raise TypeError("curves must be a CoRanking, or a mapping of names to some")
    lines = {
        f"{name}: {curve.area:.2f}": (curve.sizes[:-1], curve.r_nx) for name, curve in named.items()
    }
    ylabel = "neighbors kept beyond chance (R_NX)"
    ax = plot_learning_curve(lines, ax=ax, log="x", xlabel="size of neighborhood", ylabel=ylabel)
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.0)
    set_title(ax, title)
    return ax


def plot_shepard(
    diagram: Any,
    *,
    ax: Axes | None = None,
    cmap: Any = "viridis",
    gridsize: int = 120,
    title: str | None = None,
) -> Axes:
    """Draw distances on the map against distances in the data, darker where pairs are few.

    A thin rising band means that distances on the map can be compared; a cloud that they cannot.

    Parameters
    ----------
    diagram : Shepard
        What :func:`manifoldry.metrics.shepard` returned.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    cmap : str or Colormap, default="viridis"
        Colors of the number of pairs.
    gridsize : int, default=120
        Hexagons along the longer side.
    title : str, default=None
        Title of the axes; by default the correlation of the ranks.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import shepard
    >>> from manifoldry.plotting import plot_shepard
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> plot_shepard(shepard(X, sheet)).get_xlabel()
    'distance in the data'
    """
    if not hasattr(diagram, "spearman"):
        raise TypeError("diagram must be what manifoldry.metrics.shepard returned")
    ax = axes_or_new(ax, size=(4.6, 4.2))
    ax.hexbin(diagram.data, diagram.map, gridsize=gridsize, bins="log", cmap=cmap, linewidths=0)
    style_frame(ax)
    ax.set_xlabel("distance in the data", fontsize=9, color=TEXT_COLOR)
    ax.set_ylabel("distance on the map", fontsize=9, color=TEXT_COLOR)
    set_title(ax, f"rank correlation {diagram.spearman:.2f}" if title is None else title)
    return ax


def plot_assessment(assessment: Any, *, size: float = 4.2) -> NDArray[Any]:
    """Draw a verdict: where the map can be trusted, and what it keeps.

    Four panels: the map colored by how far each point's neighbors can be believed, the same by
    how much larger than usual its surroundings are drawn, neighbors kept at every size beside
    those of PCA, and the Shepard diagram.

    Parameters
    ----------
    assessment : Assessment
        What :func:`manifoldry.metrics.assess` returned, of a map of one to three coordinates.
    size : float, default=4.2
        Width and height of a panel in inches.

    Returns
    -------
    ndarray of matplotlib Axes of shape (4,)
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import assess
    >>> from manifoldry.plotting import plot_assessment
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> plot_assessment(assess(X, sheet)).shape
    (4,)
    """
    if not hasattr(assessment, "per_point"):
        raise TypeError("assessment must be what manifoldry.metrics.assess returned")
    Y, values = assessment.embedding, assessment.per_point
    figure = new_figure(2 * size + 1, 2 * size)
    projection = "3d" if Y.shape[1] == 3 else None
    maps = [figure.add_subplot(2, 2, i, projection=projection) for i in (1, 2)]
    _draw_map(maps[0], Y, values["trustworthiness"], "trustworthiness of each point", (0.5, 1.0))
    if "magnification" in values:
        scale = np.log2(np.clip(values["magnification"], 2.0**-9, 2.0**9))
        _draw_map(maps[1], Y, scale, "magnification, powers of two", (-3.0, 3.0))
    else:
        _draw_map(maps[1], Y, values["continuity"], "continuity of each point", (0.5, 1.0))
    below = [figure.add_subplot(2, 2, i) for i in (3, 4)]
    plot_coranking(assessment.curves, ax=below[0])
    plot_shepard(assessment.shepard, ax=below[1])
    return np.array([*maps, *below], dtype=object)


def _draw_map(ax: Any, Y: Any, values: Any, title: str, limits: tuple[float, float]) -> None:
    on_map = np.isfinite(values)
    plot_embedding(Y[on_map], np.clip(values[on_map], *limits), ax=ax, title=title)
    for spine in ax.spines.values():
        spine.set(color=LIGHT_GRAY)
