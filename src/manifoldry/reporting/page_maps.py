"""Sections of the page about the maps: drawings, quality, and where not to trust them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from manifoldry.metrics.summary import DEFAULT_THRESHOLDS as LIMITS
from manifoldry.reporting.drawing import MOST_COLORINGS, MOST_DRAWN
from manifoldry.reporting.html import Html, bullets, element, html_table, number
from manifoldry.reporting.maps import MethodMap
from manifoldry.reporting.metric_words import METRIC_COLUMNS, page_sentences
from manifoldry.reporting.results import Results
from manifoldry.reporting.verdict import trust_grade
from manifoldry.reporting.words import and_more

_WORST = 6  # rows of a map that are listed as least trustworthy
_HELP = (
    "Point at a row to see it on all maps; click to keep it, arrow keys on a map go to the next "
    "row, Escape lets go."
)


def maps_section(results: Results) -> Html:
    """The drawings, with what they are colored by."""
    made = results.drawn_maps
    n = len(results.rows)
    drawn = f"{MOST_DRAWN:,} of {n:,} rows, chosen at random, are drawn. " if n > MOST_DRAWN else ""
    head = element("h2", f"{len(made)} map{'s' * (len(made) != 1)} of the same rows")
    text = (
        f"{drawn}The maps are turned and scaled to match {results.maps[0].name}, so that the same "
        "rows are in similar places; the axes have no unit."
    )
    figures = [_figure(results, each, i) for i, each in enumerate(made)]
    figures += [_failure(each) for each in results.maps if each.error]
    return element(
        "section", head, element("p", text, class_="lead"),
        element("noscript", element("p", "The maps are drawn by a script, which is switched off.")),
        _controls(results) if made else None,
        element("div", id="legend"), element("div", figures, class_="maps"),
        element("p", _HELP, id="said", class_="said", aria_live="polite", data_help=_HELP),
        id="maps",
    )  # fmt: skip


def _controls(results: Results) -> Html:
    names = list(results.labels)[:MOST_COLORINGS]
    options = [element("option", name, value=i) for i, name in enumerate(names)]
    options.append(element("option", "trustworthiness of each row", value="trust"))
    choice = element("label", "Color by ", element("select", options, id="color-by"))
    find = element(
        "label", "Find row ",
        element("input", type="search", id="find-row", autocomplete="off", placeholder="name"),
    )  # fmt: skip
    return element("div", choice, find, class_="controls")


def _figure(results: Results, each: MethodMap, i: int) -> Html:
    assert each.embedding is not None
    badge = None
    if each.name == results.verdict.name:
        word = "least bad" if results.verdict.grade == "poor" else "recommended"
        badge = element("span", word, class_="badge")
    placed = np.isfinite(each.embedding).all(axis=1)
    caption = f"Neighbors: {trust_grade(each)} ({each.metrics['trustworthiness']:.2f})."
    if each.stability is not None:
        caption += f" {each.stability.verdict.capitalize()}."
    if not placed.all():
        caption += f" {int((~placed).sum()):,} rows have no place on it."
    if each.embedding.shape[1] > 2:
        caption += f" The first 2 of {each.embedding.shape[1]} coordinates."
    canvas = element(
        "canvas", id=f"map-{i}", tabindex=0, role="img",
        aria_label=f"Map of {int(placed.sum()):,} rows by {each.name}. {caption} Arrow keys go "
        "from row to row.",
    )  # fmt: skip
    return element(
        "figure", element("h3", each.name, badge), canvas,
        element("div", class_="tip", hidden=True), element("figcaption", caption), class_="map",
    )  # fmt: skip


def _failure(each: MethodMap) -> Html:
    return element(
        "div", element("h3", each.name), element("p", f"This method failed: {each.error}"),
        class_="map failed",
    )  # fmt: skip


def quality_section(results: Results) -> Html:
    """Metrics, redundancy and stability in one table."""
    made = results.drawn_maps
    shown = [name for name in METRIC_COLUMNS if any(name in each.metrics for each in made)]
    head = ["map", *(METRIC_COLUMNS[name].title.replace("-", "\N{SOFT HYPHEN}") for name in shown),
            "stability"]  # fmt: skip
    rows = [
        [each.name, *(_cell(made, each, name) for name in shown), _stability(each)]
        for each in made
    ]  # fmt: skip
    terms = [
        (
            element("dt", METRIC_COLUMNS[name].title.replace("-", "")),
            element("dd", METRIC_COLUMNS[name].help),
        )
        for name in shown
    ]
    terms.append((element("dt", "stability"), element("dd", _stability_text(results))))
    caption = "Quality of the maps; ★ marks the best value"
    return element(
        "section", element("h2", "Quality of the maps"),
        html_table(caption, head, rows, class_="numbers"),
        element("details", element("summary", "What the columns mean"),
                element("dl", terms, class_="terms")),
        _redundancy(made), id="quality",
    )  # fmt: skip


def _cell(made: list[MethodMap], each: MethodMap, name: str) -> Html | str:
    value = each.metrics.get(name)
    values = [other.metrics[name] for other in made if name in other.metrics]
    best = max(values) if METRIC_COLUMNS[name].larger_is_better else min(values)
    if value is not None and len(values) > 1 and abs(value - best) < 1e-12:
        return element("span", number(value), class_="best")
    return number(value)


def _stability(each: MethodMap) -> str:
    if each.stability is None:
        return "–"
    if each.stability.dominated_coordinates:
        return "dominated"
    return f"{each.stability.verdict} ({float(each.stability.variability):.2f})"


def _stability_text(results: Results) -> str:
    options = results.options
    if options.n_refits == 0:
        return "Not measured: it was switched off."
    count = min(len(results.rows), options.most_refit)
    of_all = "all" if count == len(results.rows) else "a random sample of"
    return (
        f"How far rows move if the method is fitted again to four fifths of the rows, in units of "
        f"the spread of the map ({options.n_refits} refits, {of_all} {count:,} rows). Stable up to "
        "0.1, unstable above 0.3. Dominated: a few rows hold most of the spread, so nothing can be "
        "said about the others. A dash: it cannot be measured."
    )


def _redundancy(made: list[MethodMap]) -> Html | None:
    rows = [
        [
            each.name,
            ", ".join(number(value) for value in each.redundancy),
            "redundant" if min(each.redundancy) < LIMITS.redundant else "not redundant",
        ]
        for each in made
        if len(each.redundancy) > 1
    ]
    if not rows:
        return None
    caption = (
        "Redundancy of spectral coordinates: the part of each that those before it do not predict; "
        f"below {LIMITS.redundant} a coordinate repeats them"
    )
    return html_table(caption, ["map", "each coordinate", "verdict"], rows, class_="compact")


def trust_section(results: Results) -> Html:
    """The least trustworthy rows and region of each map."""
    cards = [_trust_card(results, each) for each in results.drawn_maps]
    text = (
        "Each row has a trustworthiness of its own on each map: whether its neighbors there are "
        "its neighbors in the data. Below 0.9 many of them are not."
    )
    return element(
        "section", element("h2", "Where not to trust each map"),
        element("p", text, class_="lead"), element("div", cards, class_="cards"), id="trust",
    )  # fmt: skip


def _trust_card(results: Results, each: MethodMap) -> Html:
    order = np.argsort(np.where(np.isfinite(each.trust), each.trust, np.inf), kind="stable")
    label = next(iter(results.labels), None)
    rows = []
    for i in order[:_WORST]:
        cells = [results.row_name(int(results.rows[i])), number(each.trust[i])]
        rows.append(cells + ([] if label is None else [str(results.labels[label][i])]))
    head = ["row", "trustworthiness", *([] if label is None else [label])]
    grade = trust_grade(each)
    return element(
        "div",
        element("h3", each.name, element("span", f"neighbors: {grade}", class_=f"badge {grade}")),
        bullets([*_dominating(results, each), *_sentences(each), *_region(results, each)]),
        html_table("Least trustworthy rows", head, rows),
        _messages(each),
        class_="card",
    )


def _region(results: Results, each: MethodMap) -> list[str]:
    region = results.regions.get(each.name)
    if region is None:
        return []
    names = _named(results, region.rows[:3])
    return [
        f"The least trustworthy region is at the {region.place} of the drawing, where it is "
        f"{region.trust:.2f} on average: around {names}."
    ]


def _sentences(each: MethodMap) -> list[str]:
    assert each.assessment is not None
    return page_sentences(each.assessment.summary)


def _dominating(results: Results, each: MethodMap) -> list[str]:
    """Which rows hold most of the variance of a coordinate."""
    assert each.assessment is not None
    return [
        f"Coordinate {found.coordinate + 1} shows little but "
        f"{_named(results, found.points[:3])}{and_more(len(found.points) - 3)}, with "
        f"{found.fraction:.0%} of its variance."
        for found in each.assessment.dominated_coordinates
    ]


def _named(results: Results, points: Iterable[Any]) -> str:
    return ", ".join(results.row_name(int(results.rows[i])) for i in points)


def _messages(each: MethodMap) -> Html | None:
    listed = bullets(each.messages, class_="small")
    if listed is None:
        return None
    count = len(each.messages)
    title = (
        f"{count} warning{'s' * (count > 1)} of the fit; mapped rows and coordinates are counted "
        "from 0 there"
    )
    return element("details", element("summary", title), listed)
