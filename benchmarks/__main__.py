"""Command line of the benchmarks: ``python -m benchmarks --help``."""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import machine, measure
from benchmarks.ratios import FACTOR, pairs, regressions
from benchmarks.report import RESULTS, keep, ratios_of, read, slug
from benchmarks.workload import find


def main(arguments=None):
    """Measure, then keep the results or check them against the kept ones."""
    options = parse(arguments)
    workloads = find(options.workloads, options.quick)
    if options.list or not workloads:
        print("\n".join(f"{w.name:28} {w.what}" for w in workloads or find()))
        return 0 if options.list else 2
    results = {"machine": machine(), "python": platform.python_version(), "workloads": {}}
    with tempfile.TemporaryDirectory() as folder:
        for workload in workloads:
            report = measure(workload, options.repeats, options.quick, Path(folder))
            results["workloads"][workload.name] = report
            if not options.check:  # after each one: a run that is stopped has not been in vain
                print(f"kept in {keep(results, options.results, options.quick)}", flush=True)
    return check(results, options) if options.check else 0


def check(results, options):
    """Say which ratios got worse, and return the exit status."""
    name = slug(results["machine"], options.quick)
    path = options.against or options.results / f"{name}.json"
    new, kept = ratios_of(results), ratios_of(read(path))
    compared = len(pairs(new, kept))
    if not compared:  # to have compared nothing is not to have passed
        print(f"nothing to compare with in {path}; measure without --check first, or --against")
        return 2
    worse = regressions(new, kept, options.factor)
    print("\n".join(worse) or "no ratio got worse", end="")
    print(
        f"\n{compared} of {len(kept)} ratios in {path} compared, {options.factor:g} times allowed"
    )
    return 1 if worse else 0


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", help="beginnings of names; all by default")
    add("--list", action="store_true", help="say what there is, and stop")
    add("--quick", action="store_true", help="only the quick subset")
    add("--repeats", type=int, default=3, help="runs of each contestant, in turns (default 3)")
    add("--check", action="store_true", help="compare with the kept results, keep nothing")
    add("--factor", type=float, default=FACTOR, help=f"worst change allowed (default {FACTOR})")
    add("--against", type=Path, help="results to check against; this machine's by default")
    add("--results", type=Path, default=RESULTS, help="where results are kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
