"""The published baselines work, and fail, where their papers say so."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import make_ring, make_strip
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.metrics import unpredictability
from manifoldry.nonredundant.baselines import (
    advection,
    regression_errors,
    select_by_regression,
    select_independent,
    selection,
    sequential_regression,
)

RNG = np.random.default_rng(0)
FEW = RNG.normal(size=(60, 4))
FEW[:, 2] = np.sin(2 * FEW[:, 0]) + 0.2 * FEW[:, 2]
WEIGHTS = np.exp(-(squareform(pdist(FEW)) ** 2)) * (1 - np.eye(60))


def strip(aspect, seed, n=600):
    """A strip and the slowest function across it."""
    sample = make_strip(n, aspect=aspect, random_state=seed)
    return sample.X, np.cos(np.pi * sample.coordinates[:, 1])


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


# Dsilva et al.: selection by regression


def by_the_book(Y):
    """Dsilva's formula, point by point: residuals over 1 − S_ii, S being the hat matrix."""
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    errors = [1.0]
    for k in range(1, Y.shape[1]):
        Z, f, residuals = Y[:, :k], Y[:, k], []
        width = np.median(pdist(Z)) / 3
        for i in range(len(Y)):
            A = np.column_stack([np.ones(len(Y)), Z - Z[i]])
            w = np.exp(-((Z - Z[i]) ** 2).sum(axis=1) / width**2)
            hat = np.linalg.inv(A.T @ (w[:, None] * A)) @ (A.T * w)
            residuals.append((f[i] - hat[0] @ f) / (1 - hat[0, i]))
        errors.append(np.sqrt(np.mean(np.square(residuals))))
    return np.array(errors)


def test_errors_are_those_of_the_paper():
    np.testing.assert_allclose(regression_errors(FEW), by_the_book(FEW), rtol=1e-6)


def test_errors_do_not_depend_on_blocks_or_units(monkeypatch):
    expected = regression_errors(FEW)
    scaled = FEW * [1e-6, 1e9, 3.0, -1.0] + [5.0, -1e9, 0.0, 1.0]
    np.testing.assert_allclose(regression_errors(scaled), expected, rtol=1e-5)
    by_sevens = [slice(start, min(start + 7, 60)) for start in range(0, 60, 7)]
    monkeypatch.setattr(selection, "row_blocks", lambda n, per_row: by_sevens)
    np.testing.assert_allclose(regression_errors(FEW), expected, rtol=1e-10)


def test_sampled_rows_give_nearly_the_same_errors():
    Y = np.random.default_rng(1).normal(size=(600, 3))
    Y[:, 1] = Y[:, 0] ** 2 + 0.5 * Y[:, 1]
    expected = regression_errors(Y)
    sampled = regression_errors(Y, n_rows=300, n_distances=200)
    assert (sampled[1:] != expected[1:]).all()
    np.testing.assert_allclose(sampled, expected, rtol=0.15)


def test_constants_and_outliers():
    """A constant has error 0; constant predictors and outliers give finite errors."""
    x, y = RNG.uniform(size=(2, 50))
    flat = np.ones(50)
    np.testing.assert_array_equal(regression_errors(np.column_stack([flat, x, flat])), [1, 1, 0])
    x[0] = 1e6
    assert np.isfinite(regression_errors(np.column_stack([x, x, y]))).all()


def test_kept_are_the_first_and_those_of_largest_error():
    x, y, z = np.random.default_rng(0).uniform(size=(3, 300))
    Y = np.column_stack([x, x**2, y, x * y, z, y - x])
    assert select_by_regression(Y, 3).tolist() == [0, 2, 4]
    assert select_by_regression(Y, threshold=0.5).tolist() == [0, 2, 4]
    assert select_by_regression(Y, 1).tolist() == [0]
    assert select_by_regression(Y, 6).tolist() == list(range(6))
    assert select_by_regression(Y, threshold=9).tolist() == [0]


# Selection on strips


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("select", ["regression", "independent"])
def test_of_a_strip_the_first_coordinate_across_is_chosen(select, seed):
    """Length over width is 2.5: two coordinates run along before one runs across."""
    X, across = strip(2.5, seed)
    model = LaplacianEigenmaps(12).fit(X)
    Y = model.embedding_
    assert unpredictability(Y[:, :2])[1] < 0.2
    if select == "regression":
        chosen = select_by_regression(Y, 2)
    else:
        chosen = select_independent(Y, model.affinity_, 2)
    assert chosen.tolist() == [0, 2]
    assert correlation(Y[:, chosen[1]], across) > 0.85
    assert correlation(Y[:, 1], across) < 0.3


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_of_a_longer_strip_a_later_one(seed):
    X, across = strip(3.5, seed)
    model = LaplacianEigenmaps(12).fit(X)
    for chosen in (
        select_by_regression(model.embedding_, 2),
        select_independent(model.embedding_, model.affinity_, 2),
    ):
        assert chosen.tolist() == [0, 3]
        assert correlation(model.embedding_[:, 3], across) > 0.85


# Chen and Meilă: independent coordinates


def naive_scores(Y, W, count, dimension, zeta):
    """The objective of every set, from loops over points and edges."""
    degree = W.sum(axis=1)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    centered = Y - degree @ Y / degree.sum()
    energy = [sum(W[i] @ (y - y[i]) ** 2 for i in range(len(y))) / 2 for y in Y.T]
    rough = energy / (degree @ centered**2)
    bases = []
    for i in range(len(Y)):
        H = (Y - Y[i]).T @ (W[i][:, None] / degree[i] * (Y - Y[i]))
        bases.append(np.linalg.svd(H)[0][:, :dimension])
    scores = {}
    for rest in combinations(range(1, Y.shape[1]), count - 1):
        S = [0, *rest]
        lengths = [np.linalg.norm(U[S], axis=0) for U in bases]
        sigma = [np.linalg.svd(U[S] / q)[1] for U, q in zip(bases, lengths, strict=True)]
        scores[tuple(S)] = np.log(sigma).sum(axis=1).mean() - zeta * rough[S].sum() / rough[0]
    return scores


@pytest.mark.parametrize(
    ("count", "dimension", "zeta"), [(2, 2, 0.0), (2, 2, 0.3), (3, 2, 0.01), (3, 3, 0.01)]
)
def test_the_best_set_maximizes_the_objective(count, dimension, zeta):
    Y = np.column_stack([FEW, FEW[:, 0] * FEW[:, 1]])
    scores = naive_scores(Y, WEIGHTS, count, dimension, zeta)
    chosen = select_independent(Y, WEIGHTS, count, dimension=dimension, zeta=zeta)
    assert tuple(chosen) == max(scores, key=scores.get)
    sparse_weights = sparse.csr_array(WEIGHTS)
    again = select_independent(-7 * Y + 3, sparse_weights, count, dimension=dimension, zeta=zeta)
    assert np.array_equal(again, chosen)


def test_a_high_price_of_roughness_keeps_the_smoothest():
    model = LaplacianEigenmaps(12).fit(strip(2.5, 0)[0])
    assert select_independent(model.embedding_, model.affinity_, 2, zeta=10).tolist() == [0, 1]


def test_one_at_a_time_finds_the_same_on_a_strip():
    model = LaplacianEigenmaps(12).fit(strip(2.5, 1)[0])
    given = model.embedding_, model.affinity_
    assert select_independent(*given, 2, max_sets=0).tolist() == [0, 2]
    assert select_independent(*given, 2, max_sets=0, n_rows=100).tolist() == [0, 2]
    three = select_independent(*given, 3, dimension=2, max_sets=0)
    assert {0, 2} < set(three)
    assert np.array_equal(three, np.sort(three))


# Sequential regression


@pytest.mark.parametrize("seed", range(3))
def test_what_remains_of_a_flat_strip_shows_its_width(seed):
    X, across = strip(3.5, seed)
    before = X.copy()
    method = LaplacianEigenmaps(2)
    Y = sequential_regression(method, X, 2)
    np.testing.assert_allclose(Y[:, 0], LaplacianEigenmaps(2).fit_transform(X)[:, 0])
    assert correlation(Y[:, 1], across) > 0.95
    assert not hasattr(method, "embedding_")
    assert np.array_equal(X, before)


def test_what_remains_of_a_ring_is_redundant():
    """Experiment E3.4: the third coordinate still runs around the ring."""
    X = make_ring(600, band=np.pi / 2, random_state=0).X
    errors = unpredictability(sequential_regression(LaplacianEigenmaps(2), X, 3, bandwidth=0.6))
    assert errors[1] > 0.9
    assert errors[2] < 0.5


def test_the_remainder_is_that_of_nadaraya_and_watson():
    seen = []

    class Spy(LaplacianEigenmaps):
        def fit_transform(self, X, y=None):
            seen.append(X)
            return X  # the first feature is the first coordinate

    sequential_regression(Spy(), FEW, 2, bandwidth=0.5)
    z = FEW[:, 0] / FEW[:, 0].std()
    K = np.exp(-((z[:, None] - z) ** 2) / (2 * 0.5**2))
    np.testing.assert_allclose(seen[1], FEW - K @ FEW / K.sum(axis=1, keepdims=True))


# Advection


@pytest.mark.parametrize("seed", range(3))
def test_a_strip_collapses_to_its_width(seed):
    X, across = strip(2.5, seed)
    found = advection(X, 2)
    assert found.n_connected_components == 1
    assert not found.disconnected
    np.testing.assert_allclose(found.embedding[:, 0], LaplacianEigenmaps(1).fit_transform(X)[:, 0])
    assert correlation(found.embedding[:, 1], across) > 0.9
    assert found.points[:, 0].std() < 0.06 * X[:, 0].std()
    assert correlation(found.points[:, 1], X[:, 1]) > 0.95


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("band", [2 * np.pi, np.pi / 2])
def test_a_ring_falls_into_two(band, seed):
    """Experiment E3.4: points gather where cos θ is zero, at two ends of a diameter."""
    found = advection(make_ring(600, band=band, random_state=seed).X, 2, dimension=2)
    assert found.disconnected
    assert found.n_connected_components == 2
    assert found.embedding.shape == (600, 1)
    side = found.points[:, :2] @ found.points[0, :2] > 0
    assert 200 < side.sum() < 400
    one, other = (found.points[mine, :2].mean(axis=0) for mine in (side, ~side))
    assert one @ other < -0.9 * np.linalg.norm(one) * np.linalg.norm(other)


def test_points_at_an_edge_stay_on_the_manifold():
    """Without a limit, points at the edge of the band moved on along tangents, to its axis."""
    X, _ = make_ring(2000, band=np.pi, random_state=1)
    points = advection(X, 2).points
    from_circle = np.hypot(np.linalg.norm(points[:, :2], axis=1) - 1, points[:, 2])
    assert np.abs(from_circle - 0.3).max() < 0.15


def test_a_box_loses_one_dimension_at_a_time():
    X = np.random.default_rng(0).uniform(size=(800, 3)) * [4, 2, 1]
    found = advection(X, 2, n_neighbors=12, dimension=3)
    assert found.n_connected_components == 1
    assert found.points[:, 0].std() < 0.15 * X[:, 0].std()
    assert correlation(found.embedding[:, 1], np.cos(np.pi * X[:, 1] / 2)) > 0.9


def test_what_was_never_connected_has_no_coordinate():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[30:] += 50
    found = advection(X, 2, n_neighbors=5)
    assert found.embedding.shape == (60, 0)
    assert found.n_connected_components == 2


def test_one_coordinate_moves_nothing():
    X, _ = strip(2.5, 0, n=200)
    found = advection(X, 1)
    assert np.array_equal(found.points, X)
    assert not np.shares_memory(found.points, X)
    assert found.embedding.shape == (200, 1)


def test_points_that_do_not_converge_are_counted():
    with pytest.warns(
        ConvergenceWarning, match="of 200 points have not converged after max_steps=3"
    ):
        advection(strip(2.5, 0, n=200)[0], 2, max_steps=3)


# Bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: select_by_regression(FEW), ValueError, "pass exactly one"),
        (lambda: select_by_regression(FEW, 2, threshold=0.5), ValueError, "pass exactly one"),
        (lambda: select_by_regression(FEW, 5), ValueError, "n_components=5 must be at most the 4"),
        (lambda: select_by_regression(FEW, 0), ValueError, "n_components=0 must be at least 1"),
        (lambda: select_by_regression(FEW, 1.5), TypeError, "must be a whole number"),
        (lambda: select_by_regression(FEW, threshold=-1), ValueError, "threshold=-1"),
        (lambda: select_by_regression(FEW[:2], 2), ValueError, "minimum of 3"),
        (lambda: regression_errors([[1.0, np.nan]] * 3), ValueError, "NaN"),
        (lambda: regression_errors(FEW, n_rows=0), ValueError, "n_rows=0 must be at least 1"),
        (lambda: regression_errors(FEW, n_distances=1), ValueError, "n_distances=1 must be at"),
        (lambda: select_independent(FEW, WEIGHTS, 2, n_rows=0), ValueError, "n_rows=0 must be"),
        (lambda: select_independent(FEW, WEIGHTS, 2, max_sets=-1), ValueError, "max_sets=-1"),
        (lambda: advection(FEW, 2, max_steps=0), ValueError, "max_steps=0 must be at least 1"),
        (lambda: select_independent(FEW, WEIGHTS, 5), ValueError, "n_components=5 must be at most"),
        (
            lambda: select_independent(FEW, WEIGHTS, 2, dimension=3),
            ValueError,
            "dimension=3 must be at most n_components=2",
        ),
        (lambda: select_independent(FEW, WEIGHTS, 2, zeta=-1), ValueError, "zeta=-1 must be"),
        (lambda: select_independent(FEW, WEIGHTS[:9], 2), ValueError, r"square .* \(9, 60\)"),
        (lambda: select_independent(FEW, WEIGHTS[:9, :9], 2), ValueError, "of 9 points and .* 60"),
        (lambda: select_independent(FEW, -WEIGHTS, 2), ValueError, "must not be negative"),
        (lambda: select_independent(FEW, np.triu(WEIGHTS), 2), ValueError, "must be symmetric"),
        (lambda: select_independent(FEW, 0 * WEIGHTS, 2), ValueError, "in 60 of 60 rows"),
        (
            lambda: sequential_regression(LaplacianEigenmaps(), FEW, 0),
            ValueError,
            "n_components=0 must be at least 1",
        ),
        (
            lambda: sequential_regression(LaplacianEigenmaps(), FEW, 2, bandwidth=0),
            ValueError,
            "bandwidth=0 must be greater than 0",
        ),
        (lambda: advection(FEW, 3), ValueError, "n_components=3 must be at most dimension=2"),
        (lambda: advection(FEW, 2, dimension=5), ValueError, "at most n_features=4"),
        (
            lambda: advection(FEW, 2, n_neighbors=2),
            ValueError,
            "dimension=2 must be at most n_neighbors - 1=1",
        ),
        (lambda: advection(FEW, 2, n_neighbors=60), ValueError, "less than n_samples=60"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
