"""Fits that start from the map of a fitted model."""

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition, manifold
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry as mf
from manifoldry.exceptions import NoveltyWarning
from manifoldry.optimize import EarlyExaggeration, Homotopy, Momentum, Stopping
from manifoldry.semidefinite import MethodOfMultipliers

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")

METHODS = {
    "SNE": mf.SNE(),
    "SymmetricSNE": mf.SymmetricSNE(),
    # The default momentum of 0.95 hardly ever lets a search converge.
    "TSNE": mf.TSNE(optimizer=Momentum(stopping=Stopping(value_tol=1e-5)), max_iter=50),
    "ElasticEmbedding": mf.ElasticEmbedding(weight=20.0),
    "UKR": mf.UKR(init="pca", max_iter=30),
}
every_method = pytest.mark.parametrize("method", METHODS)


def start_of(model, X):
    """The embedding from which the search of a model starts, and the fitted model."""
    seen = []

    def stop(iterate):
        seen.append(np.array(iterate.embedding))
        return True

    return seen, model.set_params(callback=stop).fit(X)


def first_map(model, X):
    return start_of(model, X)[0][0]


def assert_same_shape(A, B):
    """Equal up to their center and their scale."""
    A, B = (np.asarray(Y, float) - np.mean(Y, axis=0, dtype=float) for Y in (A, B))
    np.testing.assert_allclose(A / np.linalg.norm(A), B / np.linalg.norm(B), atol=1e-12)


@every_method
def test_its_own_data_start_at_its_embedding(method, X):
    """Also if the rows are in another order. A search that had converged ends at once."""
    first = clone(METHODS[method]).set_params(max_iter=None).fit(X)
    for order in (slice(None, None, -1), slice(None)):
        again = clone(METHODS[method]).set_params(init=first)
        np.testing.assert_array_equal(first_map(again, X[order]), first.embedding_[order])
    again = again.set_params(max_iter=None, callback=None).fit(X)
    assert again.n_iter_ < 0.1 * first.n_iter_
    assert again.loss_ <= first.loss_ * (1 + 1e-6)


@every_method
def test_the_model_of_a_sample_places_all_points(method, X):
    sample = clone(METHODS[method]).fit(X[::2])
    start = first_map(clone(METHODS[method]).set_params(init=sample), X)
    assert_same_shape(start, sample.transform(X))
    assert_same_shape(start[::2], sample.embedding_)


@pytest.mark.filterwarnings("ignore:the neighbor graph has 2 connected components")
def test_rows_unlike_those_of_the_model_are_reported(X):
    model = mf.PCA(2).fit(pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])]))
    with pytest.warns(NoveltyWarning) as caught:
        first_map(mf.SNE(init=model), np.vstack([X[:40], X[:40] + 1000.0]))
    assert not [w for w in caught if "feature names" in str(w.message)]


@pytest.mark.parametrize(
    "model",
    [
        mf.PCA(2),
        mf.LaplacianEigenmaps(),
        decomposition.PCA(2),
        manifold.TSNE(perplexity=10, max_iter=250),
        make_pipeline(StandardScaler(), decomposition.PCA(2)),
    ],
    ids=lambda model: f"{type(model).__module__.split('.')[0]} {type(model).__name__}",
)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "UKR"])
def test_any_fitted_model(method, model, X):
    """Its map at a scale at which the objective is smaller than at others."""
    model = clone(model).fit(X)
    Y = getattr(model, "embedding_", None)
    Y = model.transform(X) if Y is None else Y
    start, fitted = start_of(clone(METHODS[method]).set_params(init=model), X)
    assert_same_shape(start[0], Y)
    if method == "TSNE":
        assert start[0].std(axis=0).max() == pytest.approx(1e-4)
        return
    at = [fitted.objective_.value(s * start[0]) for s in (0.8, 1.0, 1.25)]
    assert at[1] == min(at)


class TestEarlyExaggeration:
    """None from a t-SNE of the same rows, unless it is asked for."""

    def phases(self, X, **parameters):
        model = mf.TSNE(perplexity=10, max_iter=3, **parameters).fit(X)
        return [float(p) for p in np.unique(model.trace_["parameter"])]

    def test_it_is_left_out(self, X):
        model = mf.TSNE(perplexity=10, max_iter=5).fit(X)
        assert np.isnan(self.phases(X, init=model)).all()
        assert np.isnan(self.phases(X, init=FrozenEstimator(model))).all()
        assert self.phases(X, init=mf.TSNE(perplexity=10, max_iter=1).fit(X[:50]))[0] == 1 / 12
        assert self.phases(X, init=mf.PCA(2).fit(X))[0] == 1 / 12
        few = EarlyExaggeration(4.0, 3)
        assert self.phases(X, init=model, early_exaggeration=few)[0] == 1 / 4
        assert self.phases(X, init=clone(model))[0] == 1 / 12
        assert self.phases(X, init=model.embedding_, early_exaggeration=4.0)[0] == 1 / 4

    def test_other_rows_than_those_of_the_model(self, X):
        """As many of them, some of them its own; one of them twice; or fewer of its own."""
        model = mf.TSNE(perplexity=10, max_iter=5).fit(X)
        moved = X.copy()
        moved[7] += 0.01
        twice = np.vstack([X[:1], X[:-1]])
        for rows in (moved, twice, X[:60]):
            assert self.phases(rows, init=model)[0] == 1 / 12
            start = first_map(mf.TSNE(perplexity=10, init=model), rows)
            assert start.std(axis=0).max() == pytest.approx(1e-4)

    def test_the_same_rows_in_another_precision(self, X):
        """The embedding of the model is rounded then."""
        rows = X.astype(np.float32)
        model = mf.TSNE(perplexity=10, max_iter=5).fit(rows.astype(np.float64))
        assert np.isnan(self.phases(rows, init=model)).all()

    def test_the_start_keeps_its_scale_if_there_is_none(self, X):
        model = mf.TSNE(perplexity=10, max_iter=5).fit(X)
        again = mf.TSNE(perplexity=10, init=model, early_exaggeration=1)
        np.testing.assert_array_equal(first_map(again, X), model.embedding_)

    def test_a_homotopy_starts_with_it(self, X):
        model = mf.TSNE(perplexity=10, max_iter=5).fit(X)
        with pytest.warns(UserWarning, match="a homotopy has its own start"):
            values = self.phases(X, init=model, optimizer=Homotopy(n_steps=2))
        assert values == [1 / 12, 1]


def test_copies_are_not_fitted_unless_frozen(X):
    first = mf.SNE(init="random").fit(X)
    model = mf.SNE(init=FrozenEstimator(first))
    np.testing.assert_array_equal(first_map(clone(model), X), first.embedding_)
    start = first_map(clone(mf.SNE(init=first)), X)
    assert not np.allclose(start, first.embedding_)


@pytest.mark.filterwarnings("error:.*feature names")
def test_frames(X):
    frame = pd.DataFrame(X, columns=list("abc"))
    first = mf.SNE(init="random").fit(frame)
    np.testing.assert_array_equal(first_map(mf.SNE(init=first), frame), first.embedding_)


def test_distances_and_graphs(X):
    D, graph = pairwise_distances(X), mf.NeighborGraph.build(X, 30)
    first = mf.SNE(metric="precomputed", init="random").fit(D)
    np.testing.assert_array_equal(
        first_map(mf.SNE(init=first, metric="precomputed"), D), first.embedding_
    )
    first = mf.SNE(init="random").fit(graph)
    np.testing.assert_array_equal(first_map(mf.SNE(init=first), graph), first.embedding_)
    # Without the data, a model of as many points is taken to be one of these.
    np.testing.assert_array_equal(
        first_map(mf.SNE(init=first, metric="precomputed"), D), first.embedding_
    )


def test_maximum_variance_unfolding(X):
    model = mf.MVU(optimizer=MethodOfMultipliers(init=mf.PCA(2).fit(X)))
    assert model.fit(X[:30]).converged_


class Given(BaseEstimator):
    """A model with the map that it was given."""

    def __init__(self, Y):
        self.Y = Y

    def fit(self, X, y=None):
        self.embedding_ = self.Y
        return self


def test_points_off_the_map_start_in_its_middle(X):
    Y = np.random.default_rng(0).normal(size=(90, 2)) + 5.0
    Y[:4] = np.nan
    start = first_map(mf.SNE(init=Given(Y).fit(X)), X)
    assert_same_shape(start[4:], Y[4:])
    np.testing.assert_allclose(start[:4], np.tile(start[4:].mean(axis=0), (4, 1)))


def test_models_that_do_not_fit(X):
    with pytest.raises(ValueError, match="fitted PCA with 3 coordinates; pass n_components=3, or"):
        mf.SNE(init=mf.PCA(3).fit(X)).fit(X)
    without_transform = manifold.SpectralEmbedding(n_neighbors=5).fit(X[:50])
    with pytest.raises(ValueError, match="SpectralEmbedding of 50 points, which cannot place"):
        mf.SNE(init=without_transform).fit(X)
    with pytest.raises(ValueError, match="all points in one place"):
        mf.SNE(init=Given(np.zeros((90, 2))).fit(X)).fit(X)
    with pytest.raises(ValueError, match=r"init is a PCA of data with 2 columns, but .* have 3;"):
        mf.SNE(init=decomposition.PCA(2).fit(X[:, :2])).fit(X)
    D = pairwise_distances(X)
    fewer = mf.SNE(metric="precomputed", init="random", max_iter=1).fit(D[:50, :50])
    with pytest.raises(ValueError, match=r"init is a SNE of data with 50 columns, but .* have 90;"):
        mf.SNE(metric="precomputed", init=fewer).fit(D)


def test_a_model_is_not_its_own_start(X):
    """That would end in endless recursion. A fit does not change parameters, this one neither."""
    model = mf.TSNE(max_iter=5).fit(X)
    before = model.embedding_
    model.init = model
    with pytest.raises(ValueError, match=r"itself; assign model.init = None.*TSNE\(init=model\)"):
        model.fit(X)
    assert model.init is model
    assert model.embedding_ is before
