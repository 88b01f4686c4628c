"""A million points; by hand, with pytest -m slow."""

import base64

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import until

pytestmark = pytest.mark.slow
N = 1_000_000
LONG = 300  # seconds, with software WebGL


@pytest.fixture(scope="module")
def million(tmp_path_factory, start_server):
    """A million rows, a map of them, and their server."""
    folder = tmp_path_factory.mktemp("million")
    rng = np.random.default_rng(0)
    centers = rng.uniform(-1, 1, size=(40, 2))
    Y = (centers[rng.integers(0, 40, size=N)] + 0.08 * rng.normal(size=(N, 2))).astype(np.float32)
    X = np.column_stack([Y, rng.normal(size=(N, 3))]).astype(np.float32)
    np.save(folder / "million.npy", X)
    np.save(folder / "map.npy", Y)
    server = start_server(folder, "million.npy", "--map", "map.npy")
    yield server
    server.stop()


@pytest.fixture
def million_page(million, open_page):
    page = open_page()
    page.page.set_default_timeout(1000 * LONG)
    page.open(million.link)
    return page


def places(page):
    """Where the rows are in the window, without a million numbers as text."""
    text = page.js(
        "(() => { const name = app.maps.value[0].id; const xy = positions(name);"
        " const bytes = new Uint8Array(xy.buffer, xy.byteOffset, xy.byteLength); let text = '';"
        " for (let i = 0; i < bytes.length; i += 32768)"
        " text += String.fromCharCode(...bytes.subarray(i, i + 32768));"
        " return btoa(text); })()"
    )
    xy = np.frombuffer(base64.b64decode(text), dtype=np.float32).reshape(-1, 2).astype(float)
    known = [0, 1, 2]
    drawn = np.array(page.js("argument.map((row) => place(app.maps.value[0].id, row))", known))
    design = np.column_stack([xy[known], np.ones(3)])
    return np.column_stack([xy, np.ones(len(xy))]) @ np.linalg.solve(design, drawn)


def seen(page):
    """Whether each row has a colored pixel, and how many rows are alone in theirs."""
    page.toggle("Class names", on=False)
    page.page.mouse.move(2, 2)
    until(lambda: settled(page), "all points are drawn", LONG)
    picture = page.picture()
    box = page.plot("map").bounding_box()
    at = np.floor(places(page)).astype(int)
    inside = (
        (at[:, 0] > box["x"] + 1) & (at[:, 0] < box["x"] + box["width"] - 2)
        & (at[:, 1] > box["y"] + 1) & (at[:, 1] < box["y"] + box["height"] - 2)
    )  # fmt: skip
    at = at[inside]
    colored = (picture < 254).any(axis=2)
    counts = np.zeros(colored.shape, dtype=int)
    np.add.at(counts, (at[:, 1], at[:, 0]), 1)
    around = sum(np.roll(counts, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    alone = around[at[:, 1], at[:, 0]] == 1
    return colored[at[:, 1], at[:, 0]], alone


def settled(page):
    """Whether no picture was drawn for half a second."""
    before = page.js("frames()")
    page.page.wait_for_timeout(500)
    return page.js("frames()") == before


def test_a_million_points_are_drawn_and_not_a_sample(million_page):
    assert million_page.js("app.start.n") == N
    assert "1,000,000 rows" in million_page.page.locator("header.top").inner_text()
    colored, alone = seen(million_page)
    assert len(colored) > 0.99 * N
    assert colored.mean() > 0.999
    assert alone.sum() > 1000
    # Of a sample of half of the rows, half of the rows that are alone would be missing.
    assert colored[alone].mean() > 0.99
    million_page.shot("million")

    # Also where it is enlarged.
    million_page.page.mouse.move(*np.round(places(million_page)[0]))
    million_page.page.mouse.wheel(0, -1200)
    colored, alone = seen(million_page)
    assert colored.mean() > 0.999
    assert colored[alone].mean() > 0.99
    million_page.shot("million-enlarged")


def test_a_million_points_can_be_moved_selected_and_found(million_page, million):
    start = places(million_page)[0]
    box = million_page.plot("map").bounding_box()
    middle = np.round([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
    frames = million_page.js("frames()")
    mouse = million_page.page.mouse
    mouse.move(*middle)
    mouse.down()
    for step in range(1, 11):
        mouse.move(middle[0] + 6 * step, middle[1] + 3 * step)
        million_page.page.wait_for_timeout(50)
    mouse.up()
    np.testing.assert_allclose(places(million_page)[0], start + np.array([60, 30]), atol=0.1)
    assert million_page.js("frames()") - frames >= 3  # pictures were drawn on the way
    colored, _ = seen(million_page)
    assert colored.mean() > 0.999  # and then all points

    million_page.page.get_by_role("button", name="Whole maps").click()
    million_page.choose_tool("Lasso")
    corners = np.array([(-80, -80), (80, -80), (80, 80), (-80, 80)]) + middle
    million_page.drag(corners)
    at = places(million_page)
    inside = ((at > corners[0]) & (at < corners[2])).all(axis=1)
    on_edge = (np.abs(at - corners[0]) < 0.02).any(axis=1) | (np.abs(at - corners[2]) < 0.02).any(
        axis=1
    )
    count = million_page.js("app.selection.value.length")
    assert abs(count - inside.sum()) <= on_edge.sum()
    assert count > 1000
    selected = million_page.panel("Selection")
    until(lambda: selected.get_by_role("table").count() > 0, "what distinguishes it", LONG)

    box = million_page.panel("Find").get_by_role("searchbox")
    box.fill("row 765,432".replace(",", ""))
    box.press("Enter")
    until(lambda: million_page.js("app.pinned.value") == 765_431, "the row is found", LONG)
    row = million_page.panel("Row")
    until(lambda: "row 765432" in row.inner_text().replace(",", ""), "its facts", LONG)
    million_page.color_by("column 3")
    until(million_page.panel("Color").locator(".ramp").is_visible, "its colors", LONG)


def test_pages_of_a_million_rows_share_the_server(million_page, million, open_page):
    other = open_page()
    other.page.set_default_timeout(1000 * LONG)
    other.open(million.link)
    assert other.js("app.start.n") == million_page.js("app.start.n") == N


def test_file_of_a_gigabyte_that_is_declared_smaller(million, million_page):
    """A page that lies about the size of a file does not get more room than it has asked for."""
    from websockets.sync.client import connect

    from manifoldry.explorer.messages import pack, unpack

    def ask(websocket, **arguments):
        websocket.send(pack({"id": 1, "ask": "upload", "with": arguments}))
        while (message := unpack(websocket.recv(timeout=LONG))).get("id") != 1:
            pass
        return message.get("reply", message.get("error"))

    part = np.zeros(2**20, dtype=np.uint8)
    with connect(million.socket, max_size=None) as websocket:
        reply = ask(websocket, id=None, name="x.csv", offset=0, size=150 * 2**20, bytes=part)
        for number in range(1, 150):
            reply = ask(
                websocket,
                id=reply["id"],
                name="x.csv",
                offset=number * 2**20,
                size=150 * 2**20,
                bytes=part,
            )
        assert reply["received"] == 150 * 2**20
        refused = ask(
            websocket, id=reply["id"], name="x.csv", offset=150 * 2**20, size=10**9, bytes=part
        )
        assert "do not fit together" in refused
    assert million_page.js("app.ask('search', { text: '77' }).then((found) => found.total)") == 1
