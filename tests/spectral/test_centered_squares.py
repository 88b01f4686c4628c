"""The matrix of classical scaling as an operator, against the matrix itself."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone

from manifoldry import Isomap, NonRedundant
from manifoldry.datasets import make_swiss_roll
from manifoldry.eigen import Dense
from manifoldry.exceptions import LargeMatrixWarning
from manifoldry.neighbors import geodesics, shortest_paths
from manifoldry.spectral import isomap
from manifoldry.spectral.centered_squares import CenteredSquares
from manifoldry.util import validation

D = squareform(pdist(np.random.default_rng(0).standard_normal((60, 3))))


def centered(D):
    H = np.eye(len(D)) - 1 / len(D)
    return -0.5 * H @ (D.astype(float) ** 2) @ H


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 4, 7])
def test_products_are_those_of_the_matrix(dtype, columns):
    X = np.random.default_rng(1).standard_normal((60, columns))
    operator, K = CenteredSquares(D.astype(dtype), 2.0), centered(D.astype(dtype)) / 4
    np.testing.assert_allclose(operator @ X, K @ X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(operator @ X[:, 0], K @ X[:, 0], rtol=1e-12, atol=1e-12)
    assert operator.squared_norm() == pytest.approx((K**2).sum(), rel=1e-12)
    np.testing.assert_allclose(operator.toarray(), K, rtol=1e-12, atol=1e-12)


def test_squares_of_large_distances_do_not_overflow():
    large = CenteredSquares(D * 2.0**600, 2.0**600)
    np.testing.assert_array_equal(large @ np.eye(60), CenteredSquares(D, 1.0) @ np.eye(60))
    assert large.squared_norm() == CenteredSquares(D, 1.0).squared_norm()


class TestIsomap:
    """Isomap of a few points as of many: compiled paths, no matrix, or single precision."""

    X = make_swiss_roll(500, random_state=3).X

    def fits(self, monkeypatch, single, **options):
        plain = Isomap(2, n_neighbors=8, short_circuits="ignore", **options).fit(self.X)
        monkeypatch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 0)
        monkeypatch.setattr(isomap, "IMPLICIT_ABOVE", 100)
        monkeypatch.setattr(geodesics, "SINGLE_ABOVE", 0 if single else np.inf)
        return plain, Isomap(2, n_neighbors=8, short_circuits="ignore", **options).fit(self.X)

    @pytest.mark.parametrize("n_landmarks", [None, 50])
    @pytest.mark.parametrize(("single", "accuracy"), [(False, 1e-10), (True, 2e-6)])
    def test_the_model_is_the_same(self, monkeypatch, n_landmarks, single, accuracy):
        plain, large = self.fits(monkeypatch, single, n_landmarks=n_landmarks)
        stored = large.extension_.geodesics.distances
        assert stored.dtype == (np.float32 if single else np.float64)
        extent = np.abs(plain.embedding_).max()
        new = self.X[:40] + 0.05
        for ours, theirs in [
            (large.embedding_, plain.embedding_),
            (large.transform(self.X), plain.embedding_),
            (large.transform(new), plain.transform(new)),
        ]:
            np.testing.assert_allclose(ours, theirs, atol=accuracy * extent)
        for name in ("eigenvalues_", "loss_", "residual_variance_"):
            np.testing.assert_allclose(getattr(large, name), getattr(plain, name), rtol=accuracy)

    def test_the_matrix_is_not_stored(self, monkeypatch):
        large = self.fits(monkeypatch, single=True)[1]
        posed = large.pose(self.X)
        assert isinstance(posed.problems[0].operator, CenteredSquares)
        assert posed.problems[0].operator.D is posed.geodesics.distances

    def test_a_dense_solver_forms_it(self, monkeypatch):
        multiplied = []
        product = CenteredSquares._matmat

        def record(self, X):
            multiplied.append(X.shape[1])
            return product(self, X)

        monkeypatch.setattr(CenteredSquares, "_matmat", record)
        plain, large = self.fits(monkeypatch, single=False, eigen_solver="dense")
        assert max(multiplied) < 20  # not by the identity
        assert large.solver_.startswith("Dense")
        np.testing.assert_allclose(large.embedding_, plain.embedding_, atol=1e-9)

    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.DisconnectedGraphWarning")
    @pytest.mark.parametrize("disconnected", ["separate", "largest"])
    def test_components_have_their_own_distances(self, monkeypatch, disconnected):
        X = self.X.copy()
        X[:150] += 1000.0
        model = Isomap(2, n_neighbors=8, short_circuits="ignore", disconnected=disconnected)
        plain = clone(model).fit(X).embedding_
        monkeypatch.setattr(isomap, "IMPLICIT_ABOVE", 200)
        operators = [problem.operator for problem in model.pose(X).problems]
        assert isinstance(operators[0], CenteredSquares)
        assert operators[0].shape == (350, 350)
        assert all(isinstance(small, np.ndarray) for small in operators[1:])
        np.testing.assert_allclose(model.fit(X).embedding_, plain, atol=1e-8)

    @pytest.mark.filterwarnings("ignore::manifoldry.exceptions.DisconnectedGraphWarning")
    def test_the_memory_of_components_is_planned(self, monkeypatch, free_memory):
        monkeypatch.setattr(isomap, "IMPLICIT_ABOVE", 100)
        X = self.X.copy()
        X[:150] += 1000.0
        free_memory(8 * 500**2)  # one matrix in double precision
        options = {"n_neighbors": 8, "short_circuits": "ignore"}
        Isomap(2, **options).fit(self.X)
        with pytest.raises(MemoryError, match=r"all pairs of 500 points .* n_landmarks"):
            Isomap(2, disconnected="separate", **options).fit(X)

    def test_a_dense_solver_warns_of_its_memory_too(self, monkeypatch):
        """First of the whole fit, before anything is computed, then of the solver."""
        monkeypatch.setattr(validation, "ANNOUNCED_ABOVE", 100)
        dense = Isomap(2, n_neighbors=8, eigen_solver=Dense(planned_above=100))
        with pytest.warns(LargeMatrixWarning) as caught:
            dense.set_params(short_circuits="ignore").fit(self.X)
        whole, solver = (str(warning.message) for warning in caught)
        assert "all pairs of 500 points" in whole
        assert "n_landmarks" in whole
        assert "dense eigenproblem of order 500" in solver
        assert "eigen_solver='auto'" in solver

    def test_residual_variance_in_any_unit(self):
        plain, large = (
            Isomap(2, n_neighbors=8, short_circuits="ignore").fit(self.X * unit)
            for unit in (1.0, 2.0**500)
        )
        np.testing.assert_allclose(large.residual_variance_, plain.residual_variance_, rtol=1e-9)

    def test_non_redundant_coordinates_of_it(self, monkeypatch):
        plain = NonRedundant(Isomap(n_neighbors=8, short_circuits="ignore"), 2).fit(self.X)
        self.fits(monkeypatch, single=False)
        large = NonRedundant(Isomap(n_neighbors=8, short_circuits="ignore"), 2).fit(self.X)
        np.testing.assert_allclose(large.embedding_, plain.embedding_, atol=1e-6)
