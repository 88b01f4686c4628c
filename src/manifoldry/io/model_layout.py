"""The layout of a model file: a header and the arrays of the model, with checksums.

A file is a line of magic bytes, the length and the checksum of a header, the header as JSON, and
the arrays of the model, uncompressed, one after the other, each at a multiple of 64 bytes. The
header has type, shape, place and checksum of every array, besides what `model_file` puts there.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manifoldry.io.model_values import DamagedModelError, Tree, UnsavableError, plain_dtype
from manifoldry.util.saved import package_version
from manifoldry.util.text import short_line
from manifoldry.util.typing import Array
from manifoldry.util.writing import written_at_once

FORMAT = 1
_MAGIC = b"manifoldry model\n"
_ALIGNMENT = 64
# Bytes of the header, so that a file cannot ask for much more memory than it takes on the disk.
_MAX_HEADER = 2**25
# Files up to this size are read and verified at once; larger ones are mapped into memory.
_SMALL = 2**26
# What a header of the wrong shape may raise while it is interpreted.
INCONSISTENT = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError,
                TypeError, ValueError)  # fmt: skip


def write_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: list[Array]) -> None:
    """Write a header and arrays; the file appears under its name when it is complete."""
    header = header | {"arrays": list(_entries(arrays))}
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > _MAX_HEADER:
        raise UnsavableError(
            f"{header['estimator']} has {len(text) / 1e6:.0f} MB of texts and small values, and a "
            f"model file has room for {_MAX_HEADER / 1e6:.0f} MB: use numbers instead of texts"
        )
    with written_at_once(path) as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text)
        for array in arrays:
            _pad(file)
            file.write(_bytes(array))


def stored_array(array: Array) -> Array:
    """The array as its bytes are written: little endian, in C or Fortran order."""
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy(order="K")  # products of matrices in another order have other bits
    if not (array.flags.c_contiguous or array.flags.f_contiguous):  # axes in a third order
        array = np.ascontiguousarray(array)
    return array.astype(array.dtype.newbyteorder("<"), order="A", copy=False)


def _entries(arrays: list[Array]) -> Iterator[dict[str, Tree]]:
    """Type, shape, order, place and checksum of every array, relative to the end of the header."""
    offset = 0
    for array in arrays:
        yield {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "fortran": not array.flags.c_contiguous,
            "offset": offset,
            "sha256": hashlib.sha256(_bytes(array)).hexdigest(),
        }
        offset += _aligned(array.nbytes)


def _bytes(array: Array) -> memoryview:
    """The bytes of a contiguous array, in its own order, without a copy."""
    return memoryview(array.reshape(-1, order="A").view(np.uint8))  # type: ignore[arg-type]


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % _ALIGNMENT))


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT


@contextmanager
def opened_file(path: Path) -> Iterator[tuple[dict[str, Any], int, BinaryIO]]:
    """The header of a model file, the place of its first array, and the open file."""
    with path.open("rb") as file:
        fixed = len(_MAGIC) + 8 + 32
        start = file.read(fixed)
        if not start.startswith(_MAGIC):
            raise DamagedModelError(
                f"{path} is no model file of manifoldry: save one with manifoldry.save(model, path)"
            )
        size, checksum = int.from_bytes(start[len(_MAGIC) : -32], "little"), start[-32:]
        if len(start) < fixed or size > min(_MAX_HEADER, file_size(file) - fixed):
            raise DamagedModelError(f"{path} is cut off or damaged: its header is incomplete")
        text = file.read(size)
        if hashlib.sha256(text).digest() != checksum:
            raise DamagedModelError(f"{path} is damaged: the checksum of its header is wrong")
        with reporting_damage(path):
            header = json.loads(text, parse_constant=_refuse, object_pairs_hook=_distinct)
            version = header["format"]
            if type(version) is not int or version < 1:
                raise DamagedModelError("it has an unknown format")
        if version > FORMAT:
            raise DamagedModelError(
                f"{path} has version {version} of the format, and manifoldry {package_version()} "
                f"reads versions up to {FORMAT}: update manifoldry"
            )
        yield header, _aligned(fixed + size), file


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Report whatever fails while the parts of a file are interpreted."""
    try:
        yield
    except DamagedModelError as error:
        raise DamagedModelError(f"{path} cannot be loaded: {error}") from None
    except INCONSISTENT as error:
        reason = f"{type(error).__name__}: {short_line(str(error))}"
        raise DamagedModelError(
            f"{path} is damaged: its parts are inconsistent ({reason})"
        ) from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of JSON with these entries, whose names must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamagedModelError("an entry occurs twice")
    return found


def _refuse(constant: str) -> None:
    raise DamagedModelError(f"{constant} is no number of JSON")


def file_size(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def read_arrays(
    file: BinaryIO, header: dict[str, Any], start: int, verify: bool | None
) -> list[Array]:
    """The arrays, as views of the file's bytes in memory."""
    is_small = file_size(file) <= _SMALL
    if is_small:
        file.seek(0)
        buffer: Any = bytearray(file.read())
    else:
        # Private to this process: changes to an array do not reach the file.
        buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    arrays, end = [], start
    for entry in header["arrays"]:
        # One after the other, so that no byte is in two arrays, and checksums take one pass.
        if entry["offset"] != _aligned(end - start):
            raise DamagedModelError("an array is not at its place")
        arrays.append(_view(buffer, entry, start + entry["offset"]))
        end = start + entry["offset"] + arrays[-1].nbytes
    if end != len(buffer) and header["arrays"]:
        raise DamagedModelError("it has more bytes than its arrays")
    if is_small if verify is None else verify:
        for array, entry in zip(arrays, header["arrays"], strict=True):
            if hashlib.sha256(_bytes(array)).hexdigest() != entry["sha256"]:
                raise DamagedModelError("the checksum of an array is wrong")
    return arrays


def _view(buffer: Any, entry: dict[str, Any], offset: int) -> Array:
    dtype, shape = plain_dtype(entry["dtype"]), tuple(entry["shape"])
    if any(type(length) is not int or length < 0 for length in shape):
        raise DamagedModelError(f"an array has the shape {short_line(shape)}")
    count = math.prod(shape)
    if offset + count * dtype.itemsize > len(buffer):
        raise DamagedModelError("an array is cut off")
    if not count:
        return np.empty(shape, dtype)
    flat = np.frombuffer(buffer, dtype, count, offset)
    return flat.reshape(shape, order="F" if entry["fortran"] else "C")
