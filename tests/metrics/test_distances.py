"""Stress, strain, residual variance, Shepard diagrams."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from zadu.measures import non_metric_stress, scale_normalized_stress
from zadu.measures import stress as zadu_stress

from manifoldry import PCA, ClassicalMDS, Isomap, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import residual_variance, shepard, strain, stress


def test_stress_is_zadus(data):
    X, Y = data
    assert stress(X, Y, scale=False) == pytest.approx(zadu_stress.measure(X, Y)["stress"])
    scaled = scale_normalized_stress.measure(X, Y)["scale_normalized_stress"]
    assert stress(X, Y) == pytest.approx(scaled)
    kruskal = non_metric_stress.measure(X, Y)["non_metric_stress"]
    assert stress(X, Y, kind="kruskal") == pytest.approx(kruskal)


def test_units_do_not_matter_if_the_embedding_is_rescaled(data):
    X, Y = data
    for kind in ("metric", "kruskal"):
        assert stress(1e150 * X, 1e-3 * Y, kind=kind) == pytest.approx(stress(X, Y, kind=kind))


@pytest.mark.parametrize("size", [1e155, 1e-155])
def test_extreme_sizes_come_out_right(data, size):
    X, Y = data
    for metric in (stress, residual_variance):
        assert metric(size * X, Y) == pytest.approx(metric(X, Y))
        assert metric(X, size * Y) == pytest.approx(metric(X, Y))
    assert stress(size * X, size * Y, scale=False) == pytest.approx(stress(X, Y, scale=False))
    np.testing.assert_allclose(
        stress(size * X, Y, per_point=True), stress(X, Y, per_point=True), rtol=1e-9
    )
    assert strain(size * X, Y, scale=True) == pytest.approx(strain(X, Y, scale=True))
    assert strain(X, size * Y, scale=True) == pytest.approx(strain(X, Y, scale=True))


def test_kruskal_sees_only_the_order(data):
    X, _ = data
    line = np.sort(np.random.default_rng(0).normal(size=60))[:, None]
    assert stress(line, line, kind="kruskal") == pytest.approx(0, abs=1e-12)
    assert stress(X, X, kind="kruskal") == pytest.approx(0, abs=1e-7)


def test_stress_of_points_is_that_of_their_distances(data):
    X, Y = data
    values = stress(X, Y, scale=False, per_point=True)
    row = np.linalg.norm(X - X[7], axis=1), np.linalg.norm(Y - Y[7], axis=1)
    assert values[7] == pytest.approx(np.linalg.norm(row[0] - row[1]) / np.linalg.norm(row[0]))
    with pytest.raises(ValueError, match="kruskal"):
        stress(X, Y, kind="kruskal", per_point=True)


def test_correlations_are_scipys(data):
    X, Y = data
    diagram = shepard(X, Y)
    a, b = pdist(X), pdist(Y)
    assert diagram.pearson == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert diagram.spearman == pytest.approx(spearmanr(a, b).statistic)
    assert residual_variance(X, Y) == pytest.approx(1 - np.corrcoef(a, b)[0, 1] ** 2)


@pytest.mark.slow
def test_intervals_of_samples_cover_the_values_of_all_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3200, 4)) * [3, 2, 1, 1]
    Y = X[:, :2]
    a, b = pdist(X), pdist(Y)
    truth = np.corrcoef(a, b)[0, 1], np.linalg.norm(a - b) / np.linalg.norm(a)
    covered = []
    for seed in range(10):
        diagram = shepard(X, Y, random_state=seed)
        metrics = diagram.pearson, diagram.stress(scale=False)
        assert not metrics[0].exact
        covered += [f.low <= t <= f.high for f, t in zip(metrics, truth, strict=True)]
    assert np.mean(covered) >= 0.8
    assert len(diagram.batches) == 20
    assert diagram.pearson.high - diagram.pearson.low < 0.02


def test_strain_is_what_classical_mds_leaves(data):
    X, Y = data
    A, B = X - X.mean(axis=0), Y - Y.mean(axis=0)
    expected = np.linalg.norm(A @ A.T - B @ B.T) / np.linalg.norm(A @ A.T)
    assert strain(X, Y) == pytest.approx(expected)
    assert strain(sparse.csr_array(X), Y) == pytest.approx(expected)
    assert strain(X, ClassicalMDS(2).fit(X)) ** 2 == pytest.approx(ClassicalMDS(2).fit(X).loss_)
    wide = X.T.copy()
    centered = wide - wide.mean(axis=0)
    values = np.linalg.svd(centered, compute_uv=False) ** 2
    left = np.sqrt((values[2:] ** 2).sum() / (values**2).sum())
    assert strain(wide, PCA(2).fit(wide)) == pytest.approx(left)


def test_strain_of_embeddings_of_another_size(data):
    """The inner products of an embedding that is s times as large have the error s²."""
    X, Y = data
    gram = np.linalg.norm(Y @ Y.T - (Y @ Y.T).mean(axis=0)) / np.linalg.norm(X @ X.T)
    found = float(strain(X, 1e100 * Y))
    assert 0.5 < found / (1e200 * gram) < 2
    assert float(strain(X * 1e-9, Y * 1e91)) == pytest.approx(found, rel=1e-9)
    assert float(strain(X * 1e-100, Y * 1e100)) == np.inf
    assert float(strain(X, np.ones_like(Y))) == 1


def test_strain_after_the_best_scale(data):
    X, _ = data
    flat = PCA(2).fit(X).embedding_
    assert strain(X, 7 * flat, scale=True) == pytest.approx(strain(X, flat))
    assert strain(X, 7 * flat) > 1


def test_residual_variance_along_the_manifold():
    X, _ = make_swiss_roll(800, random_state=0)
    graph = NeighborGraph.build(X, 7)
    unrolled = Isomap(2).fit(graph)
    assert residual_variance(graph, unrolled) < 0.01 < residual_variance(X, unrolled)


def test_components_of_a_graph_are_compared_within():
    X = np.vstack([np.arange(10.0)[:, None], np.arange(10.0)[:, None] + 1e3])
    graph = NeighborGraph.build(X, 2)
    assert shepard(graph, X).pearson == pytest.approx(1)
    assert len(shepard(graph, X).data_distances) == 2 * 45


@pytest.mark.parametrize("metric", [stress, shepard, residual_variance, strain])
def test_coinciding_points_are_refused(metric):
    with pytest.raises(ValueError, match="coincide"):
        metric(np.ones((10, 3)), np.random.default_rng(0).normal(size=(10, 2)))
