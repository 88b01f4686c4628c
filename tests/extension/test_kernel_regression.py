"""The surface of kernel regression, and projection onto it."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from manifoldry.extension import projection
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import OrthogonalProjection
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.regression_kernels import KERNELS
from manifoldry.objectives.regression_pairs import RegressionPairs

every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))


@pytest.fixture
def rng():
    return np.random.default_rng(23)


def sheet(rng, n=120, noise=0.02):
    """Positions on a map two units apart from end to end per kernel width, and curved data."""
    Z = rng.uniform(-3, 3, size=(n, 2))
    X = np.column_stack([Z[:, 0], Z[:, 1], np.sin(Z[:, 0]), 0.2 * Z[:, 0] * Z[:, 1]])
    return Z, X + noise * rng.normal(size=X.shape)


def derivatives_at(surface, Z):
    ((_, derivatives),) = surface.derivatives(Z)
    return derivatives


# --- the surface -------------------------------------------------------------------------------


def test_predictions_by_the_definition(rng):
    Z, X = sheet(rng)
    new = rng.uniform(-3, 3, size=(7, 2))
    K = np.exp(-cdist(new, Z, "sqeuclidean"))
    expected = K @ X / K.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(KernelRegressionMap(Z, X).predict(new), expected, rtol=1e-12)


@every_kernel
def test_predictions_at_training_positions_are_the_fitted_values(rng, kernel):
    Z, X = sheet(rng)
    expected = UKRObjective(X, kernel=kernel, leave_one_out=False).fitted(Z).values
    found = KernelRegressionMap(Z, X, kernel).predict(Z)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "quartic", "triweight"])
@pytest.mark.parametrize("distance", [40.0, 1e5, 1e200])
def test_far_away_it_is_the_nearest_point(rng, kernel, distance):
    Z, X = sheet(rng)
    direction = np.array([0.6, 0.8])
    nearest = np.argmax(Z @ direction)  # the outermost in this direction
    found = KernelRegressionMap(Z, X, kernel).predict(distance * direction[None])
    if distance == 40:
        nearest = np.argmin(np.linalg.norm(Z - 40 * direction, axis=1))
    np.testing.assert_allclose(found[0], X[nearest], rtol=1e-4)


@every_kernel
def test_jacobian(rng, kernel):
    Z, X = sheet(rng)
    surface = KernelRegressionMap(Z, X, kernel)
    new = np.vstack([rng.uniform(-3, 3, size=(9, 2)), [[4.5, 4.5]]])
    expected = np.stack(
        [(surface.predict(new + e) - surface.predict(new - e)) / 2e-6 for e in 1e-6 * np.eye(2)],
        axis=2,
    )
    found = surface.jacobian(new)
    assert found.shape == (10, 4, 2)
    np.testing.assert_allclose(found, expected, atol=1e-7 * max(1, np.abs(expected).max()))


def test_jacobian_of_the_gaussian_is_a_weighted_covariance(rng):
    Z, X = sheet(rng)
    z = np.array([0.3, -0.8])
    b = np.exp(-((z - Z) ** 2).sum(axis=1))
    b /= b.sum()
    expected = 2 * ((X - b @ X).T * b) @ (Z - b @ Z)
    np.testing.assert_allclose(KernelRegressionMap(Z, X).jacobian(z[None])[0], expected, rtol=1e-10)


@every_kernel
def test_curvature(rng, kernel):
    Z, X = sheet(rng)
    surface = KernelRegressionMap(Z, X, kernel)
    new, r = rng.uniform(-2, 2, size=(5, 2)), rng.normal(size=(5, 4))
    values = surface.predict(new) - surface.mean
    residuals, jacobian, found = derivatives_at(surface, new).expand(values + r)
    np.testing.assert_allclose(residuals, r, rtol=1e-10)
    np.testing.assert_allclose(jacobian.transpose(0, 2, 1), surface.jacobian(new), rtol=1e-12)
    steps = [
        np.einsum("nkl,nk->nl", surface.jacobian(new + e) - surface.jacobian(new - e), r) / 2e-6
        for e in 1e-6 * np.eye(2)
    ]
    expected = np.stack(steps, axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@every_kernel
def test_density_and_its_derivatives(rng, kernel):
    Z, X = sheet(rng)
    surface = KernelRegressionMap(Z, X, kernel)
    new = rng.uniform(-2, 2, size=(5, 2))
    tail = 0.0 if kernel in ("gaussian", "student") else 1e-6 * np.exp(-(cdist(new, Z) ** 2))
    density = (KERNELS[kernel].value(cdist(new, Z, "sqeuclidean")) + tail).sum(axis=1)
    found = derivatives_at(surface, new).density
    np.testing.assert_allclose(found.log, np.log(density), rtol=1e-9)
    for axis, e in enumerate(1e-6 * np.eye(2)):
        ahead, behind = (derivatives_at(surface, new + s * e).density for s in (1, -1))
        slope, bend = (ahead.log - behind.log) / 2e-6, (ahead.gradient - behind.gradient) / 2e-6
        np.testing.assert_allclose(found.gradient[:, axis], slope, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.hessian[:, axis], bend, rtol=1e-4, atol=1e-4)


def test_derivatives_on_a_plateau_keep_their_digits():
    Z, X = np.array([[0.0], [12.0], [20.0]]), np.array([[1.0], [5.0], [9.0]])
    z = np.array([[4.0]])  # f is x₀ to 1e-20
    weights = np.exp(-((z[0] - Z[:, 0]) ** 2) + 16)  # of the others
    expected = 2 * (weights[1] * 12 * 4 + weights[2] * 20 * 8)
    found = KernelRegressionMap(Z, X).jacobian(z)[0, 0, 0]
    assert found == pytest.approx(expected, rel=1e-12)
    assert found < 1e-15


def test_coordinates_and_data_of_different_length():
    with pytest.raises(ValueError, match="Z has 3 rows and X has 2"):
        KernelRegressionMap(np.zeros((3, 1)), np.zeros((2, 4)))


# --- projection --------------------------------------------------------------------------------


@every_kernel
def test_residuals_are_orthogonal_to_the_surface(rng, kernel):
    Z, X = sheet(rng, n=300)
    surface = KernelRegressionMap(Z, X, kernel)
    true = rng.uniform(-2, 2, size=(30, 2))
    new = surface.predict(true) + 0.2 * rng.normal(size=(30, 4))
    found = OrthogonalProjection(surface).project(new)
    R = new - surface.predict(found.positions)
    np.testing.assert_allclose(found.residuals, np.linalg.norm(R, axis=1), rtol=1e-12)
    slopes = np.einsum("nkl,nk->nl", surface.jacobian(found.positions), R)
    low, high = Z.min(axis=0), Z.max(axis=0)
    inside = ((found.positions > low) & (found.positions < high)).all(axis=1)
    smooth = 1e-8 if kernel in ("gaussian", "student") else 1e-5  # their curvature jumps
    assert inside.sum() > 20
    assert np.abs(slopes[inside & found.converged]).max() < smooth
    assert found.converged.mean() > (0.99 if kernel in ("gaussian", "student") else 0.9)


def test_points_of_the_surface_return_to_their_positions(rng):
    Z, X = sheet(rng, n=300, noise=0.0)
    surface = KernelRegressionMap(Z, X)
    true = rng.uniform(-2, 2, size=(40, 2))
    found = OrthogonalProjection(surface).project(surface.predict(true))
    np.testing.assert_allclose(found.positions, true, atol=1e-7)
    assert found.residuals.max() < 1e-7


def test_no_search_from_many_starts_finds_better(rng):
    Z, X = sheet(rng, n=80)
    surface = KernelRegressionMap(Z, X)
    extension = OrthogonalProjection(surface)
    new = X[:6] + 0.5 * rng.normal(size=(6, 4))
    found = extension.project(new)
    low, high = Z.min(axis=0), Z.max(axis=0)
    bounds = list(zip(low - 0.1 * (high - low), high + 0.1 * (high - low), strict=True))
    for x, length in zip(new, found.residuals, strict=True):
        ends = [
            minimize(
                lambda z, x=x: ((x - surface.predict(z[None])[0]) ** 2).sum(), z, bounds=bounds
            ).fun
            for z in Z[::4]
        ]
        assert length <= np.sqrt(min(ends)) * (1 + 1e-6)


def test_a_floor_is_part_of_what_is_minimized(rng):
    Z, X = sheet(rng, n=80)
    surface = KernelRegressionMap(Z, X)
    extension = OrthogonalProjection(surface, floor=8.0, weight=0.1)

    def cost(z, x):
        density = np.exp(-cdist(z[None], Z, "sqeuclidean")).sum()
        return ((x - surface.predict(z[None])[0]) ** 2).sum() + 0.1 * max(
            0.0, np.log(8.0 / density)
        ) ** 2

    new = X[:6] + 0.5 * rng.normal(size=(6, 4))
    for x, z in zip(new, extension.transform(new), strict=True):
        best = min(minimize(cost, start, args=(x,)).fun for start in Z[::4])
        assert cost(z, x) <= best * (1 + 1e-6)


def test_a_floor_keeps_points_from_the_boundary(rng):
    Z, X = sheet(rng, n=80)
    surface = KernelRegressionMap(Z, X)
    new = X + 0.5 * rng.normal(size=X.shape)

    def lowest(projection):
        return derivatives_at(surface, projection.transform(new)).density.log.min()

    floor = OrthogonalProjection(surface, floor=8.0, weight=1.0)
    assert lowest(floor) > lowest(OrthogonalProjection(surface)) + 1


def test_the_weight_of_a_floor_has_the_unit_of_the_data(rng):
    Z, X = sheet(rng, n=80)
    new = X[:5] + 0.5 * rng.normal(size=(5, 4))
    plain = OrthogonalProjection(KernelRegressionMap(Z, X), floor=8.0, weight=0.1)
    other = OrthogonalProjection(KernelRegressionMap(Z, 1024 * X), floor=8.0, weight=0.1 * 2**20)
    np.testing.assert_allclose(other.transform(1024 * new), plain.transform(new), atol=1e-8)


@every_kernel
def test_a_row_does_not_depend_on_its_batch(rng, kernel, monkeypatch):
    Z, X = sheet(rng, n=150)
    extension = OrthogonalProjection(KernelRegressionMap(Z, X, kernel))
    new = X[:40] + 0.3 * rng.normal(size=(40, 4))
    together = extension.transform(new)
    alone = np.vstack([extension.transform(row[None]) for row in new])
    np.testing.assert_allclose(alone, together, atol=1e-7)
    monkeypatch.setattr(projection, "row_blocks", lambda n, *_: [slice(0, 7), slice(7, n)])
    np.testing.assert_allclose(extension.transform(new), together, atol=1e-7)


def test_a_row_does_not_depend_on_its_batch_between_scattered_points(rng):
    Z = np.cumsum(rng.exponential(3.0, size=60))[:, None]  # gaps of many widths: plateaus
    X = np.column_stack([np.cos(Z / 9), np.sin(Z / 9), Z / 40]) + 0.1 * rng.normal(size=(60, 3))
    extension = OrthogonalProjection(KernelRegressionMap(Z, X))
    new = X + 0.2 * rng.normal(size=X.shape)
    together = extension.project(new)
    alone = np.vstack([extension.transform(row[None]) for row in new])
    np.testing.assert_allclose(alone, together.positions, atol=1e-7)
    assert together.converged.all()


def test_positions_stay_near_the_embedding(rng):
    Z, X = sheet(rng)
    far = np.vstack([np.full(4, 50.0), np.full(4, -1e200), np.full(4, 1e-200)])
    found = OrthogonalProjection(KernelRegressionMap(Z, X)).project(far)
    low, high = Z.min(axis=0), Z.max(axis=0)
    assert (found.positions >= low - 0.1001 * (high - low)).all()
    assert (found.positions <= high + 0.1001 * (high - low)).all()
    assert np.isfinite(found.residuals).all()
    assert found.residuals[1] == pytest.approx(2e200, rel=1e-9)
    small = OrthogonalProjection(KernelRegressionMap(Z, 1e-150 * X)).project(far[1:2])
    assert np.isfinite(small.positions).all()
    assert small.residuals[0] == pytest.approx(2e200, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_and_offset_of_data_do_not_matter(rng, scale):
    Z, X = sheet(rng)
    new = X[:10] + 0.2 * rng.normal(size=(10, 4))
    plain = OrthogonalProjection(KernelRegressionMap(Z, X)).project(new)
    scaled = OrthogonalProjection(KernelRegressionMap(Z, scale * X)).project(scale * new)
    np.testing.assert_allclose(scaled.positions, plain.positions, atol=1e-7)
    np.testing.assert_allclose(scaled.residuals, scale * plain.residuals, rtol=1e-7)
    moved = OrthogonalProjection(KernelRegressionMap(Z, X + 1e6)).project(new + 1e6)
    np.testing.assert_allclose(moved.positions, plain.positions, atol=1e-6)


def test_more_features_than_points(rng):
    Z, X = sheet(rng, n=30)
    turn = np.linalg.qr(rng.normal(size=(50, 50)))[0][:4]
    beyond = np.linalg.qr(rng.normal(size=(50, 50)))[0][:1]
    new = X[:8] + 0.2 * rng.normal(size=(8, 4))
    plain = OrthogonalProjection(KernelRegressionMap(Z, X)).project(new)
    wide = OrthogonalProjection(KernelRegressionMap(Z, X @ turn)).project(new @ turn)
    np.testing.assert_allclose(wide.positions, plain.positions, atol=1e-7)
    np.testing.assert_allclose(wide.residuals, plain.residuals, rtol=1e-7)
    across = beyond - (beyond @ turn.T) @ turn
    off = OrthogonalProjection(KernelRegressionMap(Z, X @ turn)).project(new @ turn + 3 * across)
    np.testing.assert_allclose(off.positions, plain.positions, atol=1e-7)
    lengths = np.hypot(plain.residuals, 3 * np.linalg.norm(across))
    np.testing.assert_allclose(off.residuals, lengths, rtol=1e-7)


def test_single_precision_and_pickling(rng):
    Z, X = sheet(rng)
    new = X[:10] + 0.1 * rng.normal(size=(10, 4))
    exact = OrthogonalProjection(KernelRegressionMap(Z, X)).transform(new)
    surface = KernelRegressionMap(Z.astype("f4"), X.astype("f4"))
    single = OrthogonalProjection(surface)
    np.testing.assert_allclose(single.transform(new.astype("f4")), exact, atol=1e-3)
    again = pickle.loads(pickle.dumps(single))
    np.testing.assert_array_equal(again.transform(new), single.transform(new))


def test_few_and_coinciding_points(rng):
    Z, X = np.array([[0.0], [0.0], [1.0]]), np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    found = OrthogonalProjection(KernelRegressionMap(Z, X)).project(np.array([[1.0, 1.0]]))
    assert -0.1 <= found.positions[0, 0] <= 1.1
    same = KernelRegressionMap(np.zeros((3, 2)), X)
    found = OrthogonalProjection(same).project(np.array([[2.0, 3.0]]))
    np.testing.assert_array_equal(found.positions, [[0.0, 0.0]])
    assert found.residuals[0] == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", ["gaussian", "student", "quartic", "triweight"])
def test_the_jacobian_vanishes_far_away(kernel):
    Z = np.linspace(0, 5, 20)[:, None] * [1.0, -1.0]
    surface = KernelRegressionMap(Z, np.cos(Z), kernel)
    far = np.array([[1e9, 0.0], [1e160, -1e160], [0.0, -1e300]])
    np.testing.assert_allclose(surface.jacobian(far), 0, atol=1e-4)


def test_equal_projections_do_not_depend_on_the_batch():
    """A curve that runs over the same data twice has two projections of every point."""
    rng = np.random.default_rng(0)
    Z = np.sort(rng.uniform(-8, 8, 80))[:, None]
    extension = OrthogonalProjection(KernelRegressionMap(Z, np.abs(Z)))
    new = rng.uniform(2, 6, size=(40, 1))
    alone = np.vstack([extension.transform(row[None]) for row in new])
    np.testing.assert_allclose(extension.transform(new), alone, atol=1e-7)


# --- many training points ----------------------------------------------------------------------


def large_map(rng, kernel="gaussian"):
    """A surface with nearby training points only, and the same with all."""
    Z = rng.uniform(0, 25, size=(600, 2))
    X = np.column_stack([Z, np.sin(Z[:, 0]), np.cos(Z[:, 1] / 2)]) + 0.1 * rng.normal(size=(600, 4))
    choices = RegressionPairs(exact_up_to=0), RegressionPairs()
    return tuple(KernelRegressionMap(Z, X, kernel, pairs=pairs) for pairs in choices)


@every_kernel
def test_predictions_and_derivatives_from_nearby_points(rng, kernel):
    near, every = large_map(rng, kernel)
    new = np.vstack([rng.uniform(-3, 28, size=(150, 2)), [[1e4, -30.0], [12.0, 60.0]]])
    np.testing.assert_allclose(near.predict(new), every.predict(new), rtol=1e-10, atol=1e-10)
    expected = every.jacobian(new)
    assert np.abs(near.jacobian(new) - expected).max() <= 1e-9 * np.abs(expected).max()


def test_projection_from_nearby_points(rng):
    surfaces = large_map(rng)
    new = surfaces[0].X[:60] + 0.3 * rng.normal(size=(60, 4))
    near, every = (OrthogonalProjection(s, floor=5.0, weight=0.1) for s in surfaces)
    found = near.transform(new)
    np.testing.assert_allclose(found, every.transform(new), atol=1e-7)
    alone = np.vstack([near.transform(row[None]) for row in new[:10]])
    np.testing.assert_allclose(found[:10], alone, atol=1e-7)
    same = pickle.loads(pickle.dumps(near))
    np.testing.assert_array_equal(same.transform(new), found)
