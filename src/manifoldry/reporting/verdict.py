"""Which map to use, why, and what not to conclude from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from manifoldry.dimension.report import DimensionReport
from manifoldry.methods.choice import MethodChoice
from manifoldry.metrics.summary import DEFAULT_THRESHOLDS as LIMITS
from manifoldry.reporting.findings import DataFacts, GraphFacts
from manifoldry.reporting.maps import MethodMap
from manifoldry.reporting.metric_words import neighbor_grade

_WITHOUT_NEIGHBORS = ("PCA", "ClassicalMDS", "KernelPCA")
# Methods that draw sizes of clusters, and gaps between them, as the optimization has them.
_NEIGHBORS_ONLY = ("TSNE", "SNE", "SymmetricSNE", "ElasticEmbedding")

_LARGEST = "averaged over neighborhoods of all sizes it is closest to the data (R_NX area)"


@dataclass(frozen=True)
class Verdict:
    """Which map to use.

    Parameters
    ----------
    name : str
        The map; empty if all methods failed.
    grade : {"good", "fair", "poor"}
        How far neighbors on it can be trusted.
    headline : str
        The verdict in one sentence.
    reasons, cautions : tuple of str
        Why this map, and what not to conclude from it.
    """

    name: str
    grade: str
    headline: str
    reasons: tuple[str, ...]
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class ChoiceRule:
    """The rule for the map to use; differences are in the area under R_NX.

    Of the maps that are neither dominated by few rows, redundant nor unstable (of all maps if
    only poor ones are left), it takes the method that suits such data if it keeps nearly as many
    neighbors as the best map, else the best; and PCA if that keeps no more neighbors than PCA, by
    the test of `assess`. PCA is also taken if no other method suits the data, such as a few rows.

    Parameters
    ----------
    nearly : float
        Largest difference of the method that suits the data to the best one.
    """

    nearly: float = 0.05

    def choose(self, maps: Sequence[MethodMap], suited: MethodChoice) -> tuple[MethodMap, str]:
        """The map, and why."""
        usable = [each for each in maps if not each.error]
        sound = [each for each in usable if not _flaws(each)] or usable
        if all(trust_grade(each) == "poor" for each in sound):
            sound = [each for each in usable if trust_grade(each) != "poor"] or sound
        reliable = [each for each in usable if trust_grade(each) != "poor"] or usable
        for each in reliable:
            if each.method == suited.method == "pca":
                return each, suited.reason
        best = max(sound, key=_area)
        chosen, why = best, f"{_LARGEST} of all maps"
        if len(sound) < len(usable):
            why = f"{_LARGEST} of the maps without a serious flaw"
        elif len(usable) == 1:
            why = "it is the only map here"
        for each in sound:
            if each.method == suited.method and _area(each) >= _area(best) - self.nearly:
                chosen, why = each, suited.reason
        for each in sound:
            if each.name == "PCA" and chosen is not each and not _gains(chosen):
                return each, (
                    f"it is simpler than {chosen.name}, which is not clearly better in neighbors "
                    "kept or R_NX area"
                )
        return chosen, why


def _gains(each: MethodMap) -> bool:
    """Whether a map keeps more neighbors than PCA, near ones or over all neighborhood sizes."""
    assert each.assessment is not None
    gains = each.assessment.gains.values()
    return any(gain.low > 0 and gain >= LIMITS.smallest_gain for gain in gains)


def decide(
    maps: Sequence[MethodMap],
    suited: MethodChoice,
    facts: DataFacts,
    graph: GraphFacts,
    dimension: DimensionReport | None,
    scaled: bool,
) -> Verdict:
    """The verdict on all maps."""
    if all(each.error for each in maps):
        text = "No method could make a map of these data; the errors are below."
        return Verdict("", "poor", text, (), ())
    chosen, why = ChoiceRule().choose(maps, suited)
    grade = trust_grade(chosen)
    name = chosen.name
    headlines = {
        "good": f"Use the {name} map: rows that are close on it are close in the data.",
        "fair": f"Use the {name} map with care: most, not all, rows that are close on it are close "
        "in the data.",
        "poor": f"No map is reliable. The least bad is {name}: many rows that are close on it are "
        "far apart in the data.",
    }
    headline, reasons = headlines[grade], list(_reasons(chosen, why))
    if facts.has_dominant_column and facts.dominant is not None and not scaled:
        column, part = facts.dominant
        reasons.insert(0, headline)
        headline = (
            f"Column {column} has {part:.1%} of the variance, so the maps show little else. If the "
            "units differ, make the report again with --scale (in Python scale=True)."
        )
    cautions = [*_few_rows(facts.n_examined), *_cautions(chosen, graph, dimension)]
    return Verdict(name, grade, headline, tuple(reasons), tuple(cautions))


def trust_grade(each: MethodMap) -> str:
    """How far neighbors on a map can be trusted, as the summary of `assess` has it."""
    return neighbor_grade(each.metrics)


def is_redundant(each: MethodMap) -> bool:
    """Whether a coordinate is almost a function of those before it."""
    return each.metrics.get("unpredictability", 1.0) < LIMITS.redundant


def _area(each: MethodMap) -> float:
    return each.metrics["rnx_area"]


def _flaws(each: MethodMap) -> list[str]:
    found = []
    if each.assessment is not None and each.assessment.dominated_coordinates:
        found.append("a few rows hold most of the variance of a coordinate")
    if is_redundant(each):
        found.append("a coordinate is almost a function of the one before it")
    if _is_unstable(each) and not _keeps_neighbors_only(each):
        found.append("it changes if some rows are left out")
    return found


def _is_unstable(each: MethodMap) -> bool:
    return each.stability is not None and each.stability.verdict == "unstable"


def _reasons(each: MethodMap, why: str) -> Iterator[str]:
    yield f"{why[0].upper()}{why[1:]}."
    metrics = each.metrics
    yield (
        f"Its trustworthiness is {metrics['trustworthiness']:.2f} (1 is perfect), and "
        f"{metrics['neighbor_preservation']:.0%} of the nearest neighbors are kept."
    )
    if each.stability is not None:
        moved = float(each.stability.variability)
        yield (
            f"It is {each.stability.verdict}: refitted to parts of the data, rows move by "
            f"{moved:.0%} of its spread."
        )
    if "label_accuracy" in metrics:
        yield (
            f"{metrics['label_accuracy']:.0%} of the rows have the label of most of their "
            f"neighbors on it, in the data {metrics['label_accuracy_in_data']:.0%}."
        )


def _few_rows(n: int) -> Iterator[str]:
    if n < LIMITS.few_points:
        yield f"{n} rows are few: take all of this as a rough indication."


def _meaningless(correlation: float) -> str:
    """What has no meaning on a map of a method that keeps neighbors only."""
    if correlation < LIMITS.rank_correlation[1]:
        return (
            "Sizes of clusters, gaps between them and the directions of the axes mean nothing; "
            "only which rows are close does."
        )
    order = "in" if correlation >= LIMITS.rank_correlation[0] else "roughly in"
    return (
        "Sizes of clusters and the directions of the axes mean nothing. Large distances are "
        f"{order} the order of those in the data, which this method does not ensure."
    )


def _cautions(
    each: MethodMap, graph: GraphFacts, dimension: DimensionReport | None
) -> Iterator[str]:
    for flaw in _flaws(each):
        yield f"A flaw of this map: {flaw}."
    yield from _distance_cautions(each)
    yield from _neighbor_cautions(each)
    yield from _stability_cautions(each)
    count = 0 if each.embedding is None else each.embedding.shape[1]
    if dimension is not None and dimension.low > count:
        yield (
            f"The data have about {dimension.dimension} dimensions: {count} coordinates cannot "
            "show everything."
        )
    if len(graph.sizes) > 1 and type(each.estimator).__name__ not in _WITHOUT_NEIGHBORS:
        yield (
            f"The data are in {len(graph.sizes)} parts without neighbors in common: where they "
            "are relative to each other is arbitrary."
        )


def _distance_cautions(each: MethodMap) -> Iterator[str]:
    correlation = each.metrics["distance_rank_correlation"]
    if _keeps_neighbors_only(each):
        yield _meaningless(correlation)
        return
    good, fair = LIMITS.rank_correlation
    if correlation < fair:
        yield "Large distances and the relative positions of clusters are not preserved."
    elif correlation < good:
        yield "Large distances are only roughly in the right order: do not measure them."
    if each.metrics.get("magnification", 1.0) > LIMITS.magnification:
        yield "Some regions are drawn much larger than others: do not compare sizes."


def _neighbor_cautions(each: MethodMap) -> Iterator[str]:
    if each.metrics["continuity"] < LIMITS.neighbors[0]:
        yield "Rows that are far apart on the map may still be alike in the data."
    doubtful = each.metrics["untrustworthy_points"]
    if doubtful > LIMITS.some_untrustworthy:
        yield (
            f"{doubtful:.0%} of the rows have many false neighbors on the map: color the maps "
            "by trustworthiness to see which."
        )


def _stability_cautions(each: MethodMap) -> Iterator[str]:
    if _is_unstable(each) and _keeps_neighbors_only(each):
        yield "Where clusters are on the map is due to chance: it changes if rows are left out."
    if each.stability is not None and each.stability.verdict == "mostly stable":
        yield "Fine structure may be due to chance: it changes if some rows are left out."


def _keeps_neighbors_only(each: MethodMap) -> bool:
    return type(each.estimator).__name__ in _NEIGHBORS_ONLY
