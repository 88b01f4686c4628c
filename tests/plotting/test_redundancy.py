"""Bars of redundancy and pairs of coordinates."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from sklearn.manifold import Isomap

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import make_strip
from manifoldry.metrics import unpredictability
from manifoldry.plotting import plot_dependence, plot_redundancy
from manifoldry.plotting._style import ON_LIGHT, PALETTE

X1, X2 = np.random.default_rng(0).uniform(size=(2, 200))
Y = np.column_stack([X1, np.cos(5 * X1), X2])


def bars(ax):
    return [patch for patch in ax.patches if patch in ax.containers[0]]


# Redundancy


def test_bars_are_the_errors_and_grey_below_the_threshold():
    ax = plot_redundancy(Y, title="a map")
    heights = [bar.get_height() for bar in bars(ax)]
    np.testing.assert_allclose(heights, unpredictability(Y))
    assert [to_hex(bar.get_facecolor()) for bar in bars(ax)] == [
        PALETTE[0],
        ON_LIGHT.line,
        PALETTE[0],
    ]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars(ax)] == pytest.approx([1, 2, 3])
    assert ax.get_title(loc="left") == "a map"
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_a_line_at_one_and_shade_below_the_threshold(threshold):
    ax = plot_redundancy(Y, threshold=threshold)
    assert list(ax.lines[0].get_ydata()) == [1, 1]
    [shade] = [patch for patch in ax.patches if patch not in bars(ax)]
    corners = shade.get_extents().transformed(ax.transData.inverted())
    assert (corners.y0, corners.y1) == pytest.approx((0, threshold))
    assert [text.get_text() for text in ax.texts] == ["unpredictable", "redundant"]
    assert ax.get_ylim()[1] > 1
    ax.figure.canvas.draw()


def test_the_second_coordinate_of_a_long_strip_is_grey():
    model = LaplacianEigenmaps(2).fit(make_strip(300, aspect=3.5, random_state=0).X)
    assert to_hex(bars(plot_redundancy(model))[1].get_facecolor()) == ON_LIGHT.line


def test_rows_of_nan_are_ignored():
    gap = np.vstack([Y, np.full((5, 3), np.nan)])
    heights = [bar.get_height() for bar in bars(plot_redundancy(gap))]
    np.testing.assert_allclose(heights, unpredictability(Y))


def test_many_coordinates_and_a_single_one():
    assert len(bars(plot_redundancy(np.random.default_rng(0).normal(size=(60, 30))))) == 30
    assert [bar.get_height() for bar in bars(plot_redundancy(X1))] == [1]


# Dependence


def test_every_pair_is_drawn_once():
    axes = plot_dependence(Y)
    assert axes.shape == (3,)
    for ax, (j, i) in zip(axes, [(0, 1), (0, 2), (1, 2)], strict=True):
        drawn = np.asarray(ax.collections[0].get_offsets())
        np.testing.assert_array_equal(drawn, Y[:, [j, i]])


def test_new_panels_form_a_triangle_labeled_at_its_edges():
    axes = plot_dependence(np.column_stack([Y, Y[:, :1]]), title="pairs")
    places = [ax.get_subplotspec() for ax in axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [
        (0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)
    ]  # fmt: skip
    assert [ax.get_ylabel()[-1:] for ax in axes] == ["2", "3", "", "4", "", ""]
    assert [ax.get_xlabel()[-1:] for ax in axes] == ["", "", "", "1", "2", "3"]
    assert axes[0].figure.get_suptitle() == "pairs"
    axes[0].figure.canvas.draw()


def test_given_axes_are_used_and_all_labeled():
    figure, given = plt.subplots(2, 2)
    axes = plot_dependence(Y, axes=given)
    assert list(axes) == list(given.ravel()[:3])
    assert plt.get_fignums() == [figure.number]
    assert [(ax.get_xlabel()[-1], ax.get_ylabel()[-1]) for ax in axes] == [
        ("1", "2"), ("1", "3"), ("2", "3")
    ]  # fmt: skip
    assert not given[1, 1].has_data()
    assert plot_redundancy(Y, ax=given[1, 1]) is given[1, 1]
    assert plt.get_fignums() == [figure.number]


def test_frames_and_estimators_are_accepted():
    model = Isomap(n_neighbors=30, n_components=3).fit(Y)
    for plot in (plot_redundancy, plot_dependence):
        for given in (pd.DataFrame(Y), Y.tolist(), model):
            plot(given)


# Bad input


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: plot_redundancy(Y, threshold=0), ValueError, "threshold=0 must lie between"),
        (lambda: plot_redundancy(Y, threshold=1.5), ValueError, "threshold=1.5 must lie between"),
        (lambda: plot_redundancy(Y[:2]), ValueError, "minimum of 3"),
        (lambda: plot_redundancy(np.where(Y > 0.99, np.nan, Y)), ValueError, "NaN"),
        (lambda: plot_redundancy([["a"]]), TypeError, "cannot be drawn"),
        (lambda: plot_redundancy(np.empty((0, 2))), ValueError, r"shape \(0, 2\)"),
        (lambda: plot_redundancy(np.empty((4, 0))), ValueError, r"shape \(4, 0\)"),
        (lambda: plot_redundancy(Isomap()), ValueError, "Isomap is not fitted; call fit first"),
        (lambda: plot_redundancy(Y, ax="left"), TypeError, "is not a matplotlib Axes"),
        (lambda: plot_dependence(X1), ValueError, "embedding has 1 columns, .* pass more"),
        (lambda: plot_dependence(np.ones((5, 11))), ValueError, r"pass embedding\[:, :10\]"),
        (lambda: plot_dependence(np.where(Y > 0.99, np.nan, Y)), ValueError, "NaN or infinity"),
        (
            lambda: plot_dependence(Y, axes=[None]),
            ValueError,
            "1 axes for 3 pairs; pass one for each",
        ),
        (lambda: plot_dependence(Y, axes=["a"] * 3), TypeError, "is not a matplotlib Axes"),
    ],
)
def test_bad_input_is_named_and_opens_no_figure(call, error, words):
    with pytest.raises(error, match=words):
        call()
    assert not plt.get_fignums()
