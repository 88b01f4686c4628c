"""Measurements: each in a new process, repeated in rounds, with a time limit."""

import json
import os
import signal
import statistics
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import threads
from benchmarks.peers import NotInstalled, last_line, python
from benchmarks.ratios import IN_TURN
from benchmarks.worker import peak_of
from benchmarks.workload import EMPTY, OURS, SHARED

ROOT = Path(__file__).parents[1]
MAKING = 3600.0  # time limit in seconds for making data and for scoring, which are not measured
LONG = 60.0  # a contestant that takes longer than this many seconds is not repeated


def measure(workload, repeats, quick, folder):
    """Measure one workload; `folder` stores data that several workloads use."""
    data = folder / (workload.dataset or workload.name)
    report = {"what": workload.what, "floors": list(workload.floors)}
    report |= {"time": datetime.now(UTC).isoformat("T", "seconds"), "threads": threads()}
    report |= {"load_before": os.getloadavg()}
    missing = _make(workload, data)
    if missing:
        return report | {"skipped": missing}
    contestants = [c for c in workload.contestants if c.quick or not quick]
    runs = {c.name: [] for c in contestants}
    with tempfile.TemporaryDirectory(dir=folder) as shared:
        for turn in range(repeats):  # in rounds, so that a busy period affects all contestants
            for contestant in contestants:
                if _due(contestant, contestants, runs, turn):
                    runs[contestant.name].append(_run(workload, contestant, data, Path(shared)))
    rows = [_row(c, runs[c.name]) for c in contestants]
    return report | {"load_after": os.getloadavg(), "rows": rows}


def _make(workload, data):
    """Make the data unless they exist; return the reason if that fails, else None."""
    if data.exists():
        missing = data / "missing"
        return missing.read_text() if missing.exists() else None
    data.mkdir(parents=True)
    print(f"{workload.name}: making data", flush=True)
    with tempfile.TemporaryDirectory() as out:
        report = _worker(python(OURS), "make", workload, "", data, Path(out), MAKING)
    reason = report.get("missing") or report.get("failed")
    if reason:
        (data / "missing").write_text(reason)
    return reason


def _due(contestant, contestants, runs, turn):
    """Whether a contestant runs in this round: not if it failed, was slow, or will time out."""
    past = runs[contestant.name]
    if turn and (len(past) < turn or any(r.get("seconds", LONG) >= LONG for r in past)):
        return False
    smaller = (c for c in contestants if c.series and c.series == contestant.series)
    stopped = (c for c in smaller if c.size < contestant.size)
    return not any(r.get("timeout") or r.get("failed") for c in stopped for r in runs[c.name])


def _run(workload, contestant, data, shared):
    try:
        interpreter = python(contestant.env)
    except NotInstalled as reason:
        return {"failed": f"not installed: {reason}"}
    with tempfile.TemporaryDirectory() as out:
        out, empty = Path(out), Path(out) / "empty"
        empty.mkdir()
        folders = {EMPTY: str(empty), SHARED: str(shared)}
        environ = {k: folders.get(v, v) for k, v in contestant.environ.items()}
        job = (workload, contestant.name, data, out)
        limit = contestant.timeout or workload.timeout
        if contestant.rehearse and not any(shared.iterdir()):
            _worker(interpreter, "run", *job, limit, environ)
        speed = _worker(interpreter, "pace", *job, MAKING) if contestant.ours else {}
        load = os.getloadavg()[0]
        report = speed | _worker(interpreter, "run", *job, limit, environ)
        report |= {"load": [load, os.getloadavg()[0]]}
        if "seconds" in report and workload.quality:
            report |= _worker(python(OURS), "score", *job, MAKING)
    outcome = (
        f"{report['seconds']:.2f} s" if "seconds" in report else report.get("failed", "time out")
    )
    print(f"{workload.name}: {contestant.name}: {outcome} {report.get('quality', '')}", flush=True)
    return report


def _worker(interpreter, action, workload, contestant, data, out, timeout, environ=None):
    """Run the worker in its own process group, so that its children end with it."""
    command = [interpreter, "-m", "benchmarks.worker", action]
    command += [workload.module, workload.name, contestant, str(data), str(out)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | (environ or {}), start_new_session=True, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        errors = process.communicate(timeout=timeout)[1]
    except subprocess.TimeoutExpired:
        return {"timeout": timeout, "peak_so_far_mb": peak_of(process.pid)}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        return {"failed": last_line(errors or f"ended with status {process.returncode}")}
    return json.loads((out / "report.json").read_text())


def _row(contestant, runs):
    """One row of the results: the run of median time, and the times of all runs in order."""
    done = [r for r in runs if "seconds" in r]
    kept = ("name", "env", "ours", "aside", "series", "size", "task")
    row = {k: getattr(contestant, k) for k in kept}
    if not runs:
        return row | {"left_out": "a smaller size did not finish"}
    if len(done) < len(runs):
        return row | next(r for r in runs if "seconds" not in r)
    middle = sorted(done, key=lambda r: r["seconds"])[(len(done) - 1) // 2]
    turns = {many: [r[one] for r in done] for one, many in IN_TURN.items()}
    paces = {"paces": [r["pace"] for r in done]} if contestant.ours else {}
    return row | middle | turns | paces | {"peak_mb": statistics.median(turns["peaks"])}
