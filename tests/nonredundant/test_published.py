"""Coordinates against the published algorithm, written out with dense matrices and full SVDs."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from manifoldry import LLE, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import find_data, load_mnist
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.nonredundant import KernelSmoother

CUT = 0.03


def smoothing_matrix(F, w, alpha, local_fit="nadaraya_watson", n_neighbors=None):
    """Pᵢ: Gaussian weights of width h = α (Σ‖f_l‖²/N)^½, rows summing to one."""
    h2 = alpha**2 * ((w @ F**2) / w.sum()).sum()
    D2 = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    K = np.exp(-D2 / (2 * h2))
    if n_neighbors is not None:
        K[np.sort(D2, axis=1)[:, n_neighbors - 1 : n_neighbors] * (1 + 1e-9) < D2] = 0
    K *= w
    if local_fit == "nadaraya_watson":
        return K / K.sum(axis=1, keepdims=True)
    rows = []
    for f, k in zip(F, K, strict=True):
        A = np.column_stack([np.ones(len(F)), (F - f) / np.sqrt(h2)])
        rows.append(np.linalg.solve(A.T @ (k[:, None] * A), A.T * k)[0])
    return np.array(rows)


def published(estimator, X, d, alpha, point_weights="mass", **options):
    """Algorithm 1 in the variables g = B^½ f, with the trivial vector and g₁, ... projected out."""
    problem = estimator.pose(X).problems[0]
    b = np.ones(len(X)) if problem.mass is None else problem.mass
    A = problem.operator.toarray() / np.sqrt(np.outer(b, b))
    trivial = np.sqrt(b)[:, None] / np.sqrt(b.sum())
    w = b if point_weights == "mass" else np.ones(len(b))

    def smallest(C):
        U, sigma, _ = np.linalg.svd(C)  # the columns of U beyond the rank are the null space of Cᵀ
        N = U[:, int((sigma > 1e-10 * sigma[0]).sum()) :]
        return N @ np.linalg.eigh(N.T @ A @ N)[1][:, 0] / np.sqrt(b)

    F = smallest(trivial)[:, None]
    while F.shape[1] < d:
        P = smoothing_matrix(F, w, alpha, **options)
        _, sigma, Vt = np.linalg.svd(P / np.sqrt(b))
        V = Vt[sigma > CUT * sigma[0]].T
        F = np.column_stack([F, smallest(np.hstack([trivial, np.sqrt(b)[:, None] * F, V]))])
    return F


def correlations(Y, F):
    return np.abs([np.corrcoef(y, f)[0, 1] for y, f in zip(Y.T, F.T, strict=True)])


def fitted(estimator, X, d, smoother, alpha=0.3):
    model = NonRedundant(
        estimator, d, criterion="prediction", bandwidth=alpha, smoother=smoother, random_state=0
    )
    return model.fit_transform(X)


OPTIONS = {
    "weighted by the mass": {},
    "as published": {"point_weights": "uniform"},
    "sparse, as published": {"point_weights": "uniform", "n_neighbors": 150},
    "local linear": {"local_fit": "local_linear"},
}
LE, LLE_10 = LaplacianEigenmaps(n_neighbors=10, affinity="binary"), LLE(n_neighbors=10, reg=0.01)


@pytest.mark.filterwarnings("ignore:coordinates? .* redundant or noise")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("estimator", [LE, LLE_10], ids=["eigenmaps", "LLE"])
def test_the_exact_smoother_gives_the_published_coordinates(estimator, options):
    X = load_digits().data[:280]  # a connected graph
    expected = published(estimator, X, 4, 0.3, **options)
    found = fitted(estimator, X, 4, KernelSmoother(tol=0, **options))
    assert correlations(found, expected).min() > 0.9999


@pytest.mark.filterwarnings("ignore:coordinates? .* redundant or noise")
@pytest.mark.parametrize("local_fit", ["nadaraya_watson", "local_linear"])
def test_the_default_accuracy(local_fit):
    X = load_digits().data[:600]  # more than 500 points: a low-rank factor where it suffices
    expected = published(LE, X, 4, 0.3, local_fit=local_fit)
    assert correlations(fitted(LE, X, 4, local_fit), expected).min() > 0.99


@pytest.mark.slow
@pytest.mark.skipif(find_data("mnist") is None, reason="needs mnist.npz")
@pytest.mark.filterwarnings("ignore:coordinates? .* redundant or noise")
def test_coordinates_of_3500_digits():
    X, _ = load_mnist(3500, random_state=0)
    estimator = LaplacianEigenmaps(n_neighbors=12, affinity="binary")
    exact = fitted(estimator, X, 7, KernelSmoother(tol=0))
    assert correlations(fitted(estimator, X, 7, "nadaraya_watson"), exact).min() > 0.99


def test_a_warning_if_the_tolerance_is_not_met():
    X = load_digits().data[:600]
    smoother = KernelSmoother(max_columns=10, exact_up_to=0)
    with pytest.warns(ConvergenceWarning, match=r"eigenvalue of 0\.\d+ with 10 columns"):
        fitted(LE, X, 3, smoother)


@pytest.mark.filterwarnings("error::manifoldry.exceptions.ConvergenceWarning")
def test_no_warning_where_the_matrix_itself_is_used():
    X = load_digits().data[:600]
    fitted(LE, X, 3, KernelSmoother(tol=1e-9, max_columns=20))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"tol": -1.0}, ValueError, "tol=-1.0 must be at least 0"),
        ({"tol": np.nan}, ValueError, "tol=nan"),
        ({"tol": "high"}, TypeError, "tol='high'"),
        ({"max_columns": 1}, ValueError, "max_columns=1 must be at least 2"),
        ({"exact_up_to": 2.5}, TypeError, "exact_up_to=2.5 must be a whole number"),
        ({"n_neighbors": 1}, ValueError, "n_neighbors=1 must be at least 2"),
        ({"local_fit": "spline"}, ValueError, "local_fit='spline' must be one of"),
        ({"point_weights": "degree"}, ValueError, "point_weights='degree' must be one of"),
    ],
    ids=str,
)
def test_bad_options(wrong, error, message):
    with pytest.raises(error, match=message):
        KernelSmoother(**wrong)


def test_more_neighbors_than_points():
    X = load_digits().data[:60]
    whole, cut = (fitted(LE, X, 2, KernelSmoother(tol=0, n_neighbors=k)) for k in (None, 1000))
    np.testing.assert_allclose(whole, cut, atol=1e-9)
