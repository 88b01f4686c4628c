"""The weight of the elastic embedding, its repulsions and its map of new points."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import manifoldry as mf
from manifoldry.affinity import Gaussian
from manifoldry.exceptions import (
    ConvergenceWarning,
    DisconnectedGraphWarning,
    ManifoldryWarning,
)
from manifoldry.iterative.elastic_weight import WeightSearch
from manifoldry.iterative.neighbor_weights import Neighbors
from manifoldry.objectives import UniformRepulsion, projected_distance_weights
from manifoldry.objectives.projected_distance import ProjectedDistanceRepulsion
from manifoldry.objectives.squared_distance import SquaredDistanceRepulsion
from manifoldry.optimize import Callback, Homotopy


def leave_one_out(Y, X):
    """Squared errors of predicting each row by the others, weighted by exp(−d²) on the map."""
    K = np.exp(-cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(K, 0)
    return np.square(X - K @ X / K.sum(axis=1, keepdims=True)).sum(axis=1)


class TestWeight:
    @pytest.mark.parametrize("optimizer", [None, "homotopy"])
    @pytest.mark.parametrize("repulsion", ["uniform", "squared_distance"])
    def test_the_rule(self, X, optimizer, repulsion):
        """The smallest on the path whose error is the least, but for two standard errors."""
        model = mf.ElasticEmbedding(repulsion=repulsion, optimizer=optimizer).fit(X)
        weights = model.path_.column("parameter")
        errors = np.sort([leave_one_out(Y, X) for Y in model.path_.embeddings])[:, :-1]  # 1 % of 90
        means, spreads = errors.mean(axis=1), errors.std(axis=1) / np.sqrt(len(X) - 1)
        best = means.argmin()
        expected = weights[means <= means[best] + 2 * spreads[best]].min()
        assert model.weight_ == expected
        # It went on for five decades, until four further weights were no better.
        further = len(weights) - 1 - best
        assert weights[-1] >= 0.999e5 * weights[0]
        assert further >= 4 or weights[-1] > 1e7 * weights[0]
        assert further == 4 or weights[-2] < 1e5 * weights[0] or weights[-1] > 1e7 * weights[0]
        assert np.allclose(np.diff(np.log10(weights)), 0.25)

    def test_clusters_far_apart_stay_whole_and_near(self):
        """Squared distances between them dwarf those within, and no edge holds them together."""
        rng = np.random.default_rng(0)
        X = np.r_[rng.normal(size=(80, 4)), rng.normal(size=(80, 4)) + 50]
        with pytest.warns(DisconnectedGraphWarning):
            Y = mf.ElasticEmbedding().fit(X).embedding_
        within = max(Y[:80].std(axis=0).max(), Y[80:].std(axis=0).max())
        assert min(Y[:80].std(axis=0).min(), Y[80:].std(axis=0).min()) > 0.5
        assert np.linalg.norm(Y[:80].mean(axis=0) - Y[80:].mean(axis=0)) < 10 * within

    def test_an_outlier_does_not_flatten_the_rest(self):
        X = np.r_[np.random.default_rng(0).normal(size=(120, 4)), [[30.0] * 4]]
        Y = mf.ElasticEmbedding().fit(X).embedding_[:-1]
        assert Y.std(axis=0).min() > 0.5

    def test_the_map_is_the_minimizer_at_that_weight(self, X):
        model = mf.ElasticEmbedding(repulsion="uniform").fit(X)
        again = mf.ElasticEmbedding(
            repulsion="uniform", weight=model.weight_, init=model.embedding_
        ).fit(X)
        assert model.converged_
        assert np.isclose(again.loss_, model.loss_, rtol=1e-4)
        assert np.isclose(model.objective_.value(model.embedding_), model.loss_)

    def test_units_do_not_matter(self, X):
        weights = {mf.ElasticEmbedding().fit(s * X).weight_ for s in (1e-100, 1.0, 1e100)}
        assert np.ptp(list(weights)) < 1e-6 * max(weights)

    def test_sparse_data(self, X):
        """They are not made dense, and not centered, which prediction does not need."""
        X = np.where(np.abs(X) < 3, 0.0, X)
        dense, thin = (mf.ElasticEmbedding().fit(A) for A in (X, sparse.csr_array(X)))
        assert np.isclose(thin.weight_, dense.weight_, rtol=1e-6)

    def test_distances_alone_do_not_tell(self, X):
        model = mf.ElasticEmbedding(metric="precomputed").fit(cdist(X, X))
        assert model.weight_ == 100.0
        assert model.path_ is None

    def test_a_given_weight_is_taken(self, X):
        model = mf.ElasticEmbedding(weight=7).fit(X)
        assert model.weight_ == 7.0
        assert model.path_ is None

    def test_it_is_said_where_the_search_ends_too_soon(self, X, monkeypatch):
        class ShortSearch(WeightSearch):
            def __init__(self, *given):
                super().__init__(*given, max_weight_ratio=10.0)

        monkeypatch.setattr("manifoldry.iterative.elastic_embedding.WeightSearch", ShortSearch)
        with pytest.warns(ConvergenceWarning, match="pass a weight"):
            mf.ElasticEmbedding().fit(X)

    @pytest.mark.parametrize("form", [np.array, sparse.csr_array])
    @pytest.mark.parametrize("scale", [0.3, 3.0, 100.0])
    @pytest.mark.parametrize("d", [1, 2])
    def test_merged_points_predict_as_well(self, d, scale, form):
        """At the largest scale most points have no other within the reach of the kernel."""
        rng = np.random.default_rng(0)
        Y = scale * (rng.normal(size=(1500, d)) + 3 * rng.integers(3, size=(1500, 1)))
        X = np.column_stack([np.sin(Y / scale), Y**2 / scale**2]) + 0.3 * rng.normal(
            size=(1500, 2 * d)
        )
        exact, merged = (
            WeightSearch(form(X), None, merge_above=most)._error(Y) for most in (10**9, 0)
        )
        mean, standard_error = exact
        assert abs(merged[0] - mean) <= 0.2 * standard_error
        assert merged[1] == pytest.approx(standard_error, rel=0.02)

    def test_a_fitted_model_as_a_start(self, X):
        model = mf.ElasticEmbedding().fit(X)
        again = mf.ElasticEmbedding(weight=model.weight_, init=model.embedding_).fit(X)
        assert again.n_evaluations_ < model.n_evaluations_ / 10
        assert again.loss_ <= model.loss_

    def test_an_interrupt_on_the_way(self, X):
        """The weight is that at which the search was."""

        def stop(iterate):
            if iterate.step.iteration == 40:
                raise KeyboardInterrupt

        model = mf.ElasticEmbedding(callback=Callback(stop, on_interrupt="keep")).fit(X)
        assert model.weight_ == model.trace_["parameter"][-1] == model.objective_.weight
        assert np.isclose(model.loss_, model.objective_.value(model.embedding_))

    def test_few_points(self, X):
        for n in (3, 10):
            model = mf.ElasticEmbedding(1).fit(X[:n])
            assert np.isfinite(model.embedding_).all()


class TestRepulsion:
    def test_given_squared_distances(self, X, rotated):
        named = mf.ElasticEmbedding(weight=20.0, repulsion="squared_distance").fit(X)
        for given in (cdist(X, X, "sqeuclidean"), sparse.csr_array(cdist(X, X, "sqeuclidean"))):
            model = mf.ElasticEmbedding(weight=20.0, repulsion=given).fit(X)
            assert rotated(model.embedding_, named.embedding_) < 1e-4

    def test_a_fitted_model_is_not_as_large_as_all_pairs(self):
        X = np.random.default_rng(0).normal(size=(1000, 3))
        model = mf.ElasticEmbedding(perplexity=5, weight=10.0, repulsion="squared_distance").fit(X)
        size = len(pickle.dumps(model))
        assert size < 2 * 1000**2  # all pairs in single precision would take twice that
        assert model.learned_affinity_.shape == (1000, 1000)
        assert model.bifurcation_.weight > 0
        assert len(pickle.dumps(model)) < 1.1 * size

    def test_given_weights_say_nothing_of_new_points(self, X, X_new):
        model = mf.ElasticEmbedding(weight=20.0, repulsion=cdist(X, X)).fit(X)
        assert np.array_equal(model.transform(X[:4]), model.embedding_[:4])
        with pytest.raises(ValueError, match=r"repulsion of new points is unknown.*'uniform'"):
            model.transform(X_new)

    def test_squared_distances_need_the_data(self, X):
        model = mf.ElasticEmbedding(metric="precomputed", repulsion="squared_distance")
        with pytest.raises(ValueError, match="pass the matrix of squared distances as repulsion"):
            model.fit(cdist(X, X))

    def test_weights_are_the_callers(self, X):
        given = cdist(X, X)
        kept = given.copy()
        model = mf.ElasticEmbedding(weight=20.0, repulsion=given).fit(X)
        assert np.array_equal(given, kept)
        loss = model.objective_.value(model.embedding_)
        given[:] = 7.0
        assert model.objective_.value(model.embedding_) == loss


@pytest.mark.parametrize("repulsion", ["uniform", "squared_distance"])
def test_new_points_minimize_their_part_of_the_energy(X, X_new, repulsion):
    """No place on a fine grid around costs less, by the energy of one more point written out."""
    model = mf.ElasticEmbedding(weight=20.0, perplexity=10, repulsion=repulsion).fit(X)
    placed = model.transform(X_new)
    n = len(X)
    W, log_scale = model.extension_.affinity.rows(X_new)
    P = W.toarray() * np.exp(log_scale)[:, None]
    D = cdist(X_new, X, "sqeuclidean")
    R = (
        D * n / cdist(X, X, "sqeuclidean").sum()
        if repulsion != "uniform"
        else np.full_like(D, 1 / (n - 1))
    )
    steps = np.array([[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)]) * 1e-3
    for i, z in enumerate(placed):
        d = cdist(z + steps, model.embedding_, "sqeuclidean")
        energy = d @ P[i] + 20.0 * np.exp(-d) @ R[i]
        assert energy.argmin() == 4


class TestManyPoints:
    """Beyond 5000 points sums over pairs are approximate; here beyond 150."""

    @pytest.fixture(autouse=True)
    def few_are_exact(self, monkeypatch):
        monkeypatch.setattr(mf.ElasticEmbedding, "_pairs_kept", 150)

    def test_repulsion_is_still_by_squared_distances(self):
        X = load_digits().data
        X, new = X[:300], X[300:330]
        model = mf.ElasticEmbedding(weight=100.0).fit(X)
        weights = model.objective_.repulsion
        assert isinstance(weights, ProjectedDistanceRepulsion)
        assert weights.rank == 30
        components = PCA(30).fit_transform(X)
        D = cdist(components, components, "sqeuclidean")
        exact = mf.ElasticEmbedding(weight=100.0, repulsion=D).fit(X)
        assert model.loss_ == pytest.approx(exact.loss_, rel=1e-3)
        same = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(same.transform(new), model.transform(new))

    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("repulsion", ["auto", "squared_distance"])
    def test_a_warning_if_components_lose_distances(self, repulsion):
        X = np.random.default_rng(0).normal(size=(160, 60))
        model = mf.ElasticEmbedding(weight=5.0, repulsion=repulsion, init="pca", max_iter=1)
        held = (PCA().fit(X).explained_variance_ratio_[:30]).sum()
        message = f"160 points is by .* 30 principal components, which hold {held:.0%}.*; for more"
        with pytest.warns(ManifoldryWarning, match=message):
            model.fit(X)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            given = projected_distance_weights(X, max_rank=60)
            model.set_params(repulsion=given).fit(X)
        assert not any("principal components" in str(warning.message) for warning in issued)
        assert model.objective_.repulsion.rank == 60

    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ConvergenceWarning")
    def test_more_dimensions_take_a_matrix(self, X):
        many = np.vstack([X, X + 0.1])[:160]
        model = mf.ElasticEmbedding(4, weight=5.0, max_iter=2)
        with pytest.warns(ManifoldryWarning, match="160 points.* in more than 3 dimensions"):
            assert isinstance(model.fit(many).objective_.repulsion, UniformRepulsion)
        few = mf.ElasticEmbedding(4, weight=5.0, max_iter=2).fit(X)
        assert isinstance(few.objective_.repulsion, SquaredDistanceRepulsion)


def test_affinities_near_the_smallest_numbers():
    """The reciprocal of their sum is infinite."""
    graph = mf.NeighborGraph.build(np.array([[0.0], [1.0]]), 1)
    joint = Neighbors(None, graph, Gaussian(gamma=740.0).fit(graph)).joint
    assert 0 < joint.total < 1e-320
    np.testing.assert_array_equal(joint.matrix.toarray(), [[0, 0.5], [0.5, 0]])


def test_the_path_shows_coarse_structure_first(X):
    """Early maps explain less of the data than late ones, and are smaller."""
    model = mf.ElasticEmbedding(weight=100.0, optimizer=Homotopy(n_steps=12)).fit(X)
    sizes = [np.abs(Y - Y.mean(axis=0)).max() for Y in model.path_.embeddings]
    errors = [leave_one_out(Y, X).mean() for Y in model.path_.embeddings]
    assert (np.diff(sizes) > 0).mean() > 0.9
    assert errors[0] > 3 * min(errors)


def test_clusters_smaller_than_their_neighborhoods_stay_in_sight():
    """Their graph is connected, by edges whose weights are zero but for rounding."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 5)) + 30 * center for center in np.eye(5)[:3]])
    with pytest.warns(DisconnectedGraphWarning, match="3 connected components"):
        Y = mf.ElasticEmbedding().fit_transform(X)
    within = max(np.ptp(Y[i : i + 40], axis=0).max() for i in (0, 40, 80))
    assert np.ptp(Y, axis=0).max() < 10 * within


def test_very_many_points_start_from_principal_components(monkeypatch):
    """The eigenproblem of a graph of so many may take longer than the search."""
    from manifoldry.iterative import neighbor_embedder

    monkeypatch.setattr(neighbor_embedder, "MAX_SPECTRAL_START", 50)
    X = np.random.default_rng(0).normal(size=(60, 3))
    settings = {"weight": 10.0, "repulsion": "uniform"}
    many = mf.ElasticEmbedding(**settings).fit(X).embedding_
    np.testing.assert_array_equal(
        many, mf.ElasticEmbedding(init="pca", **settings).fit_transform(X)
    )
    few = mf.ElasticEmbedding(init="spectral", **settings).fit_transform(X)
    assert np.abs(many - few).max() > 1e-6  # the two starts end differently


def test_how_sums_over_pairs_were_computed(monkeypatch):
    X = np.random.default_rng(0).normal(size=(90, 40))
    assert "weights for pairs" in mf.ElasticEmbedding(weight=10.0).fit(X).pairs_
    monkeypatch.setattr(mf.ElasticEmbedding, "_pairs_kept", 80)
    model = mf.ElasticEmbedding(weight=10.0).fit(X)
    held = round(100 * model.objective_.repulsion.held)
    words = f"in 30 principal components of 40, which hold {held}% of them"
    assert model.pairs_.startswith("exact")
    assert words in model.pairs_
