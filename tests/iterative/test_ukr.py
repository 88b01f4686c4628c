"""Unsupervised kernel regression: what it predicts, where it stays, how it maps both ways."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import manifoldry as mf
from manifoldry.datasets import make_helix
from manifoldry.neighbors import NeighborGraph
from manifoldry.optimize import Homotopy

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")
KERNELS = {
    "gaussian": lambda D: np.exp(-D),
    "student": lambda D: 1 / (1 + D),
}


def predicted(Y, X, kernel="gaussian", leave_one_out=True):
    K = KERNELS[kernel](cdist(Y, Y, "sqeuclidean"))
    if leave_one_out:
        np.fill_diagonal(K, 0)
    return K @ X / K.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def helix():
    return make_helix(200, random_state=0)


@pytest.fixture(scope="module")
def curve(helix):
    return mf.UKR(n_components=1, density_floor=0).fit(helix.X)


class TestCurve:
    def test_a_helix_is_unrolled(self, helix, curve):
        order = spearmanr(curve.embedding_[:, 0], helix[1]).statistic
        assert abs(order) > 0.99

    def test_its_errors(self, helix, curve):
        X = helix.X
        error = np.square(X - predicted(curve.embedding_, X)).sum(axis=1).mean()
        variance = np.square(X - X.mean(axis=0)).sum(axis=1).mean()
        assert np.isclose(curve.leave_one_out_error_, error / variance, rtol=1e-8)
        assert np.isclose(curve.loss_, error, rtol=1e-8)
        assert curve.leave_one_out_error_ < 0.05

    def test_new_points_go_where_they_are_predicted_best(self, helix, curve):
        new = make_helix(20, random_state=1)
        places = curve.transform(new.X)
        errors = np.square(new.X - curve.inverse_transform(places)).sum(axis=1)
        low, high = curve.embedding_.min(), curve.embedding_.max()
        grid = np.linspace(low - 1, high + 1, 4000)[:, None]
        best = cdist(new.X, curve.inverse_transform(grid), "sqeuclidean").min(axis=1)
        # The projection is a local search from the nearest points: now and then another bend of
        # the curve is a little nearer.
        assert (errors <= best * (1 + 1e-3) + 1e-9).mean() >= 0.9
        assert (errors <= 2 * best + 1e-9).all()
        assert abs(spearmanr(places[:, 0], new[1]).statistic) > 0.98

    def test_training_rows_keep_their_place(self, helix, curve):
        assert np.array_equal(curve.transform(helix.X[::9]), curve.embedding_[::9])


class TestSurface:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_inverse_is_the_regression(self, X, kernel):
        model = mf.UKR(kernel=kernel, max_iter=20).fit(X)
        back = model.inverse_transform(model.embedding_)
        expected = predicted(model.embedding_, X, kernel, leave_one_out=False)
        assert np.allclose(back, expected, atol=1e-8 * np.abs(X).max())

    @pytest.mark.parametrize("kernel", ["gaussian", "student", "quartic", "triweight"])
    def test_jacobian_by_differences(self, X, kernel):
        model = mf.UKR(kernel=kernel, max_iter=20).fit(1e3 + 5 * X)
        Z, h = model.embedding_[:7] + 0.05, 1e-6
        J = model.jacobian(Z)
        assert J.shape == (7, 3, 2)
        for c in range(2):
            step = h * np.eye(2)[c]
            ends = [model.inverse_transform(Z + s * step) for s in (1, -1)]
            assert np.allclose(J[:, :, c], (ends[0] - ends[1]) / (2 * h), atol=1e-3)

    def test_wrong_columns(self, X):
        model = mf.UKR(max_iter=5).fit(X)
        with pytest.raises(ValueError, match=r"X has 3 columns, .* n_components=2"):
            model.jacobian(np.zeros((4, 3)))

    def test_sparse_data(self, X):
        X = np.where(np.abs(X) < 3, 0.0, X)
        start = np.random.default_rng(0).standard_normal((len(X), 2))
        dense, thin = (mf.UKR(max_iter=10, init=start).fit(A) for A in (X, sparse.csr_array(X)))
        assert np.allclose(dense.embedding_, thin.embedding_, atol=1e-6)
        assert np.isclose(dense.loss_, thin.loss_, rtol=1e-8)


class TestBox:
    @pytest.mark.parametrize("box", [0.5, 3.0])
    @pytest.mark.parametrize("leave_one_out", [True, False])
    def test_the_map_stays_inside(self, X, box, leave_one_out):
        model = mf.UKR(box=box, leave_one_out=leave_one_out, density_floor=0, max_iter=40).fit(X)
        assert np.abs(model.embedding_).max() <= box
        error = np.square(X - predicted(model.embedding_, X, leave_one_out=leave_one_out))
        assert np.isclose(model.loss_, error.sum(axis=1).mean(), rtol=1e-8)

    def test_a_small_box_predicts_the_mean(self, X):
        model = mf.UKR(box=1e-3).fit(X)
        assert model.leave_one_out_error_ > 0.99

    def test_a_larger_box_predicts_better(self, X):
        errors = [mf.UKR(box=box, max_iter=50).fit(X).leave_one_out_error_ for box in (0.3, 1, 3)]
        assert errors[0] > errors[1] > errors[2]

    def test_a_floor_of_density_calls_points_back(self, X):
        """The others' kernels sum to more, at the point where they sum to least."""

        def least(model):
            K = np.exp(-cdist(model.embedding_, model.embedding_, "sqeuclidean"))
            np.fill_diagonal(K, 0)
            return K.sum(axis=1).min()

        plain, held = (mf.UKR(density_floor=f, max_iter=100).fit(X) for f in (0, 1.0))
        assert least(held) > least(plain)


class TestHomotopy:
    def test_a_box_that_grows(self, X):
        rule = Homotopy(n_steps=6, max_iter=20)
        model = mf.UKR(box=2.0, optimizer=rule, max_iter=60).fit(X)
        path = model.path_
        sizes = path.column("parameter")
        assert np.allclose(sizes, np.geomspace(0.1, 2.0, 6))
        for size, Y in zip(sizes, path.embeddings, strict=True):
            assert np.abs(Y).max() <= size
        assert np.array_equal(path.embeddings[-1], model.embedding_)
        values = path.column("value")
        assert (np.diff(values) < 0).all()  # a larger box holds every map of a smaller one
        assert np.isclose(values[-1], model.extension_.frame.unit**-2 * model.loss_)

    def test_without_a_box_it_ends_free(self, X):
        rule = Homotopy(n_steps=4, max_iter=10)
        model = mf.UKR(optimizer=rule, density_floor=0, max_iter=40).fit(X)
        largest = model.path_.column("parameter")[-1]
        assert len(model.path_) == 4
        error = np.square(X - predicted(model.embedding_, X)).sum(axis=1).mean()
        assert np.isclose(model.loss_, error, rtol=1e-8)
        assert np.abs(model.embedding_).max() > largest

    def test_it_solves_the_helix_too(self, helix):
        model = mf.UKR(1, optimizer=Homotopy(n_steps=15, max_iter=50)).fit(helix.X)
        assert model.leave_one_out_error_ < 0.05


class TestInput:
    def test_a_ready_graph(self, X):
        graph = NeighborGraph.build(X, n_neighbors=10)
        model, plain = (mf.UKR(max_iter=10).fit(A) for A in (graph, X))
        assert np.array_equal(model.embedding_, plain.embedding_)

    def test_a_graph_of_distances_has_nothing_to_predict(self, X):
        graph = NeighborGraph.build(cdist(X, X), n_neighbors=10, metric="precomputed")
        with pytest.raises(ValueError, match="UKR predicts the data"):
            mf.UKR().fit(graph)

    def test_lost_points_are_brought_back(self):
        """A start with one point far away, which no gradient moves."""
        t = np.linspace(0, 1, 40)
        X = np.c_[np.cos(3 * t), np.sin(3 * t)]
        start = 8 * t[:, None]
        start[20] = 500.0
        model = mf.UKR(1, init=start).fit(X)
        assert abs(model.embedding_[20] - model.embedding_[[19, 21]]).max() < 3
