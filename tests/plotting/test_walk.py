"""Plots of a walk along the data."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry import PCA
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
    strip = ax.child_axes[0].images[0].get_array()
    np.testing.assert_allclose(strip, np.hstack([row.reshape(3, 4) for row in path.data[::2]]))
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), path.coordinates[::2])


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
