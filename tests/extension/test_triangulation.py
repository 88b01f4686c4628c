"""Positions from distances to neighbors: exact on a plane, in any unit and component."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import NeighborGraph
from manifoldry.extension.from_distances import Triangulation

RNG = np.random.default_rng(0)
FLAT = RNG.uniform(size=(80, 2))
NEW = RNG.uniform(0.1, 0.9, size=(15, 2))
TURN = np.linalg.qr(RNG.standard_normal((2, 2)))[0]


def triangulation(X, Y, k=6, labels=None, **options):
    graph = NeighborGraph.build(X, k, **options)
    labels = np.zeros(len(Y), dtype=np.intp) if labels is None else labels
    return Triangulation(graph, Y, labels)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("precomputed", [False, True])
def test_exact_where_distances_are_preserved(scale, precomputed):
    Y = (FLAT @ TURN + [3.0, -1.0]) * scale
    expected = (NEW @ TURN + [3.0, -1.0]) * scale
    if precomputed:
        found = triangulation(cdist(FLAT, FLAT) * scale, Y, metric="precomputed").transform(
            cdist(NEW, FLAT) * scale
        )
    else:
        found = triangulation(FLAT * scale, Y).transform(NEW * scale)
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)


def test_training_points_return():
    found = triangulation(FLAT, FLAT @ TURN).transform(FLAT)
    np.testing.assert_allclose(found, FLAT @ TURN, atol=1e-9)


def test_a_fold_is_not_amplified():
    """Neighbors on a line do not determine the side, so the position is on the line."""
    Y = np.column_stack([FLAT[:, 0], 1e-4 * RNG.standard_normal(80)])
    found = triangulation(FLAT, Y).transform(NEW)
    assert np.abs(found).max() < 2.0


def test_only_the_nearest_ones_component_counts():
    """A point between two distant components belongs to the nearer one."""
    X = np.vstack([FLAT, FLAT + np.array([1.2, 0.0])])
    labels = np.repeat([0, 1], 80)
    Y = X + np.where(labels[:, None] == 1, [100.0, 0.0], 0.0)
    new = np.array([[1.02, 0.5], [1.18, 0.5]])
    found = triangulation(X, Y, k=10, labels=labels).transform(new)
    assert np.abs(found - (new + np.array([[0.0, 0.0], [100.0, 0.0]]))).max() < 0.05


def test_duplicates_of_one_point():
    X = np.vstack([np.repeat(FLAT[:1], 20, axis=0), FLAT])
    found = triangulation(X, X).transform(X[:2])
    np.testing.assert_allclose(found, X[:2], atol=1e-9)


def test_a_row_does_not_depend_on_its_batch():
    placed = triangulation(FLAT, FLAT @ TURN)
    alone = np.vstack([placed.transform(row[None]) for row in NEW])
    np.testing.assert_allclose(alone, placed.transform(NEW), atol=1e-12)


def test_a_radius_graph():
    graph = NeighborGraph.build(FLAT, radius=0.3)
    found = Triangulation(graph, FLAT @ TURN, np.zeros(80, dtype=np.intp)).transform(NEW)
    np.testing.assert_allclose(found, NEW @ TURN, atol=1e-9)


def test_neighbors_without_coordinates():
    """Points near omitted ones have no coordinates; others are not affected."""
    labels = np.where(FLAT[:, 0] > 0.7, -1, 0)
    Y = np.where(labels[:, None] < 0, np.nan, FLAT)
    new = np.array([[0.3, 0.5], [0.66, 0.5], [0.95, 0.5]])
    found = triangulation(FLAT, Y, k=10, labels=labels).transform(new)
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[:2]).all()
    np.testing.assert_allclose(found[0], new[0], atol=1e-6)
    for i, row in enumerate(new):
        alone = triangulation(FLAT, Y, k=10, labels=labels).transform(row[None])
        np.testing.assert_allclose(alone[0], found[i])
