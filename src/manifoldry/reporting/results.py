"""Everything that a report says, before it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.dimension.report import DimensionReport
from manifoldry.methods.choice import MethodChoice
from manifoldry.reporting.findings import DataFacts, GraphFacts
from manifoldry.reporting.maps import MapOptions, MethodMap, Region
from manifoldry.reporting.reproduce import Recipe
from manifoldry.reporting.verdict import Verdict
from manifoldry.util.typing import IntArray


@dataclass(frozen=True, eq=False)
class Results:
    """What was found in the data and in the maps.

    Parameters
    ----------
    rows : array of shape (n,)
        The rows of the data that were examined; maps have a row for each.
    labels : mapping from str to arrays of shape (n,)
        Their labels.
    facts, graph : DataFacts, GraphFacts
        What is in the data, and how they are connected.
    dimension : DimensionReport or None
        The intrinsic dimension; None, with `dimension_error`, if it cannot be estimated.
    dimension_error : str
        Why there is no dimension.
    suited : MethodChoice
        The method that suits such data.
    maps : tuple of MethodMap
        The maps.
    regions : dict of str to Region
        The least trustworthy region of each map.
    verdict : Verdict
        Which map to use.
    advice : tuple of str
        What to do next.
    recipe : Recipe
        How to make the maps again.
    options : MapOptions
        How they were made.
    seconds : dict of str to float
        Time of each step.
    notes : tuple of str
        What was decided on the way.
    versions : dict of str to str
        Versions of the packages.
    date : str
        Date and time of the report, in UTC.
    """

    rows: IntArray
    labels: Mapping[str, Any]
    facts: DataFacts
    graph: GraphFacts
    dimension: DimensionReport | None
    dimension_error: str
    suited: MethodChoice
    maps: tuple[MethodMap, ...]
    regions: dict[str, Region]
    verdict: Verdict
    advice: tuple[str, ...]
    recipe: Recipe
    options: MapOptions
    seconds: dict[str, float]
    notes: tuple[str, ...]
    versions: dict[str, str]
    date: str

    @property
    def chosen(self) -> MethodMap | None:
        """The map of the verdict."""
        return next((each for each in self.maps if each.name == self.verdict.name), None)

    @property
    def drawn_maps(self) -> list[MethodMap]:
        """The maps that were made, the chosen one first."""
        made = [each for each in self.maps if not each.error]
        return sorted(made, key=lambda each: each.name != self.verdict.name)

    def row_name(self, row: int) -> str:
        """Name of a row of the data."""
        name = self.recipe.source.table.row_name(row)
        return name if len(name) <= 72 else f"{name[:70]}…)"

    def summary(self) -> dict[str, Any]:
        """The findings as numbers and texts, for ``--json``; rows are counted from 0."""
        found = self.dimension
        return {
            "data": vars(self.facts) | {
                "missing": vars(self.facts.missing),
                "labels": [vars(each) for each in self.facts.labels],
            },
            "connectivity": vars(self.graph),
            "dimension": None if found is None else {
                "dimension": found.dimension, "low": found.low, "high": found.high,
                "reasons": found.reasons,
            },
            "maps": {each.name: _map_summary(each, self.rows) for each in self.maps},
            "verdict": vars(self.verdict),
            "advice": self.advice,
            "repeat": None if self.chosen is None else {
                "code": self.recipe.code(self.chosen),
                "command": self.recipe.command(self.chosen),
            },
            "seconds": self.seconds,
        }  # fmt: skip


def _map_summary(each: MethodMap, rows: IntArray) -> dict[str, Any]:
    if each.error:
        return {"error": each.error}
    stable = each.stability
    return {
        "metrics": each.metrics,
        "redundancy": each.redundancy,
        "stability": None if stable is None else {
            "verdict": stable.verdict, "variability": float(stable.variability),
            "n_refits": stable.n_resamples,
        },
        "least_trustworthy_rows": rows[np.argsort(each.trust, kind="stable")[:10]],
        "seconds": each.seconds,
    }  # fmt: skip
