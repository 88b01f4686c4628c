"""The report: from data to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.reporting.maps import MapOptions
from manifoldry.reporting.page import write_page
from manifoldry.reporting.results import Results
from manifoldry.reporting.source import Source
from manifoldry.reporting.steps import MIN_ROWS, Steps, Watch
from manifoldry.reporting.words import FILLED_IN
from manifoldry.util.checks import check_count, check_option

MOST_ROWS = 5000  # more are not drawn, and metrics of all their pairs take seconds


@contextmanager
def _unwatched(what: str) -> Iterator[None]:
    yield


@dataclass(frozen=True, eq=False)
class Report:
    """Result of :func:`~manifoldry.report`: where the page is, and what it says.

    ``print`` it for a summary.

    Parameters
    ----------
    path : Path
        The HTML file.
    results : Results
        What was found, as objects; ``summary`` has the same as numbers and texts.

    See Also
    --------
    manifoldry.report : writes it.

    Examples
    --------
    >>> import tempfile
    >>> from manifoldry import report
    >>> from manifoldry.datasets import make_s_curve
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = report(make_s_curve(60, random_state=0).X, f"{folder}/s.html", methods=["pca"],
    ...                    n_refits=0)
    ...     found.path.name, found.path.stat().st_size > 10_000
    ('s.html', True)
    >>> sorted(found.summary)
    ['advice', 'connectivity', 'data', 'dimension', 'maps', 'repeat', 'seconds', 'verdict']
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
        """The findings as numbers and texts; rows are counted from 0."""
        return self.results.summary()


def report(
    data: Any,
    output: str | os.PathLike[str] = "report.html",
    labels: Any = None,
    methods: Sequence[Any] | None = None,
    *,
    impute: str = "median",
    log1p: bool = False,
    scale: bool | None = None,
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
        default PCA, LaplacianEigenmaps, Isomap and TSNE, and NonRedundant if the coordinates of
        LaplacianEigenmaps repeat each other.
    impute : {"median", "mean", "frequent", "zero"}, default="median"
        What to put for missing values of a column.
    log1p : bool, default=False
        Whether to take log(1 + x) first, for counts.
    scale : bool, default=None
        Whether to standardize the columns first. By default they are if they have names and one
        of them has nearly all the variance, as when units differ.
    pca : int, default=None
        Number of principal components to start from.
    n_components : int, default=2
        Number of coordinates of methods given by name; the first two are drawn.
    n_refits : int, default=5
        Refits of each method to parts of at most 500 rows, for its stability; 0 for none.
    max_rows : int, default=5000
        Rows that are examined and mapped, at random; None for all. Missing values are counted in
        all rows.
    random_state : int, default=0
        Seed of samples and methods.
    n_jobs : int, default=None
        Number of threads of the methods.

    Returns
    -------
    Report
        The file, and what it says; ``print`` it for a summary.

    See Also
    --------
    manifoldry.assess : quality of one embedding.
    manifoldry.compare : several embeddings in one table.
    manifoldry.estimate_dimension : the number of dimensions, and why methods differ.

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
    check_option("impute", impute, tuple(FILLED_IN))
    check_count("n_components", n_components)
    check_count("n_refits", n_refits, minimum=0)
    if max_rows is not None:
        check_count("max_rows", max_rows, minimum=MIN_ROWS)
    options = MapOptions(n_components, int(random_state), n_jobs, n_refits)
    before = Preprocessing(impute, log1p, scale, pca, int(random_state))
    return write_report(Source.of(data, labels), output, methods, before, options, max_rows)


def write_report(
    source: Source,
    output: str | os.PathLike[str],
    methods: Sequence[Any] | None,
    before: Preprocessing,
    options: MapOptions,
    max_rows: int | None = MOST_ROWS,
    watch: Watch = _unwatched,
) -> Report:
    """The same for data that were read; `watch` shows what is being done."""
    path = Path(output)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it, or name another")
    steps = Steps(source, methods, before, options, max_rows, watch)
    results = steps.run()
    write_page(path, results)
    return Report(path, results)
