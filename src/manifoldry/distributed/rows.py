"""The rows of a Dask collection, block by block, checked where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manifoldry.distributed.collections import as_collection, from_parts
from manifoldry.distributed.failures import block_keys, counting_keys
from manifoldry.distributed.scheduler import broadcast, compute, delayed
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a Dask collection: one block for each chunk, with known numbers of rows.

    Nothing is read before tasks are computed. Blocks are arrays of floats; a block with other
    values, or of another shape than declared, raises an error that names it.

    Parameters
    ----------
    array : dask.array.Array of shape (n_samples, n_features)
        The data, with all columns in each chunk.
    names : array of str, optional
        Names of the columns.
    what : str, default="X"
        What errors call the data.

    See Also
    --------
    using_options : how estimators fit them.

    Examples
    --------
    >>> import dask.array as da
    >>> from manifoldry.distributed import Rows
    >>> rows = Rows.read(da.ones((1000, 3), chunks=(300, 2)))
    >>> rows.counts, rows.n_features
    (array([300, 300, 300, 100]), 3)
    """

    array: Any
    names: Array | None = None
    what: str = "X"

    @classmethod
    def read(cls, X: Any, what: str = "X") -> Rows:
        """Return the rows of a Dask array or data frame, or of a Zarr or Parquet store.

        Numbers of rows that Dask does not know are counted.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame or path
            The data.
        what : str, default="X"
            What errors call the data.

        Returns
        -------
        Rows
            Its rows.
        """
        array, names = as_collection(X)
        if np.isnan(array.shape[0]):
            array = _with_known_sizes(array, what)
        return cls(array, names, what)

    @property
    def counts(self) -> IntArray:
        """Number of rows of each block."""
        return np.array(self.array.chunks[0], dtype=np.intp)

    @property
    def starts(self) -> IntArray:
        """The first row of each block."""
        return np.cumsum(self.counts) - self.counts

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.array.shape[1])

    @property
    def dtype(self) -> Any:
        """Data type of results: float32 for float32 data, else float64."""
        return np.float32 if self.array.dtype == np.float32 else np.float64

    def check_not_fewer(self, least: int, context: str = "") -> None:
        """Raise ValueError, with scikit-learn's words, if there are fewer rows.

        Parameters
        ----------
        least : int
            The number of rows that are needed.
        context : str, default=""
            What needs them, such as ``" by PCA"``.
        """
        if self.n_samples < least:
            raise ValueError(
                f"Found array with {self.n_samples} sample(s) (shape={self.array.shape}) while a "
                f"minimum of {least} is required{context}."
            )

    @property
    def blocks(self) -> list[Any]:
        """Delayed blocks, which are checked when they are read."""
        checked = delayed(checked_block)
        raw = self.array.to_delayed().ravel()
        keys = block_keys(self.starts, self.counts, self.what)
        numbered = zip(raw, self.starts, self.counts, keys, strict=True)
        return [
            checked(
                block,
                i,
                int(start),
                (int(count), self.n_features),
                self.what,
                dask_key_name=key,
            )
            for i, (block, start, count, key) in enumerate(numbered)
        ]

    def tasks(self, function: Callable[..., Any], *shared: Any, **options: Any) -> list[Any]:
        """Return delayed calls of a function with each block.

        Parameters
        ----------
        function : callable
            Called with a block and `shared`.
        *shared : Any
            Other arguments, the same for all blocks.
        **options : Any
            Arguments by name.

        Returns
        -------
        list of Delayed
            One for each block.
        """
        call = delayed(partial(function, **options))
        return [call(block, *shared) for block in self.blocks]

    def sample(self, size: int, rng: np.random.Generator) -> tuple[IntArray, list[Any]]:
        """Draw rows at random, without replacement; it does not depend on chunks.

        Parameters
        ----------
        size : int
            Number of rows; all rows if there are not more.
        rng : numpy.random.Generator
            Source of random numbers.

        Returns
        -------
        rows : array of int of shape (size,)
            The rows, in their order.
        pieces : list of Delayed
            Those of each block. Each block is read and checked.
        """
        size = min(size, self.n_samples)
        drawn = np.sort(rng.choice(self.n_samples, size, replace=False, shuffle=False))
        return drawn, self.taken(drawn)

    def taken(self, rows: IntArray) -> list[Any]:
        """Return some rows of each block; each block is read and checked.

        Parameters
        ----------
        rows : array of int
            The rows, ascending.

        Returns
        -------
        list of Delayed
            Those of each block.
        """
        take = delayed(_taken)
        first = np.searchsorted(rows, self.starts)
        end = np.searchsorted(rows, self.starts + self.counts)
        return [
            take(block, rows[a:b] - start)
            for block, a, b, start in zip(self.blocks, first, end, self.starts, strict=True)
        ]

    def mapped(
        self, function: Callable[..., Array], shared: Any, columns: int | None, dtype: Any = None
    ) -> Any:
        """Return the Dask array of what a function makes of each block.

        Parameters
        ----------
        function : callable
            Called with a block and `shared`; returns as many rows.
        shared : Any
            Its second argument, which is sent to each worker once.
        columns : int or None
            Number of columns of the result; None for one dimension.
        dtype : dtype, optional
            That of the result; by default that of these rows.

        Returns
        -------
        dask.array.Array
            The result, lazily.
        """
        call = delayed(function)
        shared = broadcast(shared, lazily=True)
        parts = [call(block, shared) for block in self.blocks]
        return from_parts(parts, self.counts, columns, self.dtype if dtype is None else dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.blocks)


def checked_block(
    block: Any, number: int, start: int, shape: tuple[int, int], name: str = "X"
) -> Array:
    """Return a block as finite floats, or raise an error that names the chunk and the row."""
    block = dense_block(block)
    if block.shape != shape:
        raise ValueError(
            f"chunk {number} of {name} has shape {block.shape}, but the array declares {shape}; "
            "write or declare it again"
        )
    values = np.ascontiguousarray(block, dtype=np.float32 if block.dtype == np.float32 else float)
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(values[row, column]) else "infinity"
        raise ValueError(
            f"{name} contains {what} in chunk {number} (row {start + row}, column {column}); drop "
            "or impute such rows first"
        )
    return values


def dense_block(block: Any) -> Array:
    """Return a block as an array; sparse ones are made dense, one at a time."""
    if hasattr(block, "toarray"):  # of scipy
        return np.asarray(block.toarray())
    return np.asarray(block.todense() if hasattr(block, "todense") else block)  # of pydata


def _taken(block: Array, rows: IntArray) -> Array:
    return block[rows]


def _with_known_sizes(array: Any, what: str) -> Any:
    """The array, with chunks whose numbers of rows were counted."""
    blocks, count = array.to_delayed().ravel(), delayed(_count)
    keys = counting_keys(len(blocks), what)
    tasks = [count(block, dask_key_name=key) for block, key in zip(blocks, keys, strict=True)]
    counts = compute(tasks, "counting rows")
    return from_parts(blocks, np.array(counts), array.shape[1], array.dtype)


def _count(block: Any) -> int:
    return int(block.shape[0])
