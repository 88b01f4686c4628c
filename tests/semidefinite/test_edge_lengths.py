"""Constrained pairs, distinct points, and sums along edges."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry import NeighborGraph
from manifoldry.semidefinite.edge_lengths import DistinctPoints, EdgeLengths, has_clique_distances

X = np.random.default_rng(0).standard_normal((40, 3))


def edges_of(X, k=4, cliques=True, **options):
    graph = NeighborGraph.build(X, k, **options)
    points = DistinctPoints.of(graph, np.ones(len(X), dtype=bool))
    return graph, points, EdgeLengths.of(graph, points, cliques)


def pairs(ends):
    return {tuple(pair) for pair in ends.tolist()}


class TestPairs:
    def test_neighbors(self):
        graph, _, edges = edges_of(X, cliques=False)
        near = graph.indices.reshape(-1, 4)
        expected = {(min(i, j), max(i, j)) for i in range(40) for j in near[i].tolist()}
        assert pairs(edges.ends) == expected
        assert edges.count == len(expected)

    def test_cliques(self):
        graph, _, edges = edges_of(X)
        hoods = [{i, *graph.indices.reshape(-1, 4)[i].tolist()} for i in range(40)]
        assert pairs(edges.ends) == {(i, j) for hood in hoods for i in hood for j in hood if i < j}

    @pytest.mark.parametrize("cliques", [True, False])
    @pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
    def test_lengths(self, cliques, metric):
        _, _, edges = edges_of(X, cliques=cliques, metric=metric)
        expected = cdist(X, X, metric)[tuple(edges.ends.T)]
        np.testing.assert_allclose(np.sqrt(edges.squares) * edges.unit, expected, rtol=1e-12)

    def test_lengths_from_distances(self):
        D = cdist(X, X)
        graph = NeighborGraph.build(D, 4, metric="precomputed")
        points = DistinctPoints.of(graph, np.ones(40, dtype=bool))
        given = EdgeLengths.of(graph, points, True, D)
        _, _, expected = edges_of(X)
        assert np.array_equal(given.ends, expected.ends)
        np.testing.assert_allclose(given.squares, expected.squares, rtol=1e-12)

    def test_a_sparse_graph_has_no_clique_distances(self):
        D = sparse.csr_array(NeighborGraph.build(X, 4).matrix())
        graph = NeighborGraph.build(D, 4, metric="precomputed")
        assert not has_clique_distances(graph, None)
        assert has_clique_distances(NeighborGraph.build(X, 4), None)
        with pytest.raises(ValueError, match=r"pass the data or dense distances, or cliques=False"):
            EdgeLengths.of(graph, DistinctPoints.of(graph, np.ones(40, dtype=bool)), True)

    @pytest.mark.parametrize("scale", [1e-140, 1e140])
    def test_extreme_units(self, scale):
        _, _, edges = edges_of(X * scale)
        _, _, plain = edges_of(X)
        ratio = np.sqrt(edges.squares / plain.squares) * (edges.unit / plain.unit / scale)
        np.testing.assert_allclose(ratio, 1.0, rtol=1e-12)


class TestDistinctPoints:
    TWICE = np.vstack([X, X[:5], X[:2]])

    def test_duplicates_are_merged(self):
        _, points, edges = edges_of(self.TWICE, k=6)
        assert len(points.multiplicity) == edges.n == 40
        assert np.array_equal(points.first, np.arange(40))
        assert np.array_equal(points.index_of_point, np.r_[np.arange(40), np.arange(5), :2])
        assert np.array_equal(points.multiplicity[:6], [3, 3, 2, 2, 2, 1])
        assert (edges.squares > 0).all()

    def test_points_off_the_map(self):
        graph = NeighborGraph.build(self.TWICE, 6)
        on_map = np.ones(len(self.TWICE), dtype=bool)
        on_map[[7, 3, 43]] = False
        points = DistinctPoints.of(graph, on_map)
        assert len(points.multiplicity) == 38
        spread = points.expand(np.arange(38.0)[:, None])
        assert np.array_equal(np.isnan(spread[:, 0]), ~on_map)
        edges = EdgeLengths.of(graph, points, True)
        expected = cdist(X, X)[tuple(points.first[edges.ends].T)]
        np.testing.assert_allclose(np.sqrt(edges.squares) * edges.unit, expected, rtol=1e-12)


class TestSums:
    edges = edges_of(X)[2]
    R = np.random.default_rng(1).standard_normal((40, 2))

    def test_steps(self):
        i, j = self.edges.ends.T
        np.testing.assert_allclose(self.edges.edge_vectors(self.R), self.R[i] - self.R[j])

    def test_gathering_is_the_transpose(self):
        S = np.random.default_rng(2).standard_normal((self.edges.count, 2))
        left, right = (
            (self.edges.edge_vectors(self.R) * S).sum(),
            (self.R * self.edges.edge_vectors_adjoint(S)).sum(),
        )
        assert left == pytest.approx(right, rel=1e-12)

    def test_laplacian(self):
        w = np.random.default_rng(3).standard_normal(self.edges.count)
        steps = self.edges.edge_vectors(self.R)
        form = np.trace(self.R.T @ (self.edges.laplacian(w) @ self.R))
        assert form == pytest.approx((w * (steps**2).sum(axis=1)).sum(), rel=1e-10)
        assert np.abs(self.edges.laplacian(w) @ np.ones(40)).max() < 1e-13

    def test_changes_and_errors(self):
        points = X / self.edges.unit
        assert np.abs(self.edges.changes(self.edges.edge_vectors(points))).max() < 1e-13
        stretched = 1.1 * points
        np.testing.assert_allclose(self.edges.changes(self.edges.edge_vectors(stretched)), 0.21)
        np.testing.assert_allclose(self.edges.errors(stretched), 0.1)

    def test_tiny_edges_are_measured_by_others(self):
        few = EdgeLengths(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1e-12, 1.0, 4.0]), 4)
        assert np.array_equal(few.scales, [1e-4, 1.0, 4.0])

    def test_some_keep_their_measure(self):
        edges = EdgeLengths(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1e-12, 1.0, 4.0]), 4)
        some = edges.subset(np.array([0]))
        assert np.array_equal(some.scales, [1e-4])
        assert np.array_equal(some.ends, [[0, 1]])


def test_most_edges_much_shorter_than_the_longest():
    edges = EdgeLengths(np.array([[0, 1], [1, 2], [2, 3]]), np.array([1e-320, 1e-320, 1.0]), 4)
    np.testing.assert_array_equal(edges.scales, [1e-100, 1e-100, 1.0])
