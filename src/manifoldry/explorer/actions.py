"""What a page can ask for: one function for each request of ``frontend/src/protocol.ts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manifoldry.explorer.colors import evidence_color, label_color, value_color
from manifoldry.explorer.map_work import NO_DATA
from manifoldry.explorer.maps import caution
from manifoldry.explorer.messages import MessageError
from manifoldry.explorer.new_rows import placed, rows_of_file, rows_of_text
from manifoldry.explorer.rows import row_facts
from manifoldry.explorer.selections import check_rows, distinguish, exported
from manifoldry.explorer.session import (
    Message,
    Session,
    described_map,
    described_methods,
)
from manifoldry.methods.catalog import find_method
from manifoldry.util.saved import package_version
from manifoldry.util.text import error_text

_MOST_POSITIONS = 200  # at which data are asked for at once


def answer(session: Session, message: Any, hosted: str) -> Message:
    """The reply to a request; an error is a reply, too."""
    number = message.get("id") if isinstance(message, dict) else None
    try:
        return {"id": number, "reply": _done(session, message, hosted)}
    except Exception as error:  # the explorer goes on, whatever was asked
        return {"id": number, "error": error_text(error)}


def _done(session: Session, message: Any, hosted: str) -> Message:
    try:
        action, args = ACTIONS[message["ask"]], message["with"]
        if not isinstance(args, dict):
            raise TypeError
    except (KeyError, TypeError):
        raise MessageError("the request is not known; reload the page") from None
    return action(session, Arguments(args)) | ({"hosted": hosted} if action is start else {})


class Arguments:
    """The arguments of a request, checked when they are read."""

    def __init__(self, values: Message) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """A text."""
        return str(self._of(name, str))

    def number(self, name: str) -> int:
        """A whole number."""
        return int(self._of(name, int))

    def flag(self, name: str) -> bool:
        """True or false."""
        return bool(self._of(name, bool))

    def array(self, name: str) -> Any:
        """An array of numbers."""
        return self._of(name, np.ndarray)

    def items(self, name: str) -> list[Any]:
        """A list."""
        return list(self._of(name, list))

    def texts(self, name: str) -> dict[str, str]:
        """Texts by name."""
        found = self._of(name, dict)
        return {str(key): str(value) for key, value in found.items()}

    def has(self, name: str) -> bool:
        """Whether it is given and not null."""
        return self._values.get(name) is not None

    def _of(self, name: str, kind: type) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise MessageError(f"the request has no {name} of type {kind.__name__}")
        return value


def start(session: Session, args: Arguments) -> Message:
    """Everything that a page needs to begin."""
    data, image = session.data, session.data.image
    low, high = data.pixel_range if image is not None else (0.0, 1.0)
    return {
        "title": session.title, "n": data.n, "n_features": data.n_features,
        "feature_names": data.feature_names, "has_data": data.has_data,
        "labels": session.described_labels(), "row_kind": data.row_kind,
        "image": None if image is None else {
            "shape": list(image.shape), "dark_ink": image.dark_ink, "low": low, "high": high,
        },
        "methods": described_methods(), "notes": session.notes,
        "upload_bytes": session.uploads.limits.most_bytes, "version": package_version(),
        "selection": session.selection.astype(np.uint32),
        # Last: of what changes from now on, the page is told.
        "maps": [described_map(each) for each in list(session.maps.values())],
        "jobs": [job.described() for job in list(session.work.jobs.jobs.values())],
    }  # fmt: skip


def positions(session: Session, args: Arguments) -> Message:
    """Where the rows of a map are drawn."""
    step = args.number("step") if args.has("step") else None
    return {"xy": session.find_map(args.text("map")).positions(step)}


def coordinates(session: Session, args: Arguments) -> Message:
    """Draw other coordinates of a map."""
    found = session.find_map(args.text("map"))
    wanted = args.items("shown")
    if len(wanted) != 2 or not all(isinstance(each, int) for each in wanted):
        raise MessageError("the request has no two coordinates")
    found.show(wanted[0], wanted[1])
    session.tell_map(found)
    return described_map(found)


def color(session: Session, args: Arguments) -> Message:
    """What points are colored by."""
    by, name = args.text("by"), args.text("name")
    if by == "label":
        return label_color(session.data, name)
    if by == "feature":
        if not session.data.has_data:
            raise ValueError(NO_DATA)
        return value_color(session.data.column(name))
    if by != "evidence":
        raise MessageError(f"by={by!r} must be 'label', 'feature' or 'evidence'")
    return evidence_color(session.find_map(args.text("map")), name)


def rows(session: Session, args: Arguments) -> Message:
    """What is known of some rows."""
    return {"rows": row_facts(session.data, args.items("rows"))}


def found_rows(session: Session, args: Arguments) -> Message:
    """Rows by name, number or label."""
    return session.search(args.text("text"))


def invert(session: Session, args: Arguments) -> Message:
    """Data at positions of a map."""
    found, data = session.find_map(args.text("map")), session.data
    try:
        at = np.asarray(args.items("at"), dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        at = np.empty(0)
    if at.ndim != 2 or at.shape[1] != 2 or not np.isfinite(at).all() or len(at) > _MOST_POSITIONS:
        raise MessageError(f"the request has no list of at most {_MOST_POSITIONS} positions")
    if not found.can_invert:
        raise ValueError(found.why_not)
    restored = found.invert(at)
    X = np.asarray(restored.data, dtype=np.float64)
    return {
        "data": X, "distance": restored.distance.astype(np.float32),
        "cautions": [caution(float(each)) for each in restored.distance],
        "nearest": restored.nearest.astype(np.uint32),
        "nearest_data": data.rows(restored.nearest).astype(np.float64) if data.has_data else None,
        "notable": [data.notable(each) for each in X],
        "low": data.moments.low.astype(np.float64), "high": data.moments.high.astype(np.float64),
    }  # fmt: skip


def upload(session: Session, args: Arguments) -> Message:
    """A part of a file."""
    known = args.text("id") if args.has("id") else None
    part = args.array("bytes").tobytes()
    offset, size = args.number("offset"), args.number("size")
    made = session.uploads.receive(known, args.text("name"), offset, size, part)
    return {"id": made, "received": offset + len(part)}


def discard(session: Session, args: Arguments) -> Message:
    """Forget a file that was not sent to its end."""
    session.uploads.discard(args.text("upload"))
    return {}


def place(session: Session, args: Arguments) -> Message:
    """New rows on all maps."""
    if args.has("text"):
        table = rows_of_text(args.text("text"), session.data)
        return placed(table, list(session.maps.values()))
    sent = args.text("upload")
    try:
        table = rows_of_file(session.uploads.finished(sent), session.data)
        return placed(table, list(session.maps.values()))
    finally:
        session.uploads.discard(sent)


def what_distinguishes(session: Session, args: Arguments) -> Message:
    """In what some rows differ from all others."""
    return distinguish(session.data, check_rows(args.array("rows"), session.data.n))


def label(session: Session, args: Arguments) -> Message:
    """Label some rows."""
    chosen = check_rows(args.array("rows"), session.data.n)
    column = args.text("column")
    return {"name": column, "saved": session.label(chosen, column, args.text("value"))}


def export(session: Session, args: Arguments) -> Message:
    """Some rows as a file."""
    chosen = check_rows(args.array("rows"), session.data.n)
    name, content, note = exported(session.data, list(session.maps.values()), chosen)
    return {"name": name, "text": np.frombuffer(content, dtype=np.uint8), "note": note}


def select(session: Session, args: Arguments) -> Message:
    """Let Python know what is selected."""
    session.selection = check_rows(args.array("rows"), session.data.n)
    return {}


def fit_map(session: Session, args: Arguments) -> Message:
    """Make another map."""
    method = find_method(args.text("method"))
    job = session.work.fit(method, args.texts("settings"), homotopy=args.flag("homotopy"))
    return job.described()


def known_evidence(session: Session, args: Arguments) -> Message:
    """How far a map can be trusted, or the work that finds it out."""
    found = session.find_map(args.text("map"))
    if found.evidence is not None:
        return {"evidence": found.evidence, "job": None}
    return {"evidence": None, "job": session.work.assess(found).described()}


def begin_refits(session: Session, args: Arguments) -> Message:
    """Refits that measure how far rows move."""
    return session.work.refit(session.find_map(args.text("map"))).described()


def cancel(session: Session, args: Arguments) -> Message:
    """End some work."""
    job = session.work.jobs.find(args.text("job"))
    session.work.jobs.cancel(job)
    return job.described()


def stop(session: Session, args: Arguments) -> Message:
    """End a fit early and keep its map."""
    job = session.work.jobs.find(args.text("job"))
    session.work.jobs.stop(job)
    return job.described()


def keep_model(session: Session, args: Arguments) -> Message:
    """The model of a map as a file."""
    name, content = session.model_to_keep(session.find_map(args.text("map")))
    return {"name": name, "bytes": np.frombuffer(content, dtype=np.uint8)}


def remove(session: Session, args: Arguments) -> Message:
    """Take a map away."""
    session.remove_map(args.text("map"))
    return {}


ACTIONS: dict[str, Callable[[Session, Arguments], Message]] = {
    "start": start,
    "positions": positions,
    "coordinates": coordinates,
    "color": color,
    "rows": rows,
    "search": found_rows,
    "invert": invert,
    "upload": upload,
    "discard": discard,
    "place": place,
    "distinguish": what_distinguishes,
    "label": label,
    "export": export,
    "select": select,
    "fit": fit_map,
    "evidence": known_evidence,
    "stability": begin_refits,
    "cancel": cancel,
    "stop": stop,
    "keep": keep_model,
    "remove": remove,
}
