"""Facts about the data: what is missing, repeated, constant, on another scale, far from the rest.

Facts are numbers and names; what follows from them is said in `advice.py`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.dimension.consensus import Consensus, half_fraction, known_column_fractions
from manifoldry.io import DataFileError, Table
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.typing import Array, IntArray

_BLOCK = 65_536  # rows that are examined at a time


@dataclass(frozen=True)
class MissingValues:
    """Cells without a value, in all rows.

    `columns` has the number for each column with any, most first; `rows` are the first such rows.
    """

    n_cells: int
    n_rows: int
    columns: tuple[tuple[str, int], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class LabelFacts:
    """A column of labels: how many different values, the most frequent and the rarest."""

    name: str
    n_values: int
    n_missing: int
    most_frequent: tuple[tuple[str, int], ...]
    rarest: tuple[str, int]


@dataclass(frozen=True)
class DataFacts:
    """What is in the data.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the data.
    n_examined : int
        Rows of the sample to which everything but `missing` refers.
    missing : MissingValues
        Cells without a value.
    n_duplicates : int
        Rows that are equal to an earlier row.
    duplicates : tuple of (int, int)
        The first such rows, each with the row that it repeats.
    constant : tuple of str
        Columns with a single value.
    dominant : (str, float) or None
        The column with the largest part of the variance, and that part.
    deviations : (float, float) or None
        Smallest and largest standard deviation of the columns that vary.
    half_fraction : float
        Part of the variance in the half of the columns that vary least.
    labels : tuple of LabelFacts
        The columns of labels.
    """

    n_rows: int
    n_columns: int
    n_examined: int
    missing: MissingValues
    n_duplicates: int
    duplicates: tuple[tuple[int, int], ...]
    constant: tuple[str, ...]
    dominant: tuple[str, float] | None
    deviations: tuple[float, float] | None
    half_fraction: float
    labels: tuple[LabelFacts, ...]

    @property
    def has_dominant_column(self) -> bool:
        """Whether one column has nearly all the variance."""
        part = 0.0 if self.dominant is None else self.dominant[1]
        return self.n_columns > 2 and part > Consensus.max_column_fraction

    @property
    def has_uneven_scales(self) -> bool:
        """Whether half of the columns hardly vary compared with the others."""
        return self.half_fraction < Consensus.min_half_fraction

    @classmethod
    def of(cls, table: Table, rows: IntArray, raw: Array) -> DataFacts:
        """Facts about a table; `raw` are its values in the sample of `rows`."""
        names = column_names(table)
        missing = count_missing(table, names)  # first: columns without a value are an error
        first = _first_equal(raw)
        repeats = np.flatnonzero(first != np.arange(len(raw)))
        deviation = _deviations(raw)
        varies = deviation > 0
        fractions = known_column_fractions(raw)
        top = int(fractions.argmax())
        return cls(
            table.n,
            len(names),
            len(rows),
            missing,
            len(repeats),
            tuple((int(rows[i]), int(rows[first[i]])) for i in repeats[:10]),
            tuple(names[j] for j in np.flatnonzero(~varies)),
            (names[top], float(fractions[top])) if varies.sum() > 1 else None,
            (float(deviation[varies].min()), float(deviation.max())) if varies.any() else None,
            half_fraction(fractions),
            tuple(_label_facts(name, values[rows]) for name, values in table.labels.items()),
        )


@dataclass(frozen=True)
class GraphFacts:
    """The graph of the nearest neighbors, and rows that are far from all others.

    Parameters
    ----------
    n_neighbors : int
        Neighbors of each row.
    sizes : tuple of int
        Sizes of the connected components, largest first.
    separate : tuple of int
        Rows of the smallest components, at most a hundredth of all rows each.
    outlying : tuple of (int, float)
        Rows that are far from their neighbors, with their mean distance to them in units of the
        median over all rows, farthest first.
    hub : (int, int)
        The row that is a neighbor of most others, and of how many.
    n_unpopular : int
        Rows that are nobody's neighbor.
    """

    n_neighbors: int
    sizes: tuple[int, ...]
    separate: tuple[int, ...]
    outlying: tuple[tuple[int, float], ...]
    hub: tuple[int, int]
    n_unpopular: int

    @classmethod
    def of(cls, graph: NeighborGraph, rows: IntArray) -> GraphFacts:
        """Facts about the graph of the sample `rows`."""
        n_parts, part = graph.components()
        sizes = np.bincount(part, minlength=n_parts)
        small = np.flatnonzero((sizes <= max(1, len(rows) // 100)) & (n_parts > 1))
        popularity = np.bincount(graph.indices, minlength=len(rows))
        ratio = _relative_spacing(graph)
        far = np.flatnonzero(_are_outlying(ratio))
        far = far[np.argsort(-ratio[far], kind="stable")]
        hub = int(popularity.argmax())
        return cls(
            graph.k,
            tuple(int(s) for s in np.sort(sizes)[::-1]),
            tuple(int(rows[i]) for i in np.flatnonzero(np.isin(part, small))),
            tuple((int(rows[i]), float(ratio[i])) for i in far),
            (int(rows[hub]), int(popularity[hub])),
            int((popularity == 0).sum()),
        )


def column_names(table: Table) -> list[str]:
    """Names of the features; numbers counted from one if they have none."""
    if table.names is not None:
        return [str(name) for name in table.names]
    return [f"column {j + 1}" for j in range(table.X.shape[1])]


def count_missing(table: Table, names: list[str]) -> MissingValues:
    """Missing values of all rows, a block at a time; a column without any value is an error."""
    per_column, rows = _missing_cells(table.X)
    empty = [names[j] for j in np.flatnonzero(per_column == table.n)]
    if empty:
        raise DataFileError(
            f"column {empty[0]!r} has no value in any row; leave it out with --drop, or delete it"
        )
    worst = np.argsort(-per_column, kind="stable")[: np.count_nonzero(per_column)]
    return MissingValues(
        int(per_column.sum()),
        len(rows),
        tuple((names[j], int(per_column[j])) for j in worst),
        tuple(int(i) for i in rows[:10]),
    )


def _missing_cells(X: Any) -> tuple[IntArray, IntArray]:
    """Number of missing values of each column, and the rows that have any."""
    if sparse.issparse(X):  # values that are not stored are zeros
        stored = X.tocsr()
        places = np.flatnonzero(np.isnan(stored.data))
        rows = np.unique(np.searchsorted(stored.indptr, places, side="right") - 1)
        return np.bincount(stored.indices[places], minlength=X.shape[1]), rows
    per_column, incomplete = np.zeros(X.shape[1], dtype=np.intp), []
    for start in range(0, len(X), _BLOCK):
        absent = np.isnan(X[start : start + _BLOCK])
        per_column += absent.sum(axis=0)
        incomplete.append(start + np.flatnonzero(absent.any(axis=1)))
    return per_column, np.concatenate(incomplete)


def _first_equal(raw: Array) -> IntArray:
    """The first row equal to each row; missing values are equal to each other."""
    lines = np.ascontiguousarray(raw + 0.0)  # no negative zeros
    lines[np.isnan(lines)] = np.nan  # of one kind
    keys = lines.view(np.dtype((np.void, lines.dtype.itemsize * lines.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.ravel()])


def _deviations(raw: Array) -> Array:
    """Standard deviation of each column without missing values; 0 if it is constant."""
    # A column may be empty in a sample.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        low, high = np.nanmin(raw, axis=0), np.nanmax(raw, axis=0)
        return np.where(low < high, np.nanstd(raw, axis=0), 0.0)


def _label_facts(name: str, values: Any, most: int = 5) -> LabelFacts:
    missing = missing_entries(values)
    counts = Counter(_text(value) for value in values[~missing].tolist())
    ordered = counts.most_common()
    rarest = ordered[-1] if ordered else ("", 0)
    return LabelFacts(name, len(counts), int(missing.sum()), tuple(ordered[:most]), rarest)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _relative_spacing(graph: NeighborGraph) -> Array:
    """Mean distance of each row to its neighbors, in units of the median."""
    spacing = graph.distances.reshape(-1, graph.k).mean(axis=1)
    positive = spacing[spacing > 0]
    return spacing / (np.median(positive) if len(positive) else 1.0)


def _are_outlying(ratio: Array, least: float = 3.0, fences: float = 3.0) -> Any:
    """Which spacings are beyond Tukey's outer fence, and several times the median."""
    low, high = np.quantile(ratio, [0.25, 0.75])
    return (ratio > high + fences * (high - low)) & (ratio > least)
