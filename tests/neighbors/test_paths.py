"""Loads of shortest-path trees, compared with enumerating every path."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from manifoldry import NeighborGraph
from manifoldry.neighbors import paths, shortest_paths
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.paths import PathTrees


@pytest.fixture(params=["numpy", "compiled"])
def trees(request, monkeypatch):
    """Duplicates have paths of length zero; one distant pair is disconnected."""
    if request.param == "compiled":
        monkeypatch.setattr(paths, "COMPILE_ABOVE_POINTS", 0)
        monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 0)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(40, 2)), 2, axis=0)
    X = np.vstack([X, 100 + np.arange(8)[:, None] * [1.0, 0.0]])
    lengths, _ = edge_lengths(NeighborGraph.build(X, 6))
    return PathTrees.of(lengths, np.array([0, 31, 70]))


def walks(trees):
    """Yield every path as (tree, end, list of points)."""
    for tree, parent in enumerate(trees.predecessors):
        for end in np.flatnonzero(parent >= 0):
            path = [end]
            while parent[path[-1]] >= 0:
                path.append(parent[path[-1]])
            yield tree, end, path


def test_load_of_points(trees):
    expected = np.zeros(88)
    for _, _, path in walks(trees):
        expected[path[:-1]] += 1
    assert np.array_equal(trees.load(), expected)
    assert trees.n_paths == sum(1 for _ in walks(trees))


def test_load_of_edges_and_paths_that_use_them(trees):
    ends = np.unique(
        [sorted(step) for *_, path in walks(trees) for step in pairwise(path)],
        axis=0,
    )[::3]
    wanted = {tuple(edge): number for number, edge in enumerate(ends.tolist())}
    load, using = np.zeros(len(ends)), np.zeros(trees.distances.shape, dtype=bool)
    counted = np.zeros(88)
    for tree, end, path in walks(trees):
        steps = [tuple(sorted(map(int, step))) for step in pairwise(path)]
        hits = [wanted[step] for step in steps if step in wanted]
        load[hits] += 1
        using[tree, end] = bool(hits)
        counted[path[:-1]] += bool(hits)
    assert np.array_equal(trees.edge_loads(ends), load)
    assert np.array_equal(trees.using(ends), using)
    assert np.array_equal(trees.load(using), counted)


def test_equally_short_paths_are_chosen_alike_whatever_was_searched_before(monkeypatch):
    """Compiled code chooses others than scipy, so earlier work must not decide which is used."""
    n = 12
    chain = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])
    grid = sparse.csr_array(sparse.kronsum(chain, chain))
    sources = np.arange(n * n)
    before = PathTrees.of(grid, sources).predecessors
    monkeypatch.setattr(shortest_paths, "COMPILE_NEXT_ABOVE_WORK", 0)
    monkeypatch.setattr(shortest_paths, "_work_of_scipy", 2.0**30)
    assert shortest_paths.uses_compiled_paths(grid, len(sources))
    assert np.array_equal(PathTrees.of(grid, sources).predecessors, before)
