"""The steps of a report, from data to results."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.report import DimensionReport
from manifoldry.io import Table
from manifoldry.io.table import class_labels
from manifoldry.methods.choice import choose_method, metric_of
from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.neighbors.graph import DEFAULT_NEIGHBORS, NeighborGraph
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.reporting.advice import advise
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
from manifoldry.reporting.reproduce import Recipe
from manifoldry.reporting.results import Results
from manifoldry.reporting.source import Source
from manifoldry.reporting.verdict import decide, is_redundant
from manifoldry.util.saved import package_version
from manifoldry.util.typing import Array, IntArray

MIN_ROWS = 10  # with fewer there is nothing to report on
_MOST_CELLS = 5e7  # of a sparse matrix that is made dense to examine it
Watch = Callable[[str], AbstractContextManager[None]]


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
        with self._step("finding neighbors"), warnings.catch_warnings(action="ignore"):
            k = min(DEFAULT_NEIGHBORS, (len(rows) - 1) // 2)
            graph = GraphFacts.of(NeighborGraph.build(X, n_neighbors=k), rows)
        with self._step("estimating the dimension"), warnings.catch_warnings(action="ignore"):
            dimension, dimension_error = self._dimension(X)
        known = None if dimension is None else dimension.dimension
        suited = choose_method(len(rows), int(X.shape[1]), len(graph.sizes), known)
        labels = {name: values[rows] for name, values in table.labels.items()}
        maps = self._maps(wanted, X, self._classes(labels, len(rows)))
        verdict = decide(maps, suited, facts, graph, dimension, recipe.is_scaled)
        advice = advise(facts, graph, dimension, recipe.is_scaled, verdict,
                        self.options.n_components, self.before.pca is not None,
                        recipe.impute)  # fmt: skip
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
        if not facts.missing.n_cells:
            before = replace(before, impute=None)
        elif before.impute is None:
            before = replace(before, impute="median")
        table: Any = self.source.table
        X = table.X if len(rows) == table.n else table.X[rows]
        before = before.decided(X, table.names, self.notes.append)
        steps, X = before.fit(X, self.notes.append)
        options = [*(("--impute", before.impute) if before.impute else ())]
        options += ["--log1p"] * before.log1p + ["--scale"] * bool(before.scale)
        options += ["--no-scale"] * (facts.has_dominant_column and not before.scale)
        options += [] if before.pca is None else ["--pca", str(before.pca)]
        sampled = None if len(rows) == table.n else len(rows)
        X = X if sparse.issparse(X) else np.asarray(X)
        return X, Recipe(
            self.source, steps, sampled, self.options.seed, tuple(options), before.impute
        )

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
        for name, method, estimator in wanted:
            if (metric := metric_of(estimator)) != "euclidean":
                self.notes.append(f"the map of {name} is judged by its own metric, {metric}")
            maps.append(self._map(name, method, estimator, X, labels, maps))
        if self.methods is None and any(is_redundant(each) for each in maps):
            self.notes.append("coordinates of Laplacian eigenmaps repeat each other, so there is "
                              "a map without that too")  # fmt: skip
            added = named_estimators(["nonredundant"], X.shape[0], self.options, self.notes.append)
            maps.append(self._map(*added[0], X, labels, maps))
        return tuple(maps)

    def _map(
        self, name: str, method: str | None, estimator: Any, X: Any, labels: Any,
        before: list[MethodMap],
    ) -> MethodMap:  # fmt: skip
        """A map with its stability, aligned with the first that was made `before`."""
        with self._step(f"map and metrics: {name}"):
            made = make_map(name, method, estimator, X, labels, self.options)
        if made.embedding is None:
            return made
        with self._step(f"stability: {name}"):
            found = measure_stability(estimator, X, self.options)
        others = (each.embedding for each in before if each.embedding is not None)
        reference = next(others, made.embedding)
        return replace(made, stability=found, aligned=aligned_with(reference, made.embedding))


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
