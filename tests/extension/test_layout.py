"""Layout of connected components at their sizes and relative positions in the data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from manifoldry.extension import layout as layout_module
from manifoldry.extension.layout import ComponentGeometry, Layout, component_rows

SIZES = [20, 12, 7, 4, 1]


@pytest.fixture
def rng():
    return np.random.default_rng(9)


@pytest.fixture
def labels(rng):
    labels = np.repeat(np.arange(len(SIZES)), SIZES)
    rng.shuffle(labels)
    return labels


@pytest.fixture(name="X")
def data(rng, labels):
    """Components of different sizes, whose centers span three dimensions."""
    centers = rng.normal(size=(len(SIZES), 3)) * 30
    spread = np.array([1.0, 4.0, 0.3, 2.0, 0.0])
    return centers[labels] + spread[labels, None] * rng.normal(size=(len(labels), 3))


def radius(X):
    return np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())


def centers_of(X, rows):
    return np.array([X[row].mean(axis=0) for row in rows])


def test_rows_of_components_in_order():
    labels = np.array([1, 0, -1, 1, 2, 0])
    assert [rows.tolist() for rows in component_rows(labels)] == [[1, 5], [0, 3], [4]]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_geometry_of_points(X, labels, kind):
    rows = component_rows(labels)
    geometry = ComponentGeometry.of_points(kind(X), rows)
    np.testing.assert_allclose(geometry.centers, centers_of(X, rows))
    np.testing.assert_allclose(geometry.radii, [radius(X[row]) for row in rows], atol=1e-13)


def test_geometry_of_single_precision_points_is_taken_in_double(rng):
    X = (rng.normal(size=(5000, 2)) + 3000).astype(np.float32)
    geometry = ComponentGeometry.of_points(X, [np.arange(5000)])
    exact = X.astype(float)
    np.testing.assert_allclose(geometry.centers[0], exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(geometry.radii[0], radius(exact), rtol=1e-12)
    sparse_geometry = ComponentGeometry.of_points(sparse.csr_array(X), [np.arange(5000)])
    np.testing.assert_allclose(sparse_geometry.centers[0], exact.mean(axis=0), rtol=1e-13)


def test_distances_give_the_same_geometry_as_points(X, labels):
    rows = component_rows(labels)
    a, b = ComponentGeometry.of_points(X, rows), ComponentGeometry.of_distances(cdist(X, X), rows)
    np.testing.assert_allclose(b.radii, a.radii, rtol=1e-10, atol=1e-6)
    np.testing.assert_allclose(pdist(b.centers), pdist(a.centers), rtol=1e-10)


def test_distances_in_blocks_give_the_same(X, labels, monkeypatch):
    rows, D = component_rows(labels), cdist(X, X)
    whole = ComponentGeometry.of_distances(D, rows)
    blocks = [slice(start, start + 9) for start in range(0, len(D), 9)]
    monkeypatch.setattr(layout_module, "row_blocks", lambda n, width: blocks)
    cut = ComponentGeometry.of_distances(D, rows)
    np.testing.assert_allclose(cut.radii, whole.radii, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pdist(cut.centers), pdist(whole.centers), rtol=1e-12)


def test_rows_left_out_do_not_count(X, labels):
    D = cdist(X, X)
    partial = np.where(labels == 1, -1, np.where(labels == 0, 0, 1))
    rows = component_rows(partial)
    a, b = ComponentGeometry.of_points(X, rows), ComponentGeometry.of_distances(D, rows)
    np.testing.assert_allclose(pdist(b.centers), pdist(a.centers), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_any_magnitude(X, labels, scale):
    rows = component_rows(labels)
    expected = ComponentGeometry.of_points(X, rows)
    for geometry in (
        ComponentGeometry.of_points(X * scale, rows),
        ComponentGeometry.of_distances(cdist(X, X) * scale, rows),
    ):
        np.testing.assert_allclose(geometry.radii / scale, expected.radii, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(
            cdist(geometry.centers / scale, geometry.centers / scale),
            cdist(expected.centers, expected.centers),
            atol=1e-9,
        )


@pytest.mark.parametrize("n_components", [3, 4, 6])
@pytest.mark.parametrize("by", ["points", "distances"])
def test_sizes_and_relative_positions_on_the_map_are_those_in_the_data(
    X, labels, rng, n_components, by
):
    rows = component_rows(labels)
    geometry = (
        ComponentGeometry.of_points(X, rows)
        if by == "points"
        else ComponentGeometry.of_distances(cdist(X, X), rows)
    )
    Y = rng.normal(size=(len(X), n_components)) + 5  # any coordinates within components
    Y[rows[4]] = 0
    layout = Layout.lay_out(labels, Y, geometry)
    placed = layout.place(Y, labels)
    np.testing.assert_allclose(
        [radius(placed[row]) for row in rows], [radius(X[row]) for row in rows], atol=1e-6
    )
    np.testing.assert_allclose(
        pdist(centers_of(placed, rows)), pdist(centers_of(X, rows)), rtol=1e-9
    )
    # Within a component it is a similarity: shapes stay as they were.
    ratio = pdist(placed[rows[0]]) / pdist(Y[rows[0]])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-10)


def test_fewer_components_keep_the_main_axes_of_the_centers(X, labels, rng):
    rows = component_rows(labels)
    Y = rng.normal(size=(len(X), 1))
    placed = Layout.lay_out(labels, Y, ComponentGeometry.of_points(X, rows)).place(Y, labels)
    centers = centers_of(X, rows)
    _, _, axes = np.linalg.svd(centers - centers.mean(axis=0))
    expected = (centers - centers.mean(axis=0)) @ axes[0]
    actual = centers_of(placed, rows)[:, 0]
    np.testing.assert_allclose(actual * np.sign(actual @ expected), expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_the_layout_has_a_fixed_sign(labels, seed):
    """The largest coordinate of a center is positive."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(len(labels), 3)), rng.normal(size=(len(labels), 2))
    rows = component_rows(labels)
    centers = centers_of(
        Layout.lay_out(labels, Y, ComponentGeometry.of_points(X, rows)).place(Y, labels), rows
    )
    assert (centers[np.abs(centers).argmax(axis=0), [0, 1]] > 0).all()


def test_new_points_move_with_their_component_and_unknown_ones_are_nan(X, labels, rng):
    Y = rng.normal(size=(len(X), 2))
    layout = Layout.lay_out(labels, Y, ComponentGeometry.of_points(X, component_rows(labels)))
    new, component = rng.normal(size=(4, 2)), np.array([0, 3, -1, 1])
    placed = layout.place(new, component)
    assert np.isnan(placed[2]).all()
    for i in (0, 1, 3):
        expected = new[i] * layout.scale[component[i]] + layout.offset[component[i]]
        np.testing.assert_array_equal(placed[i], expected)


def test_a_single_component_is_not_changed(rng):
    Y = rng.normal(size=(6, 2))
    layout = Layout.single(np.zeros(6, dtype=int), 2)
    np.testing.assert_array_equal(layout.place(Y, layout.labels), Y)


def test_components_of_unknown_position_do_not_overlap(rng):
    labels = np.repeat([0, 1, 2], [9, 5, 5])
    Y = rng.uniform(-1, 1, size=(19, 2))
    rows = component_rows(labels)
    placed = Layout.lay_out(labels, Y, ComponentGeometry.unknown(rows)).place(Y, labels)
    np.testing.assert_allclose([radius(placed[row]) for row in rows], 1)
    np.testing.assert_allclose(np.sort(pdist(centers_of(placed, rows))), [4, 4, 8])


def test_a_wide_sparse_component_is_not_made_dense_at_once(rng, monkeypatch):
    at = rng.integers(0, 500, 2500), rng.integers(0, 50_000, 2500)
    X = sparse.csr_array((rng.uniform(size=2500), at), shape=(500, 50_000))
    made = []
    to_dense = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array, "toarray", lambda A, *a, **k: (made.append(A.shape), to_dense(A))[1]
    )
    geometry = ComponentGeometry.of_points(X, [np.arange(500)])
    assert max(np.prod(shape) for shape in made) <= 2**23
    mean = np.asarray(X.mean(axis=0)).ravel()
    expected = np.sqrt(X.power(2).sum() / 500 - (mean**2).sum())
    np.testing.assert_allclose(geometry.radii[0], expected, rtol=1e-12)


def test_many_components_are_fast():
    labels = np.arange(1000)
    X = np.random.default_rng(0).normal(size=(1000, 2))
    geometry = ComponentGeometry.of_distances(cdist(X, X), component_rows(labels))
    np.testing.assert_array_equal(geometry.radii, 0)


def test_distances_at_the_end_of_single_precision():
    D = np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]], dtype=np.float32) * np.float32(1.1e38)
    with np.errstate(all="raise"):
        found = ComponentGeometry.of_distances(D, [np.array([0, 1]), np.array([2])])
    np.testing.assert_allclose(found.radii, [float(D[0, 1]) / 2, 0])
