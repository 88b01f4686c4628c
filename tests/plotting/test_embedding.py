import string
import warnings
from itertools import combinations, product

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb, to_rgba
from mpl_toolkits.mplot3d.proj3d import proj_transform
from sklearn.manifold import Isomap

from manifoldry.exceptions import ManifoldryWarning
from manifoldry.plotting import plot_embedding, plot_grid
from manifoldry.plotting._legend import Legend
from manifoldry.plotting._style import ON_LIGHT, PALETTE
from manifoldry.plotting.coloring import resolve_color

Y = np.random.default_rng(0).normal(size=(60, 3))
CLASSES = np.repeat([0, 1, 2], 20)


def drawn_points(ax):
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])


def draw(ax):
    ax.figure.canvas.draw()


# Axes in and out


def test_axes_are_returned_and_no_figure_is_made_when_they_are_given():
    figure, ax = plt.subplots()
    assert plot_embedding(Y[:, :2], CLASSES, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_a_new_figure_is_made_otherwise():
    _, before = plt.subplots()
    ax = plot_embedding(Y[:, :2])
    assert ax is not before
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize("color", [None, CLASSES, Y[:, 0]])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_all_dimensions_and_colors_draw(columns, color):
    ax = plot_embedding(Y[:, :columns], color, title="map", color_label="what")
    draw(ax)
    assert ax.name == ("3d" if columns == 3 else "rectilinear")
    assert ax.get_title(loc="left") == "map"
    assert len(drawn_points(ax)) == 60


def test_nothing_global_changes():
    before = mpl.rcParams.copy()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (the global state is under test)
    draw(plot_embedding(Y, CLASSES))
    draw(plot_grid({"a": Y[:, :2]}, Y[:, 0])[0])
    assert mpl.rcParams == before
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002 (the global state is under test)


def test_given_axes_in_three_dimensions():
    figure = plt.figure()
    ax = figure.add_subplot(projection="3d")
    assert plot_embedding(Y, ax=ax) is ax
    with pytest.raises(
        ValueError, match="ax has projection '3d', but the data have 2 columns; pass plain"
    ):
        plot_embedding(Y[:, :2], ax=ax)
    with pytest.raises(ValueError, match="pass axes made with projection='3d'"):
        plot_embedding(Y, ax=figure.add_subplot())
    with pytest.raises(TypeError, match="is not a matplotlib Axes"):
        plot_embedding(Y, ax="left")


def test_shared_axes_can_be_drawn():
    _, axes = plt.subplots(1, 2, sharex=True, sharey=True)
    for ax in axes:
        draw(plot_embedding(Y[:, :2], ax=ax))


# Points


def test_every_point_is_drawn_once():
    ax = plot_embedding(Y[:, :2], CLASSES)
    assert np.array_equal(np.unique(drawn_points(ax), axis=0), np.unique(Y[:, :2], axis=0))


def test_components_choose_columns():
    wide = np.column_stack([Y, Y**2])
    ax = plot_embedding(wide, components=(4, 1))
    assert np.array_equal(np.unique(drawn_points(ax), axis=0), np.unique(wide[:, [4, 1]], axis=0))


def test_frames_lists_and_estimators_are_accepted():
    estimator = Isomap(n_neighbors=30).fit(Y)
    for given in (pd.DataFrame(Y[:, :2]), Y[:, :2].tolist(), estimator):
        assert len(drawn_points(plot_embedding(given))) == 60


def test_equal_units_in_the_plane_and_in_space():
    assert plot_embedding(Y[:, :2] * [10, 1]).get_aspect() == 1
    ax = plot_embedding(Y * [10, 2, 1])
    sides = np.asarray(ax._box_aspect) / np.ptp(Y * [10, 2, 1], axis=0)
    assert sides == pytest.approx(sides[0])


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_single_point_and_coinciding_points(columns):
    draw(plot_embedding(np.ones((1, columns)), [0.5]))
    draw(plot_embedding(np.ones((5, columns)), list("aabbc")))


def test_many_points_are_small_faint_and_pixels():
    many = np.random.default_rng(0).normal(size=(6000, 2))
    small, large = plot_embedding(Y[:, :2]).collections[0], plot_embedding(many).collections[0]
    assert large.get_sizes()[0] < small.get_sizes()[0]
    assert large.get_alpha() < small.get_alpha()
    assert large.get_rasterized()
    assert not small.get_rasterized()
    forced = plot_embedding(many, size=9, alpha=0.2, rasterized=False).collections[0]
    assert (forced.get_sizes()[0], forced.get_alpha()) == (9, 0.2)
    assert not forced.get_rasterized()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (np.ones((5, 4)), ValueError, r"4 columns.*components=\(0, 1\)"),
        (np.ones((2, 3, 4)), ValueError, r"embedding has shape \(2, 3, 4\)"),
        (np.empty((0, 2)), ValueError, r"embedding has shape \(0, 2\)"),
        (np.array([["a", "b"]]), TypeError, "embedding has dtype <U1"),
        (np.ones((3, 2)) * 1j, TypeError, "embedding has dtype complex"),
        ([[0, 1], [np.nan, 2], [3, np.inf]], ValueError, r"in 2 of 3 rows \(first: row 1\); drop"),
        (Isomap(), ValueError, "Isomap is not fitted; call fit first"),
    ],
)
def test_wrong_embeddings_are_named(given, error, words):
    with pytest.raises(error, match=words):
        plot_embedding(given)
    assert not plt.get_fignums()


@pytest.mark.parametrize("components", [(0, 3), (), (0, 1, 2, 0), (-1,)])
def test_wrong_components_are_named(components):
    with pytest.raises(ValueError, match=r"must be one to three column indices in 0\.\.2"):
        plot_embedding(Y, components=components)


# Colors


@pytest.mark.parametrize("order", [CLASSES, CLASSES[::-1], np.tile([0, 1, 2], 20)])
def test_classes_get_their_colors(order):
    ax = plot_embedding(Y[:, :2], order)
    [collection] = ax.collections
    offsets, colors = np.asarray(collection.get_offsets()), collection.get_facecolors()
    for point, label in zip(Y[:, :2], order, strict=True):
        row = np.flatnonzero((offsets == point).all(axis=1))[0]
        assert colors[row, :3] == pytest.approx(to_rgba(PALETTE[label])[:3])


def test_values_are_mapped_point_by_point():
    ax = plot_embedding(Y[:, :2], Y[:, 2])
    [collection] = ax.collections
    offsets = np.asarray(collection.get_offsets())
    for point, value in zip(Y[:, :2], Y[:, 2], strict=True):
        assert collection.get_array()[(offsets == point).all(axis=1)] == value
    assert collection.get_clim() == (Y[:, 2].min(), Y[:, 2].max())


def test_one_color_for_all():
    [collection] = plot_embedding(Y[:, :2], "black", alpha=1).collections
    assert np.array_equal(np.unique(collection.get_facecolors(), axis=0), [[0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("color", "kind"),
    [
        (np.arange(40), "classes"),
        (np.arange(20) / 1.0, "values"),
        (np.arange(20) % 2 == 0, "classes"),
        ([f"c{i}" for i in range(25)], "classes"),
        (pd.Series(list("abab")), "classes"),
        (pd.Categorical(list("abab")), "classes"),
        (np.arange(5)[:, None], "classes"),
        (None, "single"),
        ("tab:red", "single"),
    ],
)
def test_classes_are_told_from_values(color, kind):
    assert resolve_color(color, 1 if color is None else len(color)).kind == kind


def test_the_user_can_decide():
    assert resolve_color(np.arange(5), 5, categorical=False).kind == "values"
    assert resolve_color(np.arange(5.0), 5, categorical=True).classes[0] == "0.0"
    with pytest.raises(TypeError, match="not numeric; pass categorical=True"):
        resolve_color(list("abc"), 3, categorical=False)


def test_classes_are_in_natural_order():
    names = ["class 10", "class 2", "b", "class 1"]
    assert resolve_color(names, 4).classes == ("b", "class 1", "class 2", "class 10")
    assert resolve_color(names, 4).codes.tolist() == [3, 2, 0, 1]
    assert resolve_color([10, 9, -1], 3).classes == ("-1", "9", "10")


@pytest.mark.parametrize(
    ("color", "words"),
    [
        (CLASSES[:-1], r"color has shape \(59,\), expected \(60,\)"),
        (np.ones((60, 2)), r"color has shape \(60, 2\)"),
        (np.r_[np.inf, np.ones(59)], "infinity in 1 entries; drop these points, or replace"),
        ("blurple", "color='blurple' is not a matplotlib color"),
    ],
)
def test_wrong_colors_are_named(color, words):
    with pytest.raises(ValueError, match=words):
        plot_embedding(Y, color)
    assert not plt.get_fignums()


# Legends


def test_legend_lists_the_classes_with_their_colors():
    labels = np.array(["cat", "dog", "eel"])[CLASSES]
    legend = plot_embedding(Y[:, :2], labels, color_label="animal").get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["cat", "dog", "eel"]
    assert [line.get_color() for line in legend.get_lines()] == list(PALETTE[:3])
    assert legend.get_title().get_text() == "animal"


@pytest.mark.parametrize(
    "labels",
    [list(string.ascii_lowercase), range(26), [f"CD{i} memory T cells" for i in range(26)]],
)
def test_letters_have_different_colors_and_a_legend_in_columns(labels):
    ax = plot_embedding(Y[:52, :2], [*labels, *labels])
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [str(label) for label in labels]
    assert len({line.get_color() for line in legend.get_lines()}) == 26
    assert len(drawn_points(ax)) == 52
    ax.figure.canvas.draw()
    columns = {round(text.get_window_extent().x0) for text in legend.get_texts()}
    assert len(columns) == 2
    inside = ax.figure.bbox
    box = legend.get_window_extent()
    assert inside.y0 <= box.y0 < box.y1 <= inside.y1
    assert box.x1 <= inside.x1
    assert ax.bbox.width > 4 * ax.figure.dpi  # room for the points


def test_150_classes_differ_by_color_or_marker():
    coloring = resolve_color([f"c{i}" for i in range(150)], 150)
    handles = Legend.of(coloring, legend=True).handles()
    assert len({(line.get_color(), line.get_marker()) for line in handles}) == 150


NORMAL = np.eye(3)
# Linear RGB as it is seen by the color-blind (Vienot, Brettel and Mollon, 1999).
DEUTERANOPIA = np.array([[0.292, 0.708, 0.0], [0.292, 0.708, 0.0], [-0.022, 0.022, 1.0]])
PROTANOPIA = np.array([[0.113, 0.887, 0.0], [0.113, 0.887, 0.0], [0.004, -0.004, 1.0]])


@pytest.mark.parametrize(
    ("count", "seen", "least"),
    [
        (10, NORMAL, 24),
        (20, NORMAL, 18),
        (30, NORMAL, 15),
        (10, DEUTERANOPIA, 14),
        (10, PROTANOPIA, 14),
    ],
)
def test_colors_of_classes_are_far_apart(count, seen, least):
    # Below about 10, small dots of two colors are hard to tell apart.
    colors = lab(np.array([to_rgb(color) for color in PALETTE[:count]]), seen)
    distances = [ciede2000(a, b) for a, b in combinations(colors, 2)]
    assert min(distances) > least
    assert min(ciede2000(each, np.array([100.0, 0, 0])) for each in colors) > least  # white


def test_the_distance_of_colors_is_that_of_the_standard():
    # Pairs 1, 7 and 17 of Sharma, Wu and Dalal, "The CIEDE2000 color-difference formula", 2005.
    pairs = [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
    ]
    for one, other, known in pairs:
        assert ciede2000(np.array(one, float), np.array(other, float)) == pytest.approx(
            known, abs=1e-4
        )


def lab(rgb, seen):
    """CIELAB coordinates of sRGB colors, after a matrix that simulates how they are seen."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ seen.T, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    t = linear @ np.array(to_xyz).T / np.sum(to_xyz, axis=1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.column_stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])]
    )


def ciede2000(one, other):
    """Difference of two colors in CIELAB."""
    (L1, a1, b1), (L2, a2, b2) = one, other
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    C1, C2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if C1 * C2 else 0.0
    hue = (h1 + turn / 2 if C1 * C2 else h1 + h2) % 360
    light, C = (L1 + L2) / 2, (C1 + C2) / 2
    weights = ((0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63), (-0.17, 1, -30))
    T = 1 + sum(w * np.cos(np.radians(m * hue + shift)) for w, m, shift in weights)
    dL = (L2 - L1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    dC = (C2 - C1) / (1 + 0.045 * C)
    dH = 2 * np.sqrt(C1 * C2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * C * T)
    twist = np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2))))
    rotation = -2 * np.sqrt(C**7 / (C**7 + 25.0**7)) * twist
    return np.sqrt(dL**2 + dC**2 + dH**2 + rotation * dC * dH)


def test_a_switch_to_a_color_bar_is_announced():
    with pytest.warns(
        ManifoldryWarning, match="41 different whole numbers, more than 40.*categorical=True"
    ):
        assert resolve_color(np.arange(41), 41).kind == "values"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_embedding(Y[:, :2], np.arange(60), categorical=False)
        plot_embedding(Y[:, :2], np.arange(60), categorical=True, legend=True)
        plot_embedding(Y[:, :2], [f"c{i}" for i in range(60)], names=True)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_names_stand_on_points_of_their_class(dimensions):
    ax = plot_embedding(Y[:, :dimensions], np.array(["cat", "dog", "eel"])[CLASSES], names=True)
    assert [text.get_text() for text in ax.texts] == ["cat", "dog", "eel"]
    assert ax.get_legend() is None
    for code, text in enumerate(ax.texts):
        place = text.get_position_3d() if dimensions == 3 else text.get_position()
        members = Y[code == CLASSES, :dimensions]
        assert np.abs(members - np.array(place)).sum(axis=1).min() < 1e-12


@pytest.mark.parametrize("dimensions", [2, 3])
def test_new_points_are_drawn_on_top(dimensions):
    new = Y[:5, :dimensions] + 0.1
    ax = plot_embedding(Y[:, :dimensions], CLASSES, new_embedding=new)
    last = ax.collections[-1]
    assert last.get_label() == "new points"
    offsets = np.array(last._offsets3d).T if dimensions == 3 else last.get_offsets()
    np.testing.assert_allclose(offsets, new)
    assert last.get_zorder() > max(each.get_zorder() for each in ax.collections[:-1])
    assert min(last.get_sizes()) > max(ax.collections[0].get_sizes())
    with pytest.raises(ValueError, match="new_embedding has 1 columns and the embedding"):
        plot_embedding(Y[:, :dimensions], new_embedding=Y[:, :1])


@pytest.mark.parametrize("sides", [(1, 1, 1), (3, 1, 1), (1, 3, 1), (1, 1, 3)])
@pytest.mark.parametrize("labels", [None, CLASSES])
def test_a_box_of_three_dimensions_is_inside_its_axes_and_figure(sides, labels):
    corners = np.array(list(product((0, 1), repeat=3))) * np.array(sides, float)
    ax = plot_embedding(np.repeat(corners, len(Y) // 8 + 1, axis=0)[: len(Y)], labels)
    ax.figure.canvas.draw()
    bounds = [ax.get_xlim(), ax.get_ylim(), ax.get_zlim()]
    projected = [proj_transform(*corner, ax.get_proj())[:2] for corner in product(*bounds)]
    shown = ax.transData.transform(projected)
    figure = ax.figure.bbox
    assert (shown > [figure.x0, figure.y0]).all()
    assert (shown < [figure.x1, figure.y1]).all()
    if labels is not None:
        assert shown[:, 0].max() < ax.get_legend().get_window_extent().x0


def test_legend_can_be_left_out_or_forced():
    many = [f"c{i}" for i in range(60)]
    assert plot_embedding(Y[:, :2], CLASSES, legend=False).get_legend() is None
    assert len(plot_embedding(Y[:, :2], many, legend=True).get_legend().get_texts()) == 60
    assert len(plot_embedding(Y[:, :2], Y[:, 0], legend=False).figure.axes) == 1


def test_values_get_a_color_bar():
    figure = plot_embedding(Y[:, :2], Y[:, 0], color_label="height").figure
    assert len(figure.axes) == 2
    assert figure.axes[1].get_ylabel() == "height"


def test_one_column_is_drawn_against_values_or_in_rows():
    ax = plot_embedding(Y[:, 0], Y[:, 1], color_label="height")
    assert set(drawn_points(ax)[:, 1]) == set(Y[:, 1])
    assert ax.get_ylabel() == "height"
    assert len(ax.figure.axes) == 1
    rows = plot_embedding(Y[:, 0], np.array(["p", "q", "r"])[CLASSES])
    assert [label.get_text() for label in rows.get_yticklabels()] == ["p", "q", "r"]
    assert np.array_equal(np.bincount(np.rint(drawn_points(rows)[:, 1]).astype(int)), [20, 20, 20])


def test_ticks_on_demand():
    assert not plot_embedding(Y[:, :2]).get_xticks().size
    assert plot_embedding(Y[:, :2], ticks=True).get_xticks().size


# Grids


def test_grid_has_one_titled_panel_per_embedding_and_one_legend():
    axes = plot_grid({"flat": Y[:, :2], "space": Y, "line": Y[:, 0]}, CLASSES, color_label="c")
    assert axes.shape == (3,)
    assert [ax.get_title(loc="left") for ax in axes] == ["flat", "space", "line"]
    assert [ax.name for ax in axes] == ["rectilinear", "3d", "rectilinear"]
    assert all(ax.get_legend() is None for ax in axes)
    [legend] = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    draw(axes[0])


def test_grid_has_one_color_bar():
    axes = plot_grid({"a": Y[:, :2], "b": Y[:, 1:]}, Y[:, 0], color_label="height")
    assert len(axes[0].figure.axes) == 3
    assert axes[0].figure.axes[-1].get_ylabel() == "height"


@pytest.mark.parametrize(("n", "columns", "rows"), [(1, 1, 1), (4, 4, 1), (5, 3, 2), (9, 3, 3)])
def test_grid_shape(n, columns, rows):
    axes = plot_grid({str(i): Y[:, :2] for i in range(n)})
    assert axes[0].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)


def test_grid_columns_can_be_chosen():
    axes = plot_grid({str(i): Y[:, :2] for i in range(4)}, n_columns=2)
    assert axes[0].get_subplotspec().get_gridspec().get_geometry() == (2, 2)


def test_grid_draws_on_given_axes_and_leaves_the_legend_to_the_user():
    figure, axes = plt.subplots(2, 2)
    used = plot_grid({"a": Y[:, :2], "b": Y[:, 1:]}, CLASSES, axes=axes)
    assert list(used) == list(axes.ravel()[:2])
    assert plt.get_fignums() == [figure.number]
    assert not figure.legends
    plot_grid({"a": Y[:, :2]}, CLASSES, axes=axes[1, 1], legend=True)
    assert len(figure.legends) == 1


def test_grid_with_a_color_per_panel():
    axes = plot_grid({"a": Y[:, :2], "b": Y[:, :2]}, {"a": CLASSES, "b": Y[:, 0]})
    assert len(axes[0].get_legend().get_texts()) == 3
    assert len(axes[0].figure.axes) == 3


def test_grid_passes_options_on():
    wide = np.column_stack([Y, Y])
    axes = plot_grid({"a": wide, "b": wide}, components=(0, 4), size=5)
    assert axes[1].collections[0].get_sizes()[0] == 5


@pytest.mark.parametrize(
    ("embeddings", "options", "words"),
    [
        ({}, {}, "at least one title"),
        ([Y], {}, "must be a mapping"),
        ({"a": Y, "b": Y[:9]}, {"color": CLASSES}, r"expected \(9,\)"),
        ({"a": Y, "b": Y}, {"color": {"a": CLASSES}}, r"no entry for \['b'\]"),
        ({"a": Y, "b": Y}, {"axes": [None]}, "1 axes for 2 embeddings"),
    ],
)
def test_wrong_grids_are_named(embeddings, options, words):
    with pytest.raises(ValueError, match=words):
        plot_grid(embeddings, **options)
    assert not plt.get_fignums()


def test_rows_left_off_the_map_are_left_out():
    Y = np.column_stack([np.arange(6.0), np.arange(6.0)])
    Y[2:4] = np.nan
    ax = plot_embedding(Y, ["a", "a", "b", "b", "c", "c"])
    drawn = np.vstack([np.ma.getdata(c.get_offsets()) for c in ax.collections])
    assert np.isfinite(drawn).all(axis=1).sum() == 4
    with pytest.raises(ValueError, match="NaN everywhere"):
        plot_embedding(np.full((3, 2), np.nan))


def test_points_left_off_the_map_need_no_color():
    Y = np.random.default_rng(0).normal(size=(20, 2))
    values = np.linspace(0, 1, 20)
    Y[3], values[3] = np.nan, np.nan
    ax = plot_embedding(Y, values)
    assert len(ax.collections[0].get_offsets()) == 19
    assert not ax.figure.axes[-1].get_ylabel()  # no point that is drawn has a missing value


def drawn_colors(ax, points):
    """Color of each point, whatever the order in which they were drawn."""
    ax.figure.canvas.draw()
    found = {
        tuple(place): tuple(color[:3])
        for each in ax.collections
        for place, color in zip(each.get_offsets().data, each.get_facecolors(), strict=True)
    }
    return [found[tuple(point)] for point in points]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b", "a"],
        ["a", np.nan, "b", "a"],
        np.array(["a", None, "b", "a"], dtype=object),
        pd.Series(["a", None, "b", "a"]),
        pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
        pd.Categorical(["a", None, "b", "a"]),
        pd.Series([True, None, False, True], dtype="boolean"),
        [1, None, 2, 1],
    ],
    ids=str,
)
def test_points_with_a_missing_label_are_gray(labels):
    points = Y[:4, :2]
    ax = plot_embedding(points, labels)
    colors = drawn_colors(ax, points)
    assert colors[1] == to_rgb(ON_LIGHT.missing)
    assert colors[0] == colors[3]
    assert len({*colors}) == 3
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(shown) == 3
    assert shown[-1] == "missing"


@pytest.mark.parametrize("values", [[0.5, np.nan, 1.5, 2.5], [0.5, None, 1.5, 2.5]])
def test_points_with_a_missing_value_are_gray(values):
    points = Y[:4, :2]
    ax = plot_embedding(points, values, color_label="age")
    colors = drawn_colors(ax, points)
    assert colors[1] == to_rgb(ON_LIGHT.missing)
    viridis = plt.get_cmap("viridis")
    np.testing.assert_allclose([colors[0], colors[3]], [viridis(0.0)[:3], viridis(1.0)[:3]])
    assert ax.figure.axes[-1].get_ylabel() == "age; gray: missing"
    line = plot_embedding(Y[:4, 0], values)  # one column: below all others
    heights = line.collections[0].get_offsets()[:, 1]
    assert np.isfinite(heights).all()
    assert heights.min() < 0.5


@pytest.mark.parametrize("convert", [lambda each: each, pd.Series, pd.CategoricalIndex])
def test_categories_keep_their_order(convert):
    sizes = pd.Categorical(["low", "high", "low"], ["low", "mid", "high"], ordered=True)
    assert resolve_color(convert(sizes), 3).classes == ("low", "high")
    np.testing.assert_array_equal(resolve_color(convert(sizes), 3).codes, [0, 1, 0])
    ax = plot_grid({"map": Y[:3, :2]}, convert(sizes))[0]
    shown = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert shown == ["low", "high"]


def test_colors_of_classes_do_not_depend_on_the_points_that_are_embedded():
    whole, part = Y[:6, :2], Y[:6, :2].copy()
    part[:2] = np.nan  # the only points of class a
    labels = list("aabbcc")
    first, second = plot_grid({"whole": whole, "part": part}, labels, names=True)
    assert drawn_colors(first, whole[2:]) == drawn_colors(second, whole[2:])
    assert [text.get_text() for text in second.texts] == ["b", "c"]


def test_a_grid_warns_once_of_many_whole_numbers():
    with pytest.warns(ManifoldryWarning, match="60 different whole numbers") as found:
        plot_grid(dict.fromkeys("abc", Y[:, :2]), np.arange(60))
    assert len(found) == 1


def drawn_boxes(ax):
    """Extents of the visible names, as they are drawn."""
    ax.figure.canvas.draw()
    return [text.get_window_extent() for text in ax.texts if text.get_visible()]


def visible_names(ax):
    return [text.get_text() for text in ax.texts if text.get_visible()]


def count_overlaps(boxes):
    return sum(
        min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0)
        for a, b in combinations(boxes, 2)
    )


@pytest.mark.parametrize("size", [(4.6, 4.6), (9.0, 6.0)])
def test_names_do_not_overlap(size):
    labels = np.array([f"CD{i} memory T cells" for i in range(20)])
    ax = plot_embedding(Y[:, :2] / 4, np.repeat(labels, 3), names=True)
    ax.figure.set_size_inches(size)  # after the plot: names are placed when the figure is drawn
    boxes = drawn_boxes(ax)
    assert len(boxes) == 20
    assert count_overlaps(boxes) == 0
    for box in boxes:
        assert ax.bbox.x0 <= box.x0 < box.x1 <= ax.bbox.x1
        assert ax.bbox.y0 <= box.y0 < box.y1 <= ax.bbox.y1


def test_names_in_space_do_not_overlap():
    shifted = Y.copy()
    shifted[:, 2] = np.linspace(0, 1e-6, 60)  # seen from the side, names are close
    ax = plot_embedding(shifted, np.array(["a cat", "a dog", "an eel"])[CLASSES], names=True)
    ax.view_init(0, 0)
    ax.figure.canvas.draw()
    ends = [text.get_transform().transform((0, 0)) for text in ax.texts]
    starts = [proj_transform(*text.get_position_3d(), ax.get_proj())[:2] for text in ax.texts]
    places = ax.transData.transform(starts) + ends - ax.transData.transform((0, 0))
    boxes = [text.get_window_extent() for text in ax.texts]
    for (p, a), (q, b) in combinations(zip(places, boxes, strict=True), 2):
        apart = np.abs(p - q) >= [(a.width + b.width) / 2, (a.height + b.height) / 2]
        assert apart.any()


def test_names_without_room_are_left_out_and_announced():
    labels = [f"a rather long name of class {i}" for i in range(60)]
    ax = plot_embedding(Y[:, :2], labels, names=True)
    ax.figure.set_size_inches(2, 2)
    with pytest.warns(ManifoldryWarning, match="of 60 names have no room.*pass legend=True"):
        boxes = drawn_boxes(ax)
    assert 0 < len(boxes) < 60
    assert count_overlaps(boxes) == 0
    names = visible_names(ax)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ManifoldryWarning)  # once is enough
        for _ in range(2):  # as when a figure is shown and then saved
            np.testing.assert_allclose(drawn_boxes(ax), boxes, atol=1e-9)
            assert visible_names(ax) == names
        ax.figure.set_size_inches(30, 30)  # now all of them have room
        assert len(drawn_boxes(ax)) == 60


def test_new_points_are_visible_in_space():
    """Behind all other points, where matplotlib's own order would hide them."""
    near = np.column_stack([np.full(400, 1.0), *np.random.default_rng(0).uniform(-1, 1, (2, 400))])
    ax = plot_embedding(near, "blue", size=900, new_embedding=[[-1.0, 0.0, 0.0]] * 2)
    ax.view_init(0, 0)
    ax.figure.canvas.draw()
    x, y = ax.transData.transform(proj_transform(-1.0, 0.0, 0.0, ax.get_proj())[:2])
    pixels = np.asarray(ax.figure.canvas.buffer_rgba())
    assert pixels[len(pixels) - round(y), round(x), :3].min() > 250


def test_names_do_not_cover_new_points():
    ax = plot_embedding(Y[:, :2], CLASSES, names=True, new_embedding=Y[:5, :2])
    assert ax.collections[-1].get_zorder() > max(text.get_zorder() for text in ax.texts)
