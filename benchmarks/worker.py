"""Code of a measured process: make the data, run one contestant, or score its result.

    python -m benchmarks.worker {make,run,score,pace} MODULE WORKLOAD CONTESTANT DATA OUT

`make` writes arrays to DATA as .npy files, `run` writes its result to OUT likewise, `pace` measures
the speed of the machine, and all of them write a report to OUT/report.json. numpy is imported only
if there are arrays, so that it does not count in start-up times.
"""

import json
import resource
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.machine import pace, source
from benchmarks.peers import PACKAGES
from benchmarks.workload import OURS, Missing, load

VERSIONS = (OURS, "numpy", "scipy", "numba", "pyamg", *PACKAGES)


def main(action, module, workload, contestant, data, out):
    data, out = Path(data), Path(out)
    found = next(w for w in load(module) if w.name == workload)
    if action == "make":
        report = make(found, data)
    elif action == "run":
        clock = time.process_time if found.processor_time else time.perf_counter
        report = run(found.contestant(contestant), data, out, clock)
    elif action == "pace":
        report = {"pace": pace()}
    else:
        report = {"quality": score(found, data, out)}
    (out / "report.json").write_text(json.dumps(report))


def make(workload, data):
    try:
        write(data, workload.data())
    except Missing as reason:
        return {"missing": str(reason)}
    return {}


def run(contestant, data, out, clock=time.perf_counter):
    arrays = read(data, only=lambda name: not name.startswith("_"))
    work = contestant.run(**arrays, **contestant.options)
    start, result = clock(), {}
    try:
        while True:
            next(work)
            before, start = peak_memory(), clock()
    except StopIteration as stop:
        seconds, result = clock() - start, stop.value or {}
    report = {"seconds": seconds, "peak_mb": peak_memory(), "before_mb": before}
    if contestant.env == OURS:  # after the peak, which would include git as a child process
        report |= source(OURS)
    parts = {name: float(v) for name, v in result.items() if isinstance(v, float)}
    write(out, {name: v for name, v in result.items() if name not in parts})
    return report | {"parts": parts, "versions": versions(), "python": sys.version.split()[0]}


def score(workload, data, out):
    metrics = workload.quality(read(data), read(out)) if workload.quality else {}
    return {name: float(value) for name, value in metrics.items()}


def write(folder, arrays):
    for name, array in arrays.items():
        import numpy as np

        np.save(folder / f"{name}.npy", array)


def read(folder, only=lambda name: True):
    """Arrays of a folder by name."""
    arrays = {}
    for path in filter(lambda path: only(path.stem), folder.glob("*.npy")):
        import numpy as np

        arrays[path.stem] = np.load(path)
    return arrays


def peak_memory():
    """Peak resident memory in MB, of this process and the largest of its children.

    A new process inherits the value of getrusage from its parent, but not the peak that the
    kernel reports in /proc.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    own = peak_of("self")
    if own is None:
        unit = 2**20 if sys.platform == "darwin" else 1024
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return own + children


def peak_of(process):
    """Peak resident memory in MB of a running process; None where there is no /proc."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return None
    marks = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(marks[0].split()[1]) / 1024 if marks else None


def versions():
    found = {}
    for package in VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
