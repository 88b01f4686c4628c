"""How large a compressed file is when it is unpacked, without unpacking it into memory."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from pathlib import Path

from manifoldry.io.extras import optional_module

_PART = 2**20  # bytes that are unpacked at once
_NUMBER = 8  # bytes of a number in memory


def unpacked_size(path: Path, most: int) -> int:
    """Bytes of a file when it is unpacked; of gzip, counted no further than `most`.

    A damaged file has the size that it has: reading it says what is wrong.
    """
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return sum(each.file_size for each in archive.infolist())
        if path.suffix == ".gz":
            return _counted(path, most)
        if path.suffix in (".parquet", ".pq"):
            found = optional_module("pyarrow.parquet", "cli", "reading Parquet").read_metadata(path)
            groups = (found.row_group(i) for i in range(found.num_row_groups))
            texts = sum(each.total_byte_size for each in groups)  # which can be long
            return max(int(found.num_rows * found.num_columns * _NUMBER), int(texts))
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error):
        pass
    return path.stat().st_size


def _counted(path: Path, most: int) -> int:
    size = 0
    with gzip.open(path) as file:
        while size <= most and (part := file.read(_PART)):
            size += len(part)
    return size
