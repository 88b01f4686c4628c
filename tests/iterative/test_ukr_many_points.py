"""UKR of more points than all pairs are used for."""

from dataclasses import replace

import numpy as np
import pytest

from manifoldry import UKR, ElasticEmbedding
from manifoldry.base.input import Points
from manifoldry.iterative import ukr_start
from manifoldry.iterative.ukr_start import StartSearch
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives import RegressionPairs, UKRObjective
from manifoldry.optimize import Momentum, SpectralDirection
from manifoldry.util.memory import NotEnoughMemoryError

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")
ALL = RegressionPairs(exact_up_to=10**9)


def sheet(n, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.uniform(-1, 1, size=(n, 2))
    curved = np.column_stack([Y, np.sin(2 * Y), Y[:, 0] * Y[:, 1]])
    return curved + 0.02 * rng.normal(size=curved.shape)


@pytest.fixture(scope="module")
def model():
    return UKR(2, init="pca", max_iter=6, random_state=0, n_jobs=1).fit(sheet(2100))


def test_the_model_says_which_pairs_it_used(model):
    assert model.pairs_ == "nearby pairs: weights below 1e-12 of the largest are left out"
    few = UKR(2, init="pca", max_iter=1).fit(sheet(100))
    assert few.pairs_ == "all pairs: at most exact_up_to=2000 points"


def test_its_errors_are_those_of_all_pairs(model):
    X, Y = sheet(2100), model.embedding_
    exact = UKRObjective(X, pairs=ALL)
    assert model.leave_one_out_error_ == pytest.approx(exact.value(Y) / exact.variance, rel=1e-9)


def test_new_points_and_inverse_are_those_of_all_pairs(model):
    new = sheet(20, seed=1)
    found = model.transform(new)
    assert np.square(model.inverse_transform(found) - new).sum(axis=1).mean() < 0.01
    framed = model.extension_
    projection = replace(framed.projection, surface=replace(framed.projection.surface, pairs=ALL))
    expected = replace(framed, projection=projection).transform(new)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    exact = replace(model.inverse_, surface=replace(model.inverse_.surface, pairs=ALL))
    np.testing.assert_allclose(model.inverse_transform(found), exact.predict(found), atol=1e-10)
    np.testing.assert_allclose(model.jacobian(found), exact.jacobian(found), atol=1e-9)


def test_the_same_seed_gives_the_same_bits(model):
    again = UKR(2, init="pca", max_iter=6, random_state=0, n_jobs=2).fit(sheet(2100))
    np.testing.assert_array_equal(again.embedding_, model.embedding_)


def test_a_search_that_overflows_says_so():
    X = sheet(2100)
    model = UKR(2, init=X[:, :2], optimizer=Momentum(learning_rate=1e200)).fit(X)
    assert model.status_.startswith("the value is no longer finite; lower learning_rate")
    assert np.isfinite(model.embedding_).all()


# --- the start ---------------------------------------------------------------------------------


def start_search(n=200, **options):
    X, rng = sheet(n), np.random.default_rng(0)
    graph = NeighborGraph.build(X, 10)
    return StartSearch(Points(X), graph, 2, UKRObjective(X), rng, **options)


def test_a_sample_finds_a_start_as_good():
    every, some = start_search(), start_search(exact_up_to=100, sample=60, n_landmarks=40)
    value = every.objective.value
    best = value(every.best())
    assert value(some.best()) <= 1.1 * best
    rows = np.arange(60) * 200 // 60
    Y = every.found["pca"][1]
    assert some.value(Y) == every.objective.sampled_value(Y, rows)
    assert set(some.found) == set(every.found)
    isomap = some.found["Isomap"][1]
    assert not np.allclose(isomap, every.found["Isomap"][1], rtol=1e-3)  # from landmarks


def test_the_elastic_start_without_linear_systems_is_as_good(monkeypatch):
    every, some = start_search(), start_search(spectral_up_to=100)
    every.best()
    monkeypatch.setattr(SpectralDirection, "operator_for", lambda *_: pytest.fail("it was used"))
    some.best()
    (value, _), (expected, _) = some.found["ElasticEmbedding"], every.found["ElasticEmbedding"]
    assert value <= 1.05 * expected


def test_memory_is_planned_before_the_first_start(monkeypatch):
    def refuse(n_bytes, what, remedy):
        assert n_bytes >= 8 * 200 * 200
        raise NotEnoughMemoryError(what, remedy)

    def fit(*_):
        pytest.fail("the elastic embedding was fitted")

    monkeypatch.setattr(ukr_start, "plan_memory", refuse)
    monkeypatch.setattr(ElasticEmbedding, "fit", fit)
    with pytest.raises(MemoryError, match=r"^the starts of 200 points; pass init='pca'$"):
        start_search().best()
