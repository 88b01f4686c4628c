"""Sections of the page about the data: what is in them, and how they are connected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from manifoldry.reporting.html import Html, bullets, element, html_table
from manifoldry.reporting.results import Results
from manifoldry.reporting.words import FILLED_IN, and_more, counted
from manifoldry.util.hints import for_page

_LISTED = 10  # rows or columns in a list


def data_section(results: Results) -> Html:
    """What is in the data."""
    facts, missing = results.facts, results.facts.missing
    tiles = [
        ("rows", facts.n_rows, False),
        ("features", facts.n_columns, False),
        ("missing values", missing.n_cells, bool(missing.n_cells)),
        ("repeated rows", facts.n_duplicates, bool(facts.n_duplicates)),
        ("constant columns", len(facts.constant), bool(facts.constant)),
        ("outlying rows", len(results.graph.outlying), bool(results.graph.outlying)),
    ]
    shown = [
        element("div", element("dt", name), element("dd", f"{value:,}"),
                class_="flag" if flagged else None)
        for name, value, flagged in tiles
    ]  # fmt: skip
    sample = None
    if facts.n_examined < facts.n_rows:
        sample = element(
            "p",
            f"Missing values are counted in all rows; everything else here is based on "
            f"{facts.n_examined:,} rows, chosen at random.",
        )
    checks = [
        element("li", text, class_="flag" if flagged else None)
        for flagged, text in _checks(results)
    ]
    return element(
        "section", element("h2", "What is in the data"), sample,
        element("dl", shown, class_="tiles"), element("ul", checks, class_="checks"),
        _missing_table(results), _outlying_table(results), _labels_table(results), id="data",
    )  # fmt: skip


class _Check(NamedTuple):
    """A finding, and whether it needs attention."""

    flagged: bool
    text: str


def _checks(results: Results) -> Iterator[_Check]:
    facts, missing, far = results.facts, results.facts.missing, results.graph.outlying
    if missing.n_cells:
        filled = FILLED_IN[results.recipe.impute or "median"]
        part = missing.n_cells / (facts.n_rows * facts.n_columns)
        yield _Check(
            True,
            f"{counted(missing.n_cells, 'value is', 'values are')} missing ({part:.1%}), in "
            f"{counted(missing.n_rows, 'row')} and {counted(len(missing.columns), 'column')}; the "
            f"maps have {filled} there. First: "
            f"{_rows(results, missing.rows[:3])}.",
        )
    else:
        yield _Check(False, "No value is missing.")
    if facts.n_duplicates:
        pairs = "; ".join(
            f"{results.row_name(i)} repeats {results.row_name(j)}" for i, j in facts.duplicates[:3]
        )
        count = counted(facts.n_duplicates, "row is", "rows are")
        more = and_more(facts.n_duplicates - 3)
        yield _Check(True, f"{count} equal to an earlier row: {pairs}{more}.")
    else:
        yield _Check(False, "No row occurs twice.")
    if facts.constant:
        names = ", ".join(facts.constant[:_LISTED])
        count = counted(len(facts.constant), "column has", "columns have")
        more = and_more(len(facts.constant) - _LISTED)
        yield _Check(True, f"{count} a single value: {names}{more}.")
    yield _scales(results)
    if far:
        yield _Check(
            True,
            f"{counted(len(far), 'row is', 'rows are')} far from all others: at least "
            f"{far[-1][1]:.0f} times the usual distance to the {results.graph.n_neighbors} "
            "nearest neighbors.",
        )
    else:
        yield _Check(False, "No row is far from all others.")


def _scales(results: Results) -> _Check:
    facts = results.facts
    done = " The columns are standardized for the maps." if results.recipe.is_scaled else ""
    if facts.has_dominant_column and facts.dominant is not None:
        name, part = facts.dominant
        text = f"Column {name} has {part:.1%} of the variance of all {facts.n_columns} columns."
        return _Check(
            not done, text + (done or " Distances, and so the maps, depend on little else.")
        )
    if facts.has_uneven_scales and facts.deviations is not None:
        low, high = facts.deviations
        text = f"Standard deviations of the columns range from {low:.3g} to {high:.3g}."
        return _Check(not done, text + done)
    return _Check(False, "The columns have similar scales." + done)


def _missing_table(results: Results) -> Html | None:
    columns = results.facts.missing.columns
    if not columns:
        return None
    rows = [[name, f"{count:,}", f"{count / results.facts.n_rows:.1%}"]
            for name, count in columns[:_LISTED]]  # fmt: skip
    caption = f"Columns with missing values{_first_of(len(columns))}"
    return _folded("Where values are missing", html_table(
        caption, ["column", "missing", "of the rows"], rows, class_="numbers compact"))  # fmt: skip


def _outlying_table(results: Results) -> Html | None:
    far = results.graph.outlying
    if not far:
        return None
    rows = [[results.row_name(row), f"{ratio:.1f} ×"] for row, ratio in far[:_LISTED]]
    caption = (
        f"Rows far from all others{_first_of(len(far))}: mean distance to the "
        f"{results.graph.n_neighbors} nearest neighbors, in units of the median over all rows"
    )
    head = ["row", "distance"]
    return _folded("Which rows are far from all others", html_table(
        caption, head, rows, class_="numbers compact"))  # fmt: skip


def _labels_table(results: Results) -> Html | None:
    if not results.facts.labels:
        return None
    rows = []
    for each in results.facts.labels[:_LISTED]:
        frequent = ", ".join(f"{value or '(empty)'} ({count:,})"
                             for value, count in each.most_frequent)  # fmt: skip
        few = f"{each.rarest[0] or '(empty)'} ({each.rarest[1]:,})"
        rows.append([each.name, f"{each.n_values:,}", f"{each.n_missing:,}", frequent, few])
    head = ["label", "values", "missing", "most frequent", "rarest"]
    caption = f"Labels, which are not used to make the maps{_first_of(len(results.facts.labels))}"
    return html_table(caption, head, rows)


def structure_section(results: Results) -> Html:
    """Connectivity and dimension."""
    found = results.dimension
    parts: list[Html | None] = [
        element("h2", "How the data are connected, and their dimension"),
        bullets(_connections(results)),
    ]
    if found is None:
        parts.append(element("p", f"The dimension cannot be estimated: {results.dimension_error}."))
        return element("section", parts, id="structure")
    span = "" if found.low == found.high else f" (between {found.low} and {found.high})"
    parts += [
        element("h3", f"Intrinsic dimension: about {found.dimension}{span}"),
        element(
            "p",
            f"The data have {results.facts.n_columns:,} columns, but about this many numbers "
            "describe where a row is among its neighbors. A map with fewer coordinates leaves "
            "something out.",
            class_="lead",
        ),
        # The checks above name the column; the reason has its number.
        bullets(_plainly(text) for text in found.reasons if not text.startswith("Units")),
    ]
    estimates = [
        [method.replace("_", " "), f"{float(each.value):.3g}",
         "" if each.value.exact else f"{each.value.low:.3g} to {each.value.high:.3g}", each.note]
        for method, each in found.estimates.items()
    ]  # fmt: skip
    head = ["method", "estimate", "95 % interval", "based on"]
    inner = html_table("Estimates of the dimension, from the most local to the most global", head,
                  estimates, class_="estimates")  # fmt: skip
    parts.append(_folded("Estimates by eight methods", inner))
    return element("section", parts, id="structure")


def _connections(results: Results) -> Iterator[str]:
    graph = results.graph
    linked = f"If rows are linked with their {graph.n_neighbors} nearest neighbors"
    if len(graph.sizes) == 1:
        yield f"{linked}, all rows are connected."
    else:
        sizes = ", ".join(f"{size:,}" for size in graph.sizes[:6])
        largest = "the largest have" if len(graph.sizes) > 6 else "they have"
        yield f"{linked}, they are in {len(graph.sizes)} separate parts; {largest} {sizes} rows."
    if graph.separate:
        yield (
            f"{counted(len(graph.separate), 'row is', 'rows are')} in parts of at most 1 % of the "
            f"rows: {_rows(results, graph.separate[:3])}{and_more(len(graph.separate) - 3)}."
        )
    row, count = graph.hub
    yield (
        f"R{results.row_name(row)[1:]} is a neighbor of {count:,} rows, more than any "
        f"other; the mean is {graph.n_neighbors}."
    )
    if graph.n_unpopular:
        part = graph.n_unpopular / results.facts.n_examined
        yield (
            f"{counted(graph.n_unpopular, 'row is', 'rows are')} no other row's neighbor "
            f"({part:.0%}): their place on maps rests on their own neighbors alone."
        )


def _plainly(reason: str) -> str:
    """A reason without hints for Python, and with large numbers written out."""
    written = re.sub(r"\d\.\de\+\d\d", lambda found: f"{float(found[0]):.0f}", reason)
    return for_page(written)


def _folded(title: str, *parts: Html) -> Html:
    return element("details", element("summary", title), parts)


def _rows(results: Results, rows: tuple[int, ...]) -> str:
    return ", ".join(results.row_name(row) for row in rows)


def _first_of(count: int) -> str:
    return f" (first {_LISTED} of {count:,})" if count > _LISTED else ""
