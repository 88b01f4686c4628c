"""Isomap and landmark Isomap: identities, recovery, agreement with scikit-learn."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn import manifold
from sklearn.neighbors import kneighbors_graph

from manifoldry import ClassicalMDS, Isomap, NeighborGraph
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.metrics import procrustes


def test_agrees_with_scikit_learn():
    X = make_swiss_roll(400, random_state=0).X
    ours = Isomap(3, n_neighbors=8).fit(X)
    theirs = manifold.Isomap(n_neighbors=8, n_components=3).fit_transform(X)
    assert subspace_angles(ours.embedding_, theirs).max() < 1e-6
    np.testing.assert_allclose(
        np.linalg.norm(ours.embedding_, axis=0), np.linalg.norm(theirs, axis=0), rtol=1e-8
    )


def test_all_neighbors_give_classical_scaling():
    X = np.random.default_rng(0).normal(size=(40, 5))
    ours = Isomap(3, n_neighbors=39).fit_transform(X)
    np.testing.assert_allclose(ours, ClassicalMDS(3).fit_transform(X), atol=1e-9)


def test_all_points_as_landmarks_give_isomap():
    X = make_swiss_roll(200, random_state=0).X
    plain, landmarks = Isomap().fit(X), Isomap(n_landmarks=200).fit(X)
    np.testing.assert_allclose(landmarks.embedding_, plain.embedding_, atol=1e-9)


def test_landmark_scaling_is_nystroem():
    """E1.2: triangulation by mean squared distances is Gower's formula."""
    X = make_swiss_roll(300, random_state=0).X
    model = Isomap(n_landmarks=40).fit(X)
    D2 = model.extension_.geodesics.distances**2  # (n, m)
    B = D2[model.landmarks_]
    H = np.eye(40) - 1 / 40
    values, V = np.linalg.eigh(-0.5 * H @ B @ H)
    values, V = values[::-1][:2], V[:, ::-1][:, :2]
    expected = 0.5 * (B.mean(axis=1) - D2) @ V / np.sqrt(values)
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(
        model.embedding_, expected * signs, atol=1e-10 * np.abs(expected).max()
    )


def test_rolls_are_recovered_and_better_with_more_points():
    rolls = [make_swiss_roll(n, random_state=0) for n in (500, 1000, 1500)]
    maps = [Isomap(n_neighbors=10).fit_transform(roll.X) for roll in rolls]
    truths = [roll.coordinates for roll in rolls]
    errors = [procrustes(Y, truth).error for Y, truth in zip(maps, truths, strict=True)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.08
    assert errors[2] < 0.05
    assert procrustes(maps[1], truths[1], "rigid").error < 0.10


def test_a_flat_sheet_is_better_than_a_rolled_one():
    flat, coordinates = make_strip(1000, random_state=0)
    rolled, truth = make_swiss_roll(1000, random_state=0)
    on_flat = procrustes(Isomap().fit_transform(flat), coordinates).error
    assert on_flat < procrustes(Isomap().fit_transform(rolled), truth).error


def test_landmarks_are_enough_and_more_are_better():
    X, truth = make_swiss_roll(1500, random_state=0)
    few, many = (procrustes(Isomap(n_landmarks=m).fit_transform(X), truth).error for m in (8, 200))
    assert many < few
    assert many < 0.08


def test_the_residual_variance_stops_falling_at_the_dimension():
    """E4.5: two coordinates explain a roll."""
    model = Isomap(5, n_neighbors=10).fit(make_swiss_roll(800, random_state=0).X)
    falls = -np.diff(model.residual_variance_)
    assert falls[0] > 20 * np.abs(falls[1:]).max()


def test_the_residual_variance_is_that_of_tenenbaum():
    """1 − R² of geodesic and embedded distances, for each number of coordinates."""
    X = make_swiss_roll(200, random_state=0).X
    model = Isomap(3, n_neighbors=8).fit(X)
    edges = kneighbors_graph(X, 8, mode="distance")
    geodesic = shortest_path(edges, directed=False).ravel()
    for k, found in enumerate(model.residual_variance_, start=1):
        Y = model.embedding_[:, :k]
        r = np.corrcoef(geodesic, cdist(Y, Y).ravel())[0, 1]
        assert found == pytest.approx(1 - r**2, abs=1e-9)


@pytest.mark.parametrize("landmarks", [None, 60])
def test_the_extension_is_exact_at_training_points(landmarks):
    X = make_swiss_roll(300, random_state=0).X
    model = Isomap(n_landmarks=landmarks).fit(X)
    assert model.extension_error(X) < 1e-7


def test_new_points_land_where_they_belong():
    X, truth = make_swiss_roll(1500, random_state=0)
    model = Isomap().fit(X[:1000])
    everyone = np.vstack([model.embedding_, model.transform(X[1000:])])
    inside = procrustes(model.embedding_, truth[:1000]).error
    assert procrustes(everyone, truth).error < 1.3 * inside


def test_policies_for_disconnected_graphs():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 30.0])
    with pytest.warns(DisconnectedGraphWarning, match="joined by the shortest edges"):
        joined = Isomap(n_neighbors=8).fit(X)
    assert (joined.component_labels_ == 0).all()
    with pytest.warns(DisconnectedGraphWarning, match="each was embedded separately"):
        apart = Isomap(n_neighbors=8, disconnected="separate").fit(X)
    for model in (joined, apart):
        assert procrustes(model.embedding_, X, "rigid").error < 0.1
    new = X[[0, 70]] + 0.1
    np.testing.assert_allclose(apart.transform(new) - apart.embedding_[[0, 70]], 0, atol=1.0)
    with pytest.warns(DisconnectedGraphWarning):
        largest = Isomap(n_neighbors=8, disconnected="largest").fit(X)
    assert np.isnan(largest.embedding_[60:]).all()
    with pytest.raises(DisconnectedGraphError):
        Isomap(n_neighbors=8, disconnected="error").fit(X)


def test_a_given_graph_and_distances_give_the_same():
    X = make_swiss_roll(200, random_state=0).X
    plain = Isomap(n_neighbors=7).fit_transform(X)
    graph = NeighborGraph.build(X, 7)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.testing.assert_allclose(Isomap().fit_transform(graph), plain, atol=1e-9)
    given = Isomap(n_neighbors=7, metric="precomputed").fit_transform(distances)
    np.testing.assert_allclose(given, plain, atol=1e-8)
    sparse = Isomap(metric="precomputed").fit_transform(graph.matrix())
    np.testing.assert_allclose(sparse, plain, atol=1e-9)


def test_bad_landmarks():
    X = make_swiss_roll(50, random_state=0).X
    with pytest.raises(ValueError, match="n_landmarks=60 must be at most n_samples=50"):
        Isomap(n_landmarks=60).fit(X)
    with pytest.raises(ValueError, match="n_landmarks=2 must be at least 3"):
        Isomap(n_landmarks=2).fit(X)
    with pytest.raises(ValueError, match="landmarks='best' must be one of 'maxmin', 'random'"):
        Isomap(landmarks="best").fit(X)


@pytest.mark.parametrize("landmarks", ["maxmin", "random"])
@pytest.mark.parametrize("count", [3, 4, 6])
def test_each_component_has_enough_landmarks(landmarks, count):
    """A component with fewer than three landmarks would become a line or a point."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), rng.normal(size=(100, 2)) + 50.0])
    model = Isomap(n_landmarks=count, landmarks=landmarks, disconnected="separate")
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        Y = model.fit_transform(X)
    for component in (slice(0, 200), slice(200, 300)):
        assert Y[component].std(axis=0).min() > 0.3
    assert len(model.landmarks_) >= 6


@pytest.mark.parametrize("landmarks", ["maxmin", "random"])
def test_landmarks_are_in_proportion_to_the_components(landmarks):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), rng.normal(size=(200, 2)) + 50.0])
    model = Isomap(n_landmarks=30, landmarks=landmarks, disconnected="separate")
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        model.fit(X)
    assert (model.landmarks_ < 100).sum() == 10
    assert (model.landmarks_ >= 100).sum() == 20


def test_too_many_geodesics_name_the_landmarks(free_memory):
    X = make_strip(300, random_state=0).X
    free_memory(2**20)
    with pytest.raises(MemoryError, match="pass n_landmarks"):
        Isomap().fit(X)
    with pytest.raises(MemoryError, match="a smaller n_landmarks"):
        Isomap(n_landmarks=250).fit(X)
    Isomap(n_landmarks=20).fit(X)
