"""Legends of few and of many classes, beside new and given axes."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manifoldry.plotting import plot_embedding, plot_grid

Y = np.random.default_rng(0).normal(size=(400, 2))


def labels(count):
    """Labels of 400 points, the first class the largest and the last the smallest."""
    weights = np.arange(count, 0, -1.0)
    chosen = np.random.default_rng(1).choice(count, size=400, p=weights / weights.sum())
    chosen[:count] = np.arange(count)
    return np.array([f"class {i}" for i in range(count)])[chosen]


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("count", [2, 26, 40])
def test_up_to_40_classes_are_all_in_the_legend(count):
    assert len(texts(plot_embedding(Y, labels(count)).get_legend())) == count


def test_of_200_classes_the_largest_are_shown_and_the_others_counted():
    given = labels(200)
    legend = plot_embedding(Y, given).get_legend()
    *shown, last = texts(legend)
    assert last == "and 161 more"
    assert len(shown) == 39
    counts = {name: np.sum(given == name) for name in np.unique(given)}
    assert min(counts[name] for name in shown) >= sorted(counts.values())[-39]
    assert shown == sorted(shown, key=lambda name: int(name.split()[1]))


def test_missing_labels_are_named_even_if_classes_are_left_out():
    given = labels(200).astype(object)
    given[-1] = None
    assert texts(plot_embedding(Y, given).get_legend())[-2:] == ["missing", "and 162 more"]


@pytest.mark.parametrize("count", [2, 26, 60, 200])
def test_a_complete_legend_is_inside_the_figure_and_leaves_room_for_the_map(count):
    ax = plot_embedding(Y, labels(count), legend=True, color_label="a title")
    assert_inside(ax, ax.get_legend(), count)
    assert min(ax.bbox.size) > 4 * ax.figure.dpi


@pytest.mark.parametrize("dimensions", [2, 3])
def test_long_names_are_inside_the_figure(dimensions):
    names = np.array(["CD8+/CD45RA+ Naive Cytotoxic T cells", "CD34+"])[np.arange(400) % 2]
    ax = plot_embedding(np.c_[Y, Y[:, :1]][:, :dimensions], names)
    assert_inside(ax, ax.get_legend(), 2)


@pytest.mark.parametrize("count", [26, 200])
def test_the_legend_of_a_grid_covers_no_panel(count):
    axes = plot_grid({"one": Y, "another": Y}, labels(count), legend=True)
    [legend] = axes[0].figure.legends
    assert_inside(axes[-1], legend, count)
    assert min(axes[-1].bbox.size) > 2 * axes[-1].figure.dpi


def assert_inside(ax, legend, count):
    ax.figure.canvas.draw()
    assert len(texts(legend)) == count
    box, figure = legend.get_window_extent(), ax.figure.bbox
    assert ax.bbox.x1 <= box.x0
    assert box.x1 <= figure.x1
    assert figure.y0 <= box.y0
    assert box.y1 <= figure.y1 + 0.02 * figure.height


@pytest.mark.parametrize("size", [(3, 3), (12, 8)])
@pytest.mark.parametrize("layout", [None, "constrained"])
def test_the_legend_of_given_axes_is_inside_the_figure(size, layout):
    figure, ax = plt.subplots(figsize=size, layout=layout)
    plot_embedding(Y, labels(26), ax=ax)
    figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert ax.bbox.x1 <= box.x0
    assert box.x1 <= figure.bbox.x1 + 1
    assert ax.bbox.width > 0.35 * figure.bbox.width
    shown = texts(ax.get_legend())
    assert shown[-1].startswith("and ") if size == (3, 3) else len(shown) == 26


def test_axes_shrink_once_and_only_without_room():
    _, one = plt.subplots(figsize=(12, 8))
    before = one.get_position().bounds
    plot_embedding(Y, labels(5), ax=one)
    assert one.get_position().bounds == before
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    plot_embedding(Y, labels(5), ax=left)
    first = left.get_position().bounds
    plot_embedding(Y + 1, labels(5), ax=left)
    assert left.get_position().bounds == first
    assert left.get_legend().get_window_extent().x1 <= right.bbox.x0


def test_axes_with_a_position_make_room_too():
    figure = plt.figure(figsize=(3, 3))
    ax = figure.add_axes((0.1, 0.1, 0.85, 0.8))
    plot_embedding(Y, labels(5), ax=ax)
    figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_long_names_keep_their_ends():
    names = np.array([f"{'a long name of a cell type, ' * 4}CD{i}" for i in range(3)])
    shown = texts(plot_embedding(Y, names[np.arange(400) % 3]).get_legend())
    assert all(len(name) == 60 and "…" in name for name in shown)
    assert [name[-3:] for name in shown] == ["CD0", "CD1", "CD2"]


def test_one_column_of_200_classes_has_a_readable_size():
    ax = plot_embedding(Y[:, 0], labels(200))
    assert ax.figure.get_figheight() < 16
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert 90 <= len(boxes) <= 200
    assert all(low.y1 <= high.y0 + 1 for high, low in pairwise(boxes))
