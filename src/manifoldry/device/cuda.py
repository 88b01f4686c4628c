"""NVIDIA GPUs through CuPy: memory, compiled kernels, and the primitives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from manifoldry.device.base import Device, MissingDeviceError, device_of, device_or_name
from manifoldry.device.cuda_copies import LEAST_BYTES, PinnedBuffers
from manifoldry.device.cuda_factors import cuda_eigh, cuda_left_vectors
from manifoldry.device.cuda_mesh import cuda_corners, cuda_gather, cuda_spread
from manifoldry.device.cuda_neighbors import (
    cuda_distances,
    cuda_merge_nearest,
    cuda_nearest,
    cuda_sort_rows,
)
from manifoldry.device.cuda_pairs import cuda_edge_sums, cuda_pair_sums, cuda_position_sums
from manifoldry.device.cuda_ranks import cuda_ranks, cuda_smallest
from manifoldry.device.cuda_rows import (
    cuda_chebyshev_step,
    cuda_log_precisions,
    cuda_min_plus,
    cuda_product,
)
from manifoldry.device.cuda_squares import cuda_nearest_squares, cuda_squared_distances
from manifoldry.device.cuda_vectors import (
    cuda_centered,
    cuda_combination,
    cuda_inner_products,
    cuda_momentum_step,
)
from manifoldry.device.primitives import DeviceMatrix, KernelShape, MomentumRule, Nodes
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array

_INSTALL = "pip install 'manifoldry[cuda12]', or 'manifoldry[cuda13]' for a driver of CUDA 13"
_OPTIONS = ("--std=c++17", "--use_fast_math")


@cache
def cuda_device(number: int | None = None) -> CudaDevice:
    """Return a card by its number, by default the first; MissingDeviceError if it is not there."""
    cupy = _cupy()
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MissingDeviceError(
            f"device='cuda' needs an NVIDIA GPU and its driver, and none is found ({error})"
        ) from None
    wanted = 0 if number is None else number
    if wanted >= count:
        last = f", 'cuda:0' to 'cuda:{count - 1}'" if count > 1 else ", 'cuda:0'" if count else ""
        cards = f"{count} GPU{'s' * (count != 1)}{last}"
        raise MissingDeviceError(f"device='cuda:{wanted}' does not exist: this machine has {cards}")
    return CudaDevice(wanted) if number is not None else cuda_device(wanted)


def cuda_devices() -> list[CudaDevice]:
    """Return all cards of this machine; MissingDeviceError if there are none."""
    cuda_device()
    return [cuda_device(i) for i in range(int(_cupy().cuda.runtime.getDeviceCount()))]


def card_of_pointer(pointer: int) -> int:
    """The number of the card in whose memory an address is."""
    return int(_cupy().cuda.runtime.pointerGetAttributes(pointer).device)


def _cupy() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a missing CUDA path, which is not needed
            import cupy
    except ImportError as error:
        raise MissingDeviceError(
            f"device='cuda' needs CuPy, which cannot be imported ({error}); {_INSTALL}"
        ) from None
    return cupy


def _is_long(array: Any) -> bool:
    return int(array.nbytes) >= LEAST_BYTES


class CudaDevice(Device):
    """A GPU. Kernels are compiled when they are first used, and kept in CuPy's cache on disk."""

    def __init__(self, number: int) -> None:
        self.number, self.name, self.xp = number, f"cuda:{number}", _cupy()
        self._modules: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"CudaDevice({self.number})"

    def __reduce__(self) -> Any:
        return device_or_name, (self.name,)

    @property
    def description(self) -> str:
        return f"{self.name} ({self.model})"

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.xp.cuda.runtime.getDeviceProperties(self.number)["name"].decode())

    @property
    def versions(self) -> str:
        """Versions of CuPy, and of CUDA in it and in the driver."""
        runtime = self.xp.cuda.runtime
        numbers = runtime.runtimeGetVersion(), runtime.driverGetVersion()
        cuda, driver = (f"{number // 1000}.{number % 1000 // 10}" for number in numbers)
        return f"CuPy {self.xp.__version__} with CUDA {cuda}, driver of CUDA {driver}"

    @property
    def free_memory(self) -> int:
        free: int = self.xp.cuda.runtime.memGetInfo()[0]
        return free + int(self.xp.get_default_memory_pool().free_bytes())

    @cached_property
    def n_processors(self) -> int:
        """Number of its multiprocessors."""
        return int(self.xp.cuda.runtime.deviceGetAttribute(16, self.number))

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.xp.ndarray) and array.device.id == self.number

    def _upload(self, host: Array) -> Array:
        host = np.ascontiguousarray(host)
        with self.xp.cuda.Device(self.number):
            return self._buffers.upload(host) if _is_long(host) else self.xp.asarray(host)

    def host(self, array: Any) -> Any:
        if device_of(array) is not self:
            return np.asarray(array)
        found: Any = self.adopt(array)
        with self.xp.cuda.Device(self.number):
            long = found.flags.c_contiguous and _is_long(found)
            return self._buffers.download(found) if long else np.asarray(found.get())

    @cached_property
    def _buffers(self) -> PinnedBuffers:
        return PinnedBuffers(self)

    @contextmanager
    def allocating(self) -> Iterator[None]:
        with self.xp.cuda.Device(self.number):
            try:
                yield
            finally:
                self.xp.get_default_memory_pool().free_all_blocks()

    def adopt(self, array: Any) -> Any:
        if isinstance(array, self.xp.ndarray):
            return array
        detached = array.detach() if hasattr(array, "detach") else array  # of PyTorch's gradients
        with self.xp.cuda.Device(self.number):
            if hasattr(detached, "__dlpack__"):
                return self.xp.from_dlpack(detached)
            return self.xp.asarray(detached)

    def lacks_memory(self, error: Exception) -> bool:
        if isinstance(error, self.xp.cuda.memory.OutOfMemoryError):
            return True
        ours = type(error).__module__.startswith("cupy")  # of cuBLAS, cuSOLVER and the driver
        return ours and "alloc" in str(error).lower()

    def kernel(self, file: str, name: str) -> Any:
        """Return a kernel of a file in the folder `kernels`, by its name with template arguments.

        All names of a file are compiled at once, when one of them is first used.
        """
        if file not in self._modules:
            self._modules[file] = {}
        known = self._modules[file]
        if name not in known:
            code = (files("manifoldry.device") / "kernels" / file).read_text()
            module = self.xp.RawModule(code=code, options=_OPTIONS, name_expressions=(name,))
            known[name] = module.get_function(name)
        return known[name]

    def nearest(
        self, X: Array, Y: Array, k: int, own: Array | None, accurate: bool
    ) -> tuple[Array, Array]:
        return cuda_nearest(self, X, Y, k, own, accurate)

    def merge_nearest(
        self, X: Array, Y: Array, first: int, rows: Array, found: tuple[Array, Array]
    ) -> None:
        cuda_merge_nearest(self, X, Y, first, rows, found)

    def distances(self, X: Array, Y: Array, indices: Array, rows: Array | None = None) -> Array:
        return cuda_distances(self, X, Y, indices, rows)

    def sort_rows(self, indices: Array, values: Array) -> tuple[Array, Array]:
        return cuda_sort_rows(self, indices, values)

    def smallest(self, table: Array, k: int) -> Array:
        return cuda_smallest(self, table, k)

    def ranks(self, table: Array, columns: Array) -> Array:
        return cuda_ranks(self, table, columns)

    def log_precisions(self, t: Array, perplexity: float) -> Array:
        return cuda_log_precisions(self, t, perplexity)

    def eigh(self, A: Array) -> tuple[Array, Array]:
        return cuda_eigh(self, A)

    def left_vectors(self, A: Array) -> tuple[Array, Array]:
        return cuda_left_vectors(self, A)

    def pair_sums(
        self, Y: Array, weights: Any, shape: KernelShape, order: int
    ) -> tuple[Array, Array]:
        return cuda_pair_sums(self, Y, weights, shape, order)

    def corners(self, Y: Array) -> Array:
        return cuda_corners(self, Y)

    def spread(self, Y: Array, charges: Array | None, nodes: Nodes) -> Array:
        return cuda_spread(self, Y, charges, nodes)

    def gather(
        self,
        Y: Array,
        potential: Array,
        near: Array,
        nodes: Nodes,
        left: Array | None,
        right: Array | None,
        slopes: bool,
    ) -> tuple[Array, Array]:
        return cuda_gather(self, Y, potential, near, nodes, left, right, slopes)

    def position_sums(
        self, Z: Array, Y: Array, least: Array, weights: Array | None, shape: KernelShape
    ) -> tuple[Array, Array, Array]:
        return cuda_position_sums(self, Z, Y, least, weights, shape)

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return cuda_squared_distances(self, X, Y)

    def nearest_squares(self, X: Array, Y: Array) -> Array:
        return cuda_nearest_squares(self, X, Y)

    def edge_sums(self, Y: Array, W: DeviceMatrix, rate: float) -> tuple[Any, Array, Array]:
        return cuda_edge_sums(self, Y, W, rate)

    def product(self, A: DeviceMatrix, X: Array) -> Array:
        return cuda_product(self, A, X)

    def min_plus(self, A: DeviceMatrix, X: Array) -> Array:
        return cuda_min_plus(self, A, X)

    def inner_products(self, pairs: Sequence[tuple[Array, Array]]) -> Array:
        return cuda_inner_products(self, pairs)

    def combination(self, factors: Sequence[float], arrays: Sequence[Array]) -> Array:
        return cuda_combination(self, factors, arrays)

    def centered(self, Y: Array, dtype: Any) -> Array:
        return cuda_centered(self, Y, dtype)

    def momentum_step(
        self, arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
    ) -> tuple[Array, Array, Array]:
        return cuda_momentum_step(self, arrays, rule)

    def chebyshev_step(
        self,
        W: DeviceMatrix,
        diagonals: tuple[Array, Array],
        factors: tuple[float, float],
        state: tuple[Array, Array, Array],
    ) -> Array:
        return cuda_chebyshev_step(self, W, diagonals, factors, state)

    def cholesky(self, G: Array) -> Array:
        from cupyx import errstate

        with errstate(linalg="raise"):
            return self.xp.linalg.cholesky(G).T

    def solve_triangular(self, R: Array, B: Array, *, transposed: bool = False) -> Array:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(R, B, trans=int(transposed))
