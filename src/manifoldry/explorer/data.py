"""The data behind the maps: features and labels, and how a row is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.io import Table
from manifoldry.util.typing import Array, IntArray

_BLOCK = 16_384  # rows that are read at once
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
        if len(self.shape) not in (2, 3) or min(self.shape) < 1 or self.shape[2:] not in (
            (), (3,), (4,),
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


class Moments(NamedTuple):
    """Mean, standard deviation and range of every column; missing values are left out."""

    mean: Array
    deviation: Array
    low: Array
    high: Array


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

    def column(self, name: str) -> Array:
        """The values of a feature in single precision."""
        try:
            j = self._places[name]
        except KeyError:
            raise ValueError(f"the data have no feature {name!r}") from None
        X: Any = self.table.X
        values = X[:, [j]].toarray()[:, 0] if sparse.issparse(X) else X[:, j]
        return np.asarray(values, dtype=np.float32)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.feature_names)}

    def rows(self, chosen: Any) -> Array:
        """Some rows in single precision."""
        X: Any = self.table.X
        values = X[chosen]
        return np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float32)

    @cached_property
    def moments(self) -> Moments:
        """Of all rows, or of those that a model has restored."""
        count, total, squares = np.zeros((3, self.n_features))
        low, high = np.full(self.n_features, np.inf), np.full(self.n_features, -np.inf)
        shift = np.nan_to_num(next(iter(self._blocks())).mean(axis=0))
        for block in self._blocks():
            known = ~np.isnan(block)
            offsets = np.where(known, block - shift, 0.0).astype(np.float64)
            count += known.sum(axis=0)
            total += offsets.sum(axis=0)
            squares += (offsets**2).sum(axis=0)
            low = np.fmin(low, np.fmin.reduce(block, axis=0))
            high = np.fmax(high, np.fmax.reduce(block, axis=0))
        mean = total / np.maximum(count, 1)
        variance = np.maximum(squares / np.maximum(count, 1) - mean**2, 0.0)
        return Moments(mean + shift, np.sqrt(variance), low, high)

    def mean_of(self, chosen: IntArray) -> Array:
        """Mean of each column over some rows, without missing values."""
        total, count = np.zeros((2, self.n_features))
        for start in range(0, len(chosen), _BLOCK):
            block = self.rows(chosen[start : start + _BLOCK])
            known = ~np.isnan(block)
            total += np.where(known, block, 0.0).sum(axis=0, dtype=np.float64)
            count += known.sum(axis=0)
        return np.asarray(total / np.maximum(count, 1))

    def _blocks(self) -> Iterator[Array]:
        if self.restored is not None:
            yield np.asarray(self.restored, dtype=np.float32)
            return
        for start in range(0, self.n, _BLOCK):
            yield self.rows(slice(start, start + _BLOCK))

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
        return float(self.moments.low.min()), float(self.moments.high.max())

    def pixels(self, values: Array) -> Array:
        """Rows of an image as bytes."""
        low, high = self.pixel_range
        scaled = (values - low) * (255 / (high - low) if high > low else 1.0)
        return np.nan_to_num(scaled).clip(0, 255).round().astype(np.uint8)
