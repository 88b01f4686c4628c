"""Walks along the data, against scipy's shortest paths and the geometry of a horseshoe."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import kneighbors_graph

import manifoldry as mf
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning


@pytest.fixture(scope="module")
def horseshoe():
    """A strip of radius 1 and width 0.1 that turns by 300 degrees; its ends are rows 0 and 1."""
    rng = np.random.default_rng(0)
    spread = (np.arange(598) + rng.uniform(size=598)) / 598
    angle = np.concatenate([[0.0, 1.0], spread]) * np.radians(300)
    radius = np.concatenate([[1.0, 1.0], rng.uniform(0.95, 1.05, 598)])
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.fixture(scope="module")
def flat(horseshoe):
    return mf.PCA(2).fit(horseshoe)


def test_the_path_is_that_of_scipy(horseshoe, flat):
    path = flat.walk(horseshoe, 0, 1, n_neighbors=8)
    edges = kneighbors_graph(horseshoe, 8, mode="distance")
    length, before = dijkstra(edges.maximum(edges.T), indices=0, return_predecessors=True)
    expected = [1]
    while expected[-1] != 0:
        expected.append(before[expected[-1]])
    np.testing.assert_array_equal(path.rows, expected[::-1])
    np.testing.assert_allclose(path.lengths, length[path.rows])
    np.testing.assert_array_equal(path.coordinates, flat.embedding_[path.rows])
    np.testing.assert_array_equal(path.data, horseshoe[path.rows])


def test_it_stays_in_the_data_where_a_straight_line_does_not(horseshoe, flat):
    path = flat.walk(horseshoe, 0, 1, n_steps=100)
    tree = cKDTree(horseshoe)
    spacing = np.quantile(tree.query(horseshoe, k=2)[0][:, 1], 0.95)
    straight = np.linspace(horseshoe[0], horseshoe[1], 100)
    assert tree.query(straight)[0].max() > 5 * spacing
    assert tree.query(path.data)[0].max() < 2 * spacing
    assert path.lengths[-1] == pytest.approx(0.96 * np.radians(300), rel=0.05)
    # PCA is a rigid motion of the plane, so that its inverse gives the same path.
    np.testing.assert_allclose(flat.inverse_transform(path.coordinates), path.data, atol=1e-10)


def test_steps_are_spaced_equally(horseshoe, flat):
    path = flat.walk(horseshoe, 0, 1, n_steps=400)
    assert path.coordinates.shape == path.data.shape == (400, 2)
    steps = np.linalg.norm(np.diff(path.data, axis=0), axis=1)
    # Only steps around a corner are shorter than the others.
    assert np.median(steps) == pytest.approx(path.lengths[-1] / 399)
    np.testing.assert_array_equal(path.data[[0, -1]], horseshoe[:2])


MODELS = [
    mf.PCA(2),
    mf.KernelPCA(2),
    mf.ClassicalMDS(2),
    mf.Isomap(n_neighbors=8),
    mf.LaplacianEigenmaps(n_neighbors=8),
    mf.LTSA(n_neighbors=8),
    mf.SNE(init="pca", max_iter=3),
    mf.TSNE(early_exaggeration=1.0, max_iter=3),
    mf.UKR(2, init="pca", max_iter=3),
    mf.MVU(n_landmarks=20, max_iter=20),
    mf.ConformalEigenmaps(2),
    mf.SpectralClustering(2),
    mf.NonRedundant(mf.LaplacianEigenmaps(n_neighbors=8)),
    mf.ConformalInverse(mf.PCA(1)),
    mf.FromDensity(mf.PCA(2), n_draws=300, width=1.0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator(model, horseshoe):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(horseshoe)
    path = model.walk(horseshoe, 0, 1, n_neighbors=8)
    edges = kneighbors_graph(horseshoe, 8, mode="distance")
    assert path.lengths[-1] == pytest.approx(dijkstra(edges.maximum(edges.T), indices=0)[1])
    np.testing.assert_array_equal(path.coordinates, model.embedding_[path.rows])


def test_other_input(horseshoe, flat):
    expected = mf.Isomap(n_neighbors=8).fit(horseshoe).walk(horseshoe, 0, 1)
    D = cdist(horseshoe, horseshoe)
    for model, X in [
        (mf.Isomap(n_neighbors=8, metric="precomputed").fit(D), D),
        (mf.Isomap(n_neighbors=8).fit(horseshoe), mf.NeighborGraph.build(horseshoe, 8)),
        (mf.Isomap(n_neighbors=8).fit(horseshoe), pd.DataFrame(horseshoe)),
        (flat, mf.NeighborGraph.build(horseshoe, 8)),
    ]:
        np.testing.assert_array_equal(model.walk(X, 0, 1).rows, expected.rows)
    found = mf.Isomap(n_neighbors=8, metric="precomputed").fit(D).walk(D, 0, 1, n_steps=5)
    assert found.data is None
    thin = sparse.csr_array(horseshoe)
    data = mf.PCA(2).fit(thin).walk(thin, 0, 1, 5, n_neighbors=8).data
    np.testing.assert_allclose(data, flat.walk(horseshoe, 0, 1, 5, n_neighbors=8).data)


def test_no_path_between_components(horseshoe, flat):
    X = np.vstack([horseshoe, horseshoe[:50] + 20])
    model = mf.PCA(2).fit(X)
    with pytest.raises(DisconnectedGraphError, match=r"row 0 to row 620.* has 600 of 650 points"):
        model.walk(X, 0, 620)
    with pytest.raises(DisconnectedGraphError, match=r"pass n_neighbors above 10"):
        model.walk(X, 0, 620)


@pytest.mark.parametrize("given", ["data", "distances", "graph"])
def test_components_are_joined_if_the_fit_joined_them(horseshoe, given):
    # Two parts, far apart: the path leaves the first by the edge that is the shortest of all.
    X = np.vstack([horseshoe[2:202], horseshoe[2:202] + np.array([20, 0])])
    D = cdist(X, X)
    gap = D[:200, 200:].min()
    options = {"metric": "precomputed"} if given == "distances" else {}
    model = mf.Isomap(2, n_neighbors=8, **options)
    source = {"data": X, "distances": D, "graph": mf.NeighborGraph.build(X, 8)}[given]
    with pytest.warns(DisconnectedGraphWarning, match="joined by the shortest edges"):
        model.fit(source)
    with pytest.warns(DisconnectedGraphWarning, match="joined by the shortest edges"):
        path = model.walk(source, 5, 250)
    bridge = sparse.csr_array(np.where(np.isclose(D, gap), D, 0))
    edges = kneighbors_graph(X, 8, mode="distance").maximum(bridge)
    assert path.lengths[-1] == pytest.approx(dijkstra(edges.maximum(edges.T), indices=5)[250])
    assert np.diff(path.lengths).max() == pytest.approx(gap)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # within a part nothing has to be joined
        model.walk(source, 5, 120)


def test_rows_that_are_not_embedded_are_avoided(horseshoe):
    X = np.vstack([horseshoe, horseshoe[:50] + 20])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mf.LaplacianEigenmaps(n_neighbors=8, disconnected="largest").fit(X)
    with pytest.raises(ValueError, match="stop=620 is a row that was not embedded"):
        model.walk(X, 0, 620)
    assert np.isfinite(model.walk(X, 0, 1).coordinates).all()


def test_errors(horseshoe, flat):
    with pytest.raises(NotFittedError):
        mf.PCA(2).walk(horseshoe, 0, 1)
    with pytest.raises(ValueError, match="X has 100 rows, but the training data have 600"):
        flat.walk(horseshoe[:100], 0, 1)
    with pytest.raises(ValueError, match="stop=600 must be the index of one of 600"):
        flat.walk(horseshoe, 0, 600)
    with pytest.raises(ValueError, match="start=-1"):
        flat.walk(horseshoe, -1, 5)
    with pytest.raises(ValueError, match="X has 1 features, but PCA is expecting 2"):
        flat.walk(horseshoe[:, :1], 0, 1)
    with pytest.raises(ValueError, match="n_steps=1"):
        flat.walk(horseshoe, 0, 1, n_steps=1)
    K = horseshoe @ horseshoe.T
    with pytest.raises(ValueError, match=r"pass NeighborGraph\.build\(data\)"):
        mf.KernelPCA(2, kernel="precomputed").fit(K).walk(K, 0, 1)


def test_neighbors_of_a_given_graph(horseshoe, flat):
    graph = mf.NeighborGraph.build(horseshoe, 12)
    expected = flat.walk(horseshoe, 0, 1, n_neighbors=5).rows
    np.testing.assert_array_equal(flat.walk(graph, 0, 1, n_neighbors=5).rows, expected)
    with pytest.raises(
        ValueError, match="n_neighbors=200 cannot be cut from a graph built with 12"
    ):
        flat.walk(graph, 0, 1, n_neighbors=200)


def test_the_graph_is_that_of_the_estimator(horseshoe):
    # A radius, and parameters inside two wrappers.
    wide = mf.Isomap(2, radius=0.5).fit(horseshoe).walk(horseshoe, 0, 1)
    graph = mf.NeighborGraph.build(horseshoe, radius=0.5)
    np.testing.assert_array_equal(wide.rows, mf.PCA(2).fit(horseshoe).walk(graph, 0, 1).rows)
    wrapped = mf.ConformalInverse(mf.NonRedundant(mf.LaplacianEigenmaps(metric="manhattan"), 1))
    path = wrapped.fit(horseshoe).walk(horseshoe, 0, 1)
    lengths = np.abs(np.diff(path.data, axis=0)).sum(axis=1)
    np.testing.assert_allclose(np.diff(path.lengths), lengths)


@pytest.mark.parametrize("n_steps", [None, 5])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_the_data_type_is_that_of_the_data(horseshoe, n_steps, convert):
    X = convert(horseshoe.astype(np.float32))
    path = mf.PCA(2).fit(X).walk(X, 0, 1, n_steps)
    assert path.data.dtype == path.coordinates.dtype == np.float32


def test_a_walk_to_the_same_point(horseshoe, flat):
    assert flat.walk(horseshoe, 3, 3).rows.tolist() == [3]
    assert flat.walk(horseshoe, 3, 3, n_steps=4).coordinates.shape == (4, 2)
