"""exp(Σ αG)x and its derivatives against scipy's matrix exponential."""

import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

from manifoldry.lie.flow import EigenFlow, SeriesFlow, flow_of


def case(flow, q, seed=0, r=7, n=6, size=2.0):
    rng = np.random.default_rng(seed)
    G, X, W = rng.normal(size=(q, r, r)), rng.normal(size=(n, r)), rng.normal(size=(n, r))
    return flow(G), X, size * rng.normal(size=(n, q)), W


FLOWS = [(EigenFlow, 1), (SeriesFlow, 1), (SeriesFlow, 2), (SeriesFlow, 3)]


@pytest.fixture(params=FLOWS, ids=[f"{flow.__name__}-{q}" for flow, q in FLOWS])
def parts(request):
    flow, X, amounts, weights = case(*request.param)
    operators = np.tensordot(amounts, flow.G, axes=1)
    return flow, X, amounts, weights, operators


def close(found, expected):
    return np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


def test_move_is_the_exponential(parts):
    flow, X, amounts, _, operators = parts
    expected = np.array([expm(A) @ x for A, x in zip(operators, X, strict=True)])
    assert close(flow.move(X, amounts), expected)


def test_tangents_are_frechet_derivatives(parts):
    flow, X, amounts, _, operators = parts
    Z, derivatives = flow.tangents(X, amounts)
    assert close(Z, flow.move(X, amounts))
    for G, found in zip(flow.G, derivatives, strict=True):
        expected = [
            expm_frechet(A, G, compute_expm=False) @ x for A, x in zip(operators, X, strict=True)
        ]
        assert close(found, np.array(expected))


def test_pullback_is_the_adjoint_frechet_derivative(parts):
    flow, X, amounts, weights, operators = parts
    expected = np.zeros_like(flow.G)
    for A, x, a, w in zip(operators, X, amounts, weights, strict=True):
        by_operator = expm_frechet(A.T, np.outer(w, x), compute_expm=False)
        expected += a[:, None, None] * by_operator
    assert close(flow.pullback(X, amounts, weights), expected)


def test_repeated_eigenvalues_need_the_limit_of_the_quotient():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    G = (Q @ np.diag([1.0, 1.0, 1.0 + 1e-9, -0.5, -0.5, 0.0]) @ Q.T)[None]
    X, W, amounts = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.normal(size=(4, 1))
    found, series = EigenFlow(G).pullback(X, amounts, W), SeriesFlow(G).pullback(X, amounts, W)
    assert np.abs(found - series).max() < 1e-9 * np.abs(series).max()


def test_shears_without_eigenbasis_use_the_series():
    shear = np.array([[[0.0, 1.0], [0.0, 0.0]]])
    flow = flow_of(shear)
    assert isinstance(flow, SeriesFlow)
    found = flow.move(np.array([[0.0, 1.0]]), np.array([[30.0]]))
    np.testing.assert_allclose(found, [[30.0, 1.0]], rtol=1e-13)


def test_rotations_use_eigenvectors():
    flow = flow_of(np.array([[[0.0, -1.0], [1.0, 0.0]]]))
    assert isinstance(flow, EigenFlow)
    found = flow.move(np.eye(2), np.array([[np.pi / 2], [100 * np.pi]]))
    np.testing.assert_allclose(found, [[0.0, 1.0], [0.0, 1.0]], atol=1e-13)


def test_same_amounts_for_all_rows(parts):
    flow, X, amounts, *_ = parts
    amounts_repeated = np.broadcast_to(amounts[0], amounts.shape)
    assert close(flow.move_by(X, amounts[0]), flow.move(X, amounts_repeated))


def test_no_rows():
    for flow, q in FLOWS:
        each, X, amounts, W = case(flow, q)
        assert each.move(X[:0], amounts[:0]).shape == (0, 7)
        assert each.tangents(X[:0], amounts[:0])[1].shape == (q, 0, 7)
        assert not each.pullback(X[:0], amounts[:0], W[:0]).any()
