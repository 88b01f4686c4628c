"""What the figures of a map mean, in words."""

from collections.abc import Iterator

from manifoldry._estimate import Estimate

Figures = dict[str, Estimate]

_MEANINGS = {
    "trustworthiness": "neighbours on the map are neighbours in the data",
    "doubtful": "points whose neighbours on the map should not be believed",
    "continuity": "neighbours in the data are neighbours on the map",
    "neighbors_kept": "share of nearest neighbours kept",
    "rnx_area": "neighbours kept beyond chance, all sizes (area under R_NX)",
    "distance_order": "order of the distances kept (rank correlation)",
    "stress": "distances lost, after rescaling (0 is best)",
    "redundancy": "of the most redundant coordinate, what is new",
    "shear": "largest over smallest local stretch, median",
    "magnification": "how unevenly areas are drawn, 9th over 1st decile",
    "label_accuracy": "points with the label of their neighbours, on the map",
    "label_accuracy_in_data": "the same in the data",
}
# Bounds between what is said of a figure, best first.
_NEIGHBORS = (0.95, 0.85)
_ORDER = (0.9, 0.6)
_REPEATED = 0.3
_UNEVEN = 5.0
_LOST = 0.05
_SOME = 0.02


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
    return "" if figure is None else f"{float(figure):.3g}"


def verdict(figures: Figures, baseline: Figures) -> list[str]:
    """Sentences, one per finding."""
    findings = (_neighbors, _against_baseline, _distances, _coordinates, _areas, _labels)
    return [sentence for find in findings for sentence in find(figures, baseline)]


def _neighbors(figures: Figures, baseline: Figures) -> Iterator[str]:
    believed = _grade(figures["trustworthiness"], _NEIGHBORS)
    yield (
        "Points that are close on this map are close in the data.",
        "Most points that are close on this map are close in the data, not all.",
        "Being close on this map means little: many such points are far apart in the data.",
    )[believed]
    if figures["doubtful"] > _SOME:
        yield (
            f"{figures['doubtful']:.0%} of the points are among strangers: "
            "per_point['trustworthiness'] shows which."
        )
    torn = _grade(figures["continuity"], _NEIGHBORS)
    yield (
        "Few neighbourhoods are torn apart.",
        "Some neighbourhoods are torn apart: that two points are far apart here proves little.",
        "Many neighbourhoods are torn apart.",
    )[torn]


def _against_baseline(figures: Figures, baseline: Figures) -> Iterator[str]:
    if "rnx_area" not in baseline:
        return
    mine, flat = figures["rnx_area"], baseline["rnx_area"]
    if mine.low > flat.high:
        yield f"It keeps more neighbours than a linear map (PCA): {mine:.2f} against {flat:.2f}."
    elif mine.high < flat.low:
        yield (
            f"A linear map (PCA) keeps more neighbours: {flat:.2f} against {mine:.2f}; "
            "prefer that, or other settings."
        )
    else:
        yield "It keeps as many neighbours as a linear map (PCA) does."


def _distances(figures: Figures, baseline: Figures) -> Iterator[str]:
    order = _grade(figures["distance_order"], _ORDER)
    yield (
        "Large distances can be compared.",
        "Large distances are roughly in order.",
        "Large distances, and the places of clusters relative to each other, mean little.",
    )[order]


def _coordinates(figures: Figures, baseline: Figures) -> Iterator[str]:
    if figures["redundancy"] < _REPEATED:
        yield (
            "A coordinate repeats those before it: NonRedundant would say more in as many, or "
            "fewer coordinates as much."
        )


def _areas(figures: Figures, baseline: Figures) -> Iterator[str]:
    uneven = figures.get("magnification")
    if uneven is not None and uneven > _UNEVEN:
        yield (
            f"Some regions are drawn {uneven:.0f} times larger than others of the same extent: "
            "sizes and gaps on the map are not those of the data."
        )


def _labels(figures: Figures, baseline: Figures) -> Iterator[str]:
    if "label_accuracy" not in figures:
        return
    on_map, in_data = figures["label_accuracy"], figures["label_accuracy_in_data"]
    if on_map.high < in_data.low - _LOST:
        yield (
            f"Labels are mixed that the data keep apart: {on_map:.2f} of points have the label "
            f"of their neighbours here, {in_data:.2f} in the data."
        )
    else:
        yield f"Labels are as far apart as in the data ({on_map:.2f} against {in_data:.2f})."


def _grade(value: float, bounds: tuple[float, float]) -> int:
    """0, 1 or 2: good, fair or poor."""
    return sum(value < bound for bound in bounds)
