"""Plots of the eigenvalues of a spectral method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.plotting._data import read_eigenvalues
from manifoldry.plotting._style import (
    PALETTE,
    axes_or_new,
    label_axes,
    set_title,
    style_frame,
    tones,
)
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_spectrum(
    eigenvalues: Any,
    n_components: int | None = None,
    *,
    ax: Axes | None = None,
    log: bool = False,
    title: str | None = None,
) -> Axes:
    """Plot eigenvalues in the given order and mark the gap after those that are kept.

    A wide gap means that the kept coordinates are well determined; with a narrow one, another
    sample could mix them with the next. With ``log=True`` the gap is a ratio.

    Parameters
    ----------
    eigenvalues : array-like of shape (n_values,) or fitted estimator
        The eigenvalues, leading first, or an object with `eigenvalues_`.
    n_components : int, default=None
        Number of eigenvalues kept. None uses the number of columns of an estimator's
        `embedding_`, or, for plain values, the widest gap.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    log : bool, default=False
        Whether the axis of values is logarithmic, for spectra that decay over decades.
    title : str, default=None
        Title of the axes.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_redundancy : whether coordinates repeat each other.
    manifoldry.estimate_dimension : the dimension of the data.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry.plotting import plot_spectrum
    >>> ax = plot_spectrum([5.0, 4.2, 0.6, 0.5, 0.3])
    >>> [text.get_text() for text in ax.texts]
    ['gap 3.6']
    """
    values = read_eigenvalues(eigenvalues)
    if log and values.min() <= 0:
        raise ValueError(
            f"log=True needs positive eigenvalues, but the smallest is {values.min():.3g}; "
            "pass log=False, or omit the nonpositive ones"
        )
    kept = _resolve_kept(eigenvalues, values, n_components, log)
    ax = axes_or_new(ax, size=(5.4, 3.4))
    if log:
        ax.set_yscale("log")
    _draw_values(ax, values, kept)
    if kept < len(values):
        _mark_gap(ax, values, kept, log)
    _style_axes(ax, len(values))
    set_title(ax, title)
    return ax


def _resolve_kept(source: Any, values: Array, n_components: int | None, log: bool) -> int:
    if n_components is None and hasattr(source, "embedding_"):
        n_components = min(np.asarray(source.embedding_).shape[1], len(values))
    if n_components is None:
        return int(np.argmax(_gaps(values, log))) + 1 if len(values) > 1 else 1
    if not 1 <= n_components <= len(values):
        raise ValueError(
            f"n_components={n_components} must be in 1..{len(values)}, the number of eigenvalues"
        )
    return int(n_components)


def _gaps(values: Array, log: bool) -> Array:
    return np.abs(np.diff(np.log10(values) if log else values))


def _draw_values(ax: Any, values: Array, kept: int) -> None:
    index = np.arange(1, len(values) + 1)
    # On a logarithmic axis stems cannot start at zero.
    floor = 0.0 if ax.get_yscale() == "linear" else values.min() / 2
    colors = np.where(index <= kept, PALETTE[0], tones(ax).line)
    size = float(np.clip(900 / len(values), 8, 42))
    ax.vlines(index, floor, values, colors=colors, linewidth=1.6 if len(values) <= 40 else 0.8)
    ax.scatter(index, values, s=size, c=colors, linewidths=0, zorder=3)
    if floor == 0:
        ax.axhline(0, color=tones(ax).faint, linewidth=0.8, zorder=0)


def _mark_gap(ax: Any, values: Array, kept: int, log: bool) -> None:
    low, high = sorted(values[kept - 1 : kept + 1])
    label = f"gap ×{high / low:.3g}" if log else f"gap {high - low:.3g}"
    ax.axhspan(low, high, color=PALETTE[0], alpha=0.12, linewidth=0, zorder=0)
    # At the end of the band that the stems do not reach.
    at_end = values[kept - 1] >= values[kept]
    ax.annotate(
        label,
        (0.99 if at_end else 0.01, high),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right" if at_end else "left",
        va="bottom",
        fontsize=9,
        color=tones(ax).text,
    )


def _style_axes(ax: Any, n: int) -> None:
    from matplotlib.ticker import MaxNLocator

    style_frame(ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    ax.set_xlim(0.3, n + 0.7)
    label_axes(ax, "index", "eigenvalue")
