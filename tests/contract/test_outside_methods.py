"""Methods written outside the package with its public API have what the built-in ones have."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.utils.estimator_checks import check_estimator

import manifoldry as mf
from manifoldry.affinity import Binary
from manifoldry.affinity.dense import PairwiseKernel
from manifoldry.datasets import make_strip
from manifoldry.eigen import ComponentSolver, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension.base import Extension
from manifoldry.extension.laplacian import GraphWeights, LaplacianExtension
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder
from manifoldry.neighbors.disconnected import VANISHING_WEIGHTS
from manifoldry.objectives import Pairwise, StudentKernel, Unnormalized
from manifoldry.optimize import Homotopy
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import KernelGram, PosedKernel
from manifoldry.spectral.posed import Posed, PosedOnGraph, connected_graph, operator_components


class CommuteTime(SpectralEmbedder):
    """Squared distances are the commute times of a random walk."""

    radius = metric_params = n_jobs = None
    metric = "euclidean"
    disconnected = "separate"
    _accepts_graphs = True

    def __init__(self, n_components=None, *, n_neighbors=None, eigen_solver="auto", random_state=0):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def _pose(self, data):
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        weights = Binary().fit(graph)
        W = weights.matrix(graph)
        degree = np.asarray(W.sum(axis=1)).ravel()
        ones = np.ones(len(degree))
        problem = SpectralProblem(sparse.diags_array(degree) - W, "smallest", deflate=ones)
        components = operator_components(
            problem.operator, self._policy(), graph, VANISHING_WEIGHTS, "raise n_neighbors"
        )
        return PosedCommute(data, problem, components, GraphWeights(graph, weights), W, degree)


@dataclass(frozen=True, eq=False)
class PosedCommute(PosedOnGraph):
    """Eigenvectors of the Laplacian divided by the roots of their eigenvalues."""

    source: GraphWeights
    W: sparse.csr_array
    degree: np.ndarray

    def coordinates(self, spectra):
        Y = spectra.vectors(self.components, self.data.n_samples)
        for rows, values in zip(self.components, spectra.values, strict=True):
            Y[rows] *= np.sqrt(self.W.sum() / np.where(values > 0, values, np.inf))
        return Y

    def extend(self, spectra, layout, embedding):
        Y, values = self.coordinates(spectra), spectra.values
        return LaplacianExtension(self.source, self.W, self.degree, Y, values, "none", layout)

    @property
    def row_matcher(self):
        return self.source.graph


class CauchyPCA(SpectralEmbedder):
    """PCA in the feature space of the kernel 1/(1 + d²)."""

    def __init__(self, n_components=None, *, eigen_solver="auto", random_state=None):
        self.n_components = n_components
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def _pose(self, data):
        X = data.rows.toarray() if sparse.issparse(data.rows) else data.rows
        kernel = PairwiseKernel(X, cauchy)
        return PosedKernel(data, KernelGram.of(kernel, kernel.matrix(X)))


def cauchy(x, y):
    return 1 / (1 + ((x - y) ** 2).sum())


class HeavyElastic(NeighborEmbedder):
    """The elastic embedding with the long-range repulsion of Student's kernel."""

    def _objective(self, neighbors, affinity):
        return Pairwise(affinity, StudentKernel(), Unnormalized("uniform"), weight=20.0)


class LeastPosed(SpectralEmbedder):
    """The least that a method must define: a problem and an extension."""

    def __init__(self, n_components=None, eigen_solver="auto", random_state=None):
        self.n_components = n_components
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def _pose(self, data):
        return Least(data)


class Least(Posed):
    """Laplacian eigenvectors of Gaussian weights; new points get their nearest neighbor's."""

    @property
    def problems(self):
        X = self.data.rows
        W = np.exp(-30 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        d = W.sum(axis=1)
        return [SpectralProblem(np.diag(d) - W, "smallest", mass=d, deflate=np.ones(len(d)))]

    def extend(self, spectra, layout, embedding):
        return Nearest(self.data.rows, embedding)


@dataclass(frozen=True, eq=False)
class Nearest(Extension):
    """The coordinates of the nearest training point."""

    X: np.ndarray
    Y: np.ndarray

    def transform(self, X):
        D = ((X[:, None] - self.X[None]) ** 2).sum(axis=2)
        return self.Y[D.argmin(axis=1)].astype(float)


STRIP, PLACES = make_strip(300, aspect=3.5, random_state=0)
NEW, NEW_PLACES = make_strip(60, aspect=3.5, random_state=1)
SPECTRAL = [CommuteTime(n_neighbors=10), CauchyPCA(), LeastPosed()]


@pytest.mark.parametrize("model", [CommuteTime(), CauchyPCA(), HeavyElastic(max_iter=3)], ids=repr)
def test_scikit_learn_s_own_checks(model):
    check_estimator(model)


def test_commute_times_are_those_of_the_pseudo_inverse():
    X = STRIP[:40]
    model = CommuteTime(39, n_neighbors=6, eigen_solver="dense").fit(X)
    posed = CommuteTime(39, n_neighbors=6).pose(X)
    assert len(posed.components) == 1
    W = posed.W.toarray()
    L = np.linalg.pinv(np.diag(W.sum(axis=1)) - W)
    own = np.diag(L)
    expected = W.sum() * (own[:, None] + own - 2 * L)
    Y = model.embedding_
    np.testing.assert_allclose(((Y[:, None] - Y) ** 2).sum(axis=2), expected, atol=1e-8 * W.sum())


def test_a_custom_kernel_gives_scikit_learn_s_kernel_pca():
    theirs = KernelPCA(2, kernel=cauchy).fit(STRIP)
    ours = CauchyPCA(2).fit(STRIP)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(theirs.transform(STRIP)), atol=1e-9)
    np.testing.assert_allclose(
        np.abs(ours.transform(NEW)), np.abs(theirs.transform(NEW)), atol=1e-9
    )


@pytest.mark.parametrize("model", [*SPECTRAL, HeavyElastic()], ids=repr)
def test_transform_and_inverse_transform(model):
    """Inherited: transform returns the embedding of training rows; new rows are reconstructed."""
    fitted = clone(model).fit(STRIP)
    np.testing.assert_array_equal(fitted.transform(STRIP[:9]), fitted.embedding_[:9])
    assert fitted.score(NEW) > 0.5
    assert fitted.inverse_transform(fitted.embedding_[:4]).shape == (4, STRIP.shape[1])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(NEW), fitted.transform(NEW))


@pytest.mark.parametrize("model", SPECTRAL, ids=repr)
def test_coordinates_can_be_made_non_redundant(model):
    """The second coordinate is the width of the strip, unlike without NonRedundant."""
    found = mf.NonRedundant(model).fit(STRIP)
    width = np.cos(np.pi * PLACES[:, 1])
    assert abs(np.corrcoef(found.embedding_[:, 1], width)[0, 1]) > 0.9
    plain = clone(model).set_params(n_components=2).fit(STRIP)
    assert abs(np.corrcoef(plain.embedding_[:, 1], width)[0, 1]) < 0.5
    new_width = np.cos(np.pi * NEW_PLACES[:, 1])
    assert abs(np.corrcoef(found.transform(NEW)[:, 1], new_width)[0, 1]) > 0.85


def test_a_custom_objective_follows_a_homotopy():
    model = HeavyElastic(optimizer=Homotopy(n_steps=4), perplexity=5).fit(STRIP[:80])
    weights = [step.parameter for step in model.path_.steps]
    assert np.all(np.diff(weights) > 0)
    assert weights[0] > model.bifurcation_.weight
    assert weights[-1] == model.objective_.weight == 20.0
    assert np.isclose(model.objective_.value(model.embedding_), model.loss_)


class Disconnected(Least):
    """A method that ignores that its sparse operator is disconnected."""

    @property
    def problems(self):
        L = super().problems[0].operator * (np.arange(40) // 20 == (np.arange(40) // 20)[:, None])
        L[np.diag_indices(40)] -= L.sum(axis=1)
        return [SpectralProblem(sparse.csr_array(L), "smallest", deflate=np.ones(40))]


def test_a_disconnected_operator_raises_a_warning(monkeypatch):
    model = LeastPosed()
    monkeypatch.setattr(model, "_pose", Disconnected)
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        model.fit(STRIP[:40])


def test_pose_and_adopt_give_a_fitted_model():
    """A failed fit leaves it unchanged; a successful one replaces it."""
    model = mf.LaplacianEigenmaps()
    posed = model.pose(STRIP)
    model.adopt(posed, ComponentSolver().solve(posed.problems, 2, np.random.default_rng(0)))
    placed = model.transform(NEW)
    for attempt in (model.pose, model.fit):
        with pytest.raises(ValueError, match="n_neighbors=500"):
            attempt_with(attempt, model, n_neighbors=500)
        np.testing.assert_array_equal(model.transform(NEW), placed)
    model.fit(np.hstack([STRIP, STRIP]))
    assert model.n_features_in_ == 2 * STRIP.shape[1]


def attempt_with(attempt, model, **parameters):
    before = model.get_params()
    try:
        model.set_params(**parameters)
        attempt(STRIP)
    finally:
        model.set_params(**before)
