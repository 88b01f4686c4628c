"""The inverse of the elastic embedding."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from manifoldry.exceptions import ExtensionWarning
from manifoldry.extension import elastic_inverse as module
from manifoldry.extension import pair_energy
from manifoldry.extension.elastic_inverse import ElasticInverse, WidthFactors
from manifoldry.extension.pair_energy import PairEnergy, minimize_energies

STRENGTH = 100.0


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def arc(rng, n=80):
    """An arc in five features, its map a stretched line, and affinities of about its spacing."""
    t = np.sort(rng.uniform(0, 3, n))
    X = np.column_stack([np.cos(t), np.sin(t), 0.1 * rng.normal(size=(n, 3))])
    Z = np.column_stack([6 * t, 0.3 * rng.normal(size=n)])
    return X, Z, rng.uniform(20, 40, n) ** -0.5, rng.uniform(-8, -6, n)


def energy(inverse, x, y):
    """Energy of docs/mathematics.md, Elastic embedding; Σ ‖yₘ − yₙ‖² is scaled to one."""
    X = inverse.X
    a, b = ((x - inverse.Z) ** 2).sum(axis=1), ((y - X) ** 2).sum(axis=1)
    attraction = np.exp(inverse.log_scale - b / inverse.widths**2)
    W = cdist(X, X, "sqeuclidean").sum()
    return (attraction * a + inverse.strength / W * b * np.exp(-a)).sum()


def zeta_gradient(inverse, x, y):
    """2·Σ ζₙ(y − yₙ): docs/mathematics.md, Elastic embedding."""
    X = inverse.X
    a, b = ((x - inverse.Z) ** 2).sum(axis=1), ((y - X) ** 2).sum(axis=1)
    attraction = np.exp(inverse.log_scale - b / inverse.widths**2)
    W = cdist(X, X, "sqeuclidean").sum()
    zeta = inverse.strength / W * np.exp(-a) - attraction / inverse.widths**2 * a
    return 2 * (zeta[:, None] * (y - X)).sum(axis=0)


def test_the_gradient_is_that_of_the_energy(rng):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    Z, Y, h = inverse.Z[:9] + 0.3, inverse.X[rng.permutation(80)[:9]] + 0.05, 1e-6
    posed, _ = inverse._pose(Z, WidthFactors(1.0, 1.0))
    frame, rows = inverse.frame, np.arange(9)
    value, gradient = posed.at((Y - frame.origin) / frame.unit, rows)
    pull = [
        STRENGTH
        * np.exp(-cdist(z[None], inverse.Z, "sqeuclidean")).sum()
        / cdist(inverse.X, inverse.X, "sqeuclidean").sum()
        for z in Z
    ]
    for i in range(9):
        e = np.eye(5) * h
        differences = [
            (energy(inverse, Z[i], Y[i] + s) - energy(inverse, Z[i], Y[i] - s)) / (2 * h) for s in e
        ]
        expected = zeta_gradient(inverse, Z[i], Y[i])
        np.testing.assert_allclose(differences, expected, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(gradient[i] * frame.unit * pull[i], expected, rtol=1e-8)
    # The energy itself up to the constant that completes the square.
    whole = [energy(inverse, Z[i], Y[i]) / pull[i] for i in range(9)]
    closer = inverse.X[rng.permutation(80)[:9]]
    other, _ = posed.at((closer - frame.origin) / frame.unit, rows)
    change = [energy(inverse, Z[i], closer[i]) / pull[i] - whole[i] for i in range(9)]
    np.testing.assert_allclose((other - value) * frame.unit**2, change, rtol=1e-8)


def test_the_hessian_is_the_derivative_of_the_gradient(rng):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    Z, rows, h = inverse.Z[:9] + 0.3, np.arange(9), 1e-6
    posed, _ = inverse._pose(Z, WidthFactors(1.0, 0.5))
    Y, V = inverse.points[:9] + 0.05, rng.normal(size=(9, 5))
    change = posed.at(Y + h * V, rows)[1] - posed.at(Y - h * V, rows)[1]
    found = posed.hessian(Y, rows)(V, rows)
    np.testing.assert_allclose(found, change / (2 * h), rtol=1e-5, atol=1e-7)
    some = posed.hessian(Y, rows)(V[[2, 5]], np.array([2, 5]))
    np.testing.assert_allclose(some, found[[2, 5]], rtol=1e-12)


@pytest.mark.parametrize("narrow", [0.25, 0.35, 0.5, 1.0])
def test_ill_conditioned_energies_converge(rng, narrow):
    """Condition numbers of 1e5, at which gradient descent stops at gradients of 1e-5."""
    X, Z, _, log_scale = arc(rng)
    inverse = ElasticInverse(X, Z, np.full(80, narrow), log_scale + 4, 10.0, 0.35)
    positions = Z[::4] + 0.1
    posed, _ = inverse._pose(positions, WidthFactors(0.35, 1.0))
    Y = (inverse.predict(positions) - inverse.frame.origin) / inverse.frame.unit
    _, gradient = posed.at(Y, np.arange(len(Y)))
    assert np.abs(gradient).max() < 1e-9


def test_unfinished_searches_are_reported(rng, monkeypatch):
    few = partial(module.minimize_energies, max_iter=1)
    monkeypatch.setattr(module, "minimize_energies", few)
    with pytest.warns(ExtensionWarning, match="of 5 positions did not converge"):
        ElasticInverse(*arc(rng), STRENGTH).predict(rng.normal(size=(5, 2)))


def minimized(rng, kind, **stopping):
    """Convergence of searches from the means of an arc, for energies of a class `kind`."""
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    posed, _ = inverse._pose(inverse.Z[:9] + 0.3, WidthFactors(1.0, 1.0))
    return minimize_energies(kind(**vars(posed)), posed.mean, np.arange(9), **stopping)[2]


def test_failed_line_searches_have_not_converged(rng):
    class Uphill(PairEnergy):
        """No step along the gradient that it states decreases it."""

        def at(self, Y, rows):
            value, gradient = super().at(Y, rows)
            return value, -gradient

    assert minimized(rng, PairEnergy).all()
    assert not minimized(rng, Uphill).any()


def test_slow_searches_have_not_converged(rng, monkeypatch):
    """Steps that lower the energy by less than 1e-9, far from where its gradient is zero."""
    monkeypatch.setattr(
        pair_energy, "newton_steps", lambda energy, Y, rows, gradient: -1e-9 * gradient
    )
    assert not minimized(rng, PairEnergy, tolerance=0.0, max_iter=3).any()


def test_predictions_minimize_the_energy(rng):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    Z = inverse.Z[::5] + 0.2 * rng.normal(size=(16, 2))
    Y = inverse.predict(Z)
    for x, y in zip(Z, Y, strict=True):
        assert np.abs(zeta_gradient(inverse, x, y)).max() < 1e-8
        nearest = np.argsort(((x - inverse.Z) ** 2).sum(axis=1))[:3]
        found = [
            minimize(
                lambda v: energy(inverse, x, v),  # noqa: B023 (called at once)
                inverse.X[n],
                jac=lambda v: zeta_gradient(inverse, x, v),  # noqa: B023 (called at once)
                tol=1e-12,
            ).fun
            for n in nearest
        ]
        assert energy(inverse, x, y) <= min(found) + 1e-10


def test_without_attraction_it_is_the_kernel_weighted_mean(rng):
    X, Z, widths, _ = arc(rng)
    inverse = ElasticInverse(X, Z, widths, np.full(80, -np.inf), STRENGTH)
    new = Z[:20] + 0.1
    K = np.exp(-cdist(new, Z, "sqeuclidean"))
    np.testing.assert_allclose(
        inverse.predict(new), (K @ X) / K.sum(axis=1, keepdims=True), rtol=1e-9
    )


def test_data_are_recovered_roughly(rng):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    t = np.linspace(0.3, 2.7, 20)
    Y = inverse.predict(np.column_stack([6 * t, np.zeros(20)]))
    truth = np.column_stack([np.cos(t), np.sin(t), np.zeros((20, 3))])
    assert np.linalg.norm(Y - truth, axis=1).mean() < 0.15


def test_a_row_does_not_depend_on_its_batch(rng, monkeypatch):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    Z = inverse.Z[:30] + 0.1
    whole = inverse.predict(Z)
    alone = np.vstack([inverse.predict(Z[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(alone, whole, atol=1e-7)
    monkeypatch.setattr(module, "row_blocks", lambda n, width: [slice(0, 13), slice(13, 30)])
    np.testing.assert_allclose(inverse.predict(Z), whole, atol=1e-7)


@pytest.mark.parametrize("distance", [20.0, 1e3, 1e9])
def test_far_from_the_embedding_predictions_stay_near_the_data(rng, distance):
    inverse = ElasticInverse(*arc(rng), STRENGTH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Y = inverse.predict(distance * rng.normal(size=(12, 2)))
    assert np.isfinite(Y).all()
    assert np.abs(Y).max() < 10


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_units_of_the_data_do_not_matter(rng, scale):
    X, Z, widths, log_scale = arc(rng)
    here = ElasticInverse(X, Z, widths, log_scale, STRENGTH).predict(Z[:10] + 0.1)
    there = ElasticInverse(X * scale, Z, widths * scale, log_scale, STRENGTH)
    np.testing.assert_allclose(there.predict(Z[:10] + 0.1) / scale, here, atol=1e-6)


def test_an_offset_of_the_data_does_not_matter(rng):
    X, Z, widths, log_scale = arc(rng)
    here = ElasticInverse(X, Z, widths, log_scale, STRENGTH).predict(Z[:10] + 0.1)
    there = ElasticInverse(X + 1e6, Z, widths, log_scale, STRENGTH).predict(Z[:10] + 0.1)
    np.testing.assert_allclose(there - 1e6, here, atol=1e-6)


def test_degenerate_data_and_maps(rng):
    X, Z, widths, log_scale = arc(rng)
    constant = ElasticInverse(np.full_like(X, 3.0), Z, widths, log_scale, STRENGTH)
    np.testing.assert_allclose(constant.predict(Z[:5]), 3.0)
    collapsed = ElasticInverse(X, np.zeros_like(Z), widths, log_scale, STRENGTH)
    np.testing.assert_allclose(collapsed.predict(np.zeros((2, 2))), [X.mean(axis=0)] * 2)
    steep = ElasticInverse(X, Z, widths, np.full(80, 900.0), STRENGTH)
    assert np.isfinite(steep.predict(Z)).all()
    for width in (0.0, np.inf):  # neither repels
        even = ElasticInverse(X, Z, np.full(80, width), log_scale, STRENGTH)
        K = np.exp(-cdist(Z, Z, "sqeuclidean"))
        np.testing.assert_allclose(even.predict(Z), K @ X / K.sum(axis=1)[:, None], atol=1e-9)
        assert even.with_chosen_widths().repulsion_width == 0.0
    two = ElasticInverse(X[:2], Z[:2], widths[:2], log_scale[:2], STRENGTH)
    assert np.isfinite(two.predict(Z)).all()


def test_single_precision_and_pickles(rng):
    X, Z, widths, log_scale = arc(rng)
    parts = (part.astype(np.float32) for part in (X, Z, widths, log_scale))
    single = ElasticInverse(*parts, STRENGTH)
    double = ElasticInverse(X, Z, widths, log_scale, STRENGTH)
    np.testing.assert_allclose(single.predict(Z[:9]), double.predict(Z[:9]), atol=1e-4)
    again = pickle.loads(pickle.dumps(double))
    np.testing.assert_array_equal(again.predict(Z[:9]), double.predict(Z[:9]))
    assert single.predict(Z[:0]).shape == (0, 5)
