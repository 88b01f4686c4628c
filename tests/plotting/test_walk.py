"""Plots of a walk along the data."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import sparse

from manifoldry import PCA
from manifoldry.base.walk import Walk
from manifoldry.datasets import make_s_curve
from manifoldry.plotting import plot_walk

X = make_s_curve(150, random_state=0).X
IMAGES = np.random.default_rng(0).normal(size=(40, 12))


def test_the_path_is_drawn_over_the_embedding():
    model = PCA(2).fit(X)
    path = model.walk(X, 0, 1)
    ax = plot_walk(path, model, X[:, 0], title="along the sheet")
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), path.coordinates)
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), path.coordinates[[0, -1]])
    assert len(ax.collections[0].get_offsets()) == 150
    assert ax.get_title(loc="left") == "along the sheet"


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_images_along_the_path(convert):
    model = PCA(2).fit(convert(IMAGES))
    path = model.walk(convert(IMAGES), 0, 1, n_steps=9)
    ax = plot_walk(path, model, image_shape=(3, 4), n_images=5)
    strip = ax.figure.axes[-1].images[0].get_array()
    np.testing.assert_allclose(strip, np.hstack([row.reshape(3, 4) for row in path.data[::2]]))
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), path.coordinates[::2])


def wide_axes():
    return plt.subplots(figsize=(8, 3))[1]


def one_of_two():
    return plt.subplots(1, 2)[1][0]


def constrained():
    return plt.subplots(1, 2, layout="constrained")[1][1]


def placed_by_hand():
    return plt.figure(figsize=(3, 6)).add_axes((0.1, 0.1, 0.8, 0.8))


@pytest.mark.parametrize("axes", [wide_axes, one_of_two, constrained, placed_by_hand, None])
def test_images_keep_their_shape_inside_the_figure(axes):
    model = PCA(2).fit(IMAGES)
    given = None if axes is None else axes()
    place = None if given is None else given.get_position()
    ax = plot_walk(model.walk(IMAGES, 0, 1, 5), model, image_shape=(3, 4), ax=given, n_images=3)
    ax.figure.canvas.draw()
    strip = ax.figure.axes[-1]
    corners = strip.transData.transform([(-0.5, 2.5), (11.5, -0.5)])  # 3 images of 3 x 4 pixels
    width, height = corners[1] - corners[0]
    assert width / height == pytest.approx(12 / 3)
    inside = ax.figure.transFigure.inverted().transform(corners)
    assert inside.min() >= -1e-9
    assert inside.max() <= 1 + 1e-9
    assert inside[1, 1] <= ax.get_position().y0  # below the embedding
    if axes in (wide_axes, one_of_two, placed_by_hand):
        assert inside[0, 1] >= place.y0 - 1e-9  # and in the place of the axes


def test_images_of_a_walk_without_steps_are_training_images():
    model = PCA(2).fit(IMAGES)
    path = model.walk(IMAGES, 0, 1, n_neighbors=4)
    ax = plot_walk(path, model, image_shape=(3, 4), n_images=100)
    expected = np.hstack([row.reshape(3, 4) for row in IMAGES[path.rows]])
    np.testing.assert_array_equal(ax.figure.axes[-1].images[0].get_array(), expected)


def test_errors():
    model = PCA(2).fit(IMAGES)
    path = model.walk(IMAGES, 0, 1)
    with pytest.raises(
        ValueError, match=r"image_shape=\(3, 3\) has 9 pixels, but the data have 12"
    ):
        plot_walk(path, model, image_shape=(3, 3))
    with pytest.raises(TypeError, match="walk is of type ndarray"):
        plot_walk(path.coordinates, model)
    with pytest.raises(ValueError, match="3 columns"):
        plot_walk(path, IMAGES[:, :3])


def test_photographs_and_colors():
    X = np.random.default_rng(0).uniform(size=(40, 12))
    model = PCA(2).fit(X)
    walk = model.walk(X, 0, 5)
    gray = plot_walk(walk, model, image_shape=(3, 4), image_cmap="gray")
    assert gray.figure.axes[-1].images[0].get_cmap().name == "gray"
    color = plot_walk(walk, model, image_shape=(2, 2, 3))
    assert color.figure.axes[-1].images[0].get_array().shape[::2] == (2, 3)
    assert {text.get_text() for text in color.texts} >= {"start", "end"}


def test_the_scale_of_colors_depends_on_all_images():
    X = np.linspace(0, 1, 40)[:, None] * np.ones(12)
    X[20] *= 100  # visited, but not drawn
    path = np.random.default_rng(0).normal(size=(40, 2))
    walk = Walk(np.arange(40), np.arange(40.0), path, X)
    ax = plot_walk(walk, path, image_shape=(2, 2, 3), n_images=2)
    np.testing.assert_allclose(ax.figure.axes[-1].images[0].get_array().max(), 1 / 255)
