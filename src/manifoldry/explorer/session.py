"""The state behind all pages of one explorer: data, maps, labels and work in progress."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.explorer.colors import label_kind
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.drawing import Drawing, plane
from manifoldry.explorer.jobs import Job, JobQueue
from manifoldry.explorer.labels_file import COLUMNS, LabelsFile
from manifoldry.explorer.maps import ExploredMap
from manifoldry.explorer.rows import RowSearch
from manifoldry.explorer.uploads import UploadLimits, Uploads
from manifoldry.io import Table, UnsavableError, load, save
from manifoldry.io.table import class_labels
from manifoldry.methods.catalog import METHODS, Method
from manifoldry.methods.choice import metric_of
from manifoldry.methods.fitted_steps import joined, prepared
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.util.typing import Array, IntArray

Message = dict[str, Any]
Listener = Callable[[str, Message], None]
_JUDGED_UNASKED = 20_000  # rows up to which the evidence of every map is computed at once
_N_REFITS = 5
_MOST_DOWNLOADED = 500_000_000  # bytes of a model file
NO_DATA = "The data are not here, only the map; start the explorer with both."


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
        source: Path | None = None,
        labels_file: Path | None = None,
        limits: UploadLimits | None = None,
    ) -> None:
        self.data, self.title, self.notes = data, title, notes
        self.seed, self.n_jobs = seed, n_jobs
        self.source = source
        self.maps: dict[str, ExploredMap] = {}
        self.selection: IntArray = np.empty(0, dtype=np.intp)
        self.search = RowSearch(data)
        self.folder = Path(tempfile.mkdtemp(prefix="manifoldry-explorer-"))
        self.uploads = Uploads(self.folder / "uploads", limits or UploadLimits())
        self.jobs = JobQueue(self._tell_job, self._tell_preview)
        self.labels_file = LabelsFile.of(labels_file, data)
        if self.labels_file is not None:
            self.data.own_labels |= self.labels_file.read(data, notes)
        self._listeners: list[Listener] = []
        self._lock = RLock()

    # What the pages are told

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call a function with the name and content of every event; returns what ends it."""
        self._listeners.append(listener)

        def forget() -> None:
            with contextlib.suppress(ValueError):  # it is forgotten already
                self._listeners.remove(listener)

        return forget

    def tell(self, event: str, content: Message) -> None:
        """Tell all pages something."""
        for listener in list(self._listeners):
            listener(event, content)

    def _tell_job(self, job: Job) -> None:
        self.tell("job", job.described())

    def _tell_preview(self, job: Job, Y: Array) -> None:
        points = plane(Y.reshape(self.data.n, -1), (0, 1))
        if np.isfinite(points).all(axis=1).any():
            drawn = Drawing.around(points, self.reference).drawn(points)
            self.tell("preview", {"job": job.id, "xy": drawn.astype(np.float32)})

    def tell_labels(self) -> None:
        """Tell all pages which labels there are."""
        self.tell("labels", {"labels": self.described_labels()})

    def described_labels(self) -> list[Message]:
        """The labels by name."""
        return [
            {"name": name, "kind": label_kind(values), "own": name in self.data.own_labels}
            for name, values in self.data.labels.items()
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
        fitted_here: bool = False,
    ) -> ExploredMap:
        """Add a map, turned to match the first one, and tell all pages."""
        Y = np.asarray(embedding)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != self.data.n or Y.dtype.kind not in "fiu":
            raise ValueError(
                f"the map {name} has shape {np.shape(embedding)}, but the data have {self.data.n} "
                "rows; pass one row of coordinates for each of them"
            )
        Y = Y if Y.dtype.kind == "f" else Y.astype(np.float64)
        with self._lock:
            made = ExploredMap(secrets.token_hex(4), self._unused(name), Y, model, steps, method,
                               self.reference, fitted_here)  # fmt: skip
            self.maps[made.id] = made
        self.tell("map", described_map(made))
        return made

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

    # Work in the background

    def fit(
        self, method: Method, settings: Mapping[str, str] | None = None, *, homotopy: bool = False
    ) -> Job:
        """Make a map by a method."""
        if not self.data.has_data:
            raise ValueError(NO_DATA)
        model_file = self.folder / f"{secrets.token_hex(8)}.model"
        estimator = method.make()
        job = Job(
            secrets.token_hex(4), "map", f"{method.title} of {self.data.n:,} rows",
            lambda: {
                "do": "fit", "data": str(self._data_file()), "method": method.name,
                "n_components": min(2, int(self.data.prepared.shape[1])),
                "seed": self.seed, "n_jobs": self.n_jobs,
                "settings": dict(settings or {}), "homotopy": homotopy, "model": str(model_file),
            },
            partial(self._keep_map, method, model_file),
            can_stop="callback" in estimator.get_params(deep=False),
        )  # fmt: skip
        return self.jobs.add(job)

    def _keep_map(self, method: Method, file: Path, result: Message) -> None:
        model = load(file)
        for note in result["notes"]:
            self.tell("say", {"text": f"{method.title}: {note}"})
        made = self.add_map(method.title, model.embedding_, model, steps=self.data.steps,
                            method=method.name, fitted_here=True)  # fmt: skip
        self.judge_unasked(made)

    def judge_unasked(self, shown: ExploredMap) -> None:
        """Compute the evidence of a map if that does not take long."""
        if self.data.has_data and 4 <= self.data.n <= _JUDGED_UNASKED:
            self.judge(shown)

    def judge(self, shown: ExploredMap) -> Job:
        """Compute the evidence of a map, unless that is under way."""
        return self._job_about(shown, "evidence", f"Evidence of {shown.name}", self._keep_evidence)

    def refit(self, shown: ExploredMap) -> Job:
        """Measure the stability of a map by refits."""
        if shown.model is None or not hasattr(shown.model, "get_params"):
            raise ValueError(f"{shown.why_not} Without it the method cannot be fitted again.")
        what = f"{_N_REFITS} refits of {shown.name}"
        return self._job_about(shown, "stability", what, self._keep_stability)

    def _job_about(
        self,
        shown: ExploredMap,
        kind: str,
        what: str,
        keep: Callable[[ExploredMap, Message], None],
    ) -> Job:
        if not self.data.has_data:
            raise ValueError(NO_DATA)
        for job in list(self.jobs.jobs.values()):
            if job.kind == kind and job.map == shown.id and not job.is_over:
                return job
        task = partial(self._judging_task, shown, kind)
        return self.jobs.add(
            Job(secrets.token_hex(4), kind, what, task, partial(keep, shown), map=shown.id)
        )

    def _judging_task(self, shown: ExploredMap, kind: str) -> Message:
        labels = class_labels(
            Table(np.empty((self.data.n, 0)), labels=self.data.table.labels), lambda note: None
        )
        if labels is not None and missing_entries(np.asarray(labels)).any():
            labels = None
        model = self._model_file(shown)
        if kind == "stability" and model is None:
            raise ValueError(f"the model of {shown.name} cannot be passed to another process")
        codes = None if labels is None else np.unique(labels, return_inverse=True)[1]
        return {
            "do": kind, "data": str(self._data_file(shown)), "model": model,
            "embedding": str(self._saved("embedding", shown.id, shown.embedding)),
            "labels": None if codes is None else codes.astype(np.int32), "seed": self.seed,
            "metric": "euclidean" if shown.model is None else metric_of(shown.model),
            "n_refits": _N_REFITS,
        }  # fmt: skip

    def _keep_evidence(self, shown: ExploredMap, result: Message) -> None:
        shown.colors |= result.pop("colors")
        shown.evidence = {"map": shown.id, **result, "stability": shown.stability}
        self._tell_evidence(shown)

    def _keep_stability(self, shown: ExploredMap, result: Message) -> None:
        shown.colors["stability"] = result.pop("color")
        shown.stability = result
        if shown.evidence is not None:
            shown.evidence["stability"] = result
        self._tell_evidence(shown)

    def _tell_evidence(self, shown: ExploredMap) -> None:
        self.tell("map", described_map(shown))
        if shown.evidence is not None:
            self.tell("evidence", shown.evidence)

    # Files that workers read

    def _data_file(self, shown: ExploredMap | None = None) -> Path:
        """The data that a method gets, or that the model of a map was given."""
        if shown is None or shown.fitted_here or not shown.steps:
            given = shown is None or shown.fitted_here
            X = self.data.prepared if given else self.data.filled
            return self._saved("data", "prepared" if given else "filled", X)
        return self._saved("data", shown.id, prepared(shown.steps, self.data.table.X))

    def _model_file(self, shown: ExploredMap) -> str | None:
        """The model as a file; None if there is none, or it cannot be saved."""
        path = self.folder / f"{shown.id}.model"
        try:
            if shown.model is not None and not path.exists():
                save(shown.model, path)
        except (UnsavableError, TypeError):
            return None
        return str(path) if path.exists() else None

    def model_to_keep(self, shown: ExploredMap) -> tuple[str, bytes]:
        """Name and content of a model file like those of `embed`, with the steps before it."""
        if shown.model is None:
            raise ValueError(shown.why_not)
        name = shown.key
        path = self.folder / f"{shown.id}-{name}.model"
        facts: Message = {"method": name}
        if self.data.table.names is not None:
            facts["feature_names"] = list(self.data.table.names)
        if self.source is not None:
            facts["input"] = str(self.source)
        steps = [(f"step{j + 1}", step) for j, step in enumerate(shown.steps)]
        save(joined(steps, name, shown.model), path, facts=facts)
        if path.stat().st_size > _MOST_DOWNLOADED:
            raise ValueError(
                f"the model has {path.stat().st_size / 1e6:.0f} MB, too many to download from a "
                f"page; make it with manifoldry embed --method {shown.method}"
            )
        content = path.read_bytes()
        path.unlink()
        return f"{name}.model", content

    def _saved(self, kind: str, name: str, X: Any) -> Path:
        """An array as a file, written once."""
        with self._lock:
            path = self.folder / f"{kind}-{name}{'.npz' if sparse.issparse(X) else '.npy'}"
            if not path.exists():
                if sparse.issparse(X):
                    sparse.save_npz(path, X, compressed=False)
                else:
                    np.save(path, np.asarray(X), allow_pickle=False)
            return path

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
            self.jobs.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def described_map(shown: ExploredMap) -> Message:
    """What the page knows of a map."""
    homotopy = shown.homotopy
    steps = [] if homotopy is None else zip(homotopy.labels(), homotopy.parameters, strict=True)
    return {
        "id": shown.id, "name": shown.name, "method": shown.method,
        "n_components": int(shown.embedding.shape[1]), "shown": list(shown.shown),
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
