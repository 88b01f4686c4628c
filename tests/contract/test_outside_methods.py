"""The least that a method outside the package has to define; docs/extending.md has more."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

import manifoldry as mf
from manifoldry.datasets import make_strip
from manifoldry.eigen import ComponentSolver, SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension.base import Extension
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.posed import Posed


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


def test_transform_and_inverse_transform():
    """Inherited: transform returns the embedding of training rows; new rows are reconstructed."""
    fitted = LeastPosed().fit(STRIP)
    np.testing.assert_array_equal(fitted.transform(STRIP[:9]), fitted.embedding_[:9])
    assert fitted.score(NEW) > 0.5
    assert fitted.inverse_transform(fitted.embedding_[:4]).shape == (4, STRIP.shape[1])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(NEW), fitted.transform(NEW))


def test_coordinates_can_be_made_non_redundant():
    """The second coordinate is the width of the strip, unlike without NonRedundant."""
    found = mf.NonRedundant(LeastPosed()).fit(STRIP)
    width = np.cos(np.pi * PLACES[:, 1])
    assert abs(np.corrcoef(found.embedding_[:, 1], width)[0, 1]) > 0.9
    plain = LeastPosed(2).fit(STRIP)
    assert abs(np.corrcoef(plain.embedding_[:, 1], width)[0, 1]) < 0.5
    new_width = np.cos(np.pi * NEW_PLACES[:, 1])
    assert abs(np.corrcoef(found.transform(NEW)[:, 1], new_width)[0, 1]) > 0.85


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
