"""The metric fit: exact if there is an exact solution, robust to misplaced points."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from manifoldry import LTSA, HessianLLE, NeighborGraph
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.metrics import procrustes
from manifoldry.spectral.metric_fit import MetricFit, _least_squares_metric, _squared_lengths


def fitted(Y, graph):
    return Y @ MetricFit(graph).fit(Y, np.arange(len(Y)))


def test_any_linear_map_of_a_sheet_is_undone():
    X, _ = make_strip(300, random_state=0)
    Y = X @ np.array([[3.0, 1.0], [0.2, 0.5]])
    assert procrustes(fitted(Y, NeighborGraph.build(X, 8)), X, "rigid").error < 1e-10


def test_edges_need_not_be_isotropic():
    """On a lattice four times denser along one axis, all nearest edges have that direction."""
    a, b = np.meshgrid(np.arange(40) * 0.25, np.arange(10.0))
    X = np.column_stack([a.ravel(), b.ravel()])
    Y = X * [0.3, 2.0]
    assert procrustes(fitted(Y, NeighborGraph.build(X, 12)), X, "rigid").error < 1e-10


def test_a_component_of_fewer_points_than_coordinates():
    """Of scaled letters, three points were connected to no others."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[:3] += 100
    graph = NeighborGraph.build(X, 2)
    Y = X.copy()
    A = MetricFit(graph).fit(Y, np.arange(3))
    assert A.shape == (5, 5)
    lengths = [np.linalg.norm(Z[[0, 0, 1]] - Z[[1, 2, 2]], axis=1) for Z in (Y @ A, X)]
    np.testing.assert_allclose(*lengths, rtol=1e-6)


def test_misplaced_points_do_not_matter():
    """One point in twenty is a thousand times too far away; the others keep their shape."""
    X, _ = make_strip(400, random_state=0)
    rng = np.random.default_rng(0)
    Y = X @ np.array([[3.0, 1.0], [0.2, 0.5]])
    lost = rng.choice(400, 20, replace=False)
    Y[lost] += 1000 * rng.normal(size=(20, 2))
    A = MetricFit(NeighborGraph.build(X, 8)).fit(Y, np.arange(400))
    kept = np.setdiff1d(np.arange(400), lost)
    shape = procrustes(Y[kept] @ A, X[kept], "similarity")
    assert shape.error < 0.05


def test_distances_do_not_exceed_paths():
    """Nearest neighbors almost coincide here, so edges alone would make the embedding huge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    graph = NeighborGraph.build(X, 8)
    Y = np.repeat(rng.normal(size=(20, 2)), 10, axis=0) + 1e-6 * rng.normal(size=(200, 2))
    wide = fitted(Y, graph).std(axis=0).max()
    assert wide < 10 * X.std()


@pytest.mark.parametrize("method", [LTSA, HessianLLE])
@pytest.mark.parametrize(("n", "n_seeds"), [(1000, 10), (2000, 2)])
def test_rolls_are_recovered_to_scale_for_all_seeds(method, n, n_seeds):
    errors = []
    for seed in range(n_seeds):
        X, truth = make_swiss_roll(n, random_state=seed)
        errors.append(procrustes(method().fit_transform(X), truth, "rigid").error)
    assert max(errors) < 0.05


def test_only_the_nearest_edges_count():
    """Longer edges are chords, shorter than the path along a bent sheet."""
    X, truth = make_strip(400, aspect=4.0, curl=1.5 * np.pi, random_state=0)
    graph = NeighborGraph.build(X, 60)
    assert procrustes(fitted(truth, graph), truth, "rigid").error < 2e-3


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("method", [LTSA, HessianLLE])
@pytest.mark.parametrize(
    ("X", "options"),
    [
        (load_digits().data[:600], {"n_neighbors": 12}),
        (load_digits().data[:1000], {"n_components": 3, "n_neighbors": 14}),
        (load_wine().data / load_wine().data.std(axis=0), {"n_components": 3, "n_neighbors": 14}),
    ],
    ids=["digits", "digits in 3", "wine in 3"],
)
def test_no_coordinate_is_lost(method, X, options):
    spread = method(**options).fit_transform(X).std(axis=0)
    assert spread.min() > 1e-3 * spread.max()
    assert spread.max() < 100 * X.std()


def test_lengths_that_no_form_gives():
    """Two edges of length one whose sum has length three: the best approximation.

    Cutting off the negative part of the plain answer, which has P₁₂ = 3.5, is no minimum.
    """
    steps = np.array([[1.0, 0.0], [0.0, 1.0], [1 / 3, 1 / 3]])
    P = _least_squares_metric(steps, np.ones(3))
    assert np.linalg.eigvalsh(P)[0] >= -1e-12
    values, vectors = np.linalg.eigh([[1, 3.5], [3.5, 1]])
    cut = (vectors * np.maximum(values, 0)) @ vectors.T
    errors = [np.square(_squared_lengths(steps, form) - 1).sum() for form in (P, cut)]
    assert errors[0] < 0.5 * errors[1]
    # By symmetry the best form is p in all its entries: 2(p − 1)² + (4p/9 − 1)² is least.
    np.testing.assert_allclose(P, (2 + 4 / 9) / (2 + 16 / 81), rtol=1e-8)


def test_misplaced_points_are_reported():
    """Seven points at an end of this roll are connected to the others by two."""
    X, truth = make_swiss_roll(500, aspect=4, random_state=0)
    with pytest.warns(DisconnectedGraphWarning, match="7 of 500 points are connected"):
        Y = LTSA(2, n_neighbors=5).fit_transform(X)
    near = np.linalg.norm(Y - np.median(Y, axis=0), axis=1) < 1000
    assert near.sum() == 493
    assert procrustes(Y[near], truth[near], "rigid").error < 0.1


def test_edges_whose_squares_underflow_count_as_zero():
    """Three points among others that are 1e-160 apart: their quotients would overflow."""
    Y = np.random.default_rng(0).uniform(size=(60, 2))
    X = Y.copy()
    X[:3] = np.array([[0.0, 0.0], [1e-160, 0.0], [0.0, 1e-160]])
    Y[:3] = np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 0.01]])
    with np.errstate(over="raise"):
        Z = fitted(Y, NeighborGraph.build(X, 8))
    lengths = np.linalg.norm(np.diff(Z[3:], axis=0), axis=1)
    expected = np.linalg.norm(np.diff(X[3:], axis=0), axis=1)
    np.testing.assert_allclose(lengths, expected, rtol=0.05)


def test_paths_between_identical_rows_have_no_length():
    """Their distance on the map is not infinitely many times too long."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, 2)), 5, axis=0)
    with np.errstate(all="raise", under="ignore"):
        stretch = MetricFit(NeighborGraph.build(X, 8))._stretch(
            rng.normal(size=(15, 2)), np.arange(15)
        )
    assert 0 < stretch.max() < 100
