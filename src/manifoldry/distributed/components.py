"""Connected components of a graph whose edges are on workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.distributed.blocks import row_numbers
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.util.typing import Array, IntArray, Matrix

# Sizes of so many components are told to the client.
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class DistributedComponents:
    """The connected components of a graph in parts.

    Each part finds its pieces: the components of its rows without the edges to other parts. Then
    pieces are joined along edges between parts. One worker has a few numbers for each piece, of
    which there are few if the parts hold nearby rows; the client has none.

    Parameters
    ----------
    count : int
        Number of components.
    sizes : list of int
        Numbers of rows of the largest components, at most six.
    inside : list of Delayed
        For each part, which of its rows are in the largest component, (rows of a part,).

    See Also
    --------
    manifoldry.neighbors.DisconnectedPolicy : what is done about several components.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry.distributed.components import DistributedComponents
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> A = sparse.csr_array(np.diag([1.0, 0, 1, 1], k=1))  # 0 and 1 are joined, and 2, 3 and 4
    >>> bounds = np.array([0, 3, 5])
    >>> matrix = DistributedMatrix.of([dask.delayed(A[:3]), dask.delayed(A[3:])], bounds)
    >>> found = DistributedComponents.of(matrix)
    >>> found.count, found.sizes, [part.tolist() for part in dask.compute(*found.inside)]
    (2, [3, 2], [[False, False, True], [True, True]])
    """

    count: int
    sizes: list[int]
    inside: list[Any]

    @classmethod
    def of(cls, matrix: DistributedMatrix) -> DistributedComponents:
        """Return the components of the graph that has an edge for each stored entry.

        Parameters
        ----------
        matrix : DistributedMatrix
            The edges, in one direction or both.

        Returns
        -------
        DistributedComponents
            The components.
        """
        pieces = persist(delayed(_pieces)(block) for block in matrix.blocks)
        counts = compute([delayed(_count)(each) for each in pieces], "connected components")
        starts = np.cumsum([0, *counts])
        numbers = persist(
            delayed(np.add)(each, start) for each, start in zip(pieces, starts[:-1], strict=True)
        )
        ends = zip(matrix.blocks, matrix.exchange.gathered(numbers), strict=True)
        links = combined([delayed(_links)(block, each) for block, each in ends], _forest)
        sizes = combined([delayed(np.bincount)(each) for each in pieces], _concatenated)
        [joined] = persist([delayed(_joined)(links, sizes)])
        [(count, largest)] = compute([delayed(_summary)(joined)], "connected components")
        inside = persist(delayed(_inside)(each, joined) for each in numbers)
        return cls(count, largest, inside)


class _Joined(NamedTuple):
    component: IntArray  # of each piece
    sizes: IntArray  # of each component


def _pieces(block: Matrix) -> IntArray:
    """Component of each row of a part without its edges to other parts."""
    n = block.shape[0]
    if n == 0:
        return np.empty(0, dtype=np.intp)
    return np.asarray(connected_components(block[:, :n], directed=False)[1], dtype=np.intp)


def _count(labels: IntArray) -> int:
    return int(labels.max(initial=-1)) + 1


def _links(block: Matrix, numbers: IntArray) -> IntArray:
    """Pieces of the part, and those of other parts to which edges lead."""
    outside = block.indices >= block.shape[0]
    rows = row_numbers(block)
    return _unique(np.stack([numbers[rows[outside]], numbers[block.indices[outside]]], axis=1))


def _forest(links: list[IntArray]) -> IntArray:
    """As few links as connect the same pieces: one from each piece to the first of its group."""
    pieces, ends = np.unique(np.concatenate(links), return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = sparse.coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(len(pieces),) * 2)
    if len(pieces) == 0:
        return np.empty((0, 2), dtype=np.intp)
    labels = connected_components(graph, directed=False)[1]
    first = pieces[np.unique(labels, return_index=True)[1]][labels]
    return np.stack([first, pieces], axis=1)[first != pieces]


def _joined(links: IntArray, sizes: IntArray) -> _Joined:
    shape = (len(sizes), len(sizes))
    graph = sparse.coo_array((np.ones(len(links)), tuple(links.T)), shape=shape)
    component = connected_components(graph, directed=False)[1]
    return _Joined(component, np.bincount(component, weights=sizes).astype(np.intp))


def _summary(joined: _Joined) -> tuple[int, list[int]]:
    return len(joined.sizes), [int(size) for size in np.sort(joined.sizes)[::-1][:_SHOWN]]


def _inside(numbers: IntArray, joined: _Joined) -> Array:
    return np.asarray(joined.component[numbers] == joined.sizes.argmax())


def _unique(links: IntArray) -> IntArray:
    return np.unique(links, axis=0) if len(links) else links


def _concatenated(arrays: list[IntArray]) -> IntArray:
    return np.concatenate(arrays)
