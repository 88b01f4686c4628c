"""Coordinates that belong to one point, a handful or a small group."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import manifoldry as mf
from manifoldry.base.dominant_points import dominated_coordinates
from manifoldry.exceptions import DominatedCoordinateWarning
from manifoldry.metrics import assess, stability


def with_outliers(n=200, count=1):
    rng = np.random.default_rng(0)
    far = 60 + 0.5 * rng.normal(size=(count, 4))
    return np.vstack([rng.normal(size=(n, 4)), far])


@pytest.mark.parametrize("count", [1, 3])
def test_names_the_coordinate_the_points_and_what_they_hold(count):
    Y = np.random.default_rng(1).normal(size=(300, 3))
    rows = np.arange(40, 40 + count)
    Y[rows, 1] += 1000
    (found,) = dominated_coordinates(Y)
    squares = (Y[:, 1] - Y[:, 1].mean()) ** 2
    assert found.coordinate == 1
    assert set(found.points) <= set(rows)
    assert found.fraction == pytest.approx(squares[found.points].sum() / squares.sum())
    assert found.fraction > 0.5


def test_fewest_points_are_named():
    Y = np.zeros((400, 1))
    Y[:4, 0] = [10, -10, 1, -1]
    (found,) = dominated_coordinates(Y)
    assert set(found.points) == {0, 1}


def test_a_small_group_that_holds_nearly_all():
    """As 45 of 4500 e-mails do in a map of spam, of which five hold a third."""
    Y = np.random.default_rng(1).normal(size=(4500, 2))
    group = np.arange(100, 145)
    Y[group, 1] += 60
    (found,) = dominated_coordinates(Y)
    assert found.coordinate == 1
    assert set(found.points) <= set(group)
    squares = np.sort((Y[:, 1] - Y[:, 1].mean()) ** 2)[::-1]
    count = len(found.points)
    assert squares[:5].sum() < 0.2 * squares.sum()  # no handful
    assert squares[: count - 1].sum() <= 0.9 * squares.sum() < squares[:count].sum()
    assert f"and {count - 5} others hold 9" in str(found)
    assert len(str(found)) < 120


def test_a_larger_group_is_a_cluster():
    """Of 1000 points 10 are reported if they hold more than 90 %, but not 15."""
    Y = np.random.default_rng(1).normal(size=(1000, 1))
    Y[:15] += 200
    assert not dominated_coordinates(Y)
    Y[10:15] -= 200
    assert dominated_coordinates(Y)
    Y[:10] -= 175  # now they hold 86 %
    assert not dominated_coordinates(Y)


def test_groups_in_maps_and_reports():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1190, 3)), 60 + 3 * rng.normal(size=(11, 3))])
    with pytest.warns(DominatedCoordinateWarning, match="and 6 others hold 9.*embed them sep"):
        model = mf.PCA(2).fit(X)
    assert "and 6 others hold 9" in assess(X, model).summary


def test_points_without_coordinates_are_left_out():
    Y = np.random.default_rng(1).normal(size=(100, 2))
    Y[3] = np.nan
    Y[50, 0] = 500
    (found,) = dominated_coordinates(Y)
    assert list(found.points) == [50]


def test_a_cluster_is_no_handful():
    """Of 100 points two may be a handful, but not five."""
    Y = np.zeros((100, 1))
    Y[:5] = 1
    assert not dominated_coordinates(Y)
    Y[2:5] = 0
    assert dominated_coordinates(Y)


def test_a_fifth_of_all_points_is_no_handful_however_few_they_are():
    Y = np.zeros((29, 1))
    Y[0] = 1
    assert not dominated_coordinates(Y)
    assert not dominated_coordinates(np.ones((50, 2)))  # no variance


@pytest.mark.parametrize(
    "make",
    [mf.PCA, mf.ClassicalMDS, mf.FromDensity],
    ids=lambda make: make.__name__,
)
def test_every_fit_warns(make):
    X = with_outliers()
    parameters = {"n_draws": 400, "estimator": mf.PCA(2)} if make is mf.FromDensity else {}
    with pytest.warns(DominatedCoordinateWarning, match=r"of the variance of coordinate 0"):
        make(**parameters).fit(X)


@pytest.mark.parametrize(
    "method",
    [mf.PCA(2), mf.Isomap(2), mf.UKR(2, init="pca", max_iter=2), mf.MVU(2, max_iter=10)],
    ids=lambda method: type(method).__name__,
)
def test_the_path_of_every_kind_of_method_warns(method, monkeypatch):
    """Spectral, iterative and semidefinite methods check their embedding in the same place."""
    seen = []
    monkeypatch.setattr(
        "manifoldry.base.embedder.warn_if_dominated", lambda Y, neighbors: seen.append(Y)
    )
    model = method.fit(with_outliers(60, 0))
    assert any(Y is model.embedding_ for Y in seen)


@pytest.mark.parametrize("data", ["digits", "iris", "wine", "ten", "clusters"])
@pytest.mark.parametrize(
    "method",
    [mf.PCA(2), mf.KernelPCA(2), mf.LaplacianEigenmaps(2), mf.Isomap(2), mf.LLE(2)],
    ids=lambda method: type(method).__name__,
)
def test_ordinary_maps_do_not_warn(data, method, recwarn):
    rng = np.random.default_rng(0)
    X = {
        "digits": lambda: load_digits().data[:500],
        "iris": lambda: load_iris().data,
        "wine": lambda: scale(load_wine().data),
        "ten": lambda: rng.normal(size=(10, 3)),
        "clusters": lambda: np.eye(8)[rng.integers(8, size=200)] + 0.01 * rng.normal(size=(200, 8)),
    }[data]()
    method.fit(X)
    assert not [w for w in recwarn if w.category is DominatedCoordinateWarning]


def test_reports_say_so():
    X = with_outliers()
    with pytest.warns(DominatedCoordinateWarning):
        found = stability(mf.PCA(2), X, n_resamples=3)
    assert found.verdict == "dominated by few points"
    assert found.dominated_coordinates[0].points[0] == 200
    assert "The embedding is dominated by few points" in str(found)
    assert "row 200 holds 9" in str(found)
    with pytest.warns(DominatedCoordinateWarning):
        judged = assess(X, mf.PCA(2).fit(X))
    assert judged.dominated_coordinates[0].coordinate == 0
    assert "row 200 holds 9" in judged.summary


def messages(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in seen if w.category is DominatedCoordinateWarning]


def test_the_baseline_of_an_assessment_does_not_warn():
    Y = np.random.default_rng(1).normal(size=(201, 2))
    _, seen = messages(lambda: assess(with_outliers(), Y))
    assert seen == []


@pytest.mark.parametrize(
    "model",
    [
        mf.ConformalInverse(mf.PCA(2)),
        mf.FromDensity(mf.PCA(2), n_draws=300, width=0.1),
        mf.ConformalInverse(mf.Isomap(2, n_neighbors=100)),
    ],
)
def test_wrappers_name_the_rows_that_were_passed(model):
    X = np.roll(with_outliers(), 58, axis=0)  # the outlier has another number in part of the rows
    _, (seen,) = messages(lambda: model.fit(X))
    assert "row 57 holds 9" in seen
    assert ("n_neighbors" in seen) == ("n_neighbors" in str(model))


def test_a_remedy_only_where_it_exists():
    Y = np.random.default_rng(1).normal(size=(201, 2))
    Y[7, 1] = 500
    found = assess(with_outliers(count=0)[:1].repeat(201, 0) + Y @ np.ones((2, 4)), Y)
    assert "Coordinate 1 shows a few points and little else: row 7 holds 9" in found.summary
    assert "n_neighbors" not in found.summary
    model = mf.Isomap(2, n_neighbors=10)
    model.embedding_ = Y
    assert "raise n_neighbors" in assess(Y @ np.ones((2, 4)) + Y[:, :1], model).summary
    Y[9, 0] = 700
    both = assess(Y @ np.eye(2, 4), Y).summary
    assert "Coordinates 0 and 1 show a few points and little else: row 9 holds" in both


def test_reports_of_ordinary_maps_do_not():
    X = with_outliers(count=0)
    assert stability(mf.PCA(2), X, n_resamples=3).verdict in ("stable", "mostly stable")
    judged = assess(X, mf.PCA(2).fit(X))
    assert judged.dominated_coordinates == []
    assert "of the variance of" not in judged.summary
