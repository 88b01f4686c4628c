"""Disjoint random samples of distributed rows, whose differences give intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import delayed
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class DisjointSamples:
    """Random rows in groups of one size, no row in two of them.

    Parameters
    ----------
    n_samples : int
        Number of all rows.
    groups : list of arrays of shape (size,)
        The rows of each group.

    See Also
    --------
    manifoldry.assess : estimates metrics from samples.

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> import numpy as np
    >>> from manifoldry.distributed import Rows
    >>> from manifoldry.distributed.samples import DisjointSamples
    >>> rows = Rows.read(da.arange(1000, chunks=300)[:, None])
    >>> samples = DisjointSamples.draw(rows.n_samples, 50, np.random.default_rng(0))
    >>> values = dask.compute(*samples.of(rows))
    >>> len(values), bool((values[2][:, 0] == samples.groups[2]).all())
    (5, True)
    """

    n_samples: int
    groups: list[IntArray]

    @classmethod
    def draw(
        cls, n_samples: int, size: int, rng: np.random.Generator, most: int = 5
    ) -> DisjointSamples:
        """Draw samples of the size that was asked for, fewer if there are not enough rows.

        Up to twice that size, all rows are one sample. Intervals from fewer samples are wider, but
        smaller samples would have wider neighborhoods.

        Parameters
        ----------
        n_samples : int
            Number of all rows.
        size : int
            Number of rows of a sample.
        rng : numpy.random.Generator
            Source of random numbers.
        most : int, default=5
            Largest number of samples; as many as there are rows for, at least two.

        Returns
        -------
        DisjointSamples
            The samples.
        """
        if n_samples <= 2 * size:
            return cls(n_samples, [np.arange(n_samples)])
        count = min(most, n_samples // size)
        drawn = rng.choice(n_samples, count * size, replace=False)
        return cls(n_samples, list(drawn.reshape(count, size)))

    @property
    def size(self) -> int:
        """Number of rows of a sample."""
        return len(self.groups[0])

    @property
    def is_whole(self) -> bool:
        """Whether all rows are in one sample."""
        return self.size == self.n_samples

    def of(self, rows: Rows) -> list[Any]:
        """Return the values of the rows of each sample.

        Parameters
        ----------
        rows : Rows
            Values of all rows.

        Returns
        -------
        list of Delayed
            Arrays of shape (size, n_features). Each block is read once.
        """
        take, drawn = delayed(_taken), np.concatenate(self.groups)
        order = np.argsort(drawn)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        together = delayed(_joined)(rows.taken(drawn[order]))
        return [take(together, each) for each in places.reshape(len(self.groups), -1)]


def _joined(pieces: list[Array]) -> Array:
    return np.concatenate(pieces)


def _taken(values: Array, rows: IntArray) -> Array:
    return values[rows]
