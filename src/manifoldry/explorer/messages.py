"""Messages between the page and Python: JSON, with arrays as binary buffers beside it.

``frontend/src/protocol.ts`` is the other end, and has the types of all messages.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_TYPES = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "i4": "<i4", "f4": "<f4", "f8": "<f8"}
_MOST_HEADER = 2**22  # bytes of JSON in a message of a page
_ALIGNED = 8  # bytes: every buffer begins at a multiple, as typed arrays need
_MOST_NESTED = 50  # lists and objects within each other; messages of the page have five


class MessageError(ValueError):
    """A message that is not of the form that the page sends."""


def dismantle(message: Any) -> tuple[Any, list[bytes]]:
    """A message as JSON has it, and the buffers of its arrays."""
    buffers: list[bytes] = []
    return _plain(message, buffers), buffers


def _plain(value: Any, buffers: list[bytes]) -> Any:
    if isinstance(value, np.ndarray):
        name = _type_name(value)
        buffers.append(np.ascontiguousarray(value, dtype=_TYPES[name]).tobytes())
        return {"$array": len(buffers) - 1, "dtype": name}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, buffers) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, buffers) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _type_name(array: Any) -> str:
    name = f"{array.dtype.kind}{array.dtype.itemsize}"
    if name not in _TYPES:
        raise TypeError(f"arrays of type {array.dtype} cannot be sent")
    return name


def assemble(header: Any, buffers: Sequence[Any], nested: int = 0) -> Any:
    """The message again, with arrays that cannot be written to."""
    if nested > _MOST_NESTED:
        raise MessageError(f"lists of the message are nested more than {_MOST_NESTED} times")
    if isinstance(header, list):
        return [assemble(item, buffers, nested + 1) for item in header]
    if not isinstance(header, dict):
        return header
    if "$array" not in header:
        return {key: assemble(item, buffers, nested + 1) for key, item in header.items()}
    place, name = header["$array"], header.get("dtype")
    there = isinstance(place, int) and 0 <= place < len(buffers)
    if not (there and isinstance(name, str) and name in _TYPES):
        raise MessageError("an array of the message is not there, or of an unknown type")
    try:
        return np.frombuffer(buffers[place], dtype=_TYPES[name])
    except ValueError as error:
        raise MessageError(f"an array of the message is damaged: {error}") from None


def pack(message: Any) -> bytes:
    """A message as one binary frame: length of the header, header, buffers."""
    header, buffers = dismantle(message)
    sizes = [len(buffer) for buffer in buffers]
    head = json.dumps({"message": header, "sizes": sizes}, allow_nan=False).encode()
    parts = [_padded(struct.pack("<I", len(head)) + head), *map(_padded, buffers)]
    return b"".join(parts)


def unpack(frame: bytes) -> Any:
    """The message of a frame."""
    try:
        (size,) = struct.unpack_from("<I", frame)
        if size > _MOST_HEADER:
            raise ValueError
        head = json.loads(frame[4 : 4 + size])
        sizes = [int(each) for each in head["sizes"]]
        message = head["message"]
    except (struct.error, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise MessageError("the message has no header") from None
    at, buffers = _end(4 + size), []
    for length in sizes:
        if length < 0 or at + length > len(frame):
            raise MessageError("the message is shorter than its header says")
        buffers.append(frame[at : at + length])
        at = _end(at + length)
    return assemble(message, buffers)


def _padded(part: bytes) -> bytes:
    return part + bytes(_end(len(part)) - len(part))


def _end(at: int) -> int:
    return -(-at // _ALIGNED) * _ALIGNED
