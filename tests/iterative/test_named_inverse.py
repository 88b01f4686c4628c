"""The parameter `inverse` of iterative methods: regression, or the method's own."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor

import manifoldry as mf
from manifoldry.affinity import Gaussian
from manifoldry.affinity.gaussian import SelfTuning
from manifoldry.datasets import make_s_curve
from manifoldry.exceptions import ManifoldryWarning, NoveltyWarning
from manifoldry.extension.elastic_inverse import ElasticInverse, affinity_kernels
from manifoldry.extension.regression import LocalRegression

PERPLEXITY, WEIGHT = 8, 300.0


def elastic(**more):
    settings = {"perplexity": PERPLEXITY, "weight": WEIGHT, "inverse": "elastic"}
    return mf.ElasticEmbedding(**(settings | more))


@pytest.fixture(scope="module", name="X")
def curve():
    return make_s_curve(200, random_state=3).X


@pytest.fixture(scope="module")
def model(X):
    return elastic().fit(X[:150])


def entropic_kernels(X, perplexity):
    """β and the sum over its 3·perplexity neighbors of each row, by bisection."""
    D = np.sort(cdist(X, X, "sqeuclidean"), axis=1)[:, 1 : 3 * perplexity + 1]
    low, high = np.full((len(X), 1), -30.0), np.full((len(X), 1), 30.0)
    for _ in range(100):
        middle = (low + high) / 2
        K = np.exp(-np.exp(middle) * (D - D[:, :1]))
        P = K / K.sum(axis=1, keepdims=True)
        wide = -np.sum(P * np.log(P + 1e-300), axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    beta = np.exp(middle[:, 0])
    return beta, K.sum(axis=1) * np.exp(-beta * D[:, 0])


class PublishedEnergy:
    """E'(x, y) of the publication: w⁺ = p(y|n)/N, w⁻ = ‖y − yₙ‖² over the sum of all of them.

    `h` and `s` are the factors of the two widths. Far from all coordinates the kernel of the
    attraction is scaled so that its largest value is e^{−30}.
    """

    def __init__(self, X, Z, perplexity, h=1.0, s=1.0):
        self.X, self.Z, self.h, self.s = X, Z, h, s
        self.beta, self.total = entropic_kernels(X, perplexity)
        self.spread = cdist(X, X, "sqeuclidean").sum()

    def __call__(self, x, y, rows=slice(None)):
        a, b = ((x - self.Z) ** 2).sum(axis=1), ((y - self.X) ** 2).sum(axis=1)
        attraction = np.minimum(1 / self.total / len(a), 1.0) * np.exp(-self.beta * b / self.s**2)
        exponents = a / self.h**2
        scale = max(exponents[rows].min() - 30, 0)
        repulsion = WEIGHT * b / self.spread * np.exp(scale - exponents)
        return (attraction * a + repulsion)[rows].sum()


def least(energy, starts):
    found = [minimize(energy, start, method="BFGS", options={"gtol": 1e-12}) for start in starts]
    return min(found, key=lambda result: result.fun)


def test_the_published_formula(model, X):
    """Against scipy's minimizer of a dense reference that shares nothing with the fit."""
    train, Z = X[:150], model.embedding_
    published = replace(model.inverse_, attraction_width=1.0, repulsion_width=1.0)
    positions = np.vstack([Z[:2], Z[40:42] + 0.3, 1.2 * Z[[np.abs(Z[:, 0]).argmax()]]])
    energy = PublishedEnergy(train, Z, PERPLEXITY)
    for x, y in zip(positions, published.predict(positions), strict=True):
        nearest = np.argsort(((x - Z) ** 2).sum(axis=1))[:3]
        best = least(partial(energy, x), [y, *train[nearest]])
        assert energy(x, y) <= best.fun * (1 + 1e-6)
        np.testing.assert_allclose(y, best.x, atol=1e-3)


@pytest.mark.parametrize("widths", [(1.0, 1.0), (0.5, 0.0), (0.7, 0.5)])
def test_the_leave_one_out_error(X, widths):
    """Against scipy, with the sums over all other rows."""
    few = X[:25]
    model = elastic(perplexity=5).fit(few)
    inverse = replace(model.inverse_, attraction_width=widths[0], repulsion_width=widths[1])
    Z, errors = model.embedding_, []
    energy = PublishedEnergy(few, Z, 5, *widths) if widths[1] else None
    for i in range(25):
        rows = np.arange(25) != i
        K = np.exp(-((Z[i] - Z[rows]) ** 2).sum(axis=1) / widths[0] ** 2)
        found = mean = K @ few[rows] / K.sum()
        if energy is not None:
            nearest = np.argsort(((Z[i] - Z[rows]) ** 2).sum(axis=1))[:3]
            starts = [mean, *few[rows][nearest]]
            found = least(partial(energy, Z[i], rows=rows), starts).x
        errors.append(np.linalg.norm(found - few[i]))
    assert np.isclose(inverse.leave_one_out_error, np.mean(errors), rtol=2e-3)


def test_the_chosen_widths_have_the_least_error(model):
    chosen = model.inverse_

    def error(h, s):
        return replace(chosen, attraction_width=h, repulsion_width=s).leave_one_out_error

    alone = [error(h, 0.0) for h in (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)]
    assert error(chosen.attraction_width, 0.0) == min(alone)
    with_it = [error(chosen.attraction_width, s) for s in (0.0, 0.25, 0.35, 0.5, 0.7, 1.0)]
    assert chosen.leave_one_out_error == min(with_it) <= min(alone)
    assert chosen.leave_one_out_error < error(1.0, 1.0)


def test_new_data_are_reconstructed_better_than_by_the_published_widths(model, X):
    places = model.transform(X[150:])
    published = replace(model.inverse_, attraction_width=1.0, repulsion_width=1.0)
    errors = [
        np.linalg.norm(inverse.predict(places) - X[150:], axis=1).mean()
        for inverse in (model.inverse_, published)
    ]
    assert errors[0] < 0.6 * errors[1]


def test_training_coordinates(model, X):
    back = model.inverse_transform(model.embedding_)
    assert 1 - ((back - X[:150]) ** 2).sum() / ((X[:150] - X[:150].mean(0)) ** 2).sum() > 0.97
    assert isinstance(model.inverse_, ElasticInverse)


@pytest.mark.filterwarnings("error")
def test_far_coordinates_and_distances(model, X):
    far = np.vstack([model.embedding_[:3], [[30.0, 0.0], [-1e6, 1e6], [1e12, 3.0]]])
    with pytest.warns(NoveltyWarning, match="3 of 6 positions are off the map"):
        data, distance = model.inverse_transform(far, return_distance=True)
    inverse, train = model.inverse_, X[:150]
    widths = inverse.attraction_width, inverse.repulsion_width
    energy = PublishedEnergy(train, model.embedding_, PERPLEXITY, *widths)
    for x, y in zip(far, data, strict=True):
        nearest = np.argsort(((x - model.embedding_) ** 2).sum(axis=1))[:3]
        scale = energy(x, y)
        # The function is called at once, so the loop variables are those of this pass.
        best = least(lambda v: energy(x, v) / scale, [y, *train[nearest]])  # noqa: B023
        assert best.fun > 1 - 1e-4
    assert (distance[:3] < 3).all()
    assert (distance[3:] > 10).all()


def test_rows_do_not_depend_on_each_other(model):
    Z = model.embedding_[:30] + 0.1
    alone = np.vstack([model.inverse_transform(Z[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(alone, model.inverse_transform(Z), atol=1e-7)


def test_single_precision_pickles_clones_and_parameters(model, X):
    single = elastic().fit(X[:150].astype(np.float32))
    back = single.inverse_transform(single.embedding_)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, model.inverse_transform(model.embedding_), atol=1e-4)
    again = pickle.loads(pickle.dumps(model))
    Z = model.embedding_[:9] + 0.2
    np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))
    assert clone(model).get_params()["inverse"] == "elastic"
    assert clone(model).set_params(inverse="regression").inverse == "regression"


def test_the_model_keeps_its_data(X):
    given = X[:100].copy()
    model = elastic().fit(given)
    before = model.inverse_transform(model.embedding_)
    given[:] = 7.0
    np.testing.assert_array_equal(model.inverse_transform(model.embedding_), before)


def test_sparse_data(X):
    thin = np.where(np.abs(X[:100]) < 0.3, 0.0, X[:100])
    dense, model = (elastic().fit(A) for A in (thin, sparse.csr_array(thin)))
    places = dense.embedding_ + 0.1
    found = model.inverse_transform(places)
    np.testing.assert_allclose(found, dense.inverse_transform(places), atol=1e-9)
    assert np.linalg.norm(found - thin, axis=1).mean() < 0.15


def test_more_features_than_rows(X):
    """An isometric copy of the data has the same reconstructions."""
    few, rng = X[:60], np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(90, 3)))[0].T
    narrow = elastic().fit(few)
    wide = replace(narrow.inverse_, X=few @ basis + 5.0)
    Z = narrow.embedding_[:20] + 0.2
    np.testing.assert_allclose(wide.predict(Z), narrow.inverse_.predict(Z) @ basis + 5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_duplicates_and_few_points(X):
    """Without widths of the affinities nothing repels: the kernel-weighted mean is the minimum."""
    twice = np.repeat(X[:20], 12, axis=0)  # at least `perplexity` of them are tied
    model = elastic().fit(twice)
    places = np.vstack([model.embedding_[::12], model.embedding_[:5] + 0.3, np.zeros((1, 2))])
    exponents = cdist(places, model.embedding_, "sqeuclidean") / model.inverse_.attraction_width**2
    K = np.exp(exponents.min(axis=1, keepdims=True) - exponents)
    expected = K @ twice / K.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.inverse_transform(places), expected, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), twice, atol=1e-3)
    two = mf.ElasticEmbedding(1, weight=WEIGHT, inverse="elastic").fit(X[:2])
    np.testing.assert_allclose(two.inverse_transform(two.embedding_), X[:2], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1e100])
@pytest.mark.filterwarnings("error")
def test_units_do_not_matter(X, scale):
    here, there = (elastic().fit(c * X[:80]).inverse_ for c in (1.0, scale))
    assert here.repulsion_width == there.repulsion_width
    Z = here.Z[:10] + 0.1
    moved = replace(there, Z=here.Z)
    np.testing.assert_allclose(moved.predict(Z) / scale, here.predict(Z), atol=1e-4)


class TestNames:
    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
    @pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE, mf.TSNE])
    def test_methods_without_their_own(self, X, method):
        model = method(max_iter=2, init="pca", inverse="regression").fit(X[:50])
        assert isinstance(model.inverse_, LocalRegression)
        match = "must be None, 'regression' .the method defines no inverse of its own. or a regr"
        with pytest.raises(TypeError, match=f"inverse='elastic' {match}"):
            model.set_params(inverse="elastic").fit(X[:50])

    def test_elastic_embedding(self, X, model):
        default = elastic(inverse=None).fit(X[:150])
        named = elastic(inverse="regression").fit(X[:150])
        Z = default.embedding_[:9]
        np.testing.assert_array_equal(named.inverse_transform(Z), default.inverse_transform(Z))
        assert not np.allclose(model.inverse_transform(Z), default.inverse_transform(Z))
        match = "inverse='own' must be None, 'regression', 'elastic' or a regressor"
        with pytest.raises(TypeError, match=match):
            elastic(inverse="own").fit(X)
        other = elastic(inverse=KNeighborsRegressor(1)).fit(X[:150])
        np.testing.assert_allclose(other.inverse_transform(other.embedding_), X[:150])

    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
    def test_ukr(self, X):
        models = [
            mf.UKR(init="pca", max_iter=3, inverse=inverse).fit(X[:60])
            for inverse in (None, "kernel_regression", "regression")
        ]
        default, named, regression = (m.inverse_transform(m.embedding_) for m in models)
        np.testing.assert_array_equal(named, default)
        assert models[1].jacobian(models[1].embedding_).shape == (60, 3, 2)
        expected = LocalRegression(models[2].embedding_, X[:60]).predict(models[2].embedding_)
        np.testing.assert_allclose(regression, expected)
        with pytest.raises(ValueError, match="which inverse='regression' replaces; fit with"):
            models[2].jacobian(models[2].embedding_)
        match = "inverse='elastic' must be None, 'kernel_regression', 'regression' or a regressor"
        with pytest.raises(TypeError, match=match):
            mf.UKR(inverse="elastic").fit(X[:60])


class TestRefusals:
    """Before the search, with the value and the remedy."""

    @pytest.mark.parametrize("inverse", ["elastic", "regression"])
    def test_no_data(self, X, inverse):
        match = f"inverse='{inverse}' is fitted to data, but fit was given precomputed values"
        with pytest.raises(ValueError, match=match):
            elastic(inverse=inverse, metric="precomputed").fit(cdist(X, X))
        graph = mf.NeighborGraph.build(cdist(X, X), 24, metric="precomputed")
        with pytest.raises(ValueError, match="given a neighbor graph without data; pass the data"):
            elastic(inverse=inverse).fit(graph)

    def test_a_graph_with_data(self, X):
        graph = mf.NeighborGraph.build(X[:150], 24)
        assert isinstance(elastic().fit(graph).inverse_, ElasticInverse)
        graph = mf.NeighborGraph.build(X[:150], 24, metric="manhattan")
        with pytest.raises(ValueError, match="Euclidean distances, not metric='manhattan'; pass"):
            elastic().fit(graph)

    def test_other_metrics(self, X):
        assert isinstance(elastic(metric="l2", max_iter=300).fit(X[:80]).inverse_, ElasticInverse)
        with pytest.raises(ValueError, match="metric='euclidean' or inverse='regression'"):
            elastic(metric="manhattan").fit(X)

    def test_other_repulsion(self, X, monkeypatch):
        match = "needs repulsion='squared_distance'.* for 200 points repulsion="
        with pytest.raises(ValueError, match=f"{match}'uniform' is not that; pass"):
            elastic(repulsion="uniform").fit(X)
        with pytest.raises(ValueError, match=f"{match}a matrix"):
            elastic(repulsion=cdist(X, X, "sqeuclidean")).fit(X)
        monkeypatch.setattr(mf.ElasticEmbedding, "_pairs_kept", 100)
        with (
            pytest.warns(ManifoldryWarning, match="repulsion is uniform, because 200 points"),
            pytest.raises(ValueError, match=f"{match}'auto'"),
        ):
            elastic(n_components=4).fit(X)

    def test_repulsion_by_some_components_of_the_data(self, X, monkeypatch):
        monkeypatch.setattr(mf.ElasticEmbedding, "_pairs_kept", 100)
        wide = np.hstack([X, 0.01 * np.random.default_rng(0).normal(size=(len(X), 40))])
        n_features = wide.shape[1]
        message = f"n_features={n_features}, but that of {len(X)} points uses 30 .*'regression'"
        with pytest.raises(ValueError, match=message):
            elastic().fit(wide)
        assert isinstance(elastic().fit(X).inverse_, ElasticInverse)


def test_kernels_of_other_affinities(X):
    graph = mf.NeighborGraph.build(X, 12)
    widths, log_scale = affinity_kernels(Gaussian(gamma=4.0).fit(graph), graph)
    W = Gaussian(gamma=4.0).fit(graph).matrix(graph).toarray()
    i, j = np.argwhere(W)[17]
    weight = np.exp(log_scale[j] - ((X[i] - X[j]) ** 2).sum() / widths[j] ** 2)
    assert np.isclose(weight, W[i, j] / W.sum())
    with pytest.raises(ValueError, match="needs entropic or Gaussian affinities, not SelfTuning"):
        affinity_kernels(SelfTuning().fit(graph), graph)
