"""The harness of the benchmarks: what it compares, keeps and refuses. Nothing is timed here."""

import doctest
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("benchmarks are not part of the source distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as command  # noqa: E402 (the path has to be set first)
from benchmarks import measure, peers, ratios, report, worker, workload  # noqa: E402 (the path has to be set first)
from benchmarks.workloads.common import timing, trust  # noqa: E402 (the path has to be set first)

FLOOR = "recall >= 0.9"


def row(name, seconds=None, recall=1.0, ours=False, peak=100.0, **more):
    plain = {"name": name, "env": "manifoldry" if ours else "peer", "ours": ours, "aside": False,
             "series": "", "size": 0}  # fmt: skip
    if seconds is None:
        return plain | more
    done = {"seconds": seconds, "peak_mb": peak, "before_mb": 10.0, "spread": [seconds, seconds],
            "runs": 1, "parts": {}, "versions": {}, "quality": {"recall": recall}}  # fmt: skip
    return plain | done | more


def entry(*rows, floors=(FLOOR,)):
    return {"what": "w", "floors": list(floors), "rows": list(rows), "time": "now",
            "load_before": [0.0], "load_after": [0.0]}  # fmt: skip


def results(*rows):
    machine = {"cpu": "A (R) CPU", "cores": 2, "memory_gb": 1, "system": "s", "threads": {}}
    return {"machine": machine, "python": "3", "workloads": {"w": entry(*rows)}}


def time_ratio(*rows, floor=FLOOR):
    found = ratios.compare("w", entry(*rows, floors=(floor,)))
    return next(r for r in found if r["measure"] == "time")


@pytest.mark.parametrize("module", [ratios, workload])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_ratio_is_to_the_best_peer_of_equal_quality():
    ours, good, sloppy = row("o", 2.0, ours=True), row("g", 4.0), row("s", 0.1, recall=0.5)
    assert time_ratio(ours, good, sloppy)["value"] == 0.5
    assert time_ratio(ours, good, row("a", 0.1, aside=True))["value"] == 0.5


def test_ours_short_of_the_floor_has_no_ratio():
    assert time_ratio(row("o", 0.1, recall=0.5, ours=True), row("g", 4.0))["value"] is None
    assert time_ratio(row("o", ours=True, failed="x"), row("g", 4.0))["value"] is None


def test_peers_out_of_time_bound_the_ratio():
    late = time_ratio(row("o", 2.0, ours=True), row("p", timeout=100))
    assert late["value"] == 0.02
    assert late["bound"]


def test_floor_relative_to_the_best():
    floor = "recall >= best - 0.02"
    rows = row("o", 2.0, 0.95, ours=True), row("near", 4.0, 0.96), row("far", 1.0, 0.90)
    assert time_ratio(*rows, floor=floor)["value"] == 0.5


def test_slopes_of_a_series():
    rows = [
        row(f"{n}", 1e-4 * n**2, series="s", size=n, ours=True, peak=10 + n)
        for n in (100, 1000, 10000)
    ]
    found = {m: v for _, m, v in ratios.slopes(rows)}
    assert found["time slope"] == pytest.approx(2)
    assert found["memory slope"] == pytest.approx(1)


def test_an_exponent_may_grow_by_a_difference():
    old = {"measure": "time slope", "value": 1.0}
    assert ratios.allowed(old, 1.5) == 1.5
    assert ratios.allowed({**old, "value": -0.2}, 1.5) == pytest.approx(0.3)
    assert ratios.allowed({**old, "measure": "time", "value": 2.0}, 1.5) == 3.0


def check(new, old, **options):
    return ratios.regressions(
        ratios.compare("w", entry(*new)), ratios.compare("w", entry(*old)), **options
    )


def test_a_ratio_that_grew_is_a_regression():
    old = row("o", 1.0, ours=True), row("p", 1.0)
    assert not check([row("o", 1.4, ours=True), row("p", 1.0)], old)
    assert len(check([row("o", 1.6, ours=True), row("p", 1.0)], old)) == 1
    assert not check([row("o", 1.6, ours=True), row("p", 1.0)], old, factor=2.0)
    assert not check([row("o", 3.0, ours=True), row("p", 3.0)], old)  # a slower machine is none
    assert len(check([row("o", 1.0, ours=True, peak=200.0), row("p", 1.0)], old)) == 1


def test_quality_lost_is_a_regression():
    old = row("o", 1.0, ours=True), row("p", 1.0)
    assert "not reached" in check([row("o", 0.5, 0.1, ours=True), row("p", 1.0)], old)[0]


def test_tiny_times_are_not_checked():
    old = row("o", 0.001, ours=True), row("p", 0.001)
    assert not check([row("o", 0.01, ours=True), row("p", 0.001)], old)


def test_exit_status_of_the_check(tmp_path, capsys):
    options = command.parse(["--check", "--results", str(tmp_path)])
    fine = results(row("o", 1.0, ours=True), row("p", 1.0))
    assert command.check(fine, options) == 2  # nothing to compare with is not a pass
    report.keep(fine, tmp_path)
    assert command.check(fine, options) == 0
    assert command.check(results(row("o", 2.0, ours=True), row("p", 1.0)), options) == 1
    assert "was 1.00, now 2.00" in capsys.readouterr().out


def test_results_are_written_whole(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    report.write_whole(path, "old")

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        report.write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.json"]


def test_kept_results_merge_and_are_drawn(tmp_path):
    first = results(row("o", 1.0, ours=True), row("p", 2.0))
    path = report.keep(first, tmp_path)
    second = {**first, "workloads": {"other": entry(row("o", 1.0, ours=True), row("q", timeout=9))}}
    assert report.keep(second, tmp_path) == path
    assert list(json.loads(path.read_text())["workloads"]) == ["w", "other"]
    text = path.with_suffix(".md").read_text()
    assert "| **o** | 0.50 |" in text
    assert "> 9 s" in text
    assert (tmp_path / "a-r-cpu-2-cores-ratios.png").stat().st_size > 0


def test_table_says_what_did_not_run():
    told = "\n".join(report.section(entry(row("p", failed="not installed: no wheel"))))
    assert "not installed: no wheel" in told
    assert report.section({"skipped": "no data"}) == ["Skipped: no data"]


def test_clock_starts_at_the_last_yield(tmp_path):
    def run(X, twice):
        yield
        yield
        return {"embedding": X * twice, "eigenproblem": 0.25}

    worker.write(tmp_path, {"X": np.ones(3), "_truth": np.zeros(3)})
    out = tmp_path / "out"
    out.mkdir()
    told = worker.run(workload.Contestant("c", run, options={"twice": 2}), tmp_path, out)
    assert told["parts"] == {"eigenproblem": 0.25}
    assert told["seconds"] >= 0
    assert told["peak_mb"] >= told["before_mb"] > 0
    assert set(worker.read(out)) == {"embedding"}
    np.testing.assert_array_equal(worker.read(out)["embedding"], [2, 2, 2])


def test_larger_sizes_are_left_out_after_a_timeout():
    sizes = [workload.Contestant(f"n={n}", print, series="s", size=n) for n in (1, 2)]
    assert measure._due(sizes[1], sizes, {"n=1": [{"seconds": 1.0}], "n=2": []}, 0)
    assert not measure._due(sizes[1], sizes, {"n=1": [{"timeout": 1}], "n=2": []}, 0)


def test_slow_and_failed_contestants_are_not_repeated():
    one = workload.Contestant("c", print)
    for past, due in (
        ({"seconds": 1.0}, True),
        ({"seconds": 99.0}, False),
        ({"failed": "x"}, False),
    ):
        assert measure._due(one, [one], {"c": [past]}, 1) is due


def test_a_peer_that_does_not_install_is_reported(monkeypatch, tmp_path):
    def refuse(peer):
        raise peers.NotInstalled("no wheel")

    monkeypatch.setattr(measure, "python", refuse)
    found = workload.find(["startup-import"])[0]
    told = measure._run(found, found.contestants[-1], tmp_path, tmp_path)
    assert told == {"failed": "not installed: no wheel"}


def test_workloads_are_well_formed():
    found = workload.find()
    assert len({w.name for w in found}) == len(found)
    for w in found:
        names = [c.name for c in w.contestants]
        assert len(set(names)) == len(names), w.name
        assert {c.env for c in w.contestants} <= {workload.OURS, *peers.PACKAGES}
        assert next(iter(w.contestants)).ours
    assert 0 < len(workload.find(quick=True)) < len(found)


def test_trust_agrees_with_scikit_learn():
    from sklearn.manifold import trustworthiness

    X = np.random.default_rng(0).normal(size=(90, 5))
    expected = trustworthiness(X, X[:, :2], n_neighbors=12)
    assert trust({"X": X}, {"embedding": X[:, :2]})["trust"] == pytest.approx(expected)


def test_timing_restores_what_it_wrapped():
    original = json.dumps
    with timing(json, "dumps") as spent:
        json.dumps([])
    assert len(spent) == 1
    assert json.dumps is original
