"""Contract of all extensions and inverses."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.extension.base import Extension, Nystrom
from manifoldry.extension.from_distances import GeodesicExtension
from manifoldry.extension.laplacian import LaplacianExtension
from manifoldry.spectral.spectral_clustering import UnitRows

X = make_swiss_roll(160, random_state=0).X
NEW = make_swiss_roll(30, random_state=1).X
# A new extension or inverse joins with one line here.
MODELS = {
    "AffineMap": mf.PCA(),
    "Nystrom, ridge": mf.KernelPCA(),
    "Nystrom, fixed point": mf.KernelPCA(inverse="fixed_point"),
    "LaplacianExtension": mf.LaplacianEigenmaps(),
    "LaplacianExtension, sym": mf.LaplacianEigenmaps(normalization="sym"),
    "RandomWalkWeights": mf.DiffusionMaps(),
    "UnitRows": mf.SpectralClustering(3),
    "GeodesicExtension": mf.Isomap(n_neighbors=8),
    "GeodesicExtension, landmarks": mf.Isomap(n_neighbors=8, n_landmarks=40),
    "BarycentricKernel": mf.LLE(),
    "LocalAffine, tangent inverse": mf.LTSA(),
    "CorrectedExtension, graph": mf.NonRedundant(),
    "CorrectedExtension, kernel": mf.NonRedundant(mf.KernelPCA()),
    "CorrectedExtension, affine": mf.NonRedundant(mf.PCA()),
    "CorrectedExtension, landmarks": mf.NonRedundant(mf.Isomap(n_neighbors=8, n_landmarks=40)),
    "OptimizedExtension": mf.SymmetricSNE(max_iter=50),
    "OptimizedExtension, weights": mf.ElasticEmbedding(weight=10, max_iter=50),
    "OptimizedExtension, normalized": mf.ElasticEmbedding(
        weight=10, max_iter=50, extension="normalized"
    ),
    "OptimizedExtension, elastic inverse": mf.ElasticEmbedding(
        weight=10, max_iter=50, inverse="elastic"
    ),
    "FramedProjection": mf.UKR(max_iter=20, init="pca"),
    "Triangulation": mf.MaximumVarianceUnfolding(metric="cityblock", max_iter=300),
    "PiecewiseAffineMap": mf.ConformalEigenmaps(),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X)


@pytest.fixture(scope="module")
def extension(model):
    return model.extension_


def test_coordinates_are_finite_and_in_double_precision(model, extension):
    assert isinstance(extension, Extension)
    Y = extension.transform(NEW)
    assert Y.shape == (len(NEW), model.embedding_.shape[1])
    assert Y.dtype == np.float64
    assert np.isfinite(Y).all()


def test_a_row_does_not_depend_on_its_batch(extension):
    alone = np.vstack([extension.transform(row[None]) for row in NEW])
    np.testing.assert_allclose(extension.transform(NEW), alone, rtol=0, atol=1e-7 * size(alone))


def test_no_rows(model, extension):
    assert extension.transform(NEW[:0]).shape == (0, model.embedding_.shape[1])


def test_component_coordinates_give_the_coordinates(extension):
    Y, component = extension.component_coordinates(NEW)
    assert component.shape == (len(NEW),)
    assert (component == 0).all()
    np.testing.assert_array_equal(extension.place(Y, component), extension.transform(NEW))


def test_new_rows_are_not_modified(extension):
    rows = NEW.copy()
    rows.flags.writeable = False
    extension.transform(rows)
    np.testing.assert_array_equal(rows, NEW)


def test_copies_do_the_same(model, extension):
    expected = extension.transform(NEW)
    for twin in (pickle.loads(pickle.dumps(extension)), copy.deepcopy(extension)):
        np.testing.assert_array_equal(twin.transform(NEW), expected)
    Z = model.embedding_[:7].astype(float)
    twin = pickle.loads(pickle.dumps(model.inverse_))
    np.testing.assert_array_equal(twin.predict(Z), model.inverse_.predict(Z))


def test_the_equivalent_kernel_is_a_matrix_or_an_error(extension):
    kernels = (Nystrom, LaplacianExtension, UnitRows, GeodesicExtension)
    has_kernel = isinstance(extension, kernels) or getattr(extension, "alignment", None)
    known = np.full(len(NEW), -1)
    if not has_kernel:
        with pytest.raises(ValueError, match="kernel"):
            extension.equivalent_kernel(NEW, known)
        return
    K = extension.equivalent_kernel(NEW, known)
    K = K.toarray() if sparse.issparse(K) else K
    assert K.shape[0] == len(NEW)
    assert np.isfinite(K).all()


def test_an_inverse_does_not_depend_on_the_batch(model):
    Z = model.embedding_[::9].astype(float) * 1.01
    together = model.inverse_.predict(Z)
    assert together.shape == (len(Z), X.shape[1])
    assert np.isfinite(together).all()
    alone = np.vstack([model.inverse_.predict(z[None]) for z in Z])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-7 * size(X))


@pytest.mark.parametrize(
    "model",
    [
        mf.LaplacianEigenmaps(),
        mf.DiffusionMaps(),
        mf.Isomap(n_neighbors=8, disconnected="separate"),
        mf.NonRedundant(),
        mf.NonRedundant(mf.Isomap(n_neighbors=8, disconnected="separate")),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.DisconnectedGraphWarning")
def test_a_new_point_belongs_to_the_nearest_component(model):
    apart = np.vstack([X[:100], X[100:] + 100])
    extension = model.fit(apart).extension_
    Y, component = extension.component_coordinates(np.vstack([NEW, NEW + 100]))
    np.testing.assert_array_equal(component, np.repeat([0, 1], len(NEW)))
    placed = extension.place(Y, component)
    np.testing.assert_array_equal(placed, extension.transform(np.vstack([NEW, NEW + 100])))
    known = extension.transform(apart)
    assert size(known - model.embedding_) < 1e-6 * size(model.embedding_)


def size(A):
    return np.abs(A).max()
