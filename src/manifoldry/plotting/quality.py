"""Plots of quality metrics: co-ranking curves, Shepard diagrams and assessments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.plotting._style import (
    axes_or_new,
    label_axes,
    new_figure,
    set_title,
    style_frame,
    tones,
)
from manifoldry.plotting.curves import plot_learning_curve
from manifoldry.plotting.embedding import plot_embedding

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_coranking(curves: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Plot the fraction of neighbors kept beyond chance, R_NX, by neighborhood size.

    Higher is better: 1 is perfect, 0 is random. The left shows local and the right global
    structure. The legend contains the area under each curve.

    Parameters
    ----------
    curves : CoRanking, or mapping of str to CoRanking
        Results of :func:`manifoldry.metrics.coranking`, one or several by name.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    manifoldry.metrics.coranking : computes the curves.
    plot_assessment : these and other plots of one embedding.

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
        raise TypeError("curves must be a CoRanking, or a mapping of names to CoRanking objects")
    lines = {
        f"{name}: {curve.area:.2f}": (curve.sizes[:-1], curve.r_nx) for name, curve in named.items()
    }
    ylabel = "neighbors kept beyond chance (R_NX)"
    ax = plot_learning_curve(lines, ax=ax, log="x", xlabel="neighborhood size", ylabel=ylabel)
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
    """Plot distances in the embedding against distances in the data, colored by density.

    A thin increasing band means that the embedding preserves distances up to a monotone function;
    a cloud means that it does not.

    Parameters
    ----------
    diagram : Shepard
        Result of :func:`manifoldry.metrics.shepard`.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    cmap : str or Colormap, default="viridis"
        Color map for the number of pairs.
    gridsize : int, default=120
        Number of hexagons along the x axis.
    title : str, default=None
        Title of the axes; by default the rank correlation.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    manifoldry.metrics.shepard : computes the diagram.
    plot_assessment : this and other plots of one embedding.

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
        raise TypeError("diagram must be the result of manifoldry.metrics.shepard")
    ax = axes_or_new(ax, size=(4.6, 4.2))
    ax.hexbin(
        diagram.data_distances,
        diagram.embedding_distances,
        gridsize=gridsize,
        bins="log",
        cmap=cmap,
        linewidths=0,
    )
    style_frame(ax)
    label_axes(ax, "distance in the data", "distance in the embedding")
    set_title(ax, f"rank correlation {diagram.spearman:.2f}" if title is None else title)
    return ax


def plot_assessment(assessment: Any, *, size: float = 4.2) -> NDArray[Any]:
    """Plot the result of an assessment in four panels.

    The panels are the embedding colored by the trustworthiness of each point; the embedding
    colored by magnification, or by continuity if X has no coordinates; co-ranking curves of the
    embedding and PCA; and the Shepard diagram.

    Parameters
    ----------
    assessment : Assessment
        Result of :func:`manifoldry.assess`, for an embedding of one to three coordinates.
    size : float, default=4.2
        Width and height of a panel in inches.

    Returns
    -------
    ndarray of matplotlib Axes of shape (4,)
        The axes drawn on.

    See Also
    --------
    manifoldry.assess : computes the assessment.
    plot_comparison : several embeddings.

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
        raise TypeError("assessment must be the result of manifoldry.metrics.assess")
    Y, values = assessment.embedding, assessment.per_point
    figure = new_figure(2 * size + 1, 2 * size)
    projection = "3d" if Y.shape[1] == 3 else None
    panels = [figure.add_subplot(2, 2, i, projection=projection) for i in (1, 2)]
    _draw_embedding(
        panels[0], Y, values["trustworthiness"], "trustworthiness of each point", (0.5, 1.0)
    )
    if "magnification" in values:
        scale = np.log2(np.clip(values["magnification"], 2.0**-9, 2.0**9))
        _draw_embedding(panels[1], Y, scale, "log2 of the magnification", (-3.0, 3.0))
    else:
        _draw_embedding(panels[1], Y, values["continuity"], "continuity of each point", (0.5, 1.0))
    below = [figure.add_subplot(2, 2, i) for i in (3, 4)]
    plot_coranking(assessment.curves, ax=below[0])
    plot_shepard(assessment.shepard, ax=below[1])
    return np.array([*panels, *below], dtype=object)


def _draw_embedding(ax: Any, Y: Any, values: Any, title: str, limits: tuple[float, float]) -> None:
    embedded = np.isfinite(values)
    plot_embedding(Y[embedded], np.clip(values[embedded], *limits), ax=ax, title=title)
    for spine in ax.spines.values():
        spine.set(color=tones(ax).faint)
