"""Files that a page sends, in a folder of their own, within limits."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from threading import Lock
from typing import Any

from manifoldry.explorer.unpacked_size import unpacked_size

# Without Feather, of which it is not known how large it is unpacked.
_TABLES = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".parquet", ".pq", ".npy", ".npz")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class UploadLimits:
    """How much a page may send.

    Parameters
    ----------
    most_bytes : int
        Size of one file.
    most_unpacked : int
        Bytes of a compressed file when it is unpacked.
    most_files : int
        Files that are being sent at the same time; when another begins, the oldest is dropped.
    """

    most_bytes: int = 200_000_000
    most_unpacked: int = 2_000_000_000
    most_files: int = 4


@dataclass
class _Upload:
    path: Path
    size: int
    received: int = 0


@dataclass
class Uploads:
    """Files that pages send in parts.

    A file gets a name of ours, of which only the ending is that of the page, so that it cannot
    lead anywhere else; it is read as data of that format, which runs nothing.

    Parameters
    ----------
    folder : Path
        Where they are kept.
    limits : UploadLimits
        How much may be sent.
    """

    folder: Path
    limits: UploadLimits = UploadLimits()
    _files: dict[str, _Upload] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def receive(self, upload: str | None, name: str, offset: int, size: int, part: bytes) -> str:
        """Add a part to a file, or begin one; returns its identifier."""
        with self._lock:
            if upload is None:
                upload = self._begin(name, size)
            found = self._known(upload)
            end = offset + len(part)
            if offset != found.received or end > found.size:
                self._drop(upload)
                raise ValueError("the parts of the file do not fit together; send it again")
            with found.path.open("ab") as file:
                file.write(part)
            found.received = end
            return upload

    def _begin(self, name: str, size: int) -> str:
        if not 0 < size <= self.limits.most_bytes:
            raise ValueError(
                f"the file has {size / 1e6:.4g} MB, but 0 < size <= "
                f"{self.limits.most_bytes / 1e6:.4g} MB is taken here; place a larger one with "
                "manifoldry transform MODEL FILE"
            )
        ending = _ending(name)
        while len(self._files) >= self.limits.most_files:
            self._drop(next(iter(self._files)))
        upload = secrets.token_hex(8)
        place = self.folder / upload
        place.mkdir(parents=True)
        self._files[upload] = _Upload(place / f"rows{ending}", size)
        return upload

    def finished(self, upload: str) -> Path:
        """The file, or the folder of an image; `discard` it after use."""
        with self._lock:
            found = self._known(upload)
            if found.received < found.size:
                raise ValueError(
                    f"only {found.received} of {found.size} bytes have arrived; send the rest first"
                )
        size = unpacked_size(found.path, self.limits.most_unpacked)
        if size > self.limits.most_unpacked:
            self.discard(upload)
            raise ValueError(
                f"the file has more than {self.limits.most_unpacked / 1e6:.4g} MB when it is "
                "unpacked; place it with manifoldry transform MODEL FILE"
            )
        return found.path.parent if found.path.suffix in _IMAGES else found.path

    def discard(self, upload: str) -> None:
        """Delete a file."""
        with self._lock:
            self._drop(upload)

    def _known(self, upload: str) -> _Upload:
        if upload not in self._files:
            raise ValueError("this file is not here any more; send it again")
        return self._files[upload]

    def _drop(self, upload: str) -> None:
        if (found := self._files.pop(upload, None)) is not None:
            shutil.rmtree(found.path.parent, ignore_errors=True)


def _ending(name: str) -> str:
    """The ending of a file that can be read, such as ``.csv.gz``."""
    endings = [each.lower() for each in PurePath(name).suffixes[-2:]]
    last = endings[-1] if endings else ""
    if last == ".gz" and len(endings) == 2 and endings[0] in _TABLES[:6]:
        return "".join(endings)
    if last in (*_TABLES, *_IMAGES):
        return last
    raise ValueError(
        f"a file with the ending {last or '(none)'!r} is not taken; send a table: "
        f"{', '.join(_TABLES)}, text also with .gz, or an image"
    )
