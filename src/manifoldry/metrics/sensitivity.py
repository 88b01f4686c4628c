"""How many exchanged training points change a map as much as placing a new point errs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from manifoldry.metrics.procrustes import (
    ALIGNMENTS,
    distances,
    fit_alignment,
    mean_estimate,
    spread_of,
)
from manifoldry.metrics.refits import SubsetFitter, TaskResult, report_failures, run_tasks
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_count,
    check_option,
    check_positive,
)
from manifoldry.util.estimate import CONFIDENCE, Estimate
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, IntArray, RandomState


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """What exchanging training points does to a map, against the error of placing new points.

    Distances are in units of the map's spread, the root mean squared distance of its points from
    their center. Intervals are Student's 95 % over the splits.

    Attributes
    ----------
    fractions : array of shape (n_fractions,)
        Points exchanged as a fraction of all the data, ascending.
    variability : tuple of Estimate, one per fraction
        Mean distance between the places of a point on two maps that were made with some of the
        other points exchanged.
    out_of_sample : tuple of Estimate, one per fraction
        Mean distance between the place that ``transform`` gives a point and the one it has on a
        map made with it.
    difference : tuple of Estimate, one per fraction
        The first less the second: above 0, placing a point errs less than the exchange changes.
    crossing : Estimate
        Fraction at which the mean difference becomes 0: the error of placing new points is worth
        so large an exchange. Linear between the fractions, and between the first and none at all,
        where variability is 0. Infinite if beyond the last fraction. The interval holds the middle
        95 % of crossings with splits drawn repeatedly.
    variabilities, out_of_sample_errors : arrays of shape (n_fractions, n_splits)
        The figures of all splits; NaN where a fit failed.
    failures : tuple of str
        What the fits said that failed.
    """

    fractions: Array
    variability: tuple[Estimate, ...]
    out_of_sample: tuple[Estimate, ...]
    difference: tuple[Estimate, ...]
    crossing: Estimate
    variabilities: Array = field(repr=False)
    out_of_sample_errors: Array = field(repr=False)
    failures: tuple[str, ...] = field(repr=False)


def sensitivity(
    estimator: Any,
    X: Any,
    *,
    fractions: Iterable[float] = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    n_splits: int = 20,
    n_left_out: int | Literal["all"] | None = None,
    allow: str = "affine",
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Sensitivity:
    """Compare the error of placing new points with what exchanging training points does.

    The experiment of Bengio et al. (2004). The data are split into fixed points F and two sets R₁
    and R₂ of a given size. The estimator is fitted on F ∪ R₁ and on F ∪ R₂, and one map moved
    onto the other by F: that gives the variability. Then it is fitted on F ∪ R₁ without one point
    of F, which is placed by ``transform`` and compared with where it was: that gives the
    out-of-sample error. Where the first is larger, placing new points is within what the choice
    of training points changes anyway. For a figure per point use :func:`stability`.

    The splits of one number fraction their points at all fractions, so curves are smooth.

    Parameters
    ----------
    estimator : estimator with ``fit_transform`` and ``transform``
        From here, scikit-learn or elsewhere; copies of it are fitted.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The data, or square precomputed distances where the estimator takes those.
    fractions : sequence of float, default=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
        Sizes of R₁ as fractions of all the data, below a half; at least one point is exchanged.
    n_splits : int, default=20
        Number of splits for each fraction.
    n_left_out : int or "all", default=None
        Points of F, drawn at random, that are left out one by one in each split, each at the price
        of a fit; by default ten, or what there are. The publication leaves out all of them; the
        mean over a few is as right, only less exact, as the intervals tell.
    allow : {"affine", "similarity", "rigid"}, default="affine"
        What may be undone to bring one map onto another; affine is the publication's choice.
    n_jobs : int, default=None
        Number of processes, -1 for as many as there are cores; None is one. Results do not depend
        on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the splits and, for estimators without one of their own, of the fits; ``None`` is a
        fixed seed.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Sensitivity
        Draw it with :func:`manifoldry.plotting.plot_sensitivity`.

    References
    ----------
    Y. Bengio, J.-F. Paiement, P. Vincent, O. Delalleau, N. Le Roux, M. Ouimet, "Out-of-sample
    extensions for LLE, Isomap, MDS, eigenmaps, and spectral clustering", NIPS 16, 2004.

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import sensitivity
    >>> X = make_swiss_roll(200, random_state=0).X
    >>> found = sensitivity(
    ...     LaplacianEigenmaps(2), X, fractions=[0.01, 0.1], n_splits=3, n_left_out=2
    ... )
    >>> bool(found.variability[1] > found.variability[0])
    True
    """
    check_option("allow", allow, ALIGNMENTS)
    n_splits = check_count("n_splits", n_splits)
    fitter = SubsetFitter.of(estimator, X, n_jobs)
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"{type(estimator).__name__} has no transform, so it places no new points; use "
            "stability, which does without"
        )
    sizes = _sizes(fractions, fitter.n)
    left_out = _left_out(n_left_out, fitter.n - 2 * int(sizes[-1]))
    seeds = as_generator(random_state, unset=0).integers(2**31, size=n_splits)
    with one_blas_thread():  # what is wrong with all the data is best told at once
        spread_of(fitter.fit(np.arange(fitter.n), int(seeds[0])).embedding)
    jobs = [(int(size), int(seed)) for size in sizes for seed in seeds]
    task = _Exchange(fitter, allow, left_out)
    results = list(run_tasks(task, jobs, len(jobs), n_jobs, verbose, what="splits"))
    failures = report_failures(results, what="splits")
    found = np.array([_split_values(result) for result in results]).reshape(len(sizes), n_splits, 2)
    return _summarize(sizes / fitter.n, found[..., 0], found[..., 1], failures)


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Variability and out-of-sample error of one split."""

    fitter: SubsetFitter
    allow: str
    n_left_out: int | None

    def __call__(self, size: int, seed: int) -> tuple[float, float]:
        order = np.random.default_rng(seed).permutation(self.fitter.n)
        R1, R2, F = np.split(order, [size, 2 * size])
        first, second = (self.fitter.fit(np.append(F, R), seed).embedding for R in (R1, R2))
        unit = spread_of(first)
        first[R1] = np.nan  # maps are aligned and compared on F
        moved = fit_alignment(second, first, self.allow).apply(second)
        variability = float(np.nanmean(distances(moved, first, unit)))
        # The last of F, which belong to it at every size.
        tested = F if self.n_left_out is None else F[-self.n_left_out :]
        errors = [self._out_of_sample_error(s, np.append(F, R1), first, unit, seed) for s in tested]
        return variability, _measured_mean(errors)

    def _out_of_sample_error(
        self, s: int, rows: IntArray, target: Array, unit: float, seed: int
    ) -> float:
        """How far from its place point s is put by a model that has not seen it."""
        without = self.fitter.fit(rows[rows != s], seed)
        alignment = fit_alignment(without.embedding, target, self.allow)
        placed = alignment.apply(without.transform(np.array([s]))[[s]])
        return float(distances(placed, target[[s]], unit)[0])


def _measured_mean(errors: list[float]) -> float:
    measured = np.array(errors)[np.isfinite(errors)]
    if len(measured) == 0:
        raise ValueError(f"none of {len(errors)} points left out could be placed on the map")
    return float(measured.mean())


def _split_values(result: TaskResult) -> tuple[float, float]:
    return (np.nan, np.nan) if result.error else result.value


def _summarize(
    fractions: Array, variabilities: Array, errors: Array, failures: tuple[str, ...]
) -> Sensitivity:
    difference = variabilities - errors
    return Sensitivity(
        fractions,
        tuple(mean_estimate(row, least=0.0) for row in variabilities),
        tuple(mean_estimate(row, least=0.0) for row in errors),
        tuple(mean_estimate(row) for row in difference),
        _crossing(fractions, np.vstack([-errors[:1], difference])),
        variabilities,
        errors,
        failures,
    )


def _crossing(fractions: Array, curves: Array, n_bootstrap: int = 2000) -> Estimate:
    """Where the mean of the curves (one per column, from fraction 0 on) becomes 0.

    The interval is that of so many `n_bootstrap` of the curves.
    """
    curves = curves[:, np.isfinite(curves).all(axis=0)]
    n = curves.shape[1]
    if n == 0:
        return Estimate(np.nan)
    x = np.append(0.0, fractions)
    value = _first_zero(x, curves.mean(axis=1))
    if n == 1:
        return Estimate(value, 0.0, np.inf)
    rng = np.random.default_rng(0)
    means = curves[:, rng.integers(n, size=(n_bootstrap, n))].mean(axis=2)
    drawn = np.array([_first_zero(x, y) for y in means.T])
    tail = (1 - CONFIDENCE) / 2
    # Between infinite crossings there is nothing to interpolate.
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return Estimate(value, low, high)


def _first_zero(x: Array, y: Array) -> float:
    """The first x at which a broken line through the points is no longer negative."""
    above = np.flatnonzero(y >= 0)
    if len(above) == 0:
        return np.inf
    i = int(above[0])
    if i == 0:
        return float(x[0])
    return float(x[i - 1] - y[i - 1] * (x[i] - x[i - 1]) / (y[i] - y[i - 1]))


def _sizes(fractions: Iterable[float], n: int, min_fixed: int = 4) -> IntArray:
    """Numbers of points to exchange, each once.

    A map of one coordinate can be aligned by the `min_fixed` fixed points with one left out.
    """
    given = fractions if isinstance(fractions, Iterable) else [fractions]
    fractions = [check_positive("fractions", fraction) for fraction in given]
    if not fractions:
        raise ValueError("fractions is empty; pass one or more, such as [0.01, 0.05]")
    sizes = np.unique([max(1, round(fraction * n)) for fraction in fractions])
    if n - 2 * sizes[-1] < min_fixed:
        raise ValueError(
            f"fractions={max(fractions)} of n_samples={n} leaves {n - 2 * sizes[-1]} fixed points; "
            f"{min_fixed} or more are needed: pass at most {(n - min_fixed) / 2 / max(n, 1):.3g}"
            + (", or add points" if n < min_fixed + 2 else "")
        )
    return sizes


def _left_out(count: int | str | None, fixed: int, default: int = 10) -> int | None:
    """How many fixed points to leave out in turn; None for all."""
    if count is None:
        return min(default, fixed)
    if count == "all":
        return None
    if isinstance(count, str):
        raise ValueError(f"n_left_out={count!r} must be a whole number or 'all'")
    return int(
        check_at_most(
            "n_left_out",
            check_count("n_left_out", count),
            fixed,
            "the fixed points beside the largest fraction",
        )
    )
