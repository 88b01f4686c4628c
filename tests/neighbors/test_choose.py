"""The choice of the neighbor index and its reason."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.neighbors import choose_index
from manifoldry.neighbors.brute import BruteIndex, CosineIndex
from manifoldry.neighbors.choose import GeneralIndex
from manifoldry.neighbors.kdtree import KDTreeIndex


def points(n_features):
    return np.random.default_rng(0).normal(size=(20, n_features))


def some_metric(x, y):
    return abs(x - y).max()


@pytest.mark.parametrize(
    ("X", "metric", "params", "kind", "reason"),
    [
        (points(3), "euclidean", None, KDTreeIndex, "k-d tree: 3 features, at most 12"),
        (points(12), "euclidean", None, KDTreeIndex, "k-d tree: 12 features, at most 12"),
        (
            points(13),
            "euclidean",
            None,
            BruteIndex,
            "blocked matrix products: 13 features, more than 12",
        ),
        (points(3), "l2", {}, KDTreeIndex, "k-d tree: 3 features, at most 12"),
        (points(3), "manhattan", None, KDTreeIndex, "k-d tree: 3 features, at most 12"),
        (points(3), "chebyshev", None, KDTreeIndex, "k-d tree: 3 features, at most 12"),
        (points(3), "minkowski", {"p": 3}, KDTreeIndex, "k-d tree: 3 features, at most 12"),
        (
            points(3),
            "minkowski",
            {"p": 0.5},
            GeneralIndex,
            "all distances in blocks: metric='minkowski' has no faster search",
        ),
        (
            points(30),
            "manhattan",
            None,
            GeneralIndex,
            "all distances in blocks: metric='manhattan' has no faster search",
        ),
        (
            sparse.csr_array(points(3)),
            "euclidean",
            None,
            BruteIndex,
            "blocked matrix products: sparse features",
        ),
        (
            sparse.csr_array(points(3)),
            "manhattan",
            None,
            GeneralIndex,
            "all distances in blocks: metric='manhattan' has no faster search",
        ),
        (
            points(3),
            "cosine",
            None,
            CosineIndex,
            "blocked matrix products: 3 features, all pairs, on the unit sphere: metric='cosine'",
        ),
    ],
)
def test_choice_and_reason(X, metric, params, kind, reason):
    index = choose_index(X, metric, params)
    assert type(index) is kind
    assert index.reason == reason
    assert index.n_reference == 20


def test_a_callable_is_named_in_the_reason():
    index = choose_index(points(3), some_metric)
    assert isinstance(index, GeneralIndex)
    assert "some_metric" in index.reason


@pytest.mark.parametrize(
    ("metric", "params", "p"),
    [
        ("euclidean", None, 2),
        ("minkowski", None, 2),
        ("minkowski", {"p": 1}, 1),
        ("minkowski", {"p": np.inf}, np.inf),
        ("cityblock", None, 1),
        ("chebyshev", None, np.inf),
    ],
)
def test_the_norm_of_the_tree(metric, params, p):
    assert choose_index(points(2), metric, params).p == p


def test_the_reason_survives_restriction():
    for X in (points(3), points(40), sparse.csr_array(points(3))):
        index = choose_index(X)
        assert index.restrict(np.arange(5)).reason == index.reason
