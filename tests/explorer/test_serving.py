"""Ports, links, and a clean end of the process."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import psutil
import pytest

from manifoldry.explorer import serving
from manifoldry.explorer.messages import pack, unpack
from manifoldry.explorer.serving import Address, PortTakenError

pytest.importorskip("uvicorn")
client = pytest.importorskip("websockets.sync.client")


@pytest.fixture
def taken():
    """A port on which another program listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_any_free_port():
    one, two = Address.bound(0), Address.bound(0)
    assert one.port != two.port
    assert one.token != two.token
    assert len({one.token, one.ticket, two.token, two.ticket}) == 4
    assert min(len(one.token), len(one.ticket)) >= 32
    assert one.link == f"http://127.0.0.1:{one.port}/?token={one.token}"
    assert one.link_for_once == f"http://127.0.0.1:{one.port}/?ticket={one.ticket}"
    assert one.listening.getsockname()[0] == "127.0.0.1"
    for each in (one, two):
        each.listening.close()


def test_a_port_that_is_taken(taken):
    with pytest.raises(PortTakenError, match=f"port {taken} is taken .* pass --port"):
        Address.bound(taken)


def test_ports_that_are_taken_are_skipped(taken, monkeypatch):
    monkeypatch.setattr(serving, "FIRST_PORT", taken)
    address = Address.bound(None)
    assert address.port != taken
    address.listening.close()
    monkeypatch.setattr(serving, "_TRIED", 1)
    address = Address.bound(None)  # any, since all that are tried are taken
    assert address.port not in (0, taken)
    address.listening.close()


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_ports_that_do_not_exist(port):
    with pytest.raises(ValueError, match=f"port={port} must be 0 to 65535"):
        Address.bound(port)


@pytest.mark.parametrize("browser", [True, False])
def test_the_browser_gets_a_link_for_once(session, monkeypatch, until, browser):
    """All users of the machine see with which arguments programs are started."""
    import uvicorn

    opened = []
    monkeypatch.setattr("webbrowser.open", lambda link: opened.append(link))
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: None)
    address = Address.bound(0)
    link = address.link_for_once
    serving.serve(session, address, browser=browser)
    if browser:
        until(lambda: opened)
    assert opened == [link] * browser
    assert address.ticket in link
    assert address.token not in link
    assert not session.folder.exists()


ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "BROWSER": "false"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_process_ends_cleanly(tmp_path, number, until):
    """With a page that is open, and a worker that works."""
    rows = "\n".join(f"{i % 7},{i * i % 11},{i % 3}" for i in range(300))
    (tmp_path / "data.csv").write_text(f"a,b,c\n{rows}\n")
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "manifoldry", "explore", "data.csv", "--no-browser", "--json",
               "--port", "0", "-m", "tsne", "--set", "max_iter=1000000"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | ENVIRONMENT | {"TMPDIR": str(tmp_path / "temporary")},
    )  # fmt: skip
    try:
        lines = iter(process.stdout.readline, "")
        link = json.loads("".join(itertools.takewhile("}\n".__ne__, lines)) + "}")["link"]
        assert urllib.request.urlopen(link, timeout=30).status == 200
        tree = psutil.Process(process.pid)
        until(lambda: tree.children(recursive=True))
        workers = tree.children(recursive=True)
        with client.connect(link.replace("http:", "ws:").replace("/?", "/socket?")) as page:
            page.send(pack({"id": 1, "ask": "start", "with": {}}))
            while unpack(page.recv(timeout=30)).get("id") != 1:
                pass
            process.send_signal(number)
            heard = []
            while "ended" not in heard:
                heard.append(unpack(page.recv(timeout=30)).get("event"))
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "Error" not in errors
    assert not any(each.is_running() for each in workers)
    assert list((tmp_path / "temporary").iterdir()) == []
