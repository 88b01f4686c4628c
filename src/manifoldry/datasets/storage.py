"""Search, download, reading and validation of data files.

A file is searched in the directory named by the environment variable ``MANIFOLDRY_DATA`` and then
in `data_home`. Only MNIST can be downloaded; it is then kept in `data_home`.
"""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifoldry.datasets.registry import REGISTRY, ArraySpec, DataFile
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.util.writing import written_at_once

Arrays = dict[str, NDArray[Any]]

# What numpy and zipfile raise for damaged, encrypted and unknown files.
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    RuntimeError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
)
_LONGEST_TEXT = 4 * 256  # bytes; numpy uses four per character
_KINDS = {"i": "integer", "u": "integer", "f": "float", "U": "text"}


class Header(NamedTuple):
    """Type of an array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class DataNotFoundError(FileNotFoundError):
    """A data file was not found; the message says what to put where.

    See Also
    --------
    find_data : returns None instead.
    data_home : where downloads are kept.

    Examples
    --------
    Use data that come with scikit-learn if the real ones are not there:

    >>> from sklearn.datasets import load_digits
    >>> from manifoldry.datasets import DataNotFoundError, load_usps
    >>> try:
    ...     X, y = load_usps()
    ... except DataNotFoundError:
    ...     X, y = load_digits(return_X_y=True)
    >>> X.shape[1] in (64, 256)
    True
    """


class DataFormatError(ValueError):
    """A data file cannot be read, or does not contain the expected arrays.

    The message has the path: delete the file or replace it.

    See Also
    --------
    DataNotFoundError : the file is missing.
    """


def data_home() -> Path:
    """Return the directory of downloaded data; it may not exist yet.

    It is ``manifoldry`` inside ``$XDG_CACHE_HOME``, or inside ``~/.cache`` if that is not set.

    Returns
    -------
    pathlib.Path
        The directory.

    See Also
    --------
    find_data : finds a data file, here or in ``$MANIFOLDRY_DATA``.

    Examples
    --------
    >>> from manifoldry.datasets import data_home
    >>> data_home().name
    'manifoldry'
    """
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification requires that relative paths be ignored.
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return base / "manifoldry"


def find_data(name: str) -> Path | None:
    """Return the path of a data file, or None if it is missing.

    Parameters
    ----------
    name : str
        Name of a data set in the registry, such as ``"mnist"`` or ``"coil20"``.

    Returns
    -------
    pathlib.Path or None
        The first match in ``$MANIFOLDRY_DATA`` and then `data_home`.

    See Also
    --------
    data_home : the directory of downloads.

    Examples
    --------
    >>> from manifoldry.datasets import find_data
    >>> path = find_data("coil20")
    >>> path is None or path.name == "coil20.npz"
    True
    """
    if name not in REGISTRY:
        raise ValueError(f"name={name!r} is unknown; pass one of {', '.join(REGISTRY)}")
    return locate(REGISTRY[name])


def search_path() -> list[Path]:
    """Return the directories that are searched, in order."""
    chosen = os.environ.get("MANIFOLDRY_DATA", "")
    places = [Path(chosen).expanduser()] if chosen else []
    try:
        places.append(data_home())
    except RuntimeError:  # there is no home directory
        if not places:
            raise DataNotFoundError(
                "there is no home directory for a cache; set MANIFOLDRY_DATA to the directory of "
                "the data, or XDG_CACHE_HOME"
            ) from None
    return places


def locate(file: DataFile) -> Path | None:
    """Return the first existing copy of a file."""
    paths = (directory / file.filename for directory in search_path())
    return next((path for path in paths if path.is_file()), None)


def fetch(file: DataFile, *, download_if_missing: bool = True) -> Arrays:
    """Read a file, downloading it first if it is missing, downloadable and allowed."""
    path = locate(file)
    if path is not None:
        return read(path, file)
    if not (file.downloadable and download_if_missing):
        raise DataNotFoundError(_missing_file_message(file))
    arrays = _download(file)
    _save(file, arrays)
    return arrays


def read(path: Path, file: DataFile) -> Arrays:
    """Read the arrays of a file and check keys, shapes and kinds of numbers."""
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {spec.key: _header(archive, spec.key) for spec in file.arrays}
        _check_each(headers, _wrong_type, file, path)  # before memory is allocated for the numbers
        with np.load(path, allow_pickle=False) as stored:
            arrays = {spec.key: stored[spec.key] for spec in file.arrays}
    except (PermissionError, DataFormatError):
        raise
    except _UNREADABLE as error:
        raise DataFormatError(f"{path} cannot be read ({error}); {_remedy(path, file)}") from error
    return check(arrays, file, path)


def _header(archive: zipfile.ZipFile, key: str) -> Header | None:
    """Shape and dtype of an array in an ``.npz`` file, without its numbers; None if missing."""
    if f"{key}.npy" not in archive.namelist():
        return None
    with archive.open(f"{key}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        old = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    return Header(shape, dtype)


def check(arrays: Arrays, file: DataFile, path: Path | str) -> Arrays:
    """Return the arrays, or raise an error for the first that does not match the registry."""
    _check_each(arrays, _wrong_type, file, path)
    _check_each(arrays, _out_of_range, file, path)
    return arrays


def _check_each(
    found: Mapping[str, Any],
    mismatch: Callable[[Any, ArraySpec], str | None],
    file: DataFile,
    path: Path | str,
) -> None:
    for spec in file.arrays:
        if wrong := mismatch(found.get(spec.key), spec):
            raise DataFormatError(f"{path}: array {spec.key!r} {wrong}; {_remedy(path, file)}")


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a compressed file, which other processes never see incomplete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_at_once(path) as stream:
        np.savez_compressed(stream, **dict(arrays))  # type: ignore[arg-type]  # numpy's stub


def _save(file: DataFile, arrays: Arrays) -> None:
    try:
        write(data_home() / file.filename, arrays)
    except (OSError, RuntimeError) as error:  # disk full or read-only, or no home directory
        message = (
            f"{file.filename} could not be kept ({error}), so the data will be downloaded again"
        )
        warnings.warn(
            f"{message}; set XDG_CACHE_HOME to a writable directory",
            ManifoldryWarning,
            stacklevel=4,
        )


def _wrong_type(array: Any, spec: ArraySpec) -> str | None:
    """Say what is wrong with the shape or dtype of an array, or its header."""
    if array is None:
        return f"is missing, expected {spec.kind} of shape {spec.shape}"
    if array.shape != spec.shape:
        return f"has shape {array.shape}, expected {spec.shape}"
    kind = _KINDS.get(array.dtype.kind, str(array.dtype))
    if kind == "text" and array.dtype.itemsize > _LONGEST_TEXT:
        return f"has dtype {array.dtype}, expected shorter text"
    return None if kind == spec.kind else f"has dtype {array.dtype}, expected {spec.kind}"


def _out_of_range(array: NDArray[Any], spec: ArraySpec) -> str | None:
    if spec.kind == "text":
        return None
    low, high = float(array.min()), float(array.max())
    if np.isfinite([low, high]).all() and spec.low <= low and high <= spec.high:
        return None
    return f"has values from {low:g} to {high:g}, expected {spec.low:g} to {spec.high:g}"


def _remedy(path: Path | str, file: DataFile) -> str:
    known = f"a known good copy has sha256 {file.sha256}"
    if file.downloadable:
        return f"delete it to download it again, or replace it ({known})"
    return f"replace it with a file that contains {file.contents()} ({known})"


def _missing_file_message(file: DataFile) -> str:
    places = " or ".join(str(directory / file.filename) for directory in search_path())
    hint = "" if os.environ.get("MANIFOLDRY_DATA") else ", or set MANIFOLDRY_DATA to its directory"
    return (
        f"{file.filename} was not found. Put it at {places}{hint}. It must be written by "
        f"numpy.savez_compressed and contain {file.contents()}. Source: {file.source}. "
        f"License: {file.license}. A known good copy has sha256 {file.sha256}."
    )


def _download(file: DataFile) -> Arrays:
    try:
        return check(_DOWNLOADS[file.name](), file, f"the download of {file.filename}")
    except (OSError, ValueError) as error:
        message = (
            f"{file.filename} could not be downloaded ({error}). {_missing_file_message(file)}"
        )
        raise DataNotFoundError(message) from error


def _openml_mnist() -> Arrays:
    from sklearn.datasets import fetch_openml

    # scikit-learn's faster parser needs pandas, which is not one of our dependencies.
    parser = "auto" if find_spec("pandas") else "liac-arff"
    digits = fetch_openml("mnist_784", version=1, as_frame=False, parser=parser)
    return {"X": digits.data.astype(np.uint8), "y": digits.target.astype(np.uint8)}


_DOWNLOADS: dict[str, Callable[[], Arrays]] = {"mnist": _openml_mnist}
