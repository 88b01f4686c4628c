import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import PCA, ClassicalMDS, Isomap, KernelPCA, LaplacianEigenmaps
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import ShortCircuitWarning
from manifoldry.metrics import kernel_loss, reconstruction


def gaussian(n, seed, features=8):
    return np.random.default_rng(seed).normal(size=(n, features)) * 2.0 ** -np.arange(features)


def test_score_is_r2_of_scikit_learn():
    X, new = gaussian(100, 0), gaussian(40, 1)
    model = PCA(2).fit(X)
    back = model.inverse_transform(model.transform(new))
    expected = r2_score(new, back, multioutput="variance_weighted")
    assert model.score(new) == pytest.approx(expected)
    assert model.score(sparse.csr_array(new)) == pytest.approx(expected)
    assert reconstruction(model, 1e150 * new - 1e150 * new + new) == pytest.approx(expected)


def test_models_of_other_packages():
    X, new = gaussian(100, 0), gaussian(40, 1)
    theirs = reconstruction(decomposition.PCA(3).fit(X), new)
    assert theirs == pytest.approx(PCA(3).fit(X).score(new))


def test_interval_covers_the_expectation():
    model = PCA(2).fit(gaussian(200, 0))
    truth = reconstruction(model, gaussian(100_000, 1))
    found = [reconstruction(model, gaussian(150, seed)) for seed in range(2, 102)]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.88 <= covered <= 0.99


def test_grid_search_finds_the_dimension_and_prefers_few_neighbors():
    X, _ = make_swiss_roll(800, random_state=0)
    pipeline = make_pipeline(StandardScaler(), Isomap())
    grid = {"isomap__n_components": [1, 2], "isomap__n_neighbors": [7, 60]}
    with pytest.warns(ShortCircuitWarning):  # of the 60 neighbors
        search = GridSearchCV(pipeline, grid, cv=3).fit(X)
    assert search.best_params_ == {"isomap__n_components": 2, "isomap__n_neighbors": 7}
    scores = cross_val_score(LaplacianEigenmaps(2), X, cv=3)
    assert ((scores > 0.5) & (scores < 1)).all()


def test_rows_that_are_not_embedded_count_as_the_mean():
    X = np.vstack([gaussian(60, 0), gaussian(8, 1) + 1e3])
    with pytest.warns(UserWarning, match=r"components|disconnected"):
        model = LaplacianEigenmaps(2, n_neighbors=5, disconnected="largest").fit(X)
    assert np.isnan(model.transform(X)).any()
    assert reconstruction(model, X) < 0.5


@pytest.mark.parametrize("bad", [np.ones((1, 8)), np.ones((5, 8)), np.full((5, 8), np.nan)])
def test_bad_data_are_refused(bad):
    with pytest.raises(ValueError, match=r"minimum of 2|equal|NaN"):
        PCA(2).fit(gaussian(50, 0)).score(bad)


def test_precomputed_values_have_no_inverse():
    X = gaussian(30, 0)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    assert not hasattr(ClassicalMDS(2, metric="precomputed"), "score")
    with pytest.raises(ValueError, match="does not have the data"):
        reconstruction(ClassicalMDS(2, metric="precomputed").fit(D), D)
    with pytest.raises(ValueError, match="precomputed"):
        kernel_loss(ClassicalMDS(2, metric="precomputed").fit(D), D)


def by_definition(K, X, new, Z):
    """Mean squared difference over pairs of different held-out points, relative to the kernel's."""
    centered = K(new, new) - K(new, X).mean(1)[:, None] - K(new, X).mean(1) + K(X, X).mean()
    pairs = np.triu_indices(len(new), 1)
    left = [((centered - Z[:, :d] @ Z[:, :d].T)[pairs] ** 2).mean() for d in range(Z.shape[1] + 1)]
    return np.array(left) / left[0]


def test_kernel_loss_is_the_definition():
    X, new = gaussian(60, 0), gaussian(25, 1)
    cases = [
        (KernelPCA(4, gamma=0.3), lambda A, B: rbf_kernel(A, B, gamma=0.3)),
        (PCA(4), lambda A, B: A @ B.T),
        (
            ClassicalMDS(4, metric="cityblock"),
            lambda A, B: -0.5 * np.abs(A[:, None] - B).sum(axis=2) ** 2,
        ),
    ]
    for model, K in cases:
        model.fit(X)
        found = kernel_loss(model, new).losses
        np.testing.assert_allclose(found, by_definition(K, X, new, model.transform(new)))


def test_loss_of_projections_can_only_fall():
    # (I − P) shrinks as P grows, and with it tr((I − P)M(I − P)M) for every M ≥ 0.
    model = KernelPCA(20, gamma=0.5).fit(gaussian(25, 0))
    losses = kernel_loss(model, gaussian(300, 1)).losses
    assert losses[0] == 1
    assert (np.diff(losses) <= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_coordinates_that_fit_chance_do_not_count(seed):
    def data(n, start):
        return np.random.default_rng(start + seed).normal(size=(n, 150)) * ([9, 7, 5] + 147 * [0.5])

    found = kernel_loss(PCA(10).fit(data(40, 0)), data(400, 100))
    assert found.best_n_components == 3
    assert found.losses[3] < 0.02
    assert kernel_loss(PCA(3).fit(data(40, 0)), data(400, 100)).best_n_components == 3


def test_kernel_loss_intervals_cover():
    model = PCA(3).fit(gaussian(50, 0))
    truth = kernel_loss(model, gaussian(2000, 1)).losses[2]
    found = [kernel_loss(model, gaussian(100, seed)).losses[2] for seed in range(2, 82)]
    assert 0.85 <= np.mean([each.low <= truth <= each.high for each in found]) <= 1
