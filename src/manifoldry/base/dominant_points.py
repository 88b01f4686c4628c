"""Coordinates whose variance comes mostly from one point, a handful, or a small group of points."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from manifoldry.exceptions import DominatedCoordinateWarning, ignoring, warn
from manifoldry.util.typing import Array, IntArray

_NAMED = 5  # rows that a message names


class DominatedCoordinate(NamedTuple):
    """A coordinate of which a few points hold most of the variance."""

    coordinate: int
    """Counted from 0."""
    points: IntArray
    """Rows of the embedding, those with the largest fraction of the variance first."""
    fraction: float
    """Fraction of the variance that these points hold."""

    def __str__(self) -> str:
        rows, hold = ("row", "holds") if len(self.points) == 1 else ("rows", "hold")
        numbers = ", ".join(map(str, self.points[:_NAMED]))
        if len(self.points) > _NAMED:
            numbers += f" and {len(self.points) - _NAMED} others"
        percent = min(99, round(100 * self.fraction)) if self.fraction < 1 else 100
        return (
            f"{rows} {numbers} {hold} {percent} % of the variance of coordinate {self.coordinate}"
        )


def dominated_coordinates(
    Y: Array,
    *,
    most: float = 0.5,
    handful: int = 5,
    largest_handful: float = 0.02,
    nearly_all: float = 0.9,
    largest_group: float = 0.01,
    min_points: int = 30,
) -> list[DominatedCoordinate]:
    """Return the coordinates of which a few points hold most of the variance.

    Such a coordinate separates these points from the rest and shows little else: they are
    outliers, or few edges connect them. The points are a handful that holds most of the variance,
    or a small group that holds nearly all of it. On maps of real data by fifteen methods, five
    points held less than half of the variance of a coordinate, except where an outlier or a nearly
    disconnected group had taken it over; then they held 0.55 to 1. One percent of the points held
    nearly all of it only where such a group had. True clusters are mostly larger: with 2 % in
    place of 1 %, a type of blood cells would be reported. See docs/studies/dominant_points.py.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The embedding; rows of NaN are points that were not embedded.
    most : float
        Fraction of the variance that counts as most of it.
    handful, largest_handful : int, float
        Largest number of points, and largest fraction of all points (one point at least), that
        may hold most of it.
    nearly_all : float
        Fraction of the variance that counts as nearly all of it: the standard deviation of all
        other points is then less than a third of that of the coordinate.
    largest_group : float
        Largest fraction of all points that may hold nearly all of it.
    min_points : int
        No coordinate of fewer points is reported, since one of few points naturally holds much.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.linspace(-1, 1, 100)[:, None]
    >>> dominated_coordinates(Y)
    []
    >>> Y[7] = 50
    >>> print(*dominated_coordinates(Y))
    row 7 holds 98 % of the variance of coordinate 0
    """
    rows = np.flatnonzero(np.isfinite(Y).all(axis=1))
    if len(rows) < min_points:
        return []
    limits = [
        (max(1, min(handful, int(largest_handful * len(rows)))), most),
        (max(1, int(largest_group * len(rows))), nearly_all),
    ]
    found = []
    for j, y in enumerate(np.asarray(Y[rows], dtype=np.float64).T):
        squares = _relative_squares(y)
        for count, least in limits:
            if _largest_sum(squares, count) <= least * squares.sum():
                continue
            points, fraction = _fewest(squares, count, least)
            if fraction > least:
                found.append(DominatedCoordinate(j, rows[points], fraction))
                break
    return found


def _relative_squares(y: Array) -> Array:
    """Squared offsets from the mean, relative to the largest one."""
    offsets = np.abs(y - y.mean())
    return np.square(offsets / (offsets.max() or 1.0))


def _largest_sum(values: Array, count: int) -> float:
    """Sum of the `count` largest values, which takes less time than to sort them."""
    return float(np.partition(values, len(values) - count)[-count:].sum())


def _fewest(squares: Array, count: int, least: float) -> tuple[IntArray, float]:
    """The fewest points, at most `count`, that hold more than `least`, and what they hold."""
    points = np.argsort(-squares, kind="stable")[:count]
    held = np.cumsum(squares[points]) / (squares.sum() or 1.0)
    needed = min(int(np.searchsorted(held, least, side="right")) + 1, count)
    return points[:needed], float(held[needed - 1])


def dominance_remedy(has_neighbors: bool) -> str:
    """What to do about dominated coordinates."""
    connect = ", or raise n_neighbors to connect them better" if has_neighbors else ""
    return (
        "look at these rows of the data; drop or correct them if they are errors, embed them "
        f"separately if they are a group of their own{connect}"
    )


def takes_n_neighbors(model: Any) -> bool:
    """Whether a model, or one inside it, has the parameter n_neighbors; False for an array."""
    parameters = model.get_params() if hasattr(model, "get_params") else ()
    return any(name.split("__")[-1] == "n_neighbors" for name in parameters)


@contextmanager
def unchecked_dominance() -> Iterator[None]:
    """Silence the warning of fits whose rows are not those that a caller has passed."""
    with ignoring(DominatedCoordinateWarning):
        yield


def warn_if_dominated(Y: Array, has_neighbors: bool, rows: IntArray | None = None) -> None:
    """Warn if a few points hold most of the variance of a coordinate of the embedding `Y`.

    `rows` are the numbers of its rows, if it is that of a sample.
    """
    found = dominated_coordinates(Y)
    if rows is not None:
        found = [each._replace(points=rows[each.points]) for each in found]
    if found:
        warn(
            f"{'; '.join(map(str, found))} (rows passed to fit, counted from 0). Such a coordinate "
            f"shows little else: {dominance_remedy(has_neighbors)}",
            DominatedCoordinateWarning,
        )
