"""Pictures of plots, compared with stored ones that were looked at.

After an intended change of a plot, renew them with ``python tests/plotting/test_pictures.py``, and
look at those that changed.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import ft2font
from matplotlib.testing.compare import compare_images
from PIL import Image

from manifoldry.metrics import coranking, shepard
from manifoldry.plotting import (
    plot_coranking,
    plot_embedding,
    plot_grid,
    plot_images,
    plot_shepard,
    plot_spectrum,
)

REFERENCE = Path(__file__).parent / "reference"
TOLERANCE = 1.0  # root mean square over the pixels, whose values are from 0 to 255
# Letters differ between versions of these.
VERSIONS = (
    f"matplotlib {'.'.join(mpl.__version__.split('.')[:2])}, "
    f"freetype {ft2font.__freetype_version__}"
)


def blobs(n_classes, n=600, columns=2):
    """Points around centers on a spiral, and their classes."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % n_classes
    angle = 2.4 * np.arange(n_classes)
    radius = np.sqrt(1.0 + np.arange(n_classes))
    centers = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.1 * angle], axis=1)
    return centers[codes, :columns] + rng.normal(size=(n, columns)) * 0.2, codes


def classes_with_missing_labels():
    Y, codes = blobs(26)
    labels = np.array([f"letter {chr(97 + code)}" for code in codes], dtype=object)
    labels[::4] = None
    return plot_embedding(Y, labels, title="26 letters", color_label="letter")


def many_classes():
    Y, codes = blobs(200)
    return plot_embedding(Y, np.array([f"class {code}" for code in codes]))


def values_on_a_dark_background():
    Y, _ = blobs(10)
    values = np.where(Y[:, 1] > 2, np.nan, Y[:, 0])
    with mpl.rc_context({"figure.facecolor": "black", "axes.facecolor": "black"}):
        return plot_embedding(Y, values, color_label="value", title="values", ticks=True)


def names_on_the_map():
    Y, codes = blobs(12)
    return plot_embedding(Y, np.array([f"a cell type named {code}" for code in codes]), names=True)


def three_columns_with_new_points():
    Y, codes = blobs(8, columns=3)
    return plot_embedding(Y, codes, new_embedding=Y[:8] + 0.3)


def one_column():
    Y, codes = blobs(4, columns=1)
    return plot_embedding(Y, np.array(["a", "b", "c", "d"])[codes])


def thumbnails():
    Y, codes = blobs(6)
    images = np.zeros((len(Y), 6, 6))
    for i, code in enumerate(codes):
        images[i, code, :] = 1.0
    return plot_images(Y, images, codes)


def grid():
    Y, codes = blobs(10, n=300)
    maps = {"a map": Y, "turned": Y[:, ::-1], "stretched": Y * (3, 1), "in space": np.c_[Y, codes]}
    return plot_grid(maps, codes, color_label="class")[0]


def quality():
    Y, _ = blobs(5, n=150, columns=3)
    figure = mpl.figure.Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots(1, 3)
    plot_coranking({"two": coranking(Y, Y[:, :2]), "one": coranking(Y, Y[:, :1])}, ax=axes[0])
    plot_shepard(shepard(Y, Y[:, :2]), ax=axes[1], gridsize=30)
    plot_spectrum([5.0, 4.2, 0.6, 0.5, 0.3], ax=axes[2])
    return axes[0]


PICTURES = [
    classes_with_missing_labels,
    many_classes,
    values_on_a_dark_background,
    names_on_the_map,
    three_columns_with_new_points,
    one_column,
    thumbnails,
    grid,
    quality,
]


def draw(picture, folder):
    """Draw a picture in the default style into a file."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.use("Agg")
        file = folder / f"{picture.__name__}.png"
        picture().figure.savefig(file, dpi=50, metadata={"Software": VERSIONS})
    return file


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_pictures_look_as_they_did(picture, tmp_path):
    expected = REFERENCE / f"{picture.__name__}.png"
    with Image.open(expected) as stored:
        versions = stored.info["Software"]
    if versions != VERSIONS:
        pytest.skip(f"the reference was drawn with {versions}, and this is {VERSIONS}")
    # The comparison writes a picture of the differences beside the one drawn.
    difference = compare_images(str(expected), str(draw(picture, tmp_path)), tol=TOLERANCE)
    assert difference is None, difference


@pytest.mark.parametrize("options", [{"color": "#dd8516"}, {"size": 8.0}, {"alpha": 0.3}])
def test_a_changed_color_size_or_opacity_is_detected(tmp_path, options):
    def as_it_is():
        return plot_embedding(blobs(3)[0])

    def changed():
        return plot_embedding(blobs(3)[0], **options)

    drawn = [str(draw(picture, tmp_path)) for picture in (as_it_is, changed)]
    assert compare_images(*drawn, tol=TOLERANCE, in_decorator=True) is not None


if __name__ == "__main__":
    for each in PICTURES:
        print(draw(each, REFERENCE))
