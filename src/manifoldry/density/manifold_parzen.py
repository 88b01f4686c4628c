"""Manifold Parzen windows."""

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.density.base import DensityEstimator
from manifoldry.density.leave_one_out import Trial, WeightedPoints, candidate_noises, search
from manifoldry.density.window_mixture import DEFAULT_OPTIONS, ParzenOptions, WindowMixture
from manifoldry.density.windows import Windows, windows_around
from manifoldry.exceptions import RankWarning
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.checks import as_generator, check_count, check_positive
from manifoldry.util.estimate import Estimate
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import plan_memory
from manifoldry.util.warn import warn

_RANGE = 1e100  # of the noise relative to the data; its square must be a number


class ManifoldParzen(DensityEstimator):
    """A density that follows the data: a Gaussian on every point, stretched along its neighbors.

    Maximizes no likelihood but averages n Gaussians, N(xᵢ, Vᵢ diag(λᵢ) Vᵢᵀ + σ²I), whose axes V and
    variances λ are those of the steps from xᵢ to its nearest neighbors (Vincent & Bengio 2003).
    Where data lie near a curved sheet this needs far fewer points than round windows do. Use it to
    draw new points like the data, to tell outliers, or in :class:`FromDensity` to smooth an
    embedding; for a few plain clusters a :class:`MixtureOfFactorAnalyzers` is smaller and faster.

    Parameters
    ----------
    n_components : int, default=None
        Axes of every window: 0 for round ones, else about the dimension of the data.
    n_neighbors : int, default=None
        Neighbors towards which windows are stretched, at least ``n_components``.
    noise : float, default=None
        Standard deviation σ across the axes, in the units of the data; with ``n_components=0``
        the bandwidth of :class:`sklearn.neighbors.KernelDensity`.
        Of these three, what is not given is chosen by the likelihood of points left out: those
        that are left out are neither windows nor anybody's neighbors.
    n_nearest : int, default=None
        Windows, the nearest ones, that are summed for the density at a point. By default all of up
        to 2000; of more, as many as miss 0.001 of the log density on average, measured on draws.
    n_jobs : int, default=None
        Threads of the neighbor search, by default one per core.
    options : ParzenOptions, default=None
        What is tried and on how many points it is measured; by default as it says.

    Attributes
    ----------
    n_components_, n_neighbors_ : int
        Axes and neighbors in use; no axes have no neighbors.
    noise_ : float
        The noise in use.
    n_nearest_ : int
        Windows that are summed for the density at a point.
    truncation_ : float
        How much of the log density the others would add, on average over draws.
    loglikelihood_ : Estimate
        Mean log density of points left out, with its confidence interval if not all were.
    trials_ : list of Trial
        What was tried: axes, neighbors, the best noise for them, and its log-likelihood.

    Notes
    -----
    Rows that occur several times are one window of that many times the weight. Fitting takes
    O(n·k·D·min(k, D)) operations and keeps n·d·D numbers; the density at a point takes
    O(n_nearest·d·D). To choose parameters, at most 300 points are left out, each beside its 2000
    nearest windows, so that very wide windows are put at a slight disadvantage. Draws have the mean
    of the data, and their variance plus that of the windows: for few points in many dimensions
    twice as much, or more.

    Examples
    --------
    >>> from manifoldry.datasets import make_helix
    >>> from manifoldry.density import ManifoldParzen
    >>> X, _ = make_helix(300, noise=0.02, random_state=0)
    >>> round_windows = ManifoldParzen(n_components=0).fit(X[:200])
    >>> stretched = ManifoldParzen().fit(X[:200])
    >>> stretched.n_components_
    1
    >>> stretched.score(X[200:]) > round_windows.score(X[200:])
    True
    >>> stretched.sample(2, random_state=0).shape
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
        options: ParzenOptions | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.noise = noise
        self.n_nearest = n_nearest
        self.n_jobs = n_jobs
        self.options = options

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Draw points from the density, (n_samples, n_features), of the training data's type.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState, Generator or None, default=None
            Seed; ``None`` draws others every time.
        """
        check_is_fitted(self)
        count = check_count("n_samples", n_samples)
        return self._data(self._mixture.draw(count, as_generator(random_state)), self._dtype)

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
        """The distinct rows, in a frame in which squares neither cancel nor overflow."""
        first, counts = np.unique(RowLookup.of(data).identical(data), return_counts=True)
        X = self._points(data[first])
        return WeightedPoints(X, counts, choose_index(X), options=self.options or DEFAULT_OPTIONS)

    def _grid(self, points: WeightedPoints) -> dict[int, list[int]]:
        """Numbers of axes to try for every number of neighbors."""
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
                f"n_components={d} must be at most {limit}={bound}; pass n_components={bound} or less"
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
        """What to try for the noise, in the frame of the points."""
        unit = self._frame.unit
        if self.noise is not None:
            noise = check_positive("noise", self.noise) / unit
            if not 1 / _RANGE < noise < _RANGE:
                raise ValueError(
                    f"noise={self.noise} is out of proportion to data that extend over about "
                    f"{unit:.0e}; pass a noise nearer to that, or None"
                )
            return np.array([noise])
        if points.n == 1:
            raise ValueError(
                "all rows of X coincide, so that no noise can be learned; pass a positive noise"
            )
        largest = float(np.sqrt(points.X.var(axis=0).mean()))
        return candidate_noises(_min_noise(points), largest, points.options.noise_steps)

    def _nearest(self, mixture: WindowMixture) -> tuple[WindowMixture, float]:
        """The mixture that sums no more windows than needed, and what that loses."""
        if self.n_nearest is None:
            return mixture.truncated()
        count = min(check_count("n_nearest", self.n_nearest), mixture.n)
        exact = count == mixture.n
        error = 0.0 if exact else float(mixture.truncation_errors(np.array([count]))[0])
        return replace(mixture, n_nearest=count), error

    def _store(self, trials: list[Trial], best: Trial) -> None:
        """Evidence, in the units of the data."""
        unit, log_unit = self._frame.unit, self._log_unit
        self.trials_ = [trial.scaled(unit, log_unit) for trial in trials]
        best = best.scaled(unit, log_unit)
        self.n_components_, self.n_neighbors_ = best.n_components, best.n_neighbors
        self.noise_, self.loglikelihood_ = best.noise, best.loglikelihood


def _trials(points: WeightedPoints, grid: dict[int, list[int]], noises: Array) -> list[Trial]:
    if points.n == 1:  # nobody is left to predict it
        return [Trial(0, 0, float(noises[0]), Estimate(-np.inf))]
    return search(points, grid, noises)


def _build_mixture(points: WeightedPoints, best: Trial) -> WindowMixture:
    d = best.n_components
    needed = 16.0 * points.n * d * points.X.shape[1]
    plan_memory(needed, f"{points.n} windows of {d} axes", "pass a smaller n_components")
    windows = Windows.join(windows_around(points.X, points.neighbors(best.n_neighbors), d))
    weights = points.counts / points.counts.sum()
    return WindowMixture(windows, weights, best.noise, points.index, points.n, points.options)


def _min_noise(points: WeightedPoints) -> float:
    """The smallest noise to try: far below what separates neighbors."""
    gaps = points.index.others(points.X, 1).distances
    return float(points.options.min_noise * np.median(gaps) / np.sqrt(points.X.shape[1]))


def _warn_degenerate(d: int, n_features: int) -> None:
    if d == n_features:
        return
    warn(
        f"the data seem to lie exactly on a surface of {d} dimensions, on which the density is "
        "infinite: the noise stopped at a thousandth of the distance between neighbors; pass "
        "noise= to set it, or drop features that are functions of others",
        RankWarning,
    )
