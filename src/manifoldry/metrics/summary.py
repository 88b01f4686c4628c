"""What the figures of a map mean, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from manifoldry.util.estimate import Estimate

Metrics = dict[str, Estimate]


@dataclass(frozen=True)
class SummaryThresholds:
    """Bounds between what is said of a figure.

    Parameters
    ----------
    point_trustworthiness : float
        A point's own trustworthiness below which its place is in doubt.
    some_untrustworthy, many_untrustworthy : float
        Fractions of such points that are worth a word, and that lower the verdict on neighbors.
    neighbors : (float, float)
        Trustworthiness and continuity from which they are good, and fair.
    rank_correlation : (float, float)
        Rank correlation of the distances from which their order is good, and fair.
    redundant : float
        Fraction of a coordinate that is new, below which it repeats others.
    anisotropy, magnification : float
        Shear and magnification beyond which they are worth a word.
    largest_reported : float
        Shear or magnification beyond which a number says no more.
    label_difference : float
        By how much more points must have the label of their neighbors to be worth a word.
    smallest_gain : float
        Fraction of neighbors below which a difference to another map is none.
    random_trustworthiness, random_area : float
        Trustworthiness and area under R_NX, both below which a map is like a random one.
    few_points : int
        Points below which all this is a hint.
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
    smallest_gain: float = 0.01
    random_trustworthiness: float = 0.6
    random_area: float = 0.02
    few_points: int = 30


DEFAULT_THRESHOLDS = SummaryThresholds()


class AssessmentResults(NamedTuple):
    """What the sentences are about."""

    metrics: Metrics
    gains: Metrics
    """By how much the map exceeds a principal component map, point by point."""
    n: int
    along_graph: bool
    """Whether distances in the data run along a graph."""
    thresholds: SummaryThresholds = DEFAULT_THRESHOLDS


_MEANINGS = {
    "trustworthiness": "neighbors on the map are neighbors in the data",
    "untrustworthy_points": "points whose neighbors on the map should not be believed",
    "continuity": "neighbors in the data are neighbors on the map",
    "neighbor_preservation": "fraction of nearest neighbors kept",
    "rnx_area": "neighbors kept beyond chance, all sizes (area under R_NX)",
    "distance_rank_correlation": "order of the distances kept (rank correlation)",
    "stress": "distances lost, after rescaling (0 is best)",
    "redundancy": "of the most redundant coordinate, what is new",
    "anisotropy": "largest over smallest local stretch, median",
    "magnification": "how unevenly areas are drawn, 9th over 1st decile",
    "label_accuracy": "points with the label of their neighbors, on the map",
    "label_accuracy_in_data": "the same in the data",
}


def table(metrics: Metrics, baseline: Metrics) -> list[str]:
    """One line per figure, with that of the principal component map beside it."""
    rows = [("", "embedding", "PCA" if baseline else "")]
    rows += [
        (f"{name}: {_MEANINGS[name]}", str(value), _short(baseline.get(name)))
        for name, value in metrics.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    padded = ("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in rows)
    return [line.rstrip() for line in padded]


def _short(figure: Estimate | None) -> str:
    return "" if figure is None else f"{float(figure):.4g}"


def summarize(results: AssessmentResults) -> list[str]:
    """Sentences, one per finding."""
    metrics, thresholds = results.metrics, results.thresholds
    poor = metrics["trustworthiness"] < thresholds.random_trustworthiness
    if poor and metrics["rnx_area"] < thresholds.random_area:
        return ["This map is no better than a random one. Are its rows in the order of the data's?"]
    topics = (_neighbors, _against_pca, _distances, _coordinates, _shapes, _labels, _few)
    return [sentence for topic in topics for sentence in topic(results)]


def _neighbors(results: AssessmentResults) -> Iterator[str]:
    trust, untrustworthy = (
        results.metrics["trustworthiness"],
        results.metrics["untrustworthy_points"],
    )
    thresholds = results.thresholds
    grade = max(
        _grade(trust, thresholds.neighbors), int(untrustworthy > thresholds.many_untrustworthy)
    )
    yield (
        "Points that are close on this map are close in the data.",
        "Most points that are close on this map are close in the data, not all.",
        "Being close on this map means little: many such points are far apart in the data.",
    )[grade]
    if untrustworthy > thresholds.some_untrustworthy:
        yield (
            f"{untrustworthy:.0%} of the points lie among others that are far from them in the data "
            f"(own trustworthiness below {thresholds.point_trustworthiness}): per_point['trustworthiness'] shows "
            "which."
        )
    continuity = _grade(results.metrics["continuity"], thresholds.neighbors)
    yield (
        "Few neighborhoods are torn apart.",
        "Some neighborhoods are torn apart: that two points are far apart here proves little.",
        "Many neighborhoods are torn apart.",
    )[continuity]


def _against_pca(results: AssessmentResults) -> Iterator[str]:
    if not results.gains:
        return
    gains = (results.gains[name] for name in ("neighbor_preservation", "rnx_area"))
    near, all_sizes = (_sign(gain, results.thresholds.smallest_gain) for gain in gains)
    if near == all_sizes == 0:
        yield "It keeps as many neighbors as a linear map (PCA) does."
    elif near >= 0 and all_sizes >= 0:
        yield "It keeps more neighbors than a linear map (PCA) does."
    elif near <= 0 and all_sizes <= 0:
        yield "A linear map (PCA) keeps more neighbors: prefer that, or other settings."
    elif near > 0:
        yield "It keeps more near neighbors than a linear map (PCA), less of the large structure."
    else:
        yield "A linear map (PCA) keeps more near neighbors, less of the large structure."


def _sign(gain: Estimate, smallest: float) -> int:
    """1 or -1 where a gain is larger than chance and matters, else 0."""
    if gain.low <= 0 <= gain.high or abs(gain) < smallest:
        return 0
    return 1 if gain > 0 else -1


def _distances(results: AssessmentResults) -> Iterator[str]:
    order = _grade(
        results.metrics["distance_rank_correlation"], results.thresholds.rank_correlation
    )
    yield (
        "Large distances can be compared.",
        "Large distances are roughly in order.",
        "Large distances, and the places of clusters relative to each other, mean little"
        + (
            "."
            if results.along_graph
            else "; along the data they may: pass NeighborGraph.build(X) as X."
        ),
    )[order]


def _coordinates(results: AssessmentResults) -> Iterator[str]:
    if results.metrics.get("redundancy", 1.0) < results.thresholds.redundant:
        yield (
            "A coordinate repeats those before it: NonRedundant would say more in as many, or "
            "fewer coordinates as much."
        )


def _shapes(results: AssessmentResults) -> Iterator[str]:
    anisotropy, magnification = (
        results.metrics.get(name, 1.0) for name in ("anisotropy", "magnification")
    )
    thresholds = results.thresholds
    if anisotropy > thresholds.anisotropy:
        yield (
            "Around the typical point one direction is squeezed "
            + (
                f"{anisotropy:.0f} times more than another."
                if anisotropy < thresholds.largest_reported
                else "flat."
            )
        )
    if magnification > thresholds.magnification:
        yield (
            "Some regions are drawn "
            + (
                f"{magnification:.0f} times larger than"
                if magnification < thresholds.largest_reported
                else "far larger than"
            )
            + " others of the same extent: sizes and gaps on the map are not those of the data."
        )


def _labels(results: AssessmentResults) -> Iterator[str]:
    if "label_accuracy" not in results.metrics:
        return
    on_map, in_data = (results.metrics[f"label_accuracy{end}"] for end in ("", "_in_data"))
    compared = f"{on_map:.2f} of the points have the label of their neighbors here, {in_data:.2f}"
    margin = results.thresholds.label_difference
    if on_map.high < in_data.low - margin:
        yield f"Labels are mixed that the data keep apart: {compared} in the data."
    elif on_map.low > in_data.high + margin:
        yield f"Labels are more apart than in the data: {compared} there."
    else:
        yield f"Labels are as well apart as in the data: {compared} there."


def _few(results: AssessmentResults) -> Iterator[str]:
    if results.n < results.thresholds.few_points:
        yield f"All this is from {results.n} points, which is few: take it as a hint."


def _grade(value: float, thresholds: tuple[float, float]) -> int:
    """0, 1 or 2: good, fair or poor."""
    return sum(value < bound for bound in thresholds)
