"""Maps of images."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from manifoldry import PCA, Isomap
from manifoldry.exceptions import ManifoldryWarning, NoveltyWarning
from manifoldry.plotting import plot_images, plot_inverse_grid
from manifoldry.plotting._images import without_overlap
from manifoldry.plotting._style import PALETTE

rng = np.random.default_rng(0)
IMAGES = rng.uniform(size=(60, 4, 3))
Y = rng.normal(size=(60, 2))


def extents(ax):
    return np.array([image.get_extent() for image in ax.images])


def centers(ax):
    return np.array([(e[:2].mean(), e[2:].mean()) for e in extents(ax)])


def shown_rows(ax, points=Y):
    distances = np.linalg.norm(centers(ax)[:, None] - points, axis=2)
    assert distances.min(axis=1).max() < 1e-12
    return distances.argmin(axis=1)


def overlaps(boxes):
    left, right, bottom, top = boxes.T
    x = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    y = np.minimum(top[:, None], top) - np.maximum(bottom[:, None], bottom)
    both = (x > 1e-12) & (y > 1e-12)
    np.fill_diagonal(both, False)
    return both


@pytest.mark.parametrize("n", [100, 20_000])
def test_images_cover_the_map_without_overlap(n):
    points = np.random.default_rng(1).uniform(size=(n, 2))
    size = (0.1, 0.05)
    chosen = without_overlap(points, size)
    offsets = np.abs(points[:, None] - points[chosen])
    blocked = (offsets < size).all(axis=2)
    assert blocked.any(axis=1).all()  # no other image has room
    np.testing.assert_array_equal(blocked[chosen], np.eye(len(chosen), dtype=bool))


def test_each_image_stands_upright_at_its_point_in_its_shape():
    ax = plot_images(Y, IMAGES)
    assert len(ax.images) > 20
    assert not overlaps(extents(ax)).any()
    for image, row in zip(ax.images, shown_rows(ax), strict=True):
        np.testing.assert_array_equal(image.get_array(), IMAGES[row])
        left, right, bottom, top = image.get_extent()
        assert (top - bottom) / (right - left) == pytest.approx(4 / 3)
        assert image.origin == "upper"
        assert image.get_clim() == ax.images[0].get_clim()
    ax.figure.canvas.draw()
    assert ax.get_aspect() == 1
    assert ax.get_xlim()[0] <= extents(ax)[:, 0].min()
    assert ax.get_ylim()[1] >= extents(ax)[:, 3].max()


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_rows_with_a_shape_are_images(convert):
    ax = plot_images(Y, convert(IMAGES.reshape(60, -1)), image_shape=(4, 3))
    for image, row in zip(ax.images, shown_rows(ax), strict=True):
        np.testing.assert_array_equal(image.get_array(), IMAGES[row])


@pytest.mark.parametrize("scale", [1.0, 255])
def test_colors_to_1_or_255(scale):
    colors = np.random.default_rng(1).uniform(0, 1, size=(60, 4, 3, 3))
    ax = plot_images(Y, (colors * scale).astype(float if scale == 1 else np.uint8))
    row = shown_rows(ax)[0]
    np.testing.assert_allclose(ax.images[0].get_array(), colors[row], atol=1 / 255)
    with pytest.raises(ValueError, match=r"colors from -3 to .*; scale them to 0 to 1"):
        plot_images(Y, np.where(colors < 0.1, -3, colors))


def test_dark_colors_stay_dark():
    """Integers are on a scale to 255 even if all are below 3, and floats if any of them is."""
    dark = np.ones((60, 4, 3, 3), dtype=np.uint8)
    ax = plot_images(Y, dark, image_size=0.3)
    np.testing.assert_allclose(ax.images[0].get_array(), 1 / 255)
    one_bright = dark.astype(float)
    one_bright[np.setdiff1d(np.arange(60), shown_rows(ax))[0]] = 200.0  # which is not drawn
    ax = plot_images(Y, one_bright, image_size=0.3)
    np.testing.assert_allclose([image.get_array() for image in ax.images], 1 / 255)
    rows = sparse.csr_array(one_bright.reshape(60, -1))
    ax = plot_images(Y, rows, image_shape=(4, 3, 3), image_size=0.3)
    np.testing.assert_allclose([image.get_array() for image in ax.images], 1 / 255)


def test_larger_images_are_fewer():
    few, many = (len(plot_images(Y, IMAGES, image_size=s).images) for s in (0.5, 0.03))
    assert few < 8
    assert many > 40


def test_frames_have_the_colors_of_the_points():
    labels = np.repeat([0, 1, 2], 20)
    ax = plot_images(Y, IMAGES, labels)
    expected = [to_rgba(PALETTE[label]) for label in labels[shown_rows(ax)]]
    np.testing.assert_allclose(ax.collections[-1].get_edgecolors(), expected)
    values = np.linspace(0, 1, 60)
    ax = plot_images(Y, IMAGES, values, cmap="gray")
    np.testing.assert_allclose(
        ax.collections[-1].get_edgecolors()[:, 0], values[shown_rows(ax)], atol=0.01
    )


def test_points_left_off_the_map_have_no_image():
    part = Y.copy()
    part[:30] = np.nan
    ax = plot_images(part, IMAGES, np.repeat(["a", "b"], 30))
    rows = shown_rows(ax, np.nan_to_num(part, nan=np.inf))
    assert rows.min() >= 30
    for image, row in zip(ax.images, rows, strict=True):
        np.testing.assert_array_equal(image.get_array(), IMAGES[row])
    np.testing.assert_allclose(ax.collections[-1].get_edgecolors()[0], to_rgba(PALETTE[1]))


def test_given_axes_and_one_warning_of_many_whole_numbers():
    _, ax = plt.subplots()
    with pytest.warns(ManifoldryWarning, match="60 different whole numbers") as found:
        assert plot_images(Y, IMAGES, np.arange(60), ax=ax) is ax
    assert len(found) == 1


@pytest.mark.parametrize(
    ("images", "options", "words"),
    [
        (IMAGES[:5], {}, r"shape \(5, 4, 3\), but the embedding has 60 points"),
        (IMAGES.reshape(60, 12), {}, "pass their height and width as image_shape"),
        (IMAGES.reshape(60, 12), {"image_shape": (5, 5)}, r"25 pixels, but the images have 12"),
        (np.ones((60, 3, 9, 9)), {}, "move the axis of the colors to the end"),
        (IMAGES, {"image_shape": 12}, "image_shape=12 must be a tuple of positive whole numbers"),
        (IMAGES, {"image_shape": (-4, -3)}, "pass the height and width of the images"),
        (IMAGES, {"image_size": 0}, "image_size"),
        (IMAGES, {"color": "blurple"}, "is not a matplotlib color"),
    ],
)
def test_wrong_images_are_named(images, options, words):
    with pytest.raises(ValueError, match=words):
        plot_images(Y, images, **options)
    assert not plt.get_fignums()


def test_images_need_a_plane():
    with pytest.raises(ValueError, match=r"3 columns, but images are drawn on two.*components"):
        plot_images(np.ones((60, 3)), IMAGES)


# Computed images


def ring(n=150):
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
    noise = 0.1 * np.random.default_rng(1).normal(size=(n, 12))
    return np.pad(np.column_stack([np.cos(angles), np.sin(angles)]), ((0, 0), (0, 10))) + noise


def test_a_grid_of_computed_images_is_blank_far_from_the_data():
    model = PCA(2).fit(ring())
    ax = plot_inverse_grid(model, image_shape=(3, 4), n_images=12)
    boxes, places = extents(ax), centers(ax)
    assert not overlaps(boxes + 1e-9 * np.array([1, -1, 1, -1])).any()
    _, distance = model.inverse_transform(places, return_distance=True)
    assert distance.max() <= 2
    assert np.linalg.norm(places, axis=1).min() > 0.4  # none inside the ring
    assert len(places) > 30
    computed = model.inverse_transform(places).reshape(-1, 3, 4)
    shown = np.array([image.get_array() for image in ax.images])
    inside = (computed > shown.min()) & (computed < shown.max())
    assert inside.mean() > 0.95
    np.testing.assert_allclose(shown[inside], computed[inside])
    everywhere = plot_inverse_grid(model, image_shape=(3, 4), n_images=12, max_distance=1e9)
    assert len(everywhere.images) > 100


def test_positions_off_the_map_give_no_warning():
    model = PCA(2).fit(ring())
    grid = np.random.default_rng(0).uniform(-2, 2, size=(100, 2))
    with pytest.warns(NoveltyWarning):
        model.inverse_transform(grid)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoveltyWarning)
        assert plot_inverse_grid(model, image_shape=(3, 4)).images


def test_pipelines_compute_in_the_units_of_the_data():
    X = 50 + 10 * ring()
    pipeline = make_pipeline(StandardScaler(), Isomap(2)).fit(X)
    ax = plot_inverse_grid(pipeline, image_shape=(3, 4), n_images=8)
    assert 40 < np.median([image.get_array() for image in ax.images]) < 60


@pytest.mark.parametrize("steps", [("passthrough",), (), (StandardScaler(), "passthrough")])
def test_steps_that_pass_data_through(steps):
    X = 50 + 10 * ring()
    pipeline = make_pipeline(*steps, PCA(2)).fit(X)
    ax = plot_inverse_grid(pipeline, image_shape=(3, 4), n_images=8)
    assert 40 < np.median([image.get_array() for image in ax.images]) < 60


def test_the_shape_is_checked_before_the_images_are_computed(monkeypatch):
    model = PCA(2).fit(ring())
    computed = []
    inverse = model.inverse_transform
    monkeypatch.setattr(
        model, "inverse_transform", lambda Z, **options: computed.append(len(Z)) or inverse(Z)
    )
    with pytest.raises(ValueError, match=r"9 pixels.*12 columns"):
        plot_inverse_grid(model, image_shape=(3, 3))
    assert sum(computed) <= 1


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (Y, {}, TypeError, "ndarray, which has no embedding_ or no inverse_transform"),
        (PCA(2), {}, TypeError, "pass a fitted estimator"),
        (make_pipeline(Normalizer(), PCA(2)).fit(ring()), {}, TypeError, "whose other steps have"),
        (PCA(3).fit(ring()), {}, ValueError, "3 columns"),
        (PCA(2).fit(ring()), {"image_shape": 12}, ValueError, "image_shape=12 must be a tuple"),
        (PCA(2).fit(ring()), {"max_distance": 1e-9}, ValueError, "raise n_images or max_distance"),
        (PCA(2).fit(ring()), {"image_shape": (3, 3)}, ValueError, "9 pixels.*12 columns"),
    ],
)
def test_wrong_models_are_named(model, options, error, words):
    with pytest.raises(error, match=words):
        plot_inverse_grid(model, **{"image_shape": (3, 4), **options})
    assert not plt.get_fignums()
