"""One page for users: our defaults against the best peer, a row for every task."""

from dataclasses import dataclass
from statistics import median

from benchmarks.ratios import leader, reaches, relative


@dataclass(frozen=True)
class Task:
    """A row of the page: a workload, one of its floors, and one of our contestants.

    By default the first floor, and our first contestant, which has the default parameters.
    """

    label: str
    workload: str
    floor: str = ""
    contestant: str = ""


NEAR = "recall >= 0.98"
TASKS = {
    "Neighbors": (
        Task("15 neighbors, MNIST 70 000 × 784", "knn-mnist", NEAR),
        Task("the same, exact", "knn-mnist", "recall >= 0.999", "NeighborGraph, exact"),
        Task("15 neighbors, 5000 digits × 784", "knn-mnist-5k", NEAR),
        Task("15 neighbors, Swiss roll 1 000 000 × 3", "knn-roll", NEAR),
    ),
    "t-SNE": (
        Task("1797 digits × 64", "tsne-digits"),
        Task("MNIST 2000 × 50", "tsne-mnist-2k"),
        Task("MNIST 5000 × 50", "tsne-mnist-5k"),
        Task("MNIST 10 000 × 50", "tsne-mnist-10k"),
        Task("MNIST 70 000 × 50", "tsne-mnist-70k"),
    ),
    "Spectral embedding": (
        Task("Laplacian eigenmaps, 1797 digits", "embed-laplacian-digits"),
        Task("Laplacian eigenmaps, MNIST 10 000", "embed-laplacian-mnist-10k"),
        Task("Laplacian eigenmaps, roll 60 000", "fit-laplacian-roll"),
        Task("eigenvectors of a graph, roll 100 000", "laplacian-roll-2"),
        Task("eigenvectors of a graph, MNIST 70 000", "laplacian-mnist-2"),
        Task("LLE, roll 2000", "local-lle-2k"),
        Task("LLE, roll 50 000", "local-lle-50k"),
        Task("LTSA, roll 10 000", "local-ltsa-10k"),
        Task("Hessian LLE, roll 10 000", "local-hessianlle-10k"),
        Task("Isomap, 1797 digits", "embed-isomap-digits"),
        Task("Isomap, MNIST 10 000", "embed-isomap-mnist-10k"),
        Task("Isomap, MNIST 10 000 × 50", "embed-isomap-mnist50-10k"),
        Task("maximum variance unfolding, roll 30", "unfolding-cliques-30"),
        Task("maximum variance unfolding, roll 100", "unfolding-cliques-100"),
    ),
    "Components and kernels": (
        Task("PCA, 1797 digits", "embed-pca-digits"),
        Task("PCA, MNIST 10 000", "embed-pca-mnist-10k"),
        Task("kernel PCA, roll 10 000", "kernel-pca-10k"),
        Task("classical MDS of distances, 10 000 points", "mds-precomputed-10k"),
    ),
    "Quality metrics": (
        Task("trustworthiness, all of 2000 digits", "quality-mnist-2k"),
        Task("trustworthiness, all of 20 000 digits", "quality-mnist-20k"),
    ),
    "Cold start": (
        Task("import of the estimators", "startup-import",
             contestant="import manifoldry, the estimators"),
        Task("first graph, MNIST 70 000, nothing compiled", "startup-graph",
             contestant="NeighborGraph, nothing compiled"),
    ),
}  # fmt: skip
# What is compared, and the words for a ratio below and above one.
TITLES = {
    "seconds": ("Time", "ours faster", "slower"),
    "peak_mb": ("Peak memory", "ours leaner", "larger"),
}


@dataclass(frozen=True)
class Outcome:
    """Ratio of ours to the best peer, or None with a reason; both values, and the peer's name."""

    ratio: float | None
    ours: float | None = None
    theirs: float | None = None
    peer: str = ""
    bound: bool = False


def contestant(task, report):
    """The row of ours that a task shows."""
    rows = report["rows"]
    return next(r for r in rows if r["ours"] and task.contestant in ("", r["name"]))


def outcome(task, report, key):
    """Ours against the fastest peer of equal quality, or the leanest one."""
    rows, floor = report["rows"], task.floor or report["floors"][0]
    ours = contestant(task, report)
    if not reaches(ours, floor, rows):
        return Outcome(None, peer="ours is not of equal quality")
    values, bound = relative(report, ours, floor, key)
    best = leader(report, floor, key)
    if bound:
        limit = ours[key] / median(values)
        return Outcome(median(values), ours[key], limit, "none in time", bound=True)
    if not values:
        return Outcome(None, ours[key], peer="no peer of equal quality")
    return Outcome(median(values), ours[key], best[key], short(best))


def short(row):
    """Name of a peer: its package, and which of its methods where it has several.

    Examples
    --------
    >>> short({"env": "faiss-cpu", "name": "faiss, exact"})
    'faiss, exact'
    >>> short({"env": "scikit-learn", "name": "scikit-learn SpectralEmbedding"})
    'scikit-learn'
    """
    if row["env"] == "faiss-cpu" or row["name"].startswith("scipy"):
        return row["name"]
    methods = (m for m in ("Clarabel", "SCS", "exact") if m in row["name"])
    return ", ".join([row["env"], *methods])


def measured(workloads):
    """Groups of tasks with recorded rows, and a description of every task without."""
    groups, missing = {}, []
    for group, tasks in TASKS.items():
        for task in tasks:
            if "rows" in workloads.get(task.workload, {}):
                groups.setdefault(group, []).append(task)
            else:
                missing.append(f"{group} of {task.label}" if group == "t-SNE" else task.label)
    return groups, missing


def draw(workloads, path):
    """Draw the page; returns the file written, or None if no task was measured."""
    from matplotlib.figure import Figure

    groups, missing = measured(workloads)
    if not groups:
        return None
    places, headings, y = [], [], 0.0
    for group, tasks in groups.items():
        headings.append((y, group))
        places += [(y + 1 + i, task) for i, task in enumerate(tasks)]
        y += len(tasks) + 1.4
    inches = TOP + BOTTOM + ROW * y
    figure = Figure(figsize=(WIDTH, inches), facecolor="white")
    rows = BOTTOM / inches, ROW * y / inches  # of all axes: where they start, and their height
    page = figure.add_axes((0, rows[0], 1, rows[1]), xlim=(0, 1), ylim=(y - 0.7, -0.7))
    page.set_axis_off()
    for at, group in headings:
        page.text(0.012, at, group, fontsize=10.5, fontweight="bold", va="center")
    for at, task in places:
        page.text(0.022, at, task.label, fontsize=9.5, va="center")
        page.plot([0.012, 0.99], [at + 0.5, at + 0.5], color="#eceff1", linewidth=0.7, zorder=0)
    for key, left in zip(TITLES, (0.245, 0.615), strict=True):
        axes = figure.add_axes((left, rows[0], 0.165, rows[1]), sharey=page)
        found = [(at, outcome(task, workloads[task.workload], key)) for at, task in places]
        _bars(axes, found, key)
        _values(page, found, key, left + 0.17)
    _write(figure, sorted({workloads[t.workload]["time"][:10] for _, t in places}), missing)
    figure.savefig(path, dpi=100)
    return path


WIDTH, ROW, TOP, BOTTOM = 13.5, 0.3, 1.05, 0.95  # inches
OURS, PEER, QUIET = "#1f6f8b", "#d9622b", "#667078"
LIMITS = 1 / 300, 30  # of the axes; a longer bar ends there, and its number says how long it is


def _bars(axes, found, key):
    """Bars from 1 to the ratio on a logarithmic axis: ours is better left of it."""
    low, high = LIMITS
    axes.set(xscale="log", xlim=LIMITS)
    axes.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"], fontsize=8.5, color=QUIET)
    axes.tick_params(left=False, labelleft=False, length=0, which="both", labeltop=True)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("none")
    axes.grid(axis="x", color="#eceff1", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvline(1, color="#30363b", linewidth=1)
    for y, o in found:
        if o.ratio is None:
            continue
        better = o.ratio <= 1
        color, end = OURS if better else PEER, min(max(o.ratio, low), high)
        axes.barh(y, end - 1, left=1, height=0.62, color=color, alpha=0.45 if o.bound else 1)
        axes.annotate(
            ("< " if o.bound else "") + digits(o.ratio), (end, y), fontsize=9, va="center",
            xytext=(-4 if better else 4, 0), textcoords="offset points", color=color,
            ha="right" if better else "left",
        )  # fmt: skip
    title, left, right = TITLES[key]
    for at, words, align, color in (
        (-1, f"◀ {left}", "right", OURS),
        (1, f"{right} ▶", "left", PEER),
    ):
        axes.annotate(words, (1, 1), xycoords=("data", "axes fraction"), color=color, ha=align,
                      xytext=(7 * at, 19), textcoords="offset points", fontsize=9)  # fmt: skip
    axes.annotate(title, (1, 1), xycoords=("data", "axes fraction"), ha="center", fontsize=10.5,
                  xytext=(0, 35), textcoords="offset points", fontweight="bold")  # fmt: skip


def _values(page, found, key, x):
    """Both values and the peer's name, in columns at the right of the bars."""
    style = {"fontsize": 9, "va": "center"}
    page.text(x + 0.042, -1.3, "ours", ha="right", **style)
    page.text(x + 0.096, -1.3, "best peer", color=QUIET, **style)
    for y, o in found:
        if o.ours is not None:
            page.text(x + 0.042, y, amount(o.ours, key), ha="right", **style)
        if o.theirs is not None:
            words = ("> " if o.bound else "") + amount(o.theirs, key)
            page.text(x + 0.09, y, words, ha="right", color=QUIET, **style)
        start = 0.096 if o.theirs is not None else 0.05
        page.text(x + start, y, o.peer, color=QUIET, **style)


def _write(figure, days, missing):
    """Title and notes."""
    inches = figure.get_figheight()
    figure.text(0.012, 1 - 0.3 / inches, "manifoldry, default parameters unless named", fontsize=14,
                fontweight="bold", va="center")  # fmt: skip
    figure.text(0.012, 1 - 0.57 / inches, "against the best peer of equal quality",
                fontsize=11, color=QUIET, va="center")  # fmt: skip
    notes = ["Ratios ours ÷ peer on logarithmic axes. The peer is the fastest one of equal "
             "quality, for memory the leanest one; pale: no peer finished in time."]  # fmt: skip
    period = " to ".join(dict.fromkeys([days[0], days[-1]]))
    notes.append(f"Measured {period}; the tables have the machine, versions and commits.")
    if missing:
        notes.append(f"Not measured yet: {'; '.join(missing)}.")
    figure.text(0.012, 0.34 / inches, "\n".join(notes), fontsize=8.5, color=QUIET, va="center",
                linespacing=1.5)  # fmt: skip


def digits(value):
    """Two digits, without an exponent."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.01 else f"{value:.1g}"


def amount(value, key):
    """A time or an amount of memory with its unit.

    Examples
    --------
    >>> amount(0.0584, "seconds"), amount(139.0, "seconds"), amount(1674.0, "peak_mb")
    ('58 ms', '139 s', '1.7 GB')
    """
    if key == "seconds":
        return f"{1000 * value:.2g} ms" if value < 0.1 else f"{digits(value)} s"
    return f"{value / 1000:.1f} GB" if value >= 1000 else f"{value:.0f} MB"
