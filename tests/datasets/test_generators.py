"""The generators against the mathematics of their manifolds."""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

from manifoldry import datasets
from manifoldry.datasets import (
    make_helix,
    make_hemisphere,
    make_partitioned_circle,
    make_ring,
    make_s_curve,
    make_strip,
    make_swiss_roll,
)
from manifoldry.datasets.sheets import spiral_angle, spiral_length

GENERATORS = [
    make_swiss_roll,
    make_s_curve,
    make_strip,
    make_ring,
    make_hemisphere,
    make_helix,
    make_partitioned_circle,
]
SHEETS = {
    "roll": lambda **kw: make_swiss_roll(200, random_state=0, **kw),
    "long roll": lambda **kw: make_swiss_roll(200, turns=3, aspect=6, random_state=0, **kw),
    "roll from the center": lambda **kw: make_swiss_roll(200, start=0, random_state=0, **kw),
    "s-curve": lambda **kw: make_s_curve(200, random_state=0, **kw),
    "strip": lambda **kw: make_strip(200, random_state=0, **kw),
    "curled strip": lambda **kw: make_strip(200, curl=5, n_features=7, random_state=0, **kw),
    "hardly curled strip": lambda **kw: make_strip(200, curl=1e-9, random_state=0, **kw),
}


def jacobian(sample, step=1e-6):
    """Central differences of the map, one (n_features, n_coordinates) matrix per point."""
    Z, columns = sample.coordinates, []
    for axis in np.eye(Z.shape[1]) * step:
        columns.append((sample.embed(Z + axis) - sample.embed(Z - axis)) / (2 * step))
    return np.stack(columns, axis=2)


# What holds for all of them


@pytest.mark.parametrize("make", GENERATORS)
def test_shapes_names_and_unpacking(make):
    sample = make(40, random_state=0)
    X, coordinates = sample
    assert X is sample.X
    assert coordinates is sample.coordinates
    assert len(X) == len(coordinates) == 40
    assert coordinates.shape[1] == len(sample.names)
    assert X.dtype == coordinates.dtype == np.float64
    assert "40 points" in repr(sample)


@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_same_bits(make):
    first, again, other = (make(50, noise=0.1, random_state=seed).X for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("family", [np.random.default_rng, np.random.RandomState])
def test_generators_are_accepted_and_advanced(make, family):
    source = family(0)
    first, second = make(30, random_state=source).X, make(30, random_state=source).X
    assert np.array_equal(first, make(30, random_state=family(0)).X)
    assert not np.array_equal(first, second)


def test_no_seed_means_different_points():
    assert not np.array_equal(make_helix(10).X, make_helix(10).X)


@pytest.mark.parametrize("make", GENERATORS)
def test_without_noise_points_lie_on_the_manifold(make):
    sample = make(60, noise=0, random_state=1)
    assert np.array_equal(sample.X, sample.embed(sample.coordinates))


@pytest.mark.parametrize("make", GENERATORS)
def test_noise_has_the_stated_deviation_and_leaves_coordinates_alone(make):
    clean, noisy = make(4000, noise=0, random_state=2), make(4000, noise=0.3, random_state=2)
    assert np.array_equal(clean.coordinates, noisy.coordinates)
    residual = noisy.X - noisy.embed(noisy.coordinates)
    assert residual.std(axis=0) == pytest.approx(0.3, rel=0.06)
    assert np.abs(np.corrcoef(residual.T)[0, 1:]).max() < 0.06


@pytest.mark.parametrize("make", GENERATORS)
def test_samples_pickle_with_their_map(make):
    sample = make(20, random_state=0)
    copy = pickle.loads(pickle.dumps(sample))
    assert np.array_equal(copy.embed(copy.coordinates), sample.embed(sample.coordinates))


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_samples": 0}, ValueError, "n_samples=0 must be at least"),
        ({"n_samples": 10.0}, TypeError, "n_samples=10.0 must be a whole number"),
        ({"n_samples": True}, TypeError, "n_samples=True"),
        ({"noise": -0.1}, ValueError, r"noise=-0.1 must be at least 0; pass noise=0"),
        ({"noise": np.nan}, ValueError, "noise=nan must be finite"),
        ({"noise": "much"}, TypeError, "noise='much' must be a number"),
        ({"random_state": -1}, ValueError, "random_state=-1 must be at least 0"),
        ({"random_state": "seed"}, TypeError, "random_state='seed'"),
    ],
)
def test_wrong_arguments_are_named(make, options, error, words):
    with pytest.raises(error, match=words):
        make(**options)


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (make_swiss_roll, {"turns": 0}, "turns=0 must be greater than 0"),
        (make_swiss_roll, {"start": -1}, "start=-1 must be at least 0"),
        (make_swiss_roll, {"height": 2, "aspect": 3}, "height=2 and aspect=3.*only one"),
        (make_swiss_roll, {"hole": (0.5,)}, "two fractions"),
        (make_swiss_roll, {"hole": (0.5, 1.0)}, "hole fraction=1 must be less than 1"),
        (make_s_curve, {"width": -1}, "width=-1"),
        (make_strip, {"aspect": 0}, "aspect=0"),
        (make_strip, {"curl": 7}, "curl=7 must be at most 6.28"),
        (make_strip, {"n_features": 1}, "n_features=1 must be at least 2"),
        (make_strip, {"n_features": 2, "curl": 1}, "n_features=2 must be at least 3"),
        (make_ring, {"tube": 1}, "tube=1 must be less than 1"),
        (make_ring, {"band": 7}, "band=7 must be at most 6.28"),
        (make_helix, {"radius": 0}, "radius=0"),
        (make_partitioned_circle, {"gap": 2.1}, "gap=2.1 must be less than 2.094"),
        (make_partitioned_circle, {"n_samples": 2}, "n_samples=2 must be at least 3"),
    ],
)
def test_wrong_options_are_named(make, options, words):
    with pytest.raises(ValueError, match=words):
        make(**options)


def test_exports_are_sorted_out():
    assert {make.__name__ for make in GENERATORS} <= set(datasets.__all__)
    assert all(hasattr(datasets, name) for name in datasets.__all__)


# Sheets


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_are_isometric(name):
    J = jacobian(SHEETS[name]())
    metric = np.einsum("nfi,nfj->nij", J, J)
    assert metric == pytest.approx(np.broadcast_to(np.eye(2), metric.shape), abs=1e-6)


@pytest.mark.parametrize("name", SHEETS)
def test_local_distances_equal_coordinate_distances(name):
    sample = SHEETS[name]()
    moved = sample.coordinates + 1e-4 * np.random.default_rng(0).standard_normal((200, 2))
    moved = np.abs(moved)  # the spiral has no points before its center
    ambient = np.linalg.norm(sample.embed(moved) - sample.X, axis=1)
    intrinsic = np.linalg.norm(moved - sample.coordinates, axis=1)
    assert ambient == pytest.approx(intrinsic, rel=1e-6)


@pytest.mark.parametrize("angle", [0.0, 1e-8, 0.3, 4.7, 14.1, 200.0])
def test_spiral_length_is_the_integral_of_the_speed(angle):
    expected = integrate.quad(lambda t: np.sqrt(1 + t * t), 0, angle)[0]
    assert spiral_length(angle) == pytest.approx(expected, rel=1e-10)


def test_spiral_angle_inverts_the_length():
    angle = np.concatenate([[0.0], np.logspace(-12, 8, 400)])
    assert spiral_angle(spiral_length(angle)) == pytest.approx(angle, rel=1e-13)


@pytest.mark.parametrize(
    "make", [make_swiss_roll, make_s_curve, make_strip, lambda n, **kw: make_strip(n, curl=4, **kw)]
)
def test_sheets_are_uniform(make):
    coordinates = make(3000, random_state=5).coordinates
    for column in coordinates.T:
        side = column.max() * (1 + 1 / len(column))
        assert stats.kstest(column / side, "uniform").pvalue > 0.01
    assert abs(stats.spearmanr(*coordinates.T)[0]) < 0.05


def test_swiss_roll_is_scikit_learns_surface():
    sample = make_swiss_roll(300, random_state=0)
    angle = np.hypot(sample.X[:, 0], sample.X[:, 2])  # r = θ
    assert angle.min() >= 1.5 * np.pi
    assert angle.max() <= 4.5 * np.pi
    assert sample.X[:, 0] == pytest.approx(angle * np.cos(angle), abs=1e-9)
    assert sample.X[:, 2] == pytest.approx(angle * np.sin(angle), abs=1e-9)
    assert np.ptp(sample.X[:, 1]) == pytest.approx(21, rel=0.05)
    assert sample.coordinates[:, 0] == pytest.approx(
        spiral_length(angle) - spiral_length(1.5 * np.pi)
    )


@pytest.mark.parametrize("aspect", [1.0, 4.0])
def test_swiss_roll_aspect(aspect):
    spread = np.ptp(make_swiss_roll(5000, aspect=aspect, random_state=0).coordinates, axis=0)
    assert spread[0] / spread[1] == pytest.approx(aspect, rel=0.01)


@pytest.mark.parametrize(("hole", "fractions"), [(True, (1 / 3, 1 / 3)), ((0.8, 0.5), (0.8, 0.5))])
def test_hole_is_empty_and_the_rim_is_full(hole, fractions):
    length = spiral_length(4.5 * np.pi) - spiral_length(1.5 * np.pi)
    sample = make_swiss_roll(4000, hole=hole, random_state=0)
    centered = np.abs(sample.coordinates / [length, 21.0] - 0.5)
    assert not (centered < np.array(fractions) / 2).all(axis=1).any()
    # Above and below the hole the sheet is as dense as elsewhere.
    beside = (centered[:, 0] < fractions[0] / 2).mean()
    area = 1 - fractions[0] * fractions[1]
    assert beside == pytest.approx(fractions[0] * (1 - fractions[1]) / area, abs=0.03)


def test_s_curve_has_length_three_pi_and_unit_radius():
    X, coordinates = make_s_curve(3000, random_state=0)
    assert np.ptp(coordinates, axis=0) == pytest.approx([3 * np.pi, 2], rel=0.01)
    center = np.where(coordinates[:, 0] < 1.5 * np.pi, 1.0, -1.0)  # of the two circles
    assert np.hypot(X[:, 0], X[:, 2] - center) == pytest.approx(1)


@pytest.mark.parametrize("aspect", [1.5, 2.5, 3.5, 0.5])
def test_strip_aspect_and_flatness(aspect):
    X, coordinates = make_strip(5000, aspect=aspect, width=2, random_state=0)
    assert np.array_equal(X, coordinates)
    assert np.ptp(X, axis=0) == pytest.approx([2 * aspect, 2], rel=0.01)


def test_curled_strip_lies_on_a_cylinder_and_may_close():
    X, coordinates = make_strip(300, aspect=4, curl=2 * np.pi, random_state=0)
    radius = 4 / (2 * np.pi)
    assert np.hypot(X[:, 0], X[:, 2] - radius) == pytest.approx(radius)
    assert np.array_equal(X[:, 1], coordinates[:, 1])


def test_strip_in_more_dimensions_keeps_its_distances():
    flat, turned = (make_strip(50, n_features=d, random_state=0) for d in (2, 9))
    assert turned.X.shape == (50, 9)
    assert np.array_equal(flat.coordinates, turned.coordinates)
    assert pytest.approx(flat.X @ flat.X.T) == turned.X @ turned.X.T


# Curved surfaces


def test_ring_is_a_torus():
    X, (outer, inner) = (lambda s: (s.X, s.coordinates.T))(make_ring(400, random_state=0))
    assert (np.hypot(X[:, 0], X[:, 1]) - 1) ** 2 + X[:, 2] ** 2 == pytest.approx(0.3**2)
    assert np.mod(np.arctan2(X[:, 1], X[:, 0]), 2 * np.pi) == pytest.approx(outer)
    assert X[:, 2] == pytest.approx(0.3 * np.sin(inner))


def test_ring_is_uniform_in_area():
    outer, inner = make_ring(4000, tube=0.8, random_state=0).coordinates.T
    assert stats.kstest(outer / (2 * np.pi), "uniform").pvalue > 0.01

    def area(angle):
        return (angle + np.pi + 0.8 * np.sin(angle)) / (2 * np.pi)

    assert stats.kstest(inner, area).pvalue > 0.01


def test_ring_band_limits_the_inner_angle():
    inner = make_ring(2000, band=1.0, random_state=0).coordinates[:, 1]
    assert np.abs(inner).max() <= 0.5
    assert np.ptp(inner) > 0.98


def test_hemisphere_is_on_the_sphere_above_the_equator_and_uniform_in_the_disc():
    X, T = make_hemisphere(2000, random_state=0)
    assert np.linalg.norm(X, axis=1) == pytest.approx(1)
    assert X[:, 2].min() >= 0
    assert stats.kstest((T**2).sum(axis=1), "uniform").pvalue > 0.01
    assert X[:, :2] / (1 + X[:, 2:]) == pytest.approx(T)  # projection from the south pole


def test_hemisphere_is_conformal():
    sample = make_hemisphere(200, random_state=0)
    J = jacobian(sample)
    scale = 2 / (1 + (sample.coordinates**2).sum(axis=1))
    expected = scale[:, None, None] ** 2 * np.eye(2)
    assert np.einsum("nfi,nfj->nij", J, J) == pytest.approx(expected, abs=1e-7)


# Curves


def test_helix_constants():
    X, angle = make_helix(300, noise=0, random_state=0)
    angle = angle[:, 0]
    assert angle.min() >= 0
    assert 3.9 * np.pi < angle.max() <= 4 * np.pi
    expected = np.column_stack([2 * np.cos(angle), 2 * np.sin(angle), 0.8 * angle])
    assert pytest.approx(expected) == X


def test_helix_is_noisy_by_default():
    sample = make_helix(random_state=0)
    assert len(sample.X) == 300
    assert (sample.X - sample.embed(sample.coordinates)).std() == pytest.approx(0.15, rel=0.1)


def test_partitioned_circle_has_arcs_and_gaps():
    sample = make_partitioned_circle(3000, random_state=0)
    degrees = np.degrees(sample.coordinates[:, 0])
    assert np.array_equal(sample.labels, degrees // 120)
    within = degrees % 120
    assert 89 < within.max() <= 90
    assert np.hypot(*sample.X.T) == pytest.approx(1, abs=0.15)
    assert np.hypot(*sample.X.T).std() == pytest.approx(0.03, rel=0.1)


def test_partitioned_circle_is_balanced_and_ordered():
    labels = make_partitioned_circle(152, n_arcs=5, gap=0.1, random_state=0).labels
    assert np.ptp(np.bincount(labels)) <= 1
    assert (np.diff(labels) >= 0).all()
    assert set(labels) == set(range(5))
