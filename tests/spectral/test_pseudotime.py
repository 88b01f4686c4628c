"""Diffusion pseudotime: the definition, roots, connected components, truncation."""

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.neighbors import KNeighborsRegressor

from manifoldry import DiffusionMaps, NonRedundant
from manifoldry.exceptions import RankWarning


@pytest.fixture(name="X")
def points():
    return np.random.default_rng(0).normal(size=(40, 3))


def all_pseudotimes(W):
    """From the definition: Σ_{s ≥ 1} (Pˢ − 1πᵀ), and distances of its rows weighted by 1/π."""
    degree = W.sum(axis=1)
    stationary = degree / degree.sum()
    step = W / degree[:, None] - stationary
    visits = np.linalg.inv(np.eye(len(W)) - step) @ step
    scaled = visits / np.sqrt(stationary)
    return np.linalg.norm(scaled[:, None] - scaled, axis=2)


@pytest.mark.parametrize("t", [0.5, 1, 3])
@pytest.mark.parametrize("alpha", [0, 1])
def test_all_eigenpairs_give_the_definition(X, alpha, t):
    options = {"n_neighbors": 39, "gamma": 0.5, "alpha": alpha, "t": t}
    model = DiffusionMaps(39, **options).fit(X)
    expected = all_pseudotimes(model.affinity_.toarray())
    for root in (0, 17):
        np.testing.assert_allclose(model.pseudotime(root), expected[root], rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.RankWarning")
def test_pseudotime_does_not_depend_on_the_number_of_steps(X):
    """Coordinates ℓᵗ·ψ vanish for large t, the eigenfunctions ψ do not."""
    for root in (0, X[0] + 0.01):
        few, many = (DiffusionMaps(15, t=t).fit(X).pseudotime(root) for t in (1, 1e5))
        np.testing.assert_allclose(many, few, rtol=1e-10)


def test_fewer_eigenpairs_give_lower_bounds_and_say_so(X):
    full = DiffusionMaps(39).fit(X).pseudotime(0)
    with pytest.warns(RankWarning, match=r"n_components=2 of 39 .*such as 15"):
        two = DiffusionMaps(2).fit(X).pseudotime(0)
    assert (two <= full + 1e-9).all()
    assert two[1:].max() < full.max()


def test_a_row_of_data_can_be_the_root(X):
    model = DiffusionMaps(15).fit(X)
    expected = model.pseudotime(3)
    for root in (X[3], list(X[3]), X[3:4]):
        np.testing.assert_array_equal(model.pseudotime(root), expected)
    time = np.linspace(0, 1, 101)
    arc = np.column_stack([np.cos(3 * time), np.sin(3 * time)])
    found = DiffusionMaps(15).fit(np.delete(arc, 30, axis=0)).pseudotime(arc[30])
    assert np.corrcoef(rankdata(found[30:]), np.arange(70))[0, 1] > 0.99
    assert np.corrcoef(rankdata(found[:30]), np.arange(30, 0, -1))[0, 1] > 0.99


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_other_components_are_infinitely_far(X):
    X = np.vstack([X, X[:30] + 1000])
    model = DiffusionMaps(10, n_neighbors=15).fit(X)
    one, other = model.pseudotime(0), model.pseudotime(50)
    np.testing.assert_array_equal(np.isinf(one), np.arange(70) >= 40)
    np.testing.assert_array_equal(np.isinf(other), np.arange(70) < 40)
    alone = DiffusionMaps(10, n_neighbors=15).fit(X[:40]).pseudotime(0)
    np.testing.assert_allclose(one[:40], alone, rtol=1e-6)
    largest = DiffusionMaps(10, n_neighbors=15, disconnected="largest").fit(X)
    assert np.isnan(largest.pseudotime(0)[40:]).all()
    for root in (50, X[50]):
        with pytest.raises(ValueError, match=r"training point 50, is not embedded.*separate"):
            largest.pseudotime(root)
    with pytest.raises(ValueError, match=r"a new row, is not embedded.*separate"):
        largest.pseudotime(X[50] + 0.01)


def test_invalid_roots_and_extensions_are_refused(X):
    model = DiffusionMaps(5).fit(X)
    with pytest.raises(ValueError, match=r"root=40 must be less than 40"):
        model.pseudotime(40)
    with pytest.raises(ValueError, match=r"root=-1 must be at least 0"):
        model.pseudotime(-1)
    with pytest.raises(ValueError, match=r"2 rows; pass one"):
        model.pseudotime(X[:2])
    with pytest.raises(ValueError, match=r"root has 2 values, but a row of data has 3"):
        model.pseudotime([3, 4])
    for root in (2.0, np.array(3), None):
        with pytest.raises(TypeError, match=r"root=.* index of a training point.*n_features=3"):
            model.pseudotime(root)
    with pytest.raises(ValueError, match=r"extension=None"):
        DiffusionMaps(5, extension=KNeighborsRegressor()).fit(X).pseudotime(0)
    with pytest.raises(ValueError, match=r"fit DiffusionMaps itself"):
        NonRedundant(DiffusionMaps()).fit(X).estimator_.pseudotime(0)
