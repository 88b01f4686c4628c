"""SNE, symmetric SNE, t-SNE and the elastic embedding as minimizers of what they say."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn import manifold
from sklearn.datasets import load_digits
from sklearn.manifold._t_sne import _joint_probabilities
from sklearn.neighbors import kneighbors_graph

import manifoldry as mf
from manifoldry.exceptions import (
    ConvergenceWarning,
    DisconnectedGraphWarning,
    RankWarning,
    UniformAffinityWarning,
)
from manifoldry.neighbors import NeighborGraph
from manifoldry.optimize import LBFGS, EarlyExaggeration, Homotopy, SpectralDirection, Stopping

METHODS = [mf.SNE, mf.SymmetricSNE, mf.TSNE, mf.ElasticEmbedding]
TIGHT = Stopping(tol=0, value_tol=0, gradient_tol=1e-9, max_iter=3000)
# Where it does not matter how far a search gets; gradient steps of a given length would make much
# of rounding.
SHORT = {
    mf.TSNE: {
        "optimizer": "lbfgs",
        "max_iter": 30,
        "early_exaggeration": EarlyExaggeration(n_iter=10),
    },
    mf.ElasticEmbedding: {"weight": 20.0, "repulsion": "uniform"},
}
pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")


def lap(A):
    return np.diag(A.sum(axis=1)) - A


def conditional(D, perplexity):
    """p(j|i) with bisection on the bandwidth, one row after the other."""
    P = np.zeros_like(D)
    for i, row in enumerate(np.square(D)):
        others = np.arange(len(D)) != i
        low, high = 1e-10, 1e10
        for _ in range(200):
            beta = np.sqrt(low * high)
            p = np.exp(-beta * (row[others] - row[others].min()))
            p /= p.sum()
            entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
            low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
        P[i, others] = p
    return P


def divergence(P, Q):
    some = P > 0
    return float((P[some] * np.log(P[some] / Q[some])).sum())


@pytest.fixture(scope="module")
def few(X):
    """So few points that a perplexity of twelve makes neighbors of all."""
    return X[:36]


@pytest.fixture(name="P", scope="module")
def probabilities(few):
    return conditional(cdist(few, few), 12)


class TestObjectives:
    """The loss by its definition, written out."""

    def test_sne(self, few, P):
        model = mf.SNE(perplexity=12).fit(few)
        K = np.exp(-cdist(model.embedding_, model.embedding_, "sqeuclidean"))
        np.fill_diagonal(K, 0)
        expected = divergence(P, K / K.sum(axis=1, keepdims=True)) / len(few)
        assert np.isclose(model.loss_, expected, rtol=1e-6)

    def test_symmetric_sne(self, few, P):
        model = mf.SymmetricSNE(perplexity=12).fit(few)
        K = np.exp(-cdist(model.embedding_, model.embedding_, "sqeuclidean"))
        np.fill_diagonal(K, 0)
        expected = divergence((P + P.T) / (2 * len(few)), K / K.sum())
        assert np.isclose(model.loss_, expected, rtol=1e-6)

    @pytest.mark.parametrize("dof", [0.5, 1.0, 3.0])
    def test_tsne(self, few, P, dof):
        model = mf.TSNE(perplexity=12, degrees_of_freedom=dof).fit(few)
        D = cdist(model.embedding_, model.embedding_, "sqeuclidean")
        K = (1 + D / dof) ** (-(dof + 1) / 2)
        np.fill_diagonal(K, 0)
        expected = divergence((P + P.T) / (2 * len(few)), K / K.sum())
        assert np.isclose(model.loss_, expected, rtol=1e-6)

    @pytest.mark.parametrize("repulsion", ["uniform", "squared_distance", "given"])
    def test_elastic_embedding(self, few, P, repulsion):
        n = len(few)
        R = 1 - np.eye(n) if repulsion == "uniform" else cdist(few, few, "sqeuclidean")
        given = R if repulsion == "given" else repulsion
        model = mf.ElasticEmbedding(perplexity=12, weight=30.0, repulsion=given).fit(few)
        D = cdist(model.embedding_, model.embedding_, "sqeuclidean")
        attraction = ((P + P.T) / (2 * n) * D).sum()
        expected = attraction + 30.0 * (R / R.sum() * np.exp(-D)).sum()
        assert np.isclose(model.loss_, expected, rtol=1e-6)

    @pytest.mark.parametrize("method", METHODS)
    def test_affinities(self, few, P, method):
        model = method(perplexity=12, **SHORT.get(method, {})).fit(few)
        assert model.perplexity_ == 12
        assert np.allclose(model.affinity_.toarray(), (P + P.T) / (2 * len(few)), atol=1e-9)


class TestTSNE:
    @pytest.mark.slow
    def test_as_good_as_scikit_learns_exact_method(self):
        """By scikit-learn's own probabilities, of all pairs."""
        X = load_digits().data[:300]
        reference = manifold.TSNE(perplexity=30, method="exact", init="pca", random_state=0).fit(X)
        D = squareform(pdist(X, "sqeuclidean")).astype(np.float32)
        P = _joint_probabilities(D, 30, 0)

        def divergence_of(Y):
            K = 1 / (1 + pdist(Y.astype(float), "sqeuclidean"))
            return 2 * (P * np.log(P / (K / (2 * K.sum())))).sum()

        assert np.isclose(divergence_of(reference.embedding_), reference.kl_divergence_, rtol=1e-4)
        model = mf.TSNE(perplexity=30).fit(X)
        assert divergence_of(model.embedding_) < reference.kl_divergence_

    @pytest.mark.parametrize("options", [{"degrees_of_freedom": 30.0}, {"perplexity": 2}])
    def test_long_steps_do_not_diverge(self, options):
        """Where attraction does not weaken with distance, or points have few neighbors.

        With perplexity 2, minima differ: for six sets of 200 digits those found are .97 to 1.12
        times as high as by L-BFGS, with sums on a mesh .97 to 1.14 times.
        """
        X = load_digits().data[:200]
        minimum = mf.TSNE(**options, optimizer="lbfgs", max_iter=300).fit(X).loss_
        assert mf.TSNE(**options).fit(X).loss_ < 1.2 * minimum

    def test_wide_starts_are_searched_in_double_precision(self):
        """In single precision, squares overflowed and the divergence was negative."""
        X = np.random.default_rng(0).normal(size=(2100, 5))
        with pytest.warns(ConvergenceWarning, match="too large"):
            model = mf.TSNE(
                init=1e30 * X[:, :2], perplexity=5, max_iter=2, early_exaggeration=1
            ).fit(X)
        assert model.loss_ > 0

    def test_heavier_tails_part_clusters_further(self, X):
        """Relative to the nearest neighbors, the map of one degree of freedom is wider."""

        def width(dof):
            model = mf.TSNE(perplexity=10, degrees_of_freedom=dof, optimizer="lbfgs", max_iter=200)
            Y = model.fit(X).embedding_
            D = cdist(Y, Y)
            np.fill_diagonal(D, np.inf)
            return np.median(pdist(Y)) / np.median(D.min(axis=1))

        assert width(0.5) > width(1.0) > width(10.0)

    def test_early_exaggeration_is_a_phase_of_its_own(self, X):
        model = mf.TSNE(
            early_exaggeration=EarlyExaggeration(8.0, 15, n_levels=3), max_iter=20, perplexity=10
        ).fit(X)
        parameters = model.trace_["parameter"]
        for factor in (8.0, 4.0, 2.0):
            assert np.isclose(parameters, 1 / factor).sum() == 6  # the start and five steps
        assert np.isnan(parameters).sum() == 21
        assert model.n_iter_ == 35
        for without in (EarlyExaggeration(n_iter=0), EarlyExaggeration(1.0), 1, 1.0):
            model = mf.TSNE(max_iter=20, perplexity=10, early_exaggeration=without).fit(X)
            assert model.n_iter_ == 20

    def test_what_crashes_others(self):
        """Copies of a few points, and data of a tiny scale, of no extent in some directions."""
        copies = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 25, axis=0)
        tiny = 1e-160 * np.random.default_rng(0).normal(size=(60, 3))
        flat = np.zeros((60, 3))
        flat[:, 0] = np.linspace(0, 1e-300, 60)
        for data in (copies, tiny, flat):
            model = mf.TSNE(max_iter=100, early_exaggeration=EarlyExaggeration(n_iter=20)).fit(data)
            assert np.isfinite(model.embedding_).all()


class TestLearnedAffinity:
    @pytest.mark.parametrize(
        "model",
        [
            mf.SNE(optimizer=LBFGS(stopping=TIGHT)),
            mf.SymmetricSNE(optimizer=LBFGS(stopping=TIGHT)),
            mf.TSNE(optimizer=LBFGS(stopping=TIGHT), perplexity=10),
            mf.ElasticEmbedding(
                repulsion="uniform",
                weight=20.0,
                optimizer=LBFGS(SpectralDirection(), stopping=TIGHT),
            ),
        ],
    )
    def test_it_holds_the_map_in_its_place(self, X, model):
        model.fit(X)
        A, Y = model.learned_affinity_, model.embedding_
        assert np.allclose(A, A.T)
        attraction = lap(model.affinity_.toarray()) @ Y
        assert np.abs(lap(A) @ Y).max() < 1e-5 * np.abs(attraction).max()

    def test_it_is_written_out(self, X):
        """λ·W⁻·exp(−d²) is what attraction loses."""
        model = mf.ElasticEmbedding(repulsion="uniform", weight=20.0).fit(X)
        n, D = len(X), cdist(model.embedding_, model.embedding_, "sqeuclidean")
        expected = model.affinity_.toarray() - 20.0 / (n * (n - 1)) * np.exp(-D)
        np.fill_diagonal(expected, 0)
        assert np.allclose(model.learned_affinity_, expected, atol=1e-14)

    @pytest.mark.parametrize("method", METHODS)
    def test_on_edges_only_for_many_points(self, X, method, monkeypatch):
        model = method(perplexity=5, **SHORT.get(method, {})).fit(X)
        dense = model.learned_affinity_
        monkeypatch.setattr(method, "_dense_affinity", 10)
        edges = model.learned_affinity_
        assert edges.nnz == model.affinity_.nnz
        stored = model.affinity_.toarray() > 0
        assert np.allclose(edges.toarray(), np.where(stored, dense, 0.0), atol=1e-14)

    def test_only_fitted_models_have_it(self):
        assert not hasattr(mf.SNE(), "learned_affinity_")
        assert not hasattr(mf.SNE(), "bifurcation_")


class TestBifurcation:
    @pytest.mark.parametrize("method", METHODS)
    def test_it_is_the_first_eigenvalue(self, few, method):
        """Of attraction against uniform repulsion: λ·lap(W⁻) = λ/(n−1)·I on centered vectors."""
        model = method(perplexity=8, **SHORT.get(method, {})).fit(few)
        values = np.linalg.eigvalsh(lap(model.affinity_.toarray()))
        assert np.isclose(model.bifurcation_.weight, (len(few) - 1) * values[1], rtol=1e-6)

    def test_it_belongs_to_the_last_fit(self, X):
        model = mf.SNE().fit(X)
        assert len(model.bifurcation_.directions) == len(X)
        assert len(model.fit(X[:50]).bifurcation_.directions) == 50


class TestHomotopy:
    @pytest.mark.parametrize(
        "model",
        [
            mf.ElasticEmbedding(repulsion="uniform", weight=100.0),
            mf.SNE(perplexity=10),
            mf.SymmetricSNE(perplexity=10),
        ],
    )
    def test_it_ends_no_higher_than_from_random_starts(self, X, model):
        """Not a theorem: so of six starts one may be luckier."""
        end = model.set_params(optimizer="homotopy").fit(X).loss_
        model.set_params(optimizer=None, init="random")
        others = [model.set_params(random_state=seed).fit(X).loss_ for seed in range(6)]
        assert (end <= np.array(others) * (1 + 1e-4)).sum() >= 5

    def test_the_path(self, X):
        model = mf.ElasticEmbedding(repulsion="uniform", weight=50.0, optimizer="homotopy").fit(X)
        path, critical = model.path_, model.bifurcation_.weight
        weights = path.column("parameter")
        assert len(path) == 50
        assert np.isclose(weights[0], 1.05 * critical)
        assert weights[-1] == model.weight_ == 50.0
        assert (np.diff(weights) > 0).all()
        assert path.steps[0].rank == 1  # the map opens along a line first
        assert path.steps[-1].rank == 2
        (opened, rank), *rest = path.bifurcations
        assert rank == 2
        assert not rest
        assert critical < opened < 50.0
        assert np.array_equal(path.embeddings[-1], model.embedding_)
        assert np.array_equal(path.embedding_at(50.0), model.embedding_)
        assert path.column("value")[-1] == model.loss_
        # Energies of minimizers grow with a weight that multiplies something positive.
        assert (np.diff(path.column("value")) > 0).all()

    def test_the_first_line_is_the_critical_direction(self, X):
        model = mf.ElasticEmbedding(repulsion="uniform", weight=5.0, optimizer="homotopy").fit(X)
        line = model.path_.embeddings[0]
        line = np.linalg.svd(line - line.mean(axis=0))[0][:, 0]
        assert abs(line @ model.bifurcation_.directions[:, 0]) > 0.99

    def test_the_trace_knows_the_weights(self, X):
        model = mf.SNE(optimizer=Homotopy(n_steps=5)).fit(X)
        weights = model.path_.column("parameter")
        assert np.array_equal(np.unique(model.trace_["parameter"]), np.unique(weights))
        assert weights[-1] == 1.0

    def test_given_weights(self, X):
        rule = Homotopy(values=(0.5, 2.0))
        model = mf.ElasticEmbedding(repulsion="uniform", weight=10.0, optimizer=rule).fit(X)
        assert model.path_.column("parameter").tolist() == [0.5, 2.0, 10.0]
        assert np.isclose(model.objective_.value(model.embedding_), model.loss_)

    def test_exaggeration_step_by_step(self, X):
        """As good as at once, and by its own rule: optimizers are free."""
        model = mf.TSNE(perplexity=10, optimizer=Homotopy(n_steps=6, optimizer="lbfgs")).fit(X)
        expected = np.geomspace(1 / 12, 1, 6)
        assert np.allclose(model.path_.column("parameter"), expected)
        assert model.loss_ < 1.1 * mf.TSNE(perplexity=10, optimizer="lbfgs").fit(X).loss_

    def test_maps_fit_the_memory(self, X):
        budget = 5 * X.shape[0] * 2 * 8
        rule = Homotopy(n_steps=20, memory=budget)
        path = mf.ElasticEmbedding(repulsion="uniform", weight=10.0, optimizer=rule).fit(X).path_
        assert len(path) == 20
        assert len(path.kept) <= 5
        assert path.kept[0] == 0
        assert path.kept[-1] == 19

    def test_seeds_decide_the_jitter_only(self, X, rotated):
        rule = Homotopy(n_steps=10)
        models = [mf.SNE(optimizer=rule, random_state=seed).fit(X) for seed in (0, 0, 1)]
        assert np.array_equal(models[0].embedding_, models[1].embedding_)
        assert rotated(models[2].embedding_, models[0].embedding_) < 0.01

    def test_components_that_nothing_holds_together(self, X):
        """No weight is critical: they part at any, and the path begins at a faint one."""
        apart, rule = np.vstack([X, X + 1e4]), Homotopy(n_steps=5)
        model = mf.SNE(perplexity=5, optimizer=rule)
        with pytest.warns(
            DisconnectedGraphWarning, match="2 connected components.*raise perplexity"
        ):
            model.fit(apart)
        assert model.bifurcation_.weight == 0
        assert np.isfinite(model.embedding_).all()
        assert np.isclose(model.path_.column("parameter")[0], 1e-4)
        D = cdist(model.embedding_[:90], model.embedding_[90:])
        assert D.min() > 1

    def test_a_weight_below_the_critical_one(self, X):
        critical = mf.ElasticEmbedding(repulsion="uniform", weight=10.0).fit(X).bifurcation_.weight
        with pytest.warns(RankWarning, match=r"collapsed to one point.*pass a greater weight"):
            model = mf.ElasticEmbedding(
                repulsion="uniform", weight=0.5 * critical, optimizer="homotopy"
            ).fit(X)
        assert np.abs(model.embedding_).max() < 1e-3


class TestInput:
    @pytest.mark.parametrize("method", METHODS)
    def test_distances_are_as_good_as_data(self, X, X_new, method, rotated):
        parameters = {"perplexity": 10, **SHORT.get(method, {})}
        data = method(**parameters).fit(X)
        pairs = method(metric="precomputed", **parameters).fit(cdist(X, X))
        assert rotated(pairs.embedding_, data.embedding_) < 1e-5
        assert rotated(pairs.transform(cdist(X_new, X)), data.transform(X_new)) < 1e-3

    @pytest.mark.parametrize("method", METHODS)
    def test_a_sparse_graph_of_distances(self, X, method, rotated):
        """Thirty neighbors are what a perplexity of ten takes."""
        parameters = {"perplexity": 10, "init": "spectral", **SHORT.get(method, {})}
        data = method(**parameters).fit(X)
        graph = kneighbors_graph(X, 40, mode="distance")
        pairs = method(metric="precomputed", **parameters).fit(graph)
        assert pairs.extension_.affinity.graph.n_neighbors == 30
        assert rotated(pairs.embedding_, data.embedding_) < 1e-5

    def test_a_graph_too_sparse_for_the_perplexity(self, X):
        graph = kneighbors_graph(X, 5, mode="distance")
        model = mf.SNE(metric="precomputed").fit(graph)
        assert np.isclose(model.perplexity_, 5 / 3)
        with pytest.raises(ValueError, match=r"perplexity=10 must be at most 5.*n_neighbors=30"):
            mf.SNE(metric="precomputed", perplexity=10).fit(graph)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_ready_graph(self, X, X_new, method):
        graph = NeighborGraph.build(X, n_neighbors=30)
        parameters = {"perplexity": 10, **SHORT.get(method, {})}
        model, plain = method(**parameters).fit(graph), method(**parameters).fit(X)
        assert np.array_equal(model.embedding_, plain.embedding_)
        assert np.array_equal(model.transform(X_new), plain.transform(X_new))
        assert np.array_equal(
            model.inverse_transform(model.embedding_[:3]),
            plain.inverse_transform(plain.embedding_[:3]),
        )

    def test_a_ready_graph_of_few_neighbors(self, X):
        graph = NeighborGraph.build(X, n_neighbors=12)
        assert mf.SNE().fit(graph).perplexity_ == 4
        with pytest.raises(ValueError, match=r"perplexity=20 must be at most 12.*n_neighbors=60"):
            mf.SNE(perplexity=20).fit(graph)

    def test_a_radius_graph(self, X):
        model = mf.SNE(perplexity=5).fit(NeighborGraph.build(X, radius=12.0))
        assert np.isfinite(model.embedding_).all()

    def test_a_graph_of_distances_has_no_principal_components(self, X):
        graph = NeighborGraph.build(cdist(X, X), n_neighbors=30, metric="precomputed")
        model = mf.TSNE(metric="precomputed", max_iter=5, early_exaggeration=1).fit(graph)
        with pytest.raises(ValueError, match="init='pca' needs the data"):
            model.set_params(init="pca").fit(graph)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_perplexity_that_makes_all_points_neighbors_alike(self, few, method):
        """Affinities are uniform at n - 1, where any data have the same map."""
        others, short = len(few) - 1, SHORT.get(method, {})
        for fraction in (0.95, 1.0):
            words = rf"perplexity={fraction * others:g} exceeds {0.9 * others:g}.*pass perplexity="
            with pytest.warns(UniformAffinityWarning, match=words):
                method(perplexity=fraction * others, **short).fit(few)

    def test_most_points_as_neighbors_are_no_reason_to_warn(self, few, recwarn):
        mf.SNE(perplexity=0.8 * (len(few) - 1)).fit(few)
        mf.SNE(1).fit(few[:3])
        # Repulsion by squared distances tells points apart where attraction does not.
        mf.ElasticEmbedding(perplexity=len(few) - 1, weight=20.0).fit(few)
        graph = NeighborGraph.build(few, n_neighbors=6)  # the same probability, of the nearest
        mf.SNE(perplexity=6).fit(graph)
        assert not [w for w in recwarn if w.category is UniformAffinityWarning]

    @pytest.mark.parametrize("method", METHODS)
    def test_more_copies_than_neighbors(self, X, method):
        copies = np.repeat(X[:3], 40, axis=0)
        with pytest.raises(ValueError, match="drop duplicated rows or raise perplexity"):
            method(perplexity=10).fit(copies)

    def test_a_graph_without_edges(self, X):
        graph = NeighborGraph.build(X, radius=1e-6)
        with pytest.raises(ValueError, match="the graph of 90 points has no edges"):
            mf.SNE().fit(graph)

    def test_the_perplexity_that_data_allow(self, X):
        assert mf.SNE().fit(X).perplexity_ == 10
        assert mf.SNE().fit(X[:10]).perplexity_ == 3
        assert mf.TSNE(max_iter=1).fit(X).perplexity_ == 20
        with pytest.warns(RankWarning):  # any map of two points is as good as any other
            assert mf.SNE(1).fit(X[:2]).perplexity_ == 1
        big = np.random.default_rng(0).normal(size=(200, 2))
        assert mf.ElasticEmbedding(max_iter=1).fit(big).perplexity_ == 20
        big = np.random.default_rng(0).normal(size=(1000, 2))
        assert mf.TSNE(max_iter=1, early_exaggeration=1).fit(big).perplexity_ == 25


@pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE])
def test_homotopies_do_not_begin_beyond_their_end(method):
    """Two points open at the last weight; with more repulsion than that they fly to infinity."""
    model = method(optimizer="homotopy").fit(np.array([[0.0], [1.0]]))
    assert (model.path_.column("parameter") == 1).all()
    assert np.abs(model.embedding_).max() < 1
