"""What to do about the findings, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from manifoldry.dimension.report import DimensionReport
from manifoldry.reporting.findings import DataFacts, GraphFacts
from manifoldry.reporting.verdict import Verdict
from manifoldry.reporting.words import FILLED_IN, counted

_MANY_COLUMNS = 100
_SCALE = "--scale (in Python scale=True)"


def advise(
    facts: DataFacts, graph: GraphFacts, dimension: DimensionReport | None, scaled: bool,
    verdict: Verdict, n_components: int, reduced: bool, impute: str | None,
) -> tuple[str, ...]:  # fmt: skip
    """What to do next; `scaled` and `reduced` (by PCA) say what was done before."""
    steps = (
        *_about_columns(facts, scaled, impute),
        *_about_rows(facts, graph),
        *_about_maps(facts, dimension, verdict, n_components, reduced),
    )
    return steps or ("Nothing stands in the way: use the map, and repeat the report on new data.",)


def _about_columns(facts: DataFacts, scaled: bool, impute: str | None) -> Iterator[str]:
    if facts.has_dominant_column and facts.dominant is not None and scaled:
        yield (
            f"Column {facts.dominant[0]!r} has {facts.dominant[1]:.1%} of the variance, and the "
            "columns were standardized. If they all have the same unit, make the report again with "
            "--no-scale (in Python scale=False)."
        )
    elif facts.has_dominant_column and facts.dominant is not None:
        yield (
            f"Column {facts.dominant[0]!r} has {facts.dominant[1]:.1%} of the variance, so the "
            "maps show little else. If the columns have different units, make the report again "
            f"with {_SCALE}."
        )
    elif facts.has_uneven_scales and not scaled:
        yield (
            f"Half of the columns have {facts.half_fraction:.1g} of the variance, so the maps "
            f"hardly depend on them. If the units differ, make the report again with {_SCALE}."
        )
    if facts.constant:
        yield (
            f"{counted(len(facts.constant), 'column is', 'columns are')} constant, without effect "
            "on the maps: leave out what is constant."
        )
    if facts.missing.n_cells and impute is not None:
        yield (
            f"Missing values ({facts.missing.n_cells:,}) were replaced by {FILLED_IN[impute]}, "
            "which moves these rows towards others. Correct them, or leave these rows or columns "
            "out, and compare."
        )


def _about_rows(facts: DataFacts, graph: GraphFacts) -> Iterator[str]:
    if facts.n_duplicates:
        yield (
            f"{counted(facts.n_duplicates, 'row repeats', 'rows repeat')} another one. If they "
            "are copies by mistake, delete them: they are each other's nearest neighbors."
        )
    if graph.outlying:
        yield (
            f"First check for errors in {counted(len(graph.outlying), 'outlying row')}. "
            "Correct or delete those with errors: a few can spoil PCA and spectral maps."
        )
    if len(graph.sizes) > 1:
        yield (
            f"The data are in {len(graph.sizes)} separate parts. To see the shape of one of them, "
            "make a report on its rows only."
        )


def _about_maps(
    facts: DataFacts,
    dimension: DimensionReport | None,
    verdict: Verdict,
    n_components: int,
    reduced: bool,
) -> Iterator[str]:
    if dimension is not None and dimension.low > n_components:
        yield (
            "For computations, such as clustering or regression, take more coordinates than for a "
            f"picture: about {dimension.dimension}."
        )
    if verdict.grade != "good" and facts.n_columns > _MANY_COLUMNS and not reduced:
        yield (
            f"With {facts.n_columns:,} columns, noise in many of them can hide the neighbors: try "
            "the report with --pca 50 (in Python pca=50)."
        )
    if verdict.grade != "good" and verdict.name:
        yield (
            "Try other settings of the method, such as more or fewer neighbors, or other methods, "
            "and compare their trustworthiness."
        )
    if facts.n_examined < facts.n_rows:
        yield (
            f"This report is based on {facts.n_examined:,} of {facts.n_rows:,} rows, chosen at "
            "random. The model can place the others on the map."
        )
