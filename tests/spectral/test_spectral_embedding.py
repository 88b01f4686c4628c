"""SpectralEmbedding: the signature and the results of scikit-learn."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn import manifold
from sklearn.datasets import load_digits, make_s_curve
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from manifoldry import NeighborGraph, SpectralEmbedding
from manifoldry.exceptions import DisconnectedGraphWarning

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
    assert list(ours) == [*theirs, "device"]
    assert [p.default for p in ours.values()] == [*(p.default for p in theirs.values()), None]


@pytest.mark.parametrize("n_neighbors", [None, 8, 15])
def test_nearest_neighbors(n_neighbors):
    peer, model = (
        cls(3, n_neighbors=n_neighbors, random_state=0).fit(S_CURVE)
        for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert_same(model, peer)
    assert np.allclose(model.affinity_matrix_.toarray(), peer.affinity_matrix_.toarray())


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


def test_the_matrix_of_a_stored_graph():
    stored = kneighbors_graph(S_CURVE, 10, mode="distance")
    options = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 6, "random_state": 0}
    peer, model = (
        cls(2, **options).fit(stored) for cls in (manifold.SpectralEmbedding, SpectralEmbedding)
    )
    assert np.allclose(model.affinity_matrix_.toarray(), peer.affinity_matrix_.toarray())


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_given_matrix_keeps_its_storage_and_diagonal(container):
    W = kneighbors_graph(S_CURVE, 8, include_self=True).toarray()
    W = container((np.maximum(W, W.T) * 0.7).astype(np.float32))
    found = SpectralEmbedding(affinity="precomputed").fit(W).affinity_matrix_
    assert sparse.issparse(found) == sparse.issparse(W)
    assert found.dtype == np.float32
    assert abs(found - W).max() < 1e-7


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_a_function_as_affinity_embeds_new_points_as_the_kernel_does(container):
    X, new = container(S_CURVE), container(S_CURVE[:20] + 0.03)
    by_name = SpectralEmbedding(3, affinity="rbf", gamma=2.0).fit(X)
    by_function = SpectralEmbedding(3, affinity=lambda A: rbf_kernel(A, gamma=2.0)).fit(X)
    expected = by_name.transform(new)
    np.testing.assert_allclose(by_function.transform(new), expected, atol=1e-6)
    np.testing.assert_allclose(by_function.transform(new[:1]), expected[:1], atol=1e-6)
    assert np.array_equal(by_function.transform(X), by_function.embedding_)
    assert by_function.extension_error(X) < 1e-6


def test_a_function_that_depends_on_all_rows_has_no_new_points():
    model = SpectralEmbedding(affinity=lambda X: rbf_kernel(X, gamma=1 / np.var(X))).fit(S_CURVE)
    with pytest.raises(ValueError, match="other weights to the training points"):
        model.transform(S_CURVE[:5] * 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: np.ones((200, 3)), "square"),
        (lambda X: np.ones((3, 3)), "returned 3 rows for n_samples=200"),
        (lambda X: X @ X.T, "negative"),
        (lambda X: np.triu(np.ones((200, 200))), "symmetric"),
    ],
)
def test_functions_that_return_no_weights_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        SpectralEmbedding(affinity=function).fit(S_CURVE)


def test_components_of_a_graph_share_coordinates_as_in_scikit_learn():
    X = np.vstack([S_CURVE, S_CURVE[:150] + 50.0, S_CURVE[:100] - 50.0])
    with pytest.warns(DisconnectedGraphWarning, match="3 connected components.*as in scikit-learn"):
        model = SpectralEmbedding(2, n_neighbors=10).fit(X)
    # The null space of the Laplacian: functions that are constant on components.
    indicators = np.repeat(np.eye(3), [200, 150, 100], axis=0)
    assert subspace_angles(indicators, model.embedding_).max() < 1e-6
    new = X[::150] + 0.01
    np.testing.assert_allclose(model.transform(new), model.embedding_[::150], atol=1e-8)


BLOCKS = np.kron(np.eye(2), np.ones((100, 100)))


@pytest.mark.parametrize(
    ("params", "X", "remedy"),
    [
        ({"n_neighbors": 10}, np.vstack([S_CURVE, S_CURVE + 50]), "raise n_neighbors"),
        ({"affinity": "rbf"}, np.vstack([S_CURVE, S_CURVE + 50]), "lower gamma"),
        ({"affinity": "precomputed"}, BLOCKS, "some pairs between them a positive weight"),
        ({"affinity": lambda X: BLOCKS}, S_CURVE, "some pairs between them a positive weight"),
    ],
)
def test_the_warning_about_components_has_a_remedy_for_the_affinity(params, X, remedy):
    with pytest.warns(DisconnectedGraphWarning, match=f"as in scikit-learn; .*{remedy}, or use"):
        SpectralEmbedding(1, **params).fit(X)


def test_a_graph_of_many_neighbors_is_not_factorized():
    """By default a tenth of the points are neighbors; factorizing took most of the time."""
    X = np.random.default_rng(0).normal(size=(900, 5))
    assert SpectralEmbedding().fit(X).solver_.startswith("Lanczos")
