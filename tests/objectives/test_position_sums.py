"""Sums over fixed points at other positions."""

import re
from dataclasses import replace

import numpy as np
import pytest

from manifoldry.objectives import (
    ComplementKernel,
    Exact,
    Fastest,
    FFTInterpolation,
    GaussianKernel,
    StudentKernel,
)
from manifoldry.objectives.position_sums import ExactPositionSums

KERNELS = (
    GaussianKernel(),
    StudentKernel(),
    StudentKernel(0.5),
    ComplementKernel(StudentKernel(), epsilon=0.5),
)
MESH = FFTInterpolation(new_point_nodes=1.2e7)


def points(d, n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, d)) * 3, rng.normal(size=(n, d)) + 9])


def positions(Y, n=60, seed=1):
    """Positions among the points, between their clusters, outside and far outside."""
    rng = np.random.default_rng(seed)
    near = Y[rng.integers(len(Y), size=n)] + rng.normal(size=(n, Y.shape[1]))
    return np.concatenate([near, 2 * near[: n // 4], 60 + near[: n // 4]])


# Each case is compiled, so there are few of them.
@pytest.mark.parametrize(
    ("d", "kernel", "weighted"),
    [
        (1, GaussianKernel(), False),
        (2, GaussianKernel(), True),
        (3, GaussianKernel(), False),
        (2, StudentKernel(), False),
        (3, StudentKernel(0.5), True),
    ],
)
def test_compiled_sums_equal_those_of_numpy(d, kernel, weighted):
    Y = points(d)
    Z = positions(Y)
    rng = np.random.default_rng(2)
    weights = rng.uniform(size=(7, len(Y))) if weighted else None
    rows = rng.integers(7, size=len(Z))
    expected = ExactPositionSums(kernel, Y, compile_pairs=np.inf).at(Z, weights, rows)
    found = ExactPositionSums(kernel, Y, compile_pairs=0).at(Z, weights, rows)
    np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-12, atol=1e-12)
    size = 1 + np.abs(expected.hessian).max(axis=(1, 2))
    for part, exact in zip(found[1:], expected[1:], strict=True):
        error = np.abs(part - exact).reshape(len(Z), -1).max(axis=1)
        assert (error <= 1e-11 * size).all()


def test_sums_leave_out_nothing_of_a_map_with_many_strips():
    Y = np.random.default_rng(0).normal(size=(500, 2)) * [3e5, 2]
    Z = Y[:50] + 0.5
    expected = ExactPositionSums(GaussianKernel(), Y, compile_pairs=np.inf).at(Z)
    found = ExactPositionSums(GaussianKernel(), Y, compile_pairs=0).at(Z)
    np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("d", "kernel"),
    [*((d, kernel) for d in (1, 2) for kernel in KERNELS), (3, StudentKernel())],
)
def test_interpolated_sums_are_as_accurate_as_stated(d, kernel):
    Y = points(d) / (6 if d == 3 else 1)  # a mesh of three dimensions has many nodes
    Z = positions(Y)
    exact, sums = Exact().at_positions(kernel, Y).at(Z), MESH.at_positions(kernel, Y)
    found, reliable = sums.at(Z), sums.interpolated.at(Z).reliable
    assert reliable[:60].mean() > 0.8
    assert not reliable[-15:].any()
    loose = 10 if d == 3 else 1
    inside = np.flatnonzero(reliable)
    np.testing.assert_allclose(found.log_sum[inside], exact.log_sum[inside], atol=1e-4 * loose)
    np.testing.assert_allclose(found.gradient[inside], exact.gradient[inside], atol=2e-3 * loose)
    for part, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(part[~reliable], other[~reliable], rtol=1e-11, atol=1e-11)


COARSEST = [(GaussianKernel(), 0.1238), (StudentKernel(), 0.25)]


@pytest.mark.parametrize(("kernel", "spacing"), COARSEST)
def test_sums_in_a_wide_map_are_as_accurate_as_stated(kernel, spacing):
    """Most points are far from all others, so that their errors do not average out."""
    rng = np.random.default_rng(0)
    Y = rng.uniform(-1, 1, size=(200, 2)) * [250, 20]
    Z = np.repeat(Y, 20, axis=0)
    Z += rng.normal(size=Z.shape)
    sums = FFTInterpolation(new_point_nodes=2e6).at_positions(kernel, Y)
    exact = Exact().at_positions(kernel, Y).at(Z)
    found, reliable = sums.interpolated.at(Z)
    assert sums.interpolated.spacing == pytest.approx(spacing, rel=1e-3)
    assert reliable.mean() > 0.9
    np.testing.assert_allclose(found.log_sum[reliable], exact.log_sum[reliable], atol=2e-3)
    np.testing.assert_allclose(found.gradient[reliable], exact.gradient[reliable], atol=1e-2)


@pytest.mark.parametrize(("kernel", "spacing"), COARSEST)
def test_maps_of_a_million_points_have_a_mesh_as_fine_as_stated(kernel, spacing):
    corners = np.array([[-275.0, -275.0], [275.0, 275.0]])  # with the margin for new points
    assert FFTInterpolation()._fine_spacing(kernel, corners) <= 1.001 * spacing


@pytest.mark.parametrize("kernel", [GaussianKernel(), StudentKernel()])
def test_outlying_points_do_not_make_all_sums_exact(kernel):
    Y = np.vstack([points(2), [[1e4, 1e4], [-3e4, 0.0]]])
    Z = np.vstack([positions(Y[:-2]), Y[-2:] + 0.4])
    exact, sums = Exact().at_positions(kernel, Y).at(Z), MESH.at_positions(kernel, Y)
    assert re.search(r"on a mesh .*, exact for [2-6] outlying points", sums.reason)
    assert sums.interpolated.at(Z).reliable[:60].mean() > 0.8
    found = sums.at(Z)
    np.testing.assert_allclose(found.log_sum, exact.log_sum, atol=1e-4)
    np.testing.assert_allclose(found.gradient, exact.gradient, atol=2e-3)
    np.testing.assert_allclose(found.hessian, exact.hessian, atol=5e-2)


def test_a_single_outlying_point_is_singular():
    mesh = MESH.at_positions(StudentKernel(), points(2))
    one = replace(mesh, outlying=Exact().at_positions(StudentKernel(), np.array([[1e4, 1e4]])))
    assert one.reason.endswith("exact for 1 outlying point")


def test_a_coarse_mesh_is_not_used():
    Y, kernel = points(2), StudentKernel()
    few = FFTInterpolation(new_point_nodes=1.5e5)
    assert few.n_nodes(kernel, 3 * Y) < 1e5  # the mesh of a fit is small enough
    sums = few.at_positions(kernel, 3 * Y)
    assert isinstance(sums, ExactPositionSums)
    assert sums.reason.endswith("would have more than new_point_nodes=1.5e+05 nodes")


@pytest.mark.parametrize("d", [1, 2, 3])
def test_derivatives_are_those_of_the_interpolated_sum(d):
    Y = points(d) / (6 if d == 3 else 1)
    sums, Z, h = MESH.at_positions(StudentKernel(), Y).interpolated, Y[:40] + 0.3, 1e-5
    _, gradient, hessian = sums.at(Z).sums
    for i in range(d):
        step = h * np.eye(d)[i]
        ahead, behind = (sums.at(Z + s * step).sums for s in (1, -1))
        slope = (ahead.log_sum - behind.log_sum) / (2 * h)
        np.testing.assert_allclose(gradient[:, i], slope, rtol=1e-5, atol=1e-7)
        # ∇²S/S = ∇u + uuᵀ, where u = ∇S/S
        bend = (ahead.gradient - behind.gradient) / (2 * h) + gradient * gradient[:, [i]]
        np.testing.assert_allclose(hessian[:, i], bend, rtol=1e-4, atol=1e-5)


def test_a_position_does_not_depend_on_the_others():
    Y = points(2)
    sums, Z = Fastest(exact_up_to=0).at_positions(GaussianKernel(), Y), positions(Y)
    together = sums.at(Z)
    for i in range(0, len(Z), 7):
        for part, alone in zip(together, sums.at(Z[[i]]), strict=True):
            np.testing.assert_allclose(part[[i]], alone, rtol=1e-11, atol=1e-11)


def test_few_points_many_dimensions_and_large_meshes_have_exact_sums():
    Y = points(2)
    sums = Fastest().at_positions(GaussianKernel(), Y)
    assert isinstance(sums, ExactPositionSums)
    assert sums.reason == "exact: at most exact_up_to=2000 points"
    many = Fastest(exact_up_to=0)
    assert isinstance(many.at_positions(GaussianKernel(), points(4)), ExactPositionSums)
    assert isinstance(many.at_positions(StudentKernel(), 1e6 * Y), ExactPositionSums)
    assert not isinstance(many.at_positions(StudentKernel(), Y), ExactPositionSums)
