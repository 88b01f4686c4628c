"""The dimension of distributed data, estimated from samples of the rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manifoldry.base.distributed import say, with_warnings
from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.report import DimensionReport
from manifoldry.dimension.result import Dimension
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.samples import DisjointSamples
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import RandomState


def estimate_of_collection(
    X: Any, size: int, random_state: RandomState, verbose: bool
) -> DimensionReport:
    """Estimate the dimension of a Dask collection; see :func:`manifoldry.estimate_dimension`."""
    rows, rng = Rows.read(X), as_generator(random_state, unset=0)
    samples = DisjointSamples.draw(rows.n_samples, size, rng)
    estimate = partial(estimate_dimension, random_state=int(rng.integers(2**31)))
    with_notes = delayed(partial(with_warnings, estimate))
    tasks = [with_notes(values) for values in samples.of(rows)]
    what = f"dimension of samples of {samples.size} rows"
    found = compute(tasks, what, verbose=verbose)
    say(each for _, said in found for each in said)
    reports = [report for report, _ in found]
    return reports[0] if samples.is_whole else _together(reports, rows.n_samples)


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
