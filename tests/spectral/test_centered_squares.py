"""The matrix of classical scaling as an operator, against the matrix itself."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from manifoldry import Isomap, NonRedundant
from manifoldry.datasets import make_swiss_roll
from manifoldry.neighbors import geodesics, shortest_paths
from manifoldry.spectral import isomap
from manifoldry.spectral.centered_squares import CenteredSquares

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
        plain, large = self.fits(monkeypatch, single=False, eigen_solver="dense")
        assert large.solver_.startswith("Dense")
        np.testing.assert_allclose(large.embedding_, plain.embedding_, atol=1e-9)

    def test_non_redundant_coordinates_of_it(self, monkeypatch):
        plain = NonRedundant(Isomap(n_neighbors=8, short_circuits="ignore"), 2).fit(self.X)
        self.fits(monkeypatch, single=False)
        large = NonRedundant(Isomap(n_neighbors=8, short_circuits="ignore"), 2).fit(self.X)
        np.testing.assert_allclose(large.embedding_, plain.embedding_, atol=1e-6)
