"""Results on disk: JSON, written whole or not at all, and what is made from it."""

import json
import os
import re
from pathlib import Path

from benchmarks.ratios import compare, reaches, slopes, yardstick

RESULTS = Path(__file__).parent / "results"
_HEAD = """# Benchmarks

Written by `make bench`; do not edit. [How to read it](../../docs/benchmarks.md).
"""


def slug(machine, quick=False):
    """Name of a machine's results, such as ``amd-epyc-2-cores``."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{machine['cpu']} {machine['cores']} cores".lower())
    return words.strip("-") + ("-quick" if quick else "")


def write_whole(path, text):
    """Write to a temporary name and rename, so that no reader ever sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def keep(results, folder=RESULTS, quick=False):
    """Write results as JSON, table and plots, beside workloads measured earlier."""
    base = Path(folder) / slug(results["machine"], quick)
    kept = read(base.with_suffix(".json"))
    results = {**results, "workloads": {**kept.get("workloads", {}), **results["workloads"]}}
    write_whole(base.with_suffix(".json"), json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    plots = plot(results, base)
    write_whole(base.with_suffix(".md"), table(results, plots))
    return base.with_suffix(".json")


def read(path):
    """Results kept before; empty where there are none."""
    return json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {}


def ratios_of(results):
    """The ratios of all workloads."""
    return [r for name, w in results.get("workloads", {}).items() for r in compare(name, w)]


def table(results, plots=()):
    """All workloads in Markdown."""
    m = results["machine"]
    lines = [_HEAD, f"Machine: {m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}."]
    lines += [f"Threads: {m['threads'] or 'not limited'}. Python {results['python']}.", ""]
    lines += [f"![{path.stem}]({path.name})" for path in plots]
    for name, workload in results["workloads"].items():
        lines += ["", f"## {name}", "", workload["what"], "", *section(workload)]
    return "\n".join(lines) + "\n"


def section(workload):
    """One workload: ratios first, absolute figures after them."""
    if "skipped" in workload:
        return [f"Skipped: {workload['skipped']}"]
    if any(row["series"] for row in workload["rows"]):
        return _growth(workload["rows"])
    rows, floors = workload["rows"], workload["floors"]
    figures = list(dict.fromkeys(k for row in rows for k in row.get("quality", {})))
    times = ["time ÷ best peer" + ("" if f == "any" else f", {f}") for f in floors]
    head = [
        "",
        *times,
        "memory ÷ best peer",
        *figures,
        "time (range), s",
        "peak, MB",
        "parts",
        "of",
    ]
    body = [_cells(workload, row, figures) for row in rows]
    load = " → ".join(f"{workload[k][0]:.1f}" for k in ("load_before", "load_after"))
    return [*_markdown(head, body), "", f"Load average {load}; {workload['time']}."]


def _cells(workload, row, figures):
    name = f"**{row['name']}**" if row["ours"] else row["name"] + (" (aside)" * row["aside"])
    floors = workload["floors"]
    times = [_relative(workload, row, floor, "seconds") for floor in floors]
    memory = _relative(workload, row, floors[0], "peak_mb")
    quality = [_figure(row.get("quality", {}).get(k)) for k in figures]
    package = f"{row['env']} {row.get('versions', {}).get(row['env'], '')}".strip()
    if "seconds" not in row:
        said = f"> {row['timeout']:g} s" if "timeout" in row else row["failed"]
        return [name, *times, memory, *quality, said, "", "", package]
    low, high = row["spread"]
    took = f"{row['seconds']:.3g} ({low:.3g} to {high:.3g}; {row['runs']})"
    parts = ", ".join(f"{k} {v:.3g} s" for k, v in row["parts"].items())
    return [name, *times, memory, *quality, took, f"{row['peak_mb']:.0f}", parts, package]


def _relative(workload, row, floor, key):
    best, bound = yardstick(workload, floor, key)
    if best is None or not reaches(row, floor, workload["rows"]):
        return "–"
    return ("< " if bound else "") + f"{row[key] / best:.2f}"


def _growth(rows):
    found = {(series, measure): value for series, measure, value in slopes(rows)}
    sizes = sorted({row["size"] for row in rows})
    cells = {(r["series"], r["size"]): _long(r) for r in rows}
    head = ["time ∝ nᵖ, p", "memory ∝ nᵖ, p", *[f"n = {n}" for n in sizes]]
    body = []
    for series in dict.fromkeys(row["series"] for row in rows):
        exponents = [_figure(found.get((series, f"{m} slope"))) for m in ("time", "memory")]
        body.append([series, *exponents, *[cells.get((series, n), "") for n in sizes]])
    return _markdown(["", *head], body)


def _long(row):
    if "seconds" in row:
        return f"{row['seconds']:.3g} s, {row['peak_mb']:.0f} MB"
    return f"> {row['timeout']:g} s" if "timeout" in row else row["failed"]


def _figure(value):
    return "–" if value is None else f"{value:.3g}"


def _markdown(head, body):
    rows = [head, ["---"] * len(head), *body]
    return ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows]


def plot(results, base):
    """Ratios of ours as bars, and growth as lines; returns the files written."""
    import matplotlib

    matplotlib.use("Agg")
    drawn = []
    bars = [r for r in ratios_of(results) if r["measure"] == "time" and r["value"] is not None]
    if bars:
        drawn.append(_bars(bars, base.with_name(base.name + "-ratios.png")))
    series = [r for w in results["workloads"].values() for r in w.get("rows", []) if r["series"]]
    if any("seconds" in r for r in series):
        drawn.append(_lines(series, base.with_name(base.name + "-growth.png")))
    return drawn


def _bars(ratios, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1 + 0.22 * len(ratios)), layout="constrained")
    axes = figure.subplots()
    labels = [f"{r['workload']}: {r['ours']}, {r['floor']}" for r in ratios]
    colors = ["tab:green" if r["value"] <= 1 else "tab:orange" for r in ratios]
    axes.barh(range(len(ratios)), [r["value"] for r in ratios], color=colors)
    axes.set_yticks(range(len(ratios)), labels, fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="time of ours ÷ best peer of equal quality (left is better)")
    axes.invert_yaxis()
    figure.savefig(path, dpi=90)
    return path


def _lines(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    panels = zip(
        figure.subplots(1, 2), ("seconds", "peak_mb"), ("time, s", "peak, MB"), strict=True
    )
    for axes, key, label in panels:
        for i, series in enumerate(dict.fromkeys(r["series"] for r in rows)):
            done = [r for r in rows if r["series"] == series and key in r]
            line = "o-" if i < 10 else "s--"  # the colours repeat after ten
            axes.loglog([r["size"] for r in done], [r[key] for r in done], line, label=series)
        axes.set(xlabel="n", ylabel=label)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=90)
    return path
