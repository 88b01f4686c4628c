"""Objectives of embeddings of fixed covariance."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from manifoldry.objectives import Whitened, elastic, sne

N, D = 30, 3
rng = np.random.default_rng(0)
WEIGHTS = rng.uniform(size=(N, N)) ** 4
WEIGHTS += WEIGHTS.T
np.fill_diagonal(WEIGHTS, 0)
ELASTIC = elastic(WEIGHTS / WEIGHTS.sum(), weight=3.0)
SNE = sne(WEIGHTS / WEIGHTS.sum(axis=1, keepdims=True))
MASS = rng.uniform(0.1, 2, size=N)

objectives = pytest.mark.parametrize("objective", [ELASTIC, SNE], ids=["elastic", "sne"])
masses = pytest.mark.parametrize("mass", [None, MASS], ids=["uniform", "mass"])


@pytest.fixture(name="Z")
def skewed():
    """An embedding far from zero with correlated coordinates of different scales."""
    return np.random.default_rng(1).normal(size=(N, D)) @ np.triu(np.ones((D, D))) * [1, 5, 0.3] + 7


def diagonal(mass):
    B = np.ones(N) if mass is None else mass
    return B / B.sum()


@masses
def test_the_covariance_is_the_requested_one(Z, mass):
    b = diagonal(mass)
    Y = Whitened(ELASTIC, mass, size=2.5).nearest(Z)
    assert np.allclose(b @ Y, 0, atol=1e-12)
    assert np.allclose(Y.T * b @ Y, 2.5**2 * np.eye(D), atol=1e-12)


@masses
def test_no_feasible_embedding_is_nearer(Z, mass):
    """Against the polar factor by the matrix square root, and against rotated embeddings."""
    b, size = diagonal(mass), 0.7
    Y = Whitened(ELASTIC, mass, size).nearest(Z)
    centered = Z - b @ Z
    polar = size * centered @ np.linalg.inv(sqrtm(centered.T * b @ centered).real)
    assert np.allclose(Y, polar, atol=1e-10)
    for seed in range(20):
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(D, D)))[0]
        assert b @ (Y - centered) ** 2 @ np.ones(D) <= b @ (Y @ Q - centered) ** 2 @ np.ones(D)


def test_a_feasible_embedding_is_its_own_nearest(Z):
    whitened = Whitened(ELASTIC, MASS, 3.0)
    Y = whitened.nearest(Z)
    assert np.allclose(whitened.nearest(Y), Y, atol=1e-12)
    assert whitened.value(Y) == pytest.approx(ELASTIC.value(Y), rel=1e-12)


@objectives
@masses
def test_gradient_is_riemannian_on_the_constraint_set(objective, Z, mass):
    b, size = diagonal(mass), 1.5
    whitened = Whitened(objective, mass, size)
    Y = whitened.nearest(Z)
    G = objective.value_and_gradient(Y)[1]
    M = Y.T @ G / size**2
    xi = G / b[:, None] - Y @ (M + M.T) / 2
    assert np.allclose(whitened.value_and_gradient(Y)[1], b[:, None] * xi, atol=1e-12)
    skew = Y.T * b @ xi
    assert np.allclose(skew, -skew.T, atol=1e-12)  # ξ is tangent
    assert np.allclose(b @ xi, 0, atol=1e-12)  # and does not move the mean


@masses
def test_value_depends_on_the_subspace_only(Z, mass):
    whitened = Whitened(ELASTIC, mass)
    mixed = Z @ np.random.default_rng(3).normal(size=(D, D)) - 5
    assert whitened.value(mixed) == pytest.approx(whitened.value(Z), rel=1e-10)
    G = whitened.value_and_gradient(Z)[1]
    assert np.allclose((Z - Z.mean(axis=0)).T @ G, 0, atol=1e-12)


@objectives
@masses
def test_retraction_to_the_nearest_embedding(objective, Z, mass):
    whitened = Whitened(objective, mass, size=1.5)
    Y, G = whitened.retract(Z, whitened.value_and_gradient(Z)[1])
    assert np.array_equal(Y, whitened.nearest(Z))
    assert np.allclose(G, whitened.value_and_gradient(Y)[1], atol=1e-12)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units_of_the_embedding_do_not_matter(Z, unit):
    whitened = Whitened(ELASTIC, MASS)
    assert np.allclose(whitened.nearest(unit * Z), whitened.nearest(Z), atol=1e-10)
    assert np.allclose(Whitened(ELASTIC, unit * MASS).nearest(Z), whitened.nearest(Z), atol=1e-10)


def test_a_rank_deficient_embedding(Z):
    Z[:, 1] = Z[:, 0]
    whitened = Whitened(ELASTIC)
    assert whitened.value_and_gradient(Z)[0] == np.inf
    with pytest.raises(ValueError, match="rank below 3, its number of coordinates"):
        whitened.nearest(Z)
    with pytest.raises(ValueError, match="rank below"):
        whitened.nearest(np.ones((N, D)))


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"mass has shape \(3,\).*n=30"):
        Whitened(ELASTIC, np.ones(3))
    with pytest.raises(ValueError, match="pass positive, finite weights"):
        Whitened(ELASTIC, np.zeros(N))
    with pytest.raises(ValueError, match="size=0"):
        Whitened(ELASTIC, size=0)
