"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_at_once(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, which replaces it at the end.

    If the writing fails, a previous file stays as it was, and nothing else is left.
    """
    with replaced_at_once(path) as temporary, temporary.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def replaced_at_once(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for libraries that open files themselves: the path of the temporary file."""
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_permissions(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def folder_replaced_at_once(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for a folder: the path of an empty one beside it, which takes its place.

    A previous folder is moved aside first, and removed at the end.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file; name another folder")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=path.stem, suffix=".part") as parts:
        new, old = Path(parts) / "new", Path(parts) / "old"
        new.mkdir()
        yield new
        if path.exists():
            path.rename(old)
        new.rename(path)


def _permissions(path: Path) -> int:
    """Permissions of the file that is replaced, or those of a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
