"""Homotopies from Laplacian eigenmaps on, under their constraint at first."""

import pickle

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from sklearn.base import clone

from manifoldry import SNE, TSNE, UKR, ElasticEmbedding, LaplacianEigenmaps, SymmetricSNE
from manifoldry.affinity.entropic import Entropic
from manifoldry.datasets import make_swiss_roll
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize import (
    LBFGS,
    Callback,
    ConstrainedHomotopy,
    Homotopy,
    SpectralDirection,
    Stopping,
)

N, WEIGHT = 150, 30.0
X = make_swiss_roll(N, random_state=0).X
constraint_weights = pytest.mark.parametrize("weights", ["degree", "uniform"])


def fit(X=X, weight=WEIGHT, **options):
    rule = ConstrainedHomotopy(n_steps=8, **options)
    return ElasticEmbedding(weight=weight, perplexity=8, optimizer=rule).fit(X)


def covariance(model, Y, weights):
    b = model.affinity_.sum(axis=1) if weights == "degree" else np.full(len(Y), 1 / len(Y))
    Y = Y - b @ Y
    return Y.T * b @ Y


@constraint_weights
def test_path_begins_at_laplacian_eigenmaps(weights):
    model = fit(constraint_weights=weights, size=1.5)
    L = graph_laplacian(model.affinity_).toarray()
    B = np.diag(model.affinity_.sum(axis=1)) if weights == "degree" else np.eye(N) / N
    values, V = eigh(L, B, subset_by_index=(1, 2))
    first = model.path_.steps[0]
    assert first.parameter == 0
    assert subspace_angles(model.path_.embeddings[0], V).max() < 1e-4
    assert first.value == pytest.approx(2 * 1.5**2 * values.sum(), rel=1e-6)


def test_path_begins_at_the_estimator_of_that_name():
    model = fit()
    other = LaplacianEigenmaps(2, n_neighbors=24, affinity=Entropic(8)).fit(X)
    Y = model.path_.embeddings[0]
    assert subspace_angles(Y - Y.mean(0), other.embedding_ - other.embedding_.mean(0)).max() < 1e-4


@constraint_weights
@pytest.mark.parametrize("grow_size", [False, True])
def test_all_maps_but_the_last_keep_the_constraint(weights, grow_size):
    model = fit(constraint_weights=weights, grow_size=grow_size)
    parameters = model.path_.column("parameter")
    assert len(parameters) == 10
    assert (np.diff(parameters[:-1]) > 0).all()
    assert parameters[-1] == parameters[-2] == pytest.approx(WEIGHT)
    sizes = []
    for Y in model.path_.embeddings[:-1]:
        C = covariance(model, Y, weights)
        sizes.append(np.sqrt(C[0, 0]))
        assert np.allclose(C, sizes[-1] ** 2 * np.eye(2), atol=1e-10 * sizes[-1] ** 2)
    if grow_size:
        assert sizes[0] == pytest.approx(1)
        assert (np.diff(sizes) >= -1e-10).all()
        assert sizes[-1] > 1.5
    else:
        assert np.allclose(sizes, 1, atol=1e-10)
    free = covariance(model, model.embedding_, weights)
    assert np.abs(free - free[0, 0] * np.eye(2)).max() > 1e-3 * free[0, 0]


@pytest.mark.parametrize("estimator", [ElasticEmbedding(weight=WEIGHT), SNE(), SymmetricSNE()])
def test_letting_go_lowers_the_value_to_a_free_minimum(estimator):
    search = LBFGS(SpectralDirection(), stopping=Stopping(tol=1e-8))
    rule = ConstrainedHomotopy(n_steps=6, optimizer=search)
    model = clone(estimator).set_params(perplexity=8, optimizer=rule).fit(X)
    held, free = model.path_.steps[-2:]
    assert free.value <= held.value
    assert model.converged_
    assert model.loss_ == free.value == model.objective_.value(model.embedding_)
    G = model.objective_.value_and_gradient(model.embedding_)[1]
    G_held = model.objective_.value_and_gradient(model.path_.embeddings[-2])[1]
    assert np.linalg.norm(G) < 1e-2 * np.linalg.norm(G_held)


def test_minima_are_no_worse_than_those_of_a_plain_homotopy_and_of_random_starts():
    held = fit().loss_
    plain = ElasticEmbedding(weight=WEIGHT, perplexity=8, optimizer=Homotopy(n_steps=20)).fit(X)
    random = [
        ElasticEmbedding(weight=WEIGHT, perplexity=8, init="random", random_state=s).fit(X).loss_
        for s in range(4)
    ]
    assert held <= 1.01 * plain.loss_
    assert held <= np.median(random)


def test_the_weight_is_chosen_along_the_constrained_path():
    model = fit(weight="auto")
    weights = model.path_.column("parameter")
    assert weights[0] == 0
    assert model.weight_ in weights
    for Y in model.path_.embeddings:
        C = covariance(model, Y, "degree")
        assert np.allclose(C, C[0, 0] * np.eye(2), atol=1e-10 * C[0, 0])
    held = model.path_.column("value")[list(weights).index(model.weight_)]
    assert model.loss_ <= held


def test_same_bits_every_time_and_through_a_pickle():
    first, second = fit(), fit()
    assert np.array_equal(first.embedding_, second.embedding_)
    assert np.array_equal(pickle.loads(pickle.dumps(first)).transform(X), first.transform(X))


def test_stopped_under_the_constraint():
    def stop(iterate):
        return iterate.step.iteration >= 20

    rule = ConstrainedHomotopy(n_steps=8)
    model = ElasticEmbedding(
        weight=WEIGHT,
        perplexity=8,
        optimizer=rule,
        callback=Callback(stop, on_interrupt="keep"),
    ).fit(X)
    assert not model.converged_
    C = covariance(model, model.embedding_, "degree")
    assert np.allclose(C, C[0, 0] * np.eye(2), atol=1e-10 * C[0, 0])


@pytest.mark.parametrize(
    "data",
    [
        np.random.default_rng(0).normal(size=(10, 3)),
        np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 3, axis=0),
        np.concatenate([X[:60], X[:60] + 1e4]),
        1e-150 * X[:60],
        X[:60].astype(np.float32),
    ],
    ids=["ten points", "repeated", "two components", "tiny", "single precision"],
)
def test_difficult_data(data):
    model = ElasticEmbedding(weight=WEIGHT, optimizer=ConstrainedHomotopy(n_steps=5)).fit(data)
    assert np.isfinite(model.embedding_).all()
    assert model.converged_
    assert model.embedding_.dtype == data.dtype


def test_a_search_from_its_end():
    model = ElasticEmbedding(
        weight=WEIGHT, perplexity=8, optimizer=ConstrainedHomotopy(n_steps=5)
    ).fit(X)
    again = ElasticEmbedding(weight=WEIGHT, perplexity=8, init=model.embedding_).fit(X)
    assert again.loss_ <= 1.05 * model.loss_


@pytest.mark.parametrize("estimator", [TSNE(), UKR()])
def test_refused_if_attraction_is_not_quadratic(estimator):
    model = clone(estimator).set_params(optimizer=ConstrainedHomotopy())
    with pytest.raises(ValueError, match="starts from Laplacian eigenmaps"):
        model.fit(X)


def test_bad_parameters():
    with pytest.raises(ValueError, match="constraint_weights='degrees'"):
        ConstrainedHomotopy(constraint_weights="degrees")
    with pytest.raises(ValueError, match="size=-1"):
        ConstrainedHomotopy(size=-1)
    with pytest.raises(ValueError, match=r"pass Homotopy\(curvature=True\)"):
        ConstrainedHomotopy(curvature=True)


@pytest.mark.parametrize(
    "wrong",
    [{"n_steps": 1}, {"max_iter": 0}, {"tol": -1.0}, {"memory": 0.0}, {"values": [1.0, -1.0]}],
)
def test_parameters_of_the_plain_homotopy_are_checked_too(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ConstrainedHomotopy(**wrong)


def test_values_may_come_as_a_list():
    assert list(ConstrainedHomotopy(values=[1.0, 10.0]).values_between(0.1, 10.0)) == [1.0, 10.0]
