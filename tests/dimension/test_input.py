"""Unusual and invalid input: a correct result or a clear error."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import manifoldry
from manifoldry.dimension import (
    correlation_dimension,
    estimate_dimension,
    gram_rank,
    local_pca,
    maximum_likelihood,
    pca_dimension,
    residual_variance_elbow,
    scale_profile,
    two_nn,
)
from manifoldry.neighbors import NeighborGraph

from .conftest import cube


def test_kinds_of_input(method, sheet):
    plain = float(method(sheet))
    sparse_sheet = sparse.csr_array(sheet)
    for given in (sheet.tolist(), pd.DataFrame(sheet), np.asfortranarray(sheet), sparse_sheet):
        assert abs(float(method(given)) - plain) < 1e-7
    assert abs(float(method(sheet.astype(np.float32))) - plain) < 1e-3


def test_graph_in_place_of_data(method, sheet):
    graph = NeighborGraph.build(sheet, 20)
    ours, plain = method(graph), method(sheet)
    assert float(ours) == float(plain)
    if plain.per_point is not None:
        assert np.array_equal(ours.per_point, plain.per_point)


@pytest.mark.parametrize("make", [lambda X: X, lambda X: NeighborGraph.build(X, 40)])
def test_duplicates_count_once(method, sheet, make):
    plain = method(sheet)
    repeated = np.concatenate([sheet, sheet[:60]])
    found = method(make(repeated))
    assert abs(float(found) - float(plain)) < 1e-9
    if plain.per_point is not None:
        np.testing.assert_allclose(found.per_point[:300], plain.per_point)
        np.testing.assert_allclose(found.per_point[300:], plain.per_point[:60])


def test_input_is_not_modified(method, sheet):
    X = sheet.copy()
    method(X)
    assert np.array_equal(X, sheet)


def test_results_pickle(method, sheet):
    found = method(sheet)
    again = pickle.loads(pickle.dumps(found))
    assert (again.value, again.value.low, again.note) == (found.value, found.value.low, found.note)


def test_ten_points(method):
    """A rough estimate without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = method(cube(2, 10, seed=5))
    assert 0.5 < float(found) < 6
    assert found.value.low <= float(found) <= found.value.high


@pytest.mark.parametrize("n", [4, 5, 6])
def test_very_few_points(method, n):
    found = method(cube(2, n, seed=1))
    assert np.isfinite(float(found))


def test_rounded_values_and_a_lattice(method):
    side = np.arange(15.0)
    X = np.column_stack([g.ravel() for g in np.meshgrid(side, side)])
    if method is two_nn:
        with pytest.raises(ValueError, match="neighbors of 100% of the points are equally distant"):
            method(X)
    else:
        assert 1.2 < float(method(X)) < (5 if method is correlation_dimension else 3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((5, 2), np.nan), "NaN"),
        ([[1.0, np.inf], [2.0, 1.0], [0.0, 0.0], [3.0, 4.0]], "infinity"),
        (np.empty((0, 3)), r"0 sample\(s\)"),
        (np.ones((1, 3)), r"1 sample\(s\).*minimum of 2"),
        (np.ones(9), "Expected 2D array"),
        (np.ones((9, 2)), r"1 distinct rows \(n_samples=9\).* at least 4"),
        (np.ma.masked_less(np.arange(20.0).reshape(10, 2), 3), "masked cells"),
    ],
)
def test_invalid_data(method, X, message):
    with pytest.raises(ValueError, match=message):
        method(X)


def test_distances_whose_squares_underflow(method, sheet):
    X = sheet.copy()
    X[:2] = X[0] * [1, 1, 1, 0]
    X[1, 3] = 1e-200
    assert abs(float(method(X)) - float(method(sheet))) < 0.3


def test_options_out_of_range(sheet):
    with pytest.raises(ValueError, match="fit='best' must be one of 'line', 'likelihood'"):
        two_nn(sheet, fit="best")
    with pytest.raises(ValueError, match="discard=1 must be less than 1"):
        two_nn(sheet, discard=1.0)
    with pytest.raises(
        ValueError, match=r"discard=0 keeps 300 of 300 ratios, but .* between 2 and 299"
    ):
        two_nn(sheet, discard=0)
    with pytest.raises(ValueError, match="n_neighbors=300 must be between 3 and 299"):
        local_pca(sheet, n_neighbors=300)
    with pytest.raises(ValueError, match=r"n_neighbors\[0\]=2 must be at least 3"):
        maximum_likelihood(sheet, n_neighbors=(2, 5))
    with pytest.raises(ValueError, match="must be ascending"):
        maximum_likelihood(sheet, n_neighbors=(9, 5))
    with pytest.raises(ValueError, match="must be ascending"):
        correlation_dimension(sheet, n_neighbors=(9, 9))
    with pytest.raises(ValueError, match=r"fraction=1\.5 must be at most 1"):
        pca_dimension(sheet, fraction=1.5)
    with pytest.raises(ValueError, match="fraction=0 must be greater than 0"):
        local_pca(sheet, fraction=0)
    with pytest.raises(ValueError, match="n_components=300 must be at most 299"):
        residual_variance_elbow(sheet, n_components=300)
    with pytest.raises(TypeError, match="LaplacianEigenmaps has no computed_eigenvalues_"):
        gram_rank(manifoldry.LaplacianEigenmaps().fit(sheet))
    with pytest.raises(TypeError, match="random_state='seven' must be a whole number"):
        correlation_dimension(sheet, random_state="seven")


def test_graph_between_two_data_sets(method, sheet):
    graph = NeighborGraph.build(sheet, 20)
    with pytest.raises(ValueError, match="5 query points and 300 reference points"):
        method(graph.query(sheet[:5] + 0.1)[0])


def test_a_graph_with_too_few_neighbors(sheet):
    few = NeighborGraph.build(sheet, 2)
    assert float(two_nn(few)) == float(two_nn(sheet))
    with pytest.raises(ValueError, match=r"at most 2 distinct .* at least 3 are needed; build it"):
        maximum_likelihood(few)
    with pytest.raises(ValueError, match=r"n_neighbors=3 must be between 2 and 2 \(the graph"):
        correlation_dimension(few, n_neighbors=(1, 3))


def test_a_graph_whose_neighbors_are_mostly_duplicates(sheet):
    """Of 20 neighbors 3 are duplicates of the point, and the others are only 5 distinct points."""
    graph = NeighborGraph.build(np.repeat(sheet, 4, axis=0), 20)
    five = maximum_likelihood(sheet, n_neighbors=(3, 5))
    assert float(maximum_likelihood(graph)) == pytest.approx(float(five), rel=1e-9)
    assert float(local_pca(graph)) == pytest.approx(float(local_pca(sheet, n_neighbors=5)))
    assert estimate_dimension(graph).skipped == {}


def test_neighbors_that_only_some_points_have(sheet):
    """Most points have eight duplicates, so that few have twenty distinct neighbors."""
    graph = NeighborGraph.build(np.concatenate([sheet, np.repeat(sheet[:200], 8, axis=0)]), 30)
    found = maximum_likelihood(graph)
    assert np.isfinite(found.per_point).mean() > 0.5
    assert float(found) == pytest.approx(2, abs=0.5)


def test_a_simplex_has_no_finite_dimension():
    with pytest.raises(ValueError, match="all 20 nearest neighbors of each point are equally"):
        maximum_likelihood(np.eye(50))


def test_no_more_directions_than_features():
    """The effective dimension of a simplex, whose points are all equidistant, is unbounded."""
    assert float(local_pca(np.eye(30))) == 29
    assert float(local_pca(np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 15)))) == 15


def test_ratios_that_are_one_but_for_rounding():
    turn = 2 * np.pi * np.arange(60) / 60
    with pytest.raises(ValueError, match="of 100% of the points are equally distant"):
        two_nn(np.column_stack([np.cos(turn), np.sin(turn)]))


def test_graph_of_distances_only(sheet):
    """Methods that need only neighbors work; methods that need points raise an error."""
    D = np.linalg.norm(sheet[:, None] - sheet[None], axis=2)
    graph = NeighborGraph.build(D, 20, metric="precomputed")
    for method in (two_nn, maximum_likelihood, residual_variance_elbow):
        assert float(method(graph)) == pytest.approx(float(method(sheet)), rel=1e-9)
    for method in (correlation_dimension, local_pca, pca_dimension):
        with pytest.raises(ValueError, match=r"needs the points.*metric='precomputed'"):
            method(graph)
    report = estimate_dimension(graph)
    assert report.dimension == 2
    assert "needs the points" in report.skipped["local_pca"]
    assert "needs the points" in str(report)
    with pytest.raises(KeyError, match="local_pca was skipped"):
        report["local_pca"]
    assert len(scale_profile(graph).values) == 4  # k = 1, 2, 4, 8 of 20 neighbors


def test_a_radius_graph(sheet):
    wide = NeighborGraph.build(sheet, radius=0.6)
    assert float(two_nn(wide)) == pytest.approx(float(two_nn(sheet)), rel=0.05)
    found = maximum_likelihood(wide)
    assert np.isfinite(float(found))


def test_equally_distant_nearest_neighbors_among_farther_ones():
    """Simplices of eleven points: the ten nearest neighbors of a point are equally distant."""
    X = np.vstack([np.hstack([np.eye(11), np.full((11, 1), 9.0**i)]) for i in range(3)])
    with pytest.raises(ValueError, match=r"all 10 nearest neighbors of each.*larger n_neighbors"):
        maximum_likelihood(X, n_neighbors=(5, 15))
