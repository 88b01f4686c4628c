"""Expectation-maximization for mixtures of factor analyzers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.density.factors import FactorMixture
from manifoldry.density.windows import log_sum
from manifoldry.exceptions import RankWarning, warn
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the data of y − μⱼ and of z̃ = [E[z], 1], weighted by responsibilities h."""

    sum_zz: Array  # (M, L+1, L+1), Σ h E[z̃z̃ᵀ]
    sum_yz: Array  # (M, D, L+1), Σ h (y − μ) E[z̃]ᵀ
    sum_yy: Array  # (M, D), Σ h (y − μ)²
    loglikelihood: float  # mean per row

    @property
    def counts(self) -> Array:
        """Σ h of each component."""
        return self.sum_zz[:, -1, -1]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted mixture, and its log-likelihood after each step since the last removal."""

    mixture: FactorMixture
    trace: Array
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class ExpectationMaximization:
    """Parameters and steps of the EM algorithm.

    Parameters
    ----------
    tied : bool
        Whether all components share one noise covariance Ψ.
    floor : array of shape (n_features,)
        Lower bound on the noise variance of each feature.
    max_iter, tol : int, float
        Largest number of steps, and the increase of the log-likelihood per row below which to stop.
    """

    tied: bool
    floor: Array
    max_iter: int
    tol: float

    def run(self, X: Array, mixture: FactorMixture) -> Fit:
        """Iterate from `mixture` until the likelihood converges."""
        trace: list[float] = []
        for step in range(self.max_iter):
            moments = expect(X, mixture)
            removed = _too_small(moments, mixture)
            if removed.any():
                mixture, trace = mixture.without(removed), []
                continue
            trace.append(moments.loglikelihood)
            if len(trace) > 1 and trace[-1] - trace[-2] < self.tol:
                return Fit(mixture, np.array(trace), step, True)
            mixture = self.maximize(mixture, moments)
        trace.append(float(mixture.log_density(X).mean()))
        return Fit(mixture, np.array(trace), self.max_iter, False)

    def maximize(self, mixture: FactorMixture, moments: Moments) -> FactorMixture:
        """The M step: a regression of y on the factors.

        The expected likelihood is unimodal in each entry of Ψ, so clipping at the floor gives the
        constrained maximum, and the likelihood does not decrease.
        """
        coefficients = np.linalg.solve(
            moments.sum_zz, moments.sum_yz.transpose(0, 2, 1)
        )  # (M, L+1, D)
        residual = moments.sum_yy - np.einsum("mdl,mld->md", moments.sum_yz, coefficients)
        counts = moments.counts
        noise = residual.sum(axis=0) / counts.sum() if self.tied else residual / counts[:, None]
        noise = np.broadcast_to(np.maximum(noise, self.floor), residual.shape)
        loadings = coefficients[:, :-1].transpose(0, 2, 1)
        means = mixture.means + coefficients[:, -1]
        return FactorMixture(counts / counts.sum(), means, loadings, noise)


def expect(X: Array, mixture: FactorMixture) -> Moments:
    """The E step: moments of the factors and the data, in one pass over blocks of rows."""
    M, D, L = mixture.loadings.shape
    sum_zz, sum_yz = np.zeros((M, L + 1, L + 1)), np.zeros((M, D, L + 1))
    sum_yy, total = np.zeros((M, D)), 0.0
    for block in row_blocks(len(X), 3 * D + M * (L + 1)):
        found = [mixture.latent(X[block], j) for j in range(M)]
        log_joint = np.log(mixture.weights) + np.column_stack([log for _, log in found])
        log_density = log_sum(log_joint)
        total += log_density.sum()
        H = np.exp(log_joint - log_density[:, None])
        for j, (Z, _) in enumerate(found):
            with_one = np.column_stack([Z, np.ones(len(Z))])
            delta = X[block] - mixture.means[j]
            weighted = H[:, j, None] * with_one
            sum_zz[j] += with_one.T @ weighted
            sum_yz[j] += delta.T @ weighted
            sum_yy[j] += H[:, j] @ delta**2
    for j in range(M):
        sum_zz[j, :L, :L] += sum_zz[j, -1, -1] * mixture.posterior_covariance(j)
    return Moments(sum_zz, sum_yz, sum_yy, total / len(X))


def _too_small(moments: Moments, mixture: FactorMixture) -> Any:
    """Mask of components with too few points for their factors; never the largest component."""
    minimum = mixture.loadings.shape[2] + 2
    removed = moments.counts < minimum
    removed[np.argmax(moments.counts)] = False
    if removed.any():
        warn(
            f"{removed.sum()} of {mixture.n} components had fewer than n_factors + 2 = {minimum} "
            f"points and were removed; pass n_components={mixture.n - removed.sum()} or fewer, or "
            "a smaller n_factors",
            RankWarning,
        )
    return removed


def initial_mixture(
    X: Array, n_components: int, n_factors: int, floor: Array, tied: bool, rng: np.random.Generator
) -> FactorMixture:
    """Clusters by k-means, each with the principal axes of its points."""
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31 - 1))
    clusters = KMeans(n_components, n_init=1, random_state=seed).fit(X).labels_
    parts = [_local_pca(X, clusters == j, n_factors, floor, seed) for j in np.unique(clusters)]
    means, loadings, residual = map(np.stack, zip(*parts, strict=True))
    weights = np.unique(clusters, return_counts=True)[1] / len(X)
    noise = np.broadcast_to(weights @ residual, residual.shape) if tied else residual
    return FactorMixture(weights, means, loadings, np.maximum(noise, floor))


def _local_pca(
    X: Array, mask: Any, n_factors: int, floor: Array, seed: int
) -> tuple[Array, Array, Array]:
    """Mean, scaled principal axes and residual variances of the points of one cluster.

    Features are standardized: otherwise a single feature of large variance would take up a factor,
    a local maximum that EM does not leave.
    """
    from sklearn.utils.extmath import randomized_svd

    rows = np.flatnonzero(mask)
    mean = X[rows].mean(axis=0)
    # With too few points in the cluster, start from the axes of all data.
    local = (X[rows] if len(rows) > n_factors else X) - mean
    scale = np.sqrt(np.maximum((local**2).mean(axis=0), floor))
    local = local / scale
    _, S, axes = randomized_svd(local, n_factors, random_state=seed)
    loadings = axes.T * (S / np.sqrt(len(local)))
    residual = ((local - local @ axes.T @ axes) ** 2).mean(axis=0)
    return mean, loadings * scale[:, None], residual * scale**2
