"""Nyström's formula, centering, and kernels that keep their digits."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from manifoldry.affinity.dense import RBF, Centered, GivenKernel, PairwiseKernel, median_rbf
from manifoldry.eigen import Spectrum
from manifoldry.extension import base
from manifoldry.extension.base import Nystrom
from manifoldry.extension.from_distances import DistancesToTraining, GowerKernel
from manifoldry.neighbors import distances
from manifoldry.neighbors.distances import Frame, squared_distances


@pytest.fixture
def rng():
    return np.random.default_rng(21)


def positive_kernel(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T


def centering(n):
    return np.eye(n) - 1 / n


def spectrum_of(values, vectors):
    nothing = np.zeros(len(values))
    return Spectrum(np.asarray(values), vectors, nothing, nothing, np.nan, 1.0)


class Rows:
    """A kernel matrix whose rows are asked for as they are."""

    def __init__(self, n_train):
        self.n_train = n_train

    def rows(self, X):
        return X


def test_nystrom_returns_the_eigenvectors_at_training_points(rng):
    K = positive_kernel(rng, 40)
    values, V = eigh(K)
    values, V = values[::-1][:10], V[:, ::-1][:, :10]
    placed = Nystrom(Rows(40), V / values).transform(K)
    np.testing.assert_allclose(placed, V, atol=1e-13)
    scaled = Nystrom(Rows(40), spectrum_of(values, V).dual_vectors).transform(K)
    np.testing.assert_allclose(scaled, V * np.sqrt(values), atol=1e-11)


def test_nystrom_in_blocks_is_the_same(rng, monkeypatch):
    K = positive_kernel(rng, 40)
    dual = rng.normal(size=(40, 3))
    whole = Nystrom(Rows(40), dual).transform(K)
    monkeypatch.setattr(
        base, "row_blocks", lambda n, width: [slice(i, i + 7) for i in range(0, n, 7)]
    )
    np.testing.assert_allclose(Nystrom(Rows(40), dual).transform(K), whole, rtol=1e-13)


def test_nystrom_gives_its_kernel_rows_away(rng):
    K = positive_kernel(rng, 10)
    np.testing.assert_array_equal(Nystrom(Rows(10), np.ones((10, 1))).rows(K[:3]), K[:3])


def test_directions_without_an_eigenvalue_get_no_dual_vector():
    dual = spectrum_of([4.0, 1e-13, 0.0, -2.0], np.eye(4)).dual_vectors
    np.testing.assert_array_equal(dual, np.diag([0.5, 0, 0, 0]))
    np.testing.assert_array_equal(spectrum_of([0.0, 0.0], np.eye(2)).dual_vectors, 0)


def test_centering_is_multiplication_by_h_on_both_sides(rng):
    K = positive_kernel(rng, 30)
    H = centering(30)
    centered, C = Centered.of(GivenKernel(30), K.copy())
    np.testing.assert_allclose(C, H @ K @ H, atol=1e-12)
    np.testing.assert_allclose(centered.rows(K), H @ K @ H, atol=1e-12)


def test_centering_new_rows_uses_training_means_only(rng):
    X, new = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    features = np.hstack([X, X**2])  # an explicit feature map: centering is subtraction there
    new_features = np.hstack([new, new**2])
    centered, _ = Centered.of(GivenKernel(30), features @ features.T)
    mean = features.mean(axis=0)
    expected = (new_features - mean) @ (features - mean).T
    rows = centered.rows(new_features @ features.T)
    np.testing.assert_allclose(rows, expected, atol=1e-12)
    alone = [centered.rows((new_features @ features.T)[i : i + 1])[0] for i in range(7)]
    np.testing.assert_allclose(rows, alone, atol=1e-13)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rbf_is_the_gaussian_kernel(rng, kind, dtype):
    X, new = (rng.normal(size=(n, 5)).astype(dtype) for n in (30, 8))
    rbf = median_rbf(kind(X), gamma=0.3)
    K = rbf.matrix(kind(new))
    np.testing.assert_allclose(
        K, rbf_kernel(new.astype(float), X.astype(float), gamma=0.3), rtol=1e-9
    )
    assert K.dtype == np.float64
    np.testing.assert_array_equal(np.diagonal(rbf.matrix(kind(X))), 1.0)


def test_default_width_is_the_median_squared_distance(rng):
    X = rng.normal(size=(101, 3))
    rbf = median_rbf(X)
    np.testing.assert_allclose(rbf.gamma / rbf.frame.unit**2, 1 / np.median(pdist(X) ** 2))


@pytest.mark.parametrize("scale", [1e-140, 1e-3, 1e140])
def test_default_width_follows_the_units(rng, scale):
    X = rng.normal(size=(40, 3))
    np.testing.assert_allclose(
        median_rbf(X * scale).matrix(X * scale), median_rbf(X).matrix(X), rtol=1e-9
    )


def test_default_width_of_sorted_data_looks_at_all_of_them():
    """1999 rows in order: the first thousand alone would halve the width."""
    X = np.linspace(0, 1, 1999)[:, None]
    rbf = median_rbf(X)
    exact = np.median(pdist(X[::4]) ** 2)
    np.testing.assert_allclose(rbf.frame.unit**2 / rbf.gamma, exact, rtol=0.01)


def test_default_width_where_most_points_coincide(rng):
    X = np.vstack([np.zeros((50, 2)), rng.normal(size=(5, 2))])
    rbf = median_rbf(X)
    D2 = pdist(X) ** 2
    np.testing.assert_allclose(rbf.gamma / rbf.frame.unit**2, 1 / np.median(D2[D2 > 0]))
    assert np.isfinite(median_rbf(np.ones((5, 2))).matrix(np.ones((5, 2)))).all()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_width_out_of_all_proportion_is_refused(scale):
    with pytest.raises(ValueError, match=r"gamma=1 is out of proportion .* rescale X"):
        median_rbf(np.array([[0.0], [scale]]), gamma=1.0)


def test_any_kernel_of_scikit_learn(rng):
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    params = {"degree": 2, "gamma": 0.5, "coef0": 2.0}
    K = PairwiseKernel(X, "poly", params).matrix(new)
    np.testing.assert_allclose(K, polynomial_kernel(new, X, **params))


def test_given_kernel_rows_pass_through(rng):
    K = rng.normal(size=(4, 9))
    np.testing.assert_array_equal(GivenKernel(9).matrix(sparse.csr_array(K)), K)


# --- squared distances -------------------------------------------------------------------------


def whole(rng, n, d):
    """Multiples of 2⁻¹⁰ below one, so that shifting them by 2²⁷ is exact."""
    return rng.integers(-(2**10), 2**10, size=(n, d)) / 2.0**10


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 2.0**20, 2.0**27, -(2.0**40)])
def test_squared_distances_at_an_offset(rng, kind, offset):
    X, Y = whole(rng, 30, 6), whole(rng, 40, 6)
    frame = Frame.of(kind(Y + offset))
    D2 = squared_distances(kind(X + offset), kind(Y + offset), frame, accuracy=1e-12)
    expected = cdist(X, Y, "sqeuclidean")
    np.testing.assert_allclose(D2 * frame.unit**2, expected, rtol=1e-9, atol=1e-12 * frame.unit**2)


def test_squared_distances_between_clusters_far_apart(rng):
    A, B = whole(rng, 30, 6), whole(rng, 30, 6)
    X = np.vstack([A + 2.0**27, B - 2.0**27])
    frame = Frame.of(X)
    D2 = squared_distances(X, X, frame, accuracy=1e-30) * frame.unit**2
    for part, cluster in ((slice(30), A), (slice(30, None), B)):
        np.testing.assert_allclose(
            D2[part, part], cdist(cluster, cluster, "sqeuclidean"), rtol=1e-6
        )


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_coinciding_points_are_at_distance_zero_also_by_matrix_product(rng, kind):
    X = rng.normal(size=(50, 7))
    X[10] = X[3] + 1e-9
    frame = Frame.of(kind(X))
    D2 = squared_distances(kind(X), kind(X), frame, accuracy=1e-9, direct=0) * frame.unit**2
    np.testing.assert_array_equal(np.diagonal(D2), 0)
    np.testing.assert_allclose(D2, cdist(X, X, "sqeuclidean"), rtol=1e-6)


def test_single_precision_needs_no_subtraction(rng, monkeypatch):
    """A matrix product in double precision is accurate enough; in single it never was."""
    monkeypatch.setattr(distances, "_subtracted_squares", None)
    X = rng.normal(size=(50, 7)).astype(np.float32)
    frame = Frame.of(X)
    D2 = squared_distances(X, X, frame, accuracy=1e-12, direct=0) * frame.unit**2
    np.testing.assert_allclose(D2, cdist(X.astype(float), X.astype(float)) ** 2, rtol=1e-9)


def test_wide_sparse_rows_are_not_all_made_dense(rng, monkeypatch):
    n_features = 100_000
    at = rng.integers(0, 100, 1000), rng.integers(0, n_features, 1000)
    X = sparse.csr_array((rng.uniform(size=1000), at), shape=(100, n_features))
    made = []
    to_dense = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array, "toarray", lambda A, *a, **k: (made.append(A.shape), to_dense(A))[1]
    )
    frame = Frame.of(X)
    D2 = squared_distances(X, X, frame, accuracy=0.0) * frame.unit**2
    assert max(np.prod(shape) for shape in made) <= 2**23
    gram = (X @ X.T).toarray()
    expected = np.add.outer(np.diagonal(gram), np.diagonal(gram)) - 2 * gram
    np.testing.assert_allclose(D2, expected, atol=1e-10)


# --- classical scaling's kernel ----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_gower_is_minus_half_the_squared_distance(rng, metric):
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    gower = GowerKernel(DistancesToTraining(20, X, metric), unit=4.0)
    np.testing.assert_allclose(
        gower.matrix(new) * 16, -0.5 * cdist(new, X, metric) ** 2, rtol=1e-12
    )
    given = GowerKernel(DistancesToTraining(20, None, "precomputed"), unit=4.0)
    np.testing.assert_allclose(given.matrix(cdist(new, X, metric)), gower.matrix(new), rtol=1e-12)


def test_the_additive_constant_leaves_coinciding_points_together(rng):
    X = rng.normal(size=(20, 3))
    gower = GowerKernel(DistancesToTraining(20, X, "euclidean"), unit=2.0, constant=0.7)
    expected = -0.5 * ((cdist(X, X) + 0.7 * (1 - np.eye(20))) / 2) ** 2
    np.testing.assert_allclose(gower.matrix(X), expected, rtol=1e-12)
    assert not np.diagonal(gower.matrix(X)).any()


def test_given_distances_are_not_modified(rng):
    D = cdist(rng.normal(size=(4, 2)), rng.normal(size=(6, 2)))
    before = D.copy()
    GowerKernel(DistancesToTraining(6, None, "precomputed"), unit=1.0, constant=0.5).matrix(D)
    np.testing.assert_array_equal(D, before)


def test_rbf_far_from_everything_is_zero_not_nan(rng):
    X = rng.normal(size=(20, 3))
    K = RBF(X, Frame.of(X), 1.0).matrix(np.full((2, 3), 1e30))
    np.testing.assert_array_equal(K, 0)
