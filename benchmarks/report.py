"""Results on disk: JSON, and the tables and plots made from it."""

import json
import os
import re
from pathlib import Path
from statistics import median

from benchmarks import curves, overview, page
from benchmarks.ratios import alone, compare, in_turn, measure, relative, slopes

RESULTS = Path(__file__).parent / "results"
_HEAD = """# Benchmarks

Written by `make bench`; do not edit. [How to read it](../../docs/benchmarks.md#reading-all-tables).
"""


def slug(machine, quick=False):
    """Name of the results of a machine, such as ``amd-epyc-2-cores``."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores".lower())
    return words.strip("-") + ("-quick" if quick else "")


def write_whole(path, text):
    """Write to a temporary file and rename it, so that the file is always complete."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def keep(results, folder=RESULTS, quick=False):
    """Write results as JSON, table and plots, together with workloads measured earlier."""
    base = Path(folder) / slug(results["machine"], quick)
    kept = read(base.with_suffix(".json"))
    results = {**results, "workloads": {**kept.get("workloads", {}), **results["workloads"]}}
    write_whole(base.with_suffix(".json"), json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    plots = plot(results, base)
    write_whole(base.with_suffix(".md"), table(results, plots))
    if base == RESULTS / page.MACHINE:
        for path, text in page.pages(results).items():
            write_whole(path, text)
    return base.with_suffix(".json")


def read(path):
    """Recorded results; empty if there are none."""
    return json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {}


def ratios_of(workloads):
    """The ratios of all workloads."""
    return [ratio for name, report in workloads.items() for ratio in compare(name, report)]


def table(results, plots=()):
    """All workloads in Markdown."""
    m = results["machine"]
    lines = [_HEAD, f"Machine: {m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}."]
    lines += ["", *[f"![{path.stem}]({path.name})" for path in plots], "", "<!-- tables -->"]
    for name, workload in results["workloads"].items():
        lines += ["", f"## {name}", "", workload["what"], "", *section(workload)]
    return "\n".join(lines) + "\n"


def section(workload):
    """One workload: ratios, absolute values, then the conditions of the measurement."""
    if "skipped" in workload:
        return [f"Skipped: {workload['skipped']}"]
    growing = any(row["series"] for row in workload["rows"])
    lines = _growth(workload["rows"]) if growing else _contest(workload)
    return [*lines, "", _circumstances(workload)]


def _circumstances(workload):
    """Repeats, source, Python, threads, load and date of one workload."""
    rows = workload["rows"]
    most = max((len(in_turn(r, "seconds")) for r in rows if "seconds" in r), default=0)
    runs = "One run each, so the spread is not known" if most <= 1 else f"Median of {most} runs"
    commits = dict.fromkeys(_commit(r) for r in rows if r["ours"] and "seconds" in r)
    pythons = dict.fromkeys(r["python"] for r in rows if r["ours"] and "python" in r)
    limits = [f"{k}={v}" for k, v in workload.get("threads", {}).items()]
    load = " → ".join(f"{workload[k][0]:.1f}" for k in ("load_before", "load_after"))
    source = f"manifoldry {', '.join(commits)}; Python {', '.join(pythons)}"
    return "; ".join([runs, source, *limits, f"load average {load}", workload["time"]]) + "."


def _commit(row):
    if row.get("commit") is None:
        return "of unknown commit"
    return row["commit"][:10] + (" with edits" if row["dirty"] else "")


def _contest(workload):
    rows, floors = workload["rows"], workload["floors"]
    metrics = list(dict.fromkeys(k for row in rows for k in row.get("quality", {})))
    over = "" if alone(workload) else " ÷ best peer"
    time, memory = (measure(workload, key) + over for key in ("seconds", "peak_mb"))
    times = [time + ("" if f == "any" else f", {f}") for f in floors]
    head = ["", *times, memory, *metrics, "time, s", "peak, MB", "parts", "of"]
    return _markdown(head, [_cells(workload, row, metrics) for row in rows])


def _cells(workload, row, metrics):
    name = f"**{row['name']}**" if row["ours"] else row["name"] + (" (aside)" * row["aside"])
    floors = workload["floors"]
    times = [_relative(workload, row, floor, "seconds") for floor in floors]
    memory = _relative(workload, row, floors[0], "peak_mb")
    quality = [_number(row.get("quality", {}).get(k)) for k in metrics]
    package = f"{row['env']} {row.get('versions', {}).get(row['env'], '')}".strip()
    if "seconds" not in row:
        return [name, *times, memory, *quality, _unfinished(row), "", "", package]
    took = _spread(in_turn(row, "seconds"), ".3g")
    parts = ", ".join(f"{k} {v:.3g} s" for k, v in row["parts"].items())
    return [name, *times, memory, *quality, took, f"{row['peak_mb']:.0f}", parts, package]


def _relative(workload, row, floor, key):
    values, bound = relative(workload, row, floor, key)
    return ("< " if bound else "") + _spread(values, ".2f") if values else "–"


def _spread(values, form):
    """The median, and the range if it differs in the digits shown."""
    middle, low, high = (f"{v:{form}}" for v in (median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def _growth(rows):
    found = {(series, measure): value for series, measure, value in slopes(rows)}
    sizes = sorted({row["size"] for row in rows})
    cells = {(r["series"], r["size"]): _long(r) for r in rows}
    head = ["time ∝ nᵖ, p", "memory ∝ nᵖ, p", *[f"n = {n}" for n in sizes]]
    body = []
    for series in dict.fromkeys(row["series"] for row in rows):
        exponents = [_number(found.get((series, f"{m} slope"))) for m in ("time", "memory")]
        body.append([series, *exponents, *[cells.get((series, n), "") for n in sizes]])
    return _markdown(["", *head], body)


def _long(row):
    if "seconds" not in row:
        return _unfinished(row)
    return f"{_spread(in_turn(row, 'seconds'), '.3g')} s, {row['peak_mb']:.0f} MB"


def _unfinished(row):
    if "timeout" not in row:
        return row.get("failed", "left out")
    peak = row.get("peak_so_far_mb")
    return f"> {row['timeout']:g} s" + (f", > {peak:.0f} MB" if peak else "")


def _number(value):
    return "–" if value is None else f"{value:.3g}"


def _markdown(head, body):
    rows = [head, ["---"] * len(head), *body]
    return ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows]


def plot(results, base):
    """The page of tasks and the curves of growth; returns the files written."""
    import matplotlib

    matplotlib.use("Agg")
    drawn = (
        overview.draw(results["workloads"], base.with_name(f"{base.name}-ratios.png")),
        curves.draw(results["workloads"], base.with_name(f"{base.name}-growth.png")),
    )
    return [path for path in drawn if path]
