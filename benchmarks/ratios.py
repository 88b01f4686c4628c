"""From measurements to ratios of ours to the best peer, and to the verdict on a change."""

import math

from benchmarks.workload import meets

FACTOR = 1.5  # a ratio that grew by more than this is a regression
TINY = 0.05  # seconds below which a time is mostly noise, and is not checked


def compare(name, report):
    """Ratios of one workload: a dict for each of ours, each floor, of time and of memory.

    ``value`` is None where ours fell short of the floor or did not finish; ``bound`` marks a
    ratio to the time allowed, when no peer finished in it.
    """
    rows = report.get("rows", [])
    ratios = []
    for floor in report["floors"]:
        for row in (r for r in rows if r["ours"] and not r["series"]):
            for measure, key in (("time", "seconds"), ("memory", "peak_mb")):
                best, bound = yardstick(report, floor, key)
                if best is None:
                    continue
                value = row[key] / best if reaches(row, floor, rows) else None
                ratios.append(_ratio(name, floor, row["name"], measure, value, bound, row))
    return ratios + [_ratio(name, "any", s, m, v) for s, m, v in slopes(rows)]


def _ratio(workload, floor, ours, measure, value, bound=False, row=None):
    checked = measure != "time" or (row or {}).get("seconds", math.inf) >= TINY
    return {"workload": workload, "floor": floor, "ours": ours, "measure": measure,
            "value": value, "bound": bound, "checked": checked}  # fmt: skip


def reaches(row, floor, rows):
    """Whether a contestant finished at equal quality."""
    qualities = [r.get("quality", {}) for r in rows if not r["aside"]]
    return "seconds" in row and meets(floor, row.get("quality", {}), qualities)


def yardstick(report, floor, key):
    """The best peer's figure at a floor, and whether it is only a bound; None if there is none."""
    rows = report.get("rows", [])
    peers = [r for r in rows if not r["ours"] and not r["aside"]]
    figures = [r[key] for r in peers if reaches(r, floor, rows)]
    if figures:
        return min(figures), False
    late = [r["timeout"] for r in peers if "timeout" in r]
    return (min(late), True) if late and key == "seconds" else (None, False)


def slopes(rows):
    """Growth of each series: exponents of time and memory in n, over the larger sizes."""
    for series in dict.fromkeys(r["series"] for r in rows if r["series"]):
        done = [r for r in rows if r["series"] == series and "seconds" in r]
        long = [(r["size"], r["seconds"]) for r in done if r["seconds"] >= TINY]
        grown = [(r["size"], max(r["peak_mb"] - r["before_mb"], 1.0)) for r in done]
        for measure, points in (("time slope", long), ("memory slope", grown)):
            if len(points) >= 3:  # through two noisy points any exponent will go
                yield series, measure, slope(points)


def slope(points):
    """Exponent p of the least-squares fit y ∝ xᵖ.

    Examples
    --------
    >>> round(slope([(1, 3.0), (10, 300.0), (100, 30000.0)]), 6)
    2.0
    """
    xs, ys = zip(*[(math.log(x), math.log(y)) for x, y in points], strict=True)
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - x0) ** 2 for x in xs)


def regressions(new, kept, factor=FACTOR):
    """Sentences on every ratio that got worse by more than `factor`; empty when all is well."""
    told = []
    for ratio, old in pairs(new, kept):
        which = f"{ratio['workload']}, {ratio['ours']}, {ratio['measure']} ({ratio['floor']})"
        if ratio["value"] is None:
            told.append(f"{which}: was {old['value']:.2f}, now not reached")
        elif ratio["checked"] and ratio["value"] > allowed(old, factor):
            told.append(f"{which}: was {old['value']:.2f}, now {ratio['value']:.2f}")
    return told


def allowed(old, factor):
    """The worst value that passes; an exponent, a logarithm already, may grow by ``factor - 1``."""
    slope = old["measure"].endswith("slope")
    return old["value"] + factor - 1 if slope else old["value"] * factor


def pairs(new, kept):
    """Ratios that can be compared: each new one with the kept one of the same thing."""
    key = ("workload", "floor", "ours", "measure")
    before = {tuple(r[k] for k in key): r for r in kept if r["value"] is not None}
    found = ((ratio, before.get(tuple(ratio[k] for k in key))) for ratio in new)
    return [(ratio, old) for ratio, old in found if old is not None]
