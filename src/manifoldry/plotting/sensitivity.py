"""Plots of the sensitivity of an embedding to its training set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.plotting._style import PALETTE, tones
from manifoldry.plotting.curves import plot_learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from manifoldry.metrics import Sensitivity


def plot_sensitivity(
    sensitivity: Sensitivity | Mapping[str, Sensitivity],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Plot variability minus out-of-sample error by the fraction of points exchanged.

    Above the line at 0 the out-of-sample error is smaller than the effect of the exchange. Bands
    are 95 % confidence intervals; a dot marks where a curve crosses the line, with its interval.

    Parameters
    ----------
    sensitivity : Sensitivity, or mapping of str to Sensitivity
        Results of :func:`manifoldry.metrics.sensitivity`, one or several by name.
    ax : matplotlib Axes, default=None
        Axes to draw on; None makes a new figure.
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
    manifoldry.metrics.sensitivity : computes it.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.metrics import sensitivity
    >>> from manifoldry.plotting import plot_sensitivity
    >>> X = make_s_curve(100, random_state=0).X
    >>> ax = plot_sensitivity(sensitivity(PCA(2), X, n_splits=4, n_left_out=2))
    >>> ax.get_xlabel()
    'fraction of the points exchanged'
    """
    results = sensitivity if isinstance(sensitivity, Mapping) else {"": sensitivity}
    for name, result in results.items():
        if not hasattr(result, "crossing"):
            raise TypeError(
                f"sensitivity{f'[{name!r}]' if name else ''} is a {type(result).__name__}; pass "
                "the result of manifoldry.metrics.sensitivity"
            )
    ax = plot_learning_curve(
        {name: _curve(result) for name, result in results.items()},
        ax=ax,
        xlabel="fraction of the points exchanged",
        ylabel="variability − out-of-sample error",
        title=title,
        legend=legend,
    )
    ax.axhline(0, color=tones(ax).text, linewidth=0.8, zorder=1)
    for i, result in enumerate(results.values()):
        _mark(ax, result, PALETTE[i % len(PALETTE)])
    return ax


def _curve(result: Sensitivity) -> tuple[Any, Any, Any]:
    """The curve and its error, with the crossing as an additional point."""
    known, crossing = result.fractions, float(result.crossing)
    x = np.append(known, crossing) if known[0] < crossing < known[-1] else known
    x = np.unique(x)
    ends = np.array([[each - each.low, each.high - each] for each in result.difference])
    ends = np.where(np.isfinite(ends), ends, np.nan).T
    y = np.interp(x, known, np.array(result.difference, dtype=float))
    return x, y, np.array([np.interp(x, known, end) for end in ends])


def _mark(ax: Any, result: Sensitivity, color: str) -> None:
    crossing, most = result.crossing, float(result.fractions[-1])
    if not crossing <= most:
        return  # NaN, or beyond the last fraction
    ax.plot([crossing.low, min(crossing.high, most)], [0, 0], color=color, linewidth=4, alpha=0.4)
    ax.plot([float(crossing)], [0], "o", color=color, markersize=5, clip_on=False)
