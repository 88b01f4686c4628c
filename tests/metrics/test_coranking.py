import tracemalloc

import numpy as np
import pytest
from zadu.measures import local_continuity_meta_criteria

from manifoldry.metrics import coranking, coranking_matrix, neighbor_preservation
from manifoldry.metrics.coranking import compare_ranks
from manifoldry.metrics.pair import DataEmbeddingPair


def by_definition(ranks, X, Y):
    """The co-ranking matrix, one pair at a time."""
    n = len(X)
    Q = np.zeros((n, n), dtype=int)
    np.add.at(Q, (ranks(X).ravel(), ranks(Y).ravel()), 1)
    return Q[1:, 1:]  # rank 0 is the point itself


def test_matrix_is_that_of_the_definition(data, ranks):
    X, Y = data
    Q = by_definition(ranks, X, Y)
    np.testing.assert_array_equal(coranking_matrix(X, Y, n_neighbors=149), Q)
    np.testing.assert_array_equal(coranking_matrix(X, Y, n_neighbors=20), Q[:20, :20])


def test_curves_are_those_of_the_matrix(data, ranks):
    X, Y = data
    Q, n = by_definition(ranks, X, Y), 150
    found = coranking(X, Y)
    k = np.arange(1, n)
    q_nx = np.array([Q[:size, :size].sum() / (size * n) for size in k])
    np.testing.assert_allclose(found.q_nx, q_nx)
    np.testing.assert_allclose(found.lcmc, q_nx - k / (n - 1))
    r_nx = (((n - 1) * q_nx - k)[:-1]) / (n - 1 - k[:-1])
    np.testing.assert_allclose(found.r_nx, r_nx)
    assert found.area == pytest.approx((r_nx / k[:-1]).sum() / (1 / k[:-1]).sum())
    best = int(np.argmax(found.lcmc)) + 1
    assert found.k_max == best
    assert found.q_local == pytest.approx(q_nx[:best].mean())
    assert found.q_global == pytest.approx(q_nx[best:].mean())


def test_lcmc_is_zadus(data):
    X, Y = data
    theirs = local_continuity_meta_criteria.measure(X, Y, 12)["lcmc"]
    assert coranking(X, Y).lcmc[11] == pytest.approx(theirs)


def test_neighbor_preservation_is_q_nx(data):
    X, Y = data
    assert neighbor_preservation(X, Y, n_neighbors=9) == pytest.approx(coranking(X, Y).q_nx[8])


def test_perfect_and_random_maps(data):
    X, _ = data
    assert coranking(X, X).area == pytest.approx(1)
    assert coranking(X, X).area.exact
    rng = np.random.default_rng(0)
    areas = [coranking(X, rng.normal(size=(150, 2))).area for _ in range(20)]
    assert abs(np.mean(areas)) < 4 * np.std(areas) / np.sqrt(20) + 1e-3


def test_samples_cover_the_exact_area(data):
    X, Y = data
    exact = coranking(X, Y).area
    found = [coranking(X, Y, sample=50, random_state=seed).area for seed in range(50)]
    assert np.mean([each.low <= exact <= each.high for each in found]) >= 0.85


def test_smallest_data():
    line = np.arange(4.0)[:, None] ** 2
    assert coranking(line, line).r_nx.shape == (2,)
    with pytest.raises(ValueError, match="minimum of 4"):
        coranking(line[:3], line[:3])


def test_tied_distances_are_ranked_by_position():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    Y = rng.integers(0, 4, size=(60, 2)).astype(float)

    def ranks(Z):
        D = ((Z[:, None] - Z) ** 2).sum(axis=2)
        np.fill_diagonal(D, -1)
        return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1)

    np.testing.assert_array_equal(
        coranking_matrix(X, Y, n_neighbors=59), by_definition(ranks, X, Y)
    )
    q = coranking(X, Y).q_nx
    assert q[9] == pytest.approx(((ranks(X) <= 10) & (ranks(Y) <= 10))[:, :].sum() / 600 - 0.1)


def test_memory_of_many_points_does_not_grow_with_the_sample():
    """Blocks of a single row had a histogram each: 16 GB for a thousand of a million points."""
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    pair = DataEmbeddingPair.of(X, X)
    peaks = []
    for count in (10, 100):
        tracemalloc.start()
        compare_ranks(pair, [pair.embedding_distances], np.arange(count), 5, budget=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2**20
