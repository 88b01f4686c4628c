"""How far points move on a map when it is made again from a part of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manifoldry.exceptions import ManifoldryWarning
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
from manifoldry.util.warn import warn


@dataclass(frozen=True, eq=False)
class Stability:
    """How much of a map would come out again.

    All figures are in units of the map's spread, the root mean squared distance of its points
    from their center: 0 where a point does not move; about 1 where the refits have nothing in
    common with the map. Intervals are Student's 95 % over the resamples: they tell what more
    resamples would change, not what other data would.

    Attributes
    ----------
    variability : Estimate
        Root mean squared distance of points from their place when the map is made again with them.
    out_of_sample : Estimate or None
        The same of points that a refit was made without and placed by ``transform``; None where
        the estimator has none.
    difference : Estimate or None
        The first less the second. Well below 0, new points are placed worse than a refit would
        place them; about 0, just as well.
    per_point : array of shape (n_samples,)
        Root mean squared distance of every point over the refits it was part of; NaN where it was
        never on both maps. Pass it to ``plot_embedding(embedding, color=...)``.
    per_point_out_of_sample : array of shape (n_samples,), or None
        The same over the refits that left the point out.
    counts : array of shape (n_samples,)
        Number of refits behind each entry of `per_point`.
    embedding : array of shape (n_samples, n_components)
        The map of all the data.
    n_resamples : int
        Number of refits that worked.
    failures : tuple of str
        What those said that did not, and what ``transform`` said where it failed.
    maps : array of shape (n_resamples, n_samples, n_components), or None
        The refits moved onto `embedding`, if they were to be kept, left-out points where
        ``transform`` put them.
    thresholds : (float, float)
        Variabilities from which points are said to move some, and much.
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
    maps: Array | None = field(repr=False)
    thresholds: tuple[float, float] = field(default=(0.1, 0.3), repr=False)

    def __str__(self) -> str:
        return "\n".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        grade = sum(self.variability > bound for bound in self.thresholds)
        yield (
            "The map comes out again: ",
            "The map comes out again in the main: ",
            "Much of the map is an accident of the sample: ",
        )[grade] + (
            f"made from parts of the data, its points move by {self.variability} of its spread "
            f"({self.n_resamples} refits)."
        )
        if self.out_of_sample is None or self.difference is None:
            return
        worse = self.difference.high < 0
        yield (
            f"Placed by transform instead, they are {self.out_of_sample} off: "
            + ("a refit places them better." if worse else "as good as a refit.")
        )


def stability(
    estimator: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    fraction: float = 0.8,
    allow: str = "similarity",
    keep_maps: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: bool = False,
) -> Stability:
    """Refit an estimator on parts of the data and measure how far points move on the map.

    Use it before reading anything into a map: what moves as far as the distances one looks at is
    an accident of the sample. The variability comes beside the error of placing the same points
    by ``transform``, which tells whether new points need a refit.

    Parts are drawn without replacement, since rows that a bootstrap repeats are their own nearest
    neighbors. Every point is left out about equally often.

    Parameters
    ----------
    estimator : estimator with ``fit_transform``
        From here, scikit-learn or elsewhere; copies of it are fitted. Without ``transform`` there
        is no out-of-sample part.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        The data, or square precomputed distances where the estimator takes those.
    n_resamples : int, default=20
        Number of refits, beside the one of all the data.
    fraction : float, default=0.8
        Fraction of the points in each refit. Where points move in proportion to 1/√n, the whole
        map's own sampling error is about √(fraction / (1 - fraction)) times the variability:
        twice at 0.8, once at 0.5.
    allow : {"similarity", "affine", "rigid"}, default="similarity"
        What may be undone to bring a refit onto the map. A similarity leaves the shape of a map
        alone, so what remains is what a reader would see; coordinates that turn into each other
        are brought back. Affine also undoes stretches along single directions, as in
        :func:`sensitivity`; rigid leaves the scale, which many methods derive from the number of
        points. None brings back a direction that the refit does not have.
    keep_maps : bool, default=False
        Whether to return all refits.
    n_jobs : int, default=None
        Number of processes, -1 for as many as there are cores; None is one. Results do not depend
        on it. Each fit runs BLAS in one thread; where there are several processes, ``n_jobs`` of
        the estimator is lowered to its fraction of the cores.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the parts and, for estimators without one of their own, of the fits; ``None`` is a
        fixed seed.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    Stability

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
    The map comes out again: made from parts of the data, its points move by ...
    """
    check_option("allow", allow, ALIGNMENTS)
    n_resamples = check_count("n_resamples", n_resamples)
    rng = as_generator(random_state, unset=0)
    seeds = rng.integers(2**31, size=n_resamples + 1)
    fitter = SubsetFitter.of(estimator, X, n_jobs)
    _left_out_count(fraction, fitter.n, 1)  # before the first fit, which may take long
    with one_blas_thread():
        reference = fitter.fit(np.arange(fitter.n), int(seeds[-1])).embedding
    task = _RefitTask(fitter, reference, spread_of(reference), allow, keep_maps)
    n_out = _left_out_count(fraction, *reference.shape)
    if keep_maps:
        _check_memory(n_resamples, reference)
    left_out_sets = _left_out_sets(fitter.n, n_out, rng)
    jobs = ((next(left_out_sets), int(seed)) for seed in seeds[:-1])
    accumulated = _Accumulator.empty(fitter.n)
    for result in run_tasks(task, jobs, n_resamples, n_jobs, verbose):
        accumulated.add(result)
    return accumulated.result(reference)


@dataclass(frozen=True, eq=False)
class _AlignedRefit:
    """One refit, moved onto the reference."""

    distance: Array  # from the reference, of kept and left-out points
    left_out: IntArray
    embedding: Array | None
    transform_error: str  # of transform


@dataclass(frozen=True, eq=False)
class _RefitTask:
    """Refit without some points, move the map onto the reference, place the points."""

    fitter: SubsetFitter
    reference: Array
    spread: float
    allow: str
    keep: bool

    def __call__(self, left_out: IntArray, seed: int) -> _AlignedRefit:
        kept = np.setdiff1d(np.arange(self.fitter.n), left_out)
        refit = self.fitter.fit(kept, seed)
        alignment = fit_alignment(refit.embedding, self.reference, self.allow)
        moved, transform_error = alignment.apply(refit.embedding), ""
        if refit.has_transform:
            try:
                moved[left_out] = alignment.apply(refit.transform(left_out)[left_out])
            except Exception as error:  # the refit is worth having all the same
                transform_error = f"transform: {describe_error(error)}"
        distance = distances(moved, self.reference, self.spread)
        embedding = moved if self.keep else None
        return _AlignedRefit(distance, left_out, embedding, transform_error)


@dataclass(eq=False)
class _Accumulator:
    """Sums over refits as they come in, so that none has to be kept."""

    squares: Array  # (2, n): sums of squared distances of points kept, and of points left out
    counts: IntArray
    errors: list[tuple[float, float]] = field(default_factory=list)  # kept, left out
    maps: list[Array] = field(default_factory=list)
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
        self.maps += [] if moved.embedding is None else [moved.embedding]

    def result(self, embedding: Array) -> Stability:
        failures = report_failures(self.results) + self._report_transform_errors()
        kept, out = np.array(self.errors).T
        per_point = _root_means(self.squares, self.counts)
        placed = np.isfinite(out).any()
        return Stability(
            mean_estimate(kept, least=0.0),
            mean_estimate(out, least=0.0) if placed else None,
            mean_estimate(kept - out) if placed else None,
            per_point[0],
            per_point[1] if placed else None,
            self.counts[0],
            embedding,
            len(self.errors),
            failures,
            np.stack(self.maps) if self.maps else None,
        )

    def _report_transform_errors(self) -> tuple[str, ...]:
        if self.transform_errors:
            warn(
                f"transform failed after {len(self.transform_errors)} of {len(self.errors)} refits, so "
                f"left-out points were not placed there; the first: {self.transform_errors[0]}",
                ManifoldryWarning,
            )
        return tuple(self.transform_errors)


def _root_means(squares: Array, counts: IntArray) -> Array:
    """Root means, NaN of nothing."""
    return np.sqrt(np.divide(squares, counts, out=np.full(squares.shape, np.nan), where=counts > 0))


def _left_out_count(fraction: float, n: int, n_components: int) -> int:
    kept = round(check_positive("fraction", fraction) * n)
    least = n_components + 2  # that an affine motion cannot bring anywhere
    if not least <= kept < n:
        raise ValueError(
            f"fraction={fraction} keeps {kept} of n_samples={n} points in a refit; it must keep "
            f"{least} to {n - 1}"
            + (f": pass {least / n:.3g} to {(n - 1) / n:.3g}" if least < n else ": add points")
        )
    return n - kept


def _left_out_sets(n: int, n_out: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Points to leave out, again and again; in each shuffle nobody is left out twice."""
    while True:
        order = rng.permutation(n)
        for start in range(0, n - n_out + 1, n_out):
            yield order[start : start + n_out]


def _check_memory(n_resamples: int, reference: Array) -> None:
    plan_memory(
        2 * 8.0 * n_resamples * reference.size,
        f"keeping {n_resamples} maps of {len(reference)} points",
        "pass keep_maps=False or a smaller n_resamples",
    )
