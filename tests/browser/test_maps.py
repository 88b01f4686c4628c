"""Maps side by side: what is drawn, hover, pin, colors, legend, and moving the picture."""

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import until

MAPS = ("PCA", "Isomap", "Elastic embedding")


def isolated(pixels, distance=9):
    """Rows without another row nearby, in pixels."""
    gaps = np.linalg.norm(pixels[:, None] - pixels[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.flatnonzero(gaps.min(axis=1) > distance)


def rgb(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)])


def colors_at(page, name, rows):
    """Colors in the middle of points in the window."""
    x, y = np.floor(page.pixels(name)[rows]).astype(int).T
    return page.picture()[y, x]


def test_every_row_is_drawn_in_the_color_of_its_class(digits_page, digits):
    digits_page.toggle("Class names", on=False)
    classes = digits_page.js("app.color(app.shown.value[0]).then(c => c.classes)")
    colors = {each["name"]: rgb(each["color"]) for each in classes}
    for name in MAPS:
        assert (colors_at(digits_page, name, range(len(digits.X))) != 255).any(axis=1).all()
        rows = isolated(digits_page.pixels(name))
        assert len(rows) > 10
        expected = np.array([colors[digits.labels[row]] for row in rows])
        found = colors_at(digits_page, name, rows)
        # Points are a little translucent, on white.
        assert np.abs(found - (0.9 * expected + 0.1 * 255)).max() < 12


def test_models_that_agree_are_drawn_alike(flowers_page):
    # "elsewhere" is the map of PCA, turned, mirrored, enlarged and moved.
    np.testing.assert_allclose(
        flowers_page.positions("elsewhere"), flowers_page.positions("PCA"), atol=1e-5
    )


def test_maps_show_what_the_models_say(digits_page, digits):
    for name, model in digits.models.items():
        Y, drawn = model.embedding_, digits_page.positions(name)
        distances = [np.linalg.norm(each[:, None] - each[None], axis=2) for each in (Y, drawn)]
        scale = distances[1].max() / distances[0].max()
        np.testing.assert_allclose(distances[1], scale * distances[0], atol=1e-5)
        assert np.abs(drawn).max() <= 1


def test_heading_and_legend(digits_page, digits):
    title = digits_page.page.get_by_role("heading", level=1)
    assert title.inner_text() == "digits.csv, PCA.model, Isomap.model, Elastic embedding.model"
    assert "200 rows, 64 features" in digits_page.page.locator("header.top").inner_text()
    legend = digits_page.panel("Color").get_by_role("list", name="Classes").get_by_role("listitem")
    names, counts = np.unique(digits.labels, return_counts=True)
    shown = [text.split("\n") for text in legend.all_inner_texts()]
    assert {(each[0], int(each[1])) for each in shown} == set(
        zip(names, counts.tolist(), strict=True)
    )
    digits_page.shot("maps")


def test_legend_hides_and_shows_classes(digits_page, digits):
    digits_page.toggle("Class names", on=False)
    rows = isolated(digits_page.pixels("PCA"))
    zero = digits.labels[rows] == "digit 0"
    assert 0 < zero.sum() < len(rows)
    color = digits_page.panel("Color")
    color.get_by_role("button", name="digit 0").and_(color.locator(".class")).click()
    background = np.all(colors_at(digits_page, "PCA", rows) == 255, axis=1)
    np.testing.assert_array_equal(background, zero)

    # Rows that are hidden are not under the pointer either.
    digits_page.hover("PCA", int(rows[zero][0]))
    digits_page.rest()
    assert digits_page.js("app.hovered.value") == -1

    color.get_by_role("button", name="Show only digit 0").click()
    background = np.all(colors_at(digits_page, "PCA", rows) == 255, axis=1)
    np.testing.assert_array_equal(background, ~zero)
    color.get_by_role("button", name="None", exact=True).click()
    assert np.all(colors_at(digits_page, "PCA", rows) == 255)
    color.get_by_role("button", name="All", exact=True).click()
    assert not np.all(colors_at(digits_page, "PCA", rows) == 255, axis=1).any()


def test_hover_shows_the_row_and_marks_it_on_all_maps(digits_page, digits):
    digits_page.toggle("Class names", on=False)
    row = int(isolated(digits_page.pixels("PCA"))[3])
    assert not any(len(digits_page.drawn_above(name)) for name in MAPS)
    digits_page.hover("PCA", row)
    digits_page.until(f"app.hovered.value === {row}")
    tip = digits_page.plot("PCA").get_by_role("tooltip")
    until(tip.is_visible, "the tooltip is there")
    assert digits.ids[row] in tip.inner_text()
    assert digits.labels[row] in tip.inner_text()
    for name in MAPS:
        ring, center = digits_page.drawn_above(name), digits_page.pixels(name)[row]
        assert len(ring) > 50
        np.testing.assert_allclose(ring.mean(axis=0), center, atol=1)
        assert np.linalg.norm(ring - center, axis=1).max() < 16
    digits_page.shot("hover-image")

    digits_page.page.mouse.move(2, 2)
    until(lambda: not tip.is_visible(), "the tooltip goes")
    assert not any(len(digits_page.drawn_above(name)) for name in MAPS)


def test_thumbnail_of_an_image_has_its_pixels(digits_page, digits):
    row = int(isolated(digits_page.pixels("Isomap"))[0])
    digits_page.hover("Isomap", row)
    image = digits_page.plot("Isomap").get_by_role("img", name="image of 8 × 8 pixels")
    image.wait_for()
    np.testing.assert_allclose(
        digits_page.drawn_image(image), 255 - digits.X[row] * 255 / digits.X.max(), atol=1
    )


def test_fields_of_a_record(flowers_page, flowers):
    row = int(isolated(flowers_page.pixels("PCA"))[5])
    flowers_page.hover("PCA", row)
    tip = flowers_page.plot("PCA").get_by_role("tooltip")
    until(tip.is_visible, "the tooltip is there")
    text = tip.inner_text()
    assert flowers.ids[row] in text
    for name, value in zip(flowers.names, flowers.X[row], strict=True):
        assert f"{name}\n{value:g}" in text
    flowers_page.shot("hover-record")


def test_click_keeps_a_row_in_view(digits_page, digits):
    row = int(isolated(digits_page.pixels("PCA"))[1])
    panel = digits_page.panel("Row")
    assert "Click it to keep it" in panel.inner_text()
    digits_page.click_row("PCA", row)
    until(lambda: digits.ids[row] in panel.inner_text(), "the row is in the panel")
    digits_page.page.mouse.move(2, 2)
    digits_page.rest()
    assert digits.ids[row] in panel.inner_text()
    panel.get_by_role("button", name="Add to the selection").click()
    assert digits_page.selection() == [row]
    panel.get_by_role("button", name="Remove from the selection").click()
    assert digits_page.selection() == []
    panel.get_by_role("button", name="Let go").click()
    assert digits_page.js("app.pinned.value") == -1

    # A click beside all rows lets go, too.
    digits_page.click_row("PCA", row)
    box = digits_page.plot("PCA").bounding_box()
    digits_page.page.mouse.click(box["x"] + 3, box["y"] + 3)
    assert digits_page.js("app.pinned.value") == -1


def test_colors_by_a_feature(flowers_page, flowers):
    flowers_page.toggle("Class names", on=False)
    flowers_page.color_by("petal length")
    flowers_page.until("app.color(app.shown.value[0]).then(c => c.kind === 'values')")
    rows = isolated(flowers_page.pixels("PCA"))
    found = colors_at(flowers_page, "PCA", rows)
    value = flowers.X[rows, 2]
    # From violet to yellow: red and green grow, blue falls.
    low, high = found[value < 1.5].mean(axis=0), found[value > 6].mean(axis=0)
    assert high[0] > low[0] + 50
    assert high[1] > low[1] + 50
    assert high[2] < low[2]
    ends = flowers_page.panel("Color").locator(".ends").inner_text().split()
    assert [float(end) for end in ends] == [flowers.X[:, 2].min(), flowers.X[:, 2].max()]
    flowers_page.shot("color-by-feature")
    flowers_page.color_by("nothing")
    found = colors_at(flowers_page, "PCA", rows)
    assert np.abs(found - found[0]).max() < 6


def test_feature_among_many_is_found_by_its_name(digits_page, digits):
    panel = digits_page.panel("Color")
    panel.get_by_label("Feature").fill("p36")
    panel.get_by_label("Feature").press("Enter")
    digits_page.until("app.colorBy.value.name === 'p36'")
    until(panel.locator(".ramp").is_visible, "the ramp is there")
    ends = panel.locator(".ends").inner_text().split()
    assert [float(end) for end in ends] == [digits.X[:, 36].min(), digits.X[:, 36].max()]
    panel.get_by_label("Feature").fill("weight")
    panel.get_by_label("Feature").press("Enter")
    until(lambda: "No feature is called “weight”" in panel.inner_text(), "the refusal")


def test_maps_are_hidden_and_shown(digits_page):
    digits_page.page.get_by_role("button", name="Hide Isomap").click()
    assert digits_page.plot("Isomap").count() == 0
    menu = digits_page.page.locator("details.menu > summary")
    assert menu.inner_text().startswith("Maps (2 of 3 shown)")
    menu.click()
    digits_page.page.get_by_role("checkbox", name="Isomap").check()
    assert digits_page.plot("Isomap").is_visible()
    for name in MAPS:
        digits_page.page.get_by_role("checkbox", name=name).uncheck()
    assert digits_page.page.get_by_text("No map is shown.").is_visible()


def test_pointer_moves_and_wheel_zooms(digits_page):
    before, other = digits_page.pixels("PCA"), digits_page.pixels("Isomap")
    box = digits_page.plot("PCA").bounding_box()
    start = np.array([box["x"] + 5, box["y"] + 5])
    digits_page.drag([start, start + np.array([40, 30])])
    np.testing.assert_allclose(digits_page.pixels("PCA"), before + np.array([40, 30]), atol=0.01)
    np.testing.assert_allclose(digits_page.pixels("Isomap"), other)

    at = np.round(digits_page.pixels("PCA")[7])
    offsets = digits_page.pixels("PCA") - at
    digits_page.page.mouse.move(*at)
    digits_page.page.mouse.wheel(0, -200)
    until(lambda: np.ptp(digits_page.pixels("PCA")[:, 0]) > np.ptp(before[:, 0]) + 1, "zoomed")
    zoomed = digits_page.pixels("PCA") - at
    factor = zoomed[0] / offsets[0]
    assert factor[0] == pytest.approx(factor[1])
    assert factor[0] > 1.1
    np.testing.assert_allclose(zoomed, factor[0] * offsets, atol=0.05)  # what is under it stays

    digits_page.page.get_by_role("button", name="Whole maps").click()
    np.testing.assert_allclose(digits_page.pixels("PCA"), before)
    digits_page.page.mouse.move(*at)
    digits_page.page.mouse.wheel(0, 200)
    until(lambda: not np.allclose(digits_page.pixels("PCA"), before), "zoomed out")
    digits_page.page.mouse.dblclick(*at)
    until(lambda: np.allclose(digits_page.pixels("PCA"), before), "the whole map again")


def test_trackpad_pans_with_two_fingers_and_pinches(digits_page):
    before = digits_page.pixels("PCA")
    digits_page.page.mouse.move(*np.round(before[7]))
    digits_page.page.mouse.wheel(12.5, 7.25)
    until(lambda: not np.allclose(digits_page.pixels("PCA"), before), "the picture moves")
    np.testing.assert_allclose(digits_page.pixels("PCA"), before - [12.5, 7.25], atol=0.01)
    # A trackpad sends whole pixels now and then; it is still the same gesture.
    digits_page.page.mouse.wheel(0, 4)
    until(lambda: digits_page.pixels("PCA")[0, 1] < before[0, 1] - 11, "it moves on")
    np.testing.assert_allclose(digits_page.pixels("PCA"), before - [12.5, 11.25], atol=0.01)
    with digits_page.held("Control"):  # as browsers report a pinch
        digits_page.page.mouse.wheel(0, -20.5)
    until(lambda: np.ptp(digits_page.pixels("PCA")[:, 0]) > 1.1 * np.ptp(before[:, 0]), "zoomed")
    assert digits_page.page.evaluate("visualViewport.scale") == 1  # the page itself does not


def test_linked_zoom_moves_all_maps(digits_page):
    digits_page.toggle("Link zoom", on=True)
    before = {name: digits_page.pixels(name) for name in MAPS}
    digits_page.page.mouse.move(*np.round(before["PCA"][7]))
    digits_page.page.mouse.wheel(0, -400)
    until(lambda: np.ptp(digits_page.pixels("PCA")) > 1.2 * np.ptp(before["PCA"]), "zoomed")
    factors = [np.ptp(digits_page.pixels(n)[:, 0]) / np.ptp(before[n][:, 0]) for n in MAPS]
    np.testing.assert_allclose(factors, factors[0])


def test_class_names_are_on_the_maps(digits_page):
    digits_page.rest()
    assert len(digits_page.drawn_above("PCA"))
    digits_page.toggle("Class names", on=False)
    assert not len(digits_page.drawn_above("PCA"))
    digits_page.toggle("Class names", on=True)
    assert len(digits_page.drawn_above("PCA"))
