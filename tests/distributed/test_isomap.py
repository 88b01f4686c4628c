"""Isomap of all rows of distributed data: paths across parts, and maps by landmarks."""

import pickle
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry import Isomap, NeighborGraph
from manifoldry.base.input import Points
from manifoldry.datasets import make_swiss_roll
from manifoldry.distributed.components import DistributedComponents
from manifoldry.eigen import ComponentSolver
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.io import load, save
from manifoldry.neighbors import distributed_join, distributed_paths
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.distributed_join import with_joined_components
from manifoldry.neighbors.distributed_paths import DistributedPaths, symmetric_edges
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.spectral.distributed_isomap import Drawn, fit_graph
from manifoldry.spectral.isomap import PosedGeodesics

ROLL = make_swiss_roll(400, random_state=0).X
JOIN = DisconnectedPolicy("join")
PARTINGS = {
    "one part": [0, 400],
    "two parts": [0, 150, 400],
    "uneven parts, and empty ones": [0, 0, 7, 7, 200, 310, 400, 400],
    "many parts": [*range(0, 400, 50), 400],
}


def in_parts(graph, X, bounds, rows=None):
    return DistributedGraph.of(graph, X, np.array(bounds), rows)


def lengths_from(graph, sources, **options):
    paths = DistributedPaths.of(symmetric_edges(graph), graph.order.bounds)
    return np.concatenate(dask.compute(*paths.lengths_from(np.array(sources), **options)))


def shortest(graph, sources, tiny=1e-300):
    """Scipy's shortest paths from some rows, which takes zeros for missing edges."""
    A = graph.matrix(np.maximum(graph.distances, tiny))
    return dijkstra(sparse.csr_array(A.maximum(A.T)), indices=sources).T


@pytest.mark.parametrize("bounds", PARTINGS.values(), ids=PARTINGS)
def test_paths_are_those_of_the_whole_graph(bounds):
    graph = NeighborGraph.build(ROLL, n_neighbors=6)
    rows = np.random.default_rng(1).permutation(400)
    sources = np.array([0, 3, 17, 201, 399])
    found = lengths_from(in_parts(graph, ROLL, bounds, rows), sources)
    expected = shortest(graph, rows[sources])[rows]
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_blocks_of_sources_and_single_precision(monkeypatch):
    graph = in_parts(NeighborGraph.build(ROLL, n_neighbors=6), ROLL, [0, 100, 250, 400])
    sources = np.arange(0, 400, 20)
    whole = lengths_from(graph, sources)
    monkeypatch.setattr(distributed_paths, "MOST_AT_ONCE", 150 * 3)
    np.testing.assert_array_equal(lengths_from(graph, sources), whole)
    single = lengths_from(graph, sources, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, whole.astype(np.float32))


def test_there_is_no_path_between_components():
    X = np.concatenate([ROLL[:60], ROLL[:50] + 1000.0])
    graph = NeighborGraph.build(X, n_neighbors=5)
    found = lengths_from(in_parts(graph, X, [0, 30, 80, 110]), [0, 70])
    np.testing.assert_allclose(found, shortest(graph, [0, 70]), rtol=1e-12)
    assert np.isinf(found[:60, 1]).all()
    assert np.isinf(found[60:, 0]).all()


def test_edges_between_duplicates_have_length_zero():
    X = np.repeat(ROLL[:40], 3, axis=0)
    graph = NeighborGraph.build(X, n_neighbors=9)
    found = lengths_from(in_parts(graph, X, [0, 40, 80, 120]), [0, 61])
    np.testing.assert_allclose(found, shortest(graph, [0, 61]), rtol=1e-12, atol=1e-290)
    np.testing.assert_array_equal(found[:3, 0], 0.0)
    np.testing.assert_array_equal(found[60:63, 1], 0.0)


def of_graph(graph, X, landmarks, k=2):
    """Isomap in memory with given landmarks."""
    model = Isomap(k)
    model.n_components_, model.n_features_in_ = k, X.shape[1]
    posed = PosedGeodesics(Points(X), [np.arange(len(X))], Geodesics.of(graph, landmarks))
    model.adopt(posed, ComponentSolver().solve(posed.problems, k, np.random.default_rng(0)))
    return model


def drawn(n, m, kept, seed=0):
    rng = np.random.default_rng(seed)
    landmarks = np.sort(rng.choice(n, m, replace=False))
    kept = np.union1d(landmarks, rng.choice(n, kept, replace=False))
    return Drawn(landmarks, kept, np.setdiff1d(np.arange(n), kept)[::2], 0)


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_coordinates_are_those_of_the_same_landmarks_in_memory(n_components):
    graph = NeighborGraph.build(ROLL, n_neighbors=6)
    rows, sample = np.random.default_rng(1).permutation(400), drawn(400, 30, 100)
    parts = in_parts(graph, ROLL, [0, 100, 100, 290, 400], rows)
    found = fit_graph(Isomap(), parts, sample, n_components, JOIN)
    expected = of_graph(graph, ROLL, sample.landmarks, n_components)
    model, scale = found.model, np.abs(expected.embedding_).max()
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(found.embedding, expected.embedding_, atol=1e-9 * scale)
    np.testing.assert_allclose(
        model.transform(ROLL[sample.kept]), found.embedding[sample.kept], atol=1e-9 * scale
    )
    np.testing.assert_array_equal(found.attributes["landmarks_"], sample.landmarks)
    placed = model.transform(ROLL[sample.checked])
    step = np.square(placed - found.embedding[sample.checked].compute()).sum(axis=1)
    error = np.sqrt(step.mean() / expected.embedding_[sample.kept].var(axis=0).sum())
    np.testing.assert_allclose(found.attributes["placement_error_"], error, rtol=1e-8)
    assert model.extension_error(ROLL[sample.kept]) < 1e-9
    assert 0 < error < (0.1 if n_components <= 2 else 0.2)  # the roll has two coordinates


def test_all_rows_kept_make_the_model_in_memory():
    graph, sample = NeighborGraph.build(ROLL, n_neighbors=6), drawn(400, 30, 400)
    found = fit_graph(
        Isomap(n_neighbors=6), in_parts(graph, ROLL, [0, 250, 400]), sample, 2, "join"
    )
    expected, new = of_graph(graph, ROLL, sample.landmarks), ROLL[:50] + 0.05
    np.testing.assert_allclose(found.model.transform(new), expected.transform(new), atol=1e-8)
    np.testing.assert_allclose(
        found.model.extension_.rows(new), expected.extension_.rows(new), atol=1e-10
    )
    assert found.attributes["placement_error_"] == 0


def procrustes_error(Y, Z):
    """Root mean square distance after the best rotation, relative to the size of Z."""
    Y, Z = Y - Y.mean(axis=0), Z - Z.mean(axis=0)
    U, _, Vt = np.linalg.svd(Y.T @ Z)
    return np.linalg.norm(Y @ (U @ Vt) - Z) / np.linalg.norm(Z)


BIG = make_swiss_roll(1500, random_state=1).X


@pytest.fixture(scope="module")
def fitted():
    X = da.from_array(BIG, chunks=(400, 3))
    return Isomap(n_neighbors=8, n_landmarks=100, random_state=3).fit(X)


def test_fit_of_a_dask_array(fitted):
    """All rows are kept, so the model is that of the same landmarks in memory."""
    graph = NeighborGraph.build(BIG, n_neighbors=8)
    expected = of_graph(graph, BIG, fitted.landmarks_)
    assert len(fitted.landmarks_) == 100
    np.testing.assert_allclose(fitted.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    assert procrustes_error(fitted.embedding_.compute(), expected.embedding_) < 1e-9
    assert fitted.embedding_.chunks[0] == (400, 400, 400, 300)
    assert fitted.placement_error_ == 0
    assert fitted.fitted_on_ == (
        "all 1500 rows, by shortest paths along their neighbor graph (exact) to 100 random "
        "landmarks; 1500 rows place new ones; short circuits were not searched for"
    )


def test_map_of_a_roll_is_that_of_all_points_in_memory(fitted):
    """100 landmarks and 1500 give the same map up to 2 % of its size."""
    whole = Isomap(n_neighbors=8).fit(BIG)
    assert procrustes_error(fitted.embedding_.compute(), whole.embedding_) < 0.02


def test_new_rows_and_pickles(fitted):
    new = BIG[:200] + 0.05
    placed = fitted.transform(new)
    np.testing.assert_allclose(fitted.transform(BIG), fitted.embedding_.compute(), atol=1e-10)
    lazy = fitted.transform(da.from_array(new, chunks=(70, 3)))
    np.testing.assert_allclose(lazy.compute(), placed, atol=1e-10)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.transform(new), placed)
    assert not hasattr(loaded, "embedding_")
    restored = fitted.inverse_transform(fitted.embedding_[:100].compute())
    assert np.abs(restored - BIG[:100]).max() < 2.0


def test_saved_models_keep_the_distances_along_the_whole_graph(tmp_path):
    graph, sample = NeighborGraph.build(ROLL, n_neighbors=6), drawn(400, 30, 100)
    model = fit_graph(Isomap(), in_parts(graph, ROLL, [0, 400]), sample, 2, JOIN).model
    save(model, tmp_path / "model")
    new = ROLL[:50] + 0.05
    np.testing.assert_array_equal(load(tmp_path / "model").transform(new), model.transform(new))
    damaged = replace(model.extension_.geodesics, given=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="one distance for each point and target"):
        damaged.check()


def test_the_result_does_not_depend_on_chunks(fitted):
    again = Isomap(n_neighbors=8, n_landmarks=100, random_state=3)
    again.fit(da.from_array(BIG, chunks=(1500, 3)))
    np.testing.assert_array_equal(again.landmarks_, fitted.landmarks_)
    np.testing.assert_allclose(again.embedding_, fitted.embedding_, atol=1e-9)


def test_other_graphs_than_of_neighbors_are_of_a_sample():
    model = Isomap(radius=5.0, n_landmarks=30).fit(da.from_array(ROLL, chunks=(150, 3)))
    assert model.fitted_on_ == "all rows, on one worker"


def test_fit_of_a_graph_in_parts(fitted):
    graph = DistributedGraph.build(da.from_array(BIG, chunks=(400, 3)), n_neighbors=10)
    model = Isomap(n_neighbors=8, n_landmarks=100, random_state=3).fit(graph)
    np.testing.assert_allclose(model.embedding_, fitted.embedding_, atol=1e-9)


def test_few_rows_are_all_landmarks():
    X = da.from_array(ROLL, chunks=(150, 3))
    model, expected = Isomap(n_neighbors=6).fit(X), Isomap(n_neighbors=6).fit(ROLL)
    np.testing.assert_array_equal(model.landmarks_, np.arange(400))
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-8)
    np.testing.assert_allclose(
        model.transform(ROLL + 0.1), expected.transform(ROLL + 0.1), atol=1e-8
    )


CLUSTERS = np.concatenate([ROLL[:200], ROLL[:30] + 40, ROLL[:50] - [60, 0, 0], ROLL[:25] + 90])


@pytest.mark.parametrize("bounds", [[0, 305], [0, 215, 215, 260, 305]])
def test_components_are_joined_by_the_shortest_edges(bounds):
    graph = NeighborGraph.build(CLUSTERS, n_neighbors=5)
    parts = in_parts(graph, CLUSTERS, bounds, np.random.default_rng(0).permutation(305))
    rows = np.concatenate(dask.compute(*parts.order.rows))
    components = DistributedComponents.of(symmetric_edges(parts))
    assert components.count == graph.components()[0] == 4
    whole = sparse.vstack(dask.compute(*with_joined_components(parts, components).edges))
    with pytest.warns(DisconnectedGraphWarning):
        expected = JOIN.connect(graph).matrix()
    expected = expected.maximum(expected.T)[rows][:, rows]
    assert abs(whole.maximum(whole.T) - expected).max() < 1e-12


def test_map_of_joined_components_is_that_in_memory():
    model = Isomap(n_neighbors=5, n_landmarks=305)
    with pytest.warns(DisconnectedGraphWarning, match="they were joined"):
        model.fit(da.from_array(CLUSTERS, chunks=(80, 3)))
    with pytest.warns(DisconnectedGraphWarning, match="they were joined"):
        expected = Isomap(n_neighbors=5).fit(CLUSTERS)
    assert model.fitted_on_.startswith("all 305 rows, whose 4 connected components were joined, by")
    scale = np.abs(expected.embedding_).max()
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-9 * scale)


def test_too_many_rows_to_join(monkeypatch):
    monkeypatch.setattr(distributed_join, "MOST_OUTSIDE", 104)
    with pytest.raises(DisconnectedGraphError, match="disconnected='largest'"):
        Isomap(n_neighbors=5).fit(da.from_array(CLUSTERS, chunks=(80, 3)))


def test_the_largest_component_is_embedded():
    X = np.concatenate([ROLL[:90], ROLL[:300] + 1000.0])
    model = Isomap(n_neighbors=5, n_landmarks=40, disconnected="largest")
    with pytest.warns(
        DisconnectedGraphWarning, match=r"2 connected components \(of 300, 90 points\)"
    ):
        model.fit(da.from_array(X, chunks=(100, 3)))
    Y = model.embedding_.compute()
    assert model.fitted_on_.startswith("the 300 rows of the largest connected component, by")
    assert np.isnan(Y[:90]).all()
    expected = of_graph(NeighborGraph.build(X[90:], n_neighbors=5), X[90:], model.landmarks_ - 90)
    np.testing.assert_allclose(Y[90:], expected.embedding_, atol=1e-8)
    np.testing.assert_allclose(model.transform(X[90:]), Y[90:], atol=1e-9)


def test_too_few_landmarks_in_the_largest_component():
    X = np.concatenate([ROLL[:190], ROLL[:200] + 1000.0])
    model = Isomap(n_neighbors=5, n_landmarks=3, disconnected="largest", random_state=2)
    with (
        pytest.warns(DisconnectedGraphWarning),
        pytest.raises(ValueError, match="pass a larger n_landmarks"),
    ):
        model.fit(da.from_array(X, chunks=(100, 3)))


def test_disconnected_error_names_the_remedy():
    X = np.concatenate([ROLL[:60], ROLL[:60] + 1000.0])
    model = Isomap(n_neighbors=5, disconnected="error")
    with pytest.raises(DisconnectedGraphError, match="raise n_neighbors"):
        model.fit(da.from_array(X, chunks=(50, 3)))
    assert not hasattr(model, "landmark_model_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_landmarks": 500}, "n_landmarks=500 must be at most n_samples=400"),
        ({"n_landmarks": 2}, "n_landmarks=2"),
        ({"landmarks": "best"}, "landmarks='best'"),
        ({"n_neighbors": 400}, "n_neighbors=400"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Isomap(**options).fit(da.from_array(ROLL, chunks=(100, 3)))


def test_rows_that_coincide_with_all_neighbors():
    X = np.repeat(ROLL[:1], 200, axis=0)
    for data in (X, da.from_array(X, chunks=(100, 3))):
        with pytest.raises(ValueError, match="each of the 200 rows coincides with all its neigh"):
            Isomap(n_neighbors=6).fit(data)


def test_single_precision_and_names():
    import pandas as pd
    from dask import dataframe

    frame = pd.DataFrame(ROLL.astype(np.float32), columns=["a", "b", "c"])
    model = Isomap(n_neighbors=6, n_landmarks=30).fit(dataframe.from_pandas(frame, npartitions=3))
    assert model.embedding_.dtype == np.float32
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.transform(frame), model.embedding_, atol=1e-4)


def test_on_worker_processes(client):
    X = da.from_array(ROLL, chunks=(200, 3))
    model = Isomap(n_neighbors=6, n_landmarks=30).fit(X)
    expected = of_graph(NeighborGraph.build(ROLL, n_neighbors=6), ROLL, model.landmarks_)
    np.testing.assert_allclose(model.embedding_.compute(), expected.embedding_, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
