"""Written summary of an assessment: the table of metrics and the sentences below it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from manifoldry.base.dominant_points import DominatedCoordinate, dominance_remedy
from manifoldry.util.estimate import Estimate
from manifoldry.util.hints import ALONG_GRAPH, REDUNDANT, WHICH_POINTS

Metrics = dict[str, Estimate]


@dataclass(frozen=True)
class SummaryThresholds:
    """Values of the metrics at which the wording of the summary changes.

    Parameters
    ----------
    point_trustworthiness : float
        A point counts as untrustworthy if its own trustworthiness is below this.
    some_untrustworthy, many_untrustworthy : float
        Fractions of untrustworthy points above which they are mentioned, and above which the
        grade for neighbors is at most fair.
    neighbors : (float, float)
        Lowest trustworthiness or continuity that is good, and that is fair.
    rank_correlation : (float, float)
        Lowest rank correlation of the distances that is good, and that is fair.
    redundant : float
        A coordinate is reported as redundant if its unpredictability is below this.
    anisotropy, magnification : float
        Values above which they are mentioned.
    largest_reported : float
        Anisotropy or magnification above this is described in words instead of a number.
    label_difference : float
        Smallest difference between the label accuracies of embedding and data to be mentioned.
    label_separation : float
        Labels count as clearly separated if their accuracy exceeds the fraction of points with the
        most frequent label, which naming that label every time would reach, by at least this part
        of what is left to 1, and its confidence interval lies above that fraction.
    smallest_gain : float
        Smallest difference to PCA, as a fraction of the neighbors, that counts.
    random_trustworthiness, random_area : float
        An embedding whose trustworthiness and R_NX area are both below these is called random.
    few_points : int
        With fewer points than this the summary is called a rough indication.
    """

    point_trustworthiness: float = 0.9
    some_untrustworthy: float = 0.02
    many_untrustworthy: float = 0.1
    neighbors: tuple[float, float] = (0.95, 0.85)
    rank_correlation: tuple[float, float] = (0.9, 0.6)
    redundant: float = 0.3
    anisotropy: float = 5.0
    magnification: float = 6.0
    largest_reported: float = 1e4
    label_difference: float = 0.05
    label_separation: float = 0.05
    smallest_gain: float = 0.01
    random_trustworthiness: float = 0.6
    random_area: float = 0.02
    few_points: int = 30


DEFAULT_THRESHOLDS = SummaryThresholds()


class AssessmentResults(NamedTuple):
    """The values that the summary describes."""

    metrics: Metrics
    gains: Metrics
    """Mean difference to the PCA embedding, point by point; empty if it is that embedding."""
    n: int
    along_graph: bool
    """Whether distances in the data are shortest paths along a graph, or cannot be."""
    dominated: list[DominatedCoordinate]
    """Coordinates of which a few points hold most of the variance."""
    has_neighbors: bool
    """Whether the embedding is that of a model with the parameter n_neighbors."""
    new_rows_differ: bool | None
    """Whether many new rows are unlike the training data; None if there are none."""
    largest_label: float | None
    """Fraction of the points with the most frequent label; None without labels."""
    thresholds: SummaryThresholds = DEFAULT_THRESHOLDS


_DESCRIPTIONS = {
    "trustworthiness": "neighbors in the embedding are neighbors in the data",
    "untrustworthy_points": "fraction of points with a trustworthiness below 0.9",
    "continuity": "neighbors in the data are neighbors in the embedding",
    "neighbor_preservation": "fraction of the nearest neighbors that are kept",
    "rnx_area": "neighbors kept beyond chance, all sizes (area under R_NX)",
    "distance_rank_correlation": "Spearman correlation of the distances",
    "stress": "relative error of the distances after rescaling (0 is best)",
    "unpredictability": "unpredictable part of the most redundant coordinate",
    "unlike_rows": "fraction of the new rows with a novelty above 2",
    "anisotropy": "largest over smallest local stretch, median",
    "magnification": "local scale, 9th over 1st decile",
    "label_accuracy": "points with the label of most neighbors, embedding",
    "label_accuracy_in_data": "points with the label of most neighbors, data",
}


def table(
    metrics: Metrics, baseline: Metrics, scopes: Mapping[str, str] | None = None
) -> list[str]:
    """Lines of a table with one row per metric: the embedding's value and that of PCA.

    `scopes` says of which rows a metric is, if not of all.
    """
    scopes = scopes or {}
    rows = [["", "embedding", "PCA" if baseline else ""]]
    rows += [
        [
            f"{name}: {_DESCRIPTIONS[name]}" + (f", {scopes[name]}" if name in scopes else ""),
            str(value),
            _short(baseline.get(name)),
        ]
        for name, value in metrics.items()
    ]
    return padded_lines(rows)


def padded_lines(rows: list[list[str]]) -> list[str]:
    """Lines of a table whose columns are aligned at the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    padded = ("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in rows)
    return [line.rstrip() for line in padded]


def _short(value: Estimate | None) -> str:
    return "" if value is None else f"{float(value):.4g}"


def summarize(results: AssessmentResults) -> list[str]:
    """Sentences that describe the results, in a fixed order of topics."""
    metrics, thresholds = results.metrics, results.thresholds
    poor = metrics["trustworthiness"] < thresholds.random_trustworthiness
    if poor and metrics["rnx_area"] < thresholds.random_area:
        return [
            "This embedding is no better than a random one: check that its rows are in the "
            "order of the rows of X."
        ]
    topics = (
        *(_few_hold_most, _neighbors, _against_pca, _distances, _coordinates, _shapes, _labels),
        *(_new_rows, _few),
    )
    return [sentence for topic in topics for sentence in topic(results)]


def _few_hold_most(results: AssessmentResults) -> Iterator[str]:
    if results.dominated:
        numbers = " and ".join(str(each.coordinate) for each in results.dominated)
        shows = f" {numbers} shows" if len(results.dominated) == 1 else f"s {numbers} show"
        yield (
            f"Coordinate{shows} a few points and little else: "
            f"{'; '.join(map(str, results.dominated))} (counted from 0). Remedy: "
            f"{dominance_remedy(results.has_neighbors)}."
        )


def _neighbors(results: AssessmentResults) -> Iterator[str]:
    metrics, thresholds = results.metrics, results.thresholds
    untrustworthy = metrics["untrustworthy_points"]
    trust = max(
        _grade(metrics["trustworthiness"], thresholds.neighbors),
        int(untrustworthy > thresholds.many_untrustworthy),
    )
    yield (
        "Points that are close in this embedding are close in the data.",
        "Most, not all, points that are close in this embedding are close in the data.",
        "Many points that are close in this embedding are far apart in the data.",
    )[trust]
    if untrustworthy > thresholds.some_untrustworthy:
        yield (
            f"{untrustworthy:.0%} of the points have a trustworthiness below "
            f"{thresholds.point_trustworthiness}, because many of their neighbors are far from "
            f"them in the data{WHICH_POINTS.python}."
        )
    continuity = _grade(metrics["continuity"], thresholds.neighbors)
    yield (
        "Few neighbors in the data are separated.",
        "Some neighbors in the data are separated: points far apart here can be close in the data.",
        "Many neighbors in the data are separated.",
    )[continuity]


def _against_pca(results: AssessmentResults) -> Iterator[str]:
    if not results.gains:
        return
    gains = (results.gains[name] for name in ("neighbor_preservation", "rnx_area"))
    near, all_sizes = (_sign(gain, results.thresholds.smallest_gain) for gain in gains)
    if near == all_sizes == 0:
        yield "It keeps as many neighbors as PCA."
    elif near >= 0 and all_sizes >= 0:
        yield "It keeps more neighbors than PCA."
    elif near <= 0 and all_sizes <= 0:
        yield "PCA keeps more neighbors: use PCA, or try other parameters."
    elif near > 0:
        yield "It keeps more near neighbors than PCA, but less of the global structure."
    else:
        yield "PCA keeps more near neighbors, but less of the global structure."


def _sign(gain: Estimate, smallest: float) -> int:
    """Sign of a gain, or 0 if its interval contains 0 or it is below `smallest`."""
    if gain.low <= 0 <= gain.high or abs(gain) < smallest:
        return 0
    return 1 if gain > 0 else -1


def _distances(results: AssessmentResults) -> Iterator[str]:
    grade = _grade(
        results.metrics["distance_rank_correlation"], results.thresholds.rank_correlation
    )
    yield (
        "Large distances can be compared.",
        "Large distances are roughly in the right order.",
        "Large distances and the relative positions of clusters are not preserved"
        + ("." if results.along_graph else f"{ALONG_GRAPH.python}."),
    )[grade]


def _coordinates(results: AssessmentResults) -> Iterator[str]:
    if results.metrics.get("unpredictability", 1.0) < results.thresholds.redundant:
        yield (
            f"A coordinate is almost a function of those before it: {REDUNDANT.python}, or fewer "
            "coordinates."
        )


def _shapes(results: AssessmentResults) -> Iterator[str]:
    anisotropy, magnification = (
        results.metrics.get(name, 1.0) for name in ("anisotropy", "magnification")
    )
    thresholds = results.thresholds
    if anisotropy > thresholds.anisotropy:
        finite = anisotropy < thresholds.largest_reported
        yield "Around the median point, one direction is " + (
            f"compressed {anisotropy:.0f} times more than another."
            if finite
            else "collapsed relative to another."
        )
    if magnification > thresholds.magnification:
        finite = magnification < thresholds.largest_reported
        yield (
            "Some regions are drawn "
            + (f"{magnification:.0f} times" if finite else "far")
            + " larger than others of the same size in the data: do not compare sizes."
        )


def _labels(results: AssessmentResults) -> Iterator[str]:
    if results.largest_label is None:
        return
    embedded, in_data = (results.metrics[f"label_accuracy{end}"] for end in ("", "_in_data"))
    compared = f"label accuracy {embedded:.2f}, {in_data:.2f} in the data"
    margin = results.thresholds.label_difference
    if not _is_separated(embedded, results.largest_label, results.thresholds):
        also = not _is_separated(in_data, results.largest_label, results.thresholds)
        where = ", neither in this embedding nor in the data" if also else " in this embedding"
        yield (
            f"Labels are not clearly separated{where}: {compared}, and "
            f"{results.largest_label:.2f} of the points have the most frequent label."
        )
    elif embedded.high < in_data.low - margin:
        yield f"Labels are mixed more than in the data: {compared}."
    elif embedded.low > in_data.high + margin:
        yield f"Labels are separated better than in the data: {compared}."
    else:
        yield f"Labels are separated as well as in the data: {compared}."


def _is_separated(accuracy: Estimate, largest: float, thresholds: SummaryThresholds) -> bool:
    """Whether labels are clearly found more often than by always naming the most frequent one."""
    least = largest + thresholds.label_separation * (1 - largest)
    return accuracy.low > largest and accuracy >= least


def _new_rows(results: AssessmentResults) -> Iterator[str]:
    if results.new_rows_differ is None:
        return
    fraction = f"{results.metrics['unlike_rows']:.0%}"
    if results.new_rows_differ:
        yield (
            f"{fraction} of the new rows are unlike anything the model was fitted on: their "
            "positions are not reliable, and novelty shows which rows they are."
        )
    else:
        yield (
            f"By distance the new rows cannot be told from the training data: {fraction} have a "
            "novelty above 2."
        )


def _few(results: AssessmentResults) -> Iterator[str]:
    if results.n < results.thresholds.few_points:
        yield f"All this is based on only {results.n} points: take it as a rough indication."


def _grade(value: float, bounds: tuple[float, float]) -> int:
    """0, 1 or 2 for good, fair or poor."""
    return sum(value < bound for bound in bounds)
