"""Files of fitted models that can be loaded safely, and read in part.

A file is a line of magic bytes, the length and the checksum of a header, the header as JSON, and
the arrays of the model, uncompressed, one after the other, each at a multiple of 64 bytes. The
header has the class, the parameters and facts about the training data, the tree of the model's
objects (see `model_tree`), and type, shape, place and checksum of every array.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from manifoldry.exceptions import VersionWarning, warn
from manifoldry.io.model_decoder import Decoder
from manifoldry.io.model_tree import Encoder
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
_INCONSISTENT = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError,
                 TypeError, ValueError)  # fmt: skip


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about its model, without loading it."""

    estimator: str
    """Class of the model."""
    parameters: dict[str, str]
    """Parameters as text, by name; those of nested estimators with double underscores."""
    training: dict[str, Any]
    """Facts about the training data and the result, such as n_samples and loss."""
    versions: dict[str, str]
    """Versions of manifoldry and of the libraries that wrote the file."""
    created: str
    """Time at which it was written, in UTC."""
    format: int
    """Version of the file format."""
    n_bytes: int
    """Size of the file."""


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a fitted model to a file that can be loaded safely.

    The file contains numbers, text and the names of known classes; no code. It appears under its
    name when it is complete, so that a previous file survives whatever interrupts the writing.

    Parameters
    ----------
    model : estimator
        A fitted estimator of manifoldry, or a scikit-learn pipeline with scalers, imputers or PCA
        in front of one. Functions as parameters, such as a metric of your own, cannot be saved.
    path : str or path
        The file, conventionally with the suffix ``.model``.
    facts : mapping from str to what JSON can store, optional
        Further facts about the training data, such as where they came from, for
        :func:`read_info`.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, manifoldry
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = manifoldry.PCA().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = manifoldry.save(model, pathlib.Path(folder) / "pca.model")
    ...     same = manifoldry.load(path)
    >>> np.array_equal(same.transform(X), model.transform(X))
    True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model must be an estimator, not {type(model).__name__}")
    tree, arrays = _encoded(model)
    header = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "manifoldry": package_version(), "numpy": np.__version__, "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "estimator": type(model).__name__,
        "parameters": {k: short_line(repr(v)) for k, v in model.get_params().items()},
        "training": _training(model) | dict(facts or {}),
        "arrays": list(_entries(arrays)),
        "tree": tree,
    }  # fmt: skip
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > _MAX_HEADER:
        raise UnsavableError(
            f"{type(model).__name__} has {len(text) / 1e6:.0f} MB of texts and small values, and a "
            f"model file has room for {_MAX_HEADER / 1e6:.0f} MB: use numbers instead of texts"
        )
    with written_at_once(path) as file:
        file.write(_MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text)
        for array in arrays:
            _pad(file)
            file.write(_bytes(array))
    return Path(path)


def load(path: str | os.PathLike[str], *, verify: bool | None = None) -> Any:
    """Load a model that :func:`save` has written; nothing in the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    verify : bool, optional
        Whether to compare the checksums of all arrays. By default files of up to 64 MB are read
        and verified; larger ones are mapped into memory, where parts are read when needed, and
        only their header is verified.

    Raises
    ------
    DamagedModelError
        If the file is no model file, or was changed.

    Notes
    -----
    As long as a model of a mapped file is used, the file must not be shortened or written to in
    place. :func:`save` does neither: it makes a new file under the old name.
    """
    path = Path(path)
    with _opened(path) as (header, start, file), _damage(path):
        arrays = _read_arrays(file, header, start, verify)
        model = Decoder(arrays).model(header["tree"])
        writer = str(header["versions"]["manifoldry"])
    _compare_versions(writer, path)
    return model


def read_info(path: str | os.PathLike[str]) -> ModelInfo:
    """Class, parameters and training data of a saved model, without loading it."""
    path = Path(path)
    with _opened(path) as (header, _, file), _damage(path):
        return ModelInfo(
            str(header["estimator"]), _texts(header["parameters"]), dict(header["training"]),
            _texts(header["versions"]), str(header["created"]), header["format"], _size(file),
        )  # fmt: skip


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _encoded(model: BaseEstimator) -> tuple[Tree, list[Array]]:
    """The tree of a model and its arrays; an error if they could not be loaded again."""
    name, encoder = type(model).__name__, Encoder()
    try:
        tree = encoder.encode(model, name)
        arrays = [_stored(a) for a in encoder.arrays]
        Decoder(arrays).model(tree)
    except UnsavableError:
        raise
    except _INCONSISTENT as error:
        raise UnsavableError(f"{name} cannot be saved: {error}") from error
    return tree, arrays


def _stored(array: Array) -> Array:
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


def _training(model: Any) -> dict[str, Any]:
    """Facts about a fitted model that are single numbers or texts, and names of features."""
    names = getattr(model, "feature_names_in_", None)  # of a pipeline, those of its first step
    facts: dict[str, Any] = {}
    if hasattr(model, "steps"):
        facts["method"], model = model.steps[-1]
    if (embedding := getattr(model, "embedding_", None)) is not None:
        facts["n_samples"], facts["n_coordinates"] = map(int, np.shape(embedding))
    for name, value in vars(model).items():
        plain = isinstance(value, (bool, int, float, str, np.number)) and name.endswith("_")
        if plain and not name.startswith("_"):
            value = value.item() if isinstance(value, np.number) else value
            if not isinstance(value, float) or math.isfinite(value):
                facts[name.rstrip("_")] = float(value) if isinstance(value, float) else value
    if names is not None:
        facts["feature_names"] = [str(name) for name in names]
    return facts


@contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Any], int, BinaryIO]]:
    """The header of a model file, the place of its first array, and the open file."""
    with path.open("rb") as file:
        fixed = len(_MAGIC) + 8 + 32
        start = file.read(fixed)
        if not start.startswith(_MAGIC):
            raise DamagedModelError(
                f"{path} is no model file of manifoldry: save one with manifoldry.save(model, path)"
            )
        size, checksum = int.from_bytes(start[len(_MAGIC) : -32], "little"), start[-32:]
        if len(start) < fixed or size > min(_MAX_HEADER, _size(file) - fixed):
            raise DamagedModelError(f"{path} is cut off or damaged: its header is incomplete")
        text = file.read(size)
        if hashlib.sha256(text).digest() != checksum:
            raise DamagedModelError(f"{path} is damaged: the checksum of its header is wrong")
        with _damage(path):
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
def _damage(path: Path) -> Iterator[None]:
    """Report whatever fails while the parts of a file are interpreted."""
    try:
        yield
    except DamagedModelError as error:
        raise DamagedModelError(f"{path} cannot be loaded: {error}") from None
    except _INCONSISTENT as error:
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


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read_arrays(
    file: BinaryIO, header: dict[str, Any], start: int, verify: bool | None
) -> list[Array]:
    """The arrays, as views of the file's bytes in memory."""
    is_small = _size(file) <= _SMALL
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


def _compare_versions(writer: str, path: Path) -> None:
    own = package_version()
    if writer != own:
        warn(
            f"{path} was written by manifoldry {short_line(writer, 40)} and is loaded by {own}, "
            "whose attributes may differ; fit the model again with this version if its results do",
            VersionWarning,
        )
