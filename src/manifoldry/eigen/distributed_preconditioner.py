"""Two-level preconditioner of a sparse matrix whose rows are on the workers of a cluster.

One level is the inverse of the block of each part's own rows (block Jacobi, additive Schwarz
without overlap), which its worker keeps as a sparse factor. It removes errors that vary within a
part. The other is a coarse problem for errors that extend over many parts: the rows of each part
are divided into groups, the known eigenvector is cut at their borders into one function per group,
these functions are smoothed (Vaněk, Mandel and Brezina 1996), and the matrix on their span is
factorized by one worker. It has some thousand unknowns, whatever the number of rows.

The coarse correction Zy comes first, and the blocks then see the residual R − AZy that is left.
Since AZ is kept, that needs no further exchange of rows: an application moves only numbers of the
coarse problem.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.distributed.blocks import row_numbers
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.eigen.distributed_basis import Block
from manifoldry.eigen.inverse import (
    NEARLY_DENSE,
    ShiftedInverse,
    estimated_fill,
    growth_dimension,
)
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True)
class TwoLevel:
    """Options of the preconditioner.

    Parameters
    ----------
    group_size : int, default=20
        Least mean number of rows of a group. On rolls of 20 000 points in 8 parts, LOBPCG took 28
        iterations with 20 rows, 52 with 100 and 68 with 300.
    groups : int, default=3000
        Largest number of groups. The coarse problem may be dense: it then takes 24 bytes times the
        square of this number.
    groups_of_surface : int, default=20000
        The same for graphs of surfaces, whose coarse problem is sparse.
    surface_dimension : float, default=2.6
        Graphs of at most this dimension, by the growth of balls, are those of surfaces.
    smooth_up_to : float, default=5.0
        The functions are smoothed if their products with the matrix have at most this many entries
        per row. More occur in high dimensions, where smoothing saved a tenth of the iterations but
        made them ten times as many.
    fill : float, default=8.0
        Largest number of entries of the factor of a part's block, relative to those of the block.
        Blocks that would need more are divided. With 10 neighbors factors of rolls need 4. For
        normal data in 20 dimensions, in two parts of 16 000 rows, 47 iterations with whole blocks
        took 42 s, 71 with divided ones 2 s.
    shift : float, default=1e-8
        Multiple of the norm that is added to the diagonal of matrices that are factorized.

    Examples
    --------
    >>> from manifoldry.eigen.distributed_preconditioner import TwoLevel
    >>> TwoLevel().groups
    3000
    """

    group_size: int = 20
    groups: int = 3000
    groups_of_surface: int = 20_000
    surface_dimension: float = 2.6
    smooth_up_to: float = 5.0
    fill: float = 8.0
    shift: float = 1e-8

    def built(
        self,
        matrix: DistributedMatrix,
        bounds: IntArray,
        null: Sequence[Any],
        norm: float,
        columns: int,
        seeds: Sequence[int],
    ) -> DistributedPreconditioner:
        """Return the preconditioner of a matrix, whose factors are on the workers.

        Parameters
        ----------
        matrix : DistributedMatrix
            A positive semidefinite matrix.
        bounds : array of shape (n_parts + 1,)
            The first row of each part, and the number of all rows.
        null : list of Delayed
            For each part, the moduli of the known eigenvector, or a guess, (rows of a part,).
        norm : float
            An upper bound of the eigenvalues.
        columns : int
            Number of approximate eigenvectors, which the coarse problem yields.
        seeds : list of int
            Seeds of the groups of each part.

        Returns
        -------
        DistributedPreconditioner
            The preconditioner.
        """
        shift, m = self.shift * norm, self._number_of_groups(matrix, bounds)
        ends = np.round(m * (bounds / max(1, bounds[-1]))).astype(np.intp)
        Z = persist(
            delayed(_grouped)(A, null[p], int(ends[p]), int(ends[p + 1]), m, seeds[p])
            for p, A in enumerate(matrix.blocks)
        )
        AZ = persist(_sparse_products(matrix, Z))
        if sum(compute(map(delayed(_entries), AZ), "groups")) <= self.smooth_up_to * bounds[-1]:
            smooth = delayed(_smoothed)
            Z = persist(map(smooth, matrix.blocks, Z, AZ))
            AZ = _sparse_products(matrix, Z)
        solver = delayed(PartSolver.of)
        pieces = zip(matrix.blocks, Z, AZ, seeds, strict=True)
        parts = persist(solver(A, z, az, shift, self.fill, seed) for A, z, az, seed in pieces)
        sums = combined([delayed(_galerkin)(part, m) for part in parts], _added)
        coarse = persist([delayed(CoarseSolver)(sums, shift, columns, seeds[0])])[0]
        return DistributedPreconditioner(parts, coarse)

    def _number_of_groups(self, matrix: DistributedMatrix, bounds: IntArray) -> int:
        largest = int(np.argmax(np.diff(bounds)))
        most = int(bounds[-1]) // self.group_size
        if most <= self.groups:
            return most
        [dimension] = compute([delayed(_dimension)(matrix.blocks[largest])], "dimension of graph")
        surface = dimension <= self.surface_dimension
        return min(most, self.groups_of_surface if surface else self.groups)


@dataclass(frozen=True, eq=False)
class DistributedPreconditioner:
    """What parts and the worker of the coarse problem keep.

    Parameters
    ----------
    parts : list of Delayed
        The :class:`PartSolver` of each part.
    coarse : Delayed
        The :class:`CoarseSolver`.
    """

    parts: list[Any]
    coarse: Any

    def applied(self, blocks: Sequence[Any]) -> list[Any]:
        """Return the product with the active residuals, by three tasks per part and one for all.

        Parameters
        ----------
        blocks : list of Delayed
            The :class:`Block` of each part.

        Returns
        -------
        list of Delayed
            The products.
        """
        restrict, correct, take = delayed(_restricted), delayed(_corrected), delayed(_taken)
        pairs = list(zip(self.parts, blocks, strict=True))
        y = delayed(_coarse_solution)(self.coarse, [restrict(*pair) for pair in pairs])
        return [correct(*pair, take(y, p)) for p, pair in enumerate(pairs)]

    def starts(self) -> list[Any]:
        """Return approximate eigenvectors, from the coarse problem.

        Returns
        -------
        list of Delayed
            For each part, an array of shape (rows of a part, at most `columns`).
        """
        return [delayed(_interpolated)(part, self.coarse) for part in self.parts]


class SparseInverse:
    """The inverse of A + sI for a positive semidefinite A, (n, n) with n ≥ 0.

    Only the matrix travels to other workers, where it is factorized again.

    Parameters
    ----------
    A : array or sparse array of shape (n, n)
        The matrix.
    shift : float
        The shift s.
    """

    def __init__(self, A: Matrix, shift: float) -> None:
        self.A, self.shift = A, shift
        empty = A.shape[0] == 0
        self._factor = (
            None if empty else ShiftedInverse(A, -shift, "smallest", skip_pivot_check=True)
        )

    def solve(self, X: Array) -> Array:
        """Return (A + sI)⁻¹ X."""
        return X if self._factor is None else self._factor.solve(X)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.A, self.shift)

    def __sizeof__(self) -> int:
        entries = 0 if self._factor is None else self._factor.size
        return _bytes(self.A) + 12 * entries


@dataclass(frozen=True, eq=False)
class PartSolver:
    """What a part needs to apply the preconditioner.

    Parameters
    ----------
    groups : array of shape (c,)
        The unknowns of the coarse problem that matter to this part.
    Z, AZ : sparse arrays of shape (rows, c)
        Their functions, and the products with the matrix.
    own : SparseInverse
        The inverse of the block of its own rows.
    """

    groups: IntArray
    Z: Matrix
    AZ: Matrix
    own: SparseInverse

    @classmethod
    def of(
        cls, A: Matrix, Z: Matrix, AZ: Matrix, shift: float, fill: float, seed: int
    ) -> PartSolver:
        """Return the solver of a part from its rows of A, Z and AZ."""
        groups = np.union1d(Z.indices, AZ.indices).astype(np.intp)
        own = _with_sparse_factor(_own(A), fill, seed)
        return cls(groups, Z[:, groups], AZ[:, groups], SparseInverse(own, shift))

    def __sizeof__(self) -> int:
        return _bytes(self.Z) + _bytes(self.AZ) + sys.getsizeof(self.own)


class CoarseSolver:
    """The factor of the coarse problem, and approximations of its first eigenvectors.

    Parameters
    ----------
    sums : (sparse array, sparse array)
        ZᵀAZ and ZᵀZ, (m, m).
    shift : float
        The multiple of the second one that is added to the first one.
    columns : int
        Number of vectors.
    seed : int
        Seed of the random vectors with which the search for them starts.
    n_steps : int
        Number of inverse iterations. Their result only starts the iterations for all rows.
    """

    def __init__(
        self, sums: tuple[Matrix, Matrix], shift: float, columns: int, seed: int, n_steps: int = 10
    ) -> None:
        E, N = sums
        m = E.shape[0]
        E = sparse.csr_array(E + shift * N)
        if m and estimated_fill(E) > NEARLY_DENSE * m**2:
            E = E.toarray()
        # Functions of two groups may be dependent to rounding, hence a second, tiny shift.
        self.inverse = SparseInverse(E, 1e-14 * abs(E).max() if m else 0.0)
        Y: Array = np.random.default_rng(seed).standard_normal((m, min(columns, m)))
        for _ in range(n_steps if m else 0):
            Y = np.linalg.qr(self.inverse.solve(N @ Y))[0]
        self.vectors = Y

    def __sizeof__(self) -> int:
        return sys.getsizeof(self.inverse) + int(self.vectors.nbytes)


def _own(A: Matrix) -> Matrix:
    """The block of the columns of a part's own rows."""
    return sparse.csr_array(A[:, : A.shape[0]])


def _dimension(A: Matrix) -> float:
    return growth_dimension(_own(A))


def _entries(A: Matrix) -> int:
    return int(A.nnz)


def _bytes(A: Matrix) -> int:
    return int(12 * A.nnz + 4 * A.shape[0] if sparse.issparse(A) else A.nbytes)


def _grouped(A: Matrix, null: Array, first: int, stop: int, m: int, seed: int) -> Matrix:
    """One function per group of rows of a part, (rows, m); `null` at the rows of the group."""
    group = _groups(_own(A), stop - first, seed)
    rows = np.flatnonzero(group >= 0)
    return sparse.csr_array((null[rows], (rows, first + group[rows])), shape=(len(group), m))


def _groups(A: Matrix, count: int, seed: int) -> IntArray:
    """Numbers of groups: rows belong to the nearest of random centers in the graph of A, or −1."""
    n = A.shape[0]
    if min(n, count) == 0:
        return np.full(n, -1)
    centers = np.sort(np.random.default_rng(seed).choice(n, min(n, count), replace=False))
    lengths = A.copy()
    lengths.data = 1 / np.maximum(np.abs(A.data), np.finfo(float).tiny)
    _, _, center = dijkstra(lengths, indices=centers, min_only=True, return_predecessors=True)
    return np.where(center >= 0, np.searchsorted(centers, center), -1)


def _sparse_products(matrix: DistributedMatrix, Z: Sequence[Any]) -> list[Any]:
    multiply, received = delayed(_sparse_product), matrix.exchange.received
    return [multiply(A, Z[p], *received(p, Z)) for p, A in enumerate(matrix.blocks)]


def _sparse_product(A: Matrix, *pieces: Matrix) -> Matrix:
    return sparse.csr_array(A @ sparse.vstack(pieces, format="csr")[: A.shape[1]])


def _smoothed(A: Matrix, Z: Matrix, AZ: Matrix) -> Matrix:
    """A step of Jacobi's iteration; the diagonal dominates, so that ‖D⁻¹A‖ is at most 2."""
    diagonal = A.diagonal()
    factor = np.divide(2 / 3, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    return sparse.csr_array(Z - sparse.diags_array(factor) @ AZ)


def _with_sparse_factor(A: Matrix, fill: float, seed: int) -> Matrix:
    """A without entries between groups of rows, so small that the factor is sparse."""
    kept, n_groups, most = A, 1, fill * A.nnz
    while kept.shape[0] > 1 and (needed := estimated_fill(kept)) > most:
        n_groups = int(np.ceil(n_groups * max(2.0, needed / most)))
        kept = _without_borders(A, _groups(A, n_groups, seed))
    return kept


def _without_borders(A: Matrix, group: IntArray) -> Matrix:
    row = row_numbers(A)
    kept = group[row] == group[A.indices]
    return sparse.csr_array((A.data[kept], (row[kept], A.indices[kept])), shape=A.shape)


def _galerkin(part: PartSolver, m: int) -> tuple[Matrix, Matrix]:
    """The contributions of a part to ZᵀAZ and ZᵀZ."""
    places = sparse.csr_array(
        (np.ones(len(part.groups)), part.groups, np.arange(len(part.groups) + 1)),
        shape=(len(part.groups), m),
    )
    E, N = (sparse.csr_array(places.T @ (part.Z.T @ other) @ places) for other in (part.AZ, part.Z))
    return E, N


def _added(pairs: list[tuple[Matrix, Matrix]]) -> tuple[Matrix, Matrix]:
    E, N = pairs[0]
    for other in pairs[1:]:
        E, N = E + other[0], N + other[1]
    return E, N


def _interpolated(part: PartSolver, coarse: CoarseSolver) -> Array:
    return np.asarray(part.Z @ coarse.vectors[part.groups])


def _restricted(part: PartSolver, block: Block) -> tuple[IntArray, Array, Array]:
    ZT = part.Z.T
    return part.groups, np.asarray(ZT @ block.active), np.asarray(ZT @ block.found)


def _coarse_solution(
    coarse: CoarseSolver, pieces: list[tuple[IntArray, Array, Array]]
) -> list[tuple[Array, Array]]:
    """The coarse correction at the groups of each part, and its inner products with found vectors.

    Contributions are added in the order of parts.
    """
    m = len(coarse.vectors)
    _, right, found = (np.zeros((m, each.shape[-1])) for each in pieces[0])
    for groups, of_right, of_found in pieces:
        right[groups] += of_right
        found[groups] += of_found
    y = coarse.inverse.solve(right)
    c = found.T @ y
    return [(y[groups], c) for groups, _, _ in pieces]


def _taken(pieces: list[tuple[Array, Array]], part: int) -> tuple[Array, Array]:
    return pieces[part]


def _corrected(part: PartSolver, block: Block, coarse: tuple[Array, Array]) -> Array:
    """The coarse correction outside the vectors that were found, and that of the part.

    Most of Zy lies along these vectors if eigenvalues are tiny. If it was not removed at once, the
    rest would be lost in inner products.
    """
    y, c = coarse
    correction = part.Z @ y - block.found @ c
    product = part.AZ @ y - block.products_of_found @ c
    return np.asarray(correction + part.own.solve(block.active - product))
