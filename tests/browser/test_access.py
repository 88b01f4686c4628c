"""Keyboard, names for screen readers, light and dark, and the layout of a small window."""

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import until

CONTROLS = {
    "button", "checkbox", "radio", "slider", "textbox", "searchbox", "combobox", "spinbutton",
    "application", "DisclosureTriangle", "splitter", "listbox", "menuitem", "tab",
}  # fmt: skip


def open_everything(page):
    page.page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.rest()


def tab_until(page, reached, most=80):
    """Press Tab until something has the focus."""
    for _ in range(most):
        page.page.keyboard.press("Tab")
        if reached():
            return
    raise AssertionError("Tab does not lead there")


def focused(page):
    """Role or tag, and accessible name, of what has the focus."""
    return page.page.evaluate(
        "() => { const e = document.activeElement, given = (name) => e.getAttribute(name);"
        " return [given('role') ?? e.tagName, given('aria-label') ?? e.innerText ?? '']; }"
    )


def next_row(xy, row, direction):
    """The row that an arrow key goes to, written out anew."""
    offsets = xy - xy[row]
    along = offsets @ direction
    aside = np.abs(offsets @ [direction[1], -direction[0]])
    distance = np.where((along > 0) & (aside <= along), along**2 + 4 * aside**2, np.inf)
    return int(np.argmin(distance))


def test_everything_by_keyboard_alone(digits_page, digits):
    press = digits_page.page.keyboard.press
    tab_until(digits_page, lambda: focused(digits_page) == ["application", "Map PCA of 200 rows"])
    xy = digits_page.positions("PCA")
    press("ArrowRight")  # to the row nearest to the middle
    row = int(np.argmin(np.linalg.norm(xy, axis=1)))
    assert digits_page.js("app.pinned.value") == row
    digits_page.says(f"{digits.ids[row]}")
    for key, direction in (
        ("ArrowRight", (1, 0)),
        ("ArrowUp", (0, 1)),
        ("ArrowLeft", (-1, 0)),
        ("ArrowDown", (0, -1)),
    ):
        row = next_row(xy, row, np.array(direction))
        press(key)
        assert digits_page.js("app.pinned.value") == row
        digits_page.says(f"{digits.ids[row]}")
        digits_page.says(f"kind: {digits.labels[row]}")
    press("Space")
    assert digits_page.selection() == [row]
    digits_page.says("1 row selected")
    press("ArrowUp")
    other = digits_page.js("app.pinned.value")
    press("Space")
    assert digits_page.selection() == sorted([row, other])
    press("Space")
    assert digits_page.selection() == [row]
    press("Escape")
    assert digits_page.js("app.pinned.value") == -1
    assert digits_page.selection() == [row]

    # A panel opens by Enter on its title, and its form can be filled in.
    assert digits_page.page.locator("#new-points").get_attribute("open") is None
    tab_until(digits_page, lambda: focused(digits_page) == ["SUMMARY", "New points"])
    press("Enter")
    assert digits_page.page.locator("#new-points").get_attribute("open") is not None
    tab_until(digits_page, lambda: focused(digits_page)[0] == "TEXTAREA")
    digits_page.page.keyboard.type(" ".join(f"{each:g}" for each in digits.X[8]))
    tab_until(digits_page, lambda: focused(digits_page) == ["BUTTON", "Place these rows"])
    press("Enter")
    until(
        lambda: "1 row placed on 3 maps." in digits_page.panel("New points").inner_text(),
        "it is placed",
    )

    # And back from the panels to the maps.
    for _ in range(80):
        press("Shift+Tab")
        if focused(digits_page)[0] == "application":
            break
    press("Escape")
    assert digits_page.selection() == []
    digits_page.says("Nothing is selected")


def test_keys_zoom_pan_and_choose_tools(digits_page):
    press = digits_page.page.keyboard.press
    digits_page.plot("PCA").focus()
    before = digits_page.pixels("PCA")
    press("+")
    assert np.ptp(digits_page.pixels("PCA")[:, 0]) == pytest.approx(1.3 * np.ptp(before[:, 0]))
    press("-")
    np.testing.assert_allclose(digits_page.pixels("PCA"), before, atol=1e-6)
    press("Shift+ArrowRight")
    assert (digits_page.pixels("PCA") - before)[:, 0].max() < -20
    press("0")
    np.testing.assert_allclose(digits_page.pixels("PCA"), before, atol=1e-6)
    for key, tool in (("l", "lasso"), ("p", "probe"), ("d", "line"), ("m", "move")):
        press(key)
        assert digits_page.js("app.tool.value") == tool
        assert digits_page.page.get_by_role("radio", name=tool, exact=False).first.is_checked()


def test_probe_by_keys(digits_page, digits):
    press = digits_page.page.keyboard.press
    digits_page.plot("PCA").focus()
    press("p")
    press("ArrowUp")
    first = digits_page.js("app.probe.value.at")
    press("ArrowRight")
    second = digits_page.js("app.probe.value.at")
    assert second[0] > first[0]
    assert second[1] == first[1]
    panel = digits_page.panel("Reconstruction")
    until(lambda: "At this position" in panel.inner_text(), "the reconstruction")


def accessible(page):
    """All nodes of the accessibility tree: role, name, whether it can have the focus."""
    session = page.page.context.new_cdp_session(page.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    for node in nodes:
        if node.get("ignored"):
            continue
        role = node.get("role", {}).get("value", "")
        name = node.get("name", {}).get("value", "")
        focusable = any(
            each["name"] == "focusable" and each["value"]["value"]
            for each in node.get("properties", [])
        )
        yield role, name, focusable


def test_every_control_has_a_name(digits_page):
    digits_page.click_row("PCA", 5)
    digits_page.js("app.select(Uint32Array.of(1, 2, 3))")
    open_everything(digits_page)
    nodes = list(accessible(digits_page))
    roles = [role for role, *_ in nodes]
    assert {"button", "radio", "textbox", "combobox", "application", "slider", "status"} <= set(
        roles
    )
    nameless = [
        (role, name) for role, name, focusable in nodes
        if (role in CONTROLS or focusable) and not name.strip() and role != "RootWebArea"
    ]  # fmt: skip
    assert nameless == []
    # Pictures, too, except those that are said to be decoration.
    assert [name for role, name, _ in nodes if role in ("image", "img") and not name.strip()] == []


def test_identifiers_are_unique_and_references_lead_somewhere(digits_page):
    open_everything(digits_page)
    twice = digits_page.page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map((each) => each.id);"
        " return ids.filter((id, i) => ids.indexOf(id) !== i); }"
    )
    assert twice == []
    lost = digits_page.page.evaluate(
        "() => ['aria-describedby', 'aria-labelledby', 'aria-controls', 'list', 'for']"
        ".flatMap((name) => [...document.querySelectorAll(`[${name}]`)]"
        ".flatMap((each) => each.getAttribute(name).split(' '))"
        ".filter((id) => !document.getElementById(id)))"
    )
    assert lost == []
    language, title = digits_page.page.evaluate("[document.documentElement.lang, document.title]")
    assert language == "en"
    assert "manifoldry" in title


# Contrast of all text that is seen with what is behind it, after WCAG 2.
CONTRAST = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
  const light = (color) => color.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    const stack = [];
    for (let each = element; each; each = each.parentElement) {
      stack.push(parts(getComputedStyle(each).backgroundColor));
    }
    return stack.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  const root = document.querySelector("#manifoldry-explorer");
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility()) continue;
    if (element.closest(":disabled, svg, canvas, option, .unseen")) continue;
    const below = behind(element), ink = over(parts(getComputedStyle(element).color), below);
    const [a, b] = [light(ink), light(below)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text.slice(0, 40)]);
  }
  return found;
}"""


@pytest.fixture
def preferring(digits_page):
    """Function that sets what the system prefers, on the page that tests share."""
    yield lambda **preferences: digits_page.page.emulate_media(**preferences)
    digits_page.page.emulate_media(color_scheme="light", reduced_motion="no-preference")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(digits_page, preferring, scheme):
    preferring(color_scheme=scheme)
    until(lambda: digits_page.js("app.dark.value") == (scheme == "dark"), "it follows the system")
    digits_page.click_row("PCA", 5)
    digits_page.js("app.select(Uint32Array.of(1, 2, 3))")
    open_everything(digits_page)
    until(
        lambda: "selected" in digits_page.panel("Selection").inner_text(), "the panels are filled"
    )
    box = digits_page.plot("PCA").bounding_box()
    background = digits_page.picture()[int(box["y"]) + 5, int(box["x"]) + 5]
    assert background.min() > 230 if scheme == "light" else background.max() < 60
    contrasts = digits_page.page.evaluate(CONTRAST)
    assert len(contrasts) > 100
    assert [each for each in contrasts if each[0] < 4.5] == []
    digits_page.shot(f"theme-{scheme}")
    # The other one can be chosen by hand.
    choice = digits_page.page.get_by_label("Light or dark")
    choice.select_option("light" if scheme == "dark" else "dark")
    assert digits_page.js("app.dark.value") == (scheme == "light")
    choice.select_option("system")
    assert digits_page.js("app.dark.value") == (scheme == "dark")


def overlap(a, b):
    """Whether two boxes do."""
    return (
        a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]
    )  # fmt: skip


def test_everything_fits_into_a_small_window(digits_page):
    page = digits_page.page
    assert page.viewport_size == {"width": 1280, "height": 720}
    digits_page.click_row("PCA", 5)
    digits_page.js("app.select(Uint32Array.of(1, 2, 3))")
    open_everything(digits_page)
    page.locator("details.menu").evaluate("(menu) => (menu.open = false)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.evaluate("document.documentElement.scrollHeight") <= 720
    column = page.locator("aside")
    assert column.evaluate("(each) => each.scrollWidth <= each.clientWidth")
    wide = column.evaluate(
        "(column) => { const { right } = column.getBoundingClientRect();"
        " return [...column.querySelectorAll('*')]"
        ".filter((each) => each.checkVisibility() && !each.closest('.wide, .unseen, option')"
        " && each.getBoundingClientRect().right > right + 1)"
        ".map((each) => each.outerHTML.slice(0, 80)); }"
    )
    assert wide == []
    # Nothing is above the status line.
    box = page.locator("footer").bounding_box()
    assert box["y"] + box["height"] <= 720.5
    over = page.evaluate(
        "({ x, y, width, height }) => [0.01, 0.25, 0.5, 0.75, 0.99].flatMap((across) =>"
        " [0.2, 0.8].map((down) =>"
        " document.elementFromPoint(x + across * width, y + down * height)))"
        ".filter((each) => !each.closest('footer')).map((each) => each.outerHTML.slice(0, 80))",
        box,
    )
    assert over == []
    # The three maps are large enough to be used, and do not overlap.
    boxes = [each.bounding_box() for each in page.get_by_role("application").all()]
    assert all(min(each["width"], each["height"]) > 200 for each in boxes)
    assert not any(overlap(a, b) for a in boxes for b in boxes if a is not b)


def test_panels_can_be_put_away_and_made_wider(digits_page):
    page = digits_page.page
    width = digits_page.plot("PCA").bounding_box()["width"]
    toggle = page.get_by_role("button", name="Panels", exact=True)
    toggle.click()
    assert not page.locator("aside").is_visible()
    until(lambda: digits_page.plot("PCA").bounding_box()["width"] > width, "the maps take the room")
    toggle.click()
    separator = page.get_by_role("separator", name="Width of the panels")
    before = page.locator("aside").bounding_box()["width"]
    separator.press("ArrowLeft")
    assert page.locator("aside").bounding_box()["width"] == pytest.approx(before + 20, abs=1)
    separator.press("ArrowRight")
    assert page.locator("aside").bounding_box()["width"] == pytest.approx(before, abs=1)


def test_less_motion_is_respected(digits_page, preferring):
    preferring(reduced_motion="reduce")
    name = "Elastic embedding"
    path = digits_page.page.get_by_role("group", name=f"Path of {name}")
    own = digits_page.positions(name)
    path.get_by_role("slider").fill("0")
    until(lambda: not np.array_equal(digits_page.positions(name), own), "the step is drawn")
    path.get_by_role("button", name="Play the path").click()
    # It goes from step to step without anything between.
    at = "app.along.value.get(argument)"
    found = until(lambda: digits_page.js(at, digits_page.maps()[name]), "it plays")
    assert found == 1
    path.get_by_role("button", name="Pause").click()
