"""Entropic affinities: the root finder, edge cases, training points and new points."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import entr, softmax
from sklearn.datasets import load_digits

from manifoldry import LaplacianEigenmaps, SpectralClustering
from manifoldry.affinity import Entropic
from manifoldry.affinity.bandwidths import bracket, entropy, solve
from manifoldry.affinity.entropic import neighbors_for
from manifoldry.neighbors import NeighborGraph


def perplexities(P):
    """Exponential of the entropy of each row."""
    return np.exp(entr(P.toarray() if sparse.issparse(P) else P).sum(axis=1))


def root(t, perplexity, low=-5.0, high=700.0):
    """The root of one row by a scalar solver, as a reference."""

    def surplus(log_beta):
        return entr(softmax(-np.exp(log_beta) * t)).sum() - np.log(perplexity)

    return brentq(surplus, low, high, xtol=1e-14)


def ascending(rng, kind, n=60, k=45):
    """Rows from 0 to 1: uniform, concentrated at either end, of many scales, or with ties."""
    t = np.sort(rng.uniform(size=(n, k)), axis=1)
    t = {
        "even": t,
        "near": t**8,
        "far": t ** (1 / 8),
        "scales": 10.0 ** (-12 * (1 - t)),
        "ties": np.round(t**2, 2),
        "steps": np.round(3 * t) * 10.0 ** (-5 * (1 - np.round(t))),
    }[kind]
    t -= t[:, :1]
    return t / t[:, -1:]


CASES = [
    (kind, perplexity)
    for kind in ("even", "near", "far", "scales", "ties", "steps")
    for perplexity in (1.001, 2, 7.3, 15, 30, 44.9)
    if kind != "steps" or perplexity > 5  # its rows have several nearest neighbors
]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture(name="X")
def training_points(rng):
    """Clusters of very different density."""
    return np.vstack([rng.normal(size=(60, 4)), 5 + 1e-3 * rng.normal(size=(50, 4))])


@pytest.fixture(name="graph")
def training_graph(X):
    return NeighborGraph.build(X, 45)


def solvable(t, perplexity):
    return t[(t == 0).sum(axis=1) < perplexity]


@pytest.mark.parametrize("log_precision", [-1.0, 1.0, 4.0])
def test_derivatives_of_the_entropy(log_precision, rng):
    t = ascending(rng, "even")
    alpha, h = np.full(len(t), log_precision), 1e-5
    at, after, before = (entropy(alpha + s, t) for s in (0, h, -h))
    p = softmax(-np.exp(log_precision) * t, axis=1)
    np.testing.assert_allclose(at.value, entr(p).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(at.derivative, (after.value - before.value) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(
        at.second_derivative, (after.derivative - before.derivative) / (2 * h), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(("kind", "perplexity"), CASES)
def test_the_bracket_contains_the_root_and_the_solver_finds_it(kind, perplexity, rng):
    t = solvable(ascending(rng, kind), perplexity)
    low, high = bracket(t, perplexity)
    found, steps = solve(t, perplexity)
    expected = np.array([root(row, perplexity) for row in t])
    assert (low <= expected + 1e-12).all()
    assert (expected <= high + 1e-12).all()
    np.testing.assert_allclose(np.exp(entropy(found, t).value), perplexity, rtol=1e-12)
    steep = (
        -entropy(expected, t).derivative > 1e-4
    )  # where the derivative is smaller, the root is ill-conditioned
    assert steep.any()
    np.testing.assert_allclose(found[steep], expected[steep], atol=1e-10)
    assert (steps <= 40).all()


@pytest.mark.parametrize("dimension", [1, 2, 8, 50])
def test_most_rows_need_three_steps(dimension, rng):
    D = NeighborGraph.build(rng.normal(size=(500, dimension)), 90).distances.reshape(500, 90)
    t = D**2 - D[:, :1] ** 2
    found, steps = solve(t, 30.0)
    assert steps.mean() < 3.5
    np.testing.assert_allclose(np.exp(entropy(found, t).value), 30, rtol=1e-12)


def test_the_bracket_is_no_wider_than_the_published_one(rng):
    """Vladymyrov and Carreira-Perpiñán (2013), theorem 2.3; its upper bound assumes no ties."""
    t, K = ascending(rng, "even"), 15.0
    N = t.shape[1]
    excess = np.log(N / K)
    target = np.log(min(np.sqrt(2 * N), K))
    p1 = brentq(lambda p: 2 * (1 - p) * np.log(N / (2 * (1 - p))) - target, 0.75, 1 - 1e-12)
    low, high = bracket(t, K)
    assert (low >= np.log(max(N * excess / (N - 1), np.sqrt(excess)))).all()
    assert (high <= np.log(np.log((N - 1) * p1 / (1 - p1)) / t[:, 1])).all()


@pytest.mark.parametrize("perplexity", [1.5, 5, 15, 30, 44])
def test_every_row_has_the_perplexity(perplexity, graph):
    P = Entropic(perplexity).fit(graph).conditional(graph)
    assert P.shape == (110, 110)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(perplexities(P), perplexity, atol=1e-6)
    assert not P.diagonal().any()


def test_probabilities_are_gaussian_in_the_distance_with_the_reported_precisions(graph):
    weights = Entropic(12).fit(graph)
    kernel = graph.matrix(np.exp(-weights.precisions[graph.rows] * graph.distances**2)).toarray()
    expected = kernel / kernel.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights.conditional(graph).toarray(), expected, rtol=1e-9)
    np.testing.assert_allclose(weights.precisions, 1 / weights.widths**2)


def test_agrees_with_scikit_learn_on_digits():
    from sklearn.manifold._utils import _binary_search_perplexity

    graph = NeighborGraph.build(load_digits().data[:600], 90)
    squared = graph.distances.reshape(600, 90).astype(np.float32) ** 2
    theirs = _binary_search_perplexity(squared, 30.0, 0)
    ours = Entropic(30).fit(graph).conditional(graph)
    gap = np.abs(ours.toarray() - graph.matrix(theirs.ravel()).toarray())
    assert gap.max() < 1e-5  # scikit-learn stops at 1e-5 in the entropy


@pytest.mark.parametrize("scale", [1e-150, 2.0**-20, 7.0, 1e150])
def test_widths_have_the_units_of_the_data(scale, X, graph):
    scaled = NeighborGraph.build(scale * X, 45)
    ours, theirs = (Entropic(15).fit(g) for g in (graph, scaled))
    np.testing.assert_allclose(theirs.widths, scale * ours.widths, rtol=1e-10)
    P, Q = (w.conditional(g).toarray() for w, g in ((ours, graph), (theirs, scaled)))
    np.testing.assert_allclose(Q, P, atol=1e-10)


def test_an_offset_of_the_data_only_adds_rounding_errors(X, graph):
    moved = NeighborGraph.build(X[:60] + 1e8, 45)
    P, Q = (Entropic(15).fit(g).conditional(g) for g in (NeighborGraph.build(X[:60], 45), moved))
    np.testing.assert_allclose(Q.toarray(), P.toarray(), atol=1e-6)
    np.testing.assert_allclose(perplexities(Q), 15, atol=1e-6)


def test_data_in_single_precision(X, graph):
    single = NeighborGraph.build(X.astype(np.float32), 45)
    P = Entropic(15).fit(single).conditional(single)
    assert P.dtype == np.float64
    np.testing.assert_allclose(perplexities(P), 15, atol=1e-6)


def test_rows_do_not_depend_on_others_of_other_lengths(X):
    graph = NeighborGraph.build(X, radius=2.0)
    assert len(set(np.diff(graph.indptr))) > 20
    together = Entropic(5).fit(graph).conditional(graph).toarray()
    weights = Entropic(5).fit(graph)
    for i in (0, 7, 59, 80):
        own, _ = graph.query(X[i : i + 1])
        np.testing.assert_array_equal(weights.conditional(own).toarray()[0], together[i])


# Edge cases


def test_identical_points_have_equal_probabilities():
    graph = NeighborGraph.build(np.ones((20, 2)), 12)
    weights = Entropic(4).fit(graph)
    np.testing.assert_allclose(weights.conditional(graph).data, 1 / 12, rtol=1e-14)
    rows, log_scale = weights.rows(*graph.query(np.array([[1.0, 1.0], [7.0, 1.0]])))
    assert np.isfinite(rows.data).all()
    assert np.isfinite(log_scale).all()


@pytest.mark.parametrize("copies", [3, 8, 9, 15])
def test_duplicates_get_all_probability_if_there_are_enough(copies, rng):
    """Eight other points at distance zero have a perplexity of eight."""
    X = np.vstack([np.zeros((copies, 2)), rng.normal(size=(40, 2))])
    graph = NeighborGraph.build(X, 30)
    P = Entropic(8).fit(graph).conditional(graph)
    first = P[[0]].toarray()[0]
    if copies - 1 >= 8:
        np.testing.assert_allclose(first[1:copies], 1 / (copies - 1), rtol=1e-14)
        assert not first[copies:].any()
    else:
        np.testing.assert_allclose(perplexities(P)[0], 8, atol=1e-6)
        np.testing.assert_allclose(first[1:copies], first.max(), rtol=1e-14)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)


def test_corners_of_a_simplex_are_tied_despite_rounding(rng):
    """All distances are √2; after a rotation they differ by rounding."""
    turn = np.linalg.qr(rng.normal(size=(25, 25)))[0]
    for X in (np.eye(25), np.eye(25) @ turn, 1e-140 * turn):
        graph = NeighborGraph.build(X, 24)
        P = Entropic(6).fit(graph).conditional(graph).toarray()
        np.testing.assert_allclose(P, (1 - np.eye(25)) / 24, rtol=1e-13)


def test_distances_of_all_magnitudes_in_one_row():
    X = np.concatenate([[0.0], 10.0 ** np.arange(-150, 151, 10.0)])[:, None]
    graph = NeighborGraph.build(np.abs(X - X.T), 31, metric="precomputed")
    P = Entropic(6).fit(graph).conditional(graph)
    assert np.isfinite(P.data).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(perplexities(P), 6, atol=1e-6)


def test_outliers_have_the_perplexity_of_all(rng):
    X = np.vstack([rng.normal(size=(50, 3)), [[1e6, 0, 0]]])
    graph = NeighborGraph.build(X, 40)
    P = Entropic(10).fit(graph).conditional(graph)
    np.testing.assert_allclose(perplexities(P), 10, atol=1e-6)


def test_perplexity_one_is_the_nearest_neighbor(graph):
    P = Entropic(1).fit(graph).conditional(graph).toarray()
    nearest = graph.indices[graph.indptr[:-1]]
    np.testing.assert_array_equal(P, np.eye(110)[nearest])


def test_as_many_neighbors_as_the_perplexity_have_equal_weights(graph):
    P = Entropic(45).fit(graph).conditional(graph)
    np.testing.assert_allclose(P.data, 1 / 45, rtol=1e-14)


def test_too_few_neighbors_within_the_radius_have_equal_weights(X):
    X = np.vstack([X, [[50.0, 0, 0, 0]], [[50.5, 0, 0, 0]], [[90.0, 0, 0, 0]]])
    graph = NeighborGraph.build(X, radius=2.5)
    counts = np.diff(graph.indptr)
    P = Entropic(10).fit(graph).conditional(graph)
    few = (counts <= 10) & (counts > 0)
    assert few.sum() > 5
    np.testing.assert_allclose(perplexities(P)[few], counts[few], rtol=1e-12)
    np.testing.assert_allclose(perplexities(P)[counts > 10], 10, atol=1e-6)
    assert not P[[len(X) - 1]].toarray().any()  # the last point has no neighbors


def test_stored_distances_are_the_only_candidates(X):
    full = NeighborGraph.build(X, 20)
    D = full.matrix()
    graph = NeighborGraph.build(sparse.csr_array(D.maximum(D.T)), 20, metric="precomputed")
    P, Q = (Entropic(6).fit(g).conditional(g).toarray() for g in (full, graph))
    np.testing.assert_allclose(Q, P, atol=1e-12)


# New points


def test_new_points_that_are_training_points_get_the_training_rows(X, graph):
    weights = Entropic(15).fit(graph)
    own, back = graph.query(X)
    P = weights.conditional(graph).toarray()
    np.testing.assert_allclose(weights.conditional(own).toarray(), P, atol=1e-12)
    rows, log_scale = weights.rows(own, back)
    expected = (P + P.T) / 2
    np.testing.assert_allclose(np.exp(log_scale)[:, None] * rows.toarray(), expected, atol=1e-12)


def test_new_points_have_the_perplexity_and_training_points_keep_their_bandwidths(X, graph, rng):
    weights = Entropic(15).fit(graph)
    new = rng.normal(size=(30, 4))
    own, back = graph.query(new)
    forward = weights.conditional(own)
    np.testing.assert_allclose(perplexities(forward), 15, atol=1e-6)
    kernel = graph.matrix(np.exp(-weights.precisions[graph.rows] * graph.distances**2))
    at = back.rows, back.indices
    reverse = np.zeros(forward.shape)
    totals = kernel.sum(axis=1)[back.indices]
    reverse[at] = np.exp(-weights.precisions[back.indices] * back.distances**2) / totals
    # Points nearer than the nearest neighbor are treated like it.
    reverse = np.minimum(reverse, weights.conditional(graph).toarray().max(axis=1))
    rows, log_scale = weights.rows(own, back)
    ours = np.exp(log_scale)[:, None] * rows.toarray()
    np.testing.assert_allclose(ours, (forward.toarray() + reverse) / 2, rtol=1e-8, atol=1e-14)
    assert ours.max() <= 1


# Number of neighbors and default perplexity


@pytest.mark.parametrize(
    ("perplexity", "n", "expected"),
    [(30, 1000, 90), (30, 91, 90), (30, 50, 49), (20.1, 1000, 61), (None, 1000, 90)]
    + [(None, n, n - 1) for n in (2, 3, 4, 5, 10, 11, 50, 90)],
)
def test_neighbors_for(perplexity, n, expected):
    assert neighbors_for(perplexity, n) == expected


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40, 200])
def test_default_perplexity_of_few_points(n, rng):
    X = rng.normal(size=(n, 2))
    graph = NeighborGraph.build(X, neighbors_for(None, n))
    weights = Entropic().fit(graph)
    assert weights.perplexity == pytest.approx(min(30, max(1, (n - 1) / 3)))
    P = weights.conditional(graph)
    np.testing.assert_allclose(perplexities(P), weights.perplexity, atol=1e-6)


def test_perplexity_too_large_or_too_small():
    with pytest.raises(ValueError, match=r"perplexity=30 must be at most 9 .*n_samples=10"):
        neighbors_for(30, 10)
    with pytest.raises(ValueError, match=r"perplexity=0\.2 must be at least 1"):
        neighbors_for(0.2, 10)


# In Laplacian eigenmaps


def test_laplacian_eigenmaps_takes_it_and_places_new_points(rng):
    angle = rng.uniform(0, 2 * np.pi, 300) ** 1.3
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    model = LaplacianEigenmaps(2, affinity=Entropic(10)).fit(X[:250])
    P = Entropic(10).fit(graph := NeighborGraph.build(X[:250], 30)).conditional(graph)
    np.testing.assert_allclose(model.affinity_.toarray(), ((P + P.T) / 2).toarray(), atol=1e-14)
    np.testing.assert_allclose(model.transform(X[:250]), model.embedding_)
    placed, training = model.transform(X[250:]), model.embedding_
    nearest = NeighborGraph.build(X[:250], 1).query(X[250:])[0].indices
    spread = np.ptp(training, axis=0).max()
    assert np.abs(placed - training[nearest]).max() < 0.1 * spread


def test_estimators_use_the_required_number_of_neighbors(rng):
    X = rng.normal(size=(100, 3))
    for model in (
        LaplacianEigenmaps(affinity=Entropic(15)),
        SpectralClustering(2, affinity=Entropic(15)),
    ):
        degree = np.diff(model.fit(X).affinity_.indptr)
        assert degree.min() >= 45
    assert LaplacianEigenmaps(affinity=Entropic(3), radius=2.0).fit(X).affinity_.nnz
    with pytest.raises(ValueError, match=r"perplexity=15 must be at most 10 .*n_neighbors=45"):
        LaplacianEigenmaps(affinity=Entropic(15), n_neighbors=10).fit(X)


@pytest.mark.parametrize("rule", ["mean", "or", "and"])
def test_bandwidths_of_training_points_are_computed_once(monkeypatch, rule):
    X = np.random.default_rng(0).normal(size=(40, 3))
    graph = NeighborGraph.build(X, 9)
    weights = Entropic(3, symmetrize=rule).fit(graph)
    P = weights.conditional(graph).toarray()
    expected = {"mean": (P + P.T) / 2, "or": np.maximum(P, P.T), "and": np.minimum(P, P.T)}[rule]
    monkeypatch.setattr("manifoldry.affinity.bandwidths.solve", None)
    np.testing.assert_array_equal(weights.matrix(graph).toarray(), expected)
    np.testing.assert_array_equal(
        graph.matrix(np.exp(-weights.training_probability_exponents(graph))).toarray(), P
    )
