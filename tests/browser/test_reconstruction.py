"""What the inverse of a map gives: at a click, while dragging, and along a line."""

import re

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import placed_in, until


def from_window(page, name, point):
    """The position on a map of a point of the window."""
    matrix, offset = placed_in(page.positions(name), page.pixels(name), tolerance=0.01)
    return np.linalg.solve(matrix.T, np.asarray(point, dtype=float) - offset)


def restored(exploration, page, name, positions):
    """What the inverse of the model gives there, computed without the explorer."""
    model = exploration.models[name]
    matrix, offset = placed_in(model.embedding_, page.positions(name))
    Z = np.linalg.solve(matrix.T, (np.atleast_2d(positions) - offset).T).T
    return model.inverse_transform(Z)


def replied(page, count=1):
    """The last reply about positions on a map, after so many."""
    return until(
        lambda: len(page.replies("invert")) >= count and page.replies("invert")[-1], "the reply"
    )


def middle(page, name):
    box = page.plot(name).bounding_box()
    return np.round([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])


def corner(page, name):
    box = page.plot(name).bounding_box()
    return np.round([box["x"] + 4, box["y"] + 4])


@pytest.mark.parametrize("name", ["PCA", "Isomap", "Elastic embedding"])
def test_click_shows_what_the_inverse_gives(digits_page, digits, name):
    digits_page.choose_tool("Probe")
    point = digits_page.pixels(name)[20].round() + np.array([3, 2])
    digits_page.page.mouse.click(*point)
    expected = restored(digits, digits_page, name, from_window(digits_page, name, point))
    reply = replied(digits_page)
    np.testing.assert_allclose(reply["data"], expected[0], rtol=1e-3, atol=1e-3)
    panel = digits_page.panel("Reconstruction")
    image = panel.get_by_role("img", name="image of 8 × 8 pixels").first
    image.wait_for()
    np.testing.assert_allclose(
        digits_page.drawn_image(image),
        np.clip(255 - expected[0] * 255 / digits.X.max(), 0, 255),
        atol=1,
    )
    # The row that is nearest on the map is beside it.
    at = digits_page.js("app.probe.value.at")
    nearest = int(np.argmin(np.linalg.norm(digits_page.positions(name) - at, axis=1)))
    until(lambda: digits.ids[nearest] in panel.inner_text(), "the nearest row")
    panel.get_by_role("button", name="Pin it").click()
    assert digits_page.js("app.pinned.value") == nearest
    digits_page.shot(f"reconstruction-{name}")


def test_table_of_numbers(flowers_page, flowers):
    flowers_page.choose_tool("Probe")
    point = flowers_page.pixels("PCA")[60].round()
    flowers_page.page.mouse.click(*point)
    expected = restored(flowers, flowers_page, "PCA", from_window(flowers_page, "PCA", point))[0]
    panel = flowers_page.panel("Reconstruction")
    table = panel.get_by_role("table")
    until(lambda: table.get_by_role("columnheader").count() == 4, "the nearest row is in the table")
    rows = table.get_by_role("row").all()[1:]
    for row, name, value in zip(rows, flowers.names, expected, strict=True):
        assert row.get_by_role("rowheader").inner_text() == name
        assert float(row.get_by_role("cell").first.inner_text()) == pytest.approx(
            value, rel=1e-3, abs=1e-3
        )
    nearest = int(re.search(r"iris-(\d+)", panel.inner_text())[1]) - 1
    last = [float(row.get_by_role("cell").last.inner_text()) for row in rows]
    assert last == flowers.X[nearest].tolist()
    flowers_page.shot("reconstruction-table")
    panel.get_by_label("Shown as").select_option("curve")
    panel.locator("svg path.curve").first.wait_for()
    panel.get_by_label("Shown as").select_option("table")
    assert table.is_visible()


def test_caution_where_it_extrapolates(digits_page):
    digits_page.choose_tool("Probe")
    panel = digits_page.panel("Reconstruction")
    digits_page.page.mouse.click(*digits_page.pixels("PCA")[20].round())
    until(lambda: "on the map" in panel.inner_text(), "the position is on the map")
    assert replied(digits_page)["cautions"] == [""]
    digits_page.page.mouse.click(*corner(digits_page, "PCA"))
    until(lambda: "off the map: extrapolated" in panel.inner_text(), "the caution")
    reply = replied(digits_page, 2)
    assert reply["distance"][0] > 2
    assert f"{reply['distance'][0]:.1f} times the usual one" in panel.inner_text()


def test_dragging_follows_the_pointer(digits_page, digits):
    digits_page.choose_tool("Probe")
    start, end = digits_page.pixels("Isomap")[[20, 25]].round()
    mouse = digits_page.page.mouse
    mouse.move(*start)
    mouse.down()
    replied(digits_page)
    mouse.move(*end, steps=6)
    wanted = from_window(digits_page, "Isomap", end)
    expected = restored(digits, digits_page, "Isomap", wanted)[0]
    until(
        lambda: np.allclose(digits_page.replies("invert")[-1]["data"], expected, atol=1e-2),
        "it follows",
    )
    assert len(digits_page.replies("invert")) >= 2
    mouse.up()
    np.testing.assert_allclose(digits_page.js("app.probe.value.at"), wanted, atol=1e-3)
    mouse.move(*start)  # without a button it stays
    digits_page.rest()
    np.testing.assert_allclose(digits_page.js("app.probe.value.at"), wanted, atol=1e-3)
    panel = digits_page.panel("Reconstruction")
    panel.get_by_role("button", name="Clear").click()
    assert digits_page.js("app.probe.value") is None
    until(lambda: "Choose the probe (P)" in panel.inner_text(), "the panel is empty again")


def test_line_shows_the_data_along_it(digits_page, digits):
    digits_page.choose_tool("Line")
    ends = digits_page.pixels("PCA")[[20, 25]].round()
    digits_page.drag(ends)
    panel = digits_page.panel("Reconstruction")
    strip = panel.get_by_role("button", name=re.compile("^position .* of 12"))
    until(lambda: strip.count() == 12, "the strip")
    positions = np.linspace(*[from_window(digits_page, "PCA", end) for end in ends], 12)
    expected = restored(digits, digits_page, "PCA", positions)
    reply = replied(digits_page)
    np.testing.assert_allclose(reply["data"].reshape(12, -1), expected, atol=1e-2)
    assert panel.get_by_role("img", name="image of 8 × 8 pixels").count() == 12
    strip.nth(11).click()
    assert digits_page.js("app.pinned.value") == reply["nearest"][11]
    digits_page.shot("line", panel)
    # Beyond the points it says so.
    digits_page.drag([corner(digits_page, "PCA"), middle(digits_page, "PCA")])
    until(
        lambda: "of 12 positions along the line are off the map" in panel.inner_text(),
        "the caution",
    )


def test_line_of_records_shows_how_features_change(flowers_page, flowers):
    flowers_page.choose_tool("Line")
    flowers_page.drag(flowers_page.pixels("PCA")[[10, 120]].round())
    panel = flowers_page.panel("Reconstruction")
    table = panel.get_by_role("table")
    table.wait_for()
    data = replied(flowers_page)["data"].reshape(12, 4)
    part = np.ptp(data, axis=0) / np.ptp(flowers.X, axis=0)
    for row, j in zip(table.get_by_role("row").all()[1:], np.argsort(-part), strict=True):
        assert row.get_by_role("rowheader").inner_text() == flowers.names[j]
        cells = row.get_by_role("cell").all_inner_texts()
        assert float(cells[0]) == pytest.approx(data[0, j], rel=1e-3)
        assert float(cells[-1]) == pytest.approx(data[-1, j], rel=1e-3)
    flowers_page.shot("line-of-records")


def test_map_without_a_model_says_why_not(flowers_page):
    flowers_page.choose_tool("Probe")
    flowers_page.page.mouse.click(*middle(flowers_page, "elsewhere"))
    flowers_page.says("Only its coordinates are known, not the model")
    assert flowers_page.js("app.probe.value") is None
    assert flowers_page.replies("invert") == []
