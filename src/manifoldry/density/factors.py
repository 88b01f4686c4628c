"""Mixtures of factor analyzers: Gaussians N(μ, ΛΛᵀ + Ψ) with few factors and diagonal noise Ψ."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifoldry.density.windows import log_sum
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class FactorMixture:
    """Mixture of M Gaussians y = μⱼ + Λⱼz + noise, with L independent standard normal factors z.

    Computations use the L × L matrix I + ΛᵀΨ⁻¹Λ (Woodbury identity), never a D × D matrix.
    """

    weights: Array  # (M,)
    means: Array  # (M, D)
    loadings: Array  # (M, D, L), Λ
    noise: Array  # (M, D), the diagonals of Ψ; equal rows if tied

    @property
    def n(self) -> int:
        """Number of components."""
        return len(self.weights)

    def latent(self, X: Array, j: int) -> tuple[Array, Array]:
        """E[z | y, j], (n, L), and the log density of component j, (n,), at the rows of `X`.

        E[z] minimizes |Ψ^(-½)(y − μ − Λz)|² + |z|², and the minimum is the squared Mahalanobis
        distance. This sum of squares avoids the cancellation of the usual difference.
        """
        scale = np.sqrt(self.noise[j])
        A = self.loadings[j] / scale[:, None]
        M = np.eye(A.shape[1]) + A.T @ A
        delta = (X - self.means[j]) / scale
        Z = np.linalg.solve(M, A.T @ delta.T).T
        delta -= Z @ A.T
        squares = (delta**2).sum(axis=1) + (Z**2).sum(axis=1)
        log_volume = np.linalg.slogdet(M)[1] + np.log(self.noise[j]).sum()
        return Z, -0.5 * (squares + log_volume + X.shape[1] * np.log(2 * np.pi))

    def posterior_covariance(self, j: int) -> Array:
        """Cov[z | y, j] = (I + ΛᵀΨ⁻¹Λ)⁻¹, the same for all y."""
        A = self.loadings[j] / np.sqrt(self.noise[j])[:, None]
        return np.linalg.inv(np.eye(A.shape[1]) + A.T @ A)

    def log_joint(self, X: Array) -> Array:
        """Logarithms of πⱼ pⱼ(y) for each row and component, (n, M)."""
        found = np.empty((len(X), self.n))
        for block in row_blocks(len(X), 3 * X.shape[1]):
            for j in range(self.n):
                found[block, j] = np.log(self.weights[j]) + self.latent(X[block], j)[1]
        return found

    def log_density(self, X: Array) -> Array:
        """Log density at each row, (n,)."""
        return log_sum(self.log_joint(X))

    def local_coordinates(self, X: Array, labels: IntArray) -> Array:
        """E[z | y, j] of each row, for the component j given by `labels`, (n, L)."""
        Z = np.empty((len(X), self.loadings.shape[2]))
        for j in range(self.n):
            rows = np.flatnonzero(labels == j)
            Z[rows] = self.latent(X[rows], j)[0]
        return Z

    def positions(self, Z: Array, labels: IntArray) -> Array:
        """μⱼ + Λⱼz of each row, for the component j given by `labels`, (n, D)."""
        X = np.empty((len(Z), self.means.shape[1]))
        for j in range(self.n):
            rows = np.flatnonzero(labels == j)
            X[rows] = Z[rows] @ self.loadings[j].T + self.means[j]
        return X

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Array, IntArray]:
        """Random points from the mixture, sorted by component, and their components."""
        labels = np.repeat(np.arange(self.n), rng.multinomial(count, self.weights))
        Z = rng.standard_normal((count, self.loadings.shape[2]))
        noise = rng.standard_normal((count, self.means.shape[1])) * np.sqrt(self.noise[labels])
        return self.positions(Z, labels) + noise, labels

    def without(self, removed: NDArray[np.bool_]) -> "FactorMixture":
        """Remove the components where `removed` is true, and renormalize the weights."""
        weights = self.weights[~removed]
        kept = (self.means[~removed], self.loadings[~removed], self.noise[~removed])
        return FactorMixture(weights / weights.sum(), *kept)

    def rotated(self) -> "FactorMixture":
        """The same density with factors in a unique order and sign.

        Any rotation of the factors gives the same density. Here they are independent given the
        data, most informative first, with a positive largest loading.
        """
        loadings = np.empty_like(self.loadings)
        for j in range(self.n):
            A = self.loadings[j] / np.sqrt(self.noise[j])[:, None]
            rotated = self.loadings[j] @ np.linalg.svd(A, full_matrices=False)[2].T
            largest = np.abs(rotated).argmax(axis=0)
            signs = np.sign(rotated[largest, np.arange(rotated.shape[1])])
            loadings[j] = rotated * np.where(signs == 0, 1.0, signs)
        return FactorMixture(self.weights, self.means, loadings, self.noise)

    def n_parameters(self, tied: bool) -> int:
        """Number of free parameters, not counting rotations of the factors."""
        M, D, L = self.loadings.shape
        noise = D if tied else M * D
        return int(M - 1 + M * D + M * (D * L - L * (L - 1) // 2) + noise)
