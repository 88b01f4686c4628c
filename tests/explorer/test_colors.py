"""What points are colored by, counted again with numpy."""

import numpy as np
import pandas as pd
import pytest

from manifoldry.explorer import colors
from manifoldry.explorer.colors import evidence_color, label_color, label_kind, value_color
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.io import Table

X = np.zeros((6, 1))


def by(values, name="label"):
    return label_color(ExploredData(Table(X[: len(values)], labels={name: np.asarray(values)}), X),
                       name)  # fmt: skip


def decoded(color):
    return [color["classes"][code]["name"] for code in color["codes"]]


@pytest.mark.parametrize(
    "values",
    [["b", "a", "b", "c", "c", "c"], np.array([3, 1, 3, 2, 2, 2]), [True, False] * 3,
     np.array(["b", "a", "b", "", "c", "c"], dtype=object)],
)  # fmt: skip
def test_classes(values):
    found = by(values)
    assert found["kind"] == "classes"
    assert found["codes"].dtype == np.uint16
    assert decoded(found) == [str(each) or "(empty)" for each in np.asarray(values)]
    names, counts = np.unique(decoded(found), return_counts=True)
    assert {each["name"]: each["count"] for each in found["classes"]} == dict(
        zip(names, counts, strict=True)
    )
    assert len({each["color"] for each in found["classes"]}) == len(names)


def test_missing_labels_are_a_class_of_their_own():
    found = by(np.array(["a", None, "b", np.nan, pd.NA, "a"], dtype=object))
    assert decoded(found) == ["a", "no label", "b", "no label", "no label", "a"]
    last = found["classes"][-1]
    assert (last["name"], last["count"], last["missing"]) == ("no label", 3, True)


@pytest.mark.parametrize("values", [[None] * 6, [np.nan] * 6])
def test_only_missing_labels(values):
    array = np.array(values, dtype=object)
    found = by(array)
    assert found["kind"] == "classes"
    assert [each["count"] for each in found["classes"]] == [6]


def test_more_classes_than_colors():
    values = [f"class {i}" for i in range(300)]
    found = label_color(
        ExploredData(Table(np.zeros((300, 1)), labels={"x": np.array(values)}), X), "x"
    )
    assert decoded(found) == values
    assert [each["name"] for each in found["classes"]] == values  # 2 before 10


def test_more_classes_than_codes():
    values = np.arange(2**16).astype(str)
    data = ExploredData(Table(np.zeros((2**16, 1)), labels={"x": values}), X)
    with pytest.raises(ValueError, match="label 'x' has 65536 different values"):
        label_color(data, "x")


def test_values():
    found = by([0.5, 2.0, np.nan, -1.0, np.inf, 0.0])
    assert (found["kind"], found["low"], found["high"]) == ("values", -1.0, 2.0)
    np.testing.assert_array_equal(found["values"], [0.5, 2, np.nan, -1, np.nan, 0])


def test_many_whole_numbers_are_values():
    numbers = np.arange(100)
    found = label_color(ExploredData(Table(np.zeros((100, 1)), labels={"x": numbers}), X), "x")
    assert (found["kind"], found["low"], found["high"]) == ("values", 0, 99)
    both = {"all": numbers, "few": numbers % 40}
    data = ExploredData(Table(np.zeros((100, 1)), labels=both), X)
    assert [label_kind(data, name) for name in both] == ["values", "classes"]


def test_colors_of_a_label_are_computed_until_it_changes(monkeypatch):
    computed = []
    usual = colors.resolve_color

    def counted(values, n):
        computed.append(values)
        return usual(values, n)

    monkeypatch.setattr(colors, "resolve_color", counted)
    data = ExploredData(Table(X, labels={"x": np.array(list("ababab"))}), X)
    data.own_labels["mine"] = np.array([None, "u", "v"] * 2, dtype=object)
    for _ in range(3):
        assert label_kind(data, "x") == label_kind(data, "mine") == "classes"
        assert decoded(label_color(data, "mine")) == ["no label", "u", "v"] * 2
    assert len(computed) == 2
    data.own_labels["mine"] = np.linspace(0, 1, 6)
    assert (label_kind(data, "mine"), label_kind(data, "x")) == ("values", "classes")
    np.testing.assert_allclose(label_color(data, "mine")["values"], np.linspace(0, 1, 6))
    del data.own_labels["mine"]
    with pytest.raises(ValueError, match="no label 'mine'"):
        label_color(data, "mine")
    assert len(computed) == 3


def test_a_label_that_is_not_there():
    with pytest.raises(ValueError, match="the data have no label 'kind'"):
        label_color(ExploredData(Table(X), X), "kind")


def test_extreme_values_do_not_stretch_the_ramp():
    values = np.random.default_rng(0).normal(size=1000)
    values[3], values[7] = 1e6, -1e5
    found = value_color(values, note="of a sample")
    assert (found["low"], found["high"]) == tuple(np.quantile(values, [0.01, 0.99]))
    assert found["note"].startswith("of a sample; values range from -1e+05 to 1e+06")
    even = np.linspace(0, 1, 1000)
    assert (value_color(even)["low"], value_color(even)["high"], value_color(even)["note"]) == (
        0,
        1,
        "",
    )


@pytest.mark.parametrize("offset", [0, 1e8, -1e12])
def test_values_far_from_zero_keep_their_colors(offset):
    """The position on the ramp is that of the values without their offset."""
    unit = np.random.default_rng(0).uniform(size=50)
    found = value_color(unit + offset)
    ramp = (found["values"].astype(float) - found["low"]) / (found["high"] - found["low"])
    expected = (unit - unit.min()) / (unit.max() - unit.min())
    np.testing.assert_allclose(ramp, expected, atol=1e-3)


@pytest.mark.parametrize("size", [1e-150, 1e150])
@pytest.mark.filterwarnings("error")
def test_values_beyond_single_precision(size):
    found = value_color(size * np.arange(5))
    np.testing.assert_allclose(found["values"] / size, np.arange(5))


def test_one_value_for_all():
    found = value_color(np.full(4, 0.3))
    assert found["low"] == found["high"] == 0.3
    np.testing.assert_allclose(found["values"], 0.3)


def test_no_value_at_all():
    with pytest.raises(ValueError, match="all values are missing"):
        value_color(np.full(4, np.nan))


def test_evidence():
    shown = ExploredMap("m", "PCA", np.random.default_rng(0).normal(size=(4, 2)))
    with pytest.raises(ValueError, match=r"trustworthiness of the map PCA is not known.*compute"):
        evidence_color(shown, "trustworthiness")
    values = np.array([0.5, 0.9, 1.0, np.nan], dtype=np.float32)
    shown.colors = {"trustworthiness": [values, "a note"], "neighbor preservation": [values, ""],
                    "magnification": [values, ""]}  # fmt: skip
    found = evidence_color(shown, "trustworthiness")
    assert (found["scale"], found["low"], found["high"], found["note"]) == (
        "trust",
        0.6,
        1,
        "a note",
    )
    np.testing.assert_array_equal(found["values"], values)
    found = evidence_color(shown, "neighbor preservation")
    assert (found["scale"], found["low"], found["high"]) == ("values", 0, 1)
    found = evidence_color(shown, "magnification")
    assert (found["low"], found["high"]) == (0.5, 1)
