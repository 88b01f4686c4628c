"""The process of a job: reads a task from standard input, writes progress and the result.

:class:`manifoldry.explorer.jobs.JobQueue` starts it.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from manifoldry.device import using_device
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.explorer.jobs import STOP, Message, read_frame, write_frame
from manifoldry.io import load, save
from manifoldry.methods.catalog import find_method
from manifoldry.methods.choice import suited_to_size
from manifoldry.methods.settings import parsed_value
from manifoldry.optimize import Callback
from manifoldry.util.progress import listening
from manifoldry.util.text import error_text

_SECONDS_BETWEEN_PREVIEWS = 0.7
_MOST_PREVIEWED = 200_000  # rows; larger maps take too long to send


class Reporter:
    """Tells the explorer how far the work is, and hears whether it should stop."""

    def __init__(self, output: IO[bytes]) -> None:
        self.output = output
        self.stopping = Event()
        self._lock = Lock()
        self._previewed = time.monotonic()
        self._told = 0.0

    def send(self, message: Message) -> None:
        """Write a message; threads do not mix theirs."""
        with self._lock:
            write_frame(self.output, message)

    def progress(self, fraction: float, status: str) -> None:
        """Report progress, at most ten times per second."""
        if time.monotonic() - self._told > 0.1:
            self._told = time.monotonic()
            self.send({"fraction": fraction, "status": status})

    def step(self, iterate: Any) -> bool:
        """After each step of a search: show the map so far; whether to stop."""
        Y = np.asarray(iterate.embedding)
        now = time.monotonic()
        if now - self._previewed > _SECONDS_BETWEEN_PREVIEWS and len(Y) <= _MOST_PREVIEWED:
            self._previewed = now
            self.send({"preview": np.asarray(Y[:, :2], dtype=np.float32)})
        return self.stopping.is_set()


def fit_method(task: Message, reporter: Reporter) -> Message:
    """Fit a method by name; the model is written to a file."""
    X = load_data(task["data"])
    notes: list[str] = []
    method = find_method(task["method"])
    estimator = method.estimator(task["n_components"], task["seed"], task["n_jobs"])
    estimator.set_params(**checked_settings(estimator, task["settings"]))
    estimator = suited_to_size(estimator, X.shape[0], notes.append)
    if task["homotopy"]:
        estimator.set_params(optimizer="homotopy")
    if "callback" in estimator.get_params(deep=False):
        estimator.set_params(callback=Callback(reporter.step, on_interrupt="keep"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        with using_device(task.get("device")):
            estimator.fit(X)
    if "callback" in estimator.get_params(deep=False):
        estimator.set_params(callback=None)
    save(estimator, task["model"])
    texts = (" ".join(str(each.message).split()) for each in seen)
    return {"notes": list(dict.fromkeys([*notes, *texts]))}


def checked_settings(estimator: Any, settings: dict[str, str]) -> dict[str, Any]:
    """Values of parameters that were typed; an unknown name is an error."""
    known = estimator.get_params()
    for name in settings:
        if name not in known:
            raise ValueError(f"{type(estimator).__name__} has no parameter {name!r}")
    return {name: parsed_value(text) for name, text in settings.items()}


def judge_map(task: Message, reporter: Reporter) -> Message:
    """Metrics of a map, also of each row."""
    from manifoldry.explorer.evidence import evidence_of

    X = load_data(task["data"])
    model = None if task["model"] is None else load(task["model"])
    embedding = np.load(task["embedding"], mmap_mode="r")
    return evidence_of(X, model, embedding, task, reporter.progress)


def refit_map(task: Message, reporter: Reporter) -> Message:
    """How far rows move if the method is fitted again to parts of the data."""
    from manifoldry.explorer.evidence import stability_of

    X, model = load_data(task["data"]), load(task["model"])
    embedding = np.load(task["embedding"], mmap_mode="r")
    return stability_of(X, clone(model), embedding, task)


def load_data(path: str) -> Any:
    """The data of a task: an array that is mapped into memory, or a sparse one."""
    if Path(path).suffix == ".npz":
        return sparse.load_npz(path)
    return np.load(path, mmap_mode="r")


TASKS: dict[str, Callable[[Message, Reporter], Message]] = {
    "fit": fit_method,
    "evidence": judge_map,
    "stability": refit_map,
}


def _listen(stream: IO[bytes], reporter: Reporter) -> None:
    """Wait for the request to stop; end if the explorer has ended."""
    while (byte := stream.read(1)) == STOP:
        reporter.stopping.set()
    if not byte:
        os._exit(1)


def run_task() -> None:
    """Do the task on standard input."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by others does not mix with messages
    reporter = Reporter(output)
    task = read_frame(sys.stdin.buffer)
    Thread(target=_listen, args=(sys.stdin.buffer, reporter), daemon=True).start()
    try:
        with listening(reporter.progress), ignoring(ManifoldryWarning):
            result = TASKS[task["do"]](task, reporter)
        reporter.send({"result": result})
    except Exception as error:
        reporter.send({"error": error_text(error)})
    os._exit(0)  # without waiting for the thread that listens
