"""The HTML page: its frame, verdict, advice and recipe."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from manifoldry.reporting.drawing import drawing_data
from manifoldry.reporting.html import (
    Html,
    bullets,
    concatenated,
    element,
    html_table,
    number,
    script_data,
)
from manifoldry.reporting.page_data import data_section, structure_section
from manifoldry.reporting.page_maps import maps_section, quality_section, trust_section
from manifoldry.reporting.results import Results
from manifoldry.util.writing import written_at_once

_SECTIONS = {
    "verdict": "Verdict",
    "data": "Data",
    "structure": "Structure",
    "maps": "Maps",
    "quality": "Quality",
    "trust": "Where not to trust",
    "advice": "Advice",
    "repeat": "Do it again",
}


def write_page(path: Path, results: Results) -> None:
    """Write the page; a previous file stays if the writing fails."""
    text = page(results).encode("utf-8")
    with written_at_once(path) as file:
        file.write(text)


def page(results: Results) -> str:
    """The whole page."""
    title = results.recipe.source.title
    parts = files("manifoldry.reporting")
    sections = [
        _verdict_section(results),
        data_section(results),
        structure_section(results),
        maps_section(results),
        quality_section(results),
        trust_section(results),
        _advice_section(results),
        _recipe_section(results),
    ]
    return Template(parts.joinpath("page.html").read_text("utf-8")).substitute(
        title=concatenated([f"Report on {title}"]),
        generator=concatenated([f"manifoldry {results.versions['manifoldry']}"]),
        style=parts.joinpath("page.css").read_text("utf-8"),
        header=_header(title, results),
        main=concatenated(sections),
        footer=_footer(results),
        data=script_data("drawing", drawing_data(results)),
        script=parts.joinpath("page.js").read_text("utf-8"),
    )


def _header(title: str, results: Results) -> Html:
    facts = results.facts
    about = []
    if results.recipe.source.arguments is not None:  # else the title says it
        about += [f"{facts.n_rows:,} rows", f"{facts.n_columns:,} features"]
    names = [each.name for each in facts.labels]
    if names == ["label"]:  # that were passed without a name
        about.append("with labels")
    elif names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        about.append(f"label{'s' * (len(names) > 1)}: {', '.join(names[:3])}{more}")
    links = [element("li", element("a", text, href=f"#{key}")) for key, text in _SECTIONS.items()]
    return element(
        "header",
        element("p", "Report on", class_="eyebrow"),
        element("h1", title),
        element("p", " · ".join([*about, results.date]), class_="about"),
        element("nav", element("ul", links), aria_label="Sections"),
        class_="page-head",
    )


def _footer(results: Results) -> Html:
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    text = f"Made on {results.date} with {versions}. This file needs no network."
    return element("footer", element("p", text), class_="page-foot")


def _verdict_section(results: Results) -> Html:
    verdict, chosen = results.verdict, results.chosen
    text = f"Neighbors on the map: {verdict.grade}"
    badge = element("span", text, class_=f"badge {verdict.grade}")
    lists = [
        (title, bullets(items))
        for title, items in (("Why", verdict.reasons), ("What not to conclude", verdict.cautions))
    ]
    settings = None
    if chosen is not None:
        written = " ".join(repr(chosen.estimator).split())
        steps = [name for name, _ in results.recipe.steps]
        before = f" after {', '.join(_STEP_NAMES[name] for name in steps)}" if steps else ""
        settings = element(
            "p", "Settings: ", element("code", written), f"{before}. ",
            element("a", "Code and command", href="#repeat"), class_="settings",
        )  # fmt: skip
    return element(
        "section",
        badge if chosen is not None else None,
        element("h2", verdict.headline),
        element(
            "div",
            [element("div", element("h3", title), body) for title, body in lists if body],
            class_="columns",
        ),
        settings,
        id="verdict",
        class_=f"verdict {_tone(results)}",
    )


def _tone(results: Results) -> str:
    """Color of the verdict: that of the grade, unless the data need attention first."""
    dominated = results.facts.has_dominant_column and not results.recipe.is_scaled
    if results.verdict.grade == "good" and dominated:
        return "fair"
    return results.verdict.grade


_STEP_NAMES = {
    "impute": "filling in missing values",
    "log1p": "log(1 + x)",
    "scale": "standardizing the columns",
    "pca": "principal components",
}


def _advice_section(results: Results) -> Html:
    return element(
        "section", element("h2", "What to do next"), bullets(results.advice), id="advice"
    )


def _recipe_section(results: Results) -> Html:
    recipe, chosen = results.recipe, results.chosen
    parts: list[Html | None] = []
    if chosen is not None:
        in_memory = recipe.source.arguments is None
        text = f"This gives the {chosen.name} map" + (
            "; data is what was passed to report." if in_memory else ", in the same folder."
        )
        parts += [element("h3", "In Python"), element("p", text), _code(recipe.code(chosen))]
        parts += _command_parts(results)
    seconds = [[what, number(spent, 1)] for what, spent in results.seconds.items()]
    seconds.append(["all", number(sum(results.seconds.values()), 1)])
    parts += [
        element("h3", "Time"),
        html_table("Seconds of each step", ["step", "seconds"], seconds, class_="numbers compact"),
    ]
    notes = bullets(results.notes, class_="small")
    if notes:
        parts += [element("h3", "Notes"), notes]
    return element("section", element("h2", "Do it again"), parts, id="repeat")


def _command_parts(results: Results) -> list[Html | None]:
    recipe, chosen = results.recipe, results.chosen
    assert chosen is not None
    command = recipe.command(chosen)
    if command is None:
        why = (
            "The data are in memory; a command needs a file."
            if recipe.source.arguments is None
            else "The method was passed as an estimator; the command takes names of methods."
        )
        return [element("h3", "On the command line"), element("p", why)]
    text = "This writes the coordinates, a picture and a model that places new rows on the map."
    if recipe.sampled is not None:
        text += f" It maps all rows; the map above has {recipe.sampled:,} of them."
    return [element("h3", "On the command line"), element("p", text), _code(command)]


def _code(text: str) -> Html:
    return element("pre", element("code", text), tabindex=0)
