"""t-SNE against other implementations."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold._t_sne import _kl_divergence

from manifoldry.objectives import tsne

N = 60
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 6))
MAP = 3 * RNG.normal(size=(N, 2))
K = np.exp(-squareform(pdist(X, "sqeuclidean")) / 5) - np.eye(N)
JOINT = K / K.sum()


@pytest.mark.parametrize("dof", [1, 2])
def test_agrees_with_scikit_learn(dof):
    kl, gradient = _kl_divergence(MAP.ravel(), squareform(JOINT, checks=False), dof, N, 2)
    value, G = tsne(JOINT, dof=dof).value_and_gradient(MAP)
    assert value == pytest.approx(kl, rel=1e-12)
    if dof == 1:  # for others its gradient is not the derivative of its value
        np.testing.assert_allclose(G.ravel(), gradient, atol=1e-12 * abs(gradient).max())


@pytest.mark.parametrize("exaggeration", [1.0, 12.0])
def test_agrees_with_opentsne(exaggeration):
    """Its gradient leaves out a factor 4; its Barnes-Hut with angle 0 is exact.

    With other degrees of freedom than one its kernel is another one, (1 + d²/α)^{−α}.
    """
    peer = pytest.importorskip("openTSNE.tsne", reason="openTSNE is no dependency of the tests")
    objective = tsne(JOINT, exaggeration=exaggeration)
    P = sparse.csr_matrix(JOINT) * exaggeration
    kl, gradient = peer.kl_divergence_bh(MAP.copy(), P, 1, {"theta": 0.0}, should_eval_error=True)
    G = objective.value_and_gradient(MAP)[1]
    np.testing.assert_allclose(G, 4 * gradient, atol=1e-6 * abs(G).max())
    if exaggeration == 1:
        assert objective.value(MAP) == pytest.approx(kl, rel=1e-6)


def test_curvature_of_attraction_and_repulsion():
    """4·Σ p·u and, of log Z, 4·Σ 2·c·κ·u²·Δ²/Z, with u = 1/(1 + d²/α), and c = 2 for α = 1."""
    d2 = squareform(pdist(MAP, "sqeuclidean"))
    u = 1 / (1 + d2)
    kernel = u - np.eye(N)
    steps = (MAP[:, None] - MAP) ** 2
    expected = 4 * (JOINT * u).sum(axis=1)[:, None]
    expected = expected + 16 * np.einsum("nm,nmi->ni", kernel * u**2, steps) / kernel.sum()
    np.testing.assert_allclose(tsne(JOINT).diagonal_curvature(MAP), expected, rtol=1e-12)


def test_another_exaggeration_shares_what_does_not_depend_on_it():
    P = np.random.default_rng(0).random((12, 12))
    P = np.triu(P, 1) + np.triu(P, 1).T
    objective = tsne(P / P.sum(), dof=2.0)
    Y = np.random.default_rng(1).normal(size=(12, 2))
    objective.value(Y)
    assert objective.attraction.sum() > 0  # cached, and not to be reused
    other, expected = objective.with_exaggeration(3.0), tsne(P / P.sum(), 2.0, exaggeration=3.0)
    assert other.affinity is objective.affinity
    assert other.value(Y) == expected.value(Y)
    np.testing.assert_array_equal(other.attraction.toarray(), expected.attraction.toarray())
    with pytest.raises(ValueError, match="exaggeration=0"):
        objective.with_exaggeration(0.0)
