"""Affinities other than entropic ones: `affinity` and `gamma` of SNE and the elastic embedding."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone

import manifoldry as mf
from manifoldry.affinity import Entropic, Gaussian, SelfTuning
from manifoldry.datasets import make_s_curve, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives import elastic, sne, symmetric_sne

GAMMA = 2.0  # 1/h for the bandwidth h = ½ of Memisevic and Hinton


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def curve():
    return make_s_curve(110, noise=0.05, random_state=1).X


@pytest.fixture(scope="module")
def kernel(curve):
    K = np.exp(-GAMMA * cdist(curve[:100], curve[:100], "sqeuclidean"))
    np.fill_diagonal(K, 0)
    return K


def short(method, **parameters):
    """A fit of a few steps, for its objective."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lambda X: method(init="pca", max_iter=3, **parameters).fit(X)


def same(objective, expected, rng):
    Y = rng.normal(size=(expected.n, 2))
    for one, other in zip(
        objective.value_and_gradient(Y), expected.value_and_gradient(Y), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("given", [{"gamma": GAMMA}, {"affinity": Gaussian(gamma=GAMMA)}])
def test_one_bandwidth_gives_the_objectives_of_the_documents(curve, kernel, given, rng):
    """SNE normalizes every row of exp(−gamma·d²), symmetric SNE and the elastic embedding all."""
    X = curve[:100]
    rows = kernel / kernel.sum(axis=1, keepdims=True)
    model = short(mf.SNE, **given)(X)
    assert model.perplexity_ is None
    same(model.objective_, sne(rows), rng)
    joint = kernel / kernel.sum()
    same(short(mf.SymmetricSNE, **given)(X).objective_, symmetric_sne(joint), rng)
    D = cdist(X, X, "sqeuclidean")
    model = short(mf.ElasticEmbedding, affinity=Gaussian(gamma=GAMMA), weight=10.0)(X)
    Y = rng.normal(size=(100, 2))
    E = cdist(Y, Y, "sqeuclidean")
    value = (joint * E).sum() + 10 * (D / D.sum() * np.exp(-E)).sum()
    np.testing.assert_allclose(model.objective_.value(Y), value, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_the_demonstration_of_the_elastic_embedding(rng):
    """Twenty neighbors and σ = 5: the graph is passed, the bandwidth is a parameter."""
    X = make_swiss_roll(150, random_state=0).X
    graph, gamma = NeighborGraph.build(X, 20), 1 / (2 * 5.0**2)
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    ranks = np.argsort(np.argsort(cdist(X, X), axis=1), axis=1)
    K[~((ranks <= 20) | (ranks.T <= 20))] = 0
    np.fill_diagonal(K, 0)
    affinity = Gaussian(gamma=gamma)
    model = short(mf.ElasticEmbedding, affinity=affinity, weight=5.0, repulsion="uniform")(graph)
    same(model.objective_, elastic(K / K.sum(), weight=5.0), rng)
    np.testing.assert_allclose(model.affinity_.toarray(), K / K.sum(), atol=1e-15)


def test_new_rows_follow_the_rule_of_the_training_rows(curve, kernel):
    """SNE normalizes the row; the elastic embedding keeps the constant of the training."""
    X, new = curve[:100], curve[100:]
    K = np.exp(-GAMMA * cdist(new, X, "sqeuclidean"))
    nearest = np.sort(K, axis=1)[:, :1] < K  # each point has n − 1 neighbors
    for method in (mf.SNE, mf.SymmetricSNE):
        rows, scale = method(gamma=GAMMA).fit(X).extension_.affinity.rows(new)
        assert scale is None
        np.testing.assert_allclose(
            rows.toarray(), K * nearest / (K * nearest).sum(axis=1, keepdims=True), atol=1e-14
        )
    model = mf.ElasticEmbedding(affinity=Gaussian(gamma=GAMMA), weight=50.0).fit(X)
    W, log_scale = model.extension_.affinity.rows(new)
    found = W.toarray() * np.exp(log_scale)[:, None]
    np.testing.assert_allclose(found[nearest], (100 * K / kernel.sum())[nearest], rtol=1e-10)
    assert model.extension_error(X) < 1e-3
    for method in (mf.SNE, mf.SymmetricSNE):
        placed = method(gamma=GAMMA).fit(X).transform(new)
        assert np.isfinite(placed).all()


def test_sne_is_stationary_where_the_means_agree(curve):
    """At a minimum of a new point Σ q·y = Σ p·y, with p from one bandwidth."""
    X, new = curve[:100], curve[100:]
    model = mf.SNE(gamma=GAMMA).fit(X)
    P = np.exp(-GAMMA * cdist(new, X, "sqeuclidean"))
    P[np.arange(10), P.argmin(axis=1)] = 0
    P /= P.sum(axis=1, keepdims=True)
    Q = np.exp(-cdist(model.transform(new), model.embedding_, "sqeuclidean"))
    Q /= Q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Q @ model.embedding_, P @ model.embedding_, atol=1e-7)


@pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE])
def test_names_and_objects(curve, method):
    X = curve[:100]
    plain = method(perplexity=7, init="pca").fit(X).embedding_
    given = method(affinity=Entropic(perplexity=7), init="pca").fit(X)
    np.testing.assert_array_equal(given.embedding_, plain)
    assert given.perplexity_ == 7
    named = method(affinity="self_tuning", init="pca").fit(X).embedding_
    object_ = method(affinity=SelfTuning(), init="pca").fit(X).embedding_
    np.testing.assert_array_equal(named, object_)
    assert clone(method(affinity="gaussian", gamma=0.5)).gamma == 0.5
    with pytest.raises(ValueError, match=r"perplexity=5 is not used by Gaussian.*pass no perp"):
        method(perplexity=5, gamma=1.0).fit(X)
    with pytest.raises(ValueError, match=r"gamma=1\.0 is not used by affinity='binary'"):
        method(affinity="binary", gamma=1.0).fit(X)
    with pytest.raises(ValueError, match="affinity"):
        method(affinity="precomputed").fit(X)
    with pytest.raises(ValueError, match="gamma"):
        method(gamma=-1.0).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        mf.SymmetricSNE(gamma=GAMMA),
        mf.ElasticEmbedding(affinity=Gaussian(gamma=GAMMA), weight=10.0),
    ],
)
def test_points_without_affinity_are_refused(curve, model):
    """A probability has a neighbor however far it is, a kernel does not."""
    X = np.vstack([curve[:100], [[100.0, 0, 0]]])
    with pytest.raises(ValueError, match=r"1 of 101 points have no affinity.*smaller gamma"):
        model.fit(X)
    assert np.isfinite(mf.SNE(gamma=GAMMA).fit(X).embedding_).all()
    with pytest.raises(ValueError, match="no affinity"):
        clone(model).set_params(**with_gamma(model, 1e9)).fit(X)


def with_gamma(model, gamma):
    if isinstance(model, mf.ElasticEmbedding):
        return {"affinity": Gaussian(gamma=gamma)}
    return {"gamma": gamma}


def test_float32_and_distances(curve):
    X, new = curve[:100], curve[100:]
    for method in (mf.SNE, mf.SymmetricSNE):
        model = method(gamma=GAMMA, init="pca").fit(X)
        pairs = method(gamma=GAMMA, metric="precomputed", init=model.embedding_).fit(cdist(X, X))
        expected = model.transform(new)
        np.testing.assert_allclose(pairs.transform(cdist(new, X)), expected, atol=0.02)
        single = method(gamma=GAMMA, init="pca").fit(X.astype(np.float32))
        assert single.transform(new.astype(np.float32)).dtype == np.float32


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize(("rule", "combine"), [("or", np.maximum), ("and", np.minimum)])
def test_entropic_affinities_are_made_symmetric_as_requested(curve, rule, combine):
    affinity = Entropic(8, symmetrize=rule)
    model = short(mf.SymmetricSNE, affinity=affinity)(curve)
    graph = NeighborGraph.build(curve, 24)
    P = affinity.fit(graph).conditional(graph).toarray()
    expected = combine(P, P.T)
    np.testing.assert_allclose(model.affinity_.toarray(), expected / expected.sum(), atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("estimator", "default"),
    [(mf.TSNE, 20), (mf.SNE, 10), (mf.SymmetricSNE, 10), (mf.ElasticEmbedding, 20)],
)
def test_a_perplexity_lowered_by_a_narrow_graph_is_announced(estimator, default):
    # scanpy's graph of 15 neighbors, the point itself included.
    points = np.random.default_rng(0).normal(size=(120, 4))
    graph = NeighborGraph.build(points, n_neighbors=14)
    words = f"perplexity=4.67 is used in place of the default of {default}, .* has 14 neighbors"
    stored = graph.matrix(graph.distances)
    given = {"graph": (graph, {}), "distances": (stored, {"metric": "precomputed"})}
    for rows, options in given.values():
        with pytest.warns(ManifoldryWarning, match=words):
            model = estimator(max_iter=1, **options).fit(rows)
        assert model.perplexity_ == pytest.approx(14 / 3)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "perplexity=")
            warnings.filterwarnings("ignore", ".*max_iter")
            estimator(max_iter=1, perplexity=4, **options).fit(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "perplexity=")
        assert estimator(max_iter=1).fit(points).perplexity_ == default  # of 120 points
        assert estimator(max_iter=1).fit(points[:30]).perplexity_ == min(default, 29 / 3)
    with pytest.raises(ValueError, match="perplexity=30 must be at most 14"):
        estimator(perplexity=30).fit(graph)


def test_neighbors_lowered_by_few_stored_distances_are_announced():
    points = np.random.default_rng(0).normal(size=(200, 3))
    few = NeighborGraph.build(points, n_neighbors=8)
    stored = few.matrix(few.distances)
    with pytest.warns(ManifoldryWarning, match="n_neighbors=8 is used in place of the default of"):
        mf.DiffusionMaps(metric="precomputed").fit(stored)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "n_neighbors=")
        mf.DiffusionMaps(metric="precomputed", n_neighbors=8).fit(stored)
