"""The dimension of distributed data, estimated from samples of the rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.report import DimensionReport
from manifoldry.dimension.result import Dimension
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.samples import DisjointSamples
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.exceptions import warn
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState

# Filters of warnings are those of a process, and Dask's own scheduler runs tasks in threads.
_ONE_AT_A_TIME = Lock()


def estimate_of_collection(
    X: Any, size: int, random_state: RandomState, verbose: bool
) -> DimensionReport:
    """Estimate the dimension of a Dask collection; see :func:`manifoldry.estimate_dimension`."""
    rows, rng = Rows.read(X), as_generator(random_state, unset=0)
    samples = DisjointSamples.draw(rows.n_samples, size, rng)
    estimate = delayed(partial(_estimated, seed=int(rng.integers(2**31))))
    tasks = [estimate(values) for values in samples.of(rows)]
    what = f"dimension of samples of {samples.size} rows"
    found = compute(tasks, what, verbose=verbose)
    for message, category in dict.fromkeys(said for _, warned in found for said in warned):
        warn(message, category)
    reports = [report for report, _ in found]
    return reports[0] if samples.is_whole else _together(reports, rows.n_samples)


def _estimated(X: Array, *, seed: int) -> tuple[DimensionReport, list[Any]]:
    """The report on one sample, and its warnings; runs on a worker."""
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        report = estimate_dimension(X, random_state=seed)
    return report, [(str(each.message), each.category) for each in said]


def _together(reports: list[DimensionReport], n: int) -> DimensionReport:
    """The report on all samples; explanations and profile are those of the first one."""
    first, size = reports[0], reports[0].n_samples
    estimates = {
        method: _mean([report.estimates[method] for report in reports])
        for method in first.estimates
        if all(method in report.estimates for report in reports)
    }
    dimension = int(np.median([report.dimension for report in reports]))
    finer = (n / size) ** (1 / max(dimension, 1))
    note = (
        f"Samples: {len(reports)} disjoint samples of {size} of {n} rows. Estimates and intervals "
        f"are means over them; reasons are those of the first. Neighborhoods of a sample are about "
        f"{finer:.2g} times as wide as among all rows, so structure and noise at smaller scales "
        "are not seen; a larger sample sees more."
    )
    return replace(
        first,
        dimension=dimension,
        low=min(report.low for report in reports),
        high=max(report.high for report in reports),
        estimates=estimates,
        reasons=[*first.reasons, note],
        n_samples=n,
        sample_size=size,
    )


def _mean(found: list[Dimension]) -> Dimension:
    """The mean of a method over the samples, with an interval from their differences."""
    value = Estimate.of_mean(np.array([float(each) for each in found]), within=(0.0, np.inf))
    return replace(found[0], value=value)
