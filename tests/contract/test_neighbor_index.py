"""Contract of all neighbor indices, checked against all distances and a stable sort."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.device import using_device
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.brute import BruteIndex, CosineIndex
from manifoldry.neighbors.choose import ApproximateIndex, GeneralIndex
from manifoldry.neighbors.kdtree import KDTreeIndex
from manifoldry.neighbors.precomputed import DenseDistances, SparseDistances


def grid(rng):
    """Integer coordinates: distances are exact, most are tied, and some points coincide."""
    return rng.integers(0, 4, size=(90, 3)).astype(float)


def axes(rng):
    """Directions along the axes: cosine distances are exactly 0, 1 or 2."""
    sign, size = rng.choice([-1.0, 1.0], 90), 2.0 ** rng.integers(-3, 4, 90)
    return np.eye(3)[rng.integers(0, 3, 90)] * (sign * size)[:, None]


def as_data(Q, X, metric):
    return Q


def as_sparse_data(Q, X, metric):
    return sparse.csr_array(Q)


def as_distances(Q, X, metric):
    return cdist(Q, X, metric)


def as_sparse_distances(Q, X, metric):
    """All distances in a sparse matrix, including explicit zeros."""
    D = cdist(Q, X, metric)
    n_query, n = D.shape
    indptr = np.arange(n_query + 1) * n
    return sparse.csr_array((D.ravel(), np.tile(np.arange(n), n_query), indptr), shape=D.shape)


def difference(x, y):
    return abs(x - y).sum()


@dataclass(frozen=True)
class Case:
    """An index, its queries and the reference metric."""

    name: str
    build: Callable[[Any], NeighborIndex]
    metric: Any = "euclidean"
    ask: Callable[..., Any] = as_data
    tied: Callable[..., Any] = grid
    device: str | None = None

    def of(self, X):
        return self.build(X)

    def rows(self, Q, X):
        return self.ask(Q, X, self.metric)

    def oracle(self, Q, X):
        return cdist(Q, X, self.metric)


# Add a line here for each new index.
CASES = [
    Case("tree", lambda X: KDTreeIndex(X, "")),
    Case("tree-manhattan", lambda X: KDTreeIndex(X, "", p=1.0), "cityblock"),
    Case("tree-chebyshev", lambda X: KDTreeIndex(X, "", p=np.inf), "chebyshev"),
    Case("brute", lambda X: BruteIndex(X, "")),
    # Only reference_neighbors is approximate; queries are exact but use single precision first.
    Case("approximate", lambda X: ApproximateIndex(X, "")),
    Case("brute-sparse", lambda X: BruteIndex(sparse.csr_array(X), ""), ask=as_sparse_data),
    Case("cosine", lambda X: CosineIndex.of(X, ""), "cosine", tied=axes),
    Case(
        "cosine-sparse",
        lambda X: CosineIndex.of(sparse.csr_array(X), ""),
        "cosine",
        as_sparse_data,
        axes,
    ),
    Case("general", lambda X: GeneralIndex(X, "canberra", ""), "canberra"),
    Case("general-callable", lambda X: GeneralIndex(X, difference, ""), difference),
    Case("dense-distances", lambda X: DenseDistances(len(X)), ask=as_distances),
    Case("sparse-distances", lambda X: SparseDistances(len(X)), ask=as_sparse_distances),
    Case("brute-emulated", lambda X: BruteIndex(X, ""), device="emulated"),
    Case("brute-cuda", lambda X: BruteIndex(X, ""), device="cuda"),
    Case("cosine-emulated", lambda X: CosineIndex.of(X, ""), "cosine", as_data, axes, "emulated"),
    Case("cosine-cuda", lambda X: CosineIndex.of(X, ""), "cosine", as_data, axes, "cuda"),
]
COORDINATES = [case for case in CASES if case.ask in (as_data, as_sparse_data)]

every_index = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_index_of_points = pytest.mark.parametrize("case", COORDINATES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def device(request):
    """The device of the case, which the test uses; skipped if there is none."""
    case = getattr(request.node, "callspec", None) and request.node.callspec.params.get("case")
    name = None if case is None else case.device
    with using_device(name and request.getfixturevalue(name)):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def data(rng):
    """Reference points in general position, and new ones."""
    return rng.normal(size=(70, 4)) + 0.5, rng.normal(size=(23, 4)) + 0.5


def nearest_oracle(D, k):
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


def within_oracle(D, radius):
    """Neighbors of each row as (indices, distances), sorted by distance, ties by index."""
    order = np.argsort(D, axis=1, kind="stable")
    lists = [row[keep[row]] for row, keep in zip(order, radius >= D, strict=True)]
    return lists, [D[i, row] for i, row in enumerate(lists)]


def rows_of(edges):
    cuts = edges.indptr[1:-1]
    return np.split(edges.indices, cuts), np.split(edges.distances, cuts)


def assert_edges(edges, lists, distances, exact=False):
    np.testing.assert_array_equal(np.diff(edges.indptr), [len(row) for row in lists])
    np.testing.assert_array_equal(edges.indices, np.concatenate(lists))
    expected = np.concatenate(distances)
    np.testing.assert_allclose(edges.distances, expected, rtol=1e-12, atol=0 if exact else 1e-14)


@every_index
@pytest.mark.parametrize("k", [1, 6, 70])
def test_nearest_are_the_first_of_all_distances(case, data, k):
    X, Q = data
    indices, distances = case.of(X).nearest(case.rows(Q, X), k)
    order, expected = nearest_oracle(case.oracle(Q, X), k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-11)
    assert distances.dtype == np.float64
    assert indices.shape == distances.shape == (len(Q), k)


@every_index
@pytest.mark.parametrize("k", [1, 2, 5, 17, 89, 90])
def test_ties_go_to_the_lower_index(case, rng, k):
    X = case.tied(rng)
    D = case.oracle(X, X)
    assert (np.sort(D, axis=1)[:, k - 1 : k] == D).sum(axis=1).max() > 1
    indices, distances = case.of(X).nearest(case.rows(X, X), k)
    order, expected = nearest_oracle(D, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-15, atol=0)


SUBNORMAL = 2.0**-1045  # about 2e-315, where rounding is absolute


@every_index_of_points
@pytest.mark.parametrize("k", [1, 17])
def test_ties_of_subnormal_numbers(case, rng, k):
    X = case.tied(rng)
    indices, distances = case.of(X * SUBNORMAL).nearest(case.rows(X * SUBNORMAL, X), k)
    order, _ = nearest_oracle(case.oracle(X, X), k)
    np.testing.assert_array_equal(indices, order)
    assert np.isfinite(distances).all()


@every_index_of_points
def test_ties_of_numbers_whose_squares_underflow(case, rng):
    """Every point is found, and none twice."""
    X = np.hstack([rng.choice([0.0, 1e-209, 1e-169, 1e-9], (90, 1)), np.ones((90, 1))])
    X = X * [1.0, case.metric == "cosine"]  # directions need a length
    indices, distances = case.of(X).nearest(case.rows(X, X), 30)
    assert all(len(set(row)) == 30 for row in indices)
    np.testing.assert_allclose(distances, nearest_oracle(case.oracle(X, X), 30)[1], atol=1e-15)


@every_index
def test_identical_points_are_neighbors_in_order(case):
    X = np.ones((40, 3))
    indices, distances = case.of(X).nearest(case.rows(X, X), 7)
    np.testing.assert_array_equal(indices, np.tile(np.arange(7), (40, 1)))
    np.testing.assert_allclose(distances, 0, atol=1e-15)


@every_index
@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.6, 1.0])
def test_within_a_radius(case, data, quantile):
    X, Q = data
    D = case.oracle(Q, X)
    radius = np.quantile(D, quantile) * (1 + 1e-9)
    edges = case.of(X).within(case.rows(Q, X), radius)
    assert_edges(edges, *within_oracle(D, radius))


@every_index
def test_within_radii_of_the_references(case, data, rng):
    X, Q = data
    D = case.oracle(Q, X)
    radii = np.quantile(D, rng.uniform(0, 0.5, len(X)))
    edges = case.of(X).within(case.rows(Q, X), radii)
    assert_edges(edges, *within_oracle(D, radii))


@every_index
@pytest.mark.parametrize("copies", [1, 5], ids=["few", "many"])
def test_the_radius_itself_is_within(case, rng, copies):
    X = case.tied(rng)
    Q = np.tile(X, (copies, 1))
    D = case.oracle(Q, X)
    radius = np.unique(D)[1]
    edges = case.of(X).within(case.rows(Q, X), radius)
    assert_edges(edges, *within_oracle(D, radius), exact=True)
    assert np.isclose(edges.distances, radius, rtol=1e-15, atol=0).any()


@every_index
def test_kth_distance_as_radius_includes_the_kth_neighbor(case, rng):
    """Radius and k-nearest queries compute bitwise equal distances."""
    X = rng.normal(size=(80, 5))
    index, rows = case.of(X), case.rows(X, X)
    indices, distances = index.nearest(rows, 8)
    back = index.within(rows, distances[:, -1])  # (x, j) with d(x, j) ≤ neighbor_radius[j]
    found = set(zip(back.rows, back.indices, strict=True))
    expected = {(i, j) for j, row in enumerate(indices) for i in row}
    assert found == expected


@every_index
def test_no_points_within_the_radius(case, data):
    X, Q = data
    edges = case.of(X).within(case.rows(Q, X), case.oracle(Q, X).min() / 2)
    np.testing.assert_array_equal(edges.indptr, np.zeros(len(Q) + 1))
    assert len(edges.indices) == len(edges.distances) == 0


@every_index
def test_identical_points_are_found_and_the_first_of_several(case, data):
    X, Q = data
    X = np.vstack([X, X[:5], X[3]])
    mixed = np.vstack([Q[:4], X[[7, 3, 0, 72]]])
    found = case.of(X).identical(case.rows(mixed, X))
    expected = [-1, -1, -1, -1, 7, 3, 0, 2]
    np.testing.assert_array_equal(found, expected)


@every_index
def test_restricted_to_some_points(case, data):
    X, Q = data
    rows = np.array([3, 60, 17, 5, 5, 44, 21, 0, 9, 30])
    index = case.of(X).restrict(rows)
    asked = case.rows(Q, X[rows])
    assert index.n_reference == len(rows)
    order, expected = nearest_oracle(case.oracle(Q, X[rows]), 4)
    indices, distances = index.nearest(asked, 4)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-11)


@every_index
def test_rows_do_not_depend_on_other_rows(case, data):
    X, Q = data
    index = case.of(X)
    indices, distances = index.nearest(case.rows(Q, X), 5)
    lists, lengths = rows_of(index.within(case.rows(Q, X), distances.max()))
    for i in range(len(Q)):
        alone = case.rows(Q[i : i + 1], X)
        np.testing.assert_array_equal(index.nearest(alone, 5)[0], indices[i : i + 1])
        np.testing.assert_array_equal(index.nearest(alone, 5)[1], distances[i : i + 1])
        edges = index.within(alone, distances.max())
        np.testing.assert_array_equal(edges.indices, lists[i])
        np.testing.assert_array_equal(edges.distances, lengths[i])


@every_index
def test_no_rows_no_neighbors(case, data):
    X, Q = data
    index, nobody = case.of(X), case.rows(Q[:0], X)
    indices, distances = index.nearest(nobody, 3)
    assert indices.shape == distances.shape == (0, 3)
    edges = index.within(nobody, 1.0)
    np.testing.assert_array_equal(edges.indptr, [0])
    assert len(edges.indices) == len(edges.distances) == 0
    assert len(index.identical(nobody)) == 0


@every_index
def test_pickled_and_unpickled(case, data):
    X, Q = data
    index = case.of(X)
    if case.name == "general-callable":
        index = GeneralIndex(X, "canberra", "")  # a function of a test module does not pickle
    before = index.nearest(case.rows(Q, X), 5)
    after = pickle.loads(pickle.dumps(index)).nearest(case.rows(Q, X), 5)
    np.testing.assert_array_equal(before, after)


@every_index_of_points
def test_single_precision_data_have_double_precision_distances(case, data):
    X, Q = (A.astype(np.float32) for A in data)
    order, expected = nearest_oracle(case.oracle(Q.astype(float), X.astype(float)), 6)
    indices, distances = case.of(X).nearest(case.rows(Q, X), 6)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=1e-14)
    assert distances.dtype == np.float64


@every_index_of_points
def test_any_memory_layout_and_read_only(case, data):
    X, Q = data
    expected = case.of(X).nearest(case.rows(Q, X), 6)
    X, Q = np.asfortranarray(X), np.repeat(Q, 2, axis=0)[::2]
    X.setflags(write=False)
    Q.setflags(write=False)
    actual = case.of(X).nearest(case.rows(Q, X), 6)
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_array_equal(actual[1], expected[1])


@every_index
def test_the_query_is_not_modified(case, data):
    X, Q = data
    asked = case.rows(Q, X)
    before = asked.copy()
    index = case.of(X)
    index.nearest(asked, 3), index.within(asked, 1.0), index.identical(asked)
    assert abs(asked - before).max() == 0


@every_index_of_points
def test_distances_between_references(case, data, rng):
    X, _ = data
    i, j = rng.integers(0, len(X), (2, 200))
    expected = case.oracle(X, X)[i, j]
    np.testing.assert_allclose(case.of(X).distances_between(i, j), expected, rtol=1e-12, atol=1e-14)
    assert case.of(X).distances_between(i[:0], j[:0]).shape == (0,)


def test_distances_between_references_may_be_unknown():
    assert DenseDistances(4).distances_between(np.array([0]), np.array([1])) is None
