"""The server, in a thread, with requests as browsers and attackers send them."""

import asyncio
import contextlib
import http.client
import json
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import numpy as np
import psutil
import pytest

from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.messages import pack, unpack
from manifoldry.explorer.session import Session

uvicorn = pytest.importorskip("uvicorn")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

from starlette.websockets import WebSocketDisconnect  # noqa: E402

from manifoldry.explorer.server import (  # noqa: E402
    MOST_FRAME_BYTES,
    REFUSED,
    _Page,
    explorer_app,
)
from manifoldry.explorer.serving import Address  # noqa: E402


class Served:
    """A session, and how to reach it."""

    def __init__(self, session, address):
        self.session, self.port = session, address.port
        self.token, self.ticket = address.token, address.ticket

    def get(self, path, method="GET", **headers):
        """Status, headers and text; the path is sent as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()

    def page(self, **headers):
        return self.get(f"/?token={self.token}", **headers)

    def socket(self, token=None, origin=None, **options):
        url = f"ws://127.0.0.1:{self.port}/socket?token={self.token if token is None else token}"
        options = {"max_size": None, "open_timeout": 20, "close_timeout": 1} | options
        return client.connect(url, origin=origin, **options)


@contextlib.contextmanager
def serving_flowers(flowers, pca):
    """A server in a thread."""
    session = Session(ExploredData(flowers, flowers.X), "flowers", [])
    session.add_map("PCA", pca.embedding_, pca, method="pca")
    address = Address.bound(0)
    config = uvicorn.Config(
        explorer_app(session, address.token, address.ticket), log_level="error", lifespan="off",
        ws_max_size=MOST_FRAME_BYTES, server_header=False, timeout_graceful_shutdown=2,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = Thread(target=lambda: server.run(sockets=[address.listening]), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Served(session, address)
    finally:
        server.should_exit = True
        thread.join(20)
        session.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def served(flowers, pca):
    with serving_flowers(flowers, pca) as found:
        yield found


def send(page, number, action, **args):
    page.send(pack({"id": number, "ask": action, "with": args}))


def reply(page, number, timeout=20):
    """The reply to a request; events before it are left out."""
    while True:
        message = unpack(page.recv(timeout=timeout))
        if message.get("id") == number:
            return message


def event(page, name, timeout=20):
    while True:
        message = unpack(page.recv(timeout=timeout))
        if message.get("event") == name:
            return message["with"]


# Pages


def test_the_page_with_its_token(served):
    status, headers, text = served.page()
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert served.token not in text
    assert "explorer.js" in text


@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?Token={token}", "?token={token}x",
                                   "?token={token}%00", "?token=é", "?x={token}"])  # fmt: skip
def test_a_page_without_a_valid_token(served, query):
    path = "/" + query.format(token=served.token).replace("é", "%C3%A9")
    status, headers, text = served.get(path)
    assert status == 403
    assert "Open the link that manifoldry explore has printed" in text
    check_headers(headers)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7321", "127.0.0.1.evil.example",
                                  "localhost.evil.example", "0.0.0.0", "169.254.169.254", "",
                                  "[::1", "[::2]:80", "127.0.0.1@evil.example",
                                  "2130706433"])  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/explorer.js", "/nothing"])
def test_names_of_other_machines(served, host, path):
    """A page of an attacker whose name leads to this machine (DNS rebinding)."""
    status, headers, text = served.get(f"{path}?token={served.token}", Host=host)
    assert status in (400, 403)
    assert "addresses of this machine" in text or status == 400
    assert "token" not in text.lower().replace("no valid token", "")
    if status == 403:
        check_headers(headers)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
@pytest.mark.parametrize("port", ["", ":80", ":9999"])
def test_names_of_this_machine_with_any_port(served, host, port):
    """The other end of an ssh tunnel may have another port."""
    assert served.page(Host=host + port)[0] == 200
    assert served.page(Host=host + port, Origin=f"http://{host}{port}")[0] == 200
    url = f"ws://{host}{port}/socket?token={served.token}"
    seen = f"{host.lower()}{port.replace(':80', '')}"  # as browsers write it
    raw = socket.create_connection(("127.0.0.1", served.port))
    with client.connect(url, sock=raw, origin=f"http://{seen}") as page:
        send(page, 1, "search", text="flower3")
        assert reply(page, 1)["reply"]["total"] == 1


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}",
                                    "http://127.0.0.1:{other}", "http://localhost:{port}", "file://",
                                    "http://127.0.0.1:{port}.evil.example"])  # fmt: skip
@pytest.mark.parametrize("path", ["/?token={token}", "/explorer.js", "/style.css"])
def test_pages_of_other_sites(served, origin, path):
    origin = origin.format(port=served.port, other=served.port + 1)
    status, headers, text = served.get(path.format(token=served.token), Origin=origin)
    assert status == 403
    assert "pages of other sites" in text
    check_headers(headers)


def check_headers(headers):
    """As OWASP recommends for a page that shows data of its user."""
    headers = {name.lower(): value for name, value in headers.items()}
    policy = dict(part.strip().split(" ", 1) for part in
                  headers["content-security-policy"].split(";"))  # fmt: skip
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(("path", "kind"), [("/explorer.js", "text/javascript"),
                                            ("/style.css", "text/css"),
                                            ("/icon.svg", "image/svg+xml")])  # fmt: skip
def test_static_files(served, path, kind):
    status, headers, text = served.get(path)
    assert status == 200
    assert headers["content-type"].startswith(kind)
    assert text
    check_headers(headers)


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/..%2fserver.py", "/%2e%2e/server.py", "/%2e%2e%2fserver.py", "//etc/passwd",
     "/etc/passwd", "/static/../server.py", "/static/explorer.js", "/explorer.js/", "/./server.py",
     "/..\\server.py", "/%5c..%5cserver.py", "/index.html", "/refused.html", "/explorer.js%00.txt",
     "/%00", "/explorer.js/../../server.py", "/....//server.py", "/__init__.py", "/socket",
     "/" + "a" * 5000, "/%ff", "/file:///etc/passwd", "/explorer.js;/etc/passwd", "/EXPLORER.JS"],
)  # fmt: skip
def test_no_other_file_is_served(served, path):
    status, headers, text = served.get(path)
    assert status in (400, 403, 404)
    assert len(text) < 200
    assert "import" not in text
    assert "root:" not in text
    if status != 400:  # which is no answer of the application
        check_headers(headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods(served, method):
    status, headers, _ = served.get(f"/?token={served.token}", method)
    assert status == 405
    assert "access-control-allow-origin" not in {name.lower() for name in headers}


def test_only_this_machine_can_connect(served):
    listening = [each for each in psutil.Process().net_connections() if each.status == "LISTEN"]
    assert {each.laddr.ip for each in listening if each.laddr.port == served.port} == {"127.0.0.1"}


def test_a_ticket_leads_to_the_page_once(flowers, pca, until):
    with serving_flowers(flowers, pca) as served:
        assert len({served.ticket, served.token}) == 2
        assert len(served.ticket) >= 32
        for wrong in ("", "x", served.token, served.ticket[:-1], served.ticket + "x"):
            status, headers, text = served.get(f"/?ticket={wrong}")
            assert status == 403
            assert served.token not in text + str(headers)
            check_headers(headers)
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert served.get(f"/?ticket={served.ticket}", **headers)[0] == 403
        status, headers, text = served.get(f"/?ticket={served.ticket}")
        assert (status, text) == (303, "")
        check_headers(headers)
        location = {name.lower(): value for name, value in headers.items()}["location"]
        assert location == f"/?token={served.token}"
        assert served.get(location)[0] == 200
        status, headers, text = served.get(f"/?ticket={served.ticket}")
        assert status == 403
        assert served.token not in text + str(headers)
        assert served.page()[0] == 200


def test_of_two_that_have_the_ticket_one_gets_in(flowers, pca):
    with serving_flowers(flowers, pca) as served, ThreadPoolExecutor(8) as pool:
        paths = [f"/?ticket={served.ticket}"] * 16
        found = sorted(each[0] for each in pool.map(served.get, paths))
        assert found == [303] + [403] * 15


def test_a_ticket_opens_no_socket(served):
    with served.socket(served.ticket) as page:
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code == REFUSED
    url = f"ws://127.0.0.1:{served.port}/socket?ticket={served.ticket}"
    with client.connect(url) as page:
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code == REFUSED


# Sockets


@pytest.mark.parametrize(
    ("token", "origin"),
    [("wrong", None), ("", None), (None, "http://evil.example"), (None, "null"),
     (None, "http://localhost")],
)  # fmt: skip
def test_sockets_of_others_are_closed(served, token, origin):
    before = len(served.session._listeners)
    with served.socket(token, origin) as page:
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code == REFUSED
    assert len(served.session._listeners) == before


def test_a_socket_for_another_name_is_closed(served):
    with client.connect(
        f"ws://evil.example:{served.port}/socket?token={served.token}",
        sock=socket.create_connection(("127.0.0.1", served.port)),
    ) as page:
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code == REFUSED


def test_a_page_is_answered(served, pca):
    with served.socket(origin=f"http://127.0.0.1:{served.port}") as page:
        send(page, 1, "start")
        start = reply(page, 1)["reply"]
        assert (start["n"], start["hosted"]) == (150, "page")
        send(page, 2, "positions", map=start["maps"][0]["id"], step=None)
        xy = reply(page, 2)["reply"]["xy"].reshape(-1, 2)
        assert np.corrcoef(xy[:, 0], pca.embedding_[:, 0])[0, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x00", b"garbage", b"\xff" * 100, "text", "", struct.pack("<I", 2**31) + b"{}",
     struct.pack("<I", 2) + b"[]",
     pack({"id": 1})[:-1] if len(pack({"id": 1})) % 8 else pack({"id": 1})[:9],
     struct.pack("<I", 1404) + b"[" * 702 + b"]" * 702],
)  # fmt: skip
def test_garbage_ends_the_connection_and_no_more(served, sent):
    with served.socket() as page:
        page.send(sent)
        with pytest.raises(exceptions.ConnectionClosed):
            reply(page, "none")
        assert page.close_code == 1003
    with served.socket() as page:
        send(page, 1, "search", text="setosa")
        assert reply(page, 1)["reply"]["total"] == 50


def test_too_large_frames_are_refused(served):
    with served.socket(compression=None) as page:
        with contextlib.suppress(exceptions.ConnectionClosed, ConnectionError):
            page.send(search_beside(MOST_FRAME_BYTES + 8))
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code in (1009, 1006)  # the reason may be lost behind unread data
    with served.socket(compression=None) as page:
        page.send(search_beside(MOST_FRAME_BYTES))
        assert reply(page, 1)["reply"]["total"] == 1


def search_beside(size):
    """A request as a frame of so many bytes, most of them in an array that is not looked at."""
    args = {"text": "flower3", "more": np.zeros(size - 1000, dtype=np.uint8)}
    short = size - len(pack({"id": 1, "ask": "search", "with": args}))
    args["more"] = np.zeros(size - 1000 + short, dtype=np.uint8)
    found = pack({"id": 1, "ask": "search", "with": args})
    assert len(found) == size
    return found


def test_long_texts_are_refused_before_they_are_read(served):
    """Arrays may be large, but no text is."""
    with served.socket(compression=None) as page:
        page.send(pack({"id": 1, "ask": "search", "with": {"text": "x" * 2**21}}))
        assert "No row is called" in reply(page, 1)["reply"]["text"]
        page.send(pack({"id": 2, "ask": "search", "with": {"text": "x" * 2**22}}))
        with pytest.raises(exceptions.ConnectionClosed):
            reply(page, 2)
        assert page.close_code == 1003


def test_a_compressed_bomb_is_refused(served):
    """A few kilobytes that would become a gigabyte."""
    with served.socket() as page:  # with compression, if the server agrees
        with contextlib.suppress(exceptions.ConnectionClosed, ConnectionError):
            page.send(search_beside(4 * MOST_FRAME_BYTES))
        with pytest.raises(exceptions.ConnectionClosed):
            page.recv(timeout=20)
        assert page.close_code == 1009


def test_an_error_does_not_end_the_connection(served):
    with served.socket() as page:
        send(page, 1, "positions", map="nothing", step=None)
        assert "not here any more" in reply(page, 1)["error"]
        page.send(pack({"id": 2, "ask": [], "with": {}}))
        assert "not known" in reply(page, 2)["error"]
        page.send(pack(3))
        assert "not known" in reply(page, None)["error"]
        send(page, 4, "search", text="flower3")
        assert reply(page, 4)["reply"]["total"] == 1


def test_a_reply_that_cannot_be_sent_is_an_error(served, monkeypatch):
    """Such as an array of a type that the page does not know."""
    from manifoldry.explorer import actions

    wrong = {"rows": np.zeros(2, dtype=np.int64)}
    monkeypatch.setitem(actions.ACTIONS, "search", lambda session, args: wrong)
    with served.socket() as page:
        send(page, 1, "search", text="x")
        assert "int64 cannot be sent" in reply(page, 1)["error"]


def test_pages_get_the_events_of_each_other(served):
    with served.socket() as one, served.socket() as two:
        send(two, 1, "start")
        assert reply(two, 1)  # both are listening
        send(one, 1, "label", rows=np.array([3], dtype="u4"), column="mine", value="a")
        assert reply(one, 1)["reply"]["name"] == "mine"
        for page in (two, one):
            if page is two:
                names = [each["name"] for each in event(page, "labels")["labels"]]
                assert names == ["species", "mine"]
        send(two, 2, "label", rows=np.array([3], dtype="u4"), column="mine", value="")
        assert reply(two, 2)
        assert [e["name"] for e in event(one, "labels")["labels"]] == ["species"]


def test_requests_are_answered_while_another_takes_long(served, monkeypatch):
    from manifoldry.explorer import actions

    def slow(session, args):
        time.sleep(1)
        return {}

    monkeypatch.setitem(actions.ACTIONS, "distinguish", slow)
    with served.socket() as page:
        send(page, 1, "distinguish")
        send(page, 2, "search", text="flower3")
        numbers = [unpack(page.recv(timeout=20))["id"] for _ in range(2)]
        assert numbers == [2, 1]


def test_the_last_selection_stays(served, monkeypatch):
    """Also if an earlier one takes longer."""
    from manifoldry.explorer import actions

    usual, order = actions.ACTIONS["select"], []

    def select(session, args):
        first = int(args.array("rows")[0])
        time.sleep(0.3 if first == 0 else 0)
        order.append(first)
        return usual(session, args)

    monkeypatch.setitem(actions.ACTIONS, "select", select)
    with served.socket() as page:
        for i in range(10):
            send(page, i, "select", rows=np.array([i], dtype="u4"))
        assert [unpack(page.recv(timeout=20))["id"] for _ in range(10)] == list(range(10))
    assert order == list(range(10))
    assert served.session.selection.tolist() == [9]


class FakeSocket:
    """A websocket whose messages are given, and which sends only when it is told to."""

    def __init__(self, messages):
        self.messages = [pack(each) for each in messages]
        self.read, self.sent, self.may_send = 0, [], asyncio.Event()
        self.ended, self.gone = asyncio.Event(), False

    async def receive(self):
        if self.read < len(self.messages):
            self.read += 1
            return {"type": "websocket.receive", "bytes": self.messages[self.read - 1]}
        await self.ended.wait()
        return {"type": "websocket.disconnect"}

    async def send_bytes(self, frame):
        await self.may_send.wait()
        if self.gone:
            raise WebSocketDisconnect
        self.sent.append(unpack(frame))


async def soon(condition):
    """Wait until something holds."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


def test_few_requests_of_a_page_are_answered_at_the_same_time(session, monkeypatch):
    from manifoldry.explorer import actions

    hold = Event()
    monkeypatch.setitem(actions.ACTIONS, "rows", lambda session, args: hold.wait(30) and {})

    async def requests():
        asks = [{"id": i, "ask": "rows", "with": {}} for i in range(40)]
        fake = FakeSocket(asks)
        page = _Page(session, fake)
        serving = asyncio.create_task(page.serve())
        await soon(lambda: fake.read == 16)
        await asyncio.sleep(0.1)
        assert fake.read == 16  # further ones stay with the browser
        fake.may_send.set()
        hold.set()
        await soon(lambda: len(fake.sent) == 40)
        fake.ended.set()
        await serving
        assert sorted(each["id"] for each in fake.sent) == list(range(40))

    asyncio.run(requests())


def test_a_page_that_is_behind_sees_few_previews(session):
    """And all other events."""

    async def events():
        fake = FakeSocket([])
        serving = asyncio.create_task(_Page(session, fake).serve())
        await soon(lambda: session._listeners)
        for i in range(100):
            session.tell("preview", {"i": i})
            session.tell("say", {"i": i}) if i % 10 == 0 else None
            await asyncio.sleep(0.001)
        fake.may_send.set()
        await soon(lambda: len([e for e in fake.sent if e["event"] == "say"]) == 10)
        assert 1 <= len([e for e in fake.sent if e["event"] == "preview"]) <= 4
        fake.sent.clear()
        session.tell("preview", {"i": 100})
        await soon(lambda: fake.sent == [{"event": "preview", "with": {"i": 100}}])
        fake.ended.set()
        await serving

    asyncio.run(events())


def test_a_page_that_is_gone_with_its_requests_is_forgotten(session):
    """It has asked for more than it has read, so replies wait for it, and nothing more is read."""

    async def requests():
        asks = [{"id": i, "ask": "search", "with": {"text": "setosa"}} for i in range(400)]
        fake = FakeSocket(asks)
        page = _Page(session, fake)
        serving = asyncio.create_task(page.serve())
        await soon(lambda: page.outgoing.full() and len(page.answering) == 16)
        assert fake.read < 400
        assert len(session._listeners) == 1
        fake.gone = True
        fake.may_send.set()
        await asyncio.wait_for(serving, 20)
        assert session._listeners == []
        await soon(lambda: not page.answering)

    asyncio.run(requests())


def test_a_page_that_is_closed_is_forgotten(served, until):
    before = len(served.session._listeners)
    with served.socket() as page:
        send(page, 1, "start")
        assert reply(page, 1)
        assert len(served.session._listeners) == before + 1
    until(lambda: len(served.session._listeners) == before)
    with served.socket() as page:
        send(page, 1, "start")
        page.socket.shutdown(socket.SHUT_RDWR)  # without a word
    until(lambda: len(served.session._listeners) == before)


def test_a_page_that_does_not_read_keeps_nobody_waiting(served, until):
    """It is let go when too many events wait for it; its browser connects again."""
    before = len(served.session._listeners)
    raw = socket.create_connection(("127.0.0.1", served.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(
        f"GET /socket?token={served.token} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    until(lambda: len(served.session._listeners) == before + 1)
    with served.socket() as other:
        send(other, 1, "start")
        reply(other, 1)
        text = json.dumps(list(range(20_000)))
        heard = []
        reading = Thread(target=lambda: heard.extend(event(other, "say") for _ in range(400)))
        reading.start()
        for i in range(400):
            served.session.tell("say", {"text": text})
            until(lambda i=i: len(heard) > i - 100)  # otherwise it is too slow as well
        reading.join(30)
        assert len(heard) == 400
        send(other, 2, "search", text="flower3")
        assert reply(other, 2)["reply"]["total"] == 1
    raw.close()
    until(lambda: len(served.session._listeners) == before)
