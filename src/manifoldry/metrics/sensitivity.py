"""Sensitivity to the training set, compared with the out-of-sample error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from manifoldry.device.arguments import on_device_of_arguments
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
    """Change of an embedding when training points are exchanged, and its out-of-sample error.

    Distances are in units of the spread of the embedding, the root mean squared distance of its
    points from their mean. Intervals are Student's 95 % intervals over the splits.

    Parameters
    ----------
    fractions : array of shape (n_fractions,)
        Fractions of the data that are exchanged, ascending.
    variability : tuple of Estimate, one per fraction
        Mean distance between the positions of a point in two embeddings whose training sets
        differ by the exchanged points.
    out_of_sample : tuple of Estimate, one per fraction
        Mean distance between the position of a point by ``transform`` and its position in an
        embedding fitted with it.
    difference : tuple of Estimate, one per fraction
        Variability minus out-of-sample error; positive if the out-of-sample error is smaller.
    crossing : Estimate
        Fraction at which the mean difference becomes 0: exchanging that many points changes the
        embedding as much as the out-of-sample error. Interpolated linearly between the fractions
        and fraction 0, where variability is 0; infinite if the difference is negative at the last
        fraction. The interval is a 95 % bootstrap interval over the splits.
    variabilities, out_of_sample_errors : arrays of shape (n_fractions, n_splits)
        The values of all splits; NaN where a fit failed.
    failures : tuple of str
        Error messages of the splits that failed.

    See Also
    --------
    sensitivity : computes it.
    manifoldry.plotting.plot_sensitivity : draws it.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.metrics import sensitivity
    >>> found = sensitivity(PCA(2), make_s_curve(100, random_state=0).X, fractions=[0.1, 0.2],
    ...                     n_splits=3, n_left_out=2)
    >>> found.variabilities.shape
    (2, 3)
    >>> bool(found.difference[1] > 0)  # exchanging a fifth of the data matters more than transform
    True
    """

    fractions: Array
    variability: tuple[Estimate, ...]
    out_of_sample: tuple[Estimate, ...]
    difference: tuple[Estimate, ...]
    crossing: Estimate
    variabilities: Array = field(repr=False)
    out_of_sample_errors: Array = field(repr=False)
    failures: tuple[str, ...] = field(repr=False)


@on_device_of_arguments
def sensitivity(
    estimator: Any,
    X: Any,
    *,
    fractions: Iterable[float] = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
    n_splits: int = 20,
    n_left_out: int | Literal["all"] | None = None,
    transformation: str = "affine",
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Sensitivity:
    """Compare the out-of-sample error with the effect of exchanging training points.

    The experiment of Bengio et al. (2004). The data are split into fixed points F and two sets R₁
    and R₂ of equal size. The estimator is fitted to F ∪ R₁ and to F ∪ R₂, and the two embeddings
    are aligned on F; their mean distance is the variability. Then it is fitted to F ∪ R₁ without
    one point of F, which is embedded by ``transform`` and compared with its former position; the
    mean distance is the out-of-sample error. If the variability is larger, the out-of-sample
    error is no more than the effect of choosing other training points. For a value per point use
    :func:`stability`.

    Splits with the same number use the same random order at all fractions, for smooth curves.

    Parameters
    ----------
    estimator : estimator with ``fit_transform`` and ``transform``
        Of this or another package; clones of it are fitted.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The data, or square precomputed distances if the estimator takes those.
    fractions : sequence of float, default=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
        Sizes of R₁ as fractions of the data, below 0.5; at least one point is exchanged.
    n_splits : int, default=20
        Number of splits for each fraction.
    n_left_out : int or "all", default=None
        Number of random points of F that are left out one by one in each split, with one fit
        each; by default ten, or all if there are fewer. The publication leaves out all of them;
        the mean over a few is unbiased with a larger variance, which the intervals include.
    transformation : {"affine", "similarity", "rigid"}, default="affine"
        Transformation for aligning embeddings; the publication uses affine.
    n_jobs : int, default=None
        Number of processes, -1 for the number of cores; None is one. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the splits, and of the fits if the estimator has no seed; ``None`` is a fixed seed.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Sensitivity
        Draw it with :func:`manifoldry.plotting.plot_sensitivity`.

    See Also
    --------
    stability : the same question, with a value for each point.

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
    check_option("transformation", transformation, ALIGNMENTS)
    n_splits = check_count("n_splits", n_splits)
    fitter = SubsetFitter.of(estimator, X, n_jobs)
    if not hasattr(estimator, "transform"):
        raise TypeError(
            f"{type(estimator).__name__} has no transform, so it has no out-of-sample error; use "
            "stability, which does not need transform"
        )
    sizes = _sizes(fractions, fitter.n)
    left_out = _left_out(n_left_out, fitter.n - 2 * int(sizes[-1]))
    seeds = as_generator(random_state, unset=0).integers(2**31, size=n_splits)
    with one_blas_thread():  # raises errors that concern all the data before the splits
        spread_of(fitter.fit(np.arange(fitter.n), int(seeds[0])).embedding)
    jobs = [(int(size), int(seed)) for size in sizes for seed in seeds]
    task = _Exchange(fitter, transformation, left_out)
    results = list(run_tasks(task, jobs, len(jobs), n_jobs, verbose, what="splits"))
    failures = report_failures(results, what="splits")
    found = np.array([_split_values(result) for result in results]).reshape(len(sizes), n_splits, 2)
    return _summarize(sizes / fitter.n, found[..., 0], found[..., 1], failures)


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Variability and out-of-sample error of one split."""

    fitter: SubsetFitter
    transformation: str
    n_left_out: int | None

    def __call__(self, size: int, seed: int) -> tuple[float, float]:
        order = np.random.default_rng(seed).permutation(self.fitter.n)
        R1, R2, F = np.split(order, [size, 2 * size])
        first, second = (self.fitter.fit(np.append(F, R), seed).embedding for R in (R1, R2))
        unit = spread_of(first)
        first[R1] = np.nan  # embeddings are aligned and compared on F
        moved = fit_alignment(second, first, self.transformation).apply(second)
        variability = float(np.nanmean(distances(moved, first, unit)))
        # The last points of F belong to F at every size.
        tested = F if self.n_left_out is None else F[-self.n_left_out :]
        errors = [self._out_of_sample_error(s, np.append(F, R1), first, unit, seed) for s in tested]
        return variability, _measured_mean(errors)

    def _out_of_sample_error(
        self, s: int, rows: IntArray, target: Array, unit: float, seed: int
    ) -> float:
        """Distance of point s to its position in `target`, by a model fitted without it."""
        without = self.fitter.fit(rows[rows != s], seed)
        alignment = fit_alignment(without.embedding, target, self.transformation)
        placed = alignment.apply(without.transform(np.array([s]))[[s]])
        return float(distances(placed, target[[s]], unit)[0])


def _measured_mean(errors: list[float]) -> float:
    measured = np.array(errors)[np.isfinite(errors)]
    if len(measured) == 0:
        raise ValueError(f"transform returned NaN for all {len(errors)} left-out points")
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
    """First zero of the mean of the curves (one per column, from fraction 0 on).

    The confidence interval is from `n_bootstrap` bootstrap samples of the curves.
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
    # Quantiles are not interpolated, since crossings may be infinite.
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return Estimate(value, low, high)


def _first_zero(x: Array, y: Array) -> float:
    """First x at which the linear interpolant through the points is nonnegative."""
    above = np.flatnonzero(y >= 0)
    if len(above) == 0:
        return np.inf
    i = int(above[0])
    if i == 0:
        return float(x[0])
    return float(x[i - 1] - y[i - 1] * (x[i] - x[i - 1]) / (y[i] - y[i - 1]))


def _sizes(fractions: Iterable[float], n: int, min_fixed: int = 4) -> IntArray:
    """Numbers of points to exchange, ascending and without duplicates.

    `min_fixed` fixed points, with one of them left out, suffice to align a single coordinate.
    """
    given = fractions if isinstance(fractions, Iterable) else [fractions]
    fractions = [check_positive("fractions", fraction) for fraction in given]
    if not fractions:
        raise ValueError("fractions is empty; pass at least one, such as [0.01, 0.05]")
    sizes = np.unique([max(1, round(fraction * n)) for fraction in fractions])
    if n - 2 * sizes[-1] < min_fixed:
        raise ValueError(
            f"fractions={max(fractions)} of n_samples={n} leaves {n - 2 * sizes[-1]} fixed points; "
            f"at least {min_fixed} are needed: pass at most {(n - min_fixed) / 2 / max(n, 1):.3g}"
            + (", or add points" if n < min_fixed + 2 else "")
        )
    return sizes


def _left_out(count: int | str | None, fixed: int, default: int = 10) -> int | None:
    """Number of fixed points to leave out one by one; None for all."""
    if count is None:
        return min(default, fixed)
    if count == "all":
        return None
    if isinstance(count, str):
        raise ValueError(f"n_left_out={count!r} must be an integer or 'all'")
    return int(
        check_at_most(
            "n_left_out",
            check_count("n_left_out", count),
            fixed,
            "the number of fixed points at the largest fraction",
        )
    )
