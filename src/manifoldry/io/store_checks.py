"""Zarr stores and HDF5 files of other people, without what runs code or is in other files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manifoldry.io.extras import MissingExtraError, optional_module
from manifoldry.io.table import DataFileError


def opened_zarr(path: Path) -> Any:
    """A Zarr array or group of numbers and texts alone; DataFileError if it has other objects."""
    zarr = optional_module("zarr", "zarr", "reading Zarr")
    if int(zarr.__version__.split(".")[0]) < 3:
        raise MissingExtraError(
            f"reading Zarr needs version 3 of the package zarr, but {zarr.__version__} is "
            "installed: pip install --upgrade 'manifoldry[zarr]'"
        )
    store = zarr.open(str(path), mode="r")
    members = [("", store)] if hasattr(store, "shape") else store.members(max_depth=None)
    for name, each in members:
        if hasattr(each, "shape") and _has_objects(each.metadata.to_dict()):
            raise DataFileError(
                f"{path / name} contains Python objects, which are not loaded, since they could "
                "run code; save numbers and texts"
            )
    return store


def _has_objects(about: dict[str, Any]) -> bool:
    """Whether an array with this metadata has objects that are not text, or a codec of pickles."""
    codecs = str([about.get(name) for name in ("filters", "compressor", "codecs")])
    return "pickle" in codecs or ("|O" in str(about.get("dtype")) and "vlen-utf8" not in codecs)


@contextmanager
def opened_hdf5(path: Path, purpose: str) -> Iterator[Any]:
    """An HDF5 file; DataFileError if parts of it are in other files, which it could reveal."""
    h5py = optional_module("h5py", "anndata", purpose)

    def outside(name: str, item: Any) -> str | None:
        """The name of a link or a dataset that leads to another file, which ends the visit."""
        is_data = isinstance(item, h5py.Dataset)
        is_link = isinstance(item, h5py.ExternalLink)
        return name if is_link or (is_data and (item.is_virtual or item.external)) else None

    with path.open("rb"):  # for the usual errors: h5py raises OSError for all
        pass
    with h5py.File(path, "r") as file:
        name = file.visititems_links(outside) or file.visititems(outside)
        if name is not None:
            raise DataFileError(
                f"{name!r} of {path} is in another file, which is not read; copy it into the file"
            )
        yield file
