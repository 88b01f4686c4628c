"""The same values as scikit-dimension and scikit-learn where definitions agree."""

import numpy as np
import pytest
import skdim
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from sklearn.neighbors import NearestNeighbors

import manifoldry
from manifoldry.dimension import (
    correlation_dimension,
    diffusion_slope,
    gram_rank,
    local_pca,
    maximum_likelihood,
    pca_dimension,
    residual_variance_elbow,
    two_nn,
)
from manifoldry.dimension.residual_variance_elbow import classical_scaling
from manifoldry.neighbors import NeighborGraph
from manifoldry.neighbors.geodesics import Geodesics

from .conftest import cube, roll, sphere

SETS = {"square": cube(2, 400), "sphere": sphere(2, 401), "cube": cube(6, 300), "roll": roll(500)}
sets = pytest.mark.parametrize("X", SETS.values(), ids=SETS.keys())


@sets
@pytest.mark.filterwarnings("ignore:divide by zero")  # scikit-dimension's plot data, at discard 0
def test_two_nn(X):
    assert float(two_nn(X)) == pytest.approx(skdim.id.TwoNN().fit(X).dimension_, rel=1e-9)
    assert float(two_nn(X, fit="likelihood")) == pytest.approx(
        skdim.id.TwoNN(method="mle", discard_fraction=0).fit(X).dimension_, rel=1e-9
    )
    assert float(two_nn(X, fit="likelihood", discard=0.2)) == pytest.approx(
        skdim.id.TwoNN(method="mle", discard_fraction=0.2).fit(X).dimension_, rel=1e-9
    )


@sets
def test_maximum_likelihood(X):
    """scikit-dimension uses one k, manifoldry averages over a range."""
    for k in (10, 20):
        theirs = skdim.id.MLE().fit(X, n_neighbors=k)
        assert float(maximum_likelihood(X, n_neighbors=(k, k))) == pytest.approx(
            theirs.dimension_, rel=1e-9
        )
        unbiased = skdim.id.MLE(unbiased=True).fit(X, n_neighbors=k)
        ours = maximum_likelihood(X, n_neighbors=(k, k)).per_point
        np.testing.assert_allclose(ours, unbiased.dimension_pw_, rtol=1e-9)
    each = [skdim.id.MLE().fit(X, n_neighbors=k).dimension_ for k in range(10, 21)]
    assert float(maximum_likelihood(X)) == pytest.approx(np.mean(each), rel=1e-9)


@sets
@pytest.mark.parametrize("ranks", [(10, 20), (5, 30)])
def test_correlation_dimension(X, ranks):
    """A median radius often equals the distance of a pair, and rounding decides if it is below.

    manifoldry never counts such a pair, in exact agreement with brute force; scikit-dimension may
    count it: one pair in thousands.
    """
    D = cdist(X, X)
    r1, r2 = (np.median(np.sort(D, axis=1)[:, k]) for k in ranks)
    pairs = [(r * (1 - 1e-9) > D).sum() - len(X) for r in (r1, r2)]
    found = float(correlation_dimension(X, n_neighbors=ranks))
    assert found == pytest.approx(np.log(pairs[1] / pairs[0]) / np.log(r2 / r1), rel=1e-9)
    theirs = skdim.id.CorrInt(*ranks).fit(X).dimension_
    assert found == pytest.approx(theirs, rel=2e-3)


@sets
def test_local_pca(X):
    """scikit-dimension's neighborhoods exclude the point itself, so they are passed with it.

    Its participation ratio is that of the sample; manifoldry corrects it for the sample size, which
    is reverted here: Σλ²/(Σλ)² of a sample is (f − 1)(f + 2)/f² / (d + 2/f) + 1/f.
    """
    k = f = 20
    neighbors = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X)[1]
    ratio = skdim.id.lPCA(ver="participation_ratio").fit_pw(X, neighbors, n_neighbors=k)
    ours = local_pca(X, n_neighbors=k).per_point
    sample = 1 / ((f - 1) * (f + 2) / f**2 / (ours + 2 / f) + 1 / f)
    inside = ours > 1.01  # where the correction was not clipped
    np.testing.assert_allclose(sample[inside], ratio.dimension_pw_[inside], rtol=1e-7)
    fraction = skdim.id.lPCA(ver="ratio", alphaRatio=0.9).fit_pw(X, neighbors, n_neighbors=k)
    counted = local_pca(X, n_neighbors=k, fraction=0.9)
    assert np.array_equal(counted.per_point, fraction.dimension_pw_)
    assert float(counted) == pytest.approx(np.mean(fraction.dimension_pw_))


@sets
def test_pca(X):
    X = X * np.arange(1, X.shape[1] + 1)  # directions of different size
    variances = PCA().fit(X).explained_variance_ratio_
    for fraction in (0.5, 0.8, 0.95):
        expected = int((np.cumsum(variances) < fraction).sum()) + 1
        assert float(pca_dimension(X, fraction=fraction)) == expected
        assert float(gram_rank(X, fraction=1 - fraction)) == (variances > 1 - fraction).sum()


def test_residual_variance_elbow():
    X = roll(400)
    theirs = Isomap(n_neighbors=10, n_components=5).fit(X)
    pairs = np.triu_indices(len(X), 1)
    expected = [
        1
        - np.corrcoef(
            theirs.dist_matrix_[pairs],
            np.linalg.norm(
                theirs.embedding_[pairs[0], :k] - theirs.embedding_[pairs[1], :k], axis=1
            ),
        )[0, 1]
        ** 2
        for k in range(1, 6)
    ]
    D = Geodesics.of(NeighborGraph.build(X, 10)).distances
    found = classical_scaling(D, 5, np.random.default_rng(0)).residuals
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert f"{found[0]:.2g}, {found[1]:.2g}" in residual_variance_elbow(X).note


def test_diffusion_slope():
    """Twice the largest slope of the sum over all pairs, by brute force on a fine grid."""
    X = cube(3, 400)
    D2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    widths = np.geomspace(1e-4, 10, 800)
    slopes = np.gradient([np.log(np.exp(-D2 / w).sum()) for w in widths], np.log(widths))
    assert float(diffusion_slope(X)) == pytest.approx(2 * slopes.max(), rel=2e-3)


def test_gram_rank_of_fitted_estimators():
    X = roll(800)
    for model in (
        manifoldry.PCA(3),
        manifoldry.ClassicalMDS(3),
        manifoldry.KernelPCA(10),
        manifoldry.Isomap(5),
    ):
        model.fit(X)
        values = np.maximum(model.computed_eigenvalues_, 0)
        assert float(gram_rank(model)) == (values / values.sum() > 0.01).sum()
    assert float(gram_rank(manifoldry.Isomap(5).fit(X))) == 2
    assert "fit with more components" in gram_rank(manifoldry.PCA(1).fit(cube(40, 200))).note
