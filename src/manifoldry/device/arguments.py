"""Arguments that are arrays of a device: of CuPy, PyTorch, and any library that has DLPack.

They are copied to the host once, where they are checked and kept by fitted models. The originals
are remembered, so that nothing is copied back: computations find them as the copies of the host's
arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from manifoldry.device.base import Device, current_device, device_of, resolve_device, using_device
from manifoldry.util.array_like import Fetched
from manifoldry.util.typing import Array

P = ParamSpec("P")
Result = TypeVar("Result")


class HostArguments(NamedTuple):
    """Arguments of a call, with arrays of numpy in place of those of a device."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    returned: Callable[[Any], Any]
    """Converts arrays of a result to the kind that was given."""


@contextmanager
def arguments_on_host(
    device: str | Device | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[HostArguments]:
    """Compute on a device; by default the current one, or that which has some of the arguments.

    Inside the context, what was copied from the device is not copied back.
    """
    given = [value for value in _values((*args, *kwargs.values())) if device_of(value) is not None]
    if not given:
        with using_device(device):
            yield HostArguments(args, kwargs, lambda result: result)
        return
    source = _common_device(given)
    with using_device(_checked(device, source)):
        hosts = {id(array): _fetched(source, array) for array in given}
        replaced = [_replaced(value, hosts) for value in (*args, *kwargs.values())]
        named = dict(zip(kwargs, replaced[len(args) :], strict=True))
        yield HostArguments(
            tuple(replaced[: len(args)]), named, lambda result: _returned(result, source, given[0])
        )


def on_device_of_arguments(function: Callable[P, Result]) -> Callable[P, Result]:
    """Decorator of functions whose arrays may be on a device: they compute there.

    Results are numbers and arrays of numpy.

    Examples
    --------
    >>> from manifoldry.device import current_device
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> @on_device_of_arguments
    ... def total(X):
    ...     return float(X.sum()), current_device()
    >>> total(EmulatedDevice().array(np.ones((3, 2))))
    (6.0, EmulatedDevice())
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        with arguments_on_host(None, args, kwargs) as given:
            return function(*given.args, **given.kwargs)

    return call


def _values(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments, and what is inside dictionaries and pairs, such as embeddings by name."""
    for value in arguments:
        if isinstance(value, dict):
            yield from _values(tuple(value.values()))
        elif isinstance(value, tuple):
            yield from _values(value)
        elif type(value) is not np.ndarray and not isinstance(value, str):
            yield value


def _replaced(value: Any, hosts: dict[int, Any]) -> Any:
    if id(value) in hosts:
        return hosts[id(value)]
    if type(value) is dict and value:
        return {name: _replaced(item, hosts) for name, item in value.items()}
    if type(value) is tuple:
        return tuple(_replaced(item, hosts) for item in value)
    return value


def _common_device(arrays: list[Any]) -> Device:
    devices = [device for device in map(device_of, arrays) if device is not None]
    for other in devices[1:]:
        if other is not devices[0]:
            raise ValueError(
                f"arrays are on {devices[0].name} and on {other.name}; copy them to the same device"
            )
    return devices[0]


def _checked(requested: str | Device | None, source: Device) -> str | Device:
    """The device to compute on; ValueError unless it is the CPU or the one that has the arrays."""
    device = (current_device() or source) if requested is None else resolve_device(requested)
    if device is None:
        return "cpu"
    if device is not source:
        raise ValueError(
            f"the array is on {source.name}, but device={device.name!r}; pass "
            f"device={source.name!r}, or copy the array to {device.name}"
        )
    return device


def _fetched(device: Device, array: Any) -> Any:
    """Copy an array to the host, and remember the original."""
    own = device.adopt(array)
    if own.ndim > 0:
        own = device.xp.ascontiguousarray(own)
    host = device.host(own)
    device.hold(host, own)
    return host.view(Fetched)


def _returned(result: Any, device: Device, like: Any) -> Any:
    """Arrays of numpy in a result as those of the library of `like`, on its device."""
    if isinstance(result, tuple):
        parts = [_returned(part, device, like) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if not isinstance(result, np.ndarray) or device_of(result) is not None:
        return result
    return _lent(device.array(np.asarray(result), keep=False), device, like)


def _lent(own: Array, device: Device, like: Any) -> Any:
    """An array of a device in the library of `like`, by DLPack, without a copy."""
    if isinstance(like, device.xp.ndarray):
        return own
    if hasattr(like, "__array_namespace__"):
        library = like.__array_namespace__()
    else:  # PyTorch
        library = sys.modules[type(like).__module__.partition(".")[0]]
    return library.from_dlpack(own) if hasattr(library, "from_dlpack") else own
