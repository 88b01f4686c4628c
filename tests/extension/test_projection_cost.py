"""Compiled loops of the projection onto a kernel regression against the formulas in numpy."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize

from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import OrthogonalProjection
from manifoldry.extension.projection_cost import CompiledDistance, ProjectionCost
from manifoldry.objectives.regression_kernels import KERNELS, GaussianRegressionKernel
from manifoldry.objectives.regression_pairs import RegressionPairs

every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
NEARBY = RegressionPairs(exact_up_to=0, max_components=9)


def surface(d, kernel="gaussian", n=250, **options):
    """Training points, some of them twice, some far apart, and some at one position."""
    rng = np.random.default_rng(7)
    Z = np.concatenate([rng.uniform(0, 6, size=(n, d)), 12 * np.arange(1, 4)[:, None] * np.ones(d)])
    X = np.column_stack([Z, np.sin(Z[:, 0]), np.cos(Z.sum(axis=1))])
    X += 0.1 * rng.normal(size=X.shape)
    again = [0, 1, n + 1]
    Z, X = np.concatenate([Z, Z[again], Z[:2]]), np.concatenate([X, X[again], 1 + X[:2]])
    return KernelRegressionMap(Z, X - X.mean(axis=0), kernel, **options)


def new_points(map, n=60):
    """Targets, and positions near training points and, in the last third, between distant ones."""
    rng = np.random.default_rng(8)
    rows = rng.integers(len(map.Z), size=n)
    rows[-n // 3 :] = len(map.Z) - 6 - np.arange(n // 3) % 3
    X = map.X[rows] + 0.3 * rng.normal(size=(n, map.X.shape[1]))
    return X, map.Z[rows] + rng.normal(size=(n, map.Z.shape[1])) * 0.6


@every_kernel
@pytest.mark.parametrize(
    ("d", "options"), [(1, {}), (2, {}), (2, {"pairs": NEARBY}), (3, {"pairs": NEARBY}), (4, {})]
)
def test_compiled_costs_equal_those_of_numpy(d, kernel, options):
    map = surface(d, kernel, **options)
    X, Z = new_points(map)
    plain = ProjectionCost(map, floor=3.0, weight=0.5)
    expected = plain.evaluate(X, Z)
    found = replace(plain, compiled=CompiledDistance.of(map)).evaluate(X, Z)
    for part, exact in zip(found, expected, strict=True):
        size = np.abs(exact).reshape(len(Z), -1).max(axis=1)
        error = np.abs(part - exact).reshape(len(Z), -1).max(axis=1)
        assert (error <= 1e-9 * size + 1e-13).all()


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
def test_compiled_derivatives_on_a_plateau_keep_their_digits(kernel):
    """Between distant points the gradient is tiny, but its direction decides the step."""
    rng = np.random.default_rng(9)
    map = KernelRegressionMap(
        9 * np.arange(12)[:, None] * np.ones(2), rng.normal(size=(12, 3)), kernel
    )
    X, Z = rng.normal(size=(12, 3)), map.Z + rng.normal(size=(12, 2))
    plain = ProjectionCost(map, floor=0.0, weight=0.0)
    expected = plain.evaluate(X, Z).gradient
    found = replace(plain, compiled=CompiledDistance.of(map)).evaluate(X, Z).gradient
    assert 0 < np.abs(expected).min() < np.abs(expected).max() < 1e-10
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@every_kernel
def test_compiled_projections(kernel):
    map = surface(2, kernel)
    X, _ = new_points(map)
    plain = OrthogonalProjection(map, floor=3.0, weight=0.5, compile_pairs=np.inf)
    compiled = replace(plain, compile_pairs=0)
    found = compiled.project(X)
    expected = plain.project(X)
    np.testing.assert_allclose(found.positions, expected.positions, atol=1e-7)
    np.testing.assert_allclose(found.residuals, expected.residuals, rtol=1e-9)
    np.testing.assert_array_equal(found.converged, expected.converged)
    alone = np.concatenate([compiled.transform(x[None]) for x in X[:10]])
    np.testing.assert_array_equal(found.positions[:10], alone)


def test_no_search_from_many_starts_finds_better():
    map = surface(2)
    X, _ = new_points(map, 9)
    found = OrthogonalProjection(map, n_starts=9, compile_pairs=0).project(X)
    low, high = map.Z.min(axis=0), map.Z.max(axis=0)
    bounds = list(zip(low - 0.1 * (high - low), high + 0.1 * (high - low), strict=True))
    for x, length in zip(X, found.residuals, strict=True):
        near = np.argsort(((map.X - x) ** 2).sum(axis=1))[:9]
        ends = [
            minimize(lambda z, x=x: ((x - map.predict(z[None])[0]) ** 2).sum(), z, bounds=bounds)
            for z in map.Z[near]
        ]
        assert length <= np.sqrt(min(end.fun for end in ends)) * (1 + 1e-6)


@dataclass(frozen=True)
class OtherKernel(GaussianRegressionKernel):
    """A kernel from outside the package."""


def test_other_kernels_have_no_compiled_loops():
    map = surface(2, OtherKernel())
    assert CompiledDistance.of(map) is None
    X, _ = new_points(map, 6)
    found = OrthogonalProjection(map, compile_pairs=0).transform(X)
    expected = OrthogonalProjection(replace(map, kernel="gaussian"), compile_pairs=0).transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)
