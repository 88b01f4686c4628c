"""Manifold Parzen windows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.docs import shared_docs
from manifoldry.base.resources import on_its_device
from manifoldry.density.base import DensityEstimator
from manifoldry.density.leave_one_out import DensityTrial, WeightedPoints, candidate_noises, search
from manifoldry.density.window_mixture import DEFAULT_OPTIONS, ParzenOptions, WindowMixture
from manifoldry.density.windows import Windows, windows_around
from manifoldry.device import Device
from manifoldry.exceptions import RankWarning, warn
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.checks import as_generator, check_count, check_nonnegative, check_positive
from manifoldry.util.estimate import Estimate
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import plan_memory

_RANGE = 1e100  # largest ratio of noise and data scale; its square must not overflow


@shared_docs
class ManifoldParzen(DensityEstimator):
    """Parzen density estimate with Gaussians elongated along the data.

    The density is the mean of n Gaussians N(xᵢ, Vᵢ diag(λᵢ) Vᵢᵀ + σ²I), called windows, whose axes
    V and variances λ are those of the differences between xᵢ and its nearest neighbors (Vincent &
    Bengio 2003). For data near a curved manifold this needs far fewer points than isotropic
    windows. Use it to sample new points, to detect outliers, or in :class:`FromDensity` to smooth
    an embedding. For a few Gaussian clusters, a :class:`MixtureOfFactorAnalyzers` is smaller and
    faster.

    Those of `n_components`, `n_neighbors` and `noise` that are not given maximize the leave-one-out
    likelihood, where a point that is left out is also removed from the neighbors of other points.

    Parameters
    ----------
    n_components : int, default=None
        Number of axes of each window: 0 for isotropic windows, else about the dimension of the
        data.
    n_neighbors : int, default=None
        Number of neighbors that determine the axes, at least ``n_components``.
    noise : float, default=None
        Standard deviation σ of the isotropic part, in the units of the data; with
        ``n_components=0`` the bandwidth of :class:`sklearn.neighbors.KernelDensity`.
    n_nearest : int, default=None
        Number of nearest windows that are summed for the density at a point. By default all of up
        to 2000; with more, as many as give a mean truncation error of the log density of at most
        0.001.
    n_jobs : int, default=None
        Number of threads of the neighbor search, by default one per core.
    {device}
    options : ParzenOptions, default=None
        Parameter values to try, and sample sizes of the likelihood.

    Attributes
    ----------
    n_components_, n_neighbors_ : int
        Numbers of axes and of neighbors; without axes, no neighbors.
    noise_ : float
        The noise.
    n_nearest_ : int
        Number of nearest windows that are summed for the density at a point.
    truncation_ : float
        Mean truncation error of the log density, estimated on samples from the density.
    loglikelihood_ : Estimate
        Mean leave-one-out log density, with a confidence interval if not all points were left out.
    trials_ : list of DensityTrial
        All combinations of axes and neighbors tried, each with its best noise and log-likelihood.

    See Also
    --------
    MixtureOfFactorAnalyzers : fewer, larger Gaussians.
    FromDensity : embeds a sample from the density.

    Notes
    -----
    Duplicate rows form one window whose weight is their number. Fitting takes O(n·k·D·min(k, D))
    operations and stores n·d·D numbers; the density at a point takes O(n_nearest·d·D). To choose
    parameters, at most 300 points are left out, each with its 2000 nearest windows only, which
    slightly underestimates the likelihood of very wide windows. The mean of samples is that of the
    data, and their variance that of the data plus that of the windows, which can double it for few
    points in many dimensions.

    References
    ----------
    P. Vincent and Y. Bengio, "Manifold Parzen windows", NIPS 15, 2003.

    Examples
    --------
    >>> from manifoldry.datasets import make_helix
    >>> from manifoldry.density import ManifoldParzen
    >>> X, _ = make_helix(300, noise=0.02, random_state=0)
    >>> isotropic = ManifoldParzen(n_components=0).fit(X[:200])
    >>> elongated = ManifoldParzen().fit(X[:200])
    >>> elongated.n_components_
    1
    >>> elongated.score(X[200:]) > isotropic.score(X[200:])
    True
    >>> elongated.sample(2, random_state=0).shape
    (2, 3)
    """

    def __init__(
        self,
        n_components: int | None = None,
        n_neighbors: int | None = None,
        noise: float | None = None,
        *,
        n_nearest: int | None = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
        options: ParzenOptions | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.noise = noise
        self.n_nearest = n_nearest
        self.n_jobs = n_jobs
        self.device = device
        self.options = options

    # Rows of distributed data that are fitted: a search compares all their pairs.
    _landmarks = 5000

    @on_its_device
    def sample(
        self,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        width: float = 1.0,
        stratified: bool = False,
    ) -> Array:
        """Draw random points from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, RandomState, Generator or None, default=None
            Seed; with ``None``, each call draws different points.
        width : float, default=1.0
            Factor of the steps from the rows, so of the widths of all windows; 0 repeats rows.
        stratified : bool, default=False
            Whether to draw equally often from the window of every row, which varies less than
            independent draws; if `n_samples` is not a multiple, some rows have one more.

        Returns
        -------
        array of shape (n_samples, n_features)
            The points, with the dtype of the data.
        """
        check_is_fitted(self)
        count = check_count("n_samples", n_samples)
        factor = check_nonnegative("width", width)
        drawn = self._mixture.draw(count, as_generator(random_state), factor, bool(stratified))
        return self._data(drawn, self._dtype)

    def draw_around(
        self, X: Array, count: int, widths: Sequence[float], rng: np.random.Generator
    ) -> Iterator[Array]:
        """Yield, for each width, stratified draws from windows like the fitted ones around rows.

        The windows have the fitted numbers of axes and neighbors and the fitted noise, also if `X`
        is a part of the rows they were fitted to; the axes are those of `X` alone. All
        widths share the same random numbers.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows.
        count : int
            Number of draws for each width.
        widths : sequence of float
            Factors of the widths of the windows.
        rng : Generator
            Source of the random numbers.

        Yields
        ------
        array of shape (count, n_features)
            The draws of one width.
        """
        check_is_fitted(self)
        points = self._distinct(X)
        k = min(self.n_neighbors_, points.n - 1)
        noise = self.noise_ / self._frame.unit
        trial = DensityTrial(min(self.n_components_, k), k, noise, Estimate(-np.inf))
        mixture = _build_mixture(replace(points, max_neighbors=k), trial)
        seed = int(rng.integers(2**31 - 1))
        for width in widths:
            drawn = mixture.draw(count, np.random.default_rng(seed), width, stratified=True)
            yield self._data(drawn, self._dtype)

    def _learn(self, data: Array) -> WindowMixture:
        points = self._distinct(data)
        noises, grid = self._candidate_noises(points), self._grid(points)
        points = replace(points, max_neighbors=max(grid))
        trials = _trials(points, grid, noises)
        best = max(trials, key=lambda trial: trial.loglikelihood)
        if self.noise is None and best.noise <= 1.1 * noises[0]:
            _warn_degenerate(best.n_components, points.X.shape[1])
        mixture, self.truncation_ = self._nearest(_build_mixture(points, best))
        self.n_nearest_ = mixture.n_nearest
        self._store(trials, best)
        return mixture

    def _distinct(self, data: Array) -> WeightedPoints:
        """The distinct rows, scaled so that squares neither cancel nor overflow."""
        first, counts = np.unique(RowLookup.of(data).identical(data), return_counts=True)
        X = self._points(data[first])
        return WeightedPoints(X, counts, choose_index(X), options=self.options or DEFAULT_OPTIONS)

    def _grid(self, points: WeightedPoints) -> dict[int, list[int]]:
        """Numbers of axes to try for each number of neighbors."""
        n_features = points.X.shape[1]
        d = None if self.n_components is None else self._given_components(points)
        if d == 0:
            return {0: [0]}
        neighbors = self._neighbors(points, minimum=d or 1)
        if d is not None:
            return {k: [d] for k in neighbors}
        grid = {
            k: [d for d in points.options.dimensions if d <= min(k, n_features)] for k in neighbors
        }
        return {0: [0], **grid}

    def _given_components(self, points: WeightedPoints) -> int:
        d = check_count("n_components", self.n_components, minimum=0)
        bounds = {"n_features": points.X.shape[1], "the number of distinct rows - 1": points.n - 1}
        limit, bound = min(bounds.items(), key=lambda item: item[1])
        if d > bound:
            raise ValueError(
                f"n_components={d} must be at most {limit}={bound}; pass n_components={bound} or "
                "less"
            )
        return d

    def _neighbors(self, points: WeightedPoints, minimum: int) -> list[int]:
        bound = points.n - 1
        if self.n_neighbors is None:
            return [k for k in points.options.neighbors if minimum <= k <= bound] or [
                min(bound, 2 * minimum)
            ]
        k = check_count("n_neighbors", self.n_neighbors, minimum=minimum)
        if k > bound:
            raise ValueError(
                f"n_neighbors={k} must be less than the number of distinct rows, {points.n}; "
                f"pass n_neighbors={bound} or fewer"
            )
        return [k]

    def _candidate_noises(self, points: WeightedPoints) -> Array:
        """Noise values to try, in scaled coordinates."""
        unit = self._frame.unit
        if self.noise is not None:
            noise = check_positive("noise", self.noise) / unit
            if not 1 / _RANGE < noise < _RANGE:
                raise ValueError(
                    f"noise={self.noise} is too small or too large for data of scale {unit:.0e}; "
                    "pass a noise closer to that scale, or None"
                )
            return np.array([noise])
        if points.n == 1:
            raise ValueError(
                "all rows of X coincide, so the noise cannot be estimated; pass a positive noise"
            )
        largest = float(np.sqrt(points.X.var(axis=0).mean()))
        return candidate_noises(_min_noise(points), largest, points.options.noise_steps)

    def _nearest(self, mixture: WindowMixture) -> tuple[WindowMixture, float]:
        """The truncated mixture, and its mean truncation error."""
        if self.n_nearest is None:
            return mixture.truncated()
        count = min(check_count("n_nearest", self.n_nearest), mixture.n)
        exact = count == mixture.n
        error = 0.0 if exact else float(mixture.truncation_errors(np.array([count]))[0])
        return replace(mixture, n_nearest=count), error

    def _store(self, trials: list[DensityTrial], best: DensityTrial) -> None:
        """Set the fitted attributes, in the units of the data."""
        unit, log_unit = self._frame.unit, self._log_unit
        self.trials_ = [trial.scaled(unit, log_unit) for trial in trials]
        best = best.scaled(unit, log_unit)
        self.n_components_, self.n_neighbors_ = best.n_components, best.n_neighbors
        self.noise_, self.loglikelihood_ = best.noise, best.loglikelihood


def _trials(
    points: WeightedPoints, grid: dict[int, list[int]], noises: Array
) -> list[DensityTrial]:
    if points.n == 1:  # no other point is left
        return [DensityTrial(0, 0, float(noises[0]), Estimate(-np.inf))]
    return search(points, grid, noises)


def _build_mixture(points: WeightedPoints, best: DensityTrial) -> WindowMixture:
    d = best.n_components
    needed = 16.0 * points.n * d * points.X.shape[1]
    plan_memory(needed, f"{points.n} windows of {d} axes", "pass a smaller n_components")
    windows = Windows.join(windows_around(points.X, points.neighbors(best.n_neighbors), d))
    weights = points.counts / points.counts.sum()
    return WindowMixture(windows, weights, best.noise, points.index, points.n, points.options)


def _min_noise(points: WeightedPoints) -> float:
    """The smallest noise to try, far below the distance between neighbors."""
    gaps = points.index.reference_neighbors(points.X, 1).distances
    noise = float(points.options.min_noise * np.median(gaps) / np.sqrt(points.X.shape[1]))
    return max(noise, 1 / _RANGE)  # squares of a smaller noise may underflow


def _warn_degenerate(d: int, n_features: int) -> None:
    if d == n_features:
        return
    warn(
        f"the data seem to lie exactly on a {d}-dimensional surface, where the density is "
        "infinite, so the noise is at its lower bound, a thousandth of the distance between "
        "neighbors; pass a noise, or remove features that are functions of others",
        RankWarning,
    )
