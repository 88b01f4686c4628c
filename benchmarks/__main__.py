"""Command line of the benchmarks: ``python -m benchmarks --help``."""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.measure import measure
from benchmarks.ratios import FACTOR, pairs, regressions, vanished
from benchmarks.report import RESULTS, keep, ratios_of, read, slug
from benchmarks.workload import find


def main(arguments=None):
    """Measure, then store the results or compare them with the recorded ones."""
    options = parse(arguments)
    workloads = find(options.workloads, options.quick)
    if options.list or not workloads:
        print("\n".join(f"{w.name:28} {w.what}" for w in workloads or find()))
        return 0 if options.list else 2
    results = {"machine": machine(), "workloads": {}}
    with tempfile.TemporaryDirectory() as folder:
        for workload in workloads:
            report = measure(workload, options.repeats, options.quick, Path(folder))
            results["workloads"][workload.name] = report
            if not options.check:  # after each workload, in case of an interrupt
                only = {**results, "workloads": {workload.name: report}}
                print(f"stored in {keep(only, options.results, options.quick)}", flush=True)
    return check(results, options) if options.check else 0


def check(results, options):
    """Print which ratios got worse and which are missing; return the exit status."""
    name = slug(results["machine"], options.quick)
    path = options.against or options.results / f"{name}.json"
    kept = expected(read(path).get("workloads", {}), options)
    new = results["workloads"]
    both = {name: report for name, report in kept.items() if "rows" in new.get(name, {})}
    ratios, old = ratios_of(new), ratios_of(both)
    worse = [*vanished(new, kept), *regressions(ratios, old, options.factor)]
    found = [ratio is not None and ratio["value"] is not None for ratio, _ in pairs(ratios, old)]
    if not worse and not any(found):  # comparing nothing does not count as passing
        print(f"nothing to compare with in {path}; measure without --check first, or --against")
        return 2
    print("\n".join(worse) or "no ratio got worse")
    print(
        f"{sum(found)} of {len(found)} ratios in {path} compared, {options.factor:g} times allowed"
    )
    return 1 if worse else 0


def expected(kept, options):
    """Recorded workloads that a run with these options should measure."""
    chosen = {w.name for w in find(options.workloads, options.quick)}
    others = {w.name for w in find()} - chosen
    names = tuple(options.workloads) or ("",)
    return {n: w for n, w in kept.items() if n.startswith(names) and n not in others}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", help="prefixes of names; all by default")
    add("--list", action="store_true", help="list the workloads and exit")
    add("--quick", action="store_true", help="only the quick subset")
    add("--repeats", type=int, default=3, help="rounds of all contestants (default 3)")
    add("--check", action="store_true", help="compare with the recorded results, store nothing")
    add(
        "--factor",
        type=float,
        default=FACTOR,
        help=f"limit relative to the recorded value (default {FACTOR})",
    )
    add("--against", type=Path, help="recorded results; by default those of this machine")
    add("--results", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
