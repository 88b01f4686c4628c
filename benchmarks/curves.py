"""Growth of time and memory with n: ours and peers, one panel for every task."""

from benchmarks.ratios import slopes

# Title, workload and task of every panel.
PANELS = (
    ("15 neighbors, 50 features", "growth-points", "NeighborGraph"),
    ("t-SNE", "growth-points", "TSNE"),
    ("Laplacian eigenmaps, 50 features", "growth-points", "LaplacianEigenmaps"),
    ("PCA, 50 features", "growth-points", "PCA"),
    ("Laplacian eigenmaps, roll", "growth", "LaplacianEigenmaps"),
    ("LLE, roll", "growth", "LLE"),
    ("LTSA, roll", "growth", "LTSA"),
    ("Isomap, roll", "growth", "Isomap"),
)
# Series that a workload of its own continues to a larger size, beyond the time limit of the others.
CONTINUED = {("growth-points", "TSNE"): ("tsne-million", 1_000_000)}
ACROSS = 4
COLORS = {True: ("#1f6f8b", "#6fb7cc"), False: ("#d9622b", "#8a5fa8")}  # ours, then peers
QUIET, PALE = "#667078", "#eceff1"
KEYS = {"time": "time, s", "memory": "memory of the fit, MB"}


def draw(workloads, path):
    """Draw all panels that were measured; returns the file written, or None."""
    from matplotlib.figure import Figure

    found = [(title, rows_of(workloads, name, task)) for title, name, task in PANELS]
    found = [(title, rows) for title, rows in found if len({r["size"] for r in rows}) > 1]
    if not found:
        return None
    bands = -(-len(found) // ACROSS)
    figure = Figure(figsize=(13.5, 0.9 + 5.4 * bands), facecolor="white", layout="constrained")
    figure.suptitle("Growth with the number of points n, default parameters", x=0.012, ha="left",
                    fontsize=14, fontweight="bold")  # fmt: skip
    figure.supxlabel(
        "Exponents over the three largest sizes. Memory beyond data and imports. "
        "Triangles: stopped at the time limit.", x=0.012, ha="left", fontsize=9, color=QUIET,
    )  # fmt: skip
    grid = figure.subplots(2 * bands, ACROSS, sharex=True, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    everything = [row for _, rows in found for row in rows]
    for i, (title, rows) in enumerate(found):
        band, across = divmod(i, ACROSS)
        for axes, key in zip(grid[2 * band : 2 * band + 2, across], KEYS, strict=True):
            _panel(axes, rows, key, everything)
            axes.set_ylabel(KEYS[key] if across == 0 else "", fontsize=9)
        grid[2 * band, across].set_title(title, fontsize=10.5, fontweight="bold", loc="left")
        grid[2 * band + 1, across].set_xlabel("n", fontsize=9)
    figure.savefig(path, dpi=100)
    return path


def rows_of(workloads, name, task):
    """Rows of all series of a task that finished, or exceeded the time limit."""
    rows = [r for r in workloads.get(name, {}).get("rows", []) if _task(r) == task]
    longer, size = CONTINUED.get((name, task), ("", 0))
    last = workloads.get(longer, {}).get("rows", [])[:1]
    rows = [r for r in rows if not last or (r["series"], r["size"]) != (task, size)]
    rows += [{**r, "series": task, "size": size} for r in last]
    return [r for r in rows if "seconds" in r or "timeout" in r]


def _task(row):
    return row.get("task") or row["series"].split(",")[0]  # old results have no task


def value(row, key):
    """Seconds, or the megabytes that a fit needs beyond data and imports; None if unfinished."""
    if "seconds" not in row:
        return None
    return row["seconds"] if key == "time" else max(row["peak_mb"] - row["before_mb"], 1.0)


def _panel(axes, rows, key, everything):
    """The series of one task, with their exponents in the legend."""
    axes.set_visible(True)
    exponents = {s: v for s, measure, v in slopes(rows) if measure == f"{key} slope"}
    used = {True: 0, False: 0}
    for series in dict.fromkeys(r["series"] for r in rows):
        own = sorted((r for r in rows if r["series"] == series), key=lambda r: r["size"])
        color = COLORS[own[0]["ours"]][used[own[0]["ours"]]]
        used[own[0]["ours"]] += 1
        done = [r for r in own if "seconds" in r]
        power = f"  $n^{{{exponents[series]:.1f}}}$" if series in exponents else ""
        axes.plot([r["size"] for r in done], [value(r, key) for r in done], "o-", color=color,
                  markersize=4, linewidth=1.8, label=_name(own[0]) + power)  # fmt: skip
        for r in (r for r in own if "seconds" not in r and key == "time"):
            axes.plot(r["size"], r["timeout"], "^", color=color, markersize=6, fillstyle="none")
    _style(axes, [value(r, key) for r in everything if "seconds" in r])


def _name(row):
    """Our package or the peer, and what its method adds to the title."""
    if not row["ours"]:
        return row["series"].split(" (")[0]
    return ", ".join(["manifoldry", *row["series"].split(", ")[1:]])


def _style(axes, values):
    """The same limits for all panels of a quantity, and room for the legend."""
    axes.set(
        xscale="log", yscale="log", xlim=(700, 1.5e6), ylim=(min(values) / 2, max(values) * 30)
    )
    axes.grid(color=PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[:].set_color("#b7c0c6")
    axes.tick_params(labelsize=8.5, colors=QUIET, labelbottom=True, which="both", length=0)
    axes.legend(loc="upper left", fontsize=8.5, frameon=False, handlelength=1.2, labelspacing=0.3)
