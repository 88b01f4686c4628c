"""Two-level preconditioner of a sparse matrix whose rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, delayed, persist
from manifoldry.eigen.inverse import ShiftedInverse
from manifoldry.util.typing import Array, IntArray, Matrix


class SparseInverse:
    """Inverse of A + sI for a positive semidefinite A; a copy of it factorizes the matrix again."""

    def __init__(self, A: Matrix, shift: float) -> None:
        self.A, self.shift = A, shift
        n = A.shape[0]
        self.inverse = ShiftedInverse(A, -shift, "smallest", skip_pivot_check=True) if n else None

    def solve(self, X: Array) -> Array:
        return X if self.inverse is None else self.inverse.solve(X)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.A, self.shift)


@dataclass(frozen=True, eq=False)
class PartSolver:
    """What one part does."""

    Z: Matrix  # (rows, m)
    AZ: Matrix
    local: SparseInverse

    def restricted(self, R: Array) -> Array:
        return np.asarray(self.Z.T @ R)

    def corrected(self, R: Array, y: Array) -> Array:
        return np.asarray(self.Z @ y + self.local.solve(R - self.AZ @ y))


@dataclass(frozen=True, eq=False)
class TwoLevel:
    """The preconditioner."""

    parts: list[Any]
    coarse: Any
    starts: list[Any]

    @classmethod
    def of(
        cls,
        matrix: DistributedMatrix,
        bounds: IntArray,
        null: Sequence[Any],
        seeds: Sequence[int],
        *,
        count: int,
        smoothing: int,
        shift: float,
        norm: float,
        start_columns: int,
    ) -> TwoLevel:
        rows = np.diff(bounds)
        # Shares of the aggregates, rounded so that they sum to `count`.
        ends = np.concatenate([[0], np.round(count * np.cumsum(rows) / max(1, bounds[-1]))])
        ends = ends.astype(np.intp)
        pieces = [(int(a), int(b - a)) for a, b in pairwise(ends)]
        total = int(ends[-1])
        Z = [
            delayed(_aggregated)(A, null[p], *pieces[p], total, seeds[p])
            for p, A in enumerate(matrix.blocks)
        ]
        AZ = _sparse_times(matrix, Z)
        for _ in range(smoothing):
            Z = [delayed(_smoothed)(z, az, 4 / 3 / norm) for z, az in zip(Z, AZ, strict=True)]
            AZ = _sparse_times(matrix, Z)
        parts = persist(
            delayed(_part_solver)(A, z, az, shift)
            for A, z, az in zip(matrix.blocks, Z, AZ, strict=True)
        )
        sums = combined([delayed(_galerkin)(part) for part in parts], _added)
        (coarse,) = persist([delayed(CoarseSolver)(sums, shift, start_columns, seeds[0])])
        starts = [delayed(_interpolated)(part, coarse) for part in parts]
        return cls(parts, coarse, starts)

    def applied(self, blocks: Sequence[Any], active: list[int]) -> list[Any]:
        restrict, correct = delayed(_restricted), delayed(_corrected)
        pieces = [
            restrict(part, block, active) for part, block in zip(self.parts, blocks, strict=True)
        ]
        y = delayed(_coarse_solution)(self.coarse, combined(pieces, sum))
        return [
            correct(part, block, active, y) for part, block in zip(self.parts, blocks, strict=True)
        ]


class CoarseSolver:
    """Solves the coarse problem."""

    def __init__(self, sums: tuple[Matrix, Matrix], shift: float, columns: int, seed: int) -> None:
        E, N = sums
        self.inverse = SparseInverse(
            sparse.csr_array(E + shift * N), 1e-14 * abs(E).max() if E.nnz else 1.0
        )
        m = E.shape[0]
        Y: Array = np.random.default_rng(seed).standard_normal((m, min(columns, m)))
        for _ in range(10 if m else 0):
            Y = self.inverse.solve(N @ Y)
            Y /= np.linalg.norm(Y, axis=0)
            Y = np.linalg.qr(Y)[0]
        self.start = Y


def _sparse_times(matrix: DistributedMatrix, Z: Sequence[Any]) -> list[Any]:
    multiply = delayed(_sparse_product)
    return [multiply(A, Z[p], *matrix.exchange.received(p, Z)) for p, A in enumerate(matrix.blocks)]


def _sparse_product(A: Matrix, *pieces: Matrix) -> Matrix:
    return sparse.csr_array(A @ sparse.vstack(pieces, format="csr")[: A.shape[1]])


def _aggregated(A: Matrix, null: Array, first: int, count: int, total: int, seed: int) -> Matrix:
    n = A.shape[0]
    if n == 0 or count == 0:
        return sparse.csr_array((n, total))
    own = sparse.csr_array(A[:, :n])
    seeds = np.sort(np.random.default_rng(seed).choice(n, min(n, count), replace=False))
    lengths = sparse.csr_array(
        (1 / np.maximum(np.abs(own.data), 1e-300), own.indices, own.indptr), shape=own.shape
    )
    _, _, source = dijkstra(lengths, indices=seeds, min_only=True, return_predecessors=True)
    reached = np.flatnonzero(source >= 0)
    columns = first + np.searchsorted(seeds, source[reached])
    return sparse.csr_array((null[reached], (reached, columns)), shape=(n, total))


def _smoothed(Z: Matrix, AZ: Matrix, factor: float) -> Matrix:
    return sparse.csr_array(Z - factor * AZ)


def _part_solver(A: Matrix, Z: Matrix, AZ: Matrix, shift: float) -> PartSolver:
    n = A.shape[0]
    return PartSolver(Z, AZ, SparseInverse(sparse.csr_array(A[:, :n]), shift))


def _galerkin(part: PartSolver) -> tuple[Matrix, Matrix]:
    return sparse.csr_array(part.Z.T @ part.AZ), sparse.csr_array(part.Z.T @ part.Z)


def _added(pairs: list[tuple[Matrix, Matrix]]) -> tuple[Matrix, Matrix]:
    E, N = pairs[0]
    for other in pairs[1:]:
        E, N = E + other[0], N + other[1]
    return E, N


def _interpolated(part: PartSolver, coarse: CoarseSolver) -> Array:
    return np.asarray(part.Z @ coarse.start)


def _restricted(part: PartSolver, block: Any, active: list[int]) -> Array:
    return part.restricted(block.R[:, active])


def _corrected(part: PartSolver, block: Any, active: list[int], y: Array) -> Array:
    return part.corrected(block.R[:, active], y)


def _coarse_solution(coarse: CoarseSolver, rc: Array) -> Array:
    return coarse.inverse.solve(rc) if len(rc) else rc
