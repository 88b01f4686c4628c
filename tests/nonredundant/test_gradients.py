"""The carré du champ on graphs, against loops over its definition."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import make_strip
from manifoldry.nonredundant.gradients import EarlierGradients, quadratic


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(name="W")
def random_graph(rng):
    dense = rng.uniform(size=(25, 25)) * (rng.uniform(size=(25, 25)) < 0.4)
    dense = np.triu(dense, 1)
    return sparse.csr_array(dense + dense.T)


def gamma(W, f, h):
    """Γ(f, h), one point at a time."""
    W = W.toarray()
    return np.array([(w * (f - f[i]) * (h - h[i])).sum() / w.sum() for i, w in enumerate(W)])


def test_penalty_of_one_coordinate(W, rng):
    f, h = rng.normal(size=(2, 25))
    d = W.sum(axis=1)
    own = gamma(W, h, h)
    unit = (d @ own) / d.sum()
    expected = (d * gamma(W, f, h) ** 2 / (own + EarlierGradients.floor * unit)).sum()
    earlier = EarlierGradients(W, h[:, None])
    assert f @ (earlier.penalty @ f) == pytest.approx(expected)


def test_penalty_of_several_is_that_of_the_projection(W, rng):
    f, F = rng.normal(size=25), rng.normal(size=(25, 3))
    d = W.sum(axis=1)
    F /= np.sqrt([(d @ gamma(W, h, h)) / d.sum() for h in F.T])
    H = np.array([[gamma(W, a, b) for a in F.T] for b in F.T]).transpose(2, 0, 1)
    g = np.array([gamma(W, f, a) for a in F.T]).T
    regular = np.linalg.solve(H + EarlierGradients.floor * np.eye(3), g[:, :, None])[:, :, 0]
    expected = (d * (g * regular).sum(axis=1)).sum()
    earlier = EarlierGradients(W, F)
    assert f @ (earlier.penalty @ f) == pytest.approx(expected)
    assert f @ (earlier.penalty_matrix @ f) == pytest.approx(expected)


@pytest.mark.parametrize(("single_up_to", "tol"), [(100, 1e-6), (0, 1e-13)])
@pytest.mark.parametrize("q", [1, 3])
def test_compiled_loops_give_the_same(W, rng, q, single_up_to, tol):
    """In double and single precision; metrics of 25 points do not fill their group."""
    F = rng.normal(size=(25, q)) * np.array([1.0, 1e3, 1e-3])[:q]
    f = rng.normal(size=25)
    plain = EarlierGradients(W, F)
    compiled = EarlierGradients(W, F, compiled_above=0, single_up_to=single_up_to)
    R = plain.penalty_matrix.toarray()
    np.testing.assert_allclose(compiled.penalty_matrix.toarray(), R, atol=1e-12)
    size = np.abs(R).max()
    np.testing.assert_allclose(compiled.penalty @ f, R @ f, atol=1e-12 * size)
    products = compiled.penalty_products
    both = products.operator @ np.eye(25)
    np.testing.assert_allclose(both, R, atol=tol * size)
    np.testing.assert_allclose(both, both.T, atol=0.1 * tol * size)
    np.testing.assert_allclose(products.operator @ np.ones(25), 0, atol=tol * size)
    np.testing.assert_allclose(products.diagonal, np.diag(R), atol=tol * size)
    LX, _ = products(np.column_stack([f, f**2]))
    expected = plain.laplacian @ np.column_stack([f, f**2])
    np.testing.assert_allclose(LX, expected, atol=tol * np.abs(expected).max())
    assert compiled.fraction(f) == pytest.approx(plain.fraction(f), rel=10 * tol)


def test_smooth_coordinates_are_multiplied_in_double_precision():
    """Single precision would lose the products of gradients to cancellation."""
    path = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(600, 600)).tocsr()
    f = np.linspace(-1, 1, 600)
    compiled = EarlierGradients(path, f[:, None], compiled_above=0)
    assert compiled.penalty_products.F.dtype == np.float64
    assert compiled.fraction(f) == pytest.approx(1 / (1 + compiled.fraction_floor), rel=1e-3)
    rough = EarlierGradients(path, np.sin(f[:, None] * 300), compiled_above=0)
    assert rough.penalty_products.F.dtype == np.float32


def test_penalties_are_at_most_twice_the_energy(W, rng):
    """The bound on the spectrum of a penalized Laplacian."""
    earlier = EarlierGradients(W, rng.normal(size=(25, 6)))
    rest = (2 * earlier.laplacian - earlier.penalty_matrix).toarray()
    values = np.linalg.eigvalsh(rest)
    assert values[0] > -1e-12 * values[-1]


def test_constants_have_no_gradient(W, rng):
    earlier = EarlierGradients(W, rng.normal(size=(25, 2)))
    assert np.abs(earlier.penalty @ np.ones(25)).max() < 1e-12


def test_energy_fractions_separate_directions():
    X, coordinates = make_strip(800, aspect=1.5, random_state=0)
    W = LaplacianEigenmaps(n_neighbors=12).fit(X).affinity_
    along, across = coordinates.T
    earlier = EarlierGradients(W, along[:, None])
    assert earlier.fraction(along) > 0.9
    assert earlier.fraction(along**3) > 0.7
    assert earlier.fraction(across) < 0.1
    assert 0.2 < earlier.fraction(along + across) < 0.8


def test_quadratics(rng):
    F = rng.normal(size=(10, 2))
    expected = [F[:, 0], F[:, 1], F[:, 0] ** 2, F[:, 0] * F[:, 1], F[:, 1] ** 2]
    assert np.array_equal(quadratic(F), np.column_stack(expected))
