"""Long computations, one at a time, each in a process of its own that can be ended."""

from __future__ import annotations

import contextlib
import itertools
import queue
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, RLock, Thread
from typing import IO, Any

import manifoldry
from manifoldry.explorer.messages import pack, unpack
from manifoldry.util.text import short_line

Message = dict[str, Any]
STOP = b"s"  # on the standard input of a worker: end early and keep the map
_SECONDS_BETWEEN_REPORTS = 0.2
_MOST_ENDED = 20  # jobs that have ended and are listed
# This package, wherever it is; with -P nothing is imported from the folder of the data.
_WORKER = (
    f"import sys; sys.path.append({str(Path(manifoldry.__file__).parents[1])!r}); "
    "from manifoldry.explorer.worker import run_task; run_task()"
)


@dataclass(eq=False)
class Job:
    """A computation, and how far it is.

    Parameters
    ----------
    id : str
        What messages call it.
    kind : {"map", "evidence", "stability"}
        What it makes.
    what : str
        The same in words.
    task : dict
        What the worker is told, see :mod:`manifoldry.explorer.worker`.
    finish : callable
        Called with the result of the worker; an error in it makes the job fail.
    map : str, optional
        The map that it is about.
    can_stop : bool
        Whether it can end early and keep its map.
    """

    id: str
    kind: str
    what: str
    task: Callable[[], Message]
    finish: Callable[[Message], None]
    map: str | None = None
    can_stop: bool = False
    state: str = "waiting"
    fraction: float | None = None
    status: str = ""
    began: float | None = None
    seconds: float = 0.0
    process: Any = None
    told: bool = False  # whether the process has its task
    keeps: bool = False  # whether its result is being kept
    ended: Event = field(default_factory=Event)

    def described(self) -> Message:
        """What the page shows of it."""
        if self.state == "running" and self.began is not None:
            self.seconds = time.monotonic() - self.began
        return {
            "id": self.id, "kind": self.kind, "what": self.what, "map": self.map,
            "state": self.state, "fraction": self.fraction, "status": self.status,
            "seconds": round(self.seconds, 1),
            "can_stop": self.can_stop and self.told and self.state == "running",
        }  # fmt: skip

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in ("done", "failed", "canceled")

    def let_go(self) -> None:
        """Hold on to no map and no session any more."""
        self.task, self.finish = dict, _nothing


class JobQueue:
    """Runs jobs one after the other; maps before their evidence.

    Parameters
    ----------
    tell : callable
        Called with a job after each of its changes.
    preview : callable
        Called with a job and the positions of its map so far.
    """

    def __init__(self, tell: Callable[[Job], None], preview: Callable[[Job, Any], None]) -> None:
        self.tell, self.preview = tell, preview
        self.jobs: dict[str, Job] = {}
        self._waiting: queue.PriorityQueue[tuple[int, int, Job | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._thread: Thread | None = None
        self._closed = False
        self._lock = RLock()  # of the states of jobs

    def add(self, job: Job) -> Job:
        """Run a job when those before it have ended."""
        with self._lock:
            self.jobs[job.id] = job
            for ended in [each for each in self.jobs.values() if each.is_over][:-_MOST_ENDED]:
                del self.jobs[ended.id]
            if not self._closed and self._thread is None:
                self._thread = Thread(target=self._run_all, name="explorer jobs", daemon=True)
                self._thread.start()
        if self._closed:
            self.cancel(job)
            return job
        self.tell(job)
        self._waiting.put((int(job.kind != "map"), next(self._numbers), job))
        return job

    def find(self, job_id: str) -> Job:
        """The job of an identifier."""
        try:
            return self.jobs[job_id]
        except KeyError:
            raise ValueError("this work is not known; the explorer was started anew") from None

    def cancel(self, job: Job) -> None:
        """End a job; what it has computed is lost."""
        with self._lock:
            if job.is_over:
                return
            if job.keeps:
                raise ValueError(f"{job.what} has ended, and its result is being kept")
            runs = job.state == "running"
            job.state, job.status = "canceled", "canceled"
            if job.process is not None:
                job.process.kill()
        if not runs:
            job.let_go()
            job.ended.set()
        self.tell(job)

    def stop(self, job: Job) -> None:
        """End a job early; it keeps its map so far."""
        with self._lock:
            if job.state != "running" or not (job.can_stop and job.told):
                raise ValueError(f"{job.what} cannot be stopped now; cancel it instead")
            job.status = "stopping"
            with contextlib.suppress(OSError, ValueError):  # it has just ended
                job.process.stdin.write(STOP)
                job.process.stdin.flush()
        self.tell(job)

    def close(self) -> None:
        """End all jobs; none is taken any more."""
        self._closed = True
        for job in list(self.jobs.values()):
            with contextlib.suppress(ValueError):  # its result is being kept
                self.cancel(job)
        if self._thread is not None:
            self._waiting.put((2, next(self._numbers), None))
            self._thread.join(timeout=10)

    def _run_all(self) -> None:
        while (job := self._waiting.get()[2]) is not None and not self._closed:
            with self._lock:
                if job.state != "waiting":
                    continue
                job.state, job.status, job.began = "running", "starting", time.monotonic()
            self._run(job, job.began)

    def _run(self, job: Job, began: float) -> None:
        try:
            self.tell(job)
            result = self._result(job)
            if result is not None and self._keeps(job):
                job.finish(result)
                self._end(job, "done", "")
        except Exception as error:  # of the data or the method; the explorer goes on
            self._end(job, "failed", short_line(error, 1000) or type(error).__name__)
        finally:
            job.seconds = time.monotonic() - began
            job.let_go()
            job.ended.set()
            self.tell(job)

    def _keeps(self, job: Job) -> bool:
        """Whether the result of a job is kept; it cannot be canceled any more then."""
        with self._lock:
            job.keeps = job.state == "running"
            return job.keeps

    def _end(self, job: Job, state: str, status: str) -> None:
        """A canceled job stays canceled, whatever came of it."""
        with self._lock:
            job.process, job.keeps = None, False
            if job.state != "canceled":
                job.state, job.status = state, status
                job.fraction = 1.0 if state == "done" else job.fraction

    def _result(self, job: Job) -> Message | None:
        """What the worker returns; None if the job was canceled."""
        task = job.task()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _WORKER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            with process:
                with self._lock:
                    job.process = process
                    if job.state == "canceled":  # before there was a process to end
                        process.kill()
                try:
                    write_frame(process.stdin, task)
                    job.told = True
                    self.tell(job)
                    return self._followed(job, process.stdout)
                except (BrokenPipeError, EOFError):
                    code = process.wait()
                    if job.state == "canceled":
                        return None
                    raise RuntimeError(_reason(code, errors)) from None

    def _followed(self, job: Job, output: IO[bytes]) -> Message:
        """The result, after everything that is said before it."""
        told = 0.0
        while True:
            message = read_frame(output)
            if "result" in message:
                return dict(message["result"])
            if "error" in message:
                raise RuntimeError(message["error"])
            if "preview" in message:
                self.preview(job, message["preview"])
                continue
            job.fraction = message["fraction"]
            job.status = message["status"].partition(": ")[2] or message["status"]  # without class
            if time.monotonic() - told > _SECONDS_BETWEEN_REPORTS:
                told = time.monotonic()
                self.tell(job)


def _nothing(result: Message) -> None:
    """In the place of what a job does at its end."""


def write_frame(stream: IO[bytes], message: Message) -> None:
    """Write a message with its length before it."""
    frame = pack(message)
    stream.write(struct.pack("<Q", len(frame)) + frame)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Message:
    """Read a message; EOFError if the other end is closed."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", head)
    frame = stream.read(size)
    if len(frame) < size:
        raise EOFError
    return dict(unpack(frame))


def _reason(code: int, errors: IO[bytes]) -> str:
    """Why a worker ended without a result."""
    if code == -9:
        return "the process was killed, most likely because there is too little memory"
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    last = short_line(lines[-1], 500) if lines else f"exit code {code}"
    return f"the process ended without a result: {last}"
