"""Delimited text: encoding, delimiter and header are recognized."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manifoldry.io.extras import optional_module
from manifoldry.io.table import DataFileError

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 2**20  # characters by which a file is recognized
_DELIMITERS = ",;\t| "
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "?", "-", "#N/A"]


def read_text(source: str | Path, delimiter: str | None = None) -> tuple[pa.Table, list[str]]:
    """An arrow table of a text file, or of standard input for ``"-"``, and notes about it."""
    name = "standard input" if str(source) == "-" else str(source)
    raw = sys.stdin.buffer.read() if str(source) == "-" else Path(source).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{name} is a damaged gzip file: {error}") from None
    text, notes = _decoded(raw, name)
    comments, text = _divided_comments(text)
    if not text.strip():
        raise DataFileError(f"{name} is empty")
    sample = [line.strip(" ") for line in text[:_SAMPLE].splitlines()[:50] if line.strip()]
    mark = _given_delimiter(delimiter) or _delimiter(sample)
    if comments:
        header = comments[-1].lstrip("# \t")
        if len(_fields(header, mark)) == len(_fields(sample[0], mark)) > 1:
            text, sample = f"{header}\n{text}", [header, *sample]
        notes.append(f"{name} begins with {len(comments)} lines of comments")
    comma = mark != "," and _has_decimal_commas(sample, mark)
    return _parsed(text, name, mark, "," if comma else ".", _has_header(sample, mark)), notes


def _given_delimiter(delimiter: str | None) -> str | None:
    """The delimiter; a tab can be written as shells pass it."""
    delimiter = {"\\t": "\t", "tab": "\t", "space": " "}.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise DataFileError(f"the delimiter {delimiter!r} must be one character, tab or space")
    return delimiter


def _divided_comments(text: str) -> tuple[list[str], str]:
    """The lines at the beginning that start with ``#``, and the rest."""
    comments, start = [], 0
    while text.startswith("#", start):
        end = text.find("\n", start) + 1 or len(text)
        comments.append(text[start:end].strip())
        start = end
    return comments, text[start:]


def _decoded(raw: bytes, name: str) -> tuple[str, list[str]]:
    if b"\x00" in raw[:1000] and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataFileError(
            f"{name} is neither text nor a format that is known by its suffix; save it as CSV, "
            "Parquet or .npy"
        )
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            try:
                return raw.decode(encoding), []
            except UnicodeDecodeError as error:
                raise DataFileError(f"{name} is damaged {encoding} text: {error.reason}") from None
    try:
        return raw.decode("utf-8"), []
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), [
            f"{name} is not UTF-8; read as Windows-1252"
        ]


def _delimiter(lines: Sequence[str]) -> str:
    """The mark that divides all lines into the same number of fields.

    Of several, one that divides the first line like the others, then any but a space, which labels
    may contain, then the one of the most fields.
    """

    def score(mark: str) -> tuple[bool, bool, bool, int]:
        counts = [len(_fields(line, mark)) for line in lines]
        usual = max(set(counts), key=counts.count)
        is_regular = usual > 1 and counts.count(usual) > 0.8 * len(counts)
        return is_regular, counts[0] == usual, mark != " ", usual

    best = max(_DELIMITERS, key=score)
    return best if score(best)[0] else ","


def _fields(line: str, mark: str) -> list[str]:
    line = " ".join(line.split()) if mark == " " else line
    try:
        return next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])
    except csv.Error:  # such as a field of more than 128 KB: the mark is another
        return [line]


def _is_number(text: str, decimal: str = ".") -> bool:
    try:
        float(text.strip().replace(decimal, "."))
    except ValueError:
        return text.strip() in _MISSING
    return True


def _has_decimal_commas(lines: Sequence[str], mark: str) -> bool:
    cells = [cell for line in lines[1:] for cell in _fields(line, mark) if "," in cell]
    return bool(cells) and all(_is_number(cell, ",") for cell in cells)


def _has_header(lines: Sequence[str], mark: str) -> bool:
    """Whether the first line has texts where the second has numbers."""
    first = _fields(lines[0], mark)
    if len(lines) == 1:
        return not any(_is_number(cell) for cell in first)
    second = _fields(lines[1], mark)
    decimal = "," if _has_decimal_commas(lines, mark) else "."
    pairs = zip(first, second, strict=False)
    changed = any(_is_number(b, decimal) and not _is_number(a, decimal) for a, b in pairs)
    return changed or not any(_is_number(cell, decimal) for cell in [*first, *second])


def _parsed(text: str, name: str, mark: str, decimal: str, header: bool) -> pa.Table:
    pa = optional_module("pyarrow", "cli", "reading text files")
    arrow_csv = optional_module("pyarrow.csv", "cli", "reading text files")
    if mark == " ":  # any number of them divides two fields
        text = "\n".join(" ".join(line.split()) for line in text.splitlines())
    try:
        return arrow_csv.read_csv(
            io.BytesIO(text.encode("utf-8")),
            read_options=arrow_csv.ReadOptions(
                autogenerate_column_names=not header,
                block_size=_block_size(text),
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=mark, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                null_values=_MISSING, strings_can_be_null=True, decimal_point=decimal
            ),
        )
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("CSV parse error: ").splitlines()[0][:150]
        if "\n" not in text.strip():
            raise DataFileError(
                f"{name} has a single line of {len(text)} characters; data have one line per row"
            ) from None
        reason = _uneven_row(text, mark) or reason
        raise DataFileError(
            f"{name} cannot be read with the delimiter {mark!r}: {reason}; name another with "
            "--delimiter, or mend the row"
        ) from None


def _uneven_row(text: str, mark: str) -> str | None:
    """The first row with another number of fields than the first, or None if all have the same."""
    try:
        rows = csv.reader(io.StringIO(text), delimiter=mark)
        expected = len(next(rows))
        for row in rows:
            if row and len(row) != expected:
                return f"line {rows.line_num} has {len(row)} fields, the first line has {expected}"
    except csv.Error:  # such as a field of more than 128 KB
        pass
    return None


def _block_size(text: str) -> int:
    """Bytes that are parsed at once: enough for several rows, however long they are."""
    first = text.find("\n", 0, 2**28)
    longest = 2**28 if first < 0 else first
    return int(min(max(2**20, 32 * longest), 2**30))
