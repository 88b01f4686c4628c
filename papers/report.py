"""Common code of the reproduced publications: criteria, plots, a table of results, an index.

The ``run.py`` of a paper has one function per experiment, which takes a `Lab` and yields
a `Criterion` for each tested statement. `main` runs them, prints the table, and writes
``results.json``, the tables in the paper's ``README.md``, and the index in ``papers/README.md``.

A criterion that fails is a result, so it is recorded and the exit status stays 0; if an experiment
raises an exception, nothing is written and the status is 1. Why a criterion failed is written after
the run, in the paper's ``failures.toml``; ``python papers/report.py`` then writes all tables again.
``summary.toml`` lists the claims of the paper in a few words, for the summary of the README.
"""

import argparse
import json
import os
import platform
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

PAPERS = Path(__file__).resolve().parent
SITE = PAPERS.parent / "docs" / "papers" / "index.md"
STATUSES = ("PASSED", "FAILED", "SURROGATE", "NOT YET")
PACKAGES = ("manifoldry", "numpy", "scipy", "scikit-learn")
# Why a criterion failed: the words of failures.toml, and what the index says about them.
CAUSES = {
    "claim": "the claim does not hold",
    "settings": "holds only with other settings, which are named",
    "data": "other data than those of the publication",
    "criterion": "the criterion was ill-posed",
    "ours": "a deficiency of this library",
}


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
        What a reader has to know, whether it holds or not. Why it does not hold is not known before
        the run and is written in ``failures.toml``.
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
        """The note, with the surrogate data."""
        parts = [f"on {self.surrogate}" if self.surrogate else "", self.note]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Failure:
    """Why criteria of one experiment failed: an entry of a ``failures.toml``.

    Parameters
    ----------
    id : str
        Number of the experiment.
    what : str
        How the `what` of these criteria begins.
    cause : str
        One of `CAUSES`.
    evidence : str
        The rerun or derivation that shows the cause.
    """

    id: str
    what: str
    cause: str
    evidence: str

    def __post_init__(self) -> None:
        if self.cause not in CAUSES:
            raise ValueError(f"cause={self.cause!r} of {self.id} must be one of {list(CAUSES)}")
        if not self.evidence.strip():
            raise ValueError(f"the failure {self.id}, {self.what!r}, has no evidence")

    def covers(self, criterion: Criterion) -> bool:
        """Whether it explains this criterion."""
        same = self.id == criterion.id and criterion.what.startswith(self.what)
        return same and criterion.passed is False

    def __str__(self) -> str:
        return f"{CAUSES[self.cause]}: {' '.join(self.evidence.split())}"


def read_failures(paper: str) -> tuple[Failure, ...]:
    """The explained failures of a paper; none if it has no ``failures.toml``."""
    path = PAPERS / paper / "failures.toml"
    if not path.exists():
        return ()
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["failure"]
    return tuple(Failure(**entry) for entry in entries)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, for its summary: an entry of a ``summary.toml``.

    Parameters
    ----------
    says : str
        The claim.
    found : str
        What became of it, in words; the numbers come from the results.
    experiments : list of str
        Numbers of the experiments that test it.
    example : tuple of str, default=()
        Number of an experiment, and how the `what` of one of its criteria begins.
    """

    says: str
    found: str
    experiments: Sequence[str]
    example: Sequence[str] = ()

    def quoted(self, criteria: Iterable[Criterion]) -> str:
        """The result of the example; empty if there is none."""
        if not self.example:
            return ""
        id, what = self.example
        found = [c for c in criteria if c.id == id and c.what.startswith(what)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} criteria of {id} begin with {what!r}; one has to")
        return f"{found[0].what}: {found[0].measured}"


def read_claims(paper: str) -> tuple[Claim, ...]:
    """The claims of a paper in the order of its ``summary.toml``."""
    text = (PAPERS / paper / "summary.toml").read_text(encoding="utf-8")
    return tuple(Claim(**entry) for entry in tomllib.loads(text)["claim"])


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
    failures: tuple[Failure, ...] = ()
    versions: dict[str, str] = field(default_factory=lambda: versions())

    @classmethod
    def read(cls, path: Path) -> "Report":
        """A recorded run, with the explanations as they are now."""
        found = json.loads(path.read_text(encoding="utf-8"))
        names = [each.name for each in fields(Criterion)]
        criteria = tuple(Criterion(**{n: c[n] for n in names}) for c in found["criteria"])
        seconds = {name: s for name, s in found["seconds"].items() if name != "total"}
        paper = found["paper"]
        return cls(
            paper,
            found["title"],
            criteria,
            seconds,
            found["quick"],
            read_failures(paper),
            found["versions"],
        )

    def failure(self, criterion: Criterion) -> Failure | None:
        """Why a criterion failed: the entry with the longest matching beginning, None without."""
        matching = [each for each in self.failures if each.covers(criterion)]
        return max(matching, key=lambda each: len(each.what), default=None)

    def remark(self, criterion: Criterion) -> str:
        """The remark on a criterion, and why it failed."""
        reason = self.failure(criterion)
        unexplained = criterion.passed is False and reason is None
        why = "not explained yet" if unexplained else str(reason or "")
        return "; ".join(part for part in (criterion.remark, why) if part)

    def text(self) -> str:
        """The results as a table for a terminal, remarks below their rows."""
        rows = [(c.id, c.status, c.what, c.criterion, c.measured) for c in self.criteria]
        head = ("", "result", "what", "criterion", "measured")
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [_padded(head, widths), _padded(["─" * width for width in widths], widths)]
        for row, criterion in zip(rows, self.criteria, strict=True):
            lines.append(_padded(row, widths))
            if remark := self.remark(criterion):
                lines.append(" " * (widths[0] + 2) + f"↳ {remark}")
        return "\n".join([f"{self.paper}: {self.title}", *lines, self._counted() + self._caution()])

    def markdown(self) -> str:
        """The results as Markdown, for the README of the paper."""
        lines = [
            self._provenance(),
            "",
            "| | what was done | published | criterion | measured | result |",
            "|---|---|---|---|---|---|",
            *(self._row(c) for c in self.criteria),
            "",
            *(f"- **{c.id}**, {c.what}: {note}" for c in self.criteria if (note := self.remark(c))),
        ]
        return "\n".join(lines).rstrip()

    def summary(self, claims: Iterable[Claim]) -> str:
        """The claims as a Markdown list, with counts and an example of their criteria."""
        lines = []
        for claim in claims:
            tested = [c for c in self.criteria if c.id in claim.experiments]
            quoted = claim.quoted(self.criteria)
            lines += [f"- *{claim.says}*\\", f"  {claim.found}\\"]
            lines += [f"  For example, {quoted}.\\"] if quoted else []
            lines.append(f"  {', '.join(claim.experiments)}: {self._met(tested)}.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """The results as a dict, for ``results.json``."""
        return {
            "paper": self.paper,
            "title": self.title,
            "quick": self.quick,
            "versions": self.versions,
            "seeds": list(range(max((c.seeds for c in self.criteria), default=0))),
            "seconds": self.seconds | {"total": round(sum(self.seconds.values()), 1)},
            "counts": self.counts(),
            "criteria": [{**asdict(c), "status": c.status} for c in self.criteria],
        }

    def counts(self) -> dict[str, int]:
        """How many criteria have each status."""
        found = Counter(c.status for c in self.criteria)
        return {status: found[status] for status in STATUSES}

    def causes(self) -> dict[str, int]:
        """How many criteria failed for each cause; those without an explanation under ""."""
        failed = [self.failure(c) for c in self.criteria if c.passed is False]
        found = Counter("" if each is None else each.cause for each in failed)
        return {cause: found[cause] for cause in (*CAUSES, "")}

    def numbers(self) -> list[int]:
        """The counts in the order of the columns of the index, and the seconds."""
        counts, total = self.counts(), round(sum(self.seconds.values()))
        outcomes = [counts["PASSED"], counts["FAILED"], *self.causes().values()]
        return [*outcomes, counts["SURROGATE"], counts["NOT YET"], total]

    def write(self, root: Path) -> None:
        """Write results, README and index under `root`: ``papers/`` or another folder."""
        folder = root / self.paper
        write_text(folder / "results.json", json.dumps(self.record(), indent=1, ensure_ascii=False))
        readme = (PAPERS / self.paper / "README.md").read_text(encoding="utf-8")
        if root == PAPERS:  # other runs may have left out criteria that the summary quotes
            readme = fill(readme, "summary", self.summary(read_claims(self.paper)))
        write_text(folder / "README.md", fill(readme, "results", self.markdown()))
        index = (PAPERS / "README.md").read_text(encoding="utf-8")
        write_text(root / "README.md", fill(index, "index", index_table(root)))
        if root == PAPERS:
            page = SITE.read_text(encoding="utf-8")
            write_text(SITE, fill(page, "index", index_table(root, "{}.md")))

    def _row(self, criterion: Criterion) -> str:
        c, reason = criterion, self.failure(criterion)
        status = f"**{c.status}**" if c.status == "FAILED" else c.status.lower()
        result = status if reason is None else f"{status}: {reason.cause}"
        return _cells([c.id, c.what, c.published, c.criterion, c.measured, result])

    def _met(self, criteria: Sequence[Criterion]) -> str:
        """How many of these criteria were met, and why the others were not."""
        met = [c for c in criteria if c.passed]
        elsewhere = sum(bool(c.surrogate) for c in met)
        causes = Counter(each.cause for each in map(self.failure, criteria) if each)
        parts = [f"{len(met)} of {len(criteria)} criteria met"]
        parts += [f"{elsewhere} of them on other data"] if elsewhere else []
        parts += ["not met: " + ", ".join(f"{cause} {n}" for cause, n in causes.items())]
        return "; ".join(parts if causes else parts[:-1])

    def _counted(self) -> str:
        return ", ".join(f"{n} {status.lower()}" for status, n in self.counts().items() if n)

    def _caution(self) -> str:
        """Why the criteria of a quick run may fail."""
        if not self.quick:
            return ""
        return (
            ". This was a quick run: its samples are too small for most criteria, so that failures "
            "mean nothing; run without --quick to check the publication"
        )

    def _provenance(self) -> str:
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        run = "A quick run, not a record," if self.quick else "The last run"
        counted = self._counted() + self._caution()
        return f"{run} took {sum(self.seconds.values()):.0f} s ({packages}): {counted}."


def main(file: str, title: str, experiments: Sequence[Experiment]) -> None:
    """Run the experiments of a paper from the command line and record the results."""
    paper = Path(file).resolve().parent.name
    by_name = {experiment.__name__: experiment for experiment in experiments}
    arguments = _parse(title, list(by_name))
    chosen = [by_name[name] for name in arguments.only or by_name]
    root = arguments.out or PAPERS
    import matplotlib

    matplotlib.use("Agg")  # plots are written to files; no display is needed
    lab = Lab(root / paper / "figures", arguments.quick)
    # Results are identical for the same number of threads; small problems do not need more.
    with threadpool_limits(1):
        report = run(paper, title, chosen, lab)
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
    return Report(paper, title, tuple(criteria), seconds, lab.quick, read_failures(paper))


def versions() -> dict[str, str]:
    """Versions of what affects the results, with the commit of this repository if it is one."""
    found = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    commit = _git("rev-parse", "--short", "HEAD")
    # Tables and plots of other papers may be new; code may not.
    changed = "-changed" if _git("status", "--porcelain", "--", "../src", "*.py") else ""
    return found | ({"commit": commit + changed} if commit else {})


def _git(*command: str) -> str:
    """Output of a git command; empty where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *command], cwd=PAPERS, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def index_table(root: Path, link: str = "{}/README.md") -> str:
    """One row per paper that has been run, with its counts; columns of zeros are left out."""
    head = ["passed", "failed", *CAUSES, "not explained", "surrogate", "not yet", "seconds"]
    reports = [Report.read(path) for path in sorted(root.glob("*/results.json"))]
    rows = [each.numbers() for each in reports]
    shown = [i for i in range(len(head)) if i < 2 or any(row[i] for row in rows)]
    lines = [_cells(["publication", *(head[i] for i in shown)]), "|---|" + "--:|" * len(shown)]
    for report, row in zip(reports, rows, strict=True):
        title = f"[{report.title}]({link.format(report.paper)})"
        lines.append(_cells([title, *(str(row[i]) for i in shown)]))
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


def _parse(title: str, names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"Reproduce: {title}")
    parser.add_argument("--quick", action="store_true", help="small sizes, two seeds; needs --out")
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="only these experiments; needs --out"
    )
    parser.add_argument("--out", type=Path, help="folder to write to instead of papers/")
    arguments = parser.parse_args()
    for name in ("quick", "only"):
        if getattr(arguments, name) and arguments.out is None:
            parser.error(f"--{name} would overwrite the record; pass --out FOLDER with it")
    unknown = set(arguments.only or names) - set(names)
    if unknown:
        parser.error(f"no experiments {sorted(unknown)}; there are {', '.join(names)}")
    return arguments


def _experiment_number(criterion: Criterion) -> list[int]:
    """Sort key: E1.2 before E1.10."""
    return [int(part) for part in criterion.id.lstrip("E").split(".")]


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return "  ".join(cell.ljust(width) for cell, width in pairs).rstrip()


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for path in sorted(PAPERS.glob("*/results.json")):
        Report.read(path).write(PAPERS)
