"""Guidance matrices, against their definitions."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize.guidance_matrix import (
    clustering_matrix,
    graph_matrix,
    kernel_pca_matrix,
    lazy,
    neighborhood_gamma,
)


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(5).normal(size=(60, 3))


def test_clustering_matrix(X):
    K = np.exp(-0.7 * cdist(X, X, "sqeuclidean"))
    root = np.sqrt(K.sum(axis=1))
    M = clustering_matrix(X, gamma=0.7)
    np.testing.assert_allclose(M, K / np.outer(root, root), rtol=1e-12)
    np.testing.assert_allclose(M @ root, root, rtol=1e-12)  # the eigenvalue one
    assert np.linalg.eigvalsh(M)[0] > 0


def test_kernel_pca_matrix(X):
    K = np.exp(-0.7 * cdist(X, X, "sqeuclidean"))
    H = np.eye(60) - 1 / 60
    np.testing.assert_allclose(kernel_pca_matrix(X, gamma=0.7), H @ K @ H, atol=1e-13)


def test_graph_matrix_is_one_minus_the_normalized_laplacian(X):
    W = np.exp(-cdist(X, X))
    np.fill_diagonal(W, 0)
    W[W < 0.2] = 0
    W[7] = W[:, 7] = 0
    L = sparse.csgraph.laplacian(W, normed=True)  # zero for points without neighbors
    M = graph_matrix(sparse.csr_array(W))
    np.testing.assert_allclose(M.toarray(), np.eye(60) - L, atol=1e-13)
    assert np.linalg.eigvalsh(M.toarray())[0] < -0.01  # without a diagonal it is indefinite
    for kind in (M, M.toarray()):
        values = np.linalg.eigvalsh(lazy(kind).toarray() if sparse.issparse(kind) else lazy(kind))
        assert values[0] >= 0
        assert values[-1] == pytest.approx(1)


def test_the_default_bandwidth_is_the_distance_of_the_tenth_neighbor(X):
    tenth = np.sort(cdist(X, X), axis=1)[:, 10]
    assert neighborhood_gamma(X) == pytest.approx(1 / np.median(tenth) ** 2)
    np.testing.assert_array_equal(
        clustering_matrix(X), clustering_matrix(X, gamma=neighborhood_gamma(X))
    )


@pytest.mark.parametrize("make", [clustering_matrix, kernel_pca_matrix])
def test_units_and_offset_do_not_matter(make, X):
    M = make(X)
    np.testing.assert_allclose(make(1e6 * X + 1e8), M, atol=1e-6)
    np.testing.assert_allclose(make(1e-6 * X), M, atol=1e-12)
    np.testing.assert_allclose(make(sparse.csr_array(X)), M, atol=1e-12)
    np.testing.assert_allclose(make(X.astype(np.float32)), M, atol=1e-5)
    np.testing.assert_allclose(make(X.tolist()), M, atol=1e-12)


def test_leading_eigenvectors_of_three_arcs_are_piecewise_constant():
    """E0.1: the leading eigenvectors of clusters are constant on each, up to the degrees."""
    rng = np.random.default_rng(0)
    angle = np.repeat([0.0, 120.0, 240.0], 50) + rng.uniform(0, 90, 150)
    X = np.column_stack([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    X += 0.03 * rng.normal(size=X.shape)
    values, vectors = np.linalg.eigh(clustering_matrix(X, gamma=26.0))
    assert values[-3] > 0.95
    assert values[-3] - values[-4] >= 0.02
    root = vectors[:, -1]
    values_by_arc = (vectors[:, -3:-1] / root[:, None]).reshape(3, 50, 2)
    within = values_by_arc.std(axis=1).max()
    between = np.abs(np.diff(values_by_arc.mean(axis=1), axis=0)).max()
    assert within < 0.1 * between


def test_two_points_suffice():
    np.testing.assert_allclose(clustering_matrix(np.array([[0.0], [1.0]])).sum(), 2.0)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((5, 2)), "drop duplicated rows or pass gamma"),
        (np.array([[0.0, np.nan], [1.0, 2.0]]), "NaN"),
        (np.zeros((1, 2)), "minimum of 2"),
    ],
)
def test_data_that_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        clustering_matrix(X)


def test_coinciding_points_with_a_given_gamma():
    M = clustering_matrix(np.zeros((5, 2)), gamma=1.0)
    np.testing.assert_allclose(M, np.full((5, 5), 0.2))


def test_the_default_kernel_covers_a_neighborhood_of_the_roll():
    """Points of other turns have negligible weight."""
    X, _ = make_swiss_roll(500, random_state=0)
    weights = np.exp(-neighborhood_gamma(X) * cdist(X, X, "sqeuclidean"))
    assert 3 < np.median(weights.sum(axis=1)) < 15
