"""The interface of devices: memory, arrays that are copied once, and the primitives."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.util.memory import NotEnoughMemoryError, replaced_remedy
from manifoldry.util.typing import Array, Matrix

NOBODY = int(np.iinfo(np.int32).max)
"""The index of a neighbor that is not yet found."""


class MissingDeviceError(RuntimeError):
    """The requested device is not there, or cannot be used: `problem` says why."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        remedy = "to compute on the CPU pass device=None, or call model.set_params(device=None)"
        return f"{self.problem}; {remedy}"


class Rows(NamedTuple):
    """A sparse matrix on a device, in compressed rows."""

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.indptr.shape[0]) - 1

    def row_numbers(self, xp: Any) -> Array:
        """Return the row of each entry: how many rows have ended before it."""
        entries = xp.arange(len(self.indices), dtype=self.indptr.dtype)
        return xp.searchsorted(self.indptr, entries, side="right") - 1


class KernelShape(NamedTuple):
    """κ = (1 + rate·D)^−power of squared distances D; exp(−D) if both are None."""

    rate: float | None = None
    power: float | None = None


class Nodes(NamedTuple):
    """Nodes of a regular mesh in up to three dimensions, at multiples of its spacing."""

    spacing: float
    first: tuple[float, ...]
    """The first node, in units of the spacing."""
    shape: tuple[int, ...]
    """Number of nodes along each axis."""


class Device(ABC):
    """Base class of processors with memory of their own.

    A subclass implements the primitives. Their arguments and results are arrays of its namespace
    `xp`, which has the functions of numpy. Results have the same bits whenever a primitive is
    called with the same arrays on the same device.

    Methods that take long arrays from the host use :meth:`array`, which copies each of them once
    per context of :func:`using_device`.

    See Also
    --------
    using_device : computes on a device.
    resolve_device : finds a device by its name.

    Examples
    --------
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> device = EmulatedDevice()
    >>> Y = device.array(np.array([[0.0], [1.0], [3.0]]))
    >>> sums, _ = device.pair_sums(Y, None, KernelShape(1.0, 1.0), order=1)
    >>> device.host(sums).round(2)
    array([0.6, 0.7, 0.3])
    """

    name: str
    """Name with which it is requested, such as "cuda:0"."""
    xp: Any
    """The namespace of its arrays."""

    @property
    def description(self) -> str:
        """Its name and model, for messages."""
        return self.name

    # Memory

    def array(self, host: Any, dtype: Any = None, *, keep: bool = True) -> Array:
        """Return the copy of an array on this device; a large one is copied once per context.

        Parameters
        ----------
        host : array
            An array of the host, or of this device.
        dtype : dtype, default=None
            Its type on the device; by default the same.
        keep : bool, default=True
            Whether to keep the copy for later calls, which requires that `host` does not change.

        Returns
        -------
        array
            The array on the device.
        """
        if device_of(host) is self:
            own = self.adopt(host)
            return own if dtype is None else own.astype(dtype, copy=False)
        host = np.asarray(host)
        copy = self.held(host)
        if copy is None:
            copy = self._upload(host)
            if keep:
                self.hold(host, copy)
        return copy if dtype is None else copy.astype(dtype, copy=False)

    def hold(self, host: Array, copy: Array, least: int = 2**16) -> None:
        """Remember that `copy` is the array `host` on this device.

        It is forgotten when the context ends, when the array of the host is deleted, or when its
        memory is needed. Views of the same memory in another shape are recognized, too.
        """
        use = _CURRENT.get()
        if use is None or use.device is not self:
            return
        if host.nbytes >= least and host.flags.c_contiguous:
            copies, place = use.copies, _place(host)
            owner = weakref.ref(_owner(host), lambda _: copies.pop(place, None))
            copies[place] = owner, copy

    def held(self, host: Array) -> Array | None:
        """Return the copy of an array of the host if there is one, else None."""
        use = _CURRENT.get()
        if use is None or use.device is not self or not host.flags.c_contiguous:
            return None
        known = use.copies.get(_place(host))
        return None if known is None else known[1].reshape(host.shape)

    def host(self, array: Any) -> Array:
        """Return an array as one of numpy."""
        return self.adopt(array).get() if device_of(array) is self else np.asarray(array)

    def adopt(self, array: Any) -> Any:
        """Return an array of another library in the memory of this device as one of `xp`.

        It is not copied.
        """
        return array

    def rows(self, matrix: Matrix, dtype: Any = None) -> Rows:
        """Return a sparse matrix in compressed rows on this device."""
        parts = (self.array(matrix.indptr, np.int64), self.array(matrix.indices, np.int32))
        return Rows(*parts, self.array(matrix.data, dtype), int(matrix.shape[1]))

    @contextmanager
    def allocating(self) -> Iterator[None]:
        """Make new arrays of `xp` on this device inside this context; return its memory after."""
        yield

    def lacks_memory(self, error: Exception) -> bool:
        """Whether an error says that its memory does not suffice."""
        return False

    @property
    @abstractmethod
    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    def plan(self, n_bytes: float, what: str, remedy: str) -> None:
        """Raise MemoryError if `what` needs more memory than is free; `remedy` says what to do."""
        free, use = self.free_memory, _CURRENT.get()
        if n_bytes > free and use is not None and use.device is self:
            use.copies.clear()
            free = self.free_memory
        if n_bytes > free:
            place = f"on {self.description}, where {_size(free)} are free"
            need = f"{what} needs {_size(n_bytes)} {place}"
            raise NotEnoughMemoryError(need, replaced_remedy(remedy))

    def runs_on_host(self, what: str, why: str) -> None:
        """Warn, once per context, that `what` is computed on the CPU."""
        use = _CURRENT.get()
        said = set() if use is None else use.said
        if what not in said:
            said.add(what)
            warn(f"{what} runs on the CPU, not on {self.name}: {why}", ManifoldryWarning)

    def __deepcopy__(self, memo: Any) -> Device:
        return self  # a copy of an estimator computes on the same device

    @abstractmethod
    def owns(self, array: Any) -> bool:
        """Whether an array is in the memory of this device."""

    @abstractmethod
    def _upload(self, host: Array) -> Array:
        """Copy an array of the host."""

    # Primitives

    @abstractmethod
    def nearest(
        self, X: Array, Y: Array, k: int, own: Array | None, accurate: bool
    ) -> tuple[Array, Array]:
        """Return the `k` rows of `Y` nearest to each row of `X`, by matrix products.

        Parameters
        ----------
        X, Y : array of shape (n_query, m), (n, m)
            The points, in single precision, or in double if `accurate`.
        k : int
            Number of neighbors, at most n, or n − 1 with `own`.
        own : int32 array of shape (n_query,) or None
            The row of `Y` that is left out, mostly the query itself; -1 leaves out none.
        accurate : bool
            Whether the products are as accurate as the type of the arrays allows. Otherwise their
            factors may be rounded to 11 significant bits: those of coordinates that have no more
            are exact, and their sums are in single precision.

        Returns
        -------
        indices : int32 array of shape (n_query, k)
            The neighbors by increasing distance, ties by index. Where products overflow, they are
            any rows, and their squares are infinite.
        squares : array of shape (n_query, k)
            Squared distances, as accurate as the products.
        """

    @abstractmethod
    def merge_nearest(
        self, X: Array, Y: Array, first: int, rows: Array, found: tuple[Array, Array]
    ) -> None:
        """Update the nearest points that were found for some queries with a part of all points.

        Parameters
        ----------
        X, Y : array of shape (n_rows, m), (n_part, m)
            Some of the queries, and of the points, in single precision, around any origin.
        first : int
            Number of the first row of `Y` among all points.
        rows : int32 array of shape (n_rows,)
            Number of each query among all points. It is left out as its own neighbor.
        found : tuple of arrays of shape (n, k)
            Indices, of int32, and squared distances, ascending, of all points. Those of the queries
            are replaced. At first, they are `NOBODY` and infinity.
        """

    @abstractmethod
    def distances(self, X: Array, Y: Array, indices: Array, rows: Array | None = None) -> Array:
        """Return distances by subtraction, in double precision.

        Parameters
        ----------
        X, Y : array of shape (n_query, m), (n, m)
            The points, of the same type.
        indices : int32 array of shape (n_query, k) or (n_pairs,)
            Rows of `Y`.
        rows : int32 array of shape (n_pairs,), default=None
            Row of `X` of each pair; None for a row of `indices` per row of `X`.

        Returns
        -------
        array of the shape of `indices`
            The distances.
        """

    @abstractmethod
    def sort_rows(self, indices: Array, values: Array) -> tuple[Array, Array]:
        """Sort each row by value, ties by index."""

    @abstractmethod
    def smallest(self, table: Array, k: int) -> Array:
        """Return the columns of the `k` smallest entries of each row, in order, ties by column.

        `table` has no NaN, and `k`, at most 4096, is at most its number of columns.
        """

    @abstractmethod
    def ranks(self, table: Array, columns: Array) -> Array:
        """Return the ranks of some entries in their rows, from 1 for the smallest, ties by column.

        `columns`, (n_rows, k), are those of the entries; k is at most 4096.
        """

    @abstractmethod
    def log_precisions(self, t: Array, perplexity: float) -> Array:
        """Return α at which weights exp(−eᵅ·t) in each row have the perplexity.

        Rows of `t` ascend from one or more zeros, fewer than the perplexity, which is less than
        their number of columns.
        """

    @abstractmethod
    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Return eigenvalues, ascending, and eigenvectors of many small matrices, (n, k, k).

        They are positive semidefinite and in double precision. See `manifoldry.device.small`, which
        calls it.
        """

    @abstractmethod
    def left_vectors(self, A: Array) -> tuple[Array, Array]:
        """Return left singular vectors, (n, rows, columns), and values, (n, columns), descending.

        The matrices are in double precision, with at least as many rows as columns. Small singular
        values have small errors. Vectors of singular values of zero are arbitrary.
        """

    @abstractmethod
    def pair_sums(
        self, Y: Array, weights: Any, shape: KernelShape, order: int
    ) -> tuple[Array, Array]:
        """Return Σⱼ aⱼ·κ(dᵢⱼ²) and moments over all other points j, for up to three dimensions.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points. In double precision their differences are accurate to single precision.
        weights : array of shape (n,) or (n, n), tuple of arrays of shape (n, n_factors), or None
            The weights a of points or, symmetric and not negative, of pairs; None for one. The
            weights of pairs are the products of the rows of a tuple, or zero if these are negative.
        shape : KernelShape
            The kernel κ, with a base b = 1 + rate·D.
        order : int
            1 for the moments Σ a·b^{−power−1}·(yᵢ − yⱼ), 2 for Σ a·b^{−power−2}·(yᵢ − yⱼ)² of every
            coordinate, with exp(−D) in place of powers of b for the Gaussian.

        Returns
        -------
        sums : float64 array of shape (n,)
            The kernel sums.
        moments : array of shape (n, d)
            The moments, in the type of `Y`.
        """

    @abstractmethod
    def corners(self, Y: Array) -> Array:
        """Return the least and the largest coordinates of points, (2, d), as an array of the host.

        A coordinate is NaN if that of any point is. Up to three dimensions.
        """

    @abstractmethod
    def spread(self, Y: Array, charges: Array | None, nodes: Nodes) -> Array:
        """Divide the charges of points among the four nodes around them along each axis.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points. One at the position p along an axis, in units of the spacing and relative
            to the first node, uses the nodes ⌊p⌋ to ⌊p⌋ + 3, which must exist.
        charges : array of shape (n, n_charges), or None
            The charges; None for one of each point.
        nodes : Nodes
            The mesh.

        Returns
        -------
        float64 array of shape (n_charges, *nodes.shape)
            The charges at the nodes, with cubic B-splines as weights; their absolute error is at
            most n·2⁻⁶⁰ of the sum of the sizes of all charges, besides rounding.
        """

    @abstractmethod
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
        """Interpolate potentials at points by cubic B-splines, without those of their own charges.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points, as for :meth:`spread`.
        potential : float64 array of shape (n_charges, *nodes.shape)
            The potential of each charge.
        near : float64 array of shape (4,) * d
            The potential of a unit charge at distances of zero to three nodes along each axis.
        nodes : Nodes
            The mesh.
        left, right : array of shape (n, n_charges) or None
            Factors with which the potentials are added, and the charges of the points themselves;
            None for one.
        slopes : bool
            Whether to compute gradients.

        Returns
        -------
        values : float64 array of shape (n,)
            Σ_c l_c·(φ_c − r_c·φ₀), where φ₀ is the potential of a unit charge at the point itself.
        gradients : float64 array of shape (n, d), or (0, d) without `slopes`
            Its gradients.
        """

    @abstractmethod
    def position_sums(
        self, Z: Array, Y: Array, least: Array, weights: Array | None, shape: KernelShape
    ) -> tuple[Array, Array, Array]:
        """Return Σⱼ aⱼ·κ(‖z − yⱼ‖²)·e^φ, and its gradient and Hessian by z, at positions `Z`.

        `least`, (n_positions,), is φ, by which kernels are scaled so that they do not underflow;
        `weights`, (n_positions, n), are the weights a. Everything is in double precision.
        """

    @abstractmethod
    def squared_distances(self, X: Array, Y: Array) -> Array:
        """Return ‖xᵢ − yⱼ‖² by subtraction, (n, m), for few coordinates in double precision."""

    @abstractmethod
    def nearest_squares(self, X: Array, Y: Array) -> Array:
        """Return the smallest of the `squared_distances` of each row of `X`, (n,)."""

    @abstractmethod
    def edge_sums(self, Y: Array, W: Rows, rate: float) -> tuple[Any, Array, Array]:
        """Return Σ wᵢⱼ·log b over all edges and, per point, Σⱼ wᵢⱼ/b·(yᵢ − yⱼ) and Σⱼ wᵢⱼ/b.

        b = 1 + rate·dᵢⱼ². Up to three dimensions.
        """

    @abstractmethod
    def product(self, A: Rows, X: Array) -> Array:
        """Return the product of a sparse matrix and an array of shape (n, m), in its type."""

    @abstractmethod
    def cholesky(self, G: Array) -> Array:
        """Return the upper factor R of G = RᵀR; LinAlgError if `G` is not positive definite."""

    @abstractmethod
    def solve_triangular(self, R: Array, B: Array, *, transposed: bool = False) -> Array:
        """Return R⁻¹B, or R⁻ᵀB if `transposed`, for an upper triangular matrix and columns."""


def _owner(host: Array) -> Array:
    """The array of which this one is a view."""
    while isinstance(host.base, np.ndarray):
        host = host.base
    return host


def _place(host: Array) -> tuple[int, int, str]:
    """Where an array is in memory, its size and its type."""
    return host.__array_interface__["data"][0], host.nbytes, host.dtype.str


class _Use(NamedTuple):
    """The device of a context, and what is remembered until it ends."""

    device: Device
    copies: dict[tuple[int, int, str], tuple[weakref.ref[Array], Array]]
    said: set[str]


_CURRENT: ContextVar[_Use | None] = ContextVar("device", default=None)


def current_device() -> Device | None:
    """Return the device of the innermost :func:`using_device`, or None for the CPU."""
    use = _CURRENT.get()
    return None if use is None else use.device


@contextmanager
def using_device(device: str | Device | None) -> Iterator[Device | None]:
    """Compute on a device inside this context: neighbors, sums over pairs, eigenvectors, metrics.

    Estimators have a parameter `device` for the same. Use the context for functions, such as
    :func:`manifoldry.assess` and those of :mod:`manifoldry.metrics`.

    Parameters
    ----------
    device : str, Device or None
        ``"cuda"``, or ``"cuda:1"`` for the second card; ``"cpu"`` for none; None changes nothing.

    Yields
    ------
    Device or None
        The device; None for the CPU.

    See Also
    --------
    Device : the interface.

    Examples
    --------
    >>> import manifoldry
    >>> with manifoldry.using_device("cpu"):
    ...     graph = manifoldry.NeighborGraph.build(np.eye(4), n_neighbors=2)
    """
    found = current_device() if device is None else resolve_device(device)
    if found is current_device():
        yield found
    elif found is None:
        with _current(None):
            yield None
    else:
        with _current(_Use(found, {}, set())), _clear_memory_errors(found), found.allocating():
            yield found


@contextmanager
def _current(use: _Use | None) -> Iterator[None]:
    token = _CURRENT.set(use)
    try:
        yield
    finally:
        if use is not None:
            use.copies.clear()  # before the device counts what is free
        _CURRENT.reset(token)


@contextmanager
def _clear_memory_errors(device: Device) -> Iterator[None]:
    """Say what is free, and what to do, if the memory of a device does not suffice."""
    try:
        yield
    except Exception as error:
        if not device.lacks_memory(error):
            raise
        need = f"more memory is needed on {device.description} than the {_size(device.free_memory)}"
        remedy = "pass fewer rows, for example a sample, and transform the others; or device='cpu'"
        raise NotEnoughMemoryError(
            f"{need} that are free ({error})", replaced_remedy(remedy)
        ) from error


def resolve_device(device: str | Device) -> Device | None:
    """Return the device of this name; None for ``"cpu"``.

    Parameters
    ----------
    device : str or Device
        ``"cuda"``, ``"cuda:N"`` or ``"cpu"``.

    Returns
    -------
    Device or None
        The device.

    Examples
    --------
    >>> resolve_device("tpu")
    Traceback (most recent call last):
    ValueError: device='tpu' must be 'cpu', 'cuda', or 'cuda:N' for the N-th card, from 0
    """
    if isinstance(device, Device):
        return device
    if device == "cpu":
        return None
    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or not (number.isdigit() or device == "cuda"):
        raise ValueError(
            f"device={device!r} must be 'cpu', 'cuda', or 'cuda:N' for the N-th card, from 0"
        )
    from manifoldry.device.cuda import cuda_device

    return cuda_device(int(number) if number else None)


def device_or_name(name: str) -> Device | str:
    """Return the device of this name, or the name if it is not on this machine: for pickles."""
    try:
        return resolve_device(name) or name
    except MissingDeviceError:
        return name


def device_of(array: Any) -> Device | None:
    """Return the device whose memory has this array; None for the memory of the host."""
    if type(array) is np.ndarray:
        return None
    current = current_device()
    if current is not None and current.owns(array):
        return current
    known = getattr(array, "device_", None)
    if isinstance(known, Device):
        return known
    number = _card_of(array)
    if number is None:
        return None
    from manifoldry.device.cuda import cuda_device

    return cuda_device(number)


def on_current_device(array: Any) -> Any:
    """Return a copy of an array on the current device, or the array itself if there is none."""
    device = current_device()
    return array if device is None else device.array(array, keep=False)


# Kinds of memory in the standard DLPack: of a GPU, and shared between GPU and host.
_OF_CUDA = (2, 13)


def _card_of(array: Any) -> int | None:
    """The number of the card in whose memory an array is; None if it is in none."""
    # Asked first: PyTorch refuses the other interface for tensors with gradients.
    if hasattr(array, "__dlpack_device__"):
        kind, number = array.__dlpack_device__()
        return int(number) if int(kind) in _OF_CUDA else None
    if not hasattr(array, "__cuda_array_interface__"):
        return None
    from manifoldry.device.cuda import card_of_pointer

    return card_of_pointer(array.__cuda_array_interface__["data"][0])


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"
