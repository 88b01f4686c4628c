"""The report: from data to one HTML file."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.report import DimensionReport
from manifoldry.exceptions import ignoring
from manifoldry.io import Table
from manifoldry.io.table import class_labels
from manifoldry.methods.choice import default_method
from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.neighbors.graph import DEFAULT_NEIGHBORS, NeighborGraph
from manifoldry.plotting._labels import missing_entries
from manifoldry.reporting.advice import advise, decide
from manifoldry.reporting.findings import DataFacts, GraphFacts
from manifoldry.reporting.maps import (
    MapOptions,
    MethodMap,
    aligned_with,
    make_map,
    measure_stability,
    named_estimators,
    sample_rows,
    worst_region,
)
from manifoldry.reporting.page import write_page
from manifoldry.reporting.reproduce import Recipe
from manifoldry.reporting.results import Results
from manifoldry.reporting.source import Source
from manifoldry.util.saved import package_version
from manifoldry.util.typing import Array, IntArray

MIN_ROWS = 10  # with fewer there is nothing to report on
MOST_ROWS = 10_000  # up to here metrics of neighbors are exact
_MOST_CELLS = 5e7  # of a sparse matrix that is made dense to examine it
Watch = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True, eq=False)
class Report:
    """Result of :func:`report`: where the page is, and what it says; ``print`` it for a summary.

    Parameters
    ----------
    path : Path
        The HTML file.
    results : Results
        What was found.
    """

    path: Path
    results: Results = field(repr=False)

    def __str__(self) -> str:
        verdict = self.results.verdict
        lines = [verdict.headline, *(f"- {text}" for text in verdict.reasons)]
        if verdict.cautions:
            lines += ["", "What not to conclude:", *(f"- {text}" for text in verdict.cautions)]
        return "\n".join([*lines, "", "Advice:", *(f"- {text}" for text in self.results.advice)])

    @property
    def summary(self) -> dict[str, Any]:
        """The findings as numbers and texts."""
        return self.results.summary()


def report(
    data: Any,
    output: str | os.PathLike[str] = "report.html",
    labels: Any = None,
    methods: Sequence[Any] | None = None,
    *,
    log1p: bool = False,
    scale: bool = False,
    pca: int | None = None,
    n_components: int = 2,
    n_refits: int = 5,
    max_rows: int | None = MOST_ROWS,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Report:
    """Write a report on data and their maps: one HTML file that needs nothing else.

    It says what is in the data, how they are connected, how many dimensions they have, which of
    several maps to use and how far to trust it, and how to make that map again.

    Missing values are counted, and replaced by the median of their column for the maps.

    Parameters
    ----------
    data : array, sparse matrix, data frame, AnnData, (AnnData, key), Table, str or path
        The data, or the file that has them; see :func:`manifoldry.io.read_table`.
    output : str or path, default="report.html"
        The file to write.
    labels : str or array of shape (n_samples,), default=None
        Name of a column of labels, or a label for each row.
    methods : sequence of str or estimators, default=None
        Names as on the command line, such as ``"isomap"``, or estimators that are not fitted. By
        default PCA, Isomap, NonRedundant around LaplacianEigenmaps, and TSNE.
    log1p : bool, default=False
        Whether to take log(1 + x) first, for counts.
    scale : bool, default=False
        Whether to standardize the columns first, if their units differ.
    pca : int, default=None
        Number of principal components to start from.
    n_components : int, default=2
        Number of coordinates of methods given by name; the first two are drawn.
    n_refits : int, default=5
        Refits of each method to parts of at most 800 rows, for its stability; 0 for none.
    max_rows : int, default=10000
        Rows that are examined and mapped, at random; None for all. Missing values are counted in
        all rows.
    random_state : int, default=0
        Seed of samples and methods.
    n_jobs : int, default=None
        Number of threads of the methods.

    Returns
    -------
    Report

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from manifoldry import report
    >>> X, species = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = report(X, f"{folder}/iris.html", species, methods=["pca"], n_refits=0)
    >>> found.summary["verdict"]["name"], found.summary["data"]["n_duplicates"]
    ('PCA', 1)
    """
    if not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(f"random_state={random_state!r} must be an integer of at least 0")
    options = MapOptions(n_components, int(random_state), n_jobs, n_refits)
    before = Preprocessing(None, log1p, scale, pca, int(random_state))
    return write_report(Source.of(data, labels), output, methods, before, options, max_rows)


def write_report(
    source: Source,
    output: str | os.PathLike[str],
    methods: Sequence[Any] | None,
    before: Preprocessing,
    options: MapOptions,
    max_rows: int | None = MOST_ROWS,
    watch: Watch = nullcontext,
) -> Report:
    """The same for data that were read; `watch` shows what is being done."""
    path = Path(output)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it, or name another")
    steps = Steps(source, methods, before, options, max_rows, watch)
    results = steps.run()
    write_page(path, results)
    return Report(path, results)


@dataclass(eq=False)
class Steps:
    """The steps of a report; each is timed."""

    source: Source
    methods: Sequence[Any] | None
    before: Preprocessing
    options: MapOptions
    max_rows: int | None
    watch: Watch
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def run(self) -> Results:
        """All steps."""
        table = self.source.table
        if table.n < MIN_ROWS:
            raise ValueError(
                f"the data have {table.n} rows; a report needs at least {MIN_ROWS}: add rows"
            )
        rows = sample_rows(table.n, self.max_rows, self.options.seed)
        wanted = named_estimators(self.methods, len(rows), self.options, self.notes.append)
        self.notes += table.notes
        with self._step("examining the data"):
            raw = _dense(table, rows)
            facts = DataFacts.of(table, rows, raw)
            X, recipe = self._prepared(facts, rows)
        with self._step("finding neighbors"), ignoring(Warning):
            k = min(DEFAULT_NEIGHBORS, (len(rows) - 1) // 2)
            graph = GraphFacts.of(NeighborGraph.build(X, n_neighbors=k), rows)
        with self._step("estimating the dimension"), ignoring(Warning):
            dimension, dimension_error = self._dimension(X)
            suited = default_method(X, self.options.seed)
        labels = {name: values[rows] for name, values in table.labels.items()}
        maps = self._maps(wanted, X, self._classes(labels, len(rows)))
        verdict = decide(maps, suited, facts, graph, dimension, self.before.scale)
        advice = advise(facts, graph, dimension, self.before.scale, verdict,
                        self.options.n_components)  # fmt: skip
        regions = {m.name: worst_region(m.aligned, m.trust) for m in maps if m.aligned is not None}
        return Results(
            rows, labels, facts, graph, dimension, dimension_error, suited, maps,
            {name: region for name, region in regions.items() if region is not None}, verdict,
            advice, recipe, self.options, self.seconds, tuple(self.notes), _versions(),
            datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )  # fmt: skip

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        with self.watch(what):
            yield
        self.seconds[what] = time.perf_counter() - start

    def _prepared(self, facts: DataFacts, rows: IntArray) -> tuple[Any, Recipe]:
        """The data after the steps before the method, and how to make them again."""
        before = self.before
        if facts.missing.n_cells and before.impute is None:
            before = replace(before, impute="median")
        table: Any = self.source.table
        X = table.X if len(rows) == table.n else table.X[rows]
        steps, X = before.fit(X, self.notes.append)
        options = [*(("--impute", before.impute) if before.impute else ())]
        options += ["--log1p"] * before.log1p + ["--scale"] * before.scale
        options += [] if before.pca is None else ["--pca", str(before.pca)]
        sampled = None if len(rows) == table.n else len(rows)
        X = X if sparse.issparse(X) else np.asarray(X)
        return X, Recipe(self.source, steps, sampled, self.options.seed, tuple(options))

    def _classes(self, labels: dict[str, Any], n: int) -> Any:
        """The first label, if it has classes and no row is without one."""
        found = class_labels(Table(np.empty((n, 0)), labels=labels), self.notes.append)
        if found is not None and missing_entries(found).any():
            self.notes.append("some labels are missing, so there is no label accuracy")
            return None
        return found

    def _dimension(self, X: Any) -> tuple[DimensionReport | None, str]:
        try:
            return estimate_dimension(X, random_state=self.options.seed), ""
        except ValueError as error:
            return None, str(error)

    def _maps(self, wanted: Any, X: Any, labels: Any) -> tuple[MethodMap, ...]:
        maps: list[MethodMap] = []
        reference: Array | None = None
        for name, method, estimator in wanted:
            with self._step(f"map and metrics: {name}"):
                made = make_map(name, method, estimator, X, labels, self.options)
            if made.embedding is not None:
                reference = made.embedding if reference is None else reference
                with self._step(f"stability: {name}"):
                    found = measure_stability(estimator, X, self.options)
                made = replace(
                    made, stability=found, aligned=aligned_with(reference, made.embedding)
                )
            maps.append(made)
        return tuple(maps)


def _dense(table: Table, rows: IntArray) -> Array:
    """The values of the rows in double precision."""
    X: Any = table.X
    if not sparse.issparse(X):
        return np.asarray(X[rows] if len(rows) < table.n else X, dtype=np.float64)
    if len(rows) * X.shape[1] > _MOST_CELLS:
        raise ValueError(
            f"{len(rows):,} rows of {X.shape[1]:,} columns of a sparse matrix take too much memory "
            f"to examine; pass max_rows={int(_MOST_CELLS / X.shape[1])} or fewer columns"
        )
    return np.asarray(X[rows].toarray(), dtype=np.float64)


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "manifoldry": package_version(),
        "Python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
