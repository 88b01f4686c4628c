"""Short circuits: found where there is one (E4.10), not where there is none."""

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra
from sklearn.datasets import load_digits

from manifoldry import Isomap, NeighborGraph
from manifoldry.datasets import make_ring, make_s_curve, make_strip, make_swiss_roll
from manifoldry.exceptions import ShortCircuitWarning
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.short_circuits import ShortCircuits, _load


def bridged_roll(n, seed):
    """A roll, and one more point half-way between two of its layers."""
    X, coordinates = make_swiss_roll(n, random_state=seed)
    arc, height = coordinates.T
    middle = np.argsort(np.abs(height - np.median(height)))[: n // 5]
    D = np.linalg.norm(X[middle][:, None] - X[middle][None], axis=2)
    D[np.abs(arc[middle][:, None] - arc[middle][None]) < 25] = np.inf
    i, j = middle[list(np.unravel_index(np.argmin(D), D.shape))]
    return X, np.vstack([X, (X[i] + X[j]) / 2])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_edges_of_a_bridging_point_are_found(seed):
    _, X = bridged_roll(800, seed)
    found = ShortCircuits.of(NeighborGraph.build(X, 10))
    assert (found.edges == 800).any(axis=1).all()
    assert found.changed > 0.1


@pytest.mark.parametrize(
    "data",
    [
        make_swiss_roll(800, random_state=1).X,
        make_swiss_roll(800, hole=True, random_state=1).X,
        make_swiss_roll(800, noise=0.3, random_state=1).X,
        make_s_curve(500, random_state=0).X,
        make_strip(500, random_state=0).X,
        make_ring(500, random_state=0).X,
    ],
    ids=["roll", "hole", "noise", "s-curve", "strip", "ring"],
)
def test_sound_graphs_raise_no_alarm(data):
    found = ShortCircuits.of(NeighborGraph.build(data, 10))
    assert found.changed == 0
    assert found.sound_neighbors is None


@pytest.mark.parametrize(
    ("data", "k"),
    [
        (make_swiss_roll(2000, random_state=1).X, 20),
        (make_s_curve(500, random_state=0).X, 40),
        (make_ring(500, random_state=0).X, 40),
        (load_digits().data, 40),
        (np.random.default_rng(0).normal(size=(500, 50)), 40),
    ],
    ids=["roll", "s-curve", "ring", "digits", "cloud"],
)
def test_many_neighbours_are_no_crime(data, k):
    assert ShortCircuits.of(NeighborGraph.build(data, k)).sound_neighbors is None


@pytest.mark.parametrize(("noise", "k"), [(0.0, 15), (0.0, 30), (0.0, 60), (0.5, 15), (0.5, 40)])
def test_neighbours_on_other_layers_are_noticed(noise, k):
    """From 7 edges across the gap to 5500; fewer neighbours show what they cut short."""
    X, coordinates = make_swiss_roll(800, noise=noise, random_state=1)
    graph = NeighborGraph.build(X, k)
    arc = coordinates[:, 0]
    assert (np.abs(arc[graph.rows] - arc[graph.indices]) > 25).any()
    found = ShortCircuits.of(graph)
    assert found.doubled > 0.05
    with pytest.warns(ShortCircuitWarning, match="short circuits|Pass fewer neighbours"):
        Isomap(n_neighbors=k).fit(X)


def test_a_bridge_is_no_short_circuit():
    """Two blobs joined by one point: there is no longer way round."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 80, 2))
    X = np.vstack([first, second + np.array([9, 0]), [[4.5, 0]]])
    assert len(ShortCircuits.of(NeighborGraph.build(X, 8)).edges) == 0


def test_isomap_warns_and_the_map_suffers():
    plain, bridged = bridged_roll(800, 1)
    sound = Isomap(2, n_neighbors=10).fit(plain)
    with pytest.warns(ShortCircuitWarning, match=r"edges .*800.*short circuits.*n_neighbors"):
        broken = Isomap(2, n_neighbors=10).fit(bridged)
    assert broken.residual_variance_[1] > 3 * sound.residual_variance_[1]


def test_load_counts_the_paths_through_every_point():
    """Against walking every path; duplicates make paths of length zero."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(40, 2)), 2, axis=0)
    lengths, _ = edge_lengths(NeighborGraph.build(X, 6))
    _, predecessors = dijkstra(lengths, indices=[0, 31, 70], return_predecessors=True)
    walked = np.zeros(len(X))
    for parent in predecessors:
        for point in np.flatnonzero(parent >= 0):
            while parent[point] >= 0:
                walked[point] += 1
                point = parent[point]
    assert np.array_equal(_load(predecessors), walked)
