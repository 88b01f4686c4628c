"""The report: a useful consensus and correct explanations."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from manifoldry.dimension import estimate_dimension, scale_profile
from manifoldry.neighbors import NeighborGraph

from .conftest import METHODS, cube, roll, sphere


def report_of(X, **options):
    report = estimate_dimension(X, **options)
    return report, " ".join(str(report).split())


def test_a_flat_square():
    report, text = report_of(cube(2, 1000))
    assert (report.dimension, report.low, report.high) == (2, 2, 2)
    assert "agree on 2" in text
    assert "fill all 2 features" in text
    assert "Little curvature" in report_of(np.hstack([cube(2, 1000), np.zeros((1000, 3))]))[1]
    assert "Noise" not in text
    assert "varies" not in text


def test_a_roll_is_curved():
    report, text = report_of(roll(1000))
    assert report.dimension == 2
    assert "Curvature: PCA needs 3 directions" in text
    assert "residual variance has its elbow at 2" in text


def test_a_sphere_is_closed():
    report, text = report_of(sphere(2, 1000))
    assert report.dimension == 2
    assert "a closed surface such as a sphere" in text


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_noisy_roll(seed):
    """Noise fills space at small scales; larger scales show the sheet."""
    report, text = report_of(roll(1500, seed, noise=0.4))
    assert report.dimension == 2
    assert report.high == 3
    assert "Noise:" in text
    assert float(report["two_nn"]) > 2.5


def test_a_plane_in_noise_of_ten_dimensions():
    X = np.column_stack([cube(2, 2000), np.zeros((2000, 8))])
    report, text = report_of(X + 0.01 * np.random.default_rng(1).normal(size=X.shape))
    assert report.dimension == 2
    assert report.high > 4
    assert "Noise" in text


def test_too_few_points_for_ten_dimensions():
    report, text = report_of(cube(10, 800))
    assert report.low <= 8 <= report.high
    assert report.high >= 9
    assert "800 points resolve about 5.8 dimensions" in text
    assert "Boundary" in text


def test_clusters_of_different_dimension():
    X = cube(5, 1000)
    X[:500, 2:] = 0
    X[500:] += 10
    report, text = report_of(X)
    assert (report.low, report.high) == (2, 5)
    assert "The dimension varies from" in text
    assert "the neighbor graph has 2 connected components" in text
    assert np.median(report.per_point[:500]) < 2.5
    assert np.median(report.per_point[500:]) > 4


def test_duplicates_and_rounded_values_are_reported():
    X = np.round(cube(2, 600), 2)
    X = np.concatenate([X, X[:50]])
    report, text = report_of(X)
    distinct = len(np.unique(X, axis=0))
    assert f"{650 - distinct} of 650 rows are duplicates" in text
    assert "Rounded values" in text
    assert report.per_point.shape == (650,)


def test_all_methods_share_one_graph(sheet, monkeypatch):
    graph = NeighborGraph.build(sheet, 20)
    expected = estimate_dimension(sheet)

    def search(*args, **options):
        raise AssertionError("searched again")

    monkeypatch.setattr(NeighborGraph, "build", search)
    report = estimate_dimension(graph)
    assert list(report.estimates) == list(METHODS)
    assert str(report) == str(expected)


def test_ten_points():
    report, text = report_of(cube(2, 10))
    assert report.low <= 2 <= report.high
    assert "10 points of 2 features" in text


def test_fits_a_terminal(sheet):
    assert max(map(len, str(estimate_dimension(sheet)).splitlines())) <= 88


def test_unknown_method(sheet):
    report = estimate_dimension(sheet)
    with pytest.raises(
        KeyError, match="unknown method 'best'; choose from two_nn, maximum_likelihood"
    ):
        report["best"]


def test_progress_and_seeds(sheet, capsys):
    first, again = (estimate_dimension(sheet, random_state=3) for _ in range(2))
    assert str(first) == str(again)
    estimate_dimension(sheet, verbose=True)
    assert "dimension" in capsys.readouterr().err


def test_the_profile_of_a_noisy_line():
    """Two-dimensional at the scale of the noise, a line at larger scales."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=3000), 0.002 * rng.normal(size=3000)])
    profile = scale_profile(X)
    assert profile.values[0] > 1.7
    assert abs(profile.values[-1] - 1) < 0.1
    assert list(profile.n_neighbors) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert (np.diff(profile.radius) > 0).all()
    assert "Noise:" in report_of(X)[1]
    assert report_of(X)[0].dimension == 1


def test_the_profile_of_a_sphere_is_constant():
    profile = scale_profile(sphere(2, 2000))
    assert profile.plateau is not None
    for value in profile.values:
        assert abs(value - 2) < 0.2


def test_a_column_of_other_units_asks_to_standardize():
    X = load_wine().data  # proline, in mg/l, has 99.8 % of the variance
    report, text = report_of(X)
    assert report.reasons[0].startswith("Units: column 12 has 99.8% of the variance")
    assert "standardize them first" in text
    assert "linear embedding" not in text
    assert "linear embedding" not in text
    several = np.random.default_rng(0).normal(size=(300, 6)) * [1e3, 1e3, 1e3, 1, 1, 1]
    report, text = report_of(several)
    assert report.reasons[0].startswith("Units: half of the 6 columns have 1e-06 of the variance")
    assert "linear embedding" not in text
    assert "Units" not in report_of(StandardScaler().fit_transform(X))[1]
    assert "Units" not in report_of(np.hstack([cube(1, 300), np.ones((300, 2))]))[1]
