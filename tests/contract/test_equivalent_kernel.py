"""Every method's equivalent kernel: its leading eigenvectors are the method's coordinates."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist, pdist
from sklearn.decomposition import KernelPCA as ReferenceKernelPCA
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

import manifoldry as mf
from manifoldry.exceptions import DisconnectedGraphWarning

LE = mf.LaplacianEigenmaps


def fitted(method, X):
    return method.make().fit(method.input(X))


def dense(K):
    return K.toarray() if sparse.issparse(K) else K


def training_kernel(model, X):
    K = dense(model.equivalent_kernel(X))
    return K[model.landmarks_] if hasattr(model, "landmarks_") else K


def leading(K, k, start=0):
    vectors = eigh(K)[1][:, ::-1]
    return vectors[:, start : start + k]


def roots_of_degrees(model):
    """√degree where the kernel is divided by it, which makes it the first eigenvector."""
    degree = np.asarray(model.affinity_.sum(axis=1)).ravel()
    return np.sqrt(degree)[:, None]


def as_eigenvectors(model):
    """Coordinates turned into eigenvectors of the kernel, and how many come before them."""
    Y = model.embedding_
    if isinstance(model, mf.SpectralClustering):
        return Y, 0  # up to the length of its rows
    if isinstance(model, LE) and model.normalization == "rw":
        return Y * roots_of_degrees(model), 1
    if hasattr(model, "landmarks_"):
        return Y[model.landmarks_], 0
    return Y, int(hasattr(model, "component_labels_"))


class TestEveryMethod:
    def test_symmetric_on_training_data(self, kernel_method, X):
        K = training_kernel(fitted(kernel_method, X), kernel_method.input(X))
        assert np.abs(K - K.T).max() <= 1e-12 * np.abs(K).max()

    def test_leading_eigenvectors_are_the_coordinates(self, kernel_method, X):
        model = fitted(kernel_method, X)
        K = training_kernel(model, kernel_method.input(X))
        V, before = as_eigenvectors(model)
        found = leading(K, V.shape[1], before)
        if isinstance(model, mf.SpectralClustering):
            found = found / np.linalg.norm(found, axis=1, keepdims=True)
        assert np.abs(subspace_angles(found, V)).max() < 1e-8

    def test_previous_eigenvectors_are_not_coordinates(self, kernel_method, X):
        model = fitted(kernel_method, X)
        if as_eigenvectors(model)[1] == 0:
            pytest.skip("nothing comes before them")
        first = leading(training_kernel(model, kernel_method.input(X)), 1)
        divided = isinstance(model, LE) and model.normalization != "none"
        constant = roots_of_degrees(model) if divided else np.ones_like(first)
        assert np.abs(subspace_angles(first, constant)).max() < 1e-8

    def test_rows_do_not_depend_on_their_batch(self, kernel_method, X, X_new):
        model = fitted(kernel_method, X)
        mixed = kernel_method.between(np.vstack([X_new, X[:5]]), X)
        together = dense(model.equivalent_kernel(mixed))
        one_by_one = [dense(model.equivalent_kernel(mixed[i : i + 1])) for i in range(len(mixed))]
        tolerance = 1e-10 * np.abs(together).max()
        np.testing.assert_allclose(together, np.vstack(one_by_one), atol=tolerance)

    def test_double_precision_and_nothing_stored(self, data_kernel_method, X):
        model = fitted(data_kernel_method, X.astype(np.float32))
        before = set(vars(model))
        assert model.equivalent_kernel(X.astype(np.float32)).dtype == np.float64
        assert set(vars(model)) == before

    def test_units(self, data_kernel_method, X):
        """Kernels of lengths scale with their square; others have no unit."""
        if data_kernel_method.scale_power is None:
            pytest.skip("another problem at another scale")
        model, far = (fitted(data_kernel_method, s * X) for s in (1.0, 1e60))
        K, scaled = model.equivalent_kernel(X), far.equivalent_kernel(1e60 * X)
        squared = hasattr(model, "landmarks_") or isinstance(model, mf.ClassicalMDS)
        unit = 1e120 if squared else 1.0
        np.testing.assert_allclose(dense(scaled) / unit, dense(K), atol=1e-8 * abs(K).max())


CENTERED = {
    "city block": partial(mf.ClassicalMDS, metric="cityblock"),
    "kernel PCA": mf.KernelPCA,
    "Isomap": mf.Isomap,
    "LE none": partial(LE, normalization="none"),
    "LLE": mf.LLE,
    "LTSA": partial(mf.LTSA, metric_fit=False),
    "Hessian LLE": partial(mf.HessianLLE, metric_fit=False),
}


@pytest.mark.parametrize("make", CENTERED.values(), ids=list(CENTERED))
def test_kernel_pca_of_scikit_learn_gives_the_map(make, X, same_up_to_sign):
    """Up to the scale of columns, if the method scales them otherwise."""
    model = make(2).fit(X)
    K = dense(model.equivalent_kernel(X))
    Y = ReferenceKernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(K)
    if not hasattr(model, "negative_fraction_") and not hasattr(model, "landmarks_"):
        Y = Y / np.linalg.norm(Y, axis=0) * np.linalg.norm(model.embedding_, axis=0)
    same_up_to_sign(Y, model.embedding_, 1e-8)


class TestNewPoints:
    @pytest.mark.parametrize("make", list(CENTERED.values())[:3], ids=list(CENTERED)[:3])
    def test_nystrom_is_transform(self, make, X, X_new):
        model = make(2).fit(X)
        placed = model.equivalent_kernel(X_new) @ (model.embedding_ / model.eigenvalues_)
        np.testing.assert_allclose(placed, model.transform(X_new), atol=1e-8)

    @pytest.mark.parametrize("make", [LE, mf.DiffusionMaps, partial(mf.DiffusionMaps, alpha=0.5)])
    def test_nystrom_on_a_graph(self, make, X, X_new):
        model = make(2).fit(X)
        root, K = roots_of_degrees(model), model.equivalent_kernel(X_new)
        own = K @ root  # Σ w/√d = √d at the new point
        placed = K @ (root * model.embedding_) / own / (1 - model.eigenvalues_)
        np.testing.assert_allclose(placed, model.transform(X_new), atol=1e-10)

    @pytest.mark.parametrize("make", [mf.LLE, mf.LTSA, mf.HessianLLE])
    def test_local_kernels_are_weights_on_neighbors(self, make, X, X_new):
        model = make(2).fit(X)
        K = model.equivalent_kernel(X_new)
        weights = K / K.sum(axis=1)[:, None]
        np.testing.assert_allclose(weights @ model.embedding_, model.transform(X_new), atol=1e-9)
        assert np.diff(sparse.csr_array(K).indptr).max() <= 13

    def test_diffusion_written_out(self, X, X_new):
        """The density is divided out at new points too."""
        n, alpha, gamma = len(X), 0.7, 0.3
        model = mf.DiffusionMaps(2, n_neighbors=n - 1, alpha=alpha, gamma=gamma).fit(X)
        W = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
        new = np.exp(-gamma * cdist(X_new, X, "sqeuclidean"))
        q, q_new = W.sum(axis=1), np.maximum(new.sum(axis=1), 1.0)
        W, new = W / np.outer(q, q) ** alpha, new / np.outer(q_new, q) ** alpha
        expected = new / np.sqrt(np.outer(new.sum(axis=1), W.sum(axis=1)))
        found = model.equivalent_kernel(X_new).toarray()
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_kernel_of_lle_written_out(X):
    """(μ − 1)·I + W + Wᵀ − WᵀW, with scikit-learn's weights."""
    K = mf.LLE(2, n_neighbors=8).fit(X).equivalent_kernel(X).toarray()
    W = barycenter_kneighbors_graph(X, 8).toarray()
    beyond = K - (W + W.T - W.T @ W)
    np.testing.assert_allclose(beyond, beyond[0, 0] * np.eye(len(X)), atol=1e-8)
    assert eigh(K, eigvals_only=True)[0] >= 0  # μ is large enough


def test_a_given_diagonal_is_ignored(X):
    """It is not a weight between neighbors."""
    W = np.exp(-cdist(X, X, "sqeuclidean") / np.median(pdist(X)) ** 2)
    K = LE(2, affinity="precomputed").fit(W).equivalent_kernel(W).toarray()
    assert np.diag(K).max() == 0
    np.fill_diagonal(W, 0.0)
    d = W.sum(axis=1)
    np.testing.assert_allclose(K, W / np.sqrt(np.outer(d, d)), atol=1e-14)


def test_components_are_independent(make_cloud):
    X = np.vstack([make_cloud(40), make_cloud(30, seed=3) + 1e3])
    for model in (mf.Isomap(2, disconnected="separate"), LE(2), mf.LLE(2)):
        with pytest.warns(DisconnectedGraphWarning):
            K = model.fit(X).equivalent_kernel(X)
        assert not dense(K)[:40, 40:].any()


class TestRefused:
    def test_linear_maps(self, X):
        for model in (mf.PCA(2), mf.ClassicalMDS(2), mf.KernelPCA(2, kernel="linear")):
            with pytest.raises(ValueError, match="a linear map does not store the training data"):
                model.fit(X).equivalent_kernel(X)

    def test_iterative_methods(self, iterative_method):
        assert not hasattr(iterative_method.make(), "equivalent_kernel")

    def test_constrained_coordinates(self, X):
        model = mf.NonRedundant(LE(), 2).fit(X)
        assert not hasattr(model, "equivalent_kernel")
        with pytest.raises(ValueError, match="no single kernel"):
            model.estimator_.equivalent_kernel(X)

    def test_memory(self, X, free_memory):
        models = [mf.KernelPCA(2).fit(X), LE(2).fit(X)]
        free_memory(1000)
        for model in models:
            with pytest.raises(MemoryError, match="kernel between 60 and 60 points"):
                model.equivalent_kernel(X)

    def test_wrong_number_of_features(self, X):
        with pytest.raises(ValueError, match="features"):
            mf.Isomap(2).fit(X).equivalent_kernel(X[:, :3])
