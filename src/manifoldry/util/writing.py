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

    If the writing fails, a previous file stays as it was, and nothing else is left. A symbolic
    link stays one: the file that it leads to is replaced.
    """
    with replaced_at_once(path) as temporary, temporary.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def replaced_at_once(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for libraries that open files themselves: the path of the temporary file."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is no regular file; name another")
    with _temporary_folder(path) as folder:
        temporary = folder / "new"
        yield temporary
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)


@contextmanager
def folder_replaced_at_once(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The same for a folder: the path of an empty one beside it, which takes its place.

    A previous folder is moved aside first, and removed at the end.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file; name another folder")
    with _temporary_folder(path) as parts:
        new, old = parts / "new", parts / "old"
        new.mkdir()
        yield new
        try:
            if path.exists():
                path.rename(old)
            new.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise


@contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path`, removed at the end; files in it have the usual permissions."""
    # What cannot be removed must not hide why the writing failed.
    with tempfile.TemporaryDirectory(
        dir=path.parent, prefix=path.stem, suffix=".part", ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
