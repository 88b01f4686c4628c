"""The work on maps: fits, evidence and refits, in processes of their own."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from manifoldry.explorer.drawing import Drawing, plane
from manifoldry.explorer.jobs import Job, JobQueue
from manifoldry.explorer.maps import ExploredMap
from manifoldry.io import Table, UnsavableError, load, save
from manifoldry.io.table import class_labels
from manifoldry.methods.catalog import Method
from manifoldry.methods.choice import metric_of
from manifoldry.methods.fitted_steps import prepared
from manifoldry.plotting.point_labels import missing_entries
from manifoldry.reporting.words import counted
from manifoldry.util.typing import Array

if TYPE_CHECKING:
    from manifoldry.explorer.session import Session

Message = dict[str, Any]
_ASSESSED_UNASKED = 20_000  # rows up to which the evidence of every map is computed at once
_N_REFITS = 5
NO_DATA = "The data are not here, only the map; start the explorer with both."


class MapWork:
    """Begins jobs, and keeps what comes of them.

    Parameters
    ----------
    session : Session
        Has the data and the maps, and is told of every change.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.jobs = JobQueue(self._tell_job, self._tell_preview)
        self._lock = RLock()

    def _tell_job(self, job: Job) -> None:
        if job.is_over and job.map is not None and job.map not in self.session.maps:
            self._delete_files(job.map)  # those of work that had just begun
        self.session.tell("job", job.described())

    def _tell_preview(self, job: Job, Y: Array) -> None:
        points = plane(Y.reshape(self.session.data.n, -1), (0, 1))
        if np.isfinite(points).all(axis=1).any():
            drawn = Drawing.around(points, self.session.reference).drawn(points)
            self.session.tell("preview", {"job": job.id, "xy": drawn.astype(np.float32)})

    def fit(
        self, method: Method, settings: Mapping[str, str] | None = None, *, homotopy: bool = False
    ) -> Job:
        """Make a map by a method."""
        if not self.session.data.has_data:
            raise ValueError(NO_DATA)
        map_id = secrets.token_hex(4)
        estimator = method.make()
        job = Job(
            secrets.token_hex(4), "map", f"{method.title} of {counted(self.session.data.n, 'row')}",
            lambda: {
                "do": "fit", "data": str(self._data_file()), "method": method.name,
                "n_components": min(2, int(self.session.data.prepared.shape[1])),
                "seed": self.session.seed, "n_jobs": self.session.n_jobs,
                "device": self.session.device, "settings": dict(settings or {}),
                "homotopy": homotopy, "model": str(self._model_path(map_id)),
            },
            partial(self._keep_map, method, map_id),
            can_stop="callback" in estimator.get_params(deep=False),
        )  # fmt: skip
        return self.jobs.add(job)

    def _keep_map(self, method: Method, map_id: str, result: Message) -> None:
        model = load(self._model_path(map_id))
        for note in result["notes"]:
            self.session.tell("say", {"text": f"{method.title}: {note}"})
        made = self.session.add_map(
            method.title, model.embedding_, model, steps=self.session.data.steps,
            method=method.name, fitted_as=map_id,
        )  # fmt: skip
        self.assess_unasked(made)

    def assess_unasked(self, shown: ExploredMap) -> None:
        """Compute the evidence of a map if that does not take long."""
        if self.session.data.has_data and 4 <= self.session.data.n <= _ASSESSED_UNASKED:
            self.assess(shown)

    def assess(self, shown: ExploredMap) -> Job:
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
        if not self.session.data.has_data:
            raise ValueError(NO_DATA)
        with self._lock:
            for job in list(self.jobs.jobs.values()):
                if job.kind == kind and job.map == shown.id and not job.is_over:
                    return job
            task = partial(self._task_about, shown, kind)
            made = Job(secrets.token_hex(4), kind, what, task, partial(keep, shown), map=shown.id)
            return self.jobs.add(made)

    def _task_about(self, shown: ExploredMap, kind: str) -> Message:
        labels = self._classes()
        model = self._model_file(shown)
        if kind == "stability" and model is None:
            raise ValueError(f"the model of {shown.name} cannot be passed to another process")
        codes = None if labels is None else np.unique(labels, return_inverse=True)[1]
        return {
            "do": kind, "data": str(self._data_file(shown)), "model": model,
            "embedding": str(self._saved("embedding", shown.id, shown.embedding)),
            "labels": None if codes is None else codes.astype(np.int32), "seed": self.session.seed,
            "metric": self._metric(shown),
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
        if shown.id not in self.session.maps:  # it was removed meanwhile
            return
        self.session.tell_map(shown)
        if shown.evidence is not None:
            self.session.tell("evidence", shown.evidence)

    def _data_file(self, shown: ExploredMap | None = None) -> Path:
        """The data that a method gets, or that the model of a map was given."""
        data = self.session.data
        if shown is None or shown.fitted_here or not (shown.steps or data.steps):
            return self._saved("data", "prepared", data.prepared)
        if not shown.steps:
            return self._saved("data", "filled", data.filled)
        return self._saved("data", shown.id, prepared(shown.steps, data.table.X))

    def _model_file(self, shown: ExploredMap) -> str | None:
        """The model as a file; None if there is none, or it cannot be saved."""
        path = self._model_path(shown.id)
        try:
            if shown.model is not None and not path.exists():
                save(shown.model, path)
        except (UnsavableError, TypeError):
            return None
        return str(path) if path.exists() else None

    def _saved(self, kind: str, name: str, X: Any) -> Path:
        """An array as a file, written once."""
        with self._lock:
            path = self.session.folder / f"{kind}-{name}{'.npz' if sparse.issparse(X) else '.npy'}"
            if not path.exists():
                if sparse.issparse(X):
                    sparse.save_npz(path, X, compressed=False)
                else:
                    np.save(path, np.asarray(X), allow_pickle=False)
            return path

    def _classes(self) -> Any:
        """The first label, if it has classes and no row is without one."""
        labels = self.session.data.table.labels
        found = class_labels(Table(np.empty((self.session.data.n, 0)), labels=labels), _say_nothing)
        if found is not None and missing_entries(np.asarray(found)).any():
            return None
        return found

    def _metric(self, shown: ExploredMap) -> Any:
        """That of the method, by which its map is assessed; precomputed ones are not here."""
        metric = "euclidean" if shown.model is None else metric_of(shown.model)
        is_pairs = isinstance(metric, str) and metric == "precomputed"
        return "euclidean" if is_pairs else metric

    def _model_path(self, map_id: str) -> Path:
        return self.session.folder / f"{map_id}.model"

    def forget(self, map_id: str) -> None:
        """End the work on a map that was removed, and delete its files."""
        for job in list(self.jobs.jobs.values()):
            if job.map == map_id:
                with contextlib.suppress(ValueError):  # its result is being kept
                    self.jobs.cancel(job)
        self._delete_files(map_id)

    def _delete_files(self, map_id: str) -> None:
        for path in self.session.folder.glob(f"*{map_id}*"):
            path.unlink(missing_ok=True)


def _say_nothing(note: str) -> None:
    """Labels without classes are seen on the page."""
