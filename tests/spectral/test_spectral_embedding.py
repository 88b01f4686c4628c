"""SpectralEmbedding: the signature and the results of scikit-learn."""

import inspect

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn import manifold
from sklearn.datasets import load_digits, make_s_curve
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from manifoldry import NeighborGraph, SpectralEmbedding

S_CURVE = make_s_curve(200, random_state=0)[0]


def assert_same(model, peer, tolerance=1e-6):
    assert subspace_angles(model.embedding_, peer.embedding_).max() < tolerance
    # The same scale too, not only the same subspace.
    assert np.allclose(
        np.linalg.norm(model.embedding_, axis=0), np.linalg.norm(peer.embedding_, axis=0), rtol=1e-5
    )


def test_signature_is_scikit_learns():
    ours, theirs = (
        inspect.signature(cls.__init__).parameters
        for cls in (SpectralEmbedding, manifold.SpectralEmbedding)
    )
    assert list(ours) == list(theirs)
    assert [p.default for p in ours.values()] == [p.default for p in theirs.values()]


@pytest.mark.parametrize("n_neighbors", [None, 8, 15])
def test_nearest_neighbors(n_neighbors):
    peer, model = (
        cls(3, n_neighbors=n_neighbors, random_state=0).fit(S_CURVE)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)
    without_diagonal = peer.affinity_matrix_.toarray() * (1 - np.eye(200))
    assert np.allclose(model.affinity_matrix_.toarray(), without_diagonal)


@pytest.mark.parametrize("gamma", [None, 2.0])
def test_rbf(gamma):
    peer, model = (
        cls(3, affinity="rbf", gamma=gamma, random_state=0).fit(S_CURVE)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)


def test_precomputed():
    K = rbf_kernel(S_CURVE, gamma=1.0)
    peer, model = (
        cls(3, affinity="precomputed", random_state=0).fit(K)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)


def test_precomputed_nearest_neighbors():
    G = kneighbors_graph(S_CURVE, 20, mode="distance", include_self=True)
    G.setdiag(0.0)
    peer, model = (
        cls(3, affinity="precomputed_nearest_neighbors", n_neighbors=10, random_state=0).fit(G)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)


def test_digits():
    X = load_digits().data[:300]
    peer, model = (
        cls(2, n_neighbors=20, random_state=0).fit(X)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)
    assert np.array_equal(model.transform(X), model.embedding_)


@pytest.mark.parametrize("solver", [None, "arpack", "lobpcg", "amg"])
def test_scikit_learns_solver_names(solver):
    model = SpectralEmbedding(2, n_neighbors=10, eigen_solver=solver).fit(S_CURVE)
    reference = SpectralEmbedding(2, n_neighbors=10, eigen_solver="dense").fit(S_CURVE)
    assert subspace_angles(model.embedding_, reference.embedding_).max() < 1e-6


def test_a_given_graph_does_not_count_the_point_itself():
    graph = NeighborGraph.build(S_CURVE, n_neighbors=14)
    for n_neighbors, others in ((None, 15), (15, 15), (9, 9)):
        on_graph = SpectralEmbedding(n_neighbors=n_neighbors).fit(graph)
        on_data = SpectralEmbedding(n_neighbors=others).fit(S_CURVE)
        assert np.array_equal(on_graph.embedding_, on_data.embedding_)
        new = S_CURVE[:5] + 0.02
        assert np.array_equal(on_graph.transform(new), on_data.transform(new))


def test_unknown_affinity():
    with pytest.raises(ValueError, match="affinity='gaussian' must be one of 'nearest_neighbors'"):
        SpectralEmbedding(affinity="gaussian").fit(S_CURVE)


@pytest.mark.parametrize(("value", "bound"), [(1, "at least 2"), (201, "at most n_samples=200")])
def test_neighbors_out_of_bounds(value, bound):
    with pytest.raises(ValueError, match=f"n_neighbors={value} must be {bound}"):
        SpectralEmbedding(n_neighbors=value).fit(S_CURVE)


@pytest.mark.parametrize("include_self", [False, True])
def test_stored_neighbors_count_as_they_do_in_scikit_learn(include_self):
    X = np.random.default_rng(0).normal(size=(80, 3))
    stored = kneighbors_graph(X, 10, mode="distance", include_self=include_self)
    options = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 6, "random_state": 0}
    ours = SpectralEmbedding(2, **options).fit_transform(stored)
    theirs = manifold.SpectralEmbedding(2, **options).fit_transform(stored)
    assert subspace_angles(ours, theirs).max() < 1e-6
