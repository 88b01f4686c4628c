"""Starts the server of the explorer, opens the page, and ends cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Thread, current_thread, main_thread
from typing import Any

from manifoldry.explorer.session import Session
from manifoldry.io.extras import optional_module

HOST = "127.0.0.1"
FIRST_PORT = 7321
_HIGHEST = 65_535
_TRIED = 20  # ports after the first that are tried if none was asked for


class PortTakenError(OSError):
    """Another program listens on the port."""


@dataclass(frozen=True)
class Address:
    """A listening socket and the token of the link.

    Parameters
    ----------
    listening : socket.socket
        Bound to the loopback address.
    token : str
        A random text that every request has to have.
    ticket : str
        Another one, which leads to the token once. Only it is passed to the browser as an argument,
        which all users of the machine can see.
    """

    listening: socket.socket
    token: str
    ticket: str

    @classmethod
    def bound(cls, port: int | None) -> Address:
        """An address at a port, 0 for any; by default the first free one from 7321."""
        if port is not None:
            if not 0 <= port <= _HIGHEST:
                raise ValueError(f"port={port} must be 0 to {_HIGHEST}; pass 0 for any")
            return cls(_bound(port), *(secrets.token_urlsafe(24) for _ in range(2)))
        for each in range(FIRST_PORT, FIRST_PORT + _TRIED):
            try:
                return cls.bound(each)
            except PortTakenError:
                continue
        return cls.bound(0)

    @property
    def port(self) -> int:
        """The port."""
        return int(self.listening.getsockname()[1])

    @property
    def link(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def link_for_once(self) -> str:
        """The same for the first who opens it, and no use to anybody afterwards."""
        return f"http://{HOST}:{self.port}/?ticket={self.ticket}"


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":  # where it would let two programs share a port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(
                f"port {port} is taken by another program, perhaps another explorer; pass --port "
                "with another number, or --port 0 for any that is free"
            ) from None
        if error.errno == errno.EACCES:
            raise PermissionError(
                f"port {port} needs more rights than you have; pass --port with a number above 1023"
            ) from None
        raise
    return listening


def check_installed() -> None:
    """Name the extra if a package that the server needs is missing, before anything is computed."""
    for name in ("starlette", "uvicorn", "websockets"):
        optional_module(name, "explorer", "the explorer")


def serve(
    session: Session,
    address: Address,
    *,
    browser: bool = True,
    ready: Callable[[], None] | None = None,
) -> None:
    """Serve the page until Ctrl-C or the end of the process, then end all work."""
    check_installed()
    import uvicorn

    from manifoldry.explorer.server import MOST_FRAME_BYTES, explorer_app

    app = explorer_app(session, address.token, address.ticket)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, ws="auto", ws_max_size=MOST_FRAME_BYTES,
        ws_per_message_deflate=False,  # nothing leaves this machine

        timeout_graceful_shutdown=2, lifespan="off", server_header=False,
    )  # fmt: skip
    server = _announcing(uvicorn)(config, ready, session)
    if browser:
        Thread(target=webbrowser.open, args=(address.link_for_once,), daemon=True).start()
    try:
        with _ending_quietly():
            server.run(sockets=[address.listening])
    finally:
        session.close()
        address.listening.close()


@contextlib.contextmanager
def _ending_quietly() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the server, which sends them to the process again at the end.

    So does SIGHUP, when the terminal is closed.
    """
    if current_thread() is not main_thread():
        yield
        return
    handlers: dict[int, Any] = {signal.SIGTERM: lambda *_: None}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = lambda *_: signal.raise_signal(signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _announcing(uvicorn: Any) -> Any:
    """A server that says when it answers, and tells pages before it ends."""

    class Announcing(uvicorn.Server):
        def __init__(self, config: Any, ready: Callable[[], None] | None, session: Session) -> None:
            super().__init__(config)
            self.ready, self.session = ready, session

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.ready is not None:
                self.ready()

        async def shutdown(self, sockets: Any = None) -> None:
            self.session.tell_end()
            await asyncio.sleep(0.1)  # so that it is sent before the sockets are closed
            await super().shutdown(sockets)

    return Announcing
