"""Reading data of any format into a table."""

from __future__ import annotations

import os
from pathlib import Path

from manifoldry.io.annotated_files import is_annotated_store, read_annotated
from manifoldry.io.array_files import read_npy, read_npz, read_zarr
from manifoldry.io.arrow_files import read_arrow
from manifoldry.io.columns import ColumnChoice
from manifoldry.io.image_folders import read_image_folder
from manifoldry.io.table import DataFileError, Table, check_finite
from manifoldry.io.text_files import read_text

_ARRAYS = {".npy": read_npy, ".npz": read_npz, ".zarr": read_zarr}
_ARROW = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")


def read_table(
    path: str | os.PathLike[str],
    choice: ColumnChoice | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    key: str | None = None,
    missing: bool = False,
    graph: bool = False,
) -> Table:
    r"""Read rows of numbers, with names of the rows and labels, from a file.

    Text (CSV, TSV, also compressed by gzip), Parquet, Feather, Arrow, ``.npy`` (mapped into
    memory), ``.npz``, sparse ``.npz``, Zarr, ``.h5ad``, and folders of images are recognized by
    the suffix; a file of another suffix is read as text.

    Parameters
    ----------
    path : str or path
        The file or folder, or ``"-"`` for text on standard input.
    choice : ColumnChoice, optional
        Which columns are features, labels and names of rows; what is not said is recognized.
    delimiter : str, optional
        Delimiter of a text file; by default it is recognized.
    header : bool, optional
        Whether the first line of a text file has the names of the columns; by default it is
        recognized.
    key : str, optional
        Entry of ``obsm``, ``layers`` or ``obsp`` of an AnnData (an ``.h5ad`` file, or a Zarr
        store) to read instead of ``X``.
    missing : bool, default=False
        Whether to return missing values as NaN; by default the first of them is an error.
    graph : bool, default=False
        Whether `key` may be an entry of ``obsp``, whose values are of pairs of rows; by default
        it is an error, so that they are not taken for features.

    Returns
    -------
    Table
        The features, with the names and labels of the rows, and notes on what was recognized.

    Raises
    ------
    DataFileError
        If the file cannot be used as data; the message has the place in it and the remedy.

    See Also
    --------
    write_table : writes a table.
    ColumnChoice : which columns are what.
    manifoldry.reporting.read_data : the same for arrays and data frames.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "flowers.csv"
    ...     _ = file.write_text("width,species\n1.5,iris\n0.5,iris\n1,rose\n2,rose\n")
    ...     table = read_table(file)
    >>> table.names, table.X.shape, list(table.labels)
    (('width',), (4, 1), ['species'])
    """
    choice = ColumnChoice() if choice is None else choice
    table = _read(path, choice, (delimiter, header), key)
    if table.is_graph and not graph:
        raise DataFileError(
            f"{key!r} is in obsp of {path}, which has distances or weights of pairs, not features; "
            "pass graph=True to read_table, or --method isomap --set metric=precomputed to embed "
            "(for weights, --method diffusion-maps --set affinity=precomputed)"
        )
    if 0 in table.X.shape:
        raise DataFileError(
            f"{path} has no data: {table.X.shape[0]} rows, {table.X.shape[1]} features"
        )
    try:
        check_finite(table, missing)
    except DataFileError as error:
        raise DataFileError(f"{path}: {error}") from None
    return table


def _read(
    path: str | os.PathLike[str],
    choice: ColumnChoice,
    text: tuple[str | None, bool | None],
    key: str | None,
) -> Table:
    file = Path(path)
    suffix = file.suffix.lower()
    annotated = suffix == ".h5ad" or is_annotated_store(file)
    if key is not None and not annotated:
        raise DataFileError(f"{path} is no AnnData, so it has no entry {key!r}")
    if str(path) == "-":
        return _from_text("-", choice, *text)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if annotated:
        return read_annotated(file, choice, key)
    if suffix in _ARRAYS:
        return choice.apply_to_array(_ARRAYS[suffix](file), str(path))
    if file.is_dir() and suffix not in _ARROW:  # Dask writes Parquet as a folder
        return choice.apply_to_array(read_image_folder(file), str(path))
    if suffix in _ARROW:
        return choice.apply(read_arrow(file), str(path))
    return _from_text(file, choice, *text)


def _from_text(
    source: str | Path, choice: ColumnChoice, delimiter: str | None, header: bool | None
) -> Table:
    rows, notes = read_text(source, delimiter, header)
    table = choice.apply(rows, "standard input" if source == "-" else str(source))
    for note in notes:
        table = table.with_note(note)
    if Path(source).suffix.lower().removesuffix(".gz") not in ("", *_TEXT):
        table = table.with_note(f"{source} has an unknown suffix; read as text")
    return table
