"""Neighbor embeddings of distributed rows: a sample, placed rows, and moves of all rows."""

import pickle
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from manifoldry import SNE, TSNE, ElasticEmbedding, LaplacianEigenmaps, NeighborGraph, SymmetricSNE
from manifoldry.affinity import Entropic
from manifoldry.distributed import using_options
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.objectives import (
    Exact,
    FFTInterpolation,
    GaussianKernel,
    Pairwise,
    PerPoint,
    StudentKernel,
    elastic,
    projected_distance_weights,
    symmetric_sne,
    tsne,
)
from manifoldry.objectives.distributed import PairwiseInParts
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.projected_distance import distance_factors
from manifoldry.optimize.distributed import DescentInParts

N = 600
BOUNDS = np.array([0, 90, 350, N])
RULE = FFTInterpolation(spacing=0.15)


@pytest.fixture(name="X", scope="module")
def make_digits():
    """Images of handwritten digits."""
    return load_digits().data[:N]


@pytest.fixture(name="W", scope="module")
def make_affinities(X):
    """Entropic affinities that sum to one."""
    graph = NeighborGraph.build(X, 30)
    P = Entropic(10).fit(graph).matrix(graph)
    return P / P.sum()


@pytest.fixture(name="Y", scope="module")
def make_positions():
    """Positions around the origin."""
    Y = 3 * np.random.default_rng(0).normal(size=(N, 2))
    return Y - Y.mean(axis=0)


def in_parts(values, bounds=BOUNDS):
    return [dask.delayed(values[a:b]) for a, b in pairwise(bounds)]


def joined(parts):
    return np.concatenate(dask.compute(*parts))


def distributed(objective, rule=RULE, bounds=BOUNDS):
    """The same objective in parts."""
    factors, repulsion = None, objective.repulsion
    if not isinstance(repulsion.matrix, type(None)):
        factors = [
            dask.delayed(FactoredWeights(distance_factors(part), part))
            for part in (repulsion.right[a:b] for a, b in pairwise(bounds))
        ]
    return PairwiseInParts(
        DistributedMatrix.of(in_parts(objective.affinity, bounds), bounds),
        bounds,
        objective.kernel,
        objective.normalizer,
        objective.weight,
        objective.exaggeration,
        constant=objective.constant,
        pair_weight=repulsion.scale,
        factors=factors,
        rule=rule,
    )


def in_memory(objective, pair_sums):
    return Pairwise(
        objective.affinity,
        objective.kernel,
        objective.normalizer,
        objective.weight,
        objective.exaggeration,
        constant=objective.constant,
        pair_sums=pair_sums,
    )


OBJECTIVES = {
    "tsne": lambda W, X: tsne(W, exaggeration=1.5, weight=0.8),
    "heavy tails": lambda W, X: tsne(W, dof=0.5),
    "symmetric_sne": lambda W, X: symmetric_sne(W),
    "elastic": lambda W, X: elastic(W, weight=50.0),
    "squared distances": lambda W, X: elastic(W, projected_distance_weights(X, 5), weight=50.0),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_and_gradient_are_those_of_all_rows_in_memory(name, W, X, Y):
    objective = OBJECTIVES[name](W, X)
    point = distributed(objective).at(in_parts(Y))
    gradient = joined(point.gradient())
    # On the same mesh they are equal up to rounding, exact sums within its error.
    for pair_sums, of_value, of_gradient in ((RULE, 1e-12, 1e-11), (Exact(), 1e-6, 1e-3)):
        value, expected = in_memory(objective, pair_sums).value_and_gradient(Y)
        assert_allclose(point.value, value, rtol=of_value)
        assert np.linalg.norm(gradient - expected) < of_gradient * np.linalg.norm(expected)
    assert_allclose(point.gradient_norm, np.linalg.norm(gradient), rtol=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_embeddings_have_one_to_three_coordinates(d, W):
    Y = np.random.default_rng(1).normal(size=(N, d))
    Y -= Y.mean(axis=0)
    rule = FFTInterpolation(min_cells=32)
    value, expected = in_memory(tsne(W), rule).value_and_gradient(Y)
    point = distributed(tsne(W), rule).at(in_parts(Y))
    assert_allclose(point.value, value, rtol=1e-12)
    assert_allclose(joined(point.gradient()), expected, atol=1e-11 * abs(expected).max())


@pytest.mark.parametrize("name", ["tsne", "elastic", "squared distances"])
def test_gradient_by_central_differences(name, W, X, Y):
    objective = distributed(OBJECTIVES[name](W, X))
    V, h = np.random.default_rng(2).normal(size=Y.shape), 1e-5
    V /= np.linalg.norm(V)
    forward, backward = (objective.at(in_parts(Y + s * V)).value for s in (h, -h))
    slope = np.vdot(joined(objective.at(in_parts(Y)).gradient()), V)
    assert_allclose((forward - backward) / (2 * h), slope, rtol=1e-4)


@pytest.mark.parametrize("kernel", [StudentKernel(), StudentKernel(2.5), GaussianKernel()])
def test_attraction_of_rows_is_a_part_of_that_of_all(kernel, W, Y):
    whole = Exact().attraction(kernel, W)(Y)
    values = []
    for rows in (np.arange(200), np.arange(200, N)):
        order = np.concatenate([rows, np.setdiff1d(np.arange(N), rows)])
        for exact in (Exact(), Exact(compile_edges=1)):
            part = exact.attraction_of_rows(kernel, W[rows][:, order], Y[order])
            assert_allclose(part.force, whole.force[rows], atol=1e-13 * abs(whole.force).max())
            assert_allclose(part.degree, whole.degree[rows], rtol=1e-12)
        values.append(part.value)
    assert_allclose(sum(values), whole.value, rtol=1e-12)


def test_rows_that_are_normalized_one_by_one_are_refused(W):
    with pytest.raises(ValueError, match="normalizes every point on its own"):
        PairwiseInParts(DistributedMatrix([], None), BOUNDS, GaussianKernel(), PerPoint())


@pytest.mark.parametrize("name", ["tsne", "symmetric_sne", "squared distances"])
def test_no_round_raises_the_objective(name, W, X, Y):
    objective = OBJECTIVES[name](W, X)
    point, steps = DescentInParts(12).minimize(distributed(objective), in_parts(Y))
    values = [step.value for step in steps]
    assert len(values) == 13
    assert (np.diff(values) <= 0).all()
    exact = in_memory(objective, Exact())
    after = joined(point.positions)
    assert exact.value(after) < exact.value(Y) - 0.9 * (values[0] - values[-1])
    assert point.value == values[-1]


def test_a_round_that_would_raise_it_is_taken_back(W, Y):
    objective = distributed(symmetric_sne(W))
    lowest, _ = DescentInParts(25).minimize(objective, in_parts(Y))
    point, steps = DescentInParts(3, rate=1e3).minimize(objective, lowest.positions)
    assert [step.length for step in steps] == [0.0] * 4
    assert [step.evaluations for step in steps] == [1, 2, 3, 4]
    assert {step.value for step in steps} == {lowest.value}
    assert_array_equal(joined(point.positions), joined(lowest.positions))


def test_points_move_by_a_few_widths_of_the_kernel_in_a_round(W, Y):
    point, steps = DescentInParts(1, rate=1e4).minimize(distributed(symmetric_sne(W)), in_parts(Y))
    assert steps[-1].length == 1e4
    assert_allclose(np.linalg.norm(joined(point.positions) - Y, axis=1).max(), 5.0)


def test_parts_do_not_matter(W, Y):
    found = []
    for bounds in (BOUNDS, np.array([0, 300, 301, 480, N]), np.array([0, N])):
        objective = distributed(tsne(W), bounds=bounds)
        point, _ = DescentInParts(10).minimize(objective, in_parts(Y, bounds))
        found.append(joined(point.positions))
    for other in found[1:]:
        assert_allclose(other, found[0], atol=1e-9 * np.ptp(found[0]))


def placed_and_refined(estimator, X, rounds=20):
    collection = da.from_array(X, chunks=(170, -1))
    with using_options(landmarks=150):
        placed = estimator(collection)
        with using_options(refine=rounds):
            return placed, estimator(collection)


@pytest.mark.parametrize(
    ("make", "all_rows"),
    [
        (lambda: TSNE(random_state=1), lambda model, W: tsne(W)),
        (lambda: SymmetricSNE(perplexity=15), lambda model, W: symmetric_sne(W)),
        (
            lambda: ElasticEmbedding(weight=80.0, repulsion="uniform"),
            lambda model, W: elastic(W, weight=80.0),
        ),
    ],
    ids=["TSNE", "SymmetricSNE", "ElasticEmbedding"],
)
def test_refined_maps_have_a_smaller_objective_of_all_rows(make, all_rows, X):
    placed, refined = placed_and_refined(lambda D: make().fit(D), X)
    perplexity = make()._affinity_rule(N, N - 1).perplexity
    graph = NeighborGraph.build(X, int(np.ceil(3 * perplexity)))
    P = Entropic(perplexity).fit(graph).matrix(graph)
    objective = in_memory(all_rows(refined, P / P.sum()), Exact())
    before, after = (objective.value(m.embedding_.compute()) for m in (placed, refined))
    assert after < 0.9 * before
    assert_allclose(refined.refinement_["value"][[0, -1]], [before, after], rtol=2e-3)
    assert (np.diff(refined.refinement_["value"]) <= 0).all()
    assert refined.loss_ == refined.refinement_["value"][-1]


def test_repulsion_by_squared_distances_of_all_rows(X):
    estimator = ElasticEmbedding(weight=80.0, perplexity=10)
    few = X[:, 20:45]  # as many as principal components, so that weights are exact
    placed, refined = placed_and_refined(lambda D: estimator.fit(D).embedding_.compute(), few)
    graph = NeighborGraph.build(few, 30)
    P = Entropic(10).fit(graph).matrix(graph)
    objective = elastic(P / P.sum(), projected_distance_weights(few), 80.0)
    values = [in_memory(objective, RULE).value(Y) for Y in (placed, refined)]
    assert_allclose(estimator.refinement_["value"][[0, -1]], values, rtol=2e-3)
    assert values[1] < 0.9 * values[0]
    assert "the 25 principal components of a sample, 100% of them" in estimator.fitted_on_


@pytest.fixture(scope="module")
def refined(X):
    """A refined t-SNE, with float32 data and another order of its landmarks."""
    with using_options(landmarks=150, refine=8):
        return TSNE(random_state=3).fit(da.from_array(X.astype(np.float32), chunks=(170, -1)))


def test_what_was_done_is_said(refined):
    first, last = refined.refinement_["value"][[0, -1]]
    assert refined.fitted_on_ == (
        "150 of 600 rows; the others were placed by transform, and then all rows were moved in 8 "
        f"rounds, which lowered the objective of all rows from {first:.6g} to {last:.6g} "
        "(neighbors of all rows, recall 1.000; sums over all pairs interpolated on a mesh)"
    )
    assert refined.status_ == "8 rounds of refinement"
    assert refined.perplexity_ == 20  # of all rows
    assert refined.pairs_.startswith("interpolation on a mesh")
    assert refined.embedding_.dtype == np.float32
    assert refined.embedding_.chunks[0] == (170, 170, 170, 90)


def test_the_model_has_the_refined_positions_of_the_sample(refined, X):
    model, Y = refined.landmark_model_, refined.embedding_.compute()
    assert model.get_params() == refined.get_params()
    there = model.transform(X.astype(np.float32))
    same = (there == Y).all(axis=1)
    assert same.sum() == len(model.embedding_) == 150
    # New rows are placed relative to the refined map: the others are near their own positions.
    others = np.linalg.norm(there - Y, axis=1)[~same]
    assert np.median(others) < 0.05 * np.ptp(Y)
    assert model.inverse_transform(Y[:5]).shape == (5, X.shape[1])


def test_models_are_pickled(refined, X):
    rows = X[:20].astype(np.float32) + 0.1
    for model in (refined, refined.landmark_model_):
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.transform(rows), refined.transform(rows))


def test_without_rounds_rows_stay_where_they_were_placed(X):
    with using_options(landmarks=150, refine=0):
        model = TSNE(random_state=3).fit(da.from_array(X, chunks=(170, -1)))
    assert model.fitted_on_ == "150 of 600 rows; the others are placed by transform"
    assert not hasattr(model, "refinement_")
    assert_allclose(model.embedding_.compute(), model.landmark_model_.transform(X), atol=1e-7)


def test_few_rows_are_fitted_whole(X):
    with using_options(refine=5):
        model = SymmetricSNE().fit(da.from_array(X[:60], chunks=(40, -1)))
    assert model.fitted_on_ == "all rows, on one worker"


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LaplacianEigenmaps(), "refine=3 moves single rows.*LaplacianEigenmaps does not"),
        (SNE(), "SNE divides by the sum of each row.*SymmetricSNE"),
        (TSNE(4), "n_components=4 is more than 3"),
        (SymmetricSNE(gamma=0.1), "all rows neighbors of each other.*pass a perplexity"),
        (TSNE(metric="minkowski", metric_params={"p": 3}), "metric_params=.*refine=0"),
    ],
)
def test_what_cannot_be_refined_is_refused(estimator, message, X):
    with using_options(landmarks=150, refine=3), pytest.raises(ValueError, match=message):
        estimator.fit(da.from_array(X, chunks=(170, -1)))
    assert not hasattr(estimator, "embedding_")


def test_refine_is_checked():
    with pytest.raises(ValueError, match="refine=-1"), using_options(refine=-1):
        pass


def test_tasks_that_the_scheduler_keeps(client, X):
    """As many as the page of costs has: (10 + s) P for each round, of P parts near s others."""
    kept = []
    for rounds in (2, 6):
        with using_options(landmarks=150, refine=rounds):
            model = TSNE(random_state=3).fit(da.from_array(X.astype(np.float32), chunks=(170, -1)))
        kept.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
        del model
    n_parts = 4
    assert 0.5 < (kept[1] - kept[0]) / (4 * (10 + n_parts - 1) * n_parts) < 1.5


def test_on_workers(client, X, refined):
    with using_options(landmarks=150, refine=3):
        model = TSNE(random_state=3).fit(da.from_array(X.astype(np.float32), chunks=(170, -1)))
    expected = refined.refinement_["value"][:4]
    assert_allclose(model.refinement_["value"], expected, rtol=1e-6)
    assert model.embedding_.compute().shape == (N, 2)
