"""Plots of an optimization: embeddings along a homotopy, and the objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.plotting._data import read_path, read_trace
from manifoldry.plotting._style import (
    PALETTE,
    axes_or_new,
    label_axes,
    set_title,
    style_frame,
    tones,
)
from manifoldry.plotting.grid import plot_grid
from manifoldry.util.checks import check_count
from manifoldry.util.typing import IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_path(
    path: Any, color: Any = None, *, n_maps: int = 8, symbol: str = "λ", **options: Any
) -> NDArray[Any]:
    """Plot embeddings along a homotopy in a grid, from the first to the last.

    It shows how structure develops from coarse to fine. Titles contain the number of the step, the
    parameter of the homotopy and the rank, the number of directions in which the embedding has
    extent. Each panel has its own scale.

    Parameters
    ----------
    path : fitted estimator or Path
        An iterative estimator that followed a homotopy, or its `path_`.
    color : str or array-like of shape (n_samples,), default=None
        As for `plot_embedding`, shared by all panels.
    n_maps : int, default=8
        Number of embeddings to draw, evenly spaced along the path.
    symbol : str, default="λ"
        Symbol of the parameter in the titles.
    **options
        Further options of `plot_grid`.

    Returns
    -------
    ndarray of matplotlib Axes of shape (n_maps,)
        The axes drawn on, in the order of the path.

    See Also
    --------
    plot_trace : the objective along the path.
    manifoldry.optimize.Homotopy : the optimizer that follows a path.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import SNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.plotting import plot_path
    >>> X, truth = make_swiss_roll(80, random_state=0)
    >>> axes = plot_path(SNE(perplexity=8).fit(X), truth[:, 0], n_maps=4)
    >>> axes[-1].get_title(loc="left")
    'step 20: λ=1, rank 2'
    """
    homotopy_path = read_path(path)
    embeddings = {}
    for i in _spread(len(homotopy_path.embeddings), check_count("n_maps", n_maps)):
        number = homotopy_path.kept[i]
        step = homotopy_path.steps[number]
        title = f"step {number + 1}: {symbol}={_short(step.parameter)}, rank {step.rank}"
        embeddings[title] = homotopy_path.embeddings[i]
    return plot_grid(embeddings, color, **options)


def plot_trace(
    trace: Any, *, ax: Axes | None = None, log: bool = False, title: str | None = None
) -> Axes:
    """Plot the objective against the number of evaluations.

    It shows whether an optimization converged. Where the objective itself changes, at a new
    parameter of a homotopy or of t-SNE's exaggeration, the curve is interrupted by a
    line labeled with the new parameter.

    Parameters
    ----------
    trace : fitted estimator or structured array
        An iterative estimator, or its `trace_`.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    log : bool, default=False
        Whether the axis of values is logarithmic.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_path : the embeddings along a homotopy.
    plot_learning_curve : curves of any origin.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import TSNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.plotting import plot_trace
    >>> X = make_swiss_roll(80, random_state=0).X
    >>> ax = plot_trace(TSNE(max_iter=50, early_exaggeration=4).fit(X))
    >>> len(ax.lines)  # a curve for each of six exaggerations and one without, with lines between
    13
    """
    steps = read_trace(trace)
    if log and steps["value"].min() <= 0:
        raise ValueError(
            f"log=True needs positive values, but the smallest is {steps['value'].min():.3g}; "
            "pass log=False"
        )
    ax = axes_or_new(ax, size=(5.4, 3.6))
    ax.set_yscale("log" if log else "linear")
    segments = np.split(steps, _changes(steps["parameter"]))
    for segment in segments:
        ax.plot(segment["evaluations"], segment["value"], color=PALETTE[0], linewidth=1.8)
    ax.margins(y=0.12)  # space for the labels
    style_frame(ax)
    _mark(ax, segments)
    label_axes(ax, "evaluations", "objective")
    set_title(ax, title)
    return ax


def _spread(available: int, wanted: int) -> IntArray:
    """At most `wanted` evenly spaced indices, including the last."""
    return np.unique(np.linspace(available - 1, 0, min(wanted, available)).round().astype(int))


def _short(number: float) -> str:
    """Three digits, and an exponent only from a million."""
    return f"{float(f'{number:.3g}'):g}"


def _changes(parameter: Any) -> IntArray:
    """Indices at which the parameter changes; NaN, for no parameter, equals NaN."""
    before, after = parameter[:-1], parameter[1:]
    return np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after))) + 1


def _mark(ax: Any, segments: list[Any]) -> None:
    """Draw a line where each segment begins, labeled with its parameter if there is room."""
    for segment in segments[1:]:
        ax.axvline(segment["evaluations"][0], color=tones(ax).faint, linewidth=0.8, zorder=0)
    known = [each[0] for each in segments if not np.isnan(each["parameter"][0])]
    labels = [_short(each["parameter"]) for each in known]
    for i in _with_room(ax, [each["evaluations"] for each in known], labels):
        ax.annotate(
            labels[i],
            (known[i]["evaluations"], 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -9),
            textcoords="offset points",
            fontsize=8,
            color=tones(ax).text,
        )


def _with_room(ax: Any, positions: list[Any], labels: list[str]) -> list[int]:
    """Indices of labels that do not overlap, including the last."""
    inches_per_unit = ax.bbox.width / ax.figure.dpi / np.diff(ax.get_xlim())[0]
    kept, limit = [], np.inf
    for i in reversed(range(len(labels))):
        width = 0.08 + 0.075 * len(labels[i])  # of the letters, and a gap
        start = positions[i] * inches_per_unit
        if start + width <= limit:
            kept.append(i)
            limit = start
    return kept[::-1]
