"""Pictures that commands draw."""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from manifoldry import PCA, compare
from manifoldry.cli import picture
from manifoldry.io import Table

X = np.random.default_rng(0).normal(size=(120, 6))


@pytest.fixture
def drawn(monkeypatch):
    """The last figure, which `save_figure` closes after writing it."""
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    yield figures
    monkeypatch.undo()
    plt.close("all")


def table(**labels):
    return Table(X, tuple("abcdef"), labels={k: np.asarray(v) for k, v in labels.items()})


def test_of_more_than_three_coordinates_the_first_two_are_drawn_and_named(tmp_path, drawn):
    picture.draw_map(tmp_path / "map.png", X[:, :5], table(), "PCA of 120 rows")
    [ax] = drawn[-1].axes
    assert ax.get_title(loc="left") == "PCA of 120 rows, coordinates 1 and 2 of 5"
    offsets = np.asarray(ax.collections[0].get_offsets())
    assert {tuple(point) for point in offsets} == {tuple(point) for point in X[:, :2]}


def test_maps_of_five_coordinates_can_be_compared(tmp_path, drawn):
    found = compare(X, {"one": PCA(5), "another": X[:, :5]})
    file = picture.draw_comparison(tmp_path / "maps.png", found, table())
    assert Path(file).stat().st_size > 5000
    assert drawn[-1].get_suptitle() == "Coordinates 1 and 2 of 5"


@pytest.mark.parametrize("count", [2, 26, 60])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_classes_are_named_beside_the_map(tmp_path, drawn, count, columns):
    labels = np.array([f"class {i % count}" for i in range(120)])
    picture.draw_map(tmp_path / "map.png", X[:, :columns], table(kind=labels), "a map")
    [ax] = drawn[-1].axes
    if columns == 1:
        shown = [text.get_text() for text in ax.get_yticklabels()]
    else:
        shown = [text.get_text() for text in ax.get_legend().get_texts()]
        assert ax.get_legend().get_title().get_text() == "kind"
    assert "class 0" in shown
    if columns > 1 and count > 40:
        assert shown[-1] == f"and {count - 39} more"


def test_years_have_a_color_bar_and_names_of_rows_no_color(tmp_path, drawn):
    years, names = 1950 + np.arange(120) // 2, [f"row {i}" for i in range(120)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture.draw_map(tmp_path / "map.png", X[:, :2], table(year=years), "a map")
        assert drawn[-1].axes[1].get_ylabel() == "year"
        picture.draw_map(tmp_path / "map.png", X[:, :2], table(name=names), "a map")
    [ax] = drawn[-1].axes
    assert ax.get_legend() is None
