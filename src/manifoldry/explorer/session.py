"""The state behind all pages of one explorer: data, maps, labels and work in progress."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from manifoldry.explorer.colors import label_kind
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.labels_file import COLUMNS, LabelsFile
from manifoldry.explorer.map_work import MapWork
from manifoldry.explorer.maps import ExploredMap
from manifoldry.explorer.rows import RowSearch
from manifoldry.explorer.uploads import UploadLimits, Uploads
from manifoldry.io import save
from manifoldry.methods.catalog import METHODS
from manifoldry.methods.fitted_steps import joined
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.typing import Array, IntArray

Message = dict[str, Any]
Listener = Callable[[str, Message], None]
_MOST_DOWNLOADED = 500_000_000  # bytes of a model file


class Session:
    """Everything that the pages of one explorer share.

    Parameters
    ----------
    data : ExploredData
        The data and their labels.
    title : str
        What is explored.
    notes : sequence of str
        What was recognized and decided while reading.
    seed : int
        Seed of methods and samples.
    n_jobs : int, optional
        Number of threads of methods.
    device : str, optional
        Where methods compute, such as "cuda".
    source : Path, optional
        The file of the data, which model files name.
    labels_file : Path, optional
        Where labels that are made on the page are kept.
    limits : UploadLimits
        How much a page may send.
    """

    def __init__(
        self,
        data: ExploredData,
        title: str,
        notes: list[str],
        *,
        seed: int = 0,
        n_jobs: int | None = None,
        device: str | None = None,
        source: Path | None = None,
        labels_file: Path | None = None,
        limits: UploadLimits | None = None,
    ) -> None:
        self.data, self.title, self.notes = data, title, notes
        self.seed, self.n_jobs, self.device = seed, n_jobs, device
        self.source = source
        self.maps: dict[str, ExploredMap] = {}
        self.selection: IntArray = np.empty(0, dtype=np.intp)
        self.search = RowSearch(data)
        self.labels_file = LabelsFile.of(labels_file, data)
        if self.labels_file is not None:
            self.data.own_labels |= self.labels_file.read(data, notes)
        self.folder = Path(tempfile.mkdtemp(prefix="manifoldry-explorer-"))
        self.uploads = Uploads(self.folder / "uploads", limits or UploadLimits())
        self.work = MapWork(self)
        self._listeners: list[Listener] = []
        self._lock = RLock()

    # What the pages are told

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the name and content of every event; returns what ends it."""
        self._listeners.append(listener)

        return partial(self._drop, listener)

    def _drop(self, listener: Listener) -> None:
        with contextlib.suppress(ValueError):  # it is forgotten already
            self._listeners.remove(listener)

    def tell(self, event: str, content: Message) -> None:
        """Tell all pages something."""
        for listener in list(self._listeners):
            try:
                listener(event, content)
            except Exception:  # of a page that is gone; the others and the work go on
                self._drop(listener)

    def tell_labels(self) -> None:
        """Tell all pages which labels there are."""
        self.tell("labels", {"labels": self.described_labels()})

    def described_labels(self) -> list[Message]:
        """The labels by name."""
        return [
            {"name": name, "kind": label_kind(self.data, name), "own": name in self.data.own_labels}
            for name in self.data.labels
        ]

    # Maps

    def find_map(self, map_id: str) -> ExploredMap:
        """The map of an identifier."""
        try:
            return self.maps[map_id]
        except KeyError:
            raise ValueError("this map is not here any more; reload the page") from None

    @property
    def reference(self) -> Array | None:
        """The drawing of the first map, which all others are turned to match."""
        return next((each.drawn for each in list(self.maps.values())), None)

    def add_map(
        self,
        name: str,
        embedding: Any,
        model: Any = None,
        *,
        steps: Any = (),
        method: str | None = None,
        fitted_as: str | None = None,
    ) -> ExploredMap:
        """Add a map, turned to match the first one, and tell all pages.

        One that was fitted here has its identifier already, `fitted_as`.
        """
        Y = np.asarray(embedding)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != self.data.n or Y.dtype.kind not in "fiu":
            raise ValueError(
                f"the map {name} has shape {np.shape(embedding)}, but the data have {self.data.n} "
                "rows; pass one row of coordinates for each of them"
            )
        Y = Y if Y.dtype.kind == "f" else Y.astype(np.float64)
        with self._lock:
            made = ExploredMap(
                fitted_as or secrets.token_hex(4), self._unused(name), Y, model, steps, method,
                self.reference, fitted_as is not None,
            )  # fmt: skip
            self.maps[made.id] = made
        self.tell_map(made)
        return made

    def tell_map(self, shown: ExploredMap) -> None:
        """Tell all pages of a map that is new or has changed."""
        self.tell("map", described_map(shown))

    def _unused(self, name: str) -> str:
        used = {each.name for each in self.maps.values()}
        numbered = (f"{name} {number}" for number in range(2, len(used) + 3))
        return name if name not in used else next(each for each in numbered if each not in used)

    def remove_map(self, map_id: str) -> None:
        """Take a map away."""
        with self._lock:
            self.find_map(map_id)
            del self.maps[map_id]
        self.tell("removed", {"map": map_id})
        self.work.forget(map_id)

    def model_to_keep(self, shown: ExploredMap) -> tuple[str, bytes]:
        """Name and content of a model file like those of `embed`, with the steps before it."""
        if shown.model is None:
            raise ValueError(shown.why_not)
        name = shown.key
        facts: Message = {"method": name}
        if self.data.table.names is not None:
            facts["feature_names"] = list(self.data.table.names)
        if self.source is not None:
            facts["input"] = str(self.source)
        steps = [(f"step{j + 1}", step) for j, step in enumerate(shown.steps)]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            path = Path(folder) / "kept.model"
            save(joined(steps, name, shown.model), path, facts=facts)
            size = path.stat().st_size
            if size > _MOST_DOWNLOADED:
                raise ValueError(
                    f"the model has {size / 1e6:.0f} MB, too many to download from a page; make it "
                    f"with manifoldry embed --method {shown.method}"
                )
            content = path.read_bytes()
        return f"{name}.model", content

    # Labels and selection

    def label(self, rows: IntArray, column: str, value: str) -> str:
        """Label rows, or take their label away with an empty value; returns where it is kept."""
        column, value = column.strip(), value.strip()
        if not column:
            raise ValueError("the label has no name; type one, such as 'group'")
        if column in (*COLUMNS, *self.data.table.labels, *self.data.feature_names):
            raise ValueError(f"there is a column {column!r} already; type another name")
        with self._lock:
            values = self.data.own_labels.get(column)
            values = np.full(self.data.n, None, dtype=object) if values is None else values.copy()
            values[rows] = value or None
            self.data.own_labels[column] = values
            if missing_entries(values).all():
                del self.data.own_labels[column]
        self.tell_labels()  # first, since a file that cannot be written is an error
        with self._lock:
            return "" if self.labels_file is None else self.labels_file.write(self.data)

    def tell_end(self) -> None:
        """Tell all pages that the explorer ends."""
        self.tell("ended", {"text": "The explorer has ended. Start it again to go on."})

    def close(self) -> None:
        """End all work and delete all files."""
        try:
            self.work.jobs.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def described_map(shown: ExploredMap) -> Message:
    """What the page knows of a map."""
    view = shown.view
    homotopy = view.homotopy
    steps = [] if homotopy is None else zip(homotopy.labels(), homotopy.parameters, strict=True)
    return {
        "id": shown.id, "name": shown.name, "method": shown.method,
        "n_components": int(shown.embedding.shape[1]), "shown": list(view.shown),
        "redrawn": shown.redrawn, "steps": [{"label": t, "parameter": p} for t, p in steps],
        "own_step": 0 if homotopy is None else homotopy.own,
        "can_invert": shown.can_invert, "can_place": shown.can_place,
        "can_save": shown.model is not None, "why_not": shown.why_not,
        "evidence": "none" if shown.evidence is None else "ready",
        "evidence_colors": list(shown.colors),
        "n_unplaced": int(np.isnan(shown.drawn[:, 0]).sum()),
    }  # fmt: skip


def described_methods() -> list[Message]:
    """The methods by which a page can make maps, with their usual parameters."""
    found = []
    for method in METHODS:
        params = method.make().get_params(deep=False)
        usual = [n for n in ("n_neighbors", "perplexity", "metric", "n_components") if n in params]
        found.append({
            "name": method.name, "title": method.title, "use": method.use,
            "has_homotopy": "optimizer" in params and "callback" in params,
            "settings": [{"name": n, "value": str(params[n])} for n in usual],
        })  # fmt: skip
    return found
