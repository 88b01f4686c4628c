"""New points of non-redundant coordinates: continuous at training points, accurate between them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial.distance import cdist
from sklearn.base import clone

from manifoldry import (
    LLE,
    LTSA,
    PCA,
    ClassicalMDS,
    DiffusionMaps,
    HessianLLE,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    NonRedundant,
)
from manifoldry.datasets import make_ring, make_strip, make_swiss_roll
from manifoldry.neighbors.choose import choose_index
from manifoldry.nonredundant.extension import InterpolationPoints

CRITERIA = ("gradient", "prediction")
METHODS = [
    LaplacianEigenmaps(),
    DiffusionMaps(),
    LLE(),
    LTSA(n_neighbors=12),
    HessianLLE(),
    Isomap(),
    Isomap(n_landmarks=60),
    KernelPCA(),
    PCA(),
    ClassicalMDS(metric="cityblock"),
]
pytestmark = pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")


def steps(X, length, seed=0):
    """A step of the given length in a random direction for every row."""
    directions = np.random.default_rng(seed).normal(size=X.shape)
    return directions * (length / np.linalg.norm(directions, axis=1, keepdims=True))


def jumps(model, X, length=1e-7):
    """Largest change of every coordinate, in units of its range, if all rows take a step."""
    Y = model.embedding_
    size = np.nanmax(Y, axis=0) - np.nanmin(Y, axis=0)
    return (np.abs(model.transform(X + steps(X, length)) - Y) / size).max(axis=0)


# --- at training points ---------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("estimator", METHODS, ids=repr)
def test_training_points_that_move_a_little_move_little_on_the_map(estimator, criterion):
    """The audit found up to 20 % of the range for steps of 1e-7; the roll has a radius of 14."""
    X = make_swiss_roll(300, random_state=0).X
    k = 2 if isinstance(estimator, LTSA) else 3
    model = NonRedundant(estimator, k, criterion=criterion).fit(X)
    assert (jumps(model, X) < 1e-6).all()
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
    assert model.extension_error(X) < 1e-12


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(), DiffusionMaps(), LLE(), Isomap()])
def test_several_components_and_duplicates(estimator, criterion):
    strip = make_strip(200, aspect=3, random_state=0).X
    X = np.vstack([strip, strip[:90] + 50, strip[:30], strip[:30]])
    model = NonRedundant(estimator, criterion=criterion).fit(X)
    first = np.r_[:290, :30, :30]
    again = model.transform(X + steps(X, 1e-7)) - model.embedding_[first]
    assert np.abs(again).max() < 1e-5 * np.ptp(model.embedding_)
    far = model.transform(strip[::9] + 49.9)  # near the second component
    assert (np.abs(far - model.embedding_[200:290].mean(axis=0)) < np.ptp(strip)).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_points_that_are_not_embedded_are_not_used(criterion):
    strip = make_strip(150, aspect=3, random_state=0).X
    X = np.vstack([strip, strip[:40] + 100])
    model = NonRedundant(LaplacianEigenmaps(disconnected="largest"), criterion=criterion).fit(X)
    Y = model.transform(np.vstack([strip, strip]) + np.repeat([[1e-7], [100.01]], 150, axis=0))
    assert np.abs(Y[:150] - model.embedding_[:150]).max() < 1e-5 * np.abs(Y[:150]).max()
    assert np.isnan(Y[150:]).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_single_precision(criterion):
    X = make_strip(200, aspect=3, random_state=0).X.astype(np.float32)
    model = NonRedundant(criterion=criterion).fit(X)
    moved = model.transform(np.nextafter(X, np.float32(9)))
    assert moved.dtype == np.float32
    assert np.abs(moved - model.embedding_).max() < 1e-4 * np.abs(model.embedding_).max()


STRIP = make_strip(150, aspect=3, random_state=0).X
DISTANCES = cdist(STRIP, STRIP)
NEAREST = np.argsort(DISTANCES, axis=1)[:, :12]
FEW = sparse.csr_array(
    (np.take_along_axis(DISTANCES, NEAREST, 1).ravel(), NEAREST.ravel(), np.arange(151) * 12),
    shape=(150, 150),
)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (LaplacianEigenmaps(metric="precomputed"), DISTANCES),
        (LaplacianEigenmaps(metric="precomputed"), FEW),
        (LaplacianEigenmaps(radius=0.5, metric="precomputed"), FEW),
        (Isomap(metric="precomputed"), DISTANCES),
        (ClassicalMDS(metric="precomputed"), DISTANCES),
        (KernelPCA(kernel="precomputed"), np.exp(-(DISTANCES**2))),
        (LaplacianEigenmaps(affinity="precomputed"), np.exp(-30 * DISTANCES**2)),
        (LaplacianEigenmaps(), sparse.csr_array(STRIP)),
        (LaplacianEigenmaps(metric="cosine", n_neighbors=5), STRIP + 5),
    ],
    ids=str,
)
def test_given_values_and_other_metrics(estimator, given, criterion):
    """The formula returns training rows, and rows close to them close to their coordinates."""
    model = NonRedundant(estimator, criterion=criterion).fit(given)
    size = np.abs(model.embedding_).max()
    values = model.estimator_.extension_.transform(given)
    np.testing.assert_allclose(values, model.embedding_, rtol=0, atol=1e-9 * size)
    if getattr(estimator, "metric", None) == "precomputed":
        given = given.copy()
        data = given.data if sparse.issparse(given) else given
        data += 1e-9
        np.testing.assert_allclose(model.transform(given), model.embedding_, atol=1e-5 * size)


def test_the_metric_of_the_method():
    """The cosine of an angle does not depend on lengths."""
    X = make_strip(150, aspect=3, random_state=0).X + 1
    model = NonRedundant(LaplacianEigenmaps(metric="cosine", n_neighbors=8)).fit(X)
    lengths = np.random.default_rng(0).uniform(0.2, 5, size=(150, 1))
    atol = 1e-5 * np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(lengths * X), model.embedding_, atol=atol)


# --- between training points ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "error", "excess"), [("gradient", 0.13, 0.25), ("prediction", 0.16, 0.45)]
)
@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(), DiffusionMaps()])
@pytest.mark.parametrize("seed", range(2))
def test_new_points_of_a_roll_are_interpolated(estimator, criterion, error, excess, seed):
    """Against linear interpolation in the coordinates of the sheet, in standard deviations.

    The audit found new points 1.95 standard deviations from their nearest training point (seed 1,
    prediction). The map is so steep there that linear interpolation is 2.06 away, so the distance
    from the nearest point is not an error.
    """
    X, sheet = make_swiss_roll(1000, random_state=seed)
    model = NonRedundant(estimator, criterion=criterion).fit(X[:500])
    Y, new = model.embedding_, model.transform(X[500:])
    expected = LinearNDInterpolator(sheet[:500], Y)(sheet[500:])
    inside = np.isfinite(expected).all(axis=1)
    errors = np.abs(new - expected)[inside] / Y.std(axis=0)
    assert np.sqrt((errors**2).mean(axis=0)).max() < error
    assert (errors > 0.5).any(axis=1).mean() < 0.03
    nearest = Y[np.argsort(cdist(X[500:], X[:500]), axis=1)[:, :6]]
    beyond = np.maximum(nearest.min(axis=1) - new, new - nearest.max(axis=1)) / Y.std(axis=0)
    assert beyond.max() < excess  # of the range of the nearest training points


def test_points_other_than_landmarks_are_between_landmarks():
    """Against linear interpolation of the coordinates of landmarks on the sheet."""
    X, sheet = make_swiss_roll(600, random_state=0)
    estimator = Isomap(n_neighbors=10, n_landmarks=100)
    model = NonRedundant(estimator, 2, criterion="prediction").fit(X)
    Y, landmarks = model.embedding_, model.landmarks_
    expected = LinearNDInterpolator(sheet[landmarks], Y[landmarks])(sheet)
    errors = (np.abs(Y - expected) / Y.std(axis=0))[np.isfinite(expected).all(axis=1)]
    assert np.sqrt((errors**2).mean(axis=0)).max() < 0.15  # 0.35 without corrections


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_third_coordinate_on_a_ring(criterion):
    X, sheet = make_ring(1000, random_state=0)
    model = NonRedundant(LaplacianEigenmaps(), 3, criterion=criterion).fit(X[:500])
    Y, new = model.embedding_, model.transform(X[500:])
    expected = LinearNDInterpolator(sheet[:500], Y)(sheet[500:])
    errors = (np.abs(new - expected) / Y.std(axis=0))[np.isfinite(expected).all(axis=1)]
    assert np.sqrt((errors**2).mean(axis=0)).max() < 0.2


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("estimator", [PCA(), KernelPCA(), Isomap()])
def test_unconstrained_coordinates_keep_their_formula(estimator, criterion):
    """The formulas of these methods are continuous; that of Laplacian eigenmaps is not."""
    X = make_strip(300, aspect=3, curl=0.5, random_state=0).X
    model = NonRedundant(estimator, 1, criterion=criterion).fit(X[::2])
    expected = clone(estimator).set_params(n_components=1).fit(X[::2]).transform(X[1::2])
    atol = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(model.transform(X[1::2]), expected, atol=atol)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(), DiffusionMaps()])
@pytest.mark.parametrize("distance", [1e1, 1e6, 1e150])
def test_far_points_stay_on_the_map(estimator, criterion, distance):
    X = make_strip(200, aspect=3, random_state=0).X
    model = NonRedundant(estimator, criterion=criterion).fit(X)
    Y = model.embedding_
    far = model.transform(X[:20] + distance)
    assert (np.abs(far - Y.mean(axis=0)) < 1.5 * np.ptp(Y, axis=0)).all()


def test_every_row_is_independent_of_the_others():
    X = make_swiss_roll(300, random_state=0).X
    for criterion in CRITERIA:
        model = NonRedundant(criterion=criterion).fit(X[:200])
        alone = np.vstack([model.transform(x[None]) for x in X[200:]])
        np.testing.assert_allclose(model.transform(X[200:]), alone, rtol=0, atol=1e-12)


# --- the interpolation ----------------------------------------------------------------------------


def test_weights_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(25, 3))
    points = InterpolationPoints(choose_index(X), np.arange(60), np.zeros(60, dtype=int), 5)
    indices, weights, closeness = points.neighbors(new)
    D = cdist(new, X)
    order = np.argsort(D, axis=1)
    np.testing.assert_array_equal(indices, order[:, :5])
    d = np.sort(D, axis=1)
    expected = (1 / d[:, :5] - 1 / d[:, 5:6]) ** 2
    np.testing.assert_allclose(weights, expected / expected.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(closeness[:, 0], (1 - d[:, 0] / d[:, 1]) ** 2)


def test_weights_of_few_points_of_ties_and_of_other_components():
    X = np.array([[0.0], [1.0], [3.0]])
    points = InterpolationPoints(choose_index(X), np.arange(3), np.array([0, 0, 1]))
    _, weights, closeness = points.neighbors(np.array([[0.0], [0.25], [3.5], [1e9]]))
    expected = [[1, 0, 0], [0.9, 0.1, 0], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_allclose(weights[:, :3], expected)
    assert not weights[:, 3:].any()
    np.testing.assert_allclose(closeness[:3, 0], [1, (1 - 0.25 / 0.75) ** 2, (1 - 0.5 / 2.5) ** 2])
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    points = InterpolationPoints(choose_index(square), np.arange(4), np.zeros(4, dtype=int), 2)
    _, weights, closeness = points.neighbors(np.zeros((1, 2)))
    np.testing.assert_allclose(weights, [[0.5, 0.5]])
    assert closeness == 0
    alone = InterpolationPoints(choose_index(X[:1]), np.arange(1), np.zeros(1, dtype=int))
    _, weights, closeness = alone.neighbors(np.ones((1, 1)))
    assert weights[0].tolist() == [1.0] + [0.0] * 11
    assert closeness == 1
