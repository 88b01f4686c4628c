"""The explorer in a notebook: an anywidget whose messages go to a session."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from manifoldry.explorer.actions import answer
from manifoldry.explorer.messages import MessageError, assemble, dismantle
from manifoldry.explorer.session import Session
from manifoldry.io.extras import optional_module


def explorer_widget(session: Session, height: int, keep: Any) -> Any:
    """The widget of a session; it holds on to `keep`, whose end would end the session."""
    anywidget: Any = optional_module("anywidget", "explorer", "the explorer in a notebook")
    traitlets: Any = optional_module("traitlets", "explorer", "the explorer in a notebook")
    static = files("manifoldry.explorer") / "static"

    class ExplorerWidget(anywidget.AnyWidget):
        """Shows a session; ``n_changes`` grows with every selection, so it can be observed."""

        _esm = (static / "explorer.js").read_text("utf-8")
        _css = (static / "style.css").read_text("utf-8")
        height = traitlets.Int(640).tag(sync=True)
        n_changes = traitlets.Int(0).tag(sync=True)

        def __init__(self) -> None:
            super().__init__(height=height)
            self.on_msg(self._on_message)
            self._kept = keep
            self._forget = session.listen(self._on_event)

        def close(self) -> None:
            """Take it away from the notebook."""
            self._forget()
            super().close()

        @property
        def selection(self) -> Any:
            """Rows that are selected, counted from 0."""
            return session.selection

        def _on_message(self, _: Any, content: Any, buffers: Any) -> None:
            sent = content if isinstance(content, dict) else {}
            try:
                request = assemble(sent.get("message"), buffers)
            except MessageError:
                request = None  # which is answered with an error
            header, arrays = dismantle(answer(session, request, hosted="notebook"))
            self.send({"view": sent.get("view"), "message": header}, arrays)

        def _on_event(self, name: str, event: dict[str, Any]) -> None:
            header, arrays = dismantle({"event": name, "with": event})
            self.send({"message": header}, arrays)
            if name == "select":
                self.n_changes += 1

    return ExplorerWidget()
