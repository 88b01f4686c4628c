"""Selections: lasso on linked maps, what distinguishes them, labels, export, and search."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import until


def inside(polygon, points):
    """Which points are in a polygon, by the even-odd rule."""
    odd = np.zeros(len(points), dtype=bool)
    for (ax, ay), (bx, by) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = (ay > points[:, 1]) != (by > points[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            x = ax + (points[:, 1] - ay) / (by - ay) * (bx - ax)
        odd ^= crosses & (points[:, 0] < x)
    return odd


def around(page, name, corners):
    """A polygon in the window, with corners as fractions of the area of a map."""
    box = page.plot(name).bounding_box()
    return np.round(np.array(corners) * [box["width"], box["height"]] + [box["x"], box["y"]])


CROSSING_ITSELF = [(0.15, 0.3), (0.85, 0.75), (0.85, 0.3), (0.15, 0.75)]
NOTCHED = [(0.1, 0.1), (0.7, 0.1), (0.4, 0.45), (0.8, 0.8), (0.1, 0.8)]
LEFT = [(0.02, 0.02), (0.5, 0.02), (0.5, 0.98), (0.02, 0.98)]
BELOW = [(0.02, 0.5), (0.98, 0.5), (0.98, 0.98), (0.02, 0.98)]


def test_lasso_selects_the_same_rows_on_all_maps(digits_page):
    polygon = around(digits_page, "Isomap", NOTCHED)
    wanted = inside(polygon, digits_page.pixels("Isomap"))
    assert 20 < wanted.sum() < 180
    digits_page.toggle("Class names", on=False)
    before = digits_page.picture()
    digits_page.choose_tool("Lasso")
    digits_page.drag(polygon)
    assert digits_page.selection() == np.flatnonzero(wanted).tolist()
    digits_page.says(f"{wanted.sum()} rows selected")
    polygon = around(digits_page, "Elastic embedding", CROSSING_ITSELF)
    wanted = inside(polygon, digits_page.pixels("Elastic embedding"))
    assert 20 < wanted.sum() < 180
    digits_page.drag(polygon)
    assert digits_page.selection() == np.flatnonzero(wanted).tolist()
    # On every map the others are drawn pale.
    after = digits_page.picture()
    for name in ("PCA", "Elastic embedding"):
        x, y = np.floor(digits_page.pixels(name)).astype(int).T
        paler = after[y, x].min(axis=1) - before[y, x].min(axis=1)
        assert np.median(paler[~wanted]) > 40 > 10 > np.median(paler[wanted])
    digits_page.shot("lasso")


def test_shift_adds_and_alt_takes_out(digits_page):
    places = digits_page.pixels("PCA")
    left, below = around(digits_page, "PCA", LEFT), around(digits_page, "PCA", BELOW)
    in_left, in_below = inside(left, places), inside(below, places)
    digits_page.choose_tool("Lasso")
    digits_page.drag(left)
    assert digits_page.selection() == np.flatnonzero(in_left).tolist()
    digits_page.drag(below, "Shift")
    assert digits_page.selection() == np.flatnonzero(in_left | in_below).tolist()
    digits_page.drag(left, "Alt")
    assert digits_page.selection() == np.flatnonzero(in_below & ~in_left).tolist()
    digits_page.drag(left)
    assert digits_page.selection() == np.flatnonzero(in_left).tolist()
    # Shift and drag is a lasso with the other tools, too.
    digits_page.choose_tool("Move")
    digits_page.drag(below, "Shift")
    assert digits_page.selection() == np.flatnonzero(in_left | in_below).tolist()
    np.testing.assert_array_equal(digits_page.pixels("PCA"), places)


def test_hidden_classes_are_not_selected(digits_page, digits):
    digits_page.panel("Color").get_by_role("button", name="Show only digit 3").click()
    digits_page.choose_tool("Lasso")
    digits_page.drag(around(digits_page, "PCA", [(0, 0), (0.99, 0), (0.99, 0.99), (0, 0.99)]))
    assert digits_page.selection() == np.flatnonzero(digits.labels == "digit 3").tolist()


def test_what_distinguishes_a_selection(flowers_page, flowers):
    flowers_page.panel("Color").get_by_role("button", name="Select 50 rows of setosa").click()
    chosen = flowers.labels == "setosa"
    assert flowers_page.selection() == np.flatnonzero(chosen).tolist()
    panel = flowers_page.panel("Selection")
    panel.get_by_role("table").first.wait_for()
    text = panel.inner_text()
    assert "50 rows of 150 selected" in text
    assert "100% have the kind setosa, as do 0% of the others." in text
    inside, outside = flowers.X[chosen].mean(axis=0), flowers.X[~chosen].mean(axis=0)
    difference = (inside - outside) / flowers.X.std(axis=0)
    rows = panel.get_by_role("table").first.get_by_role("row").all()[1:]
    for row, j in zip(rows, np.argsort(-np.abs(difference)), strict=True):
        name, _, inside_text, outside_text = (
            row.get_by_role("cell").or_(row.get_by_role("rowheader")).all_inner_texts()
        )
        assert name == flowers.names[j]
        assert float(inside_text) == pytest.approx(inside[j], rel=1e-3)
        assert float(outside_text) == pytest.approx(outside[j], rel=1e-3)
        bar = row.get_by_role("img").get_attribute("aria-label")
        assert float(bar.split()[0]) == pytest.approx(abs(difference[j]), rel=1e-3)
        assert bar.endswith("less" if difference[j] < 0 else "more")
    flowers_page.shot("selection", panel)

    panel.get_by_role("button", name="Invert the selection").click()
    assert flowers_page.selection() == np.flatnonzero(~chosen).tolist()
    panel.get_by_role("button", name="Clear the selection").click()
    assert flowers_page.selection() == []
    assert "Nothing is selected." in panel.inner_text()


def test_label_of_a_selection_is_a_color_and_in_the_file(digits_page, digits):
    digits_page.choose_tool("Lasso")
    digits_page.drag(around(digits_page, "PCA", LEFT))
    rows = digits_page.selection()
    panel = digits_page.panel("Selection")
    panel.get_by_label("Column").fill("side")
    panel.get_by_label("Value").fill("left, 'of' \"all\"")
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: f"{len(rows)} rows labeled" in panel.inner_text(), "it is labeled")
    assert "labels.csv" in panel.inner_text()
    found = pd.read_csv(digits.labels_file)
    assert found["row"].tolist() == list(range(1, 201))
    labeled = found["side"].notna()
    assert np.flatnonzero(labeled).tolist() == rows
    assert set(found["side"][labeled]) == {"left, 'of' \"all\""}

    digits_page.color_by("side")
    legend = digits_page.panel("Color").get_by_role("list", name="Classes")
    until(lambda: "left, 'of' \"all\"" in legend.inner_text(), "the legend")
    assert f"no label\n{200 - len(rows)}" in legend.inner_text()

    # Without a value the rows lose it, and a column without any label is gone.
    panel.get_by_label("Value").fill("")
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: "without a label" in panel.inner_text(), "the label is gone")
    until(lambda: digits_page.js("app.labels.value.every(l => l.name !== 'side')"), "the column")
    assert "side" not in pd.read_csv(digits.labels_file).columns


def test_a_label_has_to_have_a_name_of_its_own(flowers_page):
    flowers_page.panel("Color").get_by_role("button", name="Select 50 rows of setosa").click()
    panel = flowers_page.panel("Selection")
    panel.get_by_label("Value").fill("x")
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: "Type the name of the column" in panel.inner_text(), "it asks for a name")
    panel.get_by_label("Column").fill("kind")
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: "a column 'kind' already" in panel.inner_text(), "it refuses")


def test_labels_are_not_read_as_html(flowers_page):
    flowers_page.panel("Color").get_by_role("button", name="Select 50 rows of setosa").click()
    panel = flowers_page.panel("Selection")
    evil = "<img src=x onerror=alert(1)>"
    panel.get_by_label("Column").fill("evil")
    panel.get_by_label("Value").fill(evil)
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: "Saved in" in panel.inner_text(), "it is labeled")
    flowers_page.color_by("evil")
    legend = flowers_page.panel("Color").get_by_role("list", name="Classes")
    until(lambda: evil in legend.inner_text(), "the text is shown as it is")
    assert flowers_page.page.locator("img").count() == 0
    panel.get_by_label("Value").fill("")
    panel.get_by_role("button", name="Label", exact=True).click()
    flowers_page.until("app.labels.value.length === 1")


def test_export_is_a_file_of_the_rows(digits_page, digits):
    digits_page.choose_tool("Lasso")
    digits_page.drag(around(digits_page, "PCA", BELOW))
    rows = digits_page.selection()
    panel = digits_page.panel("Selection")
    with digits_page.page.expect_download() as download:
        panel.get_by_role("button", name="Export the selected rows").click()
    assert download.value.suggested_filename == "selection.csv"
    found = pd.read_csv(download.value.path())
    assert found.iloc[:, 0].tolist() == [digits.ids[row] for row in rows]
    assert found["kind"].tolist() == digits.labels[rows].tolist()
    np.testing.assert_allclose(found[digits.names], digits.X[rows])
    for key, name in (
        ("pca", "PCA"),
        ("isomap", "Isomap"),
        ("elastic_embedding", "Elastic embedding"),
    ):
        columns = [f"{key}0", f"{key}1"]
        np.testing.assert_allclose(found[columns], digits.models[name].embedding_[rows])


@pytest.mark.parametrize(
    ("text", "says", "rows"),
    [
        ("scan-017", "1 row called scan-017.", [16]),
        ("scan-01", "10 rows whose name has 'scan-01' in it.", list(range(9, 19))),
        ("row 3", "Row 3, counted from 1.", [2]),
        ("digit 7", "rows whose kind is 'digit 7'.", None),
        ("elephant", "No row is called 'elephant', of all names, numbers and labels.", []),
    ],
)
def test_search(digits_page, digits, text, says, rows):
    if rows is None:
        rows = np.flatnonzero(digits.labels == text).tolist()
    panel = digits_page.panel("Find")
    box = panel.get_by_role("searchbox")
    box.fill(text)
    box.press("Enter")
    until(lambda: says in panel.inner_text(), says)
    assert digits_page.selection() == rows
    assert digits_page.js("app.pinned.value") == (rows[0] if rows else -1)
    if len(rows) > 1:
        panel.get_by_role("button", name="Next").click()
        assert digits_page.js("app.pinned.value") == rows[1]
        assert f"2 of {len(rows)}" in panel.inner_text()
        panel.get_by_role("button", name="Previous").click()
        panel.get_by_role("button", name="Previous").click()
        assert digits_page.js("app.pinned.value") == rows[-1]
    panel.get_by_role("button", name="Clear").click()
    assert box.input_value() == ""
    assert digits_page.selection() == []
