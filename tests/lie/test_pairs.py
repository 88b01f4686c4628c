"""The objective: invariances, gradients, and the exact minimizers of the alternation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from manifoldry.lie.amounts import AmountSearch
from manifoldry.lie.fitting import (
    Preconditioner,
    alternate,
    best_amounts,
    best_generators,
    midpoints,
)
from manifoldry.lie.pairs import Pairs, normalized


@pytest.fixture(params=[1, 2, 3])
def problem(request):
    q, rng = request.param, np.random.default_rng(request.param)
    pairs = Pairs(rng.normal(size=(15, 4)), rng.normal(size=(15, 4)), 0.3)
    return pairs, 0.5 * rng.normal(size=(q, 4, 4)), rng.normal(size=(15, q))


def test_gradient_against_central_differences(problem):
    pairs, G, amounts = problem
    _, by_G, by_amounts = pairs.gradient(G, amounts)
    rng, step = np.random.default_rng(0), 1e-5
    for _ in range(5):
        dG, da = rng.normal(size=G.shape), rng.normal(size=amounts.shape)
        ahead = pairs.value(G + step * dG, amounts + step * da)
        behind = pairs.value(G - step * dG, amounts - step * da)
        gradient = (by_G * dG).sum() + (by_amounts * da).sum()
        assert gradient == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


def test_preconditioned_gradient(problem):
    pairs, G, amounts = problem
    preconditioner = Preconditioner.of(pairs, G, amounts)
    start = preconditioner.pack(G, amounts)

    def value(packed):
        return pairs.gradient(*preconditioner.unpack(packed))[0]

    def gradient(packed):
        return preconditioner.gradient_of(*pairs.gradient(*preconditioner.unpack(packed))[1:])

    size = np.linalg.norm(gradient(start))
    assert check_grad(value, gradient, start, epsilon=1e-7) < 1e-4 * size


def test_value_agrees_with_gradient(problem):
    pairs, G, amounts = problem
    assert pairs.value(G, amounts) == pytest.approx(pairs.gradient(G, amounts)[0], rel=1e-12)


def test_objective_is_invariant_to_scale_and_mixture(problem):
    pairs, G, amounts = problem
    mix = np.random.default_rng(5).normal(size=(len(G), len(G)))
    mixed, unmixed = np.tensordot(mix, G, axes=1), amounts @ np.linalg.inv(mix)
    for objective in (pairs.value, pairs.first_order):
        assert objective(mixed, unmixed) == pytest.approx(objective(G, amounts), rel=1e-9)


def test_normalized_keeps_operators(problem):
    _, G, amounts = problem
    H, a = normalized(G, amounts)
    operators = [np.tensordot(*each, axes=1) for each in ((amounts, G), (a, H))]
    np.testing.assert_allclose(*operators, atol=1e-12)
    flat = H.reshape(len(H), -1)
    np.testing.assert_allclose(flat @ flat.T, np.eye(len(H)), atol=1e-12)
    products = a.T @ a
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    assert (np.diff(np.diag(products)) <= 0).all()
    assert (a[np.abs(a).argmax(axis=0), np.arange(len(H))] > 0).all()


def test_each_step_is_the_exact_minimizer(problem):
    pairs, G, amounts = problem
    rng = np.random.default_rng(3)
    best_a, best_G = best_amounts(pairs, G), best_generators(pairs, amounts)
    for _ in range(20):
        nudge = 1e-3 * rng.normal(size=amounts.shape)
        assert pairs.first_order(G, best_a) <= pairs.first_order(G, best_a + nudge)
        nudge = 1e-3 * rng.normal(size=G.shape)
        assert pairs.first_order(best_G, amounts) <= pairs.first_order(best_G + nudge, amounts)


def test_generators_are_ridge_regression():
    rng = np.random.default_rng(0)
    pairs = Pairs(rng.normal(size=(30, 3)), rng.normal(size=(30, 3)), 0.2)
    a = rng.normal(size=30)
    change = pairs.Y - pairs.X
    left = (a[:, None] * change).T @ pairs.X
    right = (a[:, None] ** 2 * pairs.X).T @ pairs.X + 0.2 * (a @ a) * np.eye(3)
    np.testing.assert_allclose(best_generators(pairs, a[:, None])[0], left @ np.linalg.inv(right))


@pytest.mark.parametrize("q", [1, 2, 4])
def test_alternation_never_increases_the_objective(q):
    rng = np.random.default_rng(q)
    pairs = Pairs(rng.normal(size=(60, 5)), rng.normal(size=(60, 5)), 1e-3)
    found = alternate(pairs, q, 100, 1e-9, rng)
    assert len(found.trace) > 5
    assert (np.diff(found.trace) <= 1e-13).all()
    assert found.trace[-1] == pytest.approx(pairs.first_order(found.G, found.amounts), rel=1e-12)


def test_penalty_equals_effect_of_noise():
    rng = np.random.default_rng(0)
    pairs = Pairs(rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), 0.5)
    G, amounts = rng.normal(size=(1, 3, 3)), rng.normal(size=(40, 1))
    plain = replace(pairs, penalty=0.0)
    noisy = []
    for _ in range(4000):
        shift = np.sqrt(0.5) * rng.normal(size=pairs.X.shape)
        change = amounts * ((pairs.X + shift) @ G[0].T)
        noisy.append(((pairs.Y - pairs.X - change) ** 2).sum() / plain.total_change)
    assert np.mean(noisy) == pytest.approx(pairs.first_order(G, amounts), rel=0.01)


def test_midpoints_of_a_rotation_do_not_contract():
    # y − x is orthogonal to x + y for any rotation; it is not orthogonal to x.
    rotation = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]])
    X = np.random.default_rng(0).normal(size=(10, 2))
    middle = midpoints(Pairs(X, X @ rotation.T, 0.0))
    np.testing.assert_allclose(((middle.Y - middle.X) * middle.X).sum(axis=1), 0, atol=1e-12)


def test_amounts_of_pairs_with_several_minima():
    # Frequency 3 has a minimum at each third of a rotation; frequency 1 selects the right one.
    G = np.zeros((1, 4, 4))
    G[0, :2, :2], G[0, 2:, 2:] = [[0, -1], [1, 0]], [[0, -3], [3, 0]]
    X = np.tile([1.0, 0.0, 2.0, 0.0], (9, 1))
    true = np.linspace(-2.5, 2.5, 9)
    one, three = true, 3 * true
    Y = np.column_stack([np.cos(one), np.sin(one), 2 * np.cos(three), 2 * np.sin(three)])
    search = AmountSearch(G)
    found = search.find(X, Y, np.array([np.pi]))
    np.testing.assert_allclose(found[:, 0], true, atol=1e-9)
    from_zero = search.gauss_newton(X, Y, np.zeros((9, 1)))[:, 0]
    assert np.abs(from_zero - true).max() > 1  # hence the search along rays


def test_smallest_amount_of_equal_minima():
    G = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    found = AmountSearch(G).find(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.array([20.0]))
    assert found[0, 0] == pytest.approx(np.pi / 2)


def test_improving_never_makes_a_pair_worse():
    rng = np.random.default_rng(0)
    G, X, Y = rng.normal(size=(2, 5, 5)), rng.normal(size=(50, 5)), rng.normal(size=(50, 5))
    search, amounts = AmountSearch(G, 0.1), rng.normal(size=(50, 2))
    better = search.improve(X, Y, np.array([1.0, 1.0]), amounts)
    assert (search.values(X, Y, better) <= search.values(X, Y, amounts) + 1e-12).all()
