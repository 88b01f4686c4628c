"""The data behind the maps: features and labels, and how a row is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer

from manifoldry.io import Table
from manifoldry.methods.fitted_steps import prepared
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray

_CELLS = 2**22  # values that are read at once
_MOST_IN_A_TABLE = 64  # columns without names, beyond which a row is shown as a curve


@dataclass(frozen=True)
class ImageStyle:
    """How rows of pixels are shown.

    Parameters
    ----------
    shape : tuple of int
        Height, width, and 3 or 4 for colors.
    dark_ink : bool
        Whether high values are dark, as ink on paper.
    """

    shape: tuple[int, ...]
    dark_ink: bool = False

    def check(self, n_features: int) -> None:
        """Refuse a shape that rows do not have."""
        whole = all(isinstance(each, int | np.integer) for each in self.shape)
        if not whole or len(self.shape) not in (2, 3) or min(self.shape) < 1 or (
            self.shape[2:] not in ((), (3,), (4,))
        ):  # fmt: skip
            raise ValueError(
                f"image_shape={self.shape} must be (height, width), or (height, width, 3) for "
                "colors"
            )
        if int(np.prod(self.shape)) != n_features:
            raise ValueError(
                f"image_shape={self.shape} has {int(np.prod(self.shape))} pixels, but the data "
                f"have {n_features} columns"
            )


class ColumnMoments(NamedTuple):
    """Mean, standard deviation and range of every column; missing values are left out."""

    mean: Array
    deviation: Array
    low: Array
    high: Array
    n_known: Array  # values that are not missing


@dataclass(eq=False)
class ExploredData:
    """A table, the data that methods get, and what is computed from both when it is needed.

    Parameters
    ----------
    table : Table
        Features as people know them, names and labels.
    prepared : array or sparse array of shape (n, d)
        The data after the steps before the method.
    steps : sequence of transformers
        These steps, fitted.
    image : ImageStyle, optional
        How rows are shown, if they are images.
    restored : array of shape (n_restored, n_features), optional
        What the inverse of a model gives for some rows, if the data themselves are not here.
    """

    table: Table
    prepared: Any
    steps: Sequence[Any] = ()
    image: ImageStyle | None = None
    restored: Any = None
    own_labels: dict[str, Any] = field(default_factory=dict)
    colorings: dict[str, Any] = field(default_factory=dict)  # of labels, as they were when computed

    def __post_init__(self) -> None:
        if self.image is not None:
            self.image.check(self.n_features)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n

    @property
    def n_features(self) -> int:
        """Number of columns, which a model may know without the data."""
        return int((self.table.X if self.has_data else self.restored).shape[1])

    @property
    def has_data(self) -> bool:
        """Whether the data are here, or only maps."""
        return self.restored is None

    @cached_property
    def feature_names(self) -> list[str]:
        """Names of the columns, or their numbers."""
        if self.table.names is not None:
            return list(self.table.names)
        return [f"column {j + 1}" for j in range(self.n_features)]

    @property
    def row_kind(self) -> str:
        """Whether a row is shown as an image, a curve or a table."""
        if self.image is not None:
            return "image"
        unnamed = self.table.names is None and not sparse.issparse(self.table.X)
        return "curve" if unnamed and self.n_features > _MOST_IN_A_TABLE else "table"

    @property
    def labels(self) -> dict[str, Any]:
        """Labels of the data, and those that were made here."""
        return {**self.table.labels, **self.own_labels}

    @property
    def filled(self) -> Any:
        """The features, with missing values filled in as for methods."""
        imputers = [step for step in self.steps if isinstance(step, SimpleImputer)]
        return prepared(imputers, self.table.X)

    def column(self, name: str) -> Array:
        """The values of a feature."""
        try:
            j = self._places[name]
        except KeyError:
            raise ValueError(f"the data have no feature {name!r}") from None
        X: Any = self.table.X
        values = X[:, [j]].toarray()[:, 0] if sparse.issparse(X) else X[:, j]
        return np.asarray(values, dtype=np.float64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.feature_names)}

    def rows(self, chosen: Any) -> Array:
        """Some rows in their precision: small numbers as single, large whole ones as double."""
        X: Any = self.table.X
        values = X[chosen]
        values = np.asarray(values.toarray() if sparse.issparse(values) else values)
        return np.asarray(values, dtype=np.result_type(values, np.float32))

    @cached_property
    def moments(self) -> ColumnMoments:
        """Of all rows, or of those that a model has restored."""
        if self.has_data and sparse.issparse(self.table.X):
            return _sparse_moments(self.table.X)
        low, high = np.full((2, self.n_features), np.nan)
        for block in self._blocks():
            low = np.fmin(low, np.fmin.reduce(block, axis=0))
            high = np.fmax(high, np.fmax.reduce(block, axis=0))
        # Offsets from a value of the column keep their digits, and vanish if all values are equal.
        shift, unit = np.nan_to_num(low), _unit(high - low)
        count, total, squares = np.zeros((3, self.n_features))
        for block in self._blocks():
            known, offsets = _offsets(block, shift)
            count += known.sum(axis=0)
            total += (offsets / unit).sum(axis=0)
            squares += ((offsets / unit) ** 2).sum(axis=0)
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean**2, 0.0)
        return ColumnMoments(mean * unit + shift, np.sqrt(variance) * unit, low, high, count)

    def sums_of(self, chosen: IntArray) -> tuple[Array, Array]:
        """Of each column over some rows: sum of the differences from its mean, number of values."""
        total, count = np.zeros((2, self.n_features))
        for start in range(0, len(chosen), self._block):
            block = self.rows(chosen[start : start + self._block])
            known, offsets = _offsets(block, self.moments.mean)
            total += offsets.sum(axis=0)
            count += known.sum(axis=0)
        return total, count

    def _blocks(self) -> Iterator[Array]:
        if self.restored is not None:
            yield np.asarray(self.restored)
            return
        for start in range(0, self.n, self._block):
            yield self.rows(slice(start, start + self._block))

    @property
    def _block(self) -> int:
        return max(1, _CELLS // max(1, self.n_features))

    def notable(self, values: Array, most: int = 12) -> IntArray:
        """Columns in which a row is least like the mean of the data, in standard deviations."""
        if self.n_features <= most:
            return np.arange(self.n_features, dtype=np.uint32)
        scale = np.where(self.moments.deviation > 0, self.moments.deviation, np.inf)
        unlike = np.nan_to_num(np.abs(values - self.moments.mean) / scale)
        return np.argsort(-unlike, kind="stable")[:most].astype(np.uint32)

    @cached_property
    def pixel_range(self) -> tuple[float, float]:
        """Lowest and highest pixel."""
        return float(np.nanmin(self.moments.low)), float(np.nanmax(self.moments.high))

    def pixels(self, values: Array) -> Array:
        """Rows of an image as bytes."""
        low, high = self.pixel_range
        scaled = (values - low) * (255 / (high - low) if high > low else 1.0)
        return np.nan_to_num(scaled).clip(0, 255).round().astype(np.uint8)


def _offsets(block: Array, shift: Array) -> tuple[Any, Array]:
    """Which values are known, and their differences from others, 0 where they are missing."""
    known = ~np.isnan(block)
    return known, np.where(known, block.astype(np.float64) - shift, 0.0)


def _sparse_moments(X: Any) -> ColumnMoments:
    """The same from the stored values, in time that does not depend on how many are 0."""
    X = sparse.csc_array(X)
    if not X.has_canonical_format:  # several values at one place, which are one together
        X = X.copy()
        X.sum_duplicates()
    n, per_column = X.shape[0], np.diff(X.indptr)
    columns = np.repeat(np.arange(X.shape[1]), per_column)
    missing = np.isnan(X.data)
    n_known = n - np.bincount(columns, missing, X.shape[1])
    values = np.where(missing, 0.0, X.data.astype(np.float64))
    low, high = np.where(per_column < n, 0.0, np.inf), np.where(per_column < n, 0.0, -np.inf)
    np.minimum.at(low, columns[~missing], values[~missing])
    np.maximum.at(high, columns[~missing], values[~missing])
    known = n_known > 0
    unit = _unit(np.where(known, np.maximum(np.abs(low), np.abs(high)), 1.0))
    values = values / unit[columns]
    mean = np.bincount(columns, values, X.shape[1]) / np.maximum(n_known, 1)
    offsets = np.where(missing, 0.0, values - mean[columns])
    squares = np.bincount(columns, offsets**2, X.shape[1]) + (n - per_column) * mean**2
    deviation = np.where(low == high, 0.0, np.sqrt(squares / np.maximum(n_known, 1)))
    low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    return ColumnMoments(mean * unit, deviation * unit, low, high, n_known)


def _unit(extent: Array) -> Array:
    """The extent of each column, or 1 if there is none."""
    return np.where(extent > 0, extent, 1.0)
