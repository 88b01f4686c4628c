"""Classical scaling: properties of docs/mathematics.md, Classical MDS and Mean squared error."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist, pdist, squareform

from manifoldry import PCA, ClassicalMDS
from manifoldry.exceptions import RankWarning
from manifoldry.spectral.classical_mds import cailliez_constant


def precomputed(k=2, **params):
    return ClassicalMDS(k, metric="precomputed", **params)


def double_centered(D):
    H = np.eye(len(D)) - 1 / len(D)
    return -0.5 * H @ D**2 @ H


@pytest.fixture(params=range(3))
def dissimilarities(request):
    """Symmetric dissimilarities that are not Euclidean distances."""
    rng = np.random.default_rng(request.param)
    return squareform(rng.uniform(1, 3, size=20 * 19 // 2))


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_recovers_any_configuration_up_to_a_rigid_motion(rank):
    X = np.random.default_rng(rank).normal(size=(25, rank)) * np.arange(1, rank + 1)
    Y = precomputed(rank).fit_transform(cdist(X, X))
    X = X - X.mean(axis=0)
    U, _, Vt = np.linalg.svd(Y.T @ X)
    assert np.allclose(Y @ (U @ Vt), X, atol=1e-10)
    assert np.allclose(pdist(Y), pdist(X))
    assert np.allclose(Y.mean(axis=0), 0, atol=1e-10)


def test_too_many_components_are_zero():
    X = np.random.default_rng(0).normal(size=(25, 2))
    with pytest.warns(RankWarning, match=r"2 positive eigenvalues.*n_components=4.*zero"):
        Y = precomputed(4).fit_transform(cdist(X, X))
    assert not Y[:, 2:].any()


def test_strain_is_the_sum_of_the_other_squared_eigenvalues(dissimilarities):
    model = precomputed(3).fit(dissimilarities)
    B, Y = double_centered(dissimilarities), model.embedding_
    values = np.linalg.eigvalsh(B)[::-1]
    strain = sum((B[i, j] - Y[i] @ Y[j]) ** 2 for i in range(20) for j in range(20))
    assert np.isclose(strain, (values[3:] ** 2).sum())
    assert np.isclose(model.loss_, strain / (B**2).sum())
    assert np.allclose(model.eigenvalues_, values[:3])


def test_strain_cannot_be_improved(dissimilarities):
    """Any other three columns explain B worse."""
    model = precomputed(3).fit(dissimilarities)
    B, rng = double_centered(dissimilarities), np.random.default_rng(0)
    best = np.square(B - model.embedding_ @ model.embedding_.T).sum()
    for size in (1e-3, 1e-1, 1.0):
        Y = model.embedding_ + size * rng.normal(size=(20, 3))
        assert np.square(B - Y @ Y.T).sum() > best


def test_negative_fraction(dissimilarities):
    values = np.linalg.eigvalsh(double_centered(dissimilarities))
    model = precomputed().fit(dissimilarities)
    assert np.isclose(model.negative_fraction_, -values[values < 0].sum() / np.abs(values).sum())
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert precomputed().fit(cdist(X, X)).negative_fraction_ < 1e-14
    assert ClassicalMDS().fit(X).negative_fraction_ == 0


def test_coordinates_of_negative_eigenvalue_are_zero():
    """On a cycle of four points two eigenvalues are positive and one is negative."""
    D = np.array([[0.0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]) ** 1.5
    values = np.linalg.eigvalsh(double_centered(D))[::-1]
    positive = int((values > 1e-9).sum())
    assert (values < -1e-9).any()
    with pytest.warns(RankWarning, match=f"there are {positive} positive eigenvalues"):
        model = precomputed(3).fit(D)
    assert not model.embedding_[:, positive:].any()
    assert np.isfinite(model.transform(D + 0.1)).all()
    kept = np.square(values[:positive]).sum()
    assert np.isclose(model.loss_, 1 - kept / np.square(values).sum())


def smallest_constant_by_bisection(D):
    """Bisection for the smallest c at which B(D + c) is positive semidefinite."""
    off = 1 - np.eye(len(D))

    def euclidean(c):
        values = np.linalg.eigvalsh(double_centered(D + c * off))
        return values[0] >= -1e-13 * values[-1]

    low, high = 0.0, 10 * D.max()
    assert euclidean(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if euclidean(middle) else (middle, high)
    return high


def test_additive_constant_is_the_smallest(dissimilarities):
    model = precomputed(3, additive_constant=True).fit(dissimilarities)
    c = model.additive_constant_
    assert np.isclose(c, smallest_constant_by_bisection(dissimilarities), rtol=1e-5)
    off = 1 - np.eye(20)
    with_it = np.linalg.eigvalsh(double_centered(dissimilarities + c * off))
    with_less = np.linalg.eigvalsh(double_centered(dissimilarities + 0.99 * c * off))
    assert with_it[0] > -1e-10 * with_it[-1]
    assert with_less[0] < -1e-4 * with_less[-1]
    assert model.negative_fraction_ < 1e-10
    reference = precomputed(3).fit(dissimilarities + c * off)
    assert np.allclose(model.embedding_, reference.embedding_, atol=1e-9)


def test_additive_constant_of_euclidean_distances_is_zero():
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(20, 3))
        assert cailliez_constant(cdist(X, X)) == 0
    model = ClassicalMDS(2, additive_constant=True).fit(X)
    assert np.allclose(np.abs(model.embedding_), np.abs(PCA(2).fit_transform(X)), atol=1e-10)


def test_additive_constant_has_the_units_of_the_distances(dissimilarities):
    c = precomputed(additive_constant=True).fit(dissimilarities).additive_constant_
    scaled = precomputed(additive_constant=True).fit(dissimilarities * 1000).additive_constant_
    assert np.isclose(scaled, 1000 * c)


def test_new_points_by_gowers_formula(dissimilarities):
    """½·(mean of row squares − row squares), in the basis of the embedding: Gower 1968."""
    model = precomputed(3).fit(dissimilarities)
    new = np.random.default_rng(9).uniform(1, 3, size=(4, 20))
    B = double_centered(dissimilarities)
    squares = (dissimilarities**2).mean(axis=1)
    expected = [0.5 * (squares - row**2) @ model.embedding_ / model.eigenvalues_ for row in new]
    assert np.allclose(model.transform(new), expected)
    assert np.allclose(B @ model.embedding_ / model.eigenvalues_, model.embedding_)


def test_new_points_of_euclidean_distances_land_where_they_belong():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(30, 2)), rng.normal(size=(10, 2))
    model = precomputed(2).fit(cdist(X, X))
    placed = model.transform(cdist(new, X))
    assert np.allclose(cdist(placed, model.embedding_), cdist(new, X))


def test_training_loss_identity_of_the_kernel(dissimilarities):
    """The mean over pairs of (K − Σ ℓ v v)² is the sum of the dropped ℓ², over n².

    docs/mathematics.md, Mean squared error.
    """
    model = precomputed(3).fit(dissimilarities)
    K = model.extension_.rows(dissimilarities)
    mean = np.square(K * model.extension_.unit**2 - model.embedding_ @ model.embedding_.T).mean()
    values = np.linalg.eigvalsh(double_centered(dissimilarities))[::-1]
    assert np.isclose(mean, (values[3:] ** 2).sum() / 20**2)


def test_metrics_are_scipys():
    X = np.random.default_rng(0).uniform(size=(30, 4))
    for metric, params in [("cityblock", None), ("minkowski", {"p": 3}), ("cosine", None)]:
        model = ClassicalMDS(2, metric=metric, metric_params=params).fit(X)
        D = cdist(X, X, metric, **(params or {}))
        by_hand = precomputed().fit((D + D.T) / 2 * (1 - np.eye(30)))
        assert subspace_angles(model.embedding_, by_hand.embedding_).max() < 1e-6
        assert np.allclose(
            model.transform(X[:3] + 0.1),
            by_hand.transform(cdist(X[:3] + 0.1, X, metric, **(params or {}))),
            atol=1e-8,
        )


def test_parameters_of_the_metric_are_copied():
    X = np.random.default_rng(0).uniform(size=(30, 4))
    params = {"p": 3}
    model = ClassicalMDS(metric="minkowski", metric_params=params).fit(X)
    before = model.transform(X + 0.1)
    params["p"] = 1
    assert np.array_equal(model.transform(X + 0.1), before)


def test_agrees_with_scikit_learn(dissimilarities):
    manifold = pytest.importorskip("sklearn.manifold", reason="for its ClassicalMDS")
    if not hasattr(manifold, "ClassicalMDS"):
        pytest.skip("scikit-learn has ClassicalMDS from version 1.8")
    peer = manifold.ClassicalMDS(n_components=3, metric="precomputed").fit(dissimilarities)
    model = precomputed(3).fit(dissimilarities)
    assert subspace_angles(model.embedding_, peer.embedding_).max() < 1e-7
    assert np.allclose(pdist(model.embedding_), pdist(peer.embedding_))


def test_new_points_whose_distances_overflow_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 5))
    model = ClassicalMDS(metric="cityblock").fit(X)
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="gives inf as the distance of row 1"),
    ):
        model.transform(np.vstack([X[0] + 1, np.full(5, 1.7e308)]))
