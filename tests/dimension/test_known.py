"""Estimates on data of known dimension, and their invariances."""

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.datasets import load_digits

from manifoldry.dimension import (
    correlation_dimension,
    diffusion_slope,
    gram_rank,
    local_pca,
    maximum_likelihood,
    pca_dimension,
    residual_variance_elbow,
    two_nn,
)

from .conftest import cube, roll, sphere

LOCAL = [two_nn, maximum_likelihood, correlation_dimension, local_pca]


@pytest.mark.parametrize("estimate", LOCAL)
@pytest.mark.parametrize("seed", [0, 1])
def test_cubes(estimate, seed):
    """Within 10 % in two dimensions and 20 % in five, at 2000 points."""
    assert abs(float(estimate(cube(1, seed=seed))) - 1) < 0.08
    assert abs(float(estimate(cube(2, seed=seed))) - 2) < 0.2
    assert abs(float(estimate(cube(5, seed=seed))) - 5) < 1


@pytest.mark.parametrize("estimate", LOCAL)
def test_curved_surfaces(estimate):
    assert abs(float(estimate(sphere(2))) - 2) < 0.15
    assert abs(float(estimate(roll())) - 2) < 0.2


def test_two_nn_by_likelihood():
    assert abs(float(two_nn(cube(2), fit="likelihood")) - 2) < 0.15


def test_average_of_inverses_uses_k_minus_1():
    """With k − 2 the estimate at k = 10 would be 1.78; a sphere has no boundary bias."""
    found = maximum_likelihood(sphere(2, 4000), n_neighbors=(10, 10))
    assert abs(float(found) - 2) < 0.06


def test_single_point_uses_k_minus_2():
    """The mean over points is then unbiased; with k − 1 it would be 2.25."""
    found = maximum_likelihood(sphere(2, 4000), n_neighbors=(10, 10))
    assert abs(np.mean(found.per_point) - 2) < 0.06


def test_local_pca_has_little_bias_in_high_dimensions():
    """Ten and twenty dimensions, from twenty neighbors."""
    assert abs(float(local_pca(cube(10, 1000))) - 10) < 0.5
    normal = np.random.default_rng(0).normal(size=(1000, 20))
    assert abs(float(local_pca(normal)) - 20) < 1.5


def test_diffusion_slope():
    """Its documented bias: downward with a boundary, upward with curvature."""
    assert abs(float(diffusion_slope(cube(1))) - 1) < 0.1
    assert abs(float(diffusion_slope(cube(2))) - 2) < 0.3
    assert abs(float(diffusion_slope(sphere(2))) - 2) < 0.1
    assert 3.5 < float(diffusion_slope(cube(5))) < 5
    turns = 2 * np.pi * cube(2, 400)
    torus = np.hstack([np.cos(turns), np.sin(turns)])
    assert 2.3 < float(diffusion_slope(torus)) < 2.5


def test_elbow_unrolls_what_pca_does_not():
    X = roll(1000)
    methods = (residual_variance_elbow, pca_dimension, gram_rank)
    assert [round(m(X)) for m in methods] == [2, 3, 3]
    assert round(residual_variance_elbow(cube(5, 1000))) == 5
    line = np.outer(np.linspace(0, 1, 200) ** 2, np.ones(3))
    assert [round(m(line)) for m in methods] == [1, 1, 1]


def test_closed_surface_needs_one_more_coordinate():
    assert round(residual_variance_elbow(sphere(2, 1000))) == 3


def test_digits_agree_with_published_values():
    """Around ten: 8 to 11 by neighbors, far fewer than the 64 pixels."""
    X = load_digits().data
    assert 8 < float(two_nn(X)) < 10.5
    assert 6 < float(maximum_likelihood(X)) < 10
    assert 9 < float(local_pca(X)) < 12.5


def test_per_point_separates_a_plane_from_a_cube():
    X = cube(5, 1000)
    X[:500, 2:] = 0
    X[500:] += 10
    for found in (maximum_likelihood(X), local_pca(X)):
        plane, rest = np.median(found.per_point[:500]), np.median(found.per_point[500:])
        assert abs(plane - 2) < 0.3
        assert abs(rest - 5) < 0.9


def test_small_scales_include_noise():
    X = np.column_stack([cube(2), np.zeros((2000, 8))])
    noisy = X + 0.01 * np.random.default_rng(1).normal(size=X.shape)
    assert float(two_nn(noisy)) > 2 * float(two_nn(X))


# ---------------------------------------------------------------- invariances


def transformed(X):
    rotation = ortho_group.rvs(4, random_state=0)
    return {
        "rotation": X @ rotation,
        "scaling": 2.0**20 * X,
        "small": 1e-9 * X,
        "translation": X + np.array([1.0, -5.0, 3.0, 0.0]),
        "more features": np.column_stack([X, np.zeros((len(X), 3))]),
        "order": X[::-1],
    }


def test_invariance(method, sheet):
    plain = method(sheet)
    for name, X in transformed(sheet).items():
        found = method(X)
        assert abs(float(found) - float(plain)) < 1e-5, name
        if found.per_point is not None:
            expected = plain.per_point[::-1] if name == "order" else plain.per_point
            np.testing.assert_allclose(found.per_point, expected, rtol=1e-5)


def test_extreme_scales(method, sheet):
    plain = method(sheet)
    for factor in (1e-150, 1e150):
        assert abs(float(method(sheet * factor)) - float(plain)) < 1e-6
    far = (sheet + 1e8) - 1e8  # the digits that remain after the shift
    assert abs(float(method(sheet + 1e8)) - float(method(far))) < 1e-4


def test_same_seed_gives_same_estimates(sheet):
    X = np.repeat(sheet, 5, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(1500, 4))
    for method in (two_nn, correlation_dimension, diffusion_slope, residual_variance_elbow):
        one, same, other = (method(X, random_state=seed).value for seed in (1, 1, 2))
        assert (one, one.low, one.high) == (same, same.low, same.high)
        assert method is residual_variance_elbow or (one, one.low) != (other, other.low)


def test_two_nn_of_few_points_with_ties():
    """Some bootstrap samples have ties only, so that the interval is unbounded."""
    X = np.array([[0.0], [1.0], [2.0], [9.0], [11.0], [14.0]])
    with np.errstate(all="raise"):
        found = two_nn(X)
    assert 0 < found.value < np.inf
    assert (found.value.low, found.value.high) == (0, np.inf)


def test_two_nn_of_kept_ties_only_is_refused():
    X = np.concatenate([np.arange(10.0), 100 + 1.5 ** np.arange(12)])[:, None]
    with pytest.raises(ValueError, match=r"discard=0.8 keeps 4 of 22 ratios, all of two equally"):
        two_nn(X, discard=0.8)
