"""Metrics in words: their columns in tables, grades, and sentences of an assessment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from manifoldry.metrics.summary import DEFAULT_THRESHOLDS as LIMITS
from manifoldry.util.hints import for_page


class MetricColumn(NamedTuple):
    """Heading, which may be divided at a hyphen, explanation, and whether larger is better."""

    title: str
    help: str
    larger_is_better: bool


METRIC_COLUMNS = {
    "trustworthiness": MetricColumn(
        "trust-worthiness",
        "Are rows that are close on the map close in the data? 1 is best, about 0.5 is "
        "chance; good from 0.95.",
        True,
    ),
    "untrustworthy_points": MetricColumn(
        "doubtful rows",
        "Fraction of rows whose own trustworthiness is below 0.9.",
        False,
    ),
    "continuity": MetricColumn(
        "continuity",
        "Are rows that are close in the data close on the map? Good from 0.95.",
        True,
    ),
    "neighbor_preservation": MetricColumn(
        "neighbors kept",
        "Fraction of the 15 nearest neighbors in the data that are among the 15 nearest on "
        "the map.",
        True,
    ),
    "rnx_area": MetricColumn(
        "R_NX area",
        "Neighbors kept beyond chance, averaged over all sizes of neighborhoods, small ones "
        "weighted most; compare maps by it.",
        True,
    ),
    "distance_rank_correlation": MetricColumn(
        "distances",
        "Rank correlation of the distances on the map with those in the data; below 0.6 large"
        " distances mean nothing.",
        True,
    ),
    "label_accuracy": MetricColumn(
        "label accuracy",
        "Fraction of rows with the label of most of their neighbors on the map.",
        True,
    ),
}


def neighbor_grade(metrics: Mapping[str, float]) -> str:
    """How far neighbors on a map can be trusted, as the summary of `assess` has it."""
    trust = metrics["trustworthiness"]
    many = metrics["untrustworthy_points"] > LIMITS.many_untrustworthy
    number = max(sum(trust < bound for bound in LIMITS.neighbors), int(many))
    return ("good", "fair", "poor")[number]


def page_sentences(summary: str) -> list[str]:
    """The summary of an assessment without its hints for Python.

    Without those about rows by number too, as pages name the rows.
    """
    found = re.split(r"(?<=\.) (?=[A-Z0-9])", for_page(summary))
    return [text for text in found if not re.match("Coordinates? [0-9]|Remedy:", text)]
