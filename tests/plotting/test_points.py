"""The order in which points are drawn, their sizes, and backgrounds other than white."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.markers import MarkerStyle
from scipy.stats import spearmanr

from manifoldry.metrics import coranking, shepard
from manifoldry.plotting import (
    plot_coranking,
    plot_dependence,
    plot_embedding,
    plot_redundancy,
    plot_shepard,
    plot_spectrum,
)
from manifoldry.plotting._style import ON_DARK, PALETTE

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(600, 2))


def colors_in_order(ax):
    return np.vstack([each.get_facecolors()[:, :3] for each in ax.collections])


def test_classes_are_mixed_in_the_order_of_drawing_whatever_their_marker():
    codes = np.repeat(np.arange(12), 50)  # the last two have another marker
    ax = plot_embedding(Y, codes)
    [collection] = ax.collections
    drawn = np.asarray(collection.get_offsets())
    order = [int(np.flatnonzero((point == Y).all(axis=1))[0]) for point in drawn]
    assert abs(np.corrcoef(codes[order], np.arange(600))[0, 1]) < 0.1
    triangle, circle = (MarkerStyle(each).get_path() for each in "^o")
    for path, i in zip(collection.get_paths(), order, strict=True):
        assert len(path.vertices) == len((triangle if codes[i] >= 10 else circle).vertices)


def test_points_without_a_label_or_value_are_drawn_first():
    missing = RNG.uniform(size=600) < 0.4
    gray = to_rgb(plot_embedding(Y, np.full(600, None)).get_legend().get_lines()[0].get_color())
    labels = np.where(missing, None, "known")
    is_gray = (colors_in_order(plot_embedding(Y, labels)) == gray).all(axis=1)
    assert is_gray[: missing.sum()].all()
    assert not is_gray[missing.sum() :].any()
    [collection] = plot_embedding(Y, np.where(missing, np.nan, Y[:, 0])).collections
    drawn = np.ma.masked_invalid(collection.get_array())
    assert drawn.mask[: missing.sum()].all()
    assert not drawn.mask[missing.sum() :].any()


@pytest.mark.parametrize("options", [{}, {"size": 2.0, "alpha": 0.3}])
def test_rare_classes_are_drawn_last_and_large_among_many_points(options):
    n = 20_000
    codes = np.arange(n) % 10
    codes[:20] = 10
    ax = plot_embedding(RNG.normal(size=(n, 2)), codes, **options)
    others, rare = ax.collections
    assert len(rare.get_offsets()) == 20
    assert (rare.get_facecolors()[:, :3] == to_rgb(PALETTE[10])).all()
    if options:
        assert rare.get_sizes()[0] == others.get_sizes()[0] == 2.0
        assert rare.get_facecolors()[0, 3] == 0.3
    else:
        assert rare.get_sizes()[0] > 4 * others.get_sizes()[0]
        assert rare.get_facecolors()[0, 3] > others.get_facecolors()[0, 3]


def test_a_wide_legend_does_not_enlarge_the_markers():
    labels = np.array([f"class {i}" for i in range(150)])[np.arange(600) % 150]
    sizes = [
        plot_embedding(Y, labels, legend=legend).collections[0].get_sizes()[0]
        for legend in (False, True)
    ]
    assert sizes[0] == sizes[1]


def test_a_vector_file_of_many_points_has_an_image_of_them():
    many = RNG.normal(size=(6000, 2))
    files = {}
    for rasterized in (None, False):
        file = io.BytesIO()
        plot_embedding(many, rasterized=rasterized).figure.savefig(file, format="svg")
        files[rasterized] = file.getvalue()
    assert b"<image" in files[None]
    assert b"<image" not in files[False]
    assert len(files[None]) < len(files[False]) / 3


def luminance(color):
    return float(np.array(to_rgba(color))[:3] @ [0.3, 0.6, 0.1])


def test_text_can_be_read_on_a_dark_background():
    X, steps = RNG.normal(size=(60, 3)), [5.0, 4.0, 1.0]
    with plt.style.context("dark_background"):
        axes = [
            plot_embedding(Y, np.arange(600) % 3, color_label="class", title="a map", ticks=True),
            plot_embedding(Y, Y[:, 0], color_label="value").figure.axes[-1],
            plot_embedding(np.c_[Y, Y[:, 0]], names=True, ticks=True),
            plot_embedding(Y, np.arange(600) % 3, names=True),
            plot_coranking({"one": coranking(X, X[:, :2]), "two": coranking(X, X[:, 1:])}),
            plot_shepard(shepard(X, X[:, :2])),
            plot_spectrum(steps),
            plot_redundancy(X),
            *plot_dependence(X),
        ]
    for ax in axes:
        ax.figure.canvas.draw()
        dark = [text for text in visible_texts(ax) if luminance(text.get_color()) < 0.6]
        assert not dark, (ax, dark)


def visible_texts(ax):
    found = ax.findobj(plt.Text)
    return [text for text in found if text.get_text() and text.get_visible()]


def test_gray_stays_in_the_background_of_a_dark_figure():
    with plt.style.context("dark_background"):
        ax = plot_embedding(Y, np.full(600, None))
        space = plot_embedding(np.c_[Y, Y[:, 0]])
    assert to_rgb(ax.get_legend().get_lines()[0].get_color()) == to_rgb(ON_DARK.missing)
    assert luminance(space.xaxis.pane.get_facecolor()) < 0.2


def test_transparent_subfigures_have_the_background_of_their_figure():
    with plt.style.context("dark_background"):
        ax = plt.figure().subfigures(1, 2)[0].subplots()
    plot_embedding(Y, title="a map", ax=ax)
    [title] = [text for text in visible_texts(ax) if text.get_text() == "a map"]
    assert luminance(title.get_color()) > 0.6


def test_many_points_of_one_color_are_shaded_by_density():
    points = np.random.default_rng(0).normal(size=(60_000, 2))
    drawn = plot_embedding(points).collections[0]
    radius = np.linalg.norm(drawn.get_offsets(), axis=1)
    light = np.array([luminance(color) for color in drawn.get_facecolors()])
    assert spearmanr(radius, light).statistic > 0.9
    assert len(np.unique(plot_embedding(points[:40_000]).collections[0].get_facecolors())) < 6
    plot_embedding(np.zeros((60_000, 2))).figure.canvas.draw()  # all at one place
