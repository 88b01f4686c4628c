"""Extension of Laplacian eigenvectors to new points."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

from manifoldry.affinity import Binary, Gaussian, SelfTuning
from manifoldry.exceptions import ExtensionWarning, counting_rows
from manifoldry.extension.laplacian import GivenWeights, GraphWeights, LaplacianExtension
from manifoldry.extension.layout import Layout
from manifoldry.neighbors import NeighborGraph

N_COMPONENTS = 3


@pytest.fixture
def rng():
    return np.random.default_rng(23)


@pytest.fixture(name="X")
def strip(rng):
    return rng.uniform(size=(90, 2)) * [4, 1]


def solve(W, normalization):
    """Eigenvalues, functions and coordinates of the graph's Laplacian by dense linear algebra."""
    d = W.sum(axis=1)
    L = np.diag(d) - W
    if normalization == "none":
        values, V = eigh(L)
        return values[1 : N_COMPONENTS + 1], V[:, 1 : N_COMPONENTS + 1], V[:, 1 : N_COMPONENTS + 1]
    values, F = eigh(L, np.diag(d))
    values, F = values[1 : N_COMPONENTS + 1], F[:, 1 : N_COMPONENTS + 1]
    return values, F, F * np.sqrt(d)[:, None] if normalization == "sym" else F


def extension(source, W, normalization):
    values, F, Y = solve(W, normalization)
    components = Layout.single(np.zeros(len(W), dtype=int), N_COMPONENTS)
    return LaplacianExtension(
        source, W, W.sum(axis=1), F, values[None], normalization, components
    ), Y


AFFINITIES = [Gaussian(), Gaussian(symmetrize="mean"), SelfTuning(), Binary()]


@pytest.mark.parametrize("normalization", ["rw", "sym", "none"])
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_training_points_return_to_their_coordinates(X, normalization, affinity):
    graph = NeighborGraph.build(X, 9)
    weights = affinity.fit(graph)
    extended, Y = extension(
        GraphWeights(graph, weights), weights.matrix(graph).toarray(), normalization
    )
    np.testing.assert_allclose(extended.transform(X), Y, atol=1e-12)


@pytest.mark.parametrize("normalization", ["rw", "sym"])
def test_rows_are_the_normalized_kernel_whose_eigenvectors_are_the_map(X, normalization):
    graph = NeighborGraph.build(X, 9)
    weights = Gaussian().fit(graph)
    W = weights.matrix(graph).toarray()
    extended, _ = extension(GraphWeights(graph, weights), W, normalization)
    d = W.sum(axis=1)
    np.testing.assert_allclose(extended.rows(X).toarray(), W / np.sqrt(np.outer(d, d)), atol=1e-13)


def test_a_new_point_is_the_weighted_mean_over_one_minus_the_eigenvalue(X, rng):
    graph = NeighborGraph.build(X, 9)
    weights = Gaussian().fit(graph)
    extended, _ = extension(GraphWeights(graph, weights), weights.matrix(graph).toarray(), "rw")
    new = rng.uniform(size=(8, 2)) * [4, 1]
    W, _, _ = extended.source.rows(new)
    w = W.toarray()
    mean = (w / w.sum(axis=1, keepdims=True)) @ extended.functions
    np.testing.assert_allclose(extended.transform(new), mean / (1 - extended.values), rtol=1e-12)


@pytest.mark.parametrize("normalization", ["rw", "sym", "none"])
def test_far_points_are_finite_and_batches_do_not_matter(X, normalization):
    graph = NeighborGraph.build(X, 9)
    weights = Gaussian().fit(graph)
    extended, _ = extension(
        GraphWeights(graph, weights), weights.matrix(graph).toarray(), normalization
    )
    new = np.vstack([X[:5] + 0.01, [[1e3, 0.0], [-1e6, 1e6]]])
    together = extended.transform(new)
    assert np.isfinite(together).all()
    alone = np.vstack([extended.transform(new[i : i + 1]) for i in range(len(new))])
    np.testing.assert_allclose(alone, together, rtol=1e-13)


def test_no_neighbor_within_the_radius_is_an_error(X):
    graph = NeighborGraph.build(X, radius=0.6)
    weights = Gaussian().fit(graph)
    extended, _ = extension(GraphWeights(graph, weights), weights.matrix(graph).toarray(), "rw")
    with pytest.raises(ValueError, match=r"1 rows have no training point.*larger radius"):
        extended.transform(np.vstack([X[:2] + 0.01, [[99.0, 99.0]]]))


def test_functions_that_oscillate_get_the_mean_of_the_neighbors(X):
    """Nyström would divide by 1 − 0.995; the mean of a function that is 1 everywhere is 1."""
    graph = NeighborGraph.build(X, 9)
    weights = Gaussian().fit(graph)
    W = weights.matrix(graph).toarray()
    components = Layout.single(np.zeros(len(X), dtype=int), 1)
    extended = LaplacianExtension(
        GraphWeights(graph, weights),
        W,
        W.sum(axis=1),
        np.ones((len(X), 1)),
        np.array([[0.995]]),
        "rw",
        components,
    )
    with pytest.warns(ExtensionWarning, match="coordinates 0 oscillate.*2 new points"):
        placed = extended.transform(X[:2] + 0.01)
    np.testing.assert_allclose(placed, 1.0, rtol=1e-12)


def test_blocks_with_different_oscillating_coordinates_give_one_warning(X):
    both = np.vstack([X, X + 100])
    graph = NeighborGraph.build(both, 9)
    weights = Gaussian().fit(graph)
    W, labels = weights.matrix(graph), np.repeat([0, 1], len(X))
    extended = LaplacianExtension(
        GraphWeights(graph, weights),
        W,
        W.sum(axis=1),
        np.ones((len(both), 2)),
        np.array([[0.995, 0.5], [0.5, 0.995]]),
        "rw",
        Layout.single(labels, 2),
    )

    def place():
        with counting_rows():
            for block in (both[:2], both[-3:]):
                extended.component_coordinates(block + 0.01)

    with pytest.warns(ExtensionWarning) as caught:
        place()
    assert len(caught) == 1
    assert "coordinates 0, 1 oscillate" in str(caught[0].message)
    assert "5 new points" in str(caught[0].message)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_given_weights_are_scaled_rows_without_identical_points(X, kind):
    graph = NeighborGraph.build(X, 9)
    W = Gaussian().fit(graph).matrix(graph).toarray()
    source = GivenWeights()
    rows, log_scale, nearest = source.rows(kind(W * 1e-200))
    np.testing.assert_allclose(rows.toarray(), W / W.max(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(log_scale, np.log(W.max(axis=1)) - 200 * np.log(10), rtol=1e-12)
    np.testing.assert_array_equal(nearest, W.argmax(axis=1))
    np.testing.assert_array_equal(source.identical(kind(W)), -1)


def test_identical_points_are_known_to_the_graph(X):
    graph = NeighborGraph.build(X, 9)
    source = GraphWeights(graph, Gaussian().fit(graph))
    np.testing.assert_array_equal(source.identical(np.vstack([X[4], X[4] + 1])), [4, -1])
