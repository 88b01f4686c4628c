"""Principal component analysis: the properties of docs/mathematics.md, PCA."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn import decomposition
from sklearn.pipeline import make_pipeline

from manifoldry import PCA, ClassicalMDS, KernelPCA
from manifoldry.eigen import Dense, Gram
from manifoldry.exceptions import RankWarning
from manifoldry.spectral.base import eigengap


@pytest.fixture(params=[(80, 6), (12, 40)], ids=["tall", "wide"])
def data(request):
    n, d = request.param
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) * np.linspace(3, 0.5, d) + 5


def centered(X):
    return X - X.mean(axis=0)


def test_agrees_with_singular_values(data):
    U, s, Vt = np.linalg.svd(centered(data), full_matrices=False)
    model = PCA(3).fit(data)
    assert np.allclose(model.eigenvalues_, s[:3] ** 2)
    assert np.allclose(np.abs(model.embedding_), np.abs(U[:, :3] * s[:3]))
    assert np.allclose(np.abs(model.components_), np.abs(Vt[:3]))
    assert np.allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    assert np.allclose(model.mean_, data.mean(axis=0))


def test_agrees_with_scikit_learn(data):
    model, peer = PCA(3).fit(data), decomposition.PCA(3).fit(data)
    assert subspace_angles(model.embedding_, peer.transform(data)).max() < 1e-7
    assert subspace_angles(model.components_.T, peer.components_.T).max() < 1e-7
    assert np.allclose(model.explained_variance_, peer.explained_variance_)
    assert np.allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_)
    assert np.isclose(model.loss_, 1 - peer.explained_variance_ratio_.sum())
    new = data[:4] + 0.3
    assert np.allclose(np.abs(model.transform(new)), np.abs(peer.transform(new)))
    assert np.allclose(
        model.inverse_transform(model.transform(new)), peer.inverse_transform(peer.transform(new))
    )


def test_equals_classical_scaling_of_euclidean_distances(data):
    D = np.linalg.norm(data[:, None] - data[None], axis=2)
    by_distances = ClassicalMDS(3, metric="precomputed").fit(D)
    model = PCA(3).fit(data)
    assert np.allclose(np.abs(by_distances.embedding_), np.abs(model.embedding_), atol=1e-11)
    assert np.allclose(by_distances.eigenvalues_, model.eigenvalues_)


def test_projecting_twice_is_projecting_once(data):
    model = PCA(3).fit(data)
    once = model.inverse_transform(model.transform(data))
    twice = model.inverse_transform(model.transform(once))
    assert np.allclose(once, twice, atol=1e-12)
    Z = np.random.default_rng(1).normal(size=(5, 3))
    assert np.allclose(model.transform(model.inverse_transform(Z)), Z, atol=1e-12)


def test_residual_is_the_sum_of_the_other_eigenvalues(data):
    s = np.linalg.svd(centered(data), compute_uv=False)
    model = PCA(3).fit(data)
    residual = np.square(data - model.inverse_transform(model.embedding_)).sum()
    assert np.isclose(residual, (s[3:] ** 2).sum())
    assert np.isclose(model.loss_, residual / np.square(centered(data)).sum())


def test_gram_matrix_and_covariance_agree():
    """n − 1 = d: after a rotation, a column of zeros makes the other matrix the smaller one."""
    X = np.random.default_rng(3).normal(size=(20, 19)) * np.linspace(4, 1, 19)
    wide = np.hstack([X, np.zeros((20, 30))])
    tall = PCA(4).fit(X)
    assert np.allclose(np.abs(PCA(4).fit(wide).embedding_), np.abs(tall.embedding_), atol=1e-11)
    assert np.allclose(PCA(4).fit(wide).components_[:, 19:], 0)


def test_eigenvalues_are_n_minus_1_variances_and_n_times_those_with_1_over_n(data):
    n = len(data)
    model = PCA(3).fit(data)
    variance = model.embedding_.var(axis=0)  # with 1/n
    assert np.allclose(model.eigenvalues_, n * variance)
    assert np.allclose(model.explained_variance_, variance * n / (n - 1))


def test_all_components_reproduce_the_data(data):
    k = min(len(data) - 1, data.shape[1])
    model = PCA(k).fit(data)
    assert np.allclose(model.inverse_transform(model.embedding_), data, atol=1e-10)
    assert model.loss_ < 1e-12


@pytest.mark.parametrize("make", [PCA, KernelPCA, ClassicalMDS])
def test_far_from_the_origin(make):
    """At 1e8 the data have eight digits, which the linear methods keep."""
    linear = {"kernel": "linear"} if make is KernelPCA else {}
    X = np.random.default_rng(0).normal(size=(50, 4)) * [4, 3, 1, 0.1] + 1e8
    model, reference = make(2, **linear).fit(X), PCA(2).fit(X - 1e8)
    assert np.allclose(np.abs(model.embedding_), np.abs(reference.embedding_), atol=1e-7)
    assert np.array_equal(model.transform(X), model.embedding_)
    assert model.extension_error(X) == 0
    assert np.allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-9)


def test_rank_deficient_data_give_zero_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    with pytest.warns(
        RankWarning, match=r"2 positive eigenvalues.*n_components=4.*Pass n_components=2"
    ):
        model = PCA(4).fit(X)
    assert not model.embedding_[:, 2:].any()
    assert not model.components_[2:].any()
    assert np.allclose(model.inverse_transform(model.embedding_), X)
    assert model.dimension_hint_ == 2


def test_sparse_data_stay_sparse():
    rng = np.random.default_rng(0)
    strong = sparse.csr_array(rng.normal(size=(2000, 2)) * [4, 2])
    faint = sparse.random(2000, 2998, density=1e-3, random_state=0, format="csr")
    X = sparse.csr_array(sparse.hstack([strong, faint]))
    model = PCA(2, eigen_solver="lanczos").fit(X)
    U, s, _ = np.linalg.svd(centered(strong.toarray()), full_matrices=False)
    assert subspace_angles(model.embedding_, U * s).max() < 0.05  # the rest is noise
    assert np.allclose(model.transform(X[:7]), model.embedding_[:7])
    assert model.components_.shape == (2, 3000)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_few_sparse_rows(n):
    X = np.random.default_rng(n).uniform(size=(n, 7))
    model = PCA(2).fit(sparse.csr_array(X))
    assert np.allclose(np.abs(model.embedding_), np.abs(PCA(2).fit(X).embedding_), atol=1e-12)


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e8])
def test_sparse_data_with_a_large_mean(offset):
    """A column with a large mean must not cost the others digits."""
    X = np.random.default_rng(0).uniform(size=(50, 4)) * [4, 2, 1, 1]
    X[:, 3] += offset
    model, dense = PCA(2).fit(sparse.csr_array(X)), PCA(2).fit(X)
    assert np.allclose(model.explained_variance_ratio_, dense.explained_variance_ratio_, rtol=1e-9)
    assert np.isclose(model.loss_, dense.loss_, rtol=1e-8)
    assert np.allclose(np.abs(model.embedding_), np.abs(dense.embedding_), atol=1e-14 * offset)


def test_n_minus_1_components_of_sparse_data():
    X = np.random.default_rng(0).uniform(size=(6, 9))
    model = PCA(5).fit(sparse.csr_array(X))
    assert np.allclose(model.inverse_transform(model.embedding_), X, atol=1e-10)


def test_a_solver_object_and_what_it_reports():
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = PCA(2, eigen_solver=Dense()).fit(X)
    assert model.solver_.startswith("Dense: Dense was requested")
    assert PCA(2).fit(X).solver_.startswith("Dense: the factor's short side 4")


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_dimension_hint_on_clean_data(rank):
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(100, rank)) @ rng.normal(size=(rank, 12))
    X += 1e-4 * rng.normal(size=X.shape)
    assert PCA(2).fit(X).dimension_hint_ == rank


def test_eigengap_at_both_ends():
    assert eigengap(np.array([9.0, 8.0, 7.0, 0.1]), "largest") == 3
    assert eigengap(np.array([0.01, 0.012, 0.9, 1.0]), "smallest") == 2
    assert eigengap(np.array([3.0, 0.0, 0.0]), "largest") == 1
    assert eigengap(np.array([3.0, 2.0, -5.0]), "largest") == 2  # negative ones do not count
    assert eigengap(np.array([3.0, np.nan]), "largest") == 1
    assert eigengap(np.zeros(4), "largest") == 1


def test_units_of_residuals_and_gaps():
    """Residuals and gaps are in the units of the eigenvalues."""
    X = np.random.default_rng(0).normal(size=(60, 4)) * [4, 3, 2, 1]
    for s in (1e-3, 1.0, 1e6):
        model = PCA(2).fit(X * s)
        values = model.computed_eigenvalues_
        assert np.allclose(model.gaps_[0], values[0] - values[1])
        assert np.allclose(model.gaps_[1], min(values[0] - values[1], values[1] - values[2]))
        assert (model.residuals_ < 1e-9 * values[0]).all()
    # Scaling by a power of two is exact, so the units agree to the last bit.
    X = np.random.default_rng(0).normal(size=(200, 80)) * np.linspace(4, 1, 80)
    plain, scaled = (PCA(2, eigen_solver="lanczos").fit(A) for A in (X, X * 1024))
    assert plain.residuals_.all()
    assert np.array_equal(scaled.residuals_, plain.residuals_ * 1024**2)


@pytest.mark.parametrize("call", ["fit", "fit_transform", "pipeline"])
def test_warnings_refer_to_the_line_of_the_user(call):
    model = PCA(2)
    fit = make_pipeline(model).fit if call == "pipeline" else getattr(model, call)
    with pytest.warns(RankWarning) as caught:
        fit(np.ones((10, 3)))
    assert [warning.filename for warning in caught] == [__file__]


def test_no_warning_without_a_reason(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PCA(3).fit(data).inverse_transform(np.zeros((2, 3)), return_distance=True)


@pytest.mark.parametrize("n", [500, 3000])
def test_the_hint_does_not_depend_on_the_number_of_rows(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 9)) + 1e-3 * rng.normal(size=(n, 9))
    assert PCA(2).fit(X).dimension_hint_ == 4


@pytest.mark.parametrize(
    ("smallest", "precision"),
    [(0.5, "products in single precision"), (1e-3, "products in double precision: in single, res")],
    ids=["large gaps", "tiny gaps"],
)
def test_single_precision_data(smallest, precision, monkeypatch):
    # Products in single precision cannot separate the last variances, 9e-6, 4e-6 and 1e-6.
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    scales = np.array([1.0, 0.8, 3 * smallest, 2 * smallest] + 16 * [smallest])
    X = (rng.normal(size=(300, 20)) * scales @ axes).astype(np.float32)
    _, s, Vt = np.linalg.svd(centered(X.astype(np.float64)), full_matrices=False)
    used = []
    small_matrix = Gram.small_matrix
    monkeypatch.setattr(
        Gram, "small_matrix", lambda self: used.append(self.single) or small_matrix(self)
    )
    model = PCA(4, eigen_solver="dense").fit(X)
    assert used[0]
    assert all(used) == (smallest == 0.5)
    assert precision in model.solver_
    assert model.embedding_.dtype == np.float32
    np.testing.assert_allclose(model.eigenvalues_, s[:4] ** 2, rtol=1e-6)
    np.testing.assert_allclose(np.abs(model.components_ @ Vt[:4].T), np.eye(4), atol=1e-6)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "k", "precision"),
    [((60, 30), 2, "in double precision: more than single_up_to=1 pairs"), ((20, 30), 2, None)],
)
def test_double_precision_is_explained(shape, k, precision):
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    said = PCA(k, eigen_solver=Dense(single_up_to=1)).fit(X).solver_
    assert (precision in said) if precision else ("precision" not in said)
    assert "precision" not in PCA(k, eigen_solver="dense").fit(X.astype(np.float64)).solver_
