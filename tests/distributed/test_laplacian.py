"""Laplacian eigenmaps and diffusion maps of all rows on workers, against fits in memory."""

import pickle
import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from manifoldry import (
    DiffusionMaps,
    LaplacianEigenmaps,
    NeighborGraph,
    SpectralClustering,
    SpectralEmbedding,
)
from manifoldry.affinity import Entropic
from manifoldry.datasets import make_swiss_roll
from manifoldry.distributed import using_options
from manifoldry.eigen import DistributedLobpcg
from manifoldry.exceptions import (
    ConvergenceWarning,
    DisconnectedGraphError,
    DisconnectedGraphWarning,
)
from manifoldry.neighbors.distributed_graph import DistributedGraph

N = 300
BOUNDS = np.array([0, 0, 90, 200, 200, N])  # two parts are empty


@pytest.fixture(scope="module")
def roll():
    return make_swiss_roll(N, random_state=0).X


@pytest.fixture(scope="module")
def graph(roll):
    return NeighborGraph.build(roll, 12)


def in_parts(graph, X, bounds=BOUNDS):
    return DistributedGraph.of(graph, X, bounds, np.random.default_rng(1).permutation(len(X)))


def in_chunks(X):
    return da.from_array(X, chunks=(110, X.shape[1]))


def assert_same_map(fitted, memory, tolerance=1e-6):
    """The same up to signs, which are equal, too, unless two entries are almost the largest."""
    Y, expected = fitted.embedding_.compute(), memory.embedding_
    scale = np.abs(expected).max(axis=0)
    signs = np.sign((Y * expected).sum(axis=0))
    np.testing.assert_allclose(signs * Y / scale, expected / scale, atol=tolerance)


@pytest.mark.parametrize(
    "estimator",
    [
        LaplacianEigenmaps(3),
        LaplacianEigenmaps(2, normalization="sym", affinity="gaussian"),
        LaplacianEigenmaps(2, normalization="none", affinity="binary"),
        LaplacianEigenmaps(1, affinity=Entropic(4), n_neighbors=9),
        DiffusionMaps(2),
        DiffusionMaps(2, alpha=0.5, t=3),
        DiffusionMaps(2, affinity="gaussian"),
        DiffusionMaps(2, affinity="self_tuning", alpha=1, t=0),
    ],
    ids=repr,
)
def test_is_that_in_memory(estimator, roll, graph):
    memory = clone(estimator).fit(graph)
    fitted = estimator.fit(in_parts(graph, roll))
    np.testing.assert_allclose(fitted.eigenvalues_, memory.eigenvalues_, rtol=1e-9)
    assert_same_map(fitted, memory)
    for name in ("loss_", "alpha_", "gamma_", "transition_eigenvalues_"):
        assert hasattr(fitted, name) == hasattr(memory, name)
        if getattr(memory, name, None) is not None:
            np.testing.assert_allclose(getattr(fitted, name), getattr(memory, name), rtol=1e-9)
    assert "all 300 rows, by exact neighbors" in fitted.fitted_on_
    assert (fitted.component_labels_.compute() == 0).all()


def test_single_precision(roll):
    X = roll.astype(np.float32)
    memory, fitted = LaplacianEigenmaps().fit(X), LaplacianEigenmaps().fit(in_chunks(X))
    assert fitted.embedding_.dtype == np.float32
    assert_same_map(fitted, memory, 1e-5)
    model = fitted.landmark_model_
    np.testing.assert_array_equal(model.transform(X), fitted.embedding_.compute())


def test_fit_to_data(roll):
    data = in_chunks(roll)
    memory = DiffusionMaps(n_neighbors=12).fit(roll)
    fitted = DiffusionMaps(n_neighbors=12).fit(data)
    assert_same_map(fitted, memory)
    assert fitted.embedding_.chunks == ((110, 110, 80), (2,))
    new = roll[:7] + 0.1
    np.testing.assert_allclose(fitted.transform(new), memory.transform(new), rtol=1e-6, atol=1e-7)
    lazy = fitted.transform(da.from_array(new, chunks=(4, 3)))
    np.testing.assert_array_equal(lazy.compute()[:4], fitted.transform(new[:4]))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(new), fitted.transform(new))
    assert fitted.inverse_transform(fitted.transform(new)).shape == new.shape
    assert np.median(fitted.novelty(roll[:50])) < 2
    with pytest.raises(ValueError, match=r"landmark_model_\.pseudotime"):
        fitted.pseudotime(0)


def test_on_workers(client, roll):
    model, X = LaplacianEigenmaps(1, disconnected="largest"), roll[:150]
    fitted = clone(model).fit(in_chunks(X))
    assert_same_map(fitted, model.fit(X))


class Few(LaplacianEigenmaps):
    _landmarks = 120


class FewOfWalk(DiffusionMaps):
    _landmarks = 120


@pytest.mark.parametrize(
    ("estimator", "tolerance"),
    [
        (Few(2), 0.02),
        (Few(2, normalization="none"), 0.02),
        (Few(2, normalization="sym"), 0.2),  # degrees vary from landmark to landmark
        (FewOfWalk(2, t=2), 0.02),
    ],
)
def test_landmarks_place_new_rows(estimator, tolerance):
    angle = np.linspace(0, 4, N)
    X = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    fitted = estimator.fit(in_parts(NeighborGraph.build(X, 10), X))
    model, Y = fitted.landmark_model_, fitted.embedding_.compute()
    assert model.embedding_.shape == (120, 2)
    placed = fitted.transform(X)
    own = (placed == Y).all(axis=1)
    assert own.sum() >= 120
    distances = np.linalg.norm(placed - Y, axis=1)[~own]
    spread = np.sqrt(np.square(Y - Y.mean(axis=0)).sum(axis=1).mean())
    assert 0.9 < fitted.placement_error_ / (np.sqrt(np.mean(distances**2)) / spread) < 1.1
    assert fitted.placement_error_ < tolerance
    assert "120 landmarks, with an error of" in fitted.fitted_on_
    np.testing.assert_array_equal(fitted.eigenvalues_, model.eigenvalues_)


def test_landmarks_do_not_depend_on_parts(roll, graph):
    first = Few(1).fit(in_parts(graph, roll)).landmark_model_
    other = Few(1).fit(in_parts(graph, roll, np.array([0, 300]))).landmark_model_
    np.testing.assert_allclose(first.embedding_, other.embedding_, atol=1e-8)


@pytest.fixture(scope="module")
def apart(roll):
    """Two components, the second of which is a part of the roll somewhere else."""
    X = np.concatenate([roll[:200], roll[200:290] / 2 + 200])
    return X[np.random.default_rng(0).permutation(len(X))]


@pytest.mark.parametrize("policy", ["separate", "largest"])
@pytest.mark.parametrize(
    "estimator", [LaplacianEigenmaps(2, n_neighbors=9), DiffusionMaps(2, n_neighbors=9, alpha=1)]
)
def test_largest_component(estimator, policy, apart):
    memory = clone(estimator).set_params(disconnected="largest")
    with warnings.catch_warnings(action="ignore", category=DisconnectedGraphWarning):
        memory.fit(apart)
    estimator = clone(estimator).set_params(disconnected=policy)
    with pytest.warns(DisconnectedGraphWarning, match=r"2 connected components .of 200, 90 points"):
        fitted = estimator.fit(in_chunks(apart))
    inside = np.isfinite(memory.embedding_[:, 0])
    assert inside.sum() == 200
    Y, expected = fitted.embedding_.compute(), memory.embedding_
    assert np.isnan(Y[~inside]).all()
    scale = np.abs(expected[inside]).max(axis=0)
    np.testing.assert_allclose(
        np.abs(Y[inside]) / scale, np.abs(expected[inside]) / scale, atol=1e-6
    )
    np.testing.assert_array_equal(fitted.component_labels_.compute(), memory.component_labels_)
    assert "the 200 connected of 290 rows" in fitted.fitted_on_
    assert np.isfinite(fitted.transform(apart[inside] + 0.01)).all()


def test_disconnected_graphs_are_refused():
    X = np.concatenate([np.arange(20.0), 1000 + np.arange(20.0)])[:, None]
    with pytest.raises(DisconnectedGraphError, match=r"2 connected components .of 20, 20 points"):
        LaplacianEigenmaps(1, n_neighbors=3, disconnected="error").fit(in_chunks(X))


def test_joined_components(apart):
    model = LaplacianEigenmaps(2, n_neighbors=9, affinity="binary", disconnected="join")
    with warnings.catch_warnings(action="ignore", category=DisconnectedGraphWarning):
        memory = clone(model).fit(apart)
    with pytest.warns(DisconnectedGraphWarning, match="they were joined by the shortest edges"):
        fitted = model.fit(in_chunks(apart))
    np.testing.assert_allclose(fitted.eigenvalues_, memory.eigenvalues_, rtol=1e-9)
    assert_same_map(fitted, memory)


def test_too_many_points_to_join(monkeypatch, apart):
    monkeypatch.setattr("manifoldry.neighbors.distributed_join.MOST_OUTSIDE", 50)
    with pytest.raises(DisconnectedGraphError, match="disconnected='largest'"):
        LaplacianEigenmaps(2, n_neighbors=9, disconnected="join").fit(in_chunks(apart))


def test_solver_with_other_options(roll, graph):
    solver = DistributedLobpcg(max_iter=2)
    with pytest.warns(ConvergenceWarning, match="DistributedLobpcg"):
        fitted = LaplacianEigenmaps(2, eigen_solver=solver).fit(in_parts(graph, roll))
    assert "2 iterations" in fitted.solver_


def test_weights_that_vanish_are_the_cause():
    X = np.concatenate([np.arange(20.0), 40 + np.arange(20.0)])[:, None]
    model = LaplacianEigenmaps(1, n_neighbors=21, affinity="gaussian", gamma=1.0)
    with pytest.warns(DisconnectedGraphWarning, match="affinity, but not the neighbor graph"):
        model.fit(in_chunks(X))


def test_a_failed_fit_leaves_the_former_one(roll):
    model = DiffusionMaps(2, affinity="gaussian").fit(in_chunks(roll))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="coincides with all its neighbors"):
        model.fit(da.zeros((100, 3), chunks=(40, 3)))
    assert vars(model) == before


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LaplacianEigenmaps(300), "n_components=300 must be at most"),
        (LaplacianEigenmaps(n_neighbors=300), "n_neighbors=300 must be less than"),
        (LaplacianEigenmaps(n_neighbors=13), "cannot be cut from a graph built with 12"),
        (LaplacianEigenmaps(metric="cosine"), "differs from metric='euclidean'"),
        (LaplacianEigenmaps(radius=1.0), "radius=1.0 is not used"),
        (LaplacianEigenmaps(normalization="none of these"), "normalization="),
        (LaplacianEigenmaps(eigen_solver="dense"), "DistributedLobpcg, or fit a sample"),
        (DiffusionMaps(alpha=-1.0), "alpha=-1.0"),
        (DiffusionMaps(t=-1.0), "t=-1.0"),
        (DiffusionMaps(alpha=1e3), "alpha=1000.0 is too large"),
    ],
    ids=repr,
)
def test_wrong_parameters(estimator, message, roll, graph):
    with pytest.raises(ValueError, match=message):
        estimator.fit(in_parts(graph, roll))


def test_too_small_a_component():
    X = (np.arange(12) // 3 * 100 + np.arange(12) % 3).astype(float)[:, None]
    model = LaplacianEigenmaps(5, n_neighbors=2, disconnected="largest")
    with (
        pytest.warns(DisconnectedGraphWarning),
        pytest.raises(ValueError, match="n_components=5 must be less than the 3 points"),
    ):
        model.fit(da.from_array(X, chunks=(5, 1)))


def test_small_data_in_memory(roll):
    """With as many landmarks as rows, components are embedded separately, too."""
    X = np.concatenate([roll[:200], roll[200:] + 1000.0])
    model = LaplacianEigenmaps(2, n_neighbors=8, disconnected="separate")
    with pytest.warns(DisconnectedGraphWarning):
        memory = clone(model).fit(X)
    with using_options(landmarks=N), pytest.warns(DisconnectedGraphWarning):
        model.fit(in_chunks(X))
    assert model.fitted_on_ == "all rows, on one worker"
    np.testing.assert_allclose(model.embedding_, memory.embedding_, atol=1e-12)


def test_landmarks_are_for_data(roll, graph):
    with using_options(landmarks=100), pytest.raises(ValueError, match="landmarks=100"):
        LaplacianEigenmaps().fit(in_parts(graph, roll))
    with using_options(landmarks=100):
        assert "100 of 300 rows" in LaplacianEigenmaps().fit(in_chunks(roll)).fitted_on_


@pytest.mark.parametrize(
    "estimator",
    [
        SpectralClustering(2),
        SpectralEmbedding(n_neighbors=10),
        LaplacianEigenmaps(radius=5.0),
        LaplacianEigenmaps(metric="manhattan"),
    ],
)
def test_others_are_fitted_to_landmarks(estimator, roll):
    assert estimator.fit(in_chunks(roll)).fitted_on_ == "all rows, on one worker"


def test_graphs_are_refused_by_others(roll, graph):
    with pytest.raises(TypeError, match=r"SpectralClustering.fit takes data"):
        SpectralClustering(2).fit(in_parts(graph, roll))
