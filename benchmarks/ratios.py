"""Ratios of our results to those of the best peer, and the check for regressions."""

import math
import statistics
from operator import itemgetter

from benchmarks.workload import meets

FACTOR = 1.25  # a ratio above this many times the largest recorded one is a regression
STEEPER = 0.5  # increase of an exponent that is a regression
TINY = 0.05  # seconds below which a time is mostly noise, and is not checked
# A value of one run, and the name of the list of its values over all rounds.
IN_TURN = {"seconds": "times", "peak_mb": "peaks"}


def compare(name, report):
    """Ratios of one workload: a dict for each of our contestants, each floor, time and memory.

    ``value`` is the median over the rounds and ``range`` the least and the largest; they are None
    if ours did not reach the floor or did not finish (not ``reached``), or if no peer did.
    ``bound`` marks a ratio to the time limit, if no peer finished within it. In a workload without
    peers, or of several sizes, time is divided by the machine's pace, and memory is in MB.
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
    ours = [row for row in rows if row["ours"]]
    return ratios + [_ratio(name, "any", s, m, [v]) for s, m, v in slopes(ours)]


def _ratio(workload, floor, ours, measure, values):
    value = statistics.median(values) if values else None
    extent = [min(values), max(values)] if values else None
    return {"workload": workload, "floor": floor, "ours": ours, "measure": measure,
            "value": value, "range": extent, "runs": 1,
            "bound": False, "reached": True, "checked": True}  # fmt: skip


def relative(report, row, floor, key):
    """Ratios of a contestant in every round, and whether they are only bounds."""
    best, bound = best_peer(report, floor, key)
    if alone(report):
        best = row.get("paces", []) if key == "seconds" else [1.0]  # old results have no pace
    if not best or not reaches(row, floor, report["rows"]):
        return [], bound
    return turn_by_turn(in_turn(row, key), best), bound


def turn_by_turn(ours, theirs):
    """Ratios of the values of the same round.

    Examples
    --------
    >>> turn_by_turn([2.0, 3.0], [4.0, 4.0]), turn_by_turn([2.0], [4.0, 8.0])
    ([0.5, 0.75], [0.5, 0.25])
    """
    turns = range(max(len(ours), len(theirs)))
    return [_turn(ours, i) / _turn(theirs, i) for i in turns]


def _turn(values, i):
    """The value of a round, or the median for contestants with fewer runs."""
    return values[i] if i < len(values) else statistics.median(values)


def measure(report, key):
    """The quantity of a ratio."""
    if alone(report):
        return "time ÷ pace" if key == "seconds" else "memory, MB"
    return "time" if key == "seconds" else "memory"


def alone(report):
    """Whether ours are compared with the machine's pace: without peers, and growing with n."""
    rows = report.get("rows", [])
    return all(row["ours"] or row["aside"] or row["series"] for row in rows)


def in_turn(row, key):
    """A value of a contestant in every round; old results have only one."""
    return row.get(IN_TURN[key]) or [row[key]]


def reaches(row, floor, rows):
    """Whether a contestant finished at equal quality."""
    qualities = [r.get("quality", {}) for r in rows if not r["aside"]]
    return "seconds" in row and meets(floor, row.get("quality", {}), qualities)


def best_peer(report, floor, key):
    """Values of the best peer at a floor, and whether they are only a bound; or none."""
    best = leader(report, floor, key)
    if best:
        return in_turn(best, key), False
    late = [r["timeout"] for r in _peers(report) if "timeout" in r]
    return ([min(late)], True) if late and key == "seconds" else ([], False)


def leader(report, floor, key):
    """The row of the fastest or leanest peer at a floor, or None."""
    good = [r for r in _peers(report) if reaches(r, floor, report["rows"])]
    return min(good, key=lambda r: r[key], default=None)


def _peers(report):
    return [r for r in report.get("rows", []) if not r["ours"] and not r["aside"]]


def slopes(rows):
    """Growth of each series: exponents of time and memory in n, over the three largest sizes."""
    for series in dict.fromkeys(r["series"] for r in rows if r["series"]):
        done = [r for r in rows if r["series"] == series and "seconds" in r]
        long = [(r["size"], r["seconds"]) for r in done if r["seconds"] >= TINY]
        grown = [(r["size"], max(r["peak_mb"] - r["before_mb"], 1.0)) for r in done]
        for measure, points in (("time slope", long), ("memory slope", grown)):
            if len(points) >= 3:  # two noisy points would fit any exponent
                yield series, measure, slope(sorted(points)[-3:])


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
    """A sentence for every recorded ratio that got worse or is missing; empty if there is none."""
    found = []
    for ratio, old in pairs(new, kept):
        now = _problem(ratio, old, factor)
        if now:
            which = f"{old['workload']}, {old['ours']}, {old['measure']} ({old['floor']})"
            found.append(f"{which}: was {old['value']:.2f}, now {now}")
    return found


def _problem(ratio, old, factor):
    """Description of the problem with a ratio, or None."""
    slope = old["measure"].endswith("slope")
    if ratio is None:  # an exponent needs three long times, so faster code may have none
        return "" if slope else "missing"
    if not ratio["reached"]:
        return "not reached"
    limit = old["value"] + STEEPER if slope else allowed(old, factor)
    worse = ratio["value"] is not None and ratio["checked"] and ratio["value"] > limit
    return f"{ratio['value']:.2f}, beyond {limit:.2f}" if worse else ""


def allowed(old, factor):
    """The largest ratio that passes: `factor` times the largest recorded one.

    The spread of a single run is unknown, so `factor` is applied twice.
    """
    return old["range"][1] * factor ** (2 if old["runs"] == 1 else 1)


def vanished(new, kept):
    """A sentence for every recorded workload without results in this run."""
    for name in (name for name, report in kept.items() if "rows" in report):
        if "rows" not in new.get(name, {}):
            yield f"{name}: was measured, now {new.get(name, {}).get('skipped', 'missing')}"


def pairs(new, kept):
    """Pairs of a new ratio, or None, and the recorded ratio of the same quantity."""
    key = itemgetter("workload", "floor", "ours", "measure")
    found = {key(ratio): ratio for ratio in new}
    return [(found.get(key(old)), old) for old in kept if old["value"] is not None]
