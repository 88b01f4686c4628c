"""Tables in the formats of Apache Arrow: Parquet, Feather and Arrow files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from manifoldry.io.extras import optional_module
from manifoldry.io.parquet_files import read_parquet
from manifoldry.io.table import DataFileError

if TYPE_CHECKING:
    import pyarrow as pa


def read_arrow(path: Path) -> pa.Table:
    """An arrow table of a Parquet file, or of a Feather or Arrow file."""
    arrow = optional_module("pyarrow", "cli", f"reading {path.name}")
    is_parquet = path.suffix.lower() in (".parquet", ".pq")
    module = "pyarrow.parquet" if is_parquet else "pyarrow.feather"
    reader = optional_module(module, "cli", f"reading {path.name}")
    try:
        table = read_parquet(path) if is_parquet else reader.read_table(path)
        table.validate(full=True)  # a damaged text could otherwise end the process
        return table
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # such as a missing permission
        reason = str(error).splitlines()[0][:120]
        kind = "Parquet" if is_parquet else "Feather or Arrow"
        raise DataFileError(f"{path} is damaged, or no {kind} file: {reason}") from error
