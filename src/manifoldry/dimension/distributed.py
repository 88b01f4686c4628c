"""The dimension of distributed data, estimated from samples of the rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manifoldry.base.distributed import say, with_warnings
from manifoldry.dimension.consensus import Consensus
from manifoldry.dimension.estimate import find_consensus, report_on
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
    estimate = partial(find_consensus, random_state=int(rng.integers(2**31)))
    with_notes = delayed(partial(with_warnings, estimate))
    tasks = [with_notes(values) for values in samples.of(rows)]
    what = f"dimension of samples of {samples.size} rows"
    found = compute(tasks, what, verbose=verbose)
    say(each for _, said in found for each in said)
    of_samples = [each for each, _ in found]
    if samples.is_whole:
        return report_on(*of_samples[0])
    return _together(of_samples, rows.n_samples, samples.size)


def _together(
    of_samples: list[tuple[Consensus, dict[str, str]]], n: int, size: int
) -> DimensionReport:
    """The report on all samples, explained from the combined estimates.

    The profile, and what explanations say of the data besides, are of the first sample.
    """
    found, count = [consensus for consensus, _ in of_samples], len(of_samples)
    skipped = _skipped([own for _, own in of_samples])
    estimates = {
        method: _mean([each.estimates[method] for each in found], size)
        for method in found[0].estimates
        if method not in skipped
    }
    if not estimates:
        raise ValueError("no method could be computed: " + "; ".join(skipped.values()))
    together = replace(
        found[0],
        estimates=estimates,
        local_dimensions=np.concatenate([each.local_dimensions for each in found]),
    )
    report = report_on(together, skipped)
    finer = (n / size) ** (1 / report.dimension)
    note = (
        f"Samples: {count} disjoint samples of {size} of {n} rows. Estimates are means over them, "
        f"and intervals are for data of {size} rows. Neighborhoods of a sample are about "
        f"{finer:.2g} times as wide as among all rows, so structure and noise at smaller scales "
        "are not seen; a larger sample sees more."
    )
    return replace(report, reasons=[*report.reasons, note], n_samples=n, sample_size=size)


def _skipped(of_samples: list[dict[str, str]]) -> dict[str, str]:
    """Why methods could not be computed of all samples."""
    count = len(of_samples)
    reasons: dict[str, list[str]] = {}
    for own in of_samples:
        for method, why in own.items():
            reasons.setdefault(method, []).append(why)
    return {
        method: all_why[0] + f" (in {len(all_why)} of {count} samples)"
        for method, all_why in reasons.items()
    }


def _mean(found: list[Dimension], size: int) -> Dimension:
    """The mean of a method over the samples, with an interval from their differences."""
    value = Estimate.of_mean(np.array([float(each) for each in found]), within=(0.0, np.inf))
    return replace(found[0], value=value, note=f"{found[0].note}, within samples of {size} rows")
