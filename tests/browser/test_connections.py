"""Several pages, reload, the end of the server, and everything that is to be refused."""

import http.client
import re
import signal
import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import PATIENCE, until

from manifoldry.explorer.messages import pack


def label_setosa(page, column, value):
    page.panel("Color").get_by_role("button", name="Select 50 rows of setosa").click()
    panel = page.panel("Selection")
    panel.get_by_label("Column").fill(column)
    panel.get_by_label("Value").fill(value)
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: re.search(r"50 rows (labeled|without)", panel.inner_text()), "it is labeled")


def test_two_browsers_at_once_and_reload(flowers_page, flowers_explored, open_page):
    other, asked = open_page(), []
    other.page.on("request", lambda request: asked.append(request.url))
    other.open(flowers_explored.server.link)
    assert other.js("app.start.n") == 150
    # Nothing comes from elsewhere.
    own = f"http://127.0.0.1:{flowers_explored.server.port}/"
    assert {Path(url.split("?")[0]).name for url in asked} >= {"explorer.js", "style.css"}
    assert all(url.startswith((own, "data:", "blob:")) for url in asked)
    label_setosa(flowers_page, "pet", "cat")
    color = other.page.get_by_label("Color by")
    until(lambda: "pet" in color.inner_text(), "the label is in the other browser")
    other.color_by("pet")
    legend = other.panel("Color").get_by_role("list", name="Classes")
    until(lambda: "cat\n50" in legend.inner_text(), "its legend")
    # What each looks at is its own affair.
    assert other.selection() == []
    assert flowers_page.js("app.colorBy.value.name") == "kind"
    # A label that is changed in one is changed in the other.
    label_setosa(flowers_page, "pet", "dog")
    until(lambda: "dog\n50" in legend.inner_text(), "the new label")

    maps = other.maps()
    other.page.get_by_label("Light or dark").select_option("dark")
    other.reload()
    assert other.maps() == maps
    assert other.js("app.dark.value")
    assert other.js("app.labels.value.map(l => l.name)") == ["kind", "pet"]
    label_setosa(other, "pet", "")
    until(lambda: flowers_page.js("app.labels.value.length") == 1, "the label is gone in both")


@pytest.fixture
def small(tmp_path):
    """Files of a small exploration that starts quickly."""
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc")).to_csv(
        tmp_path / "small.csv", index=False
    )
    np.save(tmp_path / "map.npy", rng.normal(size=(30, 2)))
    return tmp_path, "small.csv", "--map", "map.npy", "-o", "labels.csv"


def test_end_restart_and_kill(small, start_server, open_page, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    server = start_server(*small)
    page = open_page(server.link)
    page.expected.append("WebSocket connection to .* failed")  # which browsers say themselves
    assert list(temporary.iterdir()) != []
    # Ctrl-C ends it, and nothing is left.
    assert server.stop() == 0
    assert list(temporary.iterdir()) == []
    trouble = page.page.get_by_role("alert").first
    until(
        lambda: re.search("has ended|connection to the explorer is lost", trouble.inner_text()),
        "the end",
    )
    # On the same port, its link is another one. What was on the page is not thrown away.
    again = start_server(*small, port=server.port)
    assert again.token != server.token
    until(
        lambda: "This link is not that of a running explorer." in trouble.inner_text(),
        "the link is of no use",
    )
    assert "open the link that it prints" in trouble.inner_text()
    assert page.plot("map").is_visible()
    page.shot("restarted")
    page.open(again.link)
    assert page.js("app.start.n") == 30

    again.stop(signal.SIGKILL)
    until(lambda: "The connection to the explorer is lost." in trouble.inner_text(), "it says so")
    # What is on the page can still be looked at; what needs the server is refused with a reason.
    page.choose_tool("Lasso")
    box = page.plot("map").bounding_box()
    x, y = [box["x"] + 1, box["x"] + box["width"] - 1], [box["y"] + 1, box["y"] + box["height"] - 1]
    page.drag([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])
    assert len(page.selection()) == 30
    page.panel("Selection").get_by_role("button", name="Export the selected rows").click()
    until(
        lambda: "connection to the explorer is lost" in page.panel("Selection").inner_text(),
        "the reason",
    )


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token={token}x"])
def test_without_the_token_there_is_no_page(flowers_explored, open_page, query):
    page = open_page()
    page.expected.append("status of 403")
    port, token = flowers_explored.server.port, flowers_explored.server.token
    response = page.page.goto(f"http://127.0.0.1:{port}/{query.format(token=token)}")
    assert response.status == 403
    text = page.page.inner_text("body")
    assert "No access" in text
    assert "This link has no valid token." in text
    assert page.page.locator("script").count() == 0
    assert "flowers" not in page.page.content()


def closed_after(websocket, *frames):
    """The code with which a websocket is closed, without a message before."""
    from websockets.exceptions import ConnectionClosed

    try:
        for frame in frames:
            websocket.send(frame)
        raise AssertionError(f"there was a reply: {websocket.recv(timeout=PATIENCE)[:80]!r}")
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else "without a code"


def test_wrong_token_gets_nothing_by_the_socket(flowers_explored):
    from websockets.sync.client import connect

    start = pack({"id": 1, "ask": "start", "with": {}})
    port = flowers_explored.server.port
    for query in ("", "?token=wrong"):
        with connect(f"ws://127.0.0.1:{port}/socket{query}") as websocket:
            assert closed_after(websocket, start) == 4403


@pytest.fixture
def elsewhere(tmp_path):
    """A page of another origin, on this machine."""
    (tmp_path / "index.html").write_text("<!doctype html><title>elsewhere</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.func.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_page_of_another_origin_gets_nothing(flowers_explored, open_page, elsewhere):
    page = open_page().page
    server = flowers_explored.server
    page.goto(elsewhere)
    frame = list(pack({"id": 1, "ask": "start", "with": {}}))
    heard = page.evaluate(
        "([address, frame]) => new Promise((done) => { const heard = [];"
        " const socket = new WebSocket(address); socket.binaryType = 'arraybuffer';"
        " socket.onopen = () => socket.send(new Uint8Array(frame));"
        " socket.onmessage = (message) => heard.push(message.data.byteLength);"
        " socket.onclose = (event) => done([event.code, heard]); })",
        [server.socket, frame],
    )
    assert heard == [4403, []]


def test_page_of_another_origin_cannot_read_or_frame_it(flowers_explored, open_page, elsewhere):
    opened = open_page()
    opened.expected.append(
        "CORS policy|Failed to load resource|X-Frame-Options|frame-ancestors|CORP|violates"
    )
    page, link = opened.page, flowers_explored.server.link
    page.goto(elsewhere)
    read = "(link) => fetch(link).then((r) => r.text(), (error) => 'refused: ' + error)"
    assert page.evaluate(read, link).startswith("refused")
    script = f"http://127.0.0.1:{flowers_explored.server.port}/explorer.js"
    load = (
        "(src) => new Promise((done) => { const script = document.createElement('script');"
        " script.onload = () => done('loaded'); script.onerror = () => done('refused');"
        " script.src = src; document.body.append(script); })"
    )
    assert page.evaluate(load, script) == "refused"
    page.evaluate(
        "(link) => new Promise((done) => { const frame = document.createElement('iframe');"
        " frame.onload = done; frame.src = link; document.body.append(frame); })",
        link,
    )
    (frame,) = page.frames[1:]
    assert "manifoldry" not in frame.content()


def raw(port, path, **headers):
    """A request whose path is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    return response.status, response.read().decode("utf-8", "replace")


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py", "/../../../../../../../../etc/passwd", "/..%2f..%2fserver.py",
        "/%2e%2e/%2e%2e/server.py", "/%2e%2e%2fserver.py", "/static/../server.py",
        "/explorer.js/../../server.py", "//etc/passwd", "/%2fetc%2fpasswd", "/..\\server.py",
        "/explorer.js%00.html", "/index.html", "/refused.html", "/labels.csv", "/flowers.csv",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages(flowers_explored, path):
    token = flowers_explored.server.token
    for query in ("", f"?token={token}"):
        status, body = raw(flowers_explored.server.port, path + query)
        assert status in (400, 403, 404)
        assert len(body) < 100
        assert not re.search(r"root:|import|setosa|manifoldry-explorer", body)


def test_only_addresses_of_this_machine_are_answered(flowers_explored):
    port, token = flowers_explored.server.port, flowers_explored.server.token
    status, _ = raw(port, f"/?token={token}", Host=f"127.0.0.1:{port}")
    assert status == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}"):
        status, body = raw(port, f"/?token={token}", Host=host)
        assert status == 403
        assert "answers only to addresses of this machine" in body
    status, _ = raw(port, f"/?token={token}", Origin="http://evil.example")
    assert status == 403
    # Nobody else can connect.
    own = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in {each for each in own if not each.startswith("127.")}:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, port), timeout=5)


def test_damaged_messages_do_not_end_the_explorer(flowers_page, flowers_explored):
    from websockets.sync.client import connect

    server = flowers_explored.server
    cut = pack({"id": 1, "ask": "distinguish", "with": {"rows": np.arange(100, dtype=np.uint32)}})[
        :-200
    ]
    for frame in (b"", b"\xff" * 40, b"\x10\x00\x00\x00{}", cut, "text"):
        with connect(server.socket) as websocket:
            assert closed_after(websocket, frame)
    for message in ([], 3, {"ask": "__class__", "with": {}}, {"ask": "start", "with": []}):
        with connect(server.socket) as websocket:
            websocket.send(pack(message))
            assert b"reload the page" in websocket.recv(timeout=PATIENCE)
    assert "this map is not here" in server.ask("positions", map="../x")
    assert flowers_page.js("app.ask('search', { text: 'iris-3' }).then(found => found.total)") > 0


def test_a_message_that_is_too_large_is_refused(flowers_explored):
    from websockets.sync.client import connect

    with connect(flowers_explored.server.socket) as websocket:
        assert closed_after(websocket, bytes(17 * 2**20))
    assert flowers_explored.server.ask("start")["n"] == 150
