"""The interface of devices: memory, arrays that are copied once, and the device of a context."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from manifoldry.device.primitives import DeviceMatrix, Primitives
from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.util.memory import NotEnoughMemoryError, replaced_remedy
from manifoldry.util.typing import Array, Matrix

_ON_THE_CPU = "device='cpu'"  # what to pass where the memory of a device does not suffice


class MissingDeviceError(RuntimeError):
    """The requested device is not there, or cannot be used.

    Parameters
    ----------
    problem : str
        Why.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        remedy = "to compute on the CPU pass device=None, or call model.set_params(device=None)"
        return f"{self.problem}; {remedy}"


class Device(Primitives):
    """Base class of processors with memory of their own.

    A subclass implements what computes: the primitives, which its base class in
    ``manifoldry.device.primitives`` lists. Their arguments and results are arrays of its namespace
    `xp`, which has the functions of numpy. Primitives may change in any version.

    Methods that take long arrays from the host use :meth:`array`, which copies each of them once
    per context of :func:`using_device`.

    See Also
    --------
    using_device : computes on a device.
    resolve_device : finds a device by its name.

    Examples
    --------
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> from manifoldry.device.primitives import KernelShape
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
        """Return the copy of an array on this device; long ones are copied once per context.

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

    def hold(self, host: Array, copy: Array, least: int = 2**12) -> None:
        """Remember that `copy` is the array `host` on this device.

        It is forgotten when the context ends, when the array of the host is deleted, or when its
        memory is needed. Views of the same memory in another shape are recognized, too.

        Parameters
        ----------
        host : array
            An array of numpy.
        copy : array
            The same array on the device.
        least : int, default=2**12
            Bytes of the shortest array that is remembered.
        """
        use = _CURRENT.get()
        if use is None or use.device is not self:
            return
        if host.nbytes >= least and host.flags.c_contiguous:
            copies, place = use.copies, _place(host)
            owner = weakref.ref(_owner(host), lambda _: copies.pop(place, None))
            copies[place] = owner, copy

    def held(self, host: Array) -> Array | None:
        """Return the copy of an array of the host if there is one, else None.

        Parameters
        ----------
        host : array
            An array of numpy.

        Returns
        -------
        array or None
            The array on the device.
        """
        use = _CURRENT.get()
        if use is None or use.device is not self or not host.flags.c_contiguous:
            return None
        known = use.copies.get(_place(host))
        return None if known is None else known[1].reshape(host.shape)

    def host(self, array: Any) -> Any:
        """Return an array as one of numpy.

        Parameters
        ----------
        array : array
            An array of this device, or of the host.

        Returns
        -------
        array
            The array of numpy.
        """
        return self.adopt(array).get() if device_of(array) is self else np.asarray(array)

    def adopt(self, array: Any) -> Any:
        """Return an array of another library in the memory of this device as one of `xp`.

        It is not copied.

        Parameters
        ----------
        array : array
            An array of CuPy, PyTorch or another library, in the memory of this device.

        Returns
        -------
        array
            The array of `xp`, which has the same memory.
        """
        return array

    def rows(self, matrix: Matrix, dtype: Any = None) -> DeviceMatrix:
        """Return a sparse matrix in compressed rows on this device.

        Parameters
        ----------
        matrix : sparse array
            The matrix, in compressed rows, on the host.
        dtype : dtype, default=None
            Type of the entries; by default the same.

        Returns
        -------
        DeviceMatrix
            The matrix on the device.
        """
        parts = (self.array(matrix.indptr, np.int64), self.array(matrix.indices, np.int32))
        return DeviceMatrix(*parts, self.array(matrix.data, dtype), int(matrix.shape[1]))

    @contextmanager
    def allocating(self) -> Iterator[None]:
        """Make new arrays of `xp` on this device inside this context; return its memory after."""
        yield

    def lacks_memory(self, error: Exception) -> bool:
        """Whether an error says that its memory does not suffice.

        Parameters
        ----------
        error : Exception
            An error that was raised by a computation.

        Returns
        -------
        bool
            Whether that is so.
        """
        return False

    @property
    @abstractmethod
    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    def plan(self, n_bytes: float, what: str, remedy: str) -> None:
        """Raise MemoryError if `what` needs more memory than is free; `remedy` says what to do.

        Parameters
        ----------
        n_bytes : float
            Bytes that are needed.
        what : str
            For what.
        remedy : str
            What to do if they are not free.
        """
        free, use = self.free_memory, _CURRENT.get()
        if n_bytes > free and use is not None and use.device is self:
            use.copies.clear()
            free = self.free_memory
        if n_bytes > free:
            place = f"on {self.description}, where {_size(free)} are free"
            need = f"{what} needs {_size(n_bytes)} {place}"
            raise NotEnoughMemoryError(need, replaced_remedy(remedy), _ON_THE_CPU)

    def runs_on_host(self, what: str, why: str) -> None:
        """Warn, once per context, that `what` is computed on the CPU.

        Parameters
        ----------
        what : str
            What runs on the CPU.
        why : str
            The reason, or how to avoid it.
        """
        use = _CURRENT.get()
        said = set() if use is None else use.said
        if what not in said:
            said.add(what)
            warn(f"{what} runs on the CPU, not on {self.name}: {why}", ManifoldryWarning)

    def __deepcopy__(self, memo: Any) -> Device:
        return self  # a copy of an estimator computes on the same device

    @abstractmethod
    def owns(self, array: Any) -> bool:
        """Whether an array is in the memory of this device.

        Parameters
        ----------
        array : array
            An array, or any other object.

        Returns
        -------
        bool
            Whether it is an array of `xp` on this device.
        """

    @abstractmethod
    def _upload(self, host: Array) -> Array:
        """Copy an array of the host."""


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
    """Return the device of the innermost :func:`using_device`, or None for the CPU.

    Returns
    -------
    Device or None
        The device.

    Examples
    --------
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> with using_device(EmulatedDevice()):
    ...     current_device()
    EmulatedDevice()
    >>> current_device() is None
    True
    """
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
            f"{need} that are free ({error})", replaced_remedy(remedy), _ON_THE_CPU
        ) from error


NOTICED_ABOVE = 2**22
"""Numbers that are computed on the CPU in so little time that :func:`say_on_cpu` is silent."""


def say_on_cpu(what: str, why: str, numbers: float = float("inf")) -> None:
    """Warn, once per context, that `what` is computed on the CPU, if there is a current device.

    Parameters
    ----------
    what : str
        What runs on the CPU.
    why : str
        The reason, or how to avoid it.
    numbers : float, default=inf
        How many numbers are computed. There is no warning about few.

    Examples
    --------
    >>> import warnings
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> with using_device(EmulatedDevice()), warnings.catch_warnings(record=True) as said:
    ...     say_on_cpu("the search for loops", "it follows single paths")
    ...     say_on_cpu("the sum", "it is short", numbers=100)
    >>> [str(warning.message) for warning in said]
    ['the search for loops runs on the CPU, not on emulated: it follows single paths']
    """
    device = current_device()
    if device is not None and numbers >= NOTICED_ABOVE:
        device.runs_on_host(what, why)


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
    """Return the device whose memory has this array; None for the memory of the host.

    Parameters
    ----------
    array : array
        An array of any library, or any other object.

    Returns
    -------
    Device or None
        The device.

    Examples
    --------
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> device_of(EmulatedDevice().array(np.ones(3)))
    EmulatedDevice()
    >>> device_of(np.ones(3)) is None
    True
    """
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
    """Return a copy of an array on the current device, or the array itself if there is none.

    Parameters
    ----------
    array : array
        An array of numpy.

    Returns
    -------
    array
        The array on the device.

    Examples
    --------
    >>> on_current_device(np.ones(3))  # outside of any context
    array([1., 1., 1.])
    """
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
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.3g} MiB"
