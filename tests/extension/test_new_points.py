"""Extension of iterative methods to new points."""

import pickle
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist

from manifoldry.exceptions import ExtensionWarning
from manifoldry.extension import new_points as module
from manifoldry.extension.new_point_objective import Evaluation, NewPointObjective, minimize_each
from manifoldry.extension.new_points import NewPointOptimizer, OptimizedExtension
from manifoldry.objectives import (
    Exact,
    FFTInterpolation,
    GaussianKernel,
    elastic,
    sne,
    symmetric_sne,
    tsne,
)
from manifoldry.objectives.position_sums import ExactPositionSums

METHODS = ("sne", "symmetric", "student", "heavy", "elastic", "weighted elastic")
STRENGTH = 100.0  # λ of elastic embedding, for weights that sum to one
N = 80


def entropic(D, perplexity=8.0):
    """Rows exp(−βd²) of given perplexity, by bisection."""
    shifted = D - D.min(axis=1, keepdims=True)
    low, high = np.full((len(D), 1), -80.0), np.full((len(D), 1), 80.0)
    for _ in range(100):
        middle = (low + high) / 2
        P = np.exp(-np.exp(middle) * shifted)
        P /= P.sum(axis=1, keepdims=True)
        entropy = -(P * np.log(np.maximum(P, 1e-300))).sum(axis=1, keepdims=True)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return P


def degrees(method):
    return 0.7 if method == "heavy" else 1.0


def similarities(method, D):
    if method in ("student", "heavy"):
        return (1 + D / degrees(method)) ** (-(degrees(method) + 1) / 2)
    return np.exp(-D)


def small_map(method, X, d, steps=None):
    """An embedding by minimizing the objective of the method, written out."""
    n, D = len(X), cdist(X, X, "sqeuclidean")
    P = entropic(D + np.diag(np.full(n, np.inf)))
    if method != "sne":
        P = (P + P.T) / (2 * n)
    W = D if method == "weighted elastic" else 1 - np.eye(n)
    W = W / W.sum()

    def energy(y):
        Y = y.reshape(n, d)
        D = cdist(Y, Y, "sqeuclidean")
        K = similarities(method, D) * (1 - np.eye(n))
        pull = 1.0
        if method in ("student", "heavy"):
            pull = (degrees(method) + 1) / (2 * (degrees(method) + D))
        if "elastic" in method:
            value, T = (P * D).sum() + STRENGTH * (W * K).sum(), P - STRENGTH * W * K
        else:
            Q = K / K.sum(axis=1 if method == "sne" else None, keepdims=True)
            on = P > 0
            value, T = (P[on] * np.log(P[on] / Q[on])).sum(), (P - Q) * pull
        T = T + T.T
        return value, 2 * (T.sum(axis=1)[:, None] * Y - T @ Y).ravel()

    start = (X[:, :d] - X[:, :d].mean(axis=0)) / X[:, :d].std(axis=0)
    # With so few points the t-SNE embedding diverges; the search is stopped early.
    steps = steps or (15 if method in ("student", "heavy") else 2000)
    options = {"maxiter": steps, "ftol": 1e-15, "gtol": 1e-8}
    return minimize(energy, start.ravel(), jac=True, options=options, method="L-BFGS-B").x.reshape(
        n, d
    )


class Fitted(NamedTuple):
    method: str
    X: np.ndarray
    Y: np.ndarray
    optimizer: NewPointOptimizer

    def rows(self, X):
        return entropic(cdist(X, self.X, "sqeuclidean"))

    def weights(self, X):
        if self.method != "weighted elastic":
            return None
        return cdist(X, self.X, "sqeuclidean") / cdist(self.X, self.X, "sqeuclidean").sum()

    def minimize(self, X):
        return self.optimizer.minimize(self.rows(X), self.weights(X))

    def objective(self, X, pair_sums=Exact(), **options):  # noqa: B008 (frozen)
        P, problem = (
            sparse.csr_array(self.rows(X)),
            replace(self.optimizer.problem, pair_sums=pair_sums),
        )
        return NewPointObjective(self.Y, P, problem, self.weights(X), **options)


def new_point_optimizer(method, Y, strength=STRENGTH, **options):
    """The training points are fixed, so their attraction does not matter."""
    n, starts = len(Y), 3 if "elastic" in method else 1
    W = (1 - np.eye(n)) / (n * (n - 1))
    objective = {
        "sne": lambda: sne(n * W),
        "symmetric": lambda: symmetric_sne(W),
        "elastic": lambda: elastic(W, weight=strength),
        "weighted elastic": lambda: elastic(W, W, strength),
    }.get(method, lambda: tsne(W, degrees(method)))()
    return NewPointOptimizer(Y, objective.for_new_points(Y), starts, **options)


def sheet(rng, n):
    """A bent sheet: two coordinates, four features."""
    t = rng.uniform(size=(n, 2)) * [3, 2]
    return np.column_stack([t, np.sin(t[:, 0]), np.cos(t[:, 0])])


@pytest.fixture(scope="module", params=[(m, d) for m in METHODS for d in (1, 2, 3)], ids=str)
def fitted(request):
    method, d = request.param
    X = sheet(np.random.default_rng(3), N)
    Y = small_map(method, X, d)
    return Fitted(method, X, Y, new_point_optimizer(method, Y))


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def local_spacing(Y):
    """Distance of every point of the embedding to its fifth neighbor."""
    return np.sort(cdist(Y, Y), axis=1)[:, 5]


# --- objectives --------------------------------------------------------------------------------


def written_out(fitted, x, p, a):
    """The objective of one new point: docs/mathematics.md, Pairwise objectives."""
    D = ((x - fitted.Y) ** 2).sum(axis=1)
    K = similarities(fitted.method, D)
    if fitted.method == "sne":
        return (p * D).sum() + np.log(K.sum())
    if fitted.method == "elastic":
        return (p * D).sum() + STRENGTH * N * (K / (N * (N - 1))).sum()
    if fitted.method == "weighted elastic":
        return (p * D).sum() + STRENGTH * N * (a * K).sum()
    pairs = similarities(fitted.method, cdist(fitted.Y, fitted.Y, "sqeuclidean"))
    Z = pairs.sum() - N
    joint = 2 * (p / N * -np.log(K)).sum() + np.log(Z + 2 * K.sum())
    return N / 2 * (joint - np.log(Z))


def test_values_are_the_formulas(fitted, rng):
    X = sheet(rng, 20)
    Z = fitted.Y[rng.integers(N, size=20)] + rng.normal(size=(20, fitted.Y.shape[1]))
    P, weights = fitted.rows(X), fitted.weights(X)
    expected = [
        written_out(fitted, Z[i], P[i], None if weights is None else weights[i]) for i in range(20)
    ]
    values = fitted.objective(X).at(Z, np.arange(20)).value
    np.testing.assert_allclose(values, expected, rtol=1e-11)


def test_derivatives_by_central_differences(fitted, rng):
    X, rows, h = sheet(rng, 12), np.array([4, 4, *range(12)]), 1e-5
    Z = fitted.Y[:14] + rng.normal(size=(14, fitted.Y.shape[1]))
    objective = fitted.objective(X)
    here = objective.at(Z, rows)
    for i in range(Z.shape[1]):
        e = np.zeros(Z.shape[1])
        e[i] = h
        ahead, behind = objective.at(Z + e, rows), objective.at(Z - e, rows)
        gradient, hessian = (
            (getattr(ahead, part) - getattr(behind, part)) / (2 * h)
            for part in ("value", "gradient")
        )
        np.testing.assert_allclose(here.gradient[:, i], gradient, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(here.hessian[:, :, i], hessian, rtol=1e-6, atol=1e-6)


class GeneralGaussian(GaussianKernel):
    """The kernel of quadratic attraction without the formula for it."""

    quadratic = False


def test_quadratic_attraction_by_the_mean_of_the_neighbors(rng):
    Y = rng.normal(size=(60, 2)) * 4
    terms = elastic((1 - np.eye(60)) / 3540).for_new_points(Y)
    P = sparse.random_array((9, 60), density=0.3, format="csr", rng=rng)
    Z, rows = rng.normal(size=(9, 2)) * 9, np.arange(9)
    expected = NewPointObjective(Y, P, replace(terms, kernel=GeneralGaussian())).at(Z, rows)
    found = NewPointObjective(Y, P, terms).at(Z, rows)
    for part, general in zip(found[:4], expected[:4], strict=True):
        np.testing.assert_allclose(part, general, rtol=1e-12, atol=1e-14)
    ratio = found.gradient_error / expected.gradient_error
    assert ratio.min() >= 1 - 1e-12
    assert ratio.max() < 1.5


def test_one_block_and_many_blocks_are_the_same(fitted, rng):
    X, rows = sheet(rng, 10), np.arange(10)
    kernel, Y = fitted.optimizer.problem.potential, fitted.Y
    whole = fitted.objective(X).at(fitted.Y[:10], rows)
    sums = ExactPositionSums(kernel, Y, cached=3 * N)
    some = fitted.objective(X, cached=3 * N, position_sums=sums).at(fitted.Y[:10], rows)
    for part, expected in zip(some, whole, strict=True):
        np.testing.assert_array_equal(part, expected)
    sums = ExactPositionSums(kernel, Y, columns=7)
    some = fitted.objective(X, position_sums=sums).at(fitted.Y[:10], rows)
    for part, expected in zip(some, whole, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-11, atol=1e-11)


def test_interpolated_sums_give_the_same_positions(fitted, rng):
    """Within 1e-3 of the kernel's width, except where a search ends at another minimum."""
    if fitted.Y.shape[1] > 2:
        pytest.skip("a mesh of three dimensions takes seconds")
    X, optimizer = sheet(rng, 60), fitted.optimizer
    P, weights = fitted.rows(X), fitted.weights(X)
    interpolating, summing = (
        replace(optimizer, problem=replace(optimizer.problem, pair_sums=sums))
        for sums in (FFTInterpolation(), Exact())
    )
    fast, exact = (each.minimize(P, weights) for each in (interpolating, summing))
    assert fast.converged.all()
    moved = np.linalg.norm(fast.positions - exact.positions, axis=1)
    assert (moved <= 1e-3).mean() >= 0.95
    some = interpolating.minimize(P[3:5], None if weights is None else weights[3:5])
    np.testing.assert_allclose(some.positions, fast.positions[3:5], atol=1e-7)
    there = fitted.objective(X).at(fast.positions, np.arange(60)).value
    assert (there - exact.values <= 1e-6 * (1 + np.abs(exact.values)))[moved <= 1e-3].all()


# --- positions ---------------------------------------------------------------------------------


def test_positions_are_stationary_and_no_worse_than_the_starts(fitted, rng):
    X = sheet(rng, 40)
    placed, objective, rows = fitted.minimize(X), fitted.objective(X), np.arange(40)
    assert placed.converged.all()
    assert np.abs(placed.gradients).max() < 1e-10
    here = objective.at(placed.positions, rows)
    np.testing.assert_allclose(here.value, placed.values, rtol=1e-12)
    assert np.linalg.eigvalsh(here.hessian).min() > -1e-8
    P = fitted.rows(X)
    nearest = np.argsort(-P, axis=1)
    starts = [P @ fitted.Y, *(fitted.Y[nearest[:, j]] for j in range(fitted.optimizer.n_starts))]
    for start in starts:
        assert (placed.values <= objective.at(start, rows).value + 1e-8).all()


def test_scipy_finds_the_same_minima(fitted, rng):
    X = sheet(rng, 6)
    placed, P = fitted.minimize(X), fitted.rows(X)
    weights = fitted.weights(X)
    for i in range(6):
        arguments = (P[i], None if weights is None else weights[i])
        nearest = np.argsort(-P[i])[: fitted.optimizer.n_starts]
        found = [
            minimize(lambda x: written_out(fitted, x, *arguments), start, tol=1e-9)  # noqa: B023 (called at once)
            for start in (P[i] @ fitted.Y, *fitted.Y[nearest])
        ]
        best = min(found, key=lambda result: result.fun)
        assert placed.values[i] <= best.fun + 1e-7
        again = minimize(
            lambda x: written_out(fitted, x, *arguments),  # noqa: B023 (called at once)
            placed.positions[i],
            tol=1e-9,
        )
        np.testing.assert_allclose(again.x, placed.positions[i], atol=1e-4)


def test_a_row_does_not_depend_on_its_batch(fitted, rng):
    X = sheet(rng, 30)
    whole = fitted.minimize(X).positions
    alone = np.vstack([fitted.minimize(X[i : i + 1]).positions for i in range(30)])
    np.testing.assert_allclose(alone, whole, atol=1e-9)
    np.testing.assert_allclose(fitted.minimize(X[::-1]).positions[::-1], whole, atol=1e-9)


def test_sne_matches_the_means_of_both_kinds_of_affinity(rng):
    """The objective is convex, and stationary where Σ qₙyₙ = Σ pₙyₙ."""
    Y, P = rng.normal(size=(40, 2)), rng.dirichlet(np.full(40, 0.2), size=25)
    Z = new_point_optimizer("sne", Y).minimize(P).positions
    Q = np.exp(-cdist(Z, Y, "sqeuclidean"))
    Q /= Q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Q @ Y, P @ Y, atol=1e-9)


def test_training_points_return_to_their_positions(fitted):
    """A new point sees the training point in its stead as one neighbor more, and the nearest.

    Tolerance: 0.6 of the local spacing for the median point, the whole of it for nine in ten.
    """
    error = np.linalg.norm(fitted.minimize(fitted.X).positions - fitted.Y, axis=1)
    relative = error / local_spacing(fitted.Y)
    assert np.median(relative) < 0.6
    assert np.quantile(relative, 0.9) < 1


def test_a_new_point_lands_among_its_neighbors(fitted, rng):
    X = sheet(rng, 60)
    P = fitted.rows(X)
    mean = P @ fitted.Y
    spread = np.sqrt((P * cdist(mean, fitted.Y, "sqeuclidean")).sum(axis=1))
    away = np.linalg.norm(fitted.minimize(X).positions - mean, axis=1) / spread
    assert np.median(away) < 1
    assert away.max() < 2


@pytest.mark.parametrize("distance", [1e2, 1e6])
def test_points_far_from_all_data_land_on_the_map(fitted, rng, distance):
    """Squared distances as repulsive weights drive them out, by the root of a logarithm only."""
    X = distance * rng.normal(size=(10, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed = fitted.minimize(X)
    assert placed.converged.all()
    allowed = 8.0 if fitted.method == "weighted elastic" else 3.0
    center, extent = fitted.Y.mean(axis=0), np.ptp(fitted.Y, axis=0) / 2
    assert (np.abs(placed.positions - center) < extent * 1.5 + allowed).all()


@pytest.mark.parametrize("strength", [1.0, 10.0, 100.0])
def test_strong_repulsion_puts_a_point_outside_the_map(strength):
    """Its only neighbor is near the middle of a row; by scanning the line."""
    Y, P = np.linspace(-3, 3, 13)[:, None], np.eye(13)[[5]]
    line = np.linspace(-8, 8, 16001)
    values = (line - Y[5]) ** 2 + strength * np.exp(-((line - Y) ** 2)).sum(axis=0)
    found = new_point_optimizer("elastic", Y, strength * 12, outside=True).minimize(P)
    assert found.values[0] <= values.min()
    assert abs(found.positions[0, 0] - line[np.argmin(values)]) < 1e-3


@pytest.mark.parametrize("method", ["student", "heavy"])
def test_maps_that_grew_to_thousands(method, rng):
    """t-SNE may go on growing for ever: then only ratios of distances count."""
    X, new = sheet(np.random.default_rng(3), N), sheet(rng, 30)
    Y = small_map(method, X, 2, steps=60)
    assert np.ptp(Y) > 1000
    placed = new_point_optimizer(method, Y).minimize(entropic(cdist(new, X, "sqeuclidean")))
    assert placed.converged.all()
    near = np.argsort(cdist(new, X), axis=1)[:, :5]
    away = np.linalg.norm(placed.positions - Y[near].mean(axis=1), axis=1)
    assert np.median(away) < np.median(local_spacing(Y))


@pytest.mark.parametrize("method", METHODS[:-1])
def test_coinciding_positions(method, rng):
    for Y in (np.zeros((12, 2)), np.repeat(rng.normal(size=(4, 2)), 3, axis=0)):
        placed = new_point_optimizer(method, Y).minimize(rng.dirichlet(np.ones(12), size=9))
        assert np.isfinite(placed.positions).all()
        assert np.abs(placed.positions).max() < 20


@pytest.mark.parametrize("method", METHODS[:-1])
def test_clusters_that_do_not_see_each_other(method, rng):
    """Halfway between clusters a thousand apart every Gaussian similarity underflows."""
    Y = np.vstack([rng.normal(size=(20, 2)), rng.normal([1000, 0], size=(20, 2))])
    P = np.full((1, 40), 1 / 40)
    P = np.vstack([P, np.r_[np.full(20, 0.05), np.zeros(20)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placed = new_point_optimizer(method, Y).minimize(P)
    assert np.isfinite(placed.positions).all()
    assert placed.converged.all()
    assert np.abs(placed.positions[1]).max() < 10
    assert -10 < placed.positions[0, 0] < 1010


@pytest.mark.parametrize("method", METHODS[:-1])
def test_a_single_neighbor(method, rng):
    """SNE has no minimizer then if the neighbor is a corner of the convex hull."""
    Y = rng.normal(size=(30, 2))
    corners = ConvexHull(Y).vertices
    radius = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
    optimizer = new_point_optimizer(method, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        placed = optimizer.minimize(np.eye(30))
    out = np.linalg.norm(placed.positions - Y.mean(axis=0), axis=1)
    assert placed.converged.all()
    assert (out <= 2.0001 * radius).all()
    if method != "sne":
        assert not caught
        return
    (message,) = {str(warning.message) for warning in caught}
    limited = np.isclose(out, 2 * radius)
    assert message.startswith(f"the places of {limited.sum()} new points are not determined")
    assert set(np.flatnonzero(limited)) == set(corners)
    # The objective of a corner decreases from its neighbor to where it was placed.
    P = np.exp(-cdist(placed.positions, Y, "sqeuclidean"))
    at_place = -np.log(P[np.arange(30), np.arange(30)] / P.sum(axis=1))
    np.testing.assert_allclose(placed.values[corners], at_place[corners], atol=1e-9)
    Q = np.exp(-cdist(Y, Y, "sqeuclidean"))
    assert (at_place < -np.log(1 / Q.sum(axis=1)))[corners].all()


def test_rows_with_fewer_neighbors_than_starts(rng):
    """What fills the row up must not become a start: it would depend on the batch."""
    Y = 5 * rng.normal(size=(30, 2))
    P = np.vstack([np.eye(30)[7], rng.dirichlet(np.ones(30), size=3)])
    placing = new_point_optimizer("elastic", Y, 20.0 * 29)
    np.testing.assert_allclose(
        placing.minimize(P).positions[:1], placing.minimize(P[:1]).positions, atol=1e-9
    )


def test_rows_that_do_not_sum_to_one_weigh_as_they_are(rng):
    Y, P = rng.normal(size=(30, 2)), rng.dirichlet(np.full(30, 0.3), size=6)
    rows, plain = new_point_optimizer("sne", Y), new_point_optimizer("elastic", Y)
    np.testing.assert_allclose(
        rows.minimize(3 * P).positions, rows.minimize(P).positions, atol=1e-8
    )
    tripled = new_point_optimizer("elastic", Y, 3 * STRENGTH)
    np.testing.assert_allclose(
        tripled.minimize(3 * P).positions, plain.minimize(P).positions, atol=1e-8
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [(np.nan, "finite"), (np.inf, "finite"), (-1.0, "not negative"), (0.0, "no affinity")],
)
def test_rows_that_cannot_be_placed_are_refused(rng, change, message):
    P = rng.dirichlet(np.ones(10), size=3)
    P[1] = change
    with pytest.raises(ValueError, match=message):
        new_point_optimizer("sne", rng.normal(size=(10, 2))).minimize(P)


def test_rows_of_another_map_are_refused(rng):
    with pytest.raises(ValueError, match=r"11 columns .* 10 points"):
        new_point_optimizer("sne", rng.normal(size=(10, 2))).minimize(np.ones((1, 11)))


def test_weights_of_repulsion_are_checked_too(rng):
    Y, P = rng.normal(size=(10, 2)), rng.dirichlet(np.ones(10), size=2)
    with pytest.raises(ValueError, match="repulsion weights"):
        new_point_optimizer("weighted elastic", Y).minimize(P, np.full((2, 10), np.inf))
    nothing = new_point_optimizer("weighted elastic", Y).minimize(P, np.zeros((2, 10)))
    np.testing.assert_allclose(nothing.positions, P @ Y, atol=1e-9)


# --- extension ---------------------------------------------------------------------------------


class Rows:
    """Affinities by the data, as an estimator supplies them."""

    n_train = N

    def __init__(self, function):
        self.function = function

    def rows(self, X):
        return self.function(X)


class Weights(Rows):
    """Weights of repulsion by the data."""

    factors = None

    def of_new_points(self, X):
        return self.rows(X)


class Affinities(Rows):
    def rows(self, X):
        return self.function(X), None


def test_transform_in_blocks(fitted, rng, monkeypatch):
    X = sheet(rng, 11)
    weights = None if fitted.weights(X) is None else Weights(fitted.weights)
    extension = OptimizedExtension(fitted.optimizer, Affinities(fitted.rows), weights)
    whole = extension.transform(X)
    np.testing.assert_array_equal(whole, fitted.minimize(X).positions)
    blocks = [slice(0, 4), slice(4, 8), slice(8, 11)]
    monkeypatch.setattr(module, "row_blocks", lambda n, width: blocks)
    np.testing.assert_allclose(extension.transform(X), whole, atol=1e-9)


def test_nothing_to_transform(rng):
    extension = OptimizedExtension(
        new_point_optimizer("sne", rng.normal(size=(9, 2))), Affinities(None)
    )
    assert extension.transform(np.empty((0, 5))).shape == (0, 2)


def test_unsettled_places_are_told(rng, monkeypatch):
    Y, P = rng.normal(size=(9, 2)), rng.dirichlet(np.ones(9), size=4)
    extension = OptimizedExtension(new_point_optimizer("elastic", Y), Affinities(lambda X: P))
    monkeypatch.setattr(module, "minimize_each", lambda *a: minimize_each(*a, max_iter=1))
    with pytest.warns(ExtensionWarning, match="of 4 new points did not converge"):
        extension.transform(np.zeros((4, 1)))


def test_single_precision_maps_and_pickles(rng):
    Y, P = rng.normal(size=(20, 2)).astype(np.float32), rng.dirichlet(np.ones(20), size=4)
    single = new_point_optimizer("student", Y)
    expected = new_point_optimizer("student", Y.astype(np.float64)).minimize(P).positions
    np.testing.assert_allclose(single.minimize(P).positions, expected, atol=1e-6)
    again = pickle.loads(pickle.dumps(single))
    np.testing.assert_array_equal(again.minimize(P).positions, single.minimize(P).positions)


# --- Newton ------------------------------------------------------------------------------------


class Functions:
    """Rosenbrock's valley, a double well whose barrier is a saddle, and a quartic."""

    def at(self, Z, rows):
        value, gradient, hessian = zip(*map(self.one, Z, rows), strict=True)
        noise = np.full(len(Z), 1e-15)
        return Evaluation(np.array(value), np.array(gradient), np.array(hessian), noise, noise)

    @staticmethod
    def one(z, row):
        x, y = z
        if row == 0:
            f, g = (
                100 * (y - x**2) ** 2 + (1 - x) ** 2,
                [
                    -400 * x * (y - x**2) - 2 * (1 - x),
                    200 * (y - x**2),
                ],
            )
            return f, g, [[1200 * x**2 - 400 * y + 2, -400 * x], [-400 * x, 200]]
        if row == 1:
            return (
                (x**2 - 1) ** 2 + y**2,
                [4 * x * (x**2 - 1), 2 * y],
                [
                    [12 * x**2 - 4, 0],
                    [0, 2],
                ],
            )
        return x**4 + y**2, [4 * x**3, 2 * y], [[12 * x**2, 0], [0, 2]]


def test_newton_on_hard_functions():
    starts = np.array([[-1.2, 1.0], [0.1, 3.0], [-1e-6, 0.0], [2.0, -5.0]])
    ends = minimize_each(Functions(), starts, np.array([0, 1, 1, 2]), np.ones(4))
    assert ends.converged.all()
    np.testing.assert_allclose(ends.positions[:3], [[1, 1], [1, 0], [-1, 0]], atol=1e-8)
    np.testing.assert_allclose(ends.positions[3], 0, atol=1e-4)  # flat beyond rounding
    assert ends.n_iter[:3].max() < 60


def test_newton_says_when_it_ran_out_of_steps():
    start = np.array([[-1.2, 1.0]])
    ends = minimize_each(Functions(), start, np.array([0]), np.ones(1), max_iter=3)
    assert not ends.converged[0]
    assert ends.n_iter[0] == 3
    assert ends.values[0] < Functions.one([-1.2, 1.0], 0)[0]


def test_newton_on_ground_that_is_flat_without_rounding():
    """Points so far apart that a new one, on one of them, feels nothing: 0/0 is no news."""
    Y = 300 * np.array([[0.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    with np.errstate(invalid="raise"):
        placed = new_point_optimizer("sne", Y).minimize(np.eye(3))
    np.testing.assert_array_equal(placed.positions, Y)
    assert placed.converged.all()
