"""Common code of the reproduced publications: criteria, plots, a table of results, an index.

The ``run.py`` of a paper has one function per experiment, which takes a `Lab` and yields
a `Criterion` for each tested statement. `main` runs them, prints the table, and writes
``results.json``, the table in the paper's ``README.md``, and the index in ``papers/README.md``.

A criterion that fails is a result, so it is recorded with its reason and the exit status stays 0;
if an experiment raises an exception, nothing is written and the status is 1.
"""

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

PAPERS = Path(__file__).resolve().parent
STATUSES = ("PASSED", "FAILED", "SURROGATE", "NOT YET")
PACKAGES = ("manifoldry", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Criterion:
    """A testable statement of a publication and its result.

    Parameters
    ----------
    id : str
        Number of the experiment, such as ``"E1.1"``.
    what : str
        What was done, in a few words.
    published : str
        The claim of the publication: a number, a theorem, or the shape of a curve.
    criterion : str
        What has to hold, fixed before the run.
    measured : str
        The result.
    passed : bool or None
        Whether it holds; None if the experiment has not been done yet.
    note : str
        Required if `passed` is False: is the code or the threshold wrong, and why?
    seeds : int
        Seeds 0, 1, …, ``seeds - 1`` were run; 0 if nothing is random.
    identity : bool
        Whether it holds for every sample by mathematics, so that a quick run must pass it, too.
    surrogate : str
        Data used instead of those of the publication; such a result never counts as passed.
    """

    id: str
    what: str
    published: str
    criterion: str
    measured: str
    passed: bool | None
    note: str = ""
    seeds: int = 0
    identity: bool = False
    surrogate: str = ""

    def __post_init__(self) -> None:
        # Comparisons of arrays give numpy booleans, which fail with `is False` and json.
        if self.passed is not None:
            object.__setattr__(self, "passed", bool(self.passed))

    @property
    def status(self) -> str:
        """One of `STATUSES`."""
        if self.passed is None:
            return "NOT YET"
        if not self.passed:
            return "FAILED"
        return "SURROGATE" if self.surrogate else "PASSED"

    @property
    def remark(self) -> str:
        """The note, with the surrogate data, and a reminder for a failure without a note."""
        unexplained = self.passed is False and not self.note
        parts = [
            f"on {self.surrogate}" if self.surrogate else "",
            "not explained yet: is it the code or the threshold?" if unexplained else self.note,
        ]
        return "; ".join(part for part in parts if part)


def not_yet(id: str, what: str, waits_for: str) -> Criterion:
    """An experiment of the publication that has not been done yet, with the reason."""
    return Criterion(id, what, "", "", f"waits for {waits_for}", None)


@dataclass(frozen=True)
class Lab:
    """Settings of an experiment: full or quick run, and the folder of its plots."""

    figures: Path
    quick: bool = False

    def seeds(self, n: int) -> range:
        """The seeds 0 to n − 1, or at most two in a quick run."""
        return range(min(n, 2) if self.quick else n)

    def choose(self, full: Any, quick: Any) -> Any:
        """The sizes of a full run, or those of a quick one."""
        return quick if self.quick else full

    def save(self, figure: Any, name: str) -> None:
        """Write a figure as ``figures/<name>.png`` and close it."""
        from matplotlib import pyplot

        # Without the version of matplotlib, equal plots are equal files.
        draw = partial(figure.savefig, format="png", dpi=100, metadata={"Software": None})
        replace_file(self.figures / f"{name}.png", draw)
        pyplot.close(figure)


Experiment = Callable[[Lab], Iterable[Criterion]]


@dataclass(frozen=True)
class Report:
    """All criteria of one paper, with the information to repeat the run."""

    paper: str
    title: str
    criteria: tuple[Criterion, ...]
    seconds: dict[str, float]
    quick: bool = False

    def text(self) -> str:
        """The results as a table for a terminal, remarks below their rows."""
        rows = [(c.id, c.status, c.what, c.criterion, c.measured) for c in self.criteria]
        head = ("", "result", "what", "criterion", "measured")
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [_padded(head, widths), _padded(["─" * width for width in widths], widths)]
        for row, criterion in zip(rows, self.criteria, strict=True):
            lines.append(_padded(row, widths))
            if criterion.remark:
                lines.append(" " * (widths[0] + 2) + f"↳ {criterion.remark}")
        return "\n".join([f"{self.paper}: {self.title}", *lines, self._counted()])

    def markdown(self) -> str:
        """The results as Markdown, for the README of the paper."""
        lines = [
            self._provenance(),
            "",
            "| | what was done | published | criterion | measured | result |",
            "|---|---|---|---|---|---|",
            *(_markdown_row(c) for c in self.criteria),
            "",
            *(f"- **{c.id}**, {c.what}: {c.remark}" for c in self.criteria if c.remark),
        ]
        return "\n".join(lines).rstrip()

    def record(self) -> dict[str, Any]:
        """The results as a dict, for ``results.json``."""
        return {
            "paper": self.paper,
            "title": self.title,
            "quick": self.quick,
            "versions": versions(),
            "seeds": list(range(max((c.seeds for c in self.criteria), default=0))),
            "seconds": self.seconds | {"total": round(sum(self.seconds.values()), 1)},
            "counts": self.counts(),
            "criteria": [{**asdict(c), "status": c.status} for c in self.criteria],
        }

    def counts(self) -> dict[str, int]:
        """How many criteria have each status."""
        found = Counter(c.status for c in self.criteria)
        return {status: found[status] for status in STATUSES}

    def write(self, root: Path) -> None:
        """Write results, README and index under `root`: ``papers/`` or another folder."""
        folder = root / self.paper
        write_text(folder / "results.json", json.dumps(self.record(), indent=1, ensure_ascii=False))
        readme = (PAPERS / self.paper / "README.md").read_text(encoding="utf-8")
        write_text(folder / "README.md", fill(readme, "results", self.markdown()))
        index = (PAPERS / "README.md").read_text(encoding="utf-8")
        write_text(root / "README.md", fill(index, "index", index_table(root)))

    def _counted(self) -> str:
        return ", ".join(f"{n} {status.lower()}" for status, n in self.counts().items() if n)

    def _provenance(self) -> str:
        packages = ", ".join(f"{name} {number}" for name, number in versions().items())
        run = "A quick run, not a record," if self.quick else "The last run"
        return f"{run} took {sum(self.seconds.values()):.0f} s ({packages}): {self._counted()}."


def main(file: str, title: str, experiments: Sequence[Experiment]) -> None:
    """Run the experiments of a paper from the command line and record the results."""
    paper = Path(file).resolve().parent.name
    arguments = _parse(title)
    root = arguments.out or PAPERS
    import matplotlib

    matplotlib.use("Agg")  # plots are written to files; no display is needed
    lab = Lab(root / paper / "figures", arguments.quick)
    # Results are identical for the same number of threads; small problems do not need more.
    with threadpool_limits(1):
        report = run(paper, title, experiments, lab)
    report.write(root)
    print(report.text())


def run(paper: str, title: str, experiments: Sequence[Experiment], lab: Lab) -> Report:
    """Run the experiments one after another and time each."""
    criteria, seconds = [], {}
    for experiment in experiments:
        start = time.perf_counter()
        criteria += list(experiment(lab))
        seconds[experiment.__name__] = round(time.perf_counter() - start, 1)
    criteria.sort(key=_experiment_number)
    return Report(paper, title, tuple(criteria), seconds, lab.quick)


def versions() -> dict[str, str]:
    """Versions of the packages that affect the results."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def index_table(root: Path) -> str:
    """One row per paper that has been run, with its counts."""
    lines = [
        "| publication | passed | failed | surrogate | not yet | seconds |",
        "|---|" + "--:|" * 5,
    ]
    for path in sorted(root.glob("*/results.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        counts = " | ".join(str(found["counts"][status]) for status in STATUSES)
        name = f"[{found['title']}]({found['paper']}/README.md)"
        lines.append(f"| {name} | {counts} | {found['seconds']['total']:.0f} |")
    return "\n".join(lines)


def fill(text: str, name: str, content: str) -> str:
    """Replace the text between the markers called `name` by `content`."""
    opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(opening) != 1 or text.count(closing) != 1:
        raise ValueError(f"the README needs one line {opening} and, after it, one line {closing}")
    before, rest = text.split(opening)
    return f"{before}{opening}\n{content}\n{closing}{rest.split(closing)[1]}"


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all."""
    data = (text.rstrip("\n") + "\n").encode()
    replace_file(path, lambda temporary: temporary.write_bytes(data))


def replace_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` write a temporary file and rename it, so that the file is always complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def within(values: Iterable[float], low: float, high: float) -> bool:
    """Whether all values are between two bounds; False for NaN."""
    return all(low <= value <= high for value in values)


def _parse(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"Reproduce: {title}")
    parser.add_argument("--quick", action="store_true", help="small sizes, two seeds; needs --out")
    parser.add_argument("--out", type=Path, help="folder to write to instead of papers/")
    arguments = parser.parse_args()
    if arguments.quick and arguments.out is None:
        parser.error("--quick would overwrite the recorded results; pass --out FOLDER with it")
    return arguments


def _experiment_number(criterion: Criterion) -> list[int]:
    """Sort key: E1.2 before E1.10."""
    return [int(part) for part in criterion.id.lstrip("E").split(".")]


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(width) for cell, width in pairs).rstrip()


def _markdown_row(criterion: Criterion) -> str:
    c = criterion
    status = f"**{c.status}**" if c.status == "FAILED" else c.status.lower()
    cells: Iterator[str] = iter((c.id, c.what, c.published, c.criterion, c.measured, status))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
