"""Tables of the documentation that are made from recorded results: ``python -m benchmarks.page``.

Pages have markers such as ``<!-- tasks -->`` and ``<!-- /tasks -->``, and what is between them is
written here, so that no page has a number that the recorded results do not have.
"""

import json
import re
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from statistics import median

from benchmarks import cluster_model, overview
from benchmarks.overview import TASKS, contestant, digits, outcome
from benchmarks.ratios import IN_TURN, in_turn, reaches, turn_by_turn

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
DOCS = Path(__file__).parents[1] / "docs"
RESULTS = Path(__file__).parent / "results"
MACHINE = "amd-epyc-2-cores"  # the results that the pages show
OWN = ("isomap-million", "tsne-million", "nonredundant-mnist-15k", "nonredundant-roll-1m")
MAPS = ("tsne-digits", "tsne-mnist-10k", "tsne-mnist-70k")
GPU = "nvidia-h200"  # the results of `benchmarks.gpu` that the pages show
NO_RECORD = "No times on a GPU are recorded for this version: none was at hand to measure it."
ON_GPU = {
    "neighbors": "15 neighbors of 70 000 digits (MNIST, 784 pixels)",
    "neighbors-million": "15 neighbors of 1 000 000 points with 128 features",
    "tsne": "`TSNE` of 70 000 digits, exact sums",
    "tsne-fft": "`TSNE` of 70 000 digits, interpolated sums",
    "tsne-million-fft": "`TSNE` of 1 000 000 points with 50 features, interpolated sums",
    "tsne-million": "`TSNE` of 1 000 000 points with 50 features, exact sums",
    "elastic-homotopy": "`ElasticEmbedding` of 70 000 digits, λ found",
    "eigenmaps": "`LaplacianEigenmaps` of 70 000 digits",
    "nonredundant-gradient": "`NonRedundant`, 11 coordinates of 15 000 digits",
    "trustworthiness": "`trustworthiness` of a map of 70 000 digits, all pairs",
}
SIMULATED = cluster_model.Data(10**9, 512, 2**16)
# The names of quality metrics in the results, and for readers.
QUALITY = {"KL": "KL divergence", "trust": "trustworthiness", "1-NN": "1-NN accuracy"}


def amount(value, key):
    """A value and its unit, which stay on one line."""
    return overview.amount(value, key).replace(" ", "\N{NO-BREAK SPACE}")


def day(report):
    """The day of a measurement.

    Examples
    --------
    >>> day({"time": "2026-11-05T14:58:57+00:00"})
    '5 Nov 2026'
    """
    found = datetime.fromisoformat(report["time"])
    return f"{found.day} {MONTHS[found.month - 1]} {found.year}"


def tables(results):
    """The tables of each page: page, marker, lines."""
    machine, workloads = results["machine"], results["workloads"]
    yield "benchmarks.md", "machine", conditions(machine, workloads)
    yield "benchmarks.md", "tasks", task_table(workloads)
    yield "benchmarks.md", "slower", slower(workloads)
    yield "benchmarks.md", "maps", map_table(workloads)
    yield "benchmarks.md", "own", own_table(workloads)
    yield "coming-from/scikit-learn.md", "times", against(workloads, "scikit-learn")
    yield "coming-from/opentsne.md", "times", against(workloads, "openTSNE")
    yield "coming-from/umap-learn.md", "times", map_table(workloads)
    yield from gpu_tables(RESULTS / f"{GPU}.json")
    yield from distributed_tables(json.loads((RESULTS / "distributed.json").read_text("utf-8")))


def conditions(machine, workloads):
    """Machine and days of the measurements."""
    done = sorted((w for w in workloads.values() if "rows" in w), key=itemgetter("time"))
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB of memory"
    return [
        f"Machine: {where}, {machine['system']}. Measured from {day(done[0])} to {day(done[-1])}."
    ]


def recorded(workloads):
    """Groups and their tasks that have been measured, each with its workload."""
    for group, tasks in TASKS.items():
        for task in (t for t in tasks if "rows" in workloads.get(t.workload, {})):
            yield group, task, workloads[task.workload]


def label(group, task):
    """A task in words that need no heading."""
    return f"t-SNE, {task.label}" if group == "t-SNE" else task.label


def task_table(workloads):
    """Ours against the fastest and the leanest peer of equal quality, a row for every task."""
    head = ["task", "our time", "fastest peer", "ours ÷ peer", "our memory", "leanest peer",
            "ours ÷ peer", "measured"]  # fmt: skip
    rows, last = [], None
    for group, task, report in recorded(workloads):
        if group != last:
            rows.append([f"**{group}**", *[""] * 7])
        cells = [c for key in IN_TURN for c in _compared(task, report, key)]
        rows.append([label(group, task), *cells, day(report)])
        last = group
    return markdown(head, rows)


def _compared(task, report, key):
    """Ours, the peer with its value, and the ratio."""
    o = outcome(task, report, key)
    ours = "–" if o.ours is None else amount(o.ours, key)
    if o.ratio is None:
        return [ours, o.peer, "–"]
    bound = "> " * o.bound
    theirs = f"{o.peer}, {bound}{amount(o.theirs, key)}"
    return [ours, theirs, "< " * o.bound + digits(o.ratio)]


def slower(workloads):
    """The tasks for which a peer of equal quality is faster, the worst first."""
    found = [(label(g, t), outcome(t, w, "seconds")) for g, t, w in recorded(workloads)]
    behind = [(task, o) for task, o in found if o.ratio is not None and o.ratio > 1]
    return [
        f"- {task}: {o.peer} {amount(o.theirs, 'seconds')}, ours {amount(o.ours, 'seconds')}, "
        f"{digits(o.ratio)} times as long"
        for task, o in sorted(behind, key=lambda each: -each[1].ratio)
    ]


def map_table(workloads):
    """t-SNE by several packages: time, memory and quality of the map."""
    found = [(w["what"], r) for w in (workloads[n] for n in MAPS) for r in w["rows"]]
    metrics = [k for k in QUALITY if any(k in r.get("quality", {}) for _, r in found)]
    head = ["data", "", "time", "memory", *[QUALITY[k] for k in metrics]]
    rows, last = [], None
    for what, r in found:
        data = what.removeprefix("t-SNE of ").removesuffix(", perplexity 30")
        quality = [f"{r['quality'][k]:.3f}" for k in metrics]
        name = "**TSNE** (ours)" if r["ours"] else r["name"]
        spent = [amount(r["seconds"], "seconds"), amount(r["peak_mb"], "peak_mb")]
        rows.append([data if data != last else "", name, *spent, *quality])
        last = data
    return markdown(head, rows)


def own_table(workloads):
    """Workloads of our own methods only, every contestant."""
    rows = [
        [w["what"], r["name"], amount(r["seconds"], "seconds"), amount(r["peak_mb"], "peak_mb")]
        for w in (workloads[name] for name in OWN)
        for r in w["rows"]
    ]
    return markdown(["task", "", "time", "memory"], rows)


def gpu_tables(record):
    """The tables of a GPU from a file of `benchmarks.gpu`, or that there is none."""
    if not record.exists():
        yield "gpu.md", "figures", [NO_RECORD]
        yield "benchmarks.md", "gpu", [NO_RECORD]
        return
    yield "gpu.md", "figures", gpu_table(json.loads(record.read_text(encoding="utf-8")))
    yield "benchmarks.md", "gpu", record.with_suffix(".md").read_text("utf-8").splitlines()


def gpu_table(results):
    """Time and memory of what a GPU computes."""
    work = results["work"]
    rows = [
        [what, amount(work[name]["best"], "seconds"), f"{work[name]['memory_gb']:.1f} GB"]
        for name, what in ON_GPU.items()
        if "best" in work.get(name, {})
    ]
    return markdown(["work", "time", "memory of the GPU"], rows)


def distributed_tables(found):
    """The tables of clusters: what was measured, and what follows from it for larger ones."""
    cluster = cluster_model.hundred_workers(found["work"]["machine"]["constants"])
    yield "distributed.md", "runs", runs_table(found)
    yield "distributed.md", "overhead", overhead(found["work"])
    yield "distributed.md", "simulation", simulation_table(cluster)
    yield "distributed.md", "breaks", breaks_list(cluster)


def runs_table(found):
    """Fits of data in Zarr by workers: time, bytes and memory, beside the model of costs."""
    constants, rows = found["work"]["machine"]["constants"], []
    for name, work in found["work"].items():
        kind = name.partition("-")[0]
        if "memory_limit" not in work or kind not in cluster_model.MEASURED:
            continue
        cluster = cluster_model.this_machine(constants, 2, work["memory_limit"])
        data = cluster_model.Data(work["rows"], 50, min(50_000, work["rows"] // 4))
        model, stages = cluster_model.predicted(kind, data, cluster), work["stages"]
        fit, write = stages["fit"], stages["write"]
        moved = fit["workers_received"] + write["workers_received"]
        peaks = {kind: max(fit["peak"][kind], write["peak"][kind]) for kind in fit["peak"]}
        rows.append([
            work["what"],
            f"{work['rows']:,}".replace(",", "\N{NO-BREAK SPACE}"),
            _pair(fit["seconds"], model["fit"], "seconds"),
            _pair(write["seconds"], model["write"], "seconds"),
            _pair(moved / 1e6, model["moved"] / 1e6, "peak_mb"),
            amount((fit["client_received"] + write["client_received"]) / 1e6, "peak_mb"),
            _pair(peaks["workers"] / 1e6, model["memory"] / 1e6, "peak_mb"),
            amount(peaks["client"] / 1e6, "peak_mb"),
        ])  # fmt: skip
    head = ["fit", "rows", "time of the fit (model)", "of the map (model)", "moved (model)",
            "to the client", "memory of a worker (model)", "of the client"]  # fmt: skip
    about, rates = found["machine"], constants
    last = max(work["time"] for work in found["work"].values() if "time" in work)
    return [
        *markdown(head, rows),
        "",
        f"Machine: {about['cpu']}, {about['cores']} cores, shared with other work, "
        f"{day({'time': last})}. Rates: {1e3 * rates['per_task']:.2g} ms per task, "
        f"{rates['network'] / 1e6:.0f} MB/s between workers, {rates['store'] / 1e6:.0f} MB/s from "
        f"Zarr, {rates['products'] / 1e9:.2g} Gflop/s of a thread in matrix products, "
        f"{1e9 * rates['per_pair']:.2g} ns to select neighbors for each distance.",
    ]


def _pair(measured, model, key):
    return f"{amount(measured, key)} ({amount(model, key)})"


def overhead(work):
    """What workers cost where memory suffices."""
    lines = []
    for found in (each for each in work.values() if each.get("in_memory") is not None):
        here, away = found["in_memory"], sum(map(itemgetter("seconds"), found["stages"].values()))
        lines.append(
            f"- {found['what']}: {amount(away, 'seconds')} on two workers of one thread, "
            f"{amount(here, 'seconds')} in memory with two threads, {digits(away / here)} times"
        )
    return [
        "**Against a fit in memory**, at 100 000 rows, from reading Zarr to writing it:",
        "",
        *lines,
    ]


def simulation_table(cluster):
    """Stages of fits to a billion rows."""
    head = ["fit", "step", "tasks", "time", "busiest", "moved", "per worker", "client",
            "scheduler"]  # fmt: skip
    rows, last = [], None
    for each in cluster_model.simulated(SIMULATED, cluster):
        marks = {limit: f" **(× {ratio:.1f})**" for limit, ratio in each["beyond"].items()}
        rows.append([
            each["fit"] if each["fit"] != last else "",
            each["stage"],
            f"{each['tasks']:.1g}" + marks.get("number of tasks", ""),
            duration(each["seconds"]) + marks.get("time of one thread", ""),
            each["busiest"],
            f"{each['moved'] / 1e12:.2g} TB",
            f"{each['memory'] / 2**30:.0f} GiB" + marks.get("memory of workers", ""),
            f"{each['client'] / 2**30:.1f} GiB" + marks.get("memory of the client", ""),
            f"{each['scheduler'] / 2**30:.1f} GiB" + marks.get("memory of the scheduler", ""),
        ])  # fmt: skip
        last = each["fit"]
    return markdown(head, rows)


def duration(seconds):
    """Seconds, minutes or hours.

    Examples
    --------
    >>> duration(90).split(), duration(600).split(), duration(9000).split()
    (['90', 's'], ['10', 'min'], ['2.5', 'h'])
    """
    if seconds < 100:
        return amount(seconds, "seconds")
    scale, unit = (60, "min") if seconds < 6000 else (3600, "h")
    return f"{digits(seconds / scale)}\N{NO-BREAK SPACE}{unit}"


def breaks_list(cluster):
    """The largest data of each fit on the simulated cluster, and what is short beyond."""
    few = 50
    wide, narrow = (cluster_model.breaks(cluster, d) for d in (SIMULATED.d, few))
    head = ["fit", f"most rows of {SIMULATED.d} features", "short beyond",
            f"of {few} features", "short beyond"]  # fmt: skip
    rows = [[name, *_limit(*wide[name]), *_limit(*narrow[name])] for name in wide]
    return markdown(head, rows)


def _limit(n, scarce):
    return ["more than " * (scarce is None) + _rows(n), scarce or ""]


def _rows(n):
    """A number of rows in millions or billions.

    Examples
    --------
    >>> _rows(31_622_776).split(), _rows(1_258_925_411).split()
    (['30', 'million'], ['1.3', 'billion'])
    """
    scale, unit = (1e9, "billion") if n >= 1e9 else (1e6, "million")
    value = float(f"{n / scale:.2g}" if n >= 1e9 else f"{n / scale:.1g}")
    return f"{value:g}\N{NO-BREAK SPACE}{unit}"


def against(workloads, package):
    """Ours beside the fastest method of one package, for the tasks that it does as well."""
    head = ["task", "ours", package, "time, ours ÷ theirs", "memory, ours ÷ theirs"]
    rows = []
    for group, task, report in recorded(workloads):
        theirs = fastest(report, task, package)
        if theirs:
            ours = contestant(task, report)
            times = [amount(row["seconds"], "seconds") for row in (ours, theirs)]
            pairs = [[in_turn(row, key) for row in (ours, theirs)] for key in IN_TURN]
            ratios = [digits(median(turn_by_turn(*pair))) for pair in pairs]
            rows.append([label(group, task), *times, *ratios])
    return markdown(head, rows)


def fastest(report, task, package):
    """The fastest row of a package at equal quality, or None; scipy's are not scikit-learn's."""
    rows, floor = report["rows"], task.floor or report["floors"][0]
    named = [r for r in rows if r["env"] == package and not r["name"].startswith("scipy")]
    good = [r for r in named if not r["aside"] and reaches(r, floor, rows)]
    return min(good, key=lambda r: r["seconds"], default=None)


def markdown(head, rows):
    """A table as lines of Markdown."""
    return ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]


def fill(text, marker, lines):
    """Put lines between the markers of a page."""
    pattern = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)", flags=re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"the page needs one line <!-- {marker} --> and one <!-- /{marker} -->")
    content = "\n".join(lines) + "\n"
    return pattern.sub(lambda found: found[1] + content + found[2], text)


def pages(results, folder=DOCS):
    """The pages with their tables as they should be: path and text."""
    texts = {}
    for name, marker, lines in tables(results):
        path = folder / name
        text = texts.get(path) or path.read_text(encoding="utf-8")
        texts[path] = fill(text, marker, lines)
    return texts


if __name__ == "__main__":
    from benchmarks.report import read, write_whole

    for path, text in pages(read(RESULTS / f"{MACHINE}.json")).items():
        write_whole(path, text)
