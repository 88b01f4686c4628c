"""Plant faults in a copy of the source, one at a time, and see which the tests catch.

    python tests/sharpness [word ...]                  faults whose file or description has a word
    python tests/sharpness --tests ../old/tests        the same faults, another suite
    python tests/sharpness --control                   no faults: nothing must be caught

All faults meet the tests of their own module first; those not caught then meet the tests of their
folder, and after those the contract.
"""

import argparse
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402 (threads first)
from faults import FAULTS  # noqa: E402 (threads first)

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
LIMIT, HUNG = 900, "hung"  # seconds after which tests do so
# Imported once; every fault is tested in a fork that begins with them.
SHARED = ("numba", "pandas", "scipy.stats", "sklearn.manifold", "sklearn.utils.estimator_checks")


def main():
    arguments = parsed()
    for module in SHARED:
        import_module(module)
    found, left = Counter(), chosen(arguments.words)
    with tempfile.TemporaryDirectory() as folder:
        # With its caches: numba compiles again only where a file has changed.
        source = shutil.copytree(SOURCE, Path(folder) / "src")
        for suite in (of_its_name, of_its_folder, contract):
            last = suite is contract
            left = [f for f in left if not settled(f, suite, last, source, arguments, found)]
    print(", ".join(f"{count} {outcome}" for outcome, count in found.items()))


def settled(fault, suite, last, source, arguments, found):
    """Whether no other tests have to be asked about a fault; if so, a line of the table."""
    began = time.monotonic()
    outcome, by = planted(fault, suite, source, arguments)
    if outcome == "NOT CAUGHT" and not last:
        return False
    found[outcome] += 1
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{outcome:10} {took:>5}  {fault.file:35} {fault.what:56} {by}", flush=True)
    return True


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--tests", type=Path, default=HERE.parent)
    parser.add_argument("--workers", default="0", help="of pytest-xdist")
    parser.add_argument("--control", action="store_true")
    return parser.parse_args()


def chosen(words):
    """In random order, so that the beginning of the table says something about all."""
    faults = [f for f in FAULTS if not words or any(w in f.file or w in f.what for w in words)]
    return random.Random(0).sample(faults, len(faults))


def of_its_name(fault, tests):
    """The file of the module's own name, if there is one."""
    stem = Path(fault.file).stem.strip("_")
    return list((tests / Path(fault.file).parent).glob(f"test_{stem}.py"))


def of_its_folder(fault, tests):
    folder, known = tests / Path(fault.file).parent, of_its_name(fault, tests)
    files = set(folder.glob("test_*.py") if folder == tests else folder.rglob("test_*.py"))
    if "manifoldry.distributed" in (SOURCE / "manifoldry" / fault.file).read_text(encoding="utf-8"):
        files.update((tests / "distributed").glob("test_*.py"))
    return sorted(files.difference(known))


def contract(fault, tests):
    return [tests / "contract"]


def planted(fault, suite, source, arguments):
    """Whether tests catch a fault, and which of them does."""
    path = source / "manifoldry" / fault.file
    before, stamp = path.read_text(encoding="utf-8"), path.stat()
    if fault.old not in before:
        return "stale", ""
    new = fault.old if arguments.control else fault.new
    path.write_text(before.replace(fault.old, new, 1), encoding="utf-8")
    try:
        tests = arguments.tests.resolve()
        paths = suite(fault, tests)
        failed = in_a_fork(lambda: first_failure(paths, source, tests, arguments.workers))
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    if failed == HUNG:
        return HUNG, ""
    return ("caught", failed) if failed else ("NOT CAUGHT", "")


def first_failure(paths, source, tests, workers):
    """Name of the first test that fails, or nothing."""
    if not paths:
        return ""
    failed = []

    class Watch:
        def pytest_runtest_logreport(self, report):
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report):
            if report.failed:
                failed.append(report.nodeid)

    os.chdir(tests.parent)
    sys.path[:1] = [str(source), str(tests.parent)]  # workers of joblib import tests from there
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    sys.pycache_prefix = str(source.parent / "compiled")
    options = ["-x", "-q", "--tb=no", "-m", "not slow", "-p", "no:cacheprovider", "-n", workers]
    code = pytest.main([*options, *map(str, paths)], plugins=[Watch()])
    return failed[0] if failed else "" if code == 0 else f"exit status {code}"


def in_a_fork(function):
    """What a function returns, a string, in a process of its own."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        os.write(write, function().encode() or b" ")
        os._exit(0)
    os.close(write)
    if not select.select([read], [], [], LIMIT)[0]:
        os.killpg(child, signal.SIGKILL)
    answer = os.read(read, 2**16).decode()
    os.close(read)
    os.waitpid(child, 0)
    return answer.strip() if answer else HUNG


if __name__ == "__main__":
    main()
