"""Metrics that are not finite for some pairs are refused: they would invent neighbors."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import manifoldry as mf
from manifoldry import NeighborGraph
from manifoldry.metrics import trustworthiness
from manifoldry.neighbors.distances import metric_distances

METHODS = [mf.ClassicalMDS, mf.LaplacianEigenmaps, mf.Isomap, mf.DiffusionMaps, mf.LLE, mf.LTSA]
METHODS += [mf.HessianLLE, mf.SNE, mf.SymmetricSNE, mf.TSNE, mf.ElasticEmbedding, mf.MVU]
METHODS = [method for method in METHODS if "metric" in method().get_params()]
# The correlation distance of a constant row is undefined.
UNDEFINED = r"metric='correlation' gives nan as the distance of row \d+ to training row \d+"


@pytest.fixture(name="X")
def with_a_constant_row():
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[7] = 3
    return X


def test_the_graph_refuses_them(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy divides by zero
        with pytest.raises(ValueError, match=UNDEFINED):
            NeighborGraph.build(X, 10, metric="correlation")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_every_estimator_refuses_them(X, method):
    with pytest.raises(ValueError, match=UNDEFINED):
        method(metric="correlation").fit(X)
    model = mf.Isomap(metric="correlation").fit(np.delete(X, 7, axis=0))
    with pytest.raises(ValueError, match=UNDEFINED):
        model.transform(X[7:9])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_functions_that_return_no_distance(X, method, value):
    with pytest.raises(ValueError, match=f"gives {value} as the distance of row 0"):
        method(metric=lambda a, b: value).fit(X[:20])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_measures_of_a_map_refuse_them(X):
    with pytest.raises(ValueError, match=UNDEFINED):
        trustworthiness(X, X[:, :2], n_neighbors=5, metric="correlation")


def test_negative_by_rounding_is_zero():
    """As 1 − x·y is for equal unit vectors."""
    D = metric_distances(np.eye(3), np.eye(3), lambda a, b: (1 - 1e-12) - a @ b)
    assert np.array_equal(D == 0, np.eye(3, dtype=bool))


def test_far_new_points_overflow_with_a_message():
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = mf.ClassicalMDS(metric="manhattan").fit(X)
    with pytest.raises(ValueError, match=r"overflow; check the units"):
        model.transform(np.full((1, 5), 1e200))


def test_metrics_that_do_not_take_sparse_data_are_named():
    X = sparse.csr_array(np.eye(6))
    for build in (NeighborGraph.build, lambda X, **options: mf.ClassicalMDS(**options).fit(X)):
        with pytest.raises(ValueError, match=r"metric='canberra' does not support sparse.*toarray"):
            build(X, metric="canberra")
