"""Nearest neighbors on a GPU: products by tensor cores, and selection while they are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.device.cuda_launch import c_type, grid, pointer
from manifoldry.device.primitives import NOBODY
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

_COLUMNS = 512  # of which the width of a tile is a multiple, for the kernel `select`
_WARP, _MOST_WARPS = 32, 4  # of the same: threads of a warp, and warps of a block
_TILE_ENTRIES = 2**28  # products that are in memory at a time
_SMALL_TILE = 2**25  # for which memory need not be asked
_TILE_COLUMNS = 2**17
_MOST_SHARED = 2**17 + 2**16  # bytes of shared memory that a block may use
_SHARED = 2**15  # bytes with which several blocks share a processor
# Names of cuBLAS: types of numbers, and how products are computed.
_SINGLE, _DOUBLE = 0, 1
_IN_SINGLE, _IN_DOUBLE, _BY_TENSOR_CORES = 68, 70, 77


def cuda_nearest(
    device: CudaDevice, X: Array, Y: Array, k: int, own: Array | None, accurate: bool
) -> tuple[Array, Array]:
    """See :meth:`Device.nearest`."""
    xp, X, Y = device.xp, _aligned(device.xp, X), _aligned(device.xp, Y)
    best = xp.full((len(X), k), xp.inf, dtype=X.dtype)
    ids = xp.full((len(X), k), NOBODY, dtype=xp.int32)
    select = _Selection(device, X.dtype, k)
    for rows, column, products, squares in _tiles(device, X, Y, accurate):
        mine = None if own is None else own[rows]
        select(products, squares, column, mine, best[rows], ids[rows])
    best += xp.square(X).sum(axis=1)[:, None]
    xp.minimum(ids, len(Y) - 1, out=ids)  # empty places, where products are not finite
    return ids, best


def cuda_merge_nearest(
    device: CudaDevice, X: Array, Y: Array, first: int, rows: Array, found: tuple[Array, Array]
) -> None:
    """See :meth:`Device.merge_nearest`."""
    xp, (ids, best) = device.xp, found
    X, Y = _aligned(xp, X), _aligned(xp, Y)
    select, shifts = _Selection(device, X.dtype, best.shape[1]), xp.square(X).sum(axis=1)
    for block, column, products, squares in _tiles(device, X, Y, accurate=False):
        own = rows[block]
        select(products, squares, first + column, own, best, ids, own, shifts[block])


def _tiles(
    device: CudaDevice, X: Array, Y: Array, accurate: bool
) -> Iterator[tuple[slice, int, Array, Array]]:
    """Yield rows, first column, products and squares of the columns of tiles of all pairs."""
    xp, width = device.xp, min(_filled(len(Y)), _TILE_COLUMNS)
    most = min(_TILE_ENTRIES, len(X) * width)
    if most > _SMALL_TILE:  # since the question takes long
        most = min(most, device.free_memory // 32)
    n_rows = max(1, min(len(X), most // width))
    squares = xp.full(-(-len(Y) // width) * width, xp.inf, dtype=X.dtype)
    squares[: len(Y)] = xp.square(Y).sum(axis=1)
    tile = xp.empty((n_rows, width), dtype=X.dtype)
    for row in range(0, len(X), n_rows):
        block = slice(row, min(row + n_rows, len(X)))
        for column in range(0, len(Y), width):
            points = Y[column : column + width]
            products = tile[: block.stop - block.start, : len(points)]
            _multiply(device, X[block], points, products, accurate)
            yield block, column, products, squares[column : column + _filled(len(points))]


def cuda_distances(
    device: CudaDevice, X: Array, Y: Array, indices: Array, rows: Array | None = None
) -> Array:
    """See :meth:`Device.distances`."""
    out = device.xp.empty(indices.shape, dtype=float)
    packed = X.shape[1] * X.dtype.itemsize % 16 == 0
    name = f"distances<{c_type(X.dtype)}, {str(packed).lower()}>"
    kernel = device.kernel("neighbors.cu", name)
    X, Y, indices = map(device.xp.ascontiguousarray, (X, Y, indices))
    sizes = np.int64(indices.size), np.int32(indices.shape[-1]), np.int32(X.shape[1])
    if indices.size:
        kernel(*grid(32 * indices.size), (X, Y, pointer(rows), indices, *sizes, out))
    return out


def cuda_sort_rows(device: CudaDevice, indices: Array, values: Array) -> tuple[Array, Array]:
    """See :meth:`Device.sort_rows`."""
    xp = device.xp
    indices, values = xp.array(indices, xp.int32, order="C"), xp.array(values, order="C")
    k, size = indices.shape[1], _power_of_two(indices.shape[1])
    shared = size * (values.dtype.itemsize + 4)
    if shared > _MOST_SHARED:
        order = xp.lexsort(xp.stack([indices.ravel(), values.ravel(), _row_numbers(xp, indices)]))
        return indices.ravel()[order].reshape(-1, k), values.ravel()[order].reshape(-1, k)
    kernel = device.kernel("neighbors.cu", f"sort_rows<{c_type(values.dtype)}>")
    kernel.max_dynamic_shared_size_bytes = shared
    threads = min(256, max(32, size // 2))
    sizes = np.int32(k), np.int32(size)
    kernel((len(indices),), (threads,), (indices, values, *sizes), shared_mem=shared)
    return indices, values


class _Selection:
    """The kernel that merges a tile of products into the nearest ones found so far.

    Each warp of a block has room for some neighbors of its row that are not yet sorted: with room
    for three times `k`, rows of a million entries are sorted a few times.
    """

    def __init__(self, device: CudaDevice, dtype: Any, k: int) -> None:
        each = np.dtype(dtype).itemsize + 4
        self.k, self.capacity = k, _power_of_two(max(128, 3 * k))
        if self.capacity * each > _MOST_SHARED:
            self.capacity = _power_of_two(k + _WARP)
        room = self.capacity * each
        if room > _MOST_SHARED:
            most = 2 ** int(np.log2(_MOST_SHARED // each)) - _WARP
            raise ValueError(
                f"{k} neighbors of a point, with those that are compared, are too many for "
                f"{device.name}, which finds at most {most}; pass a smaller n_neighbors or "
                "perplexity, or device='cpu'"
            )
        self.warps = max(1, min(_MOST_WARPS, _SHARED // room))
        self.shared = self.warps * room
        self.kernel = device.kernel("neighbors.cu", f"select<{c_type(dtype)}>")
        self.kernel.max_dynamic_shared_size_bytes = self.shared

    def __call__(
        self,
        products: Array,
        squares: Array,
        first_column: int,
        own: Array | None,
        best: Array,
        ids: Array,
        rows: Array | None = None,
        shifts: Array | None = None,
    ) -> None:
        n, pitch = len(products), products.strides[0] // products.itemsize
        sizes = np.int32(n), np.int32(len(squares)), np.int32(first_column)
        ends = np.int32(self.k), np.int32(self.capacity), best, ids
        places = pointer(own), pointer(rows), pointer(shifts)
        arguments = products, np.int64(pitch), squares, *sizes, *places, *ends
        blocks, threads = (-(-n // self.warps),), (_WARP * self.warps,)
        self.kernel(blocks, threads, arguments, shared_mem=self.shared)


def _filled(n: int) -> int:
    """The width of a tile with at least `n` columns."""
    return -(-n // _COLUMNS) * _COLUMNS


def _multiply(device: CudaDevice, X: Any, Y: Any, out: Any, accurate: bool) -> None:
    """X·Yᵀ, in the order of rows of `out`, which may be part of a wider array."""
    cublas, handle = device.xp.cuda.cublas, device.xp.cuda.device.get_cublas_handle()
    double = X.dtype == np.float64
    kind, scalar = (_DOUBLE, np.float64) if double else (_SINGLE, np.float32)
    how = _IN_DOUBLE if double else _IN_SINGLE if accurate else _BY_TENSOR_CORES
    one, zero = np.array(1, dtype=scalar), np.array(0, dtype=scalar)
    pitch, m = out.strides[0] // out.itemsize, X.shape[1]
    cublas.gemmEx(
        handle, 1, 0, len(Y), len(X), m, one.ctypes.data, Y.data.ptr, kind, m, X.data.ptr, kind, m,
        zero.ctypes.data, out.data.ptr, kind, pitch, how, -1,
    )  # fmt: skip


def _aligned(xp: Any, X: Array, multiple: int = 8) -> Array:
    """Contiguous rows that start at multiples of 32 bytes, as tensor cores read them."""
    missing = -X.shape[1] % multiple
    return xp.ascontiguousarray(xp.pad(X, ((0, 0), (0, missing))) if missing else X)


def _row_numbers(xp: Any, table: Array) -> Array:
    rows = xp.arange(table.shape[0], dtype=xp.int32)
    return xp.repeat(rows, table.shape[1]).astype(float)


def _power_of_two(least: int) -> int:
    return 1 << max(5, (least - 1).bit_length())
