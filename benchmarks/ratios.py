"""From measurements to ratios of ours to the best peer, and to the verdict on a change."""

import math
import statistics
from operator import itemgetter

from benchmarks.workload import meets

FACTOR = 1.25  # a ratio beyond this many times the largest kept one is a regression
STEEPER = 0.5  # growth of an exponent that is one
TINY = 0.05  # seconds below which a time is mostly noise, and is not checked
# A figure of one run, and the name of the list of it over all turns.
IN_TURN = {"seconds": "times", "peak_mb": "peaks"}


def compare(name, report):
    """Ratios of one workload: a dict for each of ours, each floor, of time and of memory.

    ``value`` is the median over the turns and ``range`` the least and the largest; they are None
    where ours fell short of the floor or did not finish (not ``reached``), and where no peer did.
    ``bound`` marks a ratio to the time allowed, when no peer finished in it. In a workload without
    peers, time is divided by the machine's pace, and memory is in MB.
    """
    rows = report.get("rows", [])
    ratios = []
    for row in (r for r in rows if r["ours"]):
        for floor in report["floors"]:
            for key in IN_TURN:
                values, bound = relative(report, row, floor, key)
                reached = reaches(row, floor, rows)
                ratios.append({
                    **_ratio(name, floor, row["name"], measure(report, key), values),
                    "runs": len(in_turn(row, key)) if reached else 0,
                    "bound": bound,
                    "reached": reached,
                    "checked": key != "seconds" or row.get(key, math.inf) >= TINY,
                })  # fmt: skip
    return ratios + [_ratio(name, "any", s, m, [v]) for s, m, v in slopes(rows)]


def _ratio(workload, floor, ours, measure, values):
    value = statistics.median(values) if values else None
    extent = [min(values), max(values)] if values else None
    return {"workload": workload, "floor": floor, "ours": ours, "measure": measure,
            "value": value, "range": extent, "runs": 1,
            "bound": False, "reached": True, "checked": True}  # fmt: skip


def relative(report, row, floor, key):
    """Ratios of a contestant in every turn, and whether they are only bounds."""
    best, bound = yardstick(report, floor, key)
    if alone(report):
        best = row.get("paces", []) if key == "seconds" else [1.0]  # results of old have no pace
    if not best or not reaches(row, floor, report["rows"]):
        return [], bound
    ours = in_turn(row, key)
    turns = range(max(len(ours), len(best)))
    return [_turn(ours, i) / _turn(best, i) for i in turns], bound


def _turn(figures, i):
    """The figure of a turn; who ran less often stands in with the median."""
    return figures[i] if i < len(figures) else statistics.median(figures)


def measure(report, key):
    """What a ratio is of."""
    if alone(report):
        return "time ÷ pace" if key == "seconds" else "memory, MB"
    return "time" if key == "seconds" else "memory"


def alone(report):
    """Whether a workload has no peers."""
    return all(row["ours"] or row["aside"] for row in report.get("rows", []))


def in_turn(row, key):
    """A figure of a contestant in every turn; results of old have but one."""
    return row.get(IN_TURN[key]) or [row[key]]


def reaches(row, floor, rows):
    """Whether a contestant finished at equal quality."""
    qualities = [r.get("quality", {}) for r in rows if not r["aside"]]
    return "seconds" in row and meets(floor, row.get("quality", {}), qualities)


def yardstick(report, floor, key):
    """The best peer's figures at a floor, and whether they are only a bound; none without one."""
    rows = report.get("rows", [])
    peers = [r for r in rows if not r["ours"] and not r["aside"]]
    good = [r for r in peers if reaches(r, floor, rows)]
    if good:
        return in_turn(min(good, key=lambda r: r[key]), key), False
    late = [r["timeout"] for r in peers if "timeout" in r]
    return ([min(late)], True) if late and key == "seconds" else ([], False)


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
    """Sentences on every kept ratio that got worse or is gone; empty when all is well."""
    told = []
    for ratio, old in pairs(new, kept):
        now = _verdict(ratio, old, factor)
        if now:
            which = f"{old['workload']}, {old['ours']}, {old['measure']} ({old['floor']})"
            told.append(f"{which}: was {old['value']:.2f}, now {now}")
    return told


def _verdict(ratio, old, factor):
    """What is wrong with a ratio, or nothing."""
    slope = old["measure"].endswith("slope")
    if ratio is None:  # an exponent needs three long times: being faster may be its end
        return "" if slope else "missing"
    if not ratio["reached"]:
        return "not reached"
    limit = old["value"] + STEEPER if slope else allowed(old, factor)
    worse = ratio["value"] is not None and ratio["checked"] and ratio["value"] > limit
    return f"{ratio['value']:.2f}, beyond {limit:.2f}" if worse else ""


def allowed(old, factor):
    """The worst ratio that passes: `factor` times the largest kept.

    Of a single run the spread is not known, and `factor` stands in for it once more.
    """
    return old["range"][1] * factor ** (2 if old["runs"] == 1 else 1)


def vanished(new, kept):
    """Sentences on workloads that were kept and that gave nothing this time."""
    for name in (name for name, report in kept.items() if "rows" in report):
        if "rows" not in new.get(name, {}):
            yield f"{name}: was measured, now {new.get(name, {}).get('skipped', 'missing')}"


def pairs(new, kept):
    """Each kept ratio that has a value, after the new one of the same thing, or None."""
    key = itemgetter("workload", "floor", "ours", "measure")
    found = {key(ratio): ratio for ratio in new}
    return [(found.get(key(old)), old) for old in kept if old["value"] is not None]
