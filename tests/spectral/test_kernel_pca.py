"""Properties of docs/mathematics.md: Kernel PCA, Equivalent kernels, Mean squared error."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist, pdist
from sklearn import decomposition
from sklearn.metrics.pairwise import pairwise_kernels

from manifoldry import PCA, KernelPCA

X = np.random.default_rng(0).normal(size=(50, 4)) * [2, 1.5, 1, 0.7]
NEW = np.random.default_rng(1).normal(size=(10, 4))


def centered_kernel(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        ("rbf", {"gamma": 0.3}),
        ("poly", {"gamma": 0.2, "degree": 2, "coef0": 0.5}),
        ("sigmoid", {"gamma": 0.01, "coef0": 0.1}),
        ("laplacian", {"gamma": 0.2}),
        ("cosine", {}),
        ("linear", {}),
    ],
)
def test_agrees_with_scikit_learn(kernel, params):
    K, rows = (
        pairwise_kernels(A, X, metric=kernel, filter_params=True, **params) for A in (X, NEW)
    )
    peer = decomposition.KernelPCA(3, kernel="precomputed").fit(K)
    model = KernelPCA(3, kernel=kernel, **params).fit(X)
    assert np.allclose(model.eigenvalues_, peer.eigenvalues_)
    assert subspace_angles(model.embedding_, peer.transform(K)).max() < 1e-6
    assert np.allclose(np.abs(model.transform(NEW)), np.abs(peer.transform(rows)), atol=1e-8)


def test_precomputed_and_callable_kernels_agree_with_named_ones():
    named = KernelPCA(3, gamma=0.3).fit(X)
    K, rows = (pairwise_kernels(A, X, metric="rbf", gamma=0.3) for A in (X, NEW))
    given = KernelPCA(3, kernel="precomputed").fit(K)
    called = KernelPCA(
        3,
        kernel=lambda a, b, width: np.exp(-width * ((a - b) ** 2).sum()),
        kernel_params={"width": 0.3},
    ).fit(X)
    for model, new in ((given, rows), (called, NEW)):
        assert np.allclose(model.embedding_, named.embedding_, atol=1e-10)
        assert np.allclose(model.transform(new), named.transform(NEW), atol=1e-10)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_linear_kernel_is_pca(offset):
    model, pca = KernelPCA(3, kernel="linear").fit(X + offset), PCA(3).fit(X + offset)
    assert np.array_equal(model.embedding_, pca.embedding_)
    assert np.allclose(model.transform(NEW + offset), pca.transform(NEW + offset))
    assert np.allclose(
        model.inverse_transform(model.embedding_), pca.inverse_transform(pca.embedding_)
    )


def test_a_precomputed_linear_kernel_is_pca():
    """Inner products as a kernel matrix, which is centered and decomposed like any other."""
    model = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    assert np.allclose(np.abs(model.embedding_), np.abs(PCA(3).fit_transform(X)), atol=1e-10)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_all_coordinates_have_the_distances_of_the_feature_space(offset):
    """‖φ(x) − φ(y)‖² = 2 − 2·exp(−γd²), which is 2γd² for small d."""
    few = X[:20] + offset
    model = KernelPCA(19, gamma=0.3).fit(few)
    expected = 2 - 2 * np.exp(-0.3 * pdist(few) ** 2)
    assert np.allclose(pdist(model.embedding_) ** 2, expected, atol=1e-9)
    near = few * 1e-3
    model = KernelPCA(2, gamma=0.3).fit(near)
    first = PCA(2).fit(near)
    ratio = pdist(model.embedding_) / pdist(first.embedding_)
    assert np.allclose(ratio, np.sqrt(2 * 0.3), rtol=1e-3)


def test_distances_in_the_map_grow_towards_those_of_the_feature_space():
    truth = 2 - 2 * np.exp(-0.3 * pdist(X) ** 2)
    maps = [pdist(KernelPCA(k, gamma=0.3).fit_transform(X)) ** 2 for k in (2, 10, 30)]
    assert (maps[0] <= maps[1] + 1e-12).all()
    assert (maps[1] <= maps[2] + 1e-12).all()
    assert (maps[2] <= truth + 1e-12).all()


def test_default_width_is_the_median_of_squared_distances():
    model = KernelPCA(2).fit(X)
    assert np.isclose(model.gamma_, 1 / np.median(pdist(X) ** 2))
    explicit = KernelPCA(2, gamma=model.gamma_).fit(X)
    assert np.allclose(explicit.embedding_, model.embedding_)


def test_projection_by_its_formula():
    """x_k(y) = Σ α_ki k_c(y, x_i), every mean over the training set only."""
    model = KernelPCA(3, gamma=0.3).fit(X)
    K, rows = (pairwise_kernels(A, X, metric="rbf", gamma=0.3) for A in (X, NEW))
    values, V = np.linalg.eigh(centered_kernel(K))
    values, V = values[::-1][:3], V[:, ::-1][:, :3]
    kc = rows - rows.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    assert np.allclose(np.abs(model.transform(NEW)), np.abs(kc @ V / np.sqrt(values)))


def test_nystroms_functions_are_eigenfunctions():
    """Applying the kernel to the extended function returns ℓ times it.

    docs/mathematics.md, Equivalent kernels.
    """
    model = KernelPCA(3, gamma=0.3).fit(X)
    rows = model.extension_.rows(NEW)
    assert np.allclose(rows @ model.embedding_ / model.eigenvalues_, model.transform(NEW))
    assert model.extension_error(X) < 1e-12


def test_training_loss_identity():
    """The mean squared error over all pairs is Σ_{k>d} ℓ_k² / n².

    docs/mathematics.md, Mean squared error.
    """
    values = np.linalg.eigvalsh(centered_kernel(pairwise_kernels(X, metric="rbf", gamma=0.3)))
    for k in (1, 3, 7):
        model = KernelPCA(k, gamma=0.3).fit(X)
        K = model.extension_.rows(X)
        mean = np.square(K - model.embedding_ @ model.embedding_.T).mean()
        assert np.isclose(mean, (values[:-k] ** 2).sum() / 50**2)
        assert np.isclose(model.loss_, (values[:-k] ** 2).sum() / (values**2).sum())


def circle(n, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(t), np.sin(t)]) + noise * rng.normal(size=(n, 2))


@pytest.mark.parametrize("inverse", ["ridge", "fixed_point", "regression"])
def test_preimages_on_a_circle(inverse):
    between = circle(120)[1::2]  # half-way between training points
    errors = []
    for k in (4, 8):
        model = KernelPCA(k, gamma=1.0, inverse=inverse).fit(circle(60))
        back = model.inverse_transform(model.transform(between))
        errors.append(np.linalg.norm(back - between, axis=1).max())
    assert errors[0] < 0.08
    assert errors[1] < 0.01


@pytest.mark.parametrize("inverse", ["ridge", "fixed_point"])
def test_preimages_denoise(inverse):
    """Noise across the circle is outside the leading coordinates and is removed."""
    noisy = circle(200, noise=0.15)
    model = KernelPCA(4, gamma=1.0, inverse=inverse, alpha=1e-2).fit(noisy)
    back = model.inverse_transform(model.embedding_)
    off = [np.abs(np.linalg.norm(A, axis=1) - 1).mean() for A in (noisy, back)]
    assert off[1] < 0.8 * off[0]


def test_fixed_points_satisfy_their_equation():
    """z = Σ c k(z, x) x / Σ c k(z, x).

    The coefficients c are those of docs/mathematics.md, Kernel PCA.
    """
    model = KernelPCA(3, gamma=0.3, inverse="fixed_point").fit(X)
    Z = model.transform(NEW)
    back = model.inverse_transform(Z)
    dual = model.embedding_ / model.eigenvalues_  # v/√ℓ
    c = Z @ dual.T
    c += (1 - c.sum(axis=1, keepdims=True)) / len(X)
    weights = c * np.exp(-0.3 * cdist(back, X) ** 2)
    again = weights @ X / weights.sum(axis=1, keepdims=True)
    assert np.allclose(again, back, atol=1e-6)


def test_a_fixed_point_maximizes_the_similarity_to_the_map_position():
    """No nearby point has an image closer to the position in feature space."""
    model = KernelPCA(3, gamma=0.3, inverse="fixed_point").fit(X)
    Z = model.transform(NEW[:4])
    back = model.inverse_transform(Z)
    c = Z @ (model.embedding_ / model.eigenvalues_).T
    c += (1 - c.sum(axis=1, keepdims=True)) / len(X)

    def similarity(points):
        return (c * np.exp(-0.3 * cdist(points, X) ** 2)).sum(axis=1)

    rng = np.random.default_rng(2)
    for _ in range(20):
        assert (similarity(back + 0.05 * rng.normal(size=back.shape)) < similarity(back)).all()


def test_alpha_is_the_penalty_of_the_ridge():
    """With a huge penalty every prediction is the mean."""
    model = KernelPCA(2, alpha=1e12).fit(X)
    assert np.allclose(model.inverse_transform(model.embedding_), X.mean(axis=0), atol=1e-6)


def test_parameters_of_a_callable_kernel_are_copied():
    params = {"width": 0.3}
    model = KernelPCA(
        kernel=lambda a, b, width: np.exp(-width * ((a - b) ** 2).sum()), kernel_params=params
    ).fit(X)
    before = model.transform(NEW)
    params["width"] = 5.0
    assert np.array_equal(model.transform(NEW), before)


def test_separates_concentric_rings():
    rings = np.vstack([0.3 * circle(60, 0.02), circle(60, 0.02, seed=1)])
    Y = KernelPCA(1, gamma=2.0).fit_transform(rings)[:, 0]
    inner, outer = Y[:60], Y[60:]
    assert inner.max() < outer.min() or outer.max() < inner.min()


def test_kernels_that_overflow_at_new_points_are_refused():
    model = KernelPCA(1, kernel="poly", degree=3).fit(X)
    with pytest.raises(ValueError, match=r"values of 1 rows with .* overflow; check the units"):
        model.transform(np.vstack([X[:1], X[:1] * 1e150]))
