"""Stability: how far points move when an estimator is refitted to subsets of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manifoldry.base.dominant_points import DominatedCoordinate, dominated_coordinates
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.metrics.procrustes import (
    ALIGNMENTS,
    distances,
    fit_alignment,
    mean_estimate,
    spread_of,
)
from manifoldry.metrics.refits import (
    SubsetFitter,
    TaskResult,
    describe_error,
    report_failures,
    run_tasks,
)
from manifoldry.util.checks import as_generator, check_count, check_option, check_positive
from manifoldry.util.estimate import Estimate
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class Stability:
    """Variability of an embedding under refits to subsets of the data.

    Distances are in units of the spread of the embedding, the root mean squared distance of its
    points from their mean: 0 if points do not move, about 1 if the refits have nothing in common
    with the embedding. Intervals are Student's 95 % intervals over the resamples; they do not
    account for the sampling of the data.

    Parameters
    ----------
    variability : Estimate
        Root mean squared distance between the positions of points in a refit that includes them
        and in the embedding of all data.
    out_of_sample : Estimate or None
        The same for points left out of a refit and embedded by ``transform``; None if the
        estimator has no ``transform``.
    difference : Estimate or None
        Variability minus out-of-sample distance: about 0 if ``transform`` is as accurate as a
        refit, well below 0 if it is worse.
    per_point : array of shape (n_samples,)
        Root mean squared distance of every point over the refits that include it; NaN if it was
        never embedded in both. Pass it to ``plot_embedding(embedding, color=...)``.
    per_point_out_of_sample : array of shape (n_samples,), or None
        The same over the refits that leave the point out.
    counts : array of shape (n_samples,)
        Number of refits behind each entry of `per_point`.
    embedding : array of shape (n_samples, n_components)
        The embedding of all the data.
    n_resamples : int
        Number of refits that succeeded.
    failures : tuple of str
        Error messages of refits and of calls of ``transform`` that failed.
    aligned_embeddings : array of shape (n_resamples, n_samples, n_components), or None
        The refits aligned with `embedding`, with left-out points embedded by ``transform``; None
        unless ``keep_embeddings=True``.
    thresholds : (float, float)
        Variabilities above which the printed summary says mostly stable, and unstable.

    See Also
    --------
    stability : computes it.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.metrics import stability
    >>> found = stability(PCA(2), make_s_curve(100, random_state=0).X, n_resamples=5)
    >>> found.verdict, found.n_resamples, found.failures
    ('stable', 5, ())
    >>> int(found.per_point.argmax()) in range(100)  # the point that moves most
    True
    """

    variability: Estimate
    out_of_sample: Estimate | None
    difference: Estimate | None
    per_point: Array = field(repr=False)
    per_point_out_of_sample: Array | None = field(repr=False)
    counts: IntArray = field(repr=False)
    embedding: Array = field(repr=False)
    n_resamples: int
    failures: tuple[str, ...] = field(repr=False)
    aligned_embeddings: Array | None = field(repr=False)
    thresholds: tuple[float, float] = field(default=(0.1, 0.3), repr=False)

    @property
    def verdict(self) -> str:
        """``"stable"``, ``"mostly stable"``, ``"unstable"`` or ``"dominated by few points"``.

        In the last case a few points hold most of the variance of a coordinate, so that the spread
        of the embedding, the unit of all distances here, is theirs.
        """
        if self.dominated_coordinates:
            return "dominated by few points"
        grade = sum(self.variability > bound for bound in self.thresholds)
        return ("stable", "mostly stable", "unstable")[grade]

    @property
    def dominated_coordinates(self) -> list[DominatedCoordinate]:
        """Coordinates of which one point, a handful or a small group hold most of the variance."""
        return dominated_coordinates(self.embedding)

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        yield (
            f"The embedding is {self.verdict}: refitted to subsets of the data, its points move by "
            f"{self.variability} of its spread ({self.n_resamples} refits)."
        )
        if self.dominated_coordinates:
            yield (
                f"This says nothing about the other points: "
                f"{'; '.join(map(str, self.dominated_coordinates))} (counted from 0)."
            )
        if self.out_of_sample is None or self.difference is None:
            return
        worse = self.difference.high < 0
        yield (
            f"Points embedded by transform differ by {self.out_of_sample}: "
            + ("a refit is more accurate." if worse else "no more than those of a refit.")
        )


@on_device_of_arguments
def stability(
    estimator: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    fraction: float = 0.8,
    transformation: str = "similarity",
    keep_embeddings: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Stability:
    """Refit an estimator to subsets of the data and measure how far points move.

    Use it before interpreting an embedding: structure that is smaller than the variability
    depends on the sample. The out-of-sample distance of the same points shows whether
    ``transform`` is accurate enough for new points or a refit is needed.

    Subsets are drawn without replacement, since rows repeated by a bootstrap would be their own
    nearest neighbors. Every point is left out about equally often.

    Parameters
    ----------
    estimator : estimator with ``fit_transform``
        Of this or another package; clones of it are fitted. Without ``transform`` there are no
        out-of-sample results.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The data, or square precomputed distances if the estimator takes those.
    n_resamples : int, default=20
        Number of refits, in addition to the fit to all the data.
    fraction : float, default=0.8
        Fraction of the points in each refit. If movements are proportional to 1/√n, the sampling
        error of the embedding of all data is about √(fraction / (1 - fraction)) times the
        variability: twice at 0.8, once at 0.5.
    transformation : {"similarity", "affine", "rigid"}, default="similarity"
        Transformation for aligning a refit with the embedding. A similarity removes rotations,
        reflections and scale but keeps the shape; affine also removes different scales along
        different directions, as in :func:`sensitivity`; rigid keeps the scale, which in many
        methods depends on the number of points. None of them recovers a direction that the refit
        lacks.
    keep_embeddings : bool, default=False
        Whether to keep all refits in ``aligned_embeddings``.
    n_jobs : int, default=None
        Number of processes, -1 for the number of cores; None is one. Results do not depend on it.
        Each fit uses one BLAS thread; with several processes, ``n_jobs`` of the estimator is set
        to the number of cores divided by the number of processes.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the subsets, and of the fits if the estimator has no seed; ``None`` is a fixed
        seed.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Stability
        How far points move, of all points and of each; ``print`` it for a summary.

    See Also
    --------
    sensitivity : the published experiment on training points and ``transform``.
    manifoldry.assess : quality of one fit.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.metrics import stability
    >>> X = make_s_curve(300, random_state=0).X
    >>> found = stability(Isomap(n_neighbors=8), X, n_resamples=5)
    >>> bool(found.variability < 0.1), found.per_point.shape
    (True, (300,))
    >>> print(found)  # doctest: +ELLIPSIS
    The embedding is stable: refitted to subsets of the data, its points move by ...
    """
    check_option("transformation", transformation, ALIGNMENTS)
    n_resamples = check_count("n_resamples", n_resamples)
    rng = as_generator(random_state, unset=0)
    seeds = rng.integers(2**31, size=n_resamples + 1)
    fitter = SubsetFitter.of(estimator, X, n_jobs)
    _left_out_count(
        fraction, fitter.n, 1
    )  # an early check, before the first fit, which may take long
    with one_blas_thread():
        reference = fitter.fit(np.arange(fitter.n), int(seeds[-1])).embedding
    task = _RefitTask(fitter, reference, spread_of(reference), transformation, keep_embeddings)
    n_out = _left_out_count(fraction, *reference.shape)
    if keep_embeddings:
        _check_memory(n_resamples, reference)
    left_out_sets = _left_out_sets(fitter.n, n_out, rng)
    jobs = ((next(left_out_sets), int(seed)) for seed in seeds[:-1])
    accumulated = _Accumulator.empty(fitter.n)
    for result in run_tasks(task, jobs, n_resamples, n_jobs, verbose):
        accumulated.add(result)
    return accumulated.result(reference)


@dataclass(frozen=True, eq=False)
class _AlignedRefit:
    """One refit, aligned with the embedding of all data."""

    distance: Array  # of every point to its position in the embedding of all data
    left_out: IntArray
    embedding: Array | None
    transform_error: str  # empty if transform succeeded


@dataclass(frozen=True, eq=False)
class _RefitTask:
    """Refit without some points, align with the reference, transform the points left out."""

    fitter: SubsetFitter
    reference: Array
    spread: float
    transformation: str
    keep: bool

    def __call__(self, left_out: IntArray, seed: int) -> _AlignedRefit:
        kept = np.setdiff1d(np.arange(self.fitter.n), left_out)
        refit = self.fitter.fit(kept, seed)
        alignment = fit_alignment(refit.embedding, self.reference, self.transformation)
        moved, transform_error = alignment.apply(refit.embedding), ""
        if refit.has_transform:
            try:
                moved[left_out] = alignment.apply(refit.transform(left_out)[left_out])
            except Exception as error:  # the refit itself is still used
                transform_error = f"transform: {describe_error(error)}"
        distance = distances(moved, self.reference, self.spread)
        embedding = moved if self.keep else None
        return _AlignedRefit(distance, left_out, embedding, transform_error)


@dataclass(eq=False)
class _Accumulator:
    """Running sums over the refits, so that they need not be kept."""

    squares: Array  # (2, n): sums of squared distances of points kept, and of points left out
    counts: IntArray
    errors: list[tuple[float, float]] = field(default_factory=list)  # kept, left out
    aligned_embeddings: list[Array] = field(default_factory=list)
    results: list[TaskResult] = field(default_factory=list)
    transform_errors: list[str] = field(default_factory=list)

    @classmethod
    def empty(cls, n: int) -> _Accumulator:
        return cls(np.zeros((2, n)), np.zeros((2, n), dtype=np.intp))

    def add(self, result: TaskResult) -> None:
        self.results.append(replace(result, value=None))
        if result.error:
            return
        moved: _AlignedRefit = result.value
        measured = np.isfinite(moved.distance)
        out = np.zeros(len(measured), dtype=bool)
        out[moved.left_out] = True
        roles = np.array([measured & ~out, measured & out])
        squares = np.where(roles, moved.distance**2, 0.0)
        self.squares += squares
        self.counts += roles
        self.errors.append(tuple(_root_means(squares.sum(axis=1), roles.sum(axis=1))))
        self.transform_errors += [moved.transform_error] if moved.transform_error else []
        self.aligned_embeddings += [] if moved.embedding is None else [moved.embedding]

    def result(self, embedding: Array) -> Stability:
        failures = report_failures(self.results) + self._report_transform_errors()
        kept, out = np.array(self.errors).T
        per_point = _root_means(self.squares, self.counts)
        has_transform = bool(np.isfinite(out).any())
        return Stability(
            mean_estimate(kept, least=0.0),
            mean_estimate(out, least=0.0) if has_transform else None,
            mean_estimate(kept - out) if has_transform else None,
            per_point[0],
            per_point[1] if has_transform else None,
            self.counts[0],
            embedding,
            len(self.errors),
            failures,
            np.stack(self.aligned_embeddings) if self.aligned_embeddings else None,
        )

    def _report_transform_errors(self) -> tuple[str, ...]:
        if self.transform_errors:
            warn(
                f"transform failed for {len(self.transform_errors)} of {len(self.errors)} refits, "
                "which are excluded from the out-of-sample distances; the first error: "
                f"{self.transform_errors[0]}",
                ManifoldryWarning,
            )
        return tuple(self.transform_errors)


def _root_means(squares: Array, counts: IntArray) -> Array:
    """Roots of the means of squares, NaN where the count is 0."""
    return np.sqrt(np.divide(squares, counts, out=np.full(squares.shape, np.nan), where=counts > 0))


def _left_out_count(fraction: float, n: int, n_components: int) -> int:
    kept = round(check_positive("fraction", fraction) * n)
    least = n_components + 2  # an affine map fits one point fewer exactly
    if not least <= kept < n:
        raise ValueError(
            f"fraction={fraction} keeps {kept} of n_samples={n} points in a refit; it must keep "
            f"{least} to {n - 1}"
            + (f": pass {least / n:.3g} to {(n - 1) / n:.3g}" if least < n else ": add points")
        )
    return n - kept


def _left_out_sets(n: int, n_out: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Endless sets of points to leave out, disjoint within each random permutation."""
    while True:
        order = rng.permutation(n)
        for start in range(0, n - n_out + 1, n_out):
            yield order[start : start + n_out]


def _check_memory(n_resamples: int, reference: Array) -> None:
    plan_memory(
        2 * 8.0 * n_resamples * reference.size,
        f"keeping {n_resamples} embeddings of {len(reference)} points",
        "pass keep_embeddings=False or a smaller n_resamples",
    )
