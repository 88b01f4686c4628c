"""Sensitivity to the training set: the published protocol, recomputed from a log of all fits."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.manifold import TSNE

from manifoldry import PCA
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import sensitivity
from manifoldry.metrics.sensitivity import _crossing

X = np.random.default_rng(0).normal(size=(80, 3)) * [3.0, 2.0, 1.0]


class Misplaced(BaseEstimator):
    """The first two columns; transform shifts new points by an offset."""

    def __init__(self, offset=0.0):
        self.offset = offset

    def fit_transform(self, X, y=None):
        return np.array(X[:, :2])

    def transform(self, X):
        return X[:, :2] + [self.offset, 0.0]


class Unreliable(Misplaced):
    """Fails deterministically on some subsets of the data."""

    def fit_transform(self, X, y=None):
        if len(X) < 80 and X[:, 2].sum() % 1 < self.offset:
            raise ArithmeticError("not today")
        return np.array(X[:, :2])


def aligned(Y, T, points):
    """Points after the least-squares affine map from Y to T."""
    design = np.column_stack([np.ones(len(Y)), Y])
    return (
        np.column_stack([np.ones(len(points)), points]) @ np.linalg.lstsq(design, T, rcond=None)[0]
    )


def replayed(log, n_left_out):
    """Sets, variability and out-of-sample error of each split, from the log of one run."""
    splits, log = [], log[1:]  # the first fit is of all the data
    for start in range(0, len(log), 2 + 2 * n_left_out):
        (_, A, first), (_, B, second) = log[start : start + 2]
        F = np.intersect1d(A, B)
        on_a, on_b = np.isin(A, F), np.isin(B, F)
        T = first[on_a]
        spread = np.sqrt(((first - first.mean(axis=0)) ** 2).sum(axis=1).mean())
        variability = np.linalg.norm(aligned(second[on_b], T, second[on_b]) - T, axis=1).mean()
        errors = []
        for i in range(n_left_out):
            (_, rows, Y), (_, [s], placed) = log[start + 2 + 2 * i : start + 4 + 2 * i]
            assert sorted([*rows, s]) == list(A)
            assert s in F
            common = F[s != F]
            moved = aligned(Y[np.isin(rows, common)], first[np.isin(A, common)], placed)
            errors.append(np.linalg.norm(moved - first[s == A]))
        splits.append((A, B, F, variability / spread, np.mean(errors) / spread))
    return splits


def test_it_is_the_published_protocol(recorded):
    model, data, log = recorded
    found = sensitivity(model, data, fractions=[0.2, 0.05], n_splits=3, n_left_out=4)
    splits = replayed(log, 4)
    np.testing.assert_allclose(found.fractions, [0.05, 0.2])
    for i, (A, B, F, variability, error) in enumerate(splits):
        size = [3, 12][i // 3]
        assert len(A) == len(B) == 60 - size
        assert len(F) == 60 - 2 * size
        assert found.variabilities[i // 3, i % 3] == pytest.approx(variability)
        assert found.out_of_sample_errors[i // 3, i % 3] == pytest.approx(error)
    for i in range(2):
        difference = found.variabilities[i] - found.out_of_sample_errors[i]
        assert found.difference[i] == pytest.approx(difference.mean())
        assert found.variability[i] == pytest.approx(found.variabilities[i].mean())
        assert found.out_of_sample[i] == pytest.approx(found.out_of_sample_errors[i].mean())
        assert found.difference[i].low < found.difference[i] < found.difference[i].high


def test_all_fixed_points_can_be_left_out(recorded):
    model, data, log = recorded
    found = sensitivity(model, data[:20], fractions=[0.1], n_splits=2, n_left_out="all")
    assert [what for what, _, _ in log].count("transform") == 2 * 16
    for i, (_, _, _, variability, error) in enumerate(replayed(log, 16)):
        assert found.variabilities[0, i] == pytest.approx(variability)
        assert found.out_of_sample_errors[0, i] == pytest.approx(error)


def test_a_fixed_map_is_not_sensitive():
    found = sensitivity(Misplaced(), X, n_splits=3, n_left_out=2)
    assert max(found.variability) < 1e-12
    assert max(found.out_of_sample) < 1e-12


def test_an_error_of_known_size():
    """New points one to the right: nothing varies, and the curve stays below zero."""
    found = sensitivity(Misplaced(1.0), X, fractions=[0.1], n_splits=4, transformation="rigid")
    spread = np.sqrt(X[:, :2].var(axis=0).sum())
    assert found.out_of_sample[0] == pytest.approx(1 / spread, rel=0.05)
    assert found.difference[0] == pytest.approx(-1 / spread, rel=0.05)
    assert found.crossing == np.inf
    assert found.crossing.low == np.inf


def test_exchanging_more_changes_more():
    found = sensitivity(PCA(2), X, fractions=[0.0125, 0.05, 0.2], n_left_out=3)
    assert found.variability[0] < found.variability[1] < found.variability[2]
    assert 0 < found.crossing < 0.2
    assert found.crossing.low <= found.crossing <= found.crossing.high


def test_crossing_of_lines():
    x = np.array([0.1, 0.3])
    slopes = np.random.default_rng(0).normal(1, 0.3, size=50)
    curves = np.array([[-0.2] * 50, *(slopes * each - 0.2 for each in x)])
    found = _crossing(x, curves)
    assert found == pytest.approx(0.2 / slopes.mean())
    half = 1.96 * slopes.std(ddof=1) / np.sqrt(50) * 0.2 / slopes.mean() ** 2  # delta method
    assert found.high - found.low == pytest.approx(2 * half, rel=0.2)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([-1.0, 1.0, 2.0], 0.05),  # between no exchange and the first
        ([-1.0, -1.0, 1.0], 0.2),
        ([-1.0, -0.5, -0.1], np.inf),
        ([0.0, 0.0, 0.0], 0.0),
        ([-1.0, 1.0, -1.0], 0.05),  # the first of several
    ],
)
def test_crossing(curve, expected):
    for n in (1, 4):
        curves = np.array(curve)[:, None] * np.ones(n)
        assert _crossing(np.array([0.1, 0.3]), curves) == pytest.approx(expected)


def test_crossing_of_nan_and_of_uncertain_curves():
    assert np.isnan(_crossing(np.array([0.1]), np.full((2, 3), np.nan)))
    uncertain = np.array([[-1.0] * 20, [-3.0, 4.0] * 10])  # half the draws never cross
    found = _crossing(np.array([0.1]), uncertain)
    assert 0 < found.low < 0.1
    assert found.high == np.inf


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes():
    one, two = (sensitivity(PCA(2), X, n_splits=2, n_left_out=1, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.variabilities, two.variabilities)
    np.testing.assert_array_equal(one.out_of_sample_errors, two.out_of_sample_errors)
    other = sensitivity(PCA(2), X, n_splits=2, n_left_out=1, random_state=1)
    assert one.variability[0] != other.variability[0]


def test_small_fractions_exchange_one_point_once():
    found = sensitivity(PCA(2), X, fractions=(0.001, 0.002, 0.1), n_splits=2, n_left_out=1)
    np.testing.assert_allclose(found.fractions, [1 / 80, 8 / 80])
    one = sensitivity(PCA(2), X, fractions=0.1, n_splits=2, n_left_out=1)
    assert one.variability[0] == found.variability[1]


def test_few_points():
    found = sensitivity(PCA(1), X[:8], fractions=[0.125], n_splits=2)
    assert np.isfinite(found.variabilities).all()


def test_units_do_not_matter():
    plain = sensitivity(PCA(2), X, fractions=[0.1], n_splits=2, n_left_out=2)
    for scale in (1e-150, 1e150):
        found = sensitivity(PCA(2), X * scale, fractions=[0.1], n_splits=2, n_left_out=2)
        np.testing.assert_allclose(found.variabilities, plain.variabilities, rtol=1e-6)
        np.testing.assert_allclose(found.out_of_sample_errors, plain.out_of_sample_errors, 1e-6)


def test_some_failures_are_reported_and_ignored():
    with pytest.warns(ManifoldryWarning, match="splits failed .* not today"):
        found = sensitivity(Unreliable(0.1), X, fractions=[0.1], n_left_out=1)
    missing = np.isnan(found.variabilities)
    assert 0 < missing.sum() == len(found.failures) < 20
    assert found.variability[0] < 1e-12


def test_mostly_failures_are_an_error():
    with pytest.raises(RuntimeError, match=r"20 of 20 splits failed.*not today"):
        sensitivity(Unreliable(1.0), X, fractions=[0.1], n_left_out=1)


def test_progress(capsys):
    sensitivity(PCA(2), X, fractions=[0.1], n_splits=2, n_left_out=1, verbose=True)
    assert "splits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sensitivity(TSNE(), X), TypeError, "TSNE has no transform.* use stability"),
        (lambda: sensitivity(PCA(2), X, fractions=[]), ValueError, "fractions is empty"),
        (lambda: sensitivity(PCA(2), X, fractions=[0.5]), ValueError, "leaves 0 fixed .* 0.475"),
        (lambda: sensitivity(PCA(2), X, fractions=[-0.1]), ValueError, "fractions=-0.1 must be"),
        (lambda: sensitivity(PCA(2), X, fractions=["a"]), TypeError, "must be a number"),
        (lambda: sensitivity(PCA(2), X, fractions=[np.nan]), ValueError, "fractions=nan must be"),
        (lambda: sensitivity(PCA(2), X, n_splits=0), ValueError, "n_splits=0 must be at least 1"),
        (lambda: sensitivity(PCA(2), X, n_left_out=0), ValueError, "n_left_out=0 must be at"),
        (lambda: sensitivity(PCA(2), X, n_left_out=60), ValueError, "n_left_out=60 .* at most 48"),
        (lambda: sensitivity(PCA(2), X, n_left_out="few"), ValueError, "n_left_out='few' must"),
        (
            lambda: sensitivity(PCA(2), X, transformation="free"),
            ValueError,
            "transformation='free' must be one",
        ),
        (lambda: sensitivity(PCA(2), X[:3]), ValueError, "n_samples=3 .* or add points"),
        (lambda: sensitivity(PCA(2), X[:0]), ValueError, "n_samples=0 .* or add points"),
        (lambda: sensitivity(PCA(2), np.where(X > 2, np.nan, X)), ValueError, "contains NaN"),
        (lambda: sensitivity(Misplaced(), X * 0), ValueError, "80 embedded points coincide"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
