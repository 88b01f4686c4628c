"""Contract of all affinities, for training points and new points."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import entr, softmax

from manifoldry.affinity import Binary, Entropic, Gaussian, SelfTuning
from manifoldry.neighbors import NeighborGraph

K = 8  # neighbors of every point in the graphs here


def gaussian_oracle(D, chosen):
    """exp(−d²/h²), h the median distance to the farthest neighbor."""
    farthest = np.where(chosen, D, 0).max(axis=1)
    return np.exp(-((D / np.median(farthest)) ** 2))


def fixed_gaussian_oracle(D, chosen):
    return np.exp(-1.7 * D**2)


def self_tuning_oracle(D, chosen):
    """exp(−d²/(s_i·s_j)), s the distance to the third neighbor."""
    s = np.sort(np.where(chosen, D, np.inf), axis=1)[:, 2]
    return np.exp(-(D**2) / np.outer(s, s))


def binary_oracle(D, chosen):
    return np.ones_like(D)


def entropic_oracle(D, chosen):
    """exp(−β_i·d²) over its sum, β_i such that the entropy is log 4."""
    P = np.zeros_like(D)
    for i, row in enumerate(chosen):
        squared = D[i, row] ** 2 - D[i, row].min() ** 2

        def surplus(log_beta, squared=squared):
            p = softmax(-np.exp(log_beta) * squared)
            return entr(p).sum() - np.log(4)

        P[i, row] = softmax(-np.exp(brentq(surplus, -20, 20, xtol=1e-15)) * squared)
    return P


# Add a line here for each new affinity: constructor, reference formula, and scale invariance.
AFFINITIES = {
    "gaussian": (Gaussian, {}, gaussian_oracle, True),
    "gaussian-gamma": (Gaussian, {"gamma": 1.7}, fixed_gaussian_oracle, False),
    "self_tuning": (SelfTuning, {"k": 3}, self_tuning_oracle, True),
    "binary": (Binary, {}, binary_oracle, True),
    "entropic": (Entropic, {"perplexity": 4}, entropic_oracle, True),
}
NORMALIZED = ("entropic",)  # the weights of each point sum to one
SYMMETRIZATIONS = {
    "or": np.maximum,
    "and": np.minimum,
    "mean": lambda A, B: (A + B) / 2,
}

every_affinity = pytest.mark.parametrize("name", AFFINITIES)
every_symmetrization = pytest.mark.parametrize("symmetrize", SYMMETRIZATIONS)


def make(name, symmetrize):
    kind, parameters, _, _ = AFFINITIES[name]
    return kind(symmetrize=symmetrize, **parameters)


def graph_of(X, kind="k-nearest"):
    if kind == "k-nearest":
        return NeighborGraph.build(X, K)
    if kind == "radius":
        return NeighborGraph.build(X, radius=0.45)
    if kind == "cosine":
        return NeighborGraph.build(X, K, metric="cosine")
    return NeighborGraph.build(cdist(X, X), K, metric="precomputed")


def restored(rows, log_scale):
    return np.exp(log_scale)[:, None] * rows.toarray()


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture(name="X")
def training_points(rng):
    """Points in general position, of varying density."""
    return rng.uniform(size=(70, 3)) ** 2


@every_symmetrization
@every_affinity
def test_matrix_equals_the_formula(name, symmetrize, X):
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    chosen = np.sort(D, axis=1)[:, K - 1 : K] >= D
    np.fill_diagonal(D, 0)
    directed = np.where(chosen, AFFINITIES[name][2](D, chosen), 0)
    expected = SYMMETRIZATIONS[symmetrize](directed, directed.T)
    graph = graph_of(X)
    W = make(name, symmetrize).fit(graph).matrix(graph)
    np.testing.assert_allclose(W.toarray(), expected, rtol=1e-12)


@every_symmetrization
@every_affinity
@pytest.mark.parametrize("kind", ["k-nearest", "radius", "cosine", "precomputed"])
def test_matrix_is_symmetric_and_non_negative_without_diagonal(name, symmetrize, kind, X):
    graph = graph_of(X, kind)
    W = make(name, symmetrize).fit(graph).matrix(graph)
    assert sparse.issparse(W)
    assert W.format == "csr"
    assert abs(W - W.T).max() == 0
    assert not W.diagonal().any()
    assert W.min() >= 0
    assert 0 < W.max() <= 1


@every_symmetrization
@every_affinity
@pytest.mark.parametrize("kind", ["k-nearest", "radius", "cosine", "precomputed"])
def test_rows_of_training_points_repeat_the_matrix(name, symmetrize, kind, X):
    graph = graph_of(X, kind)
    weights = make(name, symmetrize).fit(graph)
    asked = cdist(X, X) if kind == "precomputed" else X
    rows = restored(*weights.rows(*graph.query(asked)))
    np.testing.assert_allclose(rows, weights.matrix(graph).toarray(), rtol=1e-12, atol=1e-12)


@every_symmetrization
@pytest.mark.parametrize("name", [name for name, case in AFFINITIES.items() if case[3]])
@pytest.mark.parametrize("scale", [1e-150, 1e-9, 3.0, 1e150])
def test_units_do_not_matter_by_default(name, symmetrize, scale, X):
    affinity = make(name, symmetrize)
    graph, scaled = graph_of(X), graph_of(X * scale)
    W, V = (affinity.fit(g).matrix(g).toarray() for g in (graph, scaled))
    np.testing.assert_allclose(V, W, rtol=1e-11)
    new = X[:9] + 0.01
    A, B = (affinity.fit(g).rows(*g.query(new * s)) for g, s in ((graph, 1), (scaled, scale)))
    np.testing.assert_allclose(B[0].toarray(), A[0].toarray(), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(B[1], A[1], atol=1e-10)


@every_symmetrization
@every_affinity
def test_rows_do_not_depend_on_one_another(name, symmetrize, X, rng):
    graph = graph_of(X)
    weights = make(name, symmetrize).fit(graph)
    new = np.vstack([rng.uniform(size=(12, 3)), X[:3], [[50.0, 0, 0]]])
    together, log_scale = weights.rows(*graph.query(new))
    for i in range(len(new)):
        alone, alone_scale = weights.rows(*graph.query(new[i : i + 1]))
        np.testing.assert_array_equal(alone.toarray(), together.toarray()[i : i + 1])
        np.testing.assert_array_equal(alone_scale, log_scale[i : i + 1])


@every_affinity
@pytest.mark.parametrize("symmetrize", ["or", "mean"])
@pytest.mark.parametrize("distance", [1e2, 1e5, 1e12, 1e100])
def test_far_from_all_data_ratios_of_weights_remain(name, symmetrize, distance, X):
    graph = graph_of(X)
    rows, log_scale = (
        make(name, symmetrize).fit(graph).rows(*graph.query(np.array([[distance, 0.0, 0.0]])))
    )
    assert np.isfinite(rows.data).all()
    assert np.isfinite(log_scale).all()
    assert rows.max() == (
        0.5 if symmetrize == "mean" else 1.0
    )  # no training point has it as a neighbor


@every_affinity
def test_far_from_all_data_there_are_no_mutual_neighbors(name, X):
    graph = graph_of(X)
    rows, log_scale = make(name, "and").fit(graph).rows(*graph.query(np.array([[1e5, 0.0, 0.0]])))
    assert rows.sum() == 0
    np.testing.assert_array_equal(log_scale, 0)


def test_far_mutual_neighbors_do_not_underflow_because_of_nearer_one_sided_ones():
    """The point at 0 is near 10 and 12, of which it is no neighbor, and mutual only with −15."""
    line = np.array([-15.0, 10.0, 12.0, 13.0, 16.0, 17.0])[:, None]
    graph = NeighborGraph.build(line, 4)
    weights = Gaussian(gamma=10.0, symmetrize="and").fit(graph)
    rows, log_scale = weights.rows(*graph.query(np.zeros((1, 1))))
    np.testing.assert_array_equal(rows.toarray(), [[1, 0, 0, 0, 0, 0]])
    np.testing.assert_allclose(log_scale, -10 * 15**2)


@every_symmetrization
@every_affinity
def test_duplicated_points(name, symmetrize, rng):
    base = rng.uniform(size=(12, 3))
    X = np.repeat(base, [1, 1, 2, 3, 12, 1, 2, 1, 1, 4, 1, 1], axis=0)
    graph = graph_of(X)
    weights = make(name, symmetrize).fit(graph)
    W = weights.matrix(graph)
    assert np.isfinite(W.data).all()
    assert abs(W - W.T).max() == 0
    zero_length = graph.rows[graph.distances == 0], graph.indices[graph.distances == 0]
    assert len(zero_length[0]) > 50
    if symmetrize == "or" and name not in NORMALIZED:
        np.testing.assert_array_equal(W[zero_length], 1.0)  # coinciding points are fully alike
    rows, log_scale = weights.rows(*graph.query(np.vstack([base, base + 0.01])))
    assert np.isfinite(rows.data).all()
    assert np.isfinite(log_scale).all()


@pytest.mark.parametrize("affinity", [Gaussian(), SelfTuning()], ids=["gaussian", "self_tuning"])
def test_no_positive_distance_to_derive_a_width_from(affinity):
    graph = NeighborGraph.build(np.ones((20, 2)), 5)
    with pytest.raises(ValueError, match=r"20 rows.*drop duplicated rows"):
        affinity.fit(graph)


def test_given_widths_need_no_length():
    graph = NeighborGraph.build(np.ones((20, 2)), 5)
    for affinity in (Gaussian(gamma=2.0), Binary()):
        W = affinity.fit(graph).matrix(graph)
        assert set(W.data) == {1.0}


@every_affinity
def test_isolated_points_of_a_radius_graph_have_no_weights(name, X):
    X = np.vstack([X, [[9.0, 9, 9], [-9.0, 9, 9]]])
    graph = graph_of(X, "radius")
    weights = make(name, "or").fit(graph)
    W = weights.matrix(graph).toarray()
    assert np.isfinite(W).all()
    assert not W[-2:].any()
    rows, log_scale = weights.rows(*graph.query(np.array([[20.0, 20, 20], X[0]])))
    assert rows.toarray()[0].max() == 0
    assert rows.toarray()[1].max() == 1
    assert np.isfinite(log_scale).all()


@every_affinity
def test_pickled_and_unpickled(name, X):
    graph = graph_of(X)
    weights = make(name, "or").fit(graph)
    W, V = (w.matrix(graph) for w in (weights, pickle.loads(pickle.dumps(weights))))
    assert abs(W - V).max() == 0


def test_most_points_duplicated_leaves_the_width_of_the_others(rng):
    """If the median distance to the farthest neighbor is zero, positive lengths are used."""
    X = np.vstack([np.zeros((30, 2)), rng.normal(size=(15, 2))])
    graph = NeighborGraph.build(X, 4)
    assert np.median(graph.neighbor_radius) == np.median(graph.distances) == 0
    width = Gaussian().fit(graph).width
    assert width == np.median(graph.distances[graph.distances > 0])


def test_self_tuning_takes_the_farthest_neighbor_where_there_are_fewer_than_k(X):
    graph = NeighborGraph.build(X, 3)
    np.testing.assert_array_equal(SelfTuning(k=7).fit(graph).scales, graph.neighbor_radius)


@pytest.mark.parametrize(
    ("make_one", "error", "message"),
    [
        (lambda: Gaussian(symmetrize="xor"), ValueError, "symmetrize='xor' must be one of 'or'"),
        (lambda: Gaussian(gamma=-1.0), ValueError, "gamma=-1.0 must be greater than 0"),
        (lambda: Gaussian(gamma="wide"), TypeError, "gamma='wide' must be a number"),
        (lambda: SelfTuning(k=0), ValueError, "k=0 must be at least 1"),
        (lambda: SelfTuning(k=2.5), TypeError, "k=2.5 must be a whole number"),
        (lambda: Entropic(0.5), ValueError, "perplexity=0.5 must be at least 1"),
        (lambda: Entropic("30"), TypeError, "perplexity='30' must be a number"),
        (lambda: Entropic(float("nan")), ValueError, "perplexity=nan must be finite"),
        (lambda: Entropic(9), ValueError, "perplexity=9 must be at most 8 .*n_neighbors=27"),
    ],
)
def test_parameters_out_of_bounds(make_one, error, message, X):
    with pytest.raises(error, match=message):
        make_one().fit(graph_of(X))


def test_the_first_argument_is_the_one_that_matters():
    assert Gaussian(2.0) == Gaussian(gamma=2.0)
    assert SelfTuning(3) == SelfTuning(k=3)
    assert Entropic(5.0) == Entropic(perplexity=5.0)


def test_weights_at_distance_zero():
    """One for kernels; for probabilities that of the nearest neighbor, which is the largest."""
    graph = NeighborGraph.build(np.random.default_rng(0).normal(size=(50, 3)), K)
    for affinity in (Gaussian(), Gaussian(gamma=1.7), SelfTuning(), Binary()):
        np.testing.assert_array_equal(affinity.fit(graph).self_weights(graph), 1)
    weights = Entropic(perplexity=4).fit(graph)
    largest = weights.conditional(graph).max(axis=1).toarray().ravel()
    np.testing.assert_allclose(weights.self_weights(graph), largest)
