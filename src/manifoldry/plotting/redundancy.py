"""Plots of redundant coordinates and of the pairwise dependence of coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.plotting._data import n_columns, read_points
from manifoldry.plotting._style import (
    PALETTE,
    axes_or_new,
    frame_without_ticks,
    label_axes,
    marker_area,
    new_figure,
    opacity,
    set_title,
    should_rasterize,
    style_frame,
    tones,
)
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_redundancy(
    embedding: Any,
    *,
    ax: Axes | None = None,
    threshold: float = 0.5,
    title: str | None = None,
) -> Axes:
    """Plot the relative error of predicting each coordinate from those before it.

    The bars are the values of :func:`manifoldry.metrics.unpredictability`. A coordinate at the line
    at 1 cannot be predicted at all; gray bars, below the threshold, are redundant coordinates.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, n_components), or fitted estimator
        The embedding, or an object with `embedding_`.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    threshold : float, default=0.5
        Error below which a coordinate counts as redundant.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_dependence : the coordinates themselves, in pairs.
    manifoldry.NonRedundant : coordinates that do not repeat each other.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_strip
    >>> from manifoldry.plotting import plot_redundancy
    >>> X = make_strip(300, aspect=3.5, random_state=0).X
    >>> ax = plot_redundancy(LaplacianEigenmaps(3).fit(X))
    >>> [bool(bar.get_height() < 0.5) for bar in ax.patches[:3]]
    [False, True, True]
    """
    from manifoldry.metrics import unpredictability  # late: it imports scikit-learn

    Y = _coordinates_of(embedding)
    if not 0 < threshold < 1:
        raise ValueError(
            f"threshold={threshold} must lie between 0 (perfectly predictable) and 1 "
            "(unpredictable), both excluded"
        )
    errors = unpredictability(Y[~np.isnan(Y).all(axis=1)])
    ax = axes_or_new(ax, size=(1.6 + 0.4 * max(8, min(len(errors), 24)), 3.4))
    _draw_errors(ax, errors, threshold)
    _style_axes(ax, errors)
    set_title(ax, title)
    return ax


def plot_dependence(
    embedding: Any, *, axes: Any = None, panel: float = 1.6, title: str | None = None
) -> NDArray[Any]:
    """Plot every coordinate against each one before it.

    If a coordinate is a function of another, their panel shows a curve; independent coordinates
    fill it. Functions of several coordinates are not visible in pairs; `plot_redundancy` detects
    them.

    Parameters
    ----------
    embedding : array-like of shape (n_samples, 2 to 10), or fitted estimator
        The embedding, or an object with `embedding_`.
    axes : array of matplotlib Axes, default=None
        Axes to draw on, at least one per pair; None makes a new figure, a triangle of panels.
    panel : float, default=1.6
        Width and height of a panel in inches.
    title : str, default=None
        Title of a new figure.

    Returns
    -------
    ndarray of matplotlib Axes of shape (n_pairs,)
        The axes drawn on: coordinates 2 against 1, 3 against 1, 3 against 2, and so on.

    See Also
    --------
    plot_redundancy : one number for each coordinate.
    manifoldry.NonRedundant : coordinates that do not repeat each other.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_strip
    >>> from manifoldry.plotting import plot_dependence
    >>> X = make_strip(300, aspect=3.5, random_state=0).X
    >>> axes = plot_dependence(LaplacianEigenmaps(3).fit(X))
    >>> [(ax.get_ylabel(), ax.get_xlabel()) for ax in axes]
    [('coordinate 2', ''), ('coordinate 3', 'coordinate 1'), ('', 'coordinate 2')]
    """
    Y = _coordinates_of(embedding)
    _check_count(Y.shape[1])
    pairs = [(j, i) for i in range(1, Y.shape[1]) for j in range(i)]
    points = [read_points(Y, pair) for pair in pairs]  # validated before a figure is created
    panels = _triangle(pairs, panel, title) if axes is None else _given(axes, len(pairs))
    for ax, (j, i), each in zip(panels, pairs, points, strict=True):
        _draw_pair(ax, each)
        inside = axes is None  # in a triangle, panels of a row or column share a label
        below = inside and i < Y.shape[1] - 1
        xlabel = "" if below else f"coordinate {j + 1}"
        label_axes(ax, xlabel, "" if inside and j > 0 else f"coordinate {i + 1}")
    return panels


def _coordinates_of(embedding: Any) -> Array:
    """Return all columns of an embedding, validated as for any plot."""
    return np.hstack([read_points(embedding, (j,)) for j in range(n_columns(embedding))])


def _draw_errors(ax: Any, errors: Array, threshold: float) -> None:
    index = np.arange(1, len(errors) + 1)
    colors = np.where(errors < threshold, tones(ax).line, PALETTE[0])
    ax.bar(index, errors, width=0.7, color=colors, zorder=2)
    ax.axhline(1, color=tones(ax).text, linewidth=0.8, linestyle="--", zorder=3)
    ax.axhspan(0, threshold, color=tones(ax).faint, alpha=0.5, linewidth=0, zorder=0)
    for height, words in ((1, "unpredictable"), (threshold, "redundant")):
        ax.annotate(
            words,
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top" if height < 1 else "center",
            fontsize=9,
            color=tones(ax).text,
        )


def _style_axes(ax: Any, errors: Array) -> None:
    from matplotlib.ticker import MaxNLocator

    style_frame(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    ax.set_xlim(0.3, len(errors) + 0.7)
    ax.set_ylim(0, 1.1)
    label_axes(ax, "coordinate", "error of prediction")


def _triangle(pairs: list[tuple[int, int]], panel: float, title: str | None) -> NDArray[Any]:
    """Return new axes, one row per coordinate and one column per coordinate before it."""
    side = pairs[-1][1]
    figure = new_figure(panel * side + 0.4, panel * side + 0.4)
    panels = np.empty(len(pairs), dtype=object)
    for number, (j, i) in enumerate(pairs):
        panels[number] = figure.add_subplot(side, side, (i - 1) * side + j + 1)
    if title:
        figure.suptitle(title, x=0.02, ha="left", fontsize=11, color=tones(panels[0]).text)
    return panels


def _given(axes: Any, n_pairs: int) -> NDArray[Any]:
    given = np.ravel(np.asarray(axes, dtype=object))
    if len(given) < n_pairs:
        raise ValueError(f"axes has {len(given)} axes for {n_pairs} pairs; pass one for each")
    for ax in given[:n_pairs]:
        axes_or_new(ax, size=(1, 1))
    return given[:n_pairs]


def _check_count(columns: int, most: int = 10) -> None:
    """Raise an error for one column, or too many for a readable figure."""
    if not 2 <= columns <= most:
        raise ValueError(
            f"embedding has {columns} columns, but must have 2 to {most}; pass "
            + ("more" if columns < 2 else f"embedding[:, :{most}]")
        )


def _draw_pair(ax: Any, points: Array) -> None:
    n = len(points)
    ax.scatter(
        *points.T,
        s=marker_area(ax, n),
        alpha=opacity(n),
        color=PALETTE[0],
        linewidths=0,
        rasterized=should_rasterize(n),
    )
    frame_without_ticks(ax)  # units are arbitrary, so the axes need no equal scale
