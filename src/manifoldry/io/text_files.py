"""Delimited text: encoding, delimiter and header are recognized."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from manifoldry.io.extras import optional_module
from manifoldry.io.table import MISSING_NUMBERS, DataFileError

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 2**20  # characters by which a file is recognized
_DELIMITERS = ",;\t| "
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_MAX_UNPACKED = 2**32  # bytes; beyond, a gzip file may be at most so many times larger unpacked:
_MAX_RATIO = 100


def read_text(
    source: str | Path, delimiter: str | None = None, header: bool | None = None
) -> tuple[pa.Table, list[str]]:
    """An arrow table of a text file, or of standard input for ``"-"``, and notes about it.

    The first line has the names of the columns if `header` is true; by default it is recognized.
    """
    name = "standard input" if str(source) == "-" else str(source)
    raw = sys.stdin.buffer.read() if str(source) == "-" else Path(source).read_bytes()
    text, notes = _decoded(_unpacked(raw, name) if raw[:2] == b"\x1f\x8b" else raw, name)
    comments, text = _divided_comments(text)
    if not text.strip():
        raise DataFileError(f"{name} is empty")
    sample = [line.strip(" ") for line in text[:_SAMPLE].splitlines()[:50] if line.strip()]
    mark = _given_delimiter(delimiter) or _delimiter(sample)
    if comments:
        notes.append(f"{name} begins with {len(comments)} lines of comments")
        names = comments[-1].lstrip("# \t")
        is_as_long = len(_fields(names, mark)) == len(_fields(sample[0], mark)) > 1
        if header is not False and is_as_long and _has_header([names, *sample], mark):
            text, sample, header = f"{names}\n{text}", [names, *sample], True
    commas = [] if mark == "," else _decimal_commas(sample, mark)
    if commas:
        notes.append(f"decimal commas: {commas[0]} is read as {commas[0].replace(',', '.')}")
    if header is None:
        header = _has_header(sample, mark)
        notes += _notes_on_header(header, _fields(sample[0], mark))
    return _parsed(text, name, mark, "," if commas else ".", header), notes


def _unpacked(raw: bytes, name: str) -> bytearray:
    """The bytes of a gzip file, of which a small one can have more than fit into memory."""
    most = max(_MAX_UNPACKED, _MAX_RATIO * len(raw))
    unpacked = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while len(unpacked) <= most and (part := file.read(2**20)):
                unpacked += part
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(f"{name} is a damaged gzip file: {error}") from None
    if len(unpacked) > most:
        raise DataFileError(
            f"{name} has {len(raw)} bytes, but more than {most} when it is unpacked; if that is "
            "meant, unpack it first with gunzip"
        )
    return unpacked


def _notes_on_header(header: bool, first: Sequence[str]) -> list[str]:
    """What to say about a first line whose meaning was recognized."""
    if not header:
        return ["no header recognized, so the first line is data; --header if it has names"]
    if any(_is_whole(cell) for cell in first):
        return ["the first line, with numbers, is taken as names of columns; --no-header if not"]
    return []


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


def _decoded(raw: bytes | bytearray, name: str) -> tuple[str, list[str]]:
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
        return text.strip() in MISSING_NUMBERS
    return True


def _is_whole(text: str) -> bool:
    return text.strip().removeprefix("-").isdecimal()


def _decimal_commas(lines: Sequence[str], mark: str) -> list[str]:
    """The cells with commas after the first line, if all of them are numbers."""
    cells = [cell for line in lines[1:] for cell in _fields(line, mark) if "," in cell]
    return cells if all(_is_number(cell, ",") for cell in cells) else []


def _has_header(lines: Sequence[str], mark: str) -> bool:
    """Whether the first line has texts where the second has numbers, or numbers as names."""
    first = _fields(lines[0], mark)
    if len(lines) == 1:
        return not any(_is_number(cell) for cell in first)
    rows = [_fields(line, mark) for line in lines[1:]]
    decimal = "," if _decimal_commas(lines, mark) else "."
    pairs = zip(first, rows[0], strict=False)
    changed = any(_is_number(b, decimal) and not _is_number(a, decimal) for a, b in pairs)
    without_numbers = not any(_is_number(cell, decimal) for cell in [*first, *rows[0]])
    return changed or without_numbers or _are_names(first, rows, decimal)


def _are_names(first: Sequence[str], rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether a line names columns by numbers, such as years or 0, 1, 2.

    They are different whole numbers above columns of mostly other numbers, and the line begins
    with a text (which is then above texts), or the numbers follow each other.
    """
    places = [j for j, cell in enumerate(first) if _is_whole(cell)]
    numbers = [int(first[j]) for j in places]
    others = [cell.strip() for cell in first if not _is_whole(cell)]
    if len(set(numbers)) < len(numbers) or any(cell and _is_number(cell) for cell in others):
        return False
    for j in places:
        below = [row[j] for row in rows if j < len(row) and row[j].strip() not in MISSING_NUMBERS]
        parts = [cell for cell in below if _is_number(cell, decimal) and not _is_whole(cell)]
        if 2 * len(parts) <= len(below):
            return False
    follow = len(numbers) > 1 and all(b == a + 1 for a, b in pairwise(numbers))
    return follow or bool(numbers and others and first[0].strip() == others[0] != "")


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
                null_values=MISSING_NUMBERS, strings_can_be_null=False, decimal_point=decimal
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
