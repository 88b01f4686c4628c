"""Plot curves of an objective or a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from manifoldry.plotting._data import read_curve
from manifoldry.plotting._style import (
    PALETTE,
    axes_or_new,
    label_axes,
    set_title,
    style_frame,
    tones,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("-", "--", ":", "-.")


def plot_learning_curve(
    curves: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    log: Literal["", "x", "y", "xy"] = "",
    xlabel: str = "iteration",
    ylabel: str = "objective",
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Plot curves with error bands, such as objectives by iteration or scores by sample size.

    Parameters
    ----------
    curves : mapping of str to array-like
        Name of each curve and its points: y alone (x is then 1, 2, …), or a tuple (x, y) or
        (x, y, error). The error has one number per point, or two rows for below and above, and is
        drawn as a band.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
    log : {"", "x", "y", "xy"}, default=""
        Which axes are logarithmic.
    xlabel, ylabel : str, default="iteration", "objective"
        Labels of the axes.
    title : str, default=None
        Title of the axes.
    legend : bool, default=True
        Whether to add a legend; a single curve never has one.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    See Also
    --------
    plot_trace : the objective of an iterative estimator.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from manifoldry.plotting import plot_learning_curve
    >>> steps = np.arange(1, 50)
    >>> curves = {"plain": (steps, 1 / steps, 0.1 / steps), "guided": (steps, 1 / steps**2)}
    >>> ax = plot_learning_curve(curves, log="xy")
    >>> ax.get_xscale()
    'log'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError(
            "curves must be a mapping of at least one name to a curve, such as {'loss': values}"
        )
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f"log={log!r} must be '', 'x', 'y' or 'xy'")
    parts = {str(name): read_curve(str(name), curve) for name, curve in curves.items()}
    ax = axes_or_new(ax, size=(5.4, 3.6))
    ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
    for i, (name, (x, y, error)) in enumerate(parts.items()):
        _draw_curve(ax, i, name, x, y, error)
    _style_axes(ax, xlabel, ylabel)
    set_title(ax, title)
    if legend and len(parts) > 1:
        ax.legend(
            frameon=False, fontsize=9, labelcolor=tones(ax).text, handlelength=1.6, labelspacing=0.3
        )
    return ax


def _draw_curve(ax: Any, i: int, name: str, x: Any, y: Any, error: Any) -> None:
    color, dash = PALETTE[i % len(PALETTE)], _DASHES[i // len(PALETTE) % len(_DASHES)]
    ax.plot(x, y, dash, color=color, linewidth=1.8, label=name, solid_capstyle="round")
    if error is not None:
        ax.fill_between(x, y - error[0], y + error[1], color=color, alpha=0.18, linewidth=0)


def _style_axes(ax: Any, xlabel: str, ylabel: str) -> None:
    style_frame(ax)
    ax.grid(axis="y", color=tones(ax).faint, linewidth=0.6)
    ax.set_axisbelow(True)
    label_axes(ax, xlabel, ylabel)
