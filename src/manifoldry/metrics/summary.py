"""What the figures of a map mean, in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from manifoldry.util.estimate import Estimate

Figures = dict[str, Estimate]


@dataclass(frozen=True)
class SummaryBounds:
    """Bounds between what is said of a figure.

    Parameters
    ----------
    doubtful : float
        A point's own trustworthiness below which its place is in doubt.
    some_doubtful, many_doubtful : float
        Fractions of such points that are worth a word, and that lower the verdict on neighbors.
    neighbors : (float, float)
        Trustworthiness and continuity from which they are good, and fair.
    order : (float, float)
        Rank correlation of the distances from which their order is good, and fair.
    repeated : float
        Fraction of a coordinate that is new, below which it repeats others.
    sheared, uneven : float
        Shear and magnification beyond which they are worth a word.
    flat : float
        Shear or magnification beyond which a number says no more.
    labels : float
        By how much more points must have the label of their neighbors to be worth a word.
    matters : float
        Fraction of neighbors below which a difference to another map is none.
    random_trust, random_area : float
        Trustworthiness and area under R_NX, both below which a map is like a random one.
    few_points : int
        Points below which all this is a hint.
    """

    doubtful: float = 0.9
    some_doubtful: float = 0.02
    many_doubtful: float = 0.1
    neighbors: tuple[float, float] = (0.95, 0.85)
    order: tuple[float, float] = (0.9, 0.6)
    repeated: float = 0.3
    sheared: float = 5.0
    uneven: float = 6.0
    flat: float = 1e4
    labels: float = 0.05
    matters: float = 0.01
    random_trust: float = 0.6
    random_area: float = 0.02
    few_points: int = 30


DEFAULT_BOUNDS = SummaryBounds()


class Findings(NamedTuple):
    """What the sentences are about."""

    figures: Figures
    gains: Figures
    """By how much the map exceeds a principal component map, point by point."""
    n: int
    along: bool
    """Whether distances in the data run along a graph."""
    bounds: SummaryBounds = DEFAULT_BOUNDS


_MEANINGS = {
    "trustworthiness": "neighbors on the map are neighbors in the data",
    "doubtful": "points whose neighbors on the map should not be believed",
    "continuity": "neighbors in the data are neighbors on the map",
    "neighbors_kept": "fraction of nearest neighbors kept",
    "rnx_area": "neighbors kept beyond chance, all sizes (area under R_NX)",
    "distance_order": "order of the distances kept (rank correlation)",
    "stress": "distances lost, after rescaling (0 is best)",
    "redundancy": "of the most redundant coordinate, what is new",
    "shear": "largest over smallest local stretch, median",
    "magnification": "how unevenly areas are drawn, 9th over 1st decile",
    "label_accuracy": "points with the label of their neighbors, on the map",
    "label_accuracy_in_data": "the same in the data",
}


def table(figures: Figures, baseline: Figures) -> list[str]:
    """One line per figure, with that of the principal component map beside it."""
    rows = [("", "this map", "PCA" if baseline else "")]
    rows += [
        (f"{name}: {_MEANINGS[name]}", str(value), _short(baseline.get(name)))
        for name, value in figures.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    padded = ("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in rows)
    return [line.rstrip() for line in padded]


def _short(figure: Estimate | None) -> str:
    return "" if figure is None else f"{float(figure):.4g}"


def verdict(found: Findings) -> list[str]:
    """Sentences, one per finding."""
    figures, bounds = found.figures, found.bounds
    poor = figures["trustworthiness"] < bounds.random_trust
    if poor and figures["rnx_area"] < bounds.random_area:
        return ["This map is no better than a random one. Are its rows in the order of the data's?"]
    findings = (_neighbors, _against_pca, _distances, _coordinates, _shapes, _labels, _few)
    return [sentence for find in findings for sentence in find(found)]


def _neighbors(found: Findings) -> Iterator[str]:
    trust, doubtful = found.figures["trustworthiness"], found.figures["doubtful"]
    bounds = found.bounds
    believed = max(_grade(trust, bounds.neighbors), int(doubtful > bounds.many_doubtful))
    yield (
        "Points that are close on this map are close in the data.",
        "Most points that are close on this map are close in the data, not all.",
        "Being close on this map means little: many such points are far apart in the data.",
    )[believed]
    if doubtful > bounds.some_doubtful:
        yield (
            f"{doubtful:.0%} of the points lie among others that are far from them in the data "
            f"(own trustworthiness below {bounds.doubtful}): per_point['trustworthiness'] shows "
            "which."
        )
    torn = _grade(found.figures["continuity"], bounds.neighbors)
    yield (
        "Few neighborhoods are torn apart.",
        "Some neighborhoods are torn apart: that two points are far apart here proves little.",
        "Many neighborhoods are torn apart.",
    )[torn]


def _against_pca(found: Findings) -> Iterator[str]:
    if not found.gains:
        return
    gains = (found.gains[name] for name in ("neighbors_kept", "rnx_area"))
    near, all_sizes = (_sign(gain, found.bounds.matters) for gain in gains)
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


def _sign(gain: Estimate, matters: float) -> int:
    """1 or -1 where a gain is larger than chance and matters, else 0."""
    if gain.low <= 0 <= gain.high or abs(gain) < matters:
        return 0
    return 1 if gain > 0 else -1


def _distances(found: Findings) -> Iterator[str]:
    order = _grade(found.figures["distance_order"], found.bounds.order)
    yield (
        "Large distances can be compared.",
        "Large distances are roughly in order.",
        "Large distances, and the places of clusters relative to each other, mean little"
        + ("." if found.along else "; along the data they may: pass NeighborGraph.build(X) as X."),
    )[order]


def _coordinates(found: Findings) -> Iterator[str]:
    if found.figures.get("redundancy", 1.0) < found.bounds.repeated:
        yield (
            "A coordinate repeats those before it: NonRedundant would say more in as many, or "
            "fewer coordinates as much."
        )


def _shapes(found: Findings) -> Iterator[str]:
    shear, uneven = (found.figures.get(name, 1.0) for name in ("shear", "magnification"))
    bounds = found.bounds
    if shear > bounds.sheared:
        yield (
            "Around the typical point one direction is squeezed "
            + (f"{shear:.0f} times more than another." if shear < bounds.flat else "flat.")
        )
    if uneven > bounds.uneven:
        yield (
            "Some regions are drawn "
            + (f"{uneven:.0f} times larger than" if uneven < bounds.flat else "far larger than")
            + " others of the same extent: sizes and gaps on the map are not those of the data."
        )


def _labels(found: Findings) -> Iterator[str]:
    if "label_accuracy" not in found.figures:
        return
    on_map, in_data = (found.figures[f"label_accuracy{end}"] for end in ("", "_in_data"))
    compared = f"{on_map:.2f} of the points have the label of their neighbors here, {in_data:.2f}"
    lost = found.bounds.labels
    if on_map.high < in_data.low - lost:
        yield f"Labels are mixed that the data keep apart: {compared} in the data."
    elif on_map.low > in_data.high + lost:
        yield f"Labels are more apart than in the data: {compared} there."
    else:
        yield f"Labels are as well apart as in the data: {compared} there."


def _few(found: Findings) -> Iterator[str]:
    if found.n < found.bounds.few_points:
        yield f"All this is from {found.n} points, which is few: take it as a hint."


def _grade(value: float, bounds: tuple[float, float]) -> int:
    """0, 1 or 2: good, fair or poor."""
    return sum(value < bound for bound in bounds)
