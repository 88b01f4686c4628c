"""Functions that span what a smoother predicts, against its n × n matrix."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.nonredundant import KernelSmoother
from manifoldry.nonredundant.smoother import smoother_functions

CUT = 0.03  # fraction of the largest singular value below which functions are left out


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def coordinates(rng, n, q):
    F = rng.uniform(-1, 1, size=(n, q))
    return F - F.mean(axis=0), rng.uniform(0.5, 2, size=n)


def weights(F, mass, bandwidth):
    """The kernel of the smoother, by its definition."""
    width = bandwidth * np.sqrt((mass @ F**2).sum() / mass.sum())
    Z = F / width
    return Z, np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)) * mass


def local_means(F, mass, bandwidth):
    K = weights(F, mass, bandwidth)[1]
    return K / K.sum(axis=1, keepdims=True)


def local_lines(F, mass, bandwidth):
    """Row j: the value at j of the weighted linear fit around it, one fit at a time."""
    Z, K = weights(F, mass, bandwidth)
    rows = []
    for z, k in zip(Z, K, strict=True):
        A = np.column_stack([np.ones(len(Z)), Z - z])
        rows.append(np.linalg.solve(A.T @ (k[:, None] * A), A.T * k)[0])
    return np.array(rows)


SMOOTHERS = {"nadaraya_watson": local_means, "local_linear": local_lines}


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("q", [1, 2])
def test_they_are_the_right_singular_vectors(rng, q, smoother):
    F, mass = coordinates(rng, 200, q)
    P = SMOOTHERS[smoother](F, mass, 0.3)
    _, sigma, Vt = np.linalg.svd(P / np.sqrt(mass))
    functions = smoother_functions(F, mass, 0.3, KernelSmoother(smoother))
    np.testing.assert_allclose(
        functions.singular_values[:5] / functions.singular_values[0],
        sigma[:5] / sigma[0],
        rtol=1e-5,
    )
    # The cutoff falls where singular values are dense: those well above it are all included.
    V = functions.values * np.sqrt(mass)[:, None]
    expected = Vt[sigma > 1.2 * CUT * sigma[0]].T
    assert expected.shape[1] <= functions.count <= (sigma > 0.8 * CUT * sigma[0]).sum()
    assert np.sin(subspace_angles(expected, V)).max() < 1e-4
    np.testing.assert_allclose(V.T @ V, np.eye(functions.count), atol=1e-6)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.RankWarning")
@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_the_accuracy_for_many_points_suffices(smoother):
    """The default beyond `exact_up_to` points, in single precision, against the matrix itself."""
    X = load_digits().data[:1200]
    exact, default = (
        NonRedundant(LaplacianEigenmaps(), 3, criterion="prediction", smoother=given).fit(X)
        for given in (KernelSmoother(smoother, tol=0), KernelSmoother(smoother, exact_up_to=0))
    )
    assert not np.array_equal(exact.embedding_, default.embedding_)
    for expected, found in zip(exact.embedding_.T, default.embedding_.T, strict=True):
        assert abs(np.corrcoef(expected, found)[0, 1]) > 0.99
    np.testing.assert_allclose(default.unpredictability_, exact.unpredictability_, atol=0.02)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_functions_orthogonal_to_them_cannot_be_predicted(rng, q):
    F, mass = coordinates(rng, 800, q)  # beyond the size up to which nothing is left out
    P = local_means(F, mass, 0.3)
    C = smoother_functions(F, mass, 0.3).values
    for f in (rng.normal(size=800), F[:, 0] ** 3, np.sin(5 * F[:, 0])):
        f = f - C @ np.linalg.lstsq(C.T @ (mass[:, None] * C), C.T @ (mass * f), rcond=None)[0]
        predicted = np.linalg.norm(P @ f)
        size = np.linalg.norm(np.sqrt(mass) * f) * np.linalg.norm(P / np.sqrt(mass), 2)
        assert predicted < 1.2 * CUT * size


def test_wider_kernels_span_less(rng):
    F, mass = coordinates(rng, 600, 2)
    counts = [smoother_functions(F, mass, width).count for width in (0.15, 0.3, 0.6)]
    assert counts[0] > counts[1] > counts[2] > 2


def test_no_more_than_requested(rng):
    F, mass = coordinates(rng, 100, 1)
    assert smoother_functions(F, mass, 0.3, most=3).count == 3


def test_a_coordinate_that_is_constant(rng):
    F, mass = coordinates(rng, 100, 1)
    both = smoother_functions(np.column_stack([F, np.zeros(100)]), mass, 0.3)
    one = smoother_functions(F, mass, 0.3)
    # Those of singular vectors are arbitrary.
    signs = np.sign((both.values * one.values).sum(axis=0))
    np.testing.assert_allclose(both.values * signs, one.values, rtol=1e-7, atol=1e-12)
