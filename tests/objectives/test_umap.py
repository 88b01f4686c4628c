"""UMAP's loss by a user-defined kernel; it is not a function of kernel sums."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.spatial.distance import cdist

from manifoldry.extension.new_points import NewPointOptimizer
from manifoldry.objectives import ComplementKernel, Kernel, Pairwise, Unnormalized
from manifoldry.optimize import LBFGS


@dataclass(frozen=True)
class Rational(Kernel):
    """κ = 1/(1 + a·d^{2b}), with UMAP's a and b for min_dist = 0.1."""

    a: float = 1.577
    b: float = 0.895

    def phi(self, D):
        return np.log1p(self.a * D**self.b)

    def derivative(self, D):
        return self.a * self.b * np.maximum(D, 1e-30) ** (self.b - 1) * self(D)

    def second_derivative(self, D):
        return self.derivative(D) * (self.b * self(D) - 1) / np.maximum(D, 1e-30)


def test_the_loss_of_umap():
    n, gamma, rng = 30, 0.7, np.random.default_rng(0)
    X, Y = rng.normal(size=(n + 1, 3)), rng.normal(size=(n, 2))
    memberships = np.exp(-cdist(X, X, "sqeuclidean")) * (1 - np.eye(n + 1))
    W, w = memberships[:n, :n], memberships[n:, :n]
    far, kernel = 1 - np.eye(n) - W, Rational()
    repels = Unnormalized(far), gamma * far.sum()
    umap = Pairwise(W, kernel, *repels, potential=ComplementKernel(kernel))

    def cross_entropy(w, far, D):
        kappa = 1 / (1 + 1.577 * D**0.895)
        return (-w * np.log(kappa) - gamma * far * np.log(1 - kappa / 1.001)).sum()

    def of_new_point(x):
        return cross_entropy(w, 1 - w, cdist(x[None], Y, "sqeuclidean"))

    value, G = umap.value_and_gradient(Y)
    assert value == pytest.approx(cross_entropy(W, far, cdist(Y, Y, "sqeuclidean")), rel=1e-12)
    ahead, behind = (
        approx_fprime(Y.ravel(), lambda y: umap.value(y.reshape(n, 2)), h) for h in (1e-5, -1e-5)
    )
    np.testing.assert_allclose(G.ravel(), (ahead + behind) / 2, atol=1e-6 * abs(G).max())

    fit = LBFGS().minimize(umap, Y)
    assert fit.converged
    assert fit.value < 0.9 * value

    Y, total = fit.embedding, W.sum() / n
    placed = NewPointOptimizer(Y, umap.for_new_points(Y), 3).minimize(
        w / total, (1 - w) / far.sum()
    )
    assert placed.values == pytest.approx(of_new_point(placed.positions[0]) / total, rel=1e-12)
    best = min((minimize(of_new_point, y, tol=1e-10) for y in Y), key=lambda end: end.fun)
    np.testing.assert_allclose(placed.positions[0], best.x, atol=1e-5)
