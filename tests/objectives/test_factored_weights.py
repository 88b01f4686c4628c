"""Sums over pairs with factored weights against exact ones, and repulsion that uses them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from manifoldry.exceptions import LargeMatrixWarning
from manifoldry.objectives import (
    Bifurcation,
    CellSums,
    Exact,
    Fastest,
    FFTInterpolation,
    GaussianKernel,
    elastic,
)
from manifoldry.objectives.bifurcation import Numerics
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.projected_distance import projected_distance_weights
from manifoldry.objectives.repulsion import DenseRepulsion
from manifoldry.util import validation
from manifoldry.util.validation import spread_rows

N = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 8)) * [3, 3, 2, 1, 1, 0.5, 0.5, 0.2] + 5
NEW = RNG.normal(size=(60, 8)) * [3, 3, 2, 1, 1, 0.5, 0.5, 0.2] + 5
KERNEL = GaussianKernel()
DIFFERENT = ~np.eye(N, dtype=bool)


@pytest.fixture(scope="module")
def weights():
    return projected_distance_weights(X, max_rank=4)


def embedding(d):
    return np.random.default_rng(d).normal(size=(N, d)) * (3 if d < 3 else 1.5)


SLOW = pytest.mark.slow


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class TestSums:
    @pytest.mark.parametrize("d", [pytest.param(1, marks=SLOW), 2, pytest.param(3, marks=SLOW)])
    def test_interpolated_sums_are_as_accurate_as_with_unit_weights(self, weights, d):
        Y, W = embedding(d), weights.matrix
        expected, found = (engine.sums(KERNEL, Y, W) for engine in (Exact(), FFTInterpolation()))
        total = expected.kernel_sums.sum()
        assert found.kernel_sums.sum() == pytest.approx(total, rel=2e-4 if d == 3 else 1e-5)
        assert relative(found.force, expected.force) <= (2e-2 if d == 3 else 2e-3)
        moments = FFTInterpolation().moments(KERNEL, Y, W)
        assert relative(moments, Exact().moments(KERNEL, Y, W)) <= 5e-3

    def test_forces_are_the_gradient_of_the_sums(self, weights):
        Y, fft = embedding(2), FFTInterpolation()
        V, h = np.random.default_rng(1).normal(size=Y.shape), 1e-5
        up, down = (fft.sums(KERNEL, Y + s * V, weights.matrix).kernel_sums.sum() for s in (h, -h))
        slope = -4 * float((fft.sums(KERNEL, Y, weights.matrix).force * V).sum())
        assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-6)

    def test_cells(self, weights):
        Y, W = embedding(2), weights.matrix
        expected, found = (engine.sums(KERNEL, Y, W) for engine in (Exact(), CellSums()))
        bound = CellSums().negligible * W.dense().sum(axis=1).max()
        np.testing.assert_allclose(found.kernel_sums, expected.kernel_sums, rtol=0, atol=bound)
        np.testing.assert_allclose(found.force, expected.force, rtol=0, atol=10 * bound)
        moments = CellSums().moments(KERNEL, Y, W)
        expected = Exact().moments(KERNEL, Y, W)
        np.testing.assert_allclose(moments, expected, rtol=0, atol=100 * bound)

    @pytest.mark.parametrize("engine", [FFTInterpolation(), CellSums()])
    def test_a_point_is_left_out_of_its_own_sum(self, engine):
        """Unlike a squared distance, the product of its factors is not zero."""
        factors, Y = np.random.default_rng(2).uniform(size=(N, 3)), embedding(2)
        W = FactoredWeights(factors, factors)
        found, expected = engine.sums(KERNEL, Y, W), Exact().sums(KERNEL, Y, W)
        np.testing.assert_allclose(found.kernel_sums, expected.kernel_sums, rtol=0.01, atol=0.01)
        assert relative(found.force, expected.force) < 5e-3

    def test_factors_in_groups(self, weights):
        """For large meshes, of which not all fit into memory at the same time."""
        Y, W = embedding(2), weights.matrix
        whole, parts = FFTInterpolation(), FFTInterpolation(max_nodes=2e4)
        found, expected = parts.sums(KERNEL, Y, W), whole.sums(KERNEL, Y, W)
        np.testing.assert_allclose(found.kernel_sums, expected.kernel_sums, rtol=1e-9)
        np.testing.assert_allclose(found.force, expected.force, atol=1e-9)
        moments = whole.moments(KERNEL, Y, W)
        np.testing.assert_allclose(parts.moments(KERNEL, Y, W), moments, atol=1e-9)

    @pytest.mark.parametrize("compile_pairs", [0, np.inf])
    def test_exact_sums_need_no_matrix_of_all_pairs(self, weights, compile_pairs, monkeypatch):
        """Weights are computed for blocks of rows."""
        Y, W, D = embedding(2), weights.matrix.dense(), cdist(*2 * [embedding(2)], "sqeuclidean")
        monkeypatch.delattr(FactoredWeights, "dense")
        exact = Exact(compile_pairs=compile_pairs, block=10 * N, numpy_block=10 * N)
        found = exact.sums(KERNEL, Y, weights.matrix).kernel_sums
        np.testing.assert_allclose(found, (W * np.exp(-D)).sum(axis=1), rtol=1e-8)

    def test_a_large_matrix_of_weights_is_announced(self, weights, monkeypatch):
        monkeypatch.setattr(validation, "ANNOUNCED_ABOVE", N - 1)
        with pytest.warns(LargeMatrixWarning, match="pairs of 600 points needs .* rows"):
            weights.matrix.dense()

    def test_the_choice_of_sums(self, weights):
        Y, W = np.tile(embedding(2), (7, 1)), weights.matrix
        W = FactoredWeights(*(np.tile(factor, (7, 1)) for factor in (W.left, W.right)))
        assert Fastest().choose(KERNEL, Y, W).reason.startswith("interpolation on a mesh")
        assert Fastest().choose(KERNEL, 100 * Y, W).cells is not None
        found, expected = (e.sums(KERNEL, Y, W) for e in (Fastest(), FFTInterpolation()))
        np.testing.assert_array_equal(found.force, expected.force)


class TestProjectedDistances:
    def test_weights_are_distances_of_principal_components(self, weights):
        D = cdist(*2 * [PCA(4).fit_transform(X)], "sqeuclidean")
        found = weights.at(*np.indices((N, N)))
        assert weights.rank == 4
        np.testing.assert_allclose(found, D / D.sum(), atol=1e-12)
        assert weights.held == pytest.approx(D.sum() / cdist(X, X, "sqeuclidean").sum(), rel=1e-6)

    def test_few_features_have_exact_weights(self):
        D = cdist(X, X, "sqeuclidean")
        found = projected_distance_weights(X)
        np.testing.assert_allclose(found.scale * found.matrix.dense(), D / D.sum(), atol=1e-14)
        assert found.held == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
    def test_distances_held_by_components_of_a_sample(self, kind):
        """A direction of a few rows, which are not in the sample, counts too."""
        data = RNG.normal(size=(N, 6)) + 2
        data[:, 5] = 0
        rest = np.setdiff1d(np.arange(N), spread_rows(N, 100))
        data[rest[:5], 5] = 60
        weights = projected_distance_weights(kind(data), max_rank=4, sample=100)
        D = cdist(*2 * [weights.components * weights.projection.frame.unit], "sqeuclidean")
        expected = D.sum() / cdist(data, data, "sqeuclidean").sum()
        assert expected < 0.5
        assert weights.held == pytest.approx(expected, rel=1e-9)

    def test_components_are_stored_once(self, weights):
        assert np.shares_memory(weights.components, weights.matrix.right)
        assert weights.factors is weights.matrix.right

    def test_degrees_laplacian_and_rows(self, weights):
        W = weights.scale * weights.matrix.dense()
        assert W.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights.degrees, W.sum(axis=1))
        V = RNG.normal(size=(N, 3))
        expected = (np.diag(W.sum(axis=1)) - W) @ V
        np.testing.assert_allclose(weights.laplacian_product(V), expected, atol=1e-14)
        np.testing.assert_allclose(weights.rows(X)[DIFFERENT], W[DIFFERENT])

    @pytest.mark.parametrize("n_features", [8, 700])
    def test_sparse_data(self, n_features):
        A = np.maximum(RNG.normal(size=(N, n_features)) - 1, 0)
        dense, found = (
            projected_distance_weights(data, max_rank=5, sample=300)
            for data in (A, sparse.csr_array(A))
        )
        assert found.rank == dense.rank
        pairs = RNG.integers(0, N, (2, 500))
        np.testing.assert_allclose(found.at(*pairs), dense.at(*pairs), rtol=1e-9)

    @pytest.mark.parametrize(("scale", "offset"), [(1e-150, 0.0), (1e150, 0.0), (1e-3, 1e6)])
    def test_scale_and_offset_of_the_data_do_not_matter(self, weights, scale, offset):
        found = projected_distance_weights(X * scale + offset, max_rank=4)
        pairs = RNG.integers(0, N, (2, 500))
        np.testing.assert_allclose(found.at(*pairs), weights.at(*pairs), rtol=1e-5)

    def test_rows_that_coincide_are_refused(self):
        with pytest.raises(ValueError, match="rows that do not all coincide"):
            projected_distance_weights(np.ones((5, 2)))


class TestNewPoints:
    @pytest.mark.parametrize("outlier", [False, True])
    def test_interpolated_sums_at_positions(self, weights, outlier):
        Y, Z = embedding(2), np.random.default_rng(3).normal(size=(60, 2)) * 3
        if outlier:
            Y[7] = 1e5
        new = weights.of_new_points(NEW)
        exact = Exact().at_positions(KERNEL, Y).at(Z, weights.rows(NEW))
        sums = FFTInterpolation().at_positions(KERNEL, Y, weights.factors)
        assert ("outlying" in sums.reason) == outlier
        assert sums.interpolated.at(Z, new).reliable.mean() > 0.9
        found = sums.at(Z, new)
        np.testing.assert_allclose(found.log_sum, exact.log_sum, atol=1e-4)
        np.testing.assert_allclose(found.gradient, exact.gradient, atol=2e-3)
        rows = np.arange(60)[::-1].copy()
        reordered = sums.at(Z[rows], new, rows)
        np.testing.assert_array_equal(reordered.log_sum[rows], found.log_sum)

    def test_a_copy_of_a_training_point_beside_it(self):
        """Terms of their squared distance cancel, and no other point is near in the map."""
        X, Y = RNG.normal(size=(2500, 8)), 3 * RNG.normal(size=(2500, 2))
        weights = projected_distance_weights(X)
        copies = weights.of_new_points(X[:200] + 1e-10)
        terms = np.einsum("ij,ij->i", copies.left, copies.right[:200])
        twin = int(terms.argmin())
        assert terms[twin] < 0
        assert copies.rows(slice(None)).min() == 0
        assert weights.matrix.dense().min() == 0
        Y[twin] = 60
        new = weights.of_new_points(X[twin : twin + 1] + 1e-10)
        for engine in (Fastest(), Exact()):
            sums = engine.at_positions(KERNEL, Y, weights.factors).at(np.array([[60, 60.1]]), new)
            assert sums.log_sum[0] < np.log(1e-15 * weights.scale)  # rounding of a distance
            assert np.isfinite(sums.gradient).all()
            assert np.isfinite(sums.hessian).all()

    def test_weights_times_a_factor(self, weights):
        scaled = weights.scaled(3.0)
        assert scaled.factors is weights.factors
        found = scaled.of_new_points(NEW)
        assert isinstance(found, FactoredWeights)
        np.testing.assert_allclose(found.rows(slice(None)), 3 * weights.rows(NEW), rtol=1e-12)
        dense = DenseRepulsion(weights.scale * weights.matrix.dense())
        assert dense.scaled(3.0).factors is None

    def test_exact_sums_need_no_matrix(self, weights):
        Y, Z = embedding(3), np.random.default_rng(3).normal(size=(60, 3))
        exact = Exact().at_positions(KERNEL, Y)
        found, expected = exact.at(Z, weights.of_new_points(NEW)), exact.at(Z, weights.rows(NEW))
        np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-12)


def test_the_critical_weight_of_a_large_graph(weights):
    """Without a factor of the attraction, among combinations of its eigenvectors."""
    D = cdist(X, X, "sqeuclidean")
    W = np.where(np.argsort(np.argsort(D, axis=1), axis=1) <= 10, 1.0, 0.0) * DIFFERENT
    objective = elastic(sparse.csr_array((W + W.T) / (2 * W.sum())), weights)
    expected = Bifurcation.of(objective)
    found = Bifurcation.of(objective, numerics=Numerics(max_fill=0.0))
    assert expected.weight * (1 - 1e-9) <= found.weight <= 1.02 * expected.weight
    assert found.lower <= expected.weight <= found.upper * (1 + 1e-9)
    overlap = abs((found.directions * expected.directions).sum(axis=0))
    assert overlap.min() > 0.95
