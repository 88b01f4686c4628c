"""The web server of ``manifoldry explore``: one page, its script, and a websocket.

It answers only on this machine's loopback address, only to requests that have the token of the
link, and only to pages of its own origin.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from manifoldry.explorer.actions import answer
from manifoldry.explorer.messages import MessageError, pack, unpack
from manifoldry.explorer.session import Session
from manifoldry.util.text import error_text

REFUSED = 4403  # the page then says that its link is of no use any more
MOST_FRAME_BYTES = 16 * 2**20  # of one message from a page, which sends files in parts of 1 MB
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST_ANSWERED = 16  # requests of a page at the same time; further ones are read later
_FEW_WAITING = 2
_MOST_WAITING = 256  # events that a page has not read yet; then it is too slow, and is let go
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # so that the token stays here
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC = {"explorer.js": "text/javascript", "style.css": "text/css", "icon.svg": "image/svg+xml"}


def explorer_app(session: Session, token: str, ticket: str) -> Starlette:
    """The application, for links with this token; the ticket leads to it once."""
    tickets = [ticket]

    def refusal(connection: HTTPConnection) -> str:
        """Why a request is refused; empty if it is not."""
        host = connection.headers.get("host", "")
        if _name(host) not in _LOOPBACK:
            return "The explorer answers only to addresses of this machine."
        origin = connection.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "The explorer does not answer to pages of other sites."
        return ""

    def wrong_token(connection: HTTPConnection) -> bool:
        given = connection.query_params.get("token", "")
        return not secrets.compare_digest(given.encode(), token.encode())

    def takes_ticket(request: Request) -> bool:
        given = request.query_params.get("ticket", "").encode()
        if any(secrets.compare_digest(given, each.encode()) for each in tickets):
            tickets.clear()
            return True
        return False

    async def page(request: Request) -> Response:
        why = refusal(request)
        if not why and takes_ticket(request):
            return RedirectResponse(f"/?token={token}", 303, _HEADERS)
        if not why and wrong_token(request):
            why = "This link has no valid token. Open the link that manifoldry explore has printed."
        if why:
            return HTMLResponse(_static_text("refused.html").replace("$why", why), 403, _HEADERS)
        return HTMLResponse(_static_text("index.html"), headers=_HEADERS)

    async def static(request: Request) -> Response:
        if why := refusal(request):
            return Response(why, 403, _HEADERS)
        name = request.path_params["name"]
        if name not in _STATIC:
            return Response("There is no such page.", 404, _HEADERS)
        return Response(_static_text(name), headers=_HEADERS, media_type=_STATIC[name])

    async def socket(websocket: WebSocket) -> None:
        # A browser always names the origin of a websocket; other programs need not.
        refused = refusal(websocket) or wrong_token(websocket)
        await websocket.accept()
        if refused:
            await websocket.close(REFUSED)
            return
        await _Page(session, websocket).serve()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/{name:path}", static),
            WebSocketRoute("/socket", socket),
        ],
        exception_handlers={Exception: _failed},
    )


def _name(host: str) -> str | None:
    """The name of a host without its port; None if there is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # such as a bracket that is not closed
        return None


def _static_text(name: str) -> str:
    return files("manifoldry.explorer").joinpath("static", name).read_text("utf-8")


async def _failed(request: Request, error: Exception) -> Response:
    return Response("The explorer has made an error.", 500, _HEADERS)


class _Page:
    """One open page: answers its requests, each in a thread, and sends it events."""

    def __init__(self, session: Session, websocket: WebSocket) -> None:
        self.session, self.websocket = session, websocket
        self.loop = asyncio.get_running_loop()
        self.outgoing: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self.answering: set[asyncio.Task[None]] = set()
        self.closing = False

    async def serve(self) -> None:
        """Until the page is closed, which reading or sending notices."""
        forget = self.session.listen(self._on_event)
        both = [asyncio.create_task(each) for each in (self._read_all(), self._send_all())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            for task in (*both, *self.answering):
                task.cancel()
            for task in both:
                with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                    await task

    async def _read_all(self) -> None:
        while True:
            received = await self.websocket.receive()
            if received["type"] == "websocket.disconnect":
                return
            try:
                message = unpack(received.get("bytes") or b"")
            except MessageError:
                await self.websocket.close(1003)
                return
            task = asyncio.create_task(self._answer(message))
            self._keep(task)
            if isinstance(message, dict) and message.get("ask") == "select":
                await asyncio.wait([task])  # so that the last selection is the one that stays
            if len(self.answering) >= _MOST_ANSWERED:
                await asyncio.wait(self.answering, return_when=asyncio.FIRST_COMPLETED)

    async def _answer(self, message: Any) -> None:
        await self.outgoing.put(await asyncio.to_thread(self._reply, message))

    def _reply(self, message: Any) -> bytes:
        reply = answer(self.session, message, hosted="page")
        try:
            return pack(reply)
        except Exception as error:  # otherwise the page would wait for ever
            return pack({"id": reply["id"], "error": error_text(error)})

    async def _send_all(self) -> None:
        while True:
            await self.websocket.send_bytes(await self.outgoing.get())

    def _on_event(self, name: str, content: dict[str, Any]) -> None:
        """Called in any thread. A page that is behind need not see all previews."""
        if name == "preview" and self.outgoing.qsize() > _FEW_WAITING:
            return
        frame = pack({"event": name, "with": content})
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._put, frame)

    def _put(self, frame: bytes) -> None:
        try:
            self.outgoing.put_nowait(frame)
        except asyncio.QueueFull:  # it would miss events, so it has to begin anew
            if not self.closing:
                self.closing = True
                self._keep(asyncio.create_task(self.websocket.close(1013)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Hold a task until it has ended."""
        self.answering.add(task)
        task.add_done_callback(self.answering.discard)
