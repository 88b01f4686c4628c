"""The harness of the benchmarks: what it compares, keeps and refuses. Nothing is timed here."""

import dataclasses
import doctest
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks").exists():
    pytest.skip("benchmarks are not part of the source distribution", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as command  # noqa: E402 (the path has to be set first)
from benchmarks import (  # noqa: E402 (the path has to be set first)
    curves,
    gpu,
    machine,
    measure,
    overview,
    page,
    peers,
    ratios,
    report,
    worker,
    workload,
)  # fmt: skip
from benchmarks.workloads import constraint, growth, stage  # noqa: E402 (the path has to be set first)
from benchmarks.workloads.common import roll, timing, trust  # noqa: E402 (the path has to be set first)

FLOOR = "recall >= 0.9"


def row(name, seconds=None, recall=1.0, ours=False, peak=100.0, **more):
    plain = {"name": name, "env": "manifoldry" if ours else "peer", "ours": ours, "aside": False,
             "series": "", "size": 0}  # fmt: skip
    if seconds is None:
        return plain | more
    done = {"seconds": seconds, "peak_mb": peak, "before_mb": 10.0, "parts": {}, "versions": {},
            "quality": {"recall": recall}}  # fmt: skip
    return plain | done | more


def entry(*rows, floors=(FLOOR,)):
    return {"what": "w", "floors": list(floors), "rows": list(rows), "time": "now",
            "load_before": [0.0], "load_after": [0.0]}  # fmt: skip


def results(*rows, name="w"):
    machine = {"cpu": "A (R) CPU", "cores": 2, "memory_gb": 1, "system": "s"}
    return {"machine": machine, "workloads": {name: entry(*rows)}}


def turns(name, *times, **more):
    return row(name, sorted(times)[len(times) // 2], times=list(times), **more)


def curve(*times, pace=0.1):
    """A series without peers, of growing sizes."""
    return [
        row(f"s, n={10**i}", t, ours=True, series="s", size=10**i, paces=[pace], peak=10.0 + 10**i)
        for i, t in enumerate(times, start=2)
    ]


def time_ratio(*rows, floor=FLOOR):
    found = ratios.compare("w", entry(*rows, floors=(floor,)))
    return next(r for r in found if r["measure"] == "time")


@pytest.mark.parametrize("module", [overview, page, ratios, workload])
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


def check(new, old, floor=FLOOR, **options):
    compared = (ratios.compare("w", entry(*rows, floors=(floor,))) for rows in (new, old))
    return ratios.regressions(*compared, **options)


def test_a_ratio_that_grew_is_a_regression():
    old = row("o", 1.0, ours=True), row("p", 1.0)
    assert not check([row("o", 1.5, ours=True), row("p", 1.0)], old)  # within 1.25², of one run
    assert len(check([row("o", 1.6, ours=True), row("p", 1.0)], old)) == 1
    assert not check([row("o", 1.6, ours=True), row("p", 1.0)], old, factor=1.3)
    assert not check([row("o", 3.0, ours=True), row("p", 3.0)], old)  # a slower machine is none
    assert len(check([row("o", 1.0, ours=True, peak=200.0), row("p", 1.0)], old)) == 1


def test_ratios_are_taken_turn_by_turn():
    found = time_ratio(turns("o", 1.0, 4.0, 3.0, ours=True), turns("p", 1.0, 2.0, 1.0))
    assert (found["value"], found["range"], found["runs"]) == (2.0, [1.0, 3.0], 3)
    once = time_ratio(turns("o", 1.0, 4.0, 3.0, ours=True), row("p", 2.0))
    assert (once["value"], once["range"]) == (1.5, [0.5, 2.0])


def test_the_kept_spread_is_the_tolerance():
    peer = row("p", 1.0)
    narrow = turns("o", 1.0, 1.0, 1.0, ours=True), peer
    wide = turns("o", 1.0, 1.0, 2.0, ours=True), peer
    new = turns("o", 0.1, 1.4, 9.0, ours=True), peer  # the median counts
    assert "was 1.00, now 1.40, beyond 1.25" in check(new, narrow)[0]
    assert not check(new, wide)


def test_a_uniform_slowdown_of_a_curve_is_a_regression():
    old, slower = curve(1.0, 10.0, 100.0), curve(2.0, 20.0, 200.0)
    assert not check(old, old, floor="any")
    told = check(slower, old, floor="any")
    assert len(told) == 3
    assert all("time ÷ pace" in sentence for sentence in told)
    # On a machine of half the pace the same times say nothing.
    assert not check(curve(2.0, 20.0, 200.0, pace=0.2), old, floor="any")


def test_a_steeper_curve_is_a_regression():
    old, new = curve(1.0, 10.0, 100.0), curve(0.1, 10.0, 1000.0)
    assert any("time slope" in sentence for sentence in check(new, old, floor="any"))


def test_levels_of_results_without_a_pace_are_not_compared():
    old = [{k: v for k, v in r.items() if k != "paces"} for r in curve(1.0, 10.0)]
    assert not check(curve(5.0, 50.0), old, floor="any")
    assert "missing" in check(curve(1.0), old, floor="any")[0]  # but sizes are counted


def test_what_vanished_is_a_regression():
    old = curve(1.0, 10.0, 100.0)
    gone = check(old[:2], old, "any")
    assert gone[0] == "w, s, n=10000, time ÷ pace (any): was 1000.00, now missing"
    late = [*old[:2], {**row("s, n=10000", ours=True, timeout=9), "series": "s", "size": 10000}]
    assert any("now not reached" in sentence for sentence in check(late, old, "any"))
    with_peer = row("o", 1.0, ours=True), row("p", 1.0)
    assert any("missing" in sentence for sentence in check(with_peer[1:], with_peer))
    assert not check(
        [row("o", 1.0, ours=True), row("p", failed="x")], with_peer
    )  # theirs, not ours


def test_faster_curves_may_lose_their_exponent():
    assert not check(curve(0.001, 0.01, 0.1), curve(1.0, 10.0, 100.0), floor="any")


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
    assert command.check(results(row("o", 1.0, ours=True), row("p", failed="x")), options) == 2


def test_workloads_that_vanished_or_failed_fail_the_check(tmp_path, capsys):
    rows = row("o", 1.0, ours=True), row("p", 1.0)
    for name in ("knn-gone", "knn-roll-50k", "knn-roll"):
        report.keep(results(*rows, name=name), tmp_path)
    against = ["--check", "--quick", "--against", str(next(tmp_path.glob("*.json")))]
    new, options = results(*rows, name="knn-roll-50k"), command.parse(against)
    assert command.check(new, options) == 1  # knn-roll is not quick, so only one is gone
    assert capsys.readouterr().out.startswith("knn-gone: was measured, now missing\n2 of 2 ratios")
    assert command.check(new, command.parse([*against, "knn-roll"])) == 0
    new["workloads"]["knn-roll-50k"] = {"what": "w", "floors": [FLOOR], "skipped": "no data"}
    assert command.check(new, command.parse([*against, "knn-roll"])) == 1
    assert "knn-roll-50k: was measured, now no data" in capsys.readouterr().out


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
    first = results(row("o", 1.0, ours=True), row("p", 2.0), name="knn-roll")
    path = report.keep(first, tmp_path)
    second = results(row("o", 1.0, ours=True), row("q", timeout=9), name="other")
    assert report.keep(second, tmp_path) == path
    assert list(json.loads(path.read_text())["workloads"]) == ["knn-roll", "other"]
    text = path.with_suffix(".md").read_text()
    assert "| **o** | 0.50 |" in text
    assert "> 9 s" in text
    assert (tmp_path / "a-r-cpu-2-cores-ratios.png").stat().st_size > 0


def test_the_page_of_tasks_shows_ours_beside_the_best_peer():
    task = overview.Task("a task", "w", FLOOR)
    ours, lean, fast = (
        row("o", 3.0, ours=True, peak=300.0),
        row("lean", 2.0, peak=100.0),
        row("fast", 1.0, peak=600.0),
    )
    told = entry(ours, lean | {"env": "a"}, fast | {"env": "b"}, row("s", 0.1, recall=0.5))
    time, memory = (overview.outcome(task, told, key) for key in overview.TITLES)
    assert (time.ratio, time.theirs, time.peer) == (3.0, 1.0, "b")
    assert (memory.ratio, memory.theirs, memory.peer) == (3.0, 100.0, "a")
    late = overview.outcome(task, entry(ours, row("p", timeout=30.0)), "seconds")
    assert (late.ratio, late.theirs, late.bound) == (0.1, 30.0, True)
    alone = overview.outcome(task, entry(ours, row("p", 1.0, recall=0.5)), "seconds")
    assert (alone.ratio, alone.peer) == (None, "no peer of equal quality")
    poor = overview.outcome(task, entry(row("o", 1.0, 0.5, ours=True), lean), "seconds")
    assert (poor.ratio, poor.peer) == (None, "ours is not of equal quality")


def test_tasks_are_rows_of_workloads():
    found = {w.name: w for w in workload.find()}
    for task in (task for group in overview.TASKS.values() for task in group):
        w = found[task.workload]
        assert not task.floor or task.floor in w.floors, task
        assert not task.contestant or w.contestant(task.contestant).ours
    assert "the same, exact" in overview.measured({})[1]


def test_pages_have_the_tables_of_the_recorded_results():
    recorded = report.read(report.RESULTS / f"{page.MACHINE}.json")
    outdated = [p.name for p, text in page.pages(recorded).items() if p.read_text() != text]
    assert not outdated, "run python -m benchmarks.page"


def test_tables_of_pages_compare_at_equal_quality():
    rows = (
        row("o", 3.0, ours=True),
        row("a", 1.0, recall=0.5, env="a"),
        row("b", 2.0, env="a"),
        row("c", 0.1, env="a", aside=True),
    )
    told = {"knn-roll": entry(*rows)}
    floor = next(t for t in overview.TASKS["Neighbors"] if t.workload == "knn-roll").floor
    told["knn-roll"]["floors"] = (floor,)
    name = "15 neighbors, Swiss roll 1 000 000 × 3"
    assert page.against(told, "a")[2:] == [
        f"| {name} | 3\N{NO-BREAK SPACE}s | 2\N{NO-BREAK SPACE}s | 1.5 | 1 |"
    ]
    assert page.against(told, "b")[2:] == []
    listed = [line.replace("\N{NO-BREAK SPACE}", " ") for line in page.slower(told)]
    assert listed == [f"- {name}: a 2 s, ours 3 s, 1.5 times as long"]
    assert page.fill("<!-- m -->\nold\n<!-- /m -->", "m", ["new"]) == "<!-- m -->\nnew\n<!-- /m -->"
    with pytest.raises(ValueError, match="needs one line <!-- n -->"):
        page.fill("<!-- m -->\n<!-- /m -->", "n", ["new"])


def test_curves_have_peers_and_the_size_of_a_longer_run(tmp_path):
    def series(name, seconds, **more):
        return [
            row(f"{name} {n}", seconds * n, series=name, size=n, task="TSNE", peak=10.0 + n, **more)
            for n in (1000, 10_000, 100_000)
        ]

    rows = [*series("TSNE", 1e-3, ours=True), *series("openTSNE (TSNE)", 4e-3)]
    late = row("p", timeout=60.0, peak_so_far_mb=5.0) | {"series": "p (TSNE)", "size": 10_000}
    workloads = {
        "growth-points": entry(*rows, late | {"task": "TSNE"}, floors=("any",)),
        "tsne-million": entry(row("TSNE", 2000.0, ours=True)),
    }
    found = curves.rows_of(workloads, "growth-points", "TSNE")
    assert [r["size"] for r in found if r["series"] == "TSNE"] == [1000, 10_000, 100_000, 10**6]
    assert len(found) == 8
    assert curves.draw(workloads, tmp_path / "g.png").stat().st_size > 0
    assert curves.draw({}, tmp_path / "none.png") is None
    told = "\n".join(report.section(workloads["growth-points"]))
    assert "| > 60 s, > 5 MB |" in told
    assert [r["ours"] for r in ratios.compare("w", workloads["growth-points"])][:2] == [
        "TSNE 1000"
    ] * 2
    measures = {r["measure"] for r in ratios.compare("w", workloads["growth-points"])}
    assert measures == {"time ÷ pace", "memory, MB", "time slope", "memory slope"}


def test_memory_is_recorded_of_contestants_that_are_stopped(tmp_path):
    found = workload.find(["startup-import"])[0]
    job = (found, "import manifoldry", tmp_path, tmp_path)
    told = measure._worker(sys.executable, "pace", *job, timeout=0.1)
    assert told["timeout"] == 0.1
    assert told["peak_so_far_mb"] > 1


def test_a_contestant_may_have_its_own_time_limit(monkeypatch, tmp_path):
    limits = []
    monkeypatch.setattr(measure, "_worker", lambda *job: limits.append(job[6]) or {"timeout": 1})
    found = workload.find(["startup-import"])[0]
    for limit in (None, 7.0):
        one = dataclasses.replace(found.contestants[2], timeout=limit, env=workload.OURS, peer=True)
        measure._run(found, one, tmp_path, tmp_path)
    assert limits == [found.timeout, 7.0]


def test_a_run_replaces_only_what_it_measured(tmp_path, monkeypatch):
    """Even workloads that another run has kept meanwhile stay as they are."""
    names = ["knn-mnist-5k", "knn-roll-50k"]
    monkeypatch.setattr(command, "machine", lambda: results()["machine"])
    monkeypatch.setattr(report, "plot", lambda *_: [])

    def by(whom):
        return row("o", 1.0, ours=True, commit=whom, dirty=False)

    def measured(w, *_):
        if w.name == names[1]:  # while the second is measured, somebody else does the first
            report.keep(results(by("theirs"), name=names[0]), tmp_path)
        return entry(by("ours"))

    report.keep(results(by("before"), name="growth"), tmp_path)
    monkeypatch.setattr(command, "measure", measured)
    assert command.main([*names, "--results", str(tmp_path)]) == 0
    kept = json.loads((tmp_path / "a-r-cpu-2-cores.json").read_text())["workloads"]
    commits = {name: w["rows"][0]["commit"] for name, w in kept.items()}
    assert commits == {"growth": "before", names[0]: "theirs", names[1]: "ours"}


def test_table_says_what_did_not_run():
    told = "\n".join(report.section(entry(row("p", failed="not installed: no wheel"))))
    assert "not installed: no wheel" in told
    assert report.section({"skipped": "no data"}) == ["Skipped: no data"]


def test_table_shows_the_spread_or_that_there_is_none():
    many = report.section(entry(turns("o", 1.0, 4.0, 3.0, ours=True), row("p", 2.0)))
    assert "| **o** | 1.50 (0.50–2.00) |" in many[2]
    assert "| 3 (1–4) |" in many[2]
    assert many[-1].startswith("Median of 3 runs; ")
    once = report.section(entry(row("o", 1.0, ours=True), row("p", 2.0)))
    assert "| **o** | 0.50 |" in once[2]
    assert once[-1].startswith("One run each, so the spread is not known; ")


def test_table_names_the_commit():
    known = {"commit": "0123456789abcdef", "dirty": True, "python": "3.11.7"}
    told = report.section(entry(row("o", 1.0, ours=True, **known), row("p", 2.0)))[-1]
    assert "manifoldry 0123456789 with edits; Python 3.11.7" in told
    unknown = {**known, "commit": None, "dirty": None}
    told = report.section(entry(row("o", 1.0, ours=True, **unknown), row("p", 2.0)))[-1]
    assert "manifoldry of unknown commit" in told


def test_table_of_growth_says_what_was_too_slow_and_left_out():
    small, large = (workload.Contestant(f"{n}", print, series="s", size=n) for n in (10, 100))
    rows = [measure._row(small, [{"timeout": 180.0}]), measure._row(large, [])]
    told = report.section(entry(*rows, floors=("any",)))
    assert told[2] == "| s | – | – | > 180 s | left out |"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A package in a repository of its own, found before any other of its name."""
    package = tmp_path / "clone" / "src" / "measured"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "clone" / ".gitignore").write_text(".venv\n")
    in_repository(tmp_path / "clone", "init", "-q")
    monkeypatch.syspath_prepend(str(package.parent))
    return tmp_path / "clone"


def in_repository(folder, *arguments):
    """Git on this repository and no other, whatever the code under test makes of its folder."""
    where = (f"--git-dir={folder}/.git", f"--work-tree={folder}")
    return subprocess.run(["git", *where, *arguments], check=True, capture_output=True, text=True)


def commit(folder):
    in_repository(folder, "add", ".")
    who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    in_repository(folder, *who, "commit", "-q", "--no-verify", "-m", "m")
    return in_repository(folder, "rev-parse", "HEAD").stdout.strip()


def test_the_commit_is_that_of_the_source_measured(checkout, monkeypatch):
    monkeypatch.chdir(ROOT)
    head = commit(checkout)
    assert machine.source("measured") == {"commit": head, "dirty": False}
    (checkout / "results.json").touch()  # results kept beside the source are no edit of it
    assert not machine.source("measured")["dirty"]
    (checkout / "src" / "measured" / "new.py").touch()
    assert machine.source("measured") == {"commit": head, "dirty": True}
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))  # as in a hook
    assert machine.source("measured")["commit"] == head


def test_what_only_lies_in_a_checkout_has_no_commit(checkout, monkeypatch):
    commit(checkout)
    installed = checkout / ".venv" / "installed"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(installed.parent))
    assert machine.source("installed") == {"commit": None, "dirty": None}


def test_ours_are_recorded_with_commit_and_pace(tmp_path):
    """In a worker of its own, as always."""
    found = workload.find(["startup-import"])[0]
    data = tmp_path / "data"
    data.mkdir()
    told = measure._run(found, found.contestant("import manifoldry"), data, tmp_path)
    assert {k: told[k] for k in ("commit", "dirty")} == machine.source("manifoldry")
    assert told["pace"] > 0
    made = measure._row(found.contestants[0], [told, {**told, "seconds": 1e9}, told])
    assert made["times"] == [told["seconds"], 1e9, told["seconds"]]
    assert made["seconds"] == told["seconds"]
    assert made["paces"] == [told["pace"]] * 3


def test_clock_starts_at_the_last_yield(tmp_path):
    def run(X, twice):
        yield
        yield
        return {"embedding": X * twice, "eigenproblem": 0.25}

    worker.write(tmp_path, {"X": np.ones(3), "_truth": np.zeros(3)})
    out = tmp_path / "out"
    out.mkdir()
    clock = iter([0.0, 1.0, 2.0, 5.0]).__next__
    told = worker.run(workload.Contestant("c", run, options={"twice": 2}), tmp_path, out, clock)
    assert told["parts"] == {"eigenproblem": 0.25}
    assert told["seconds"] == 3.0
    assert told["peak_mb"] >= told["before_mb"] > 0
    assert set(worker.read(out)) == {"embedding"}
    np.testing.assert_array_equal(worker.read(out)["embedding"], [2, 2, 2])


@pytest.mark.parametrize("name", ["tsne-million", "elastic-million"])
def test_maps_of_a_million_points_are_scored(tmp_path, name):
    found = workload.find([name])[0]
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir(), out.mkdir()
    worker.write(data, {"X": np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)})
    worker.run(found.contestants[0], data, out)
    scored = worker.score(found, data, out)
    assert 0.5 < scored["trust"] <= 1
    assert len(scored) > 1


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


def test_growth_reaches_a_million_beside_peers():
    reached = {}
    for c in (c for w in workload.find(["growth", "growth-points"]) for c in w.contestants):
        own = reached.setdefault((c.task, c.ours), [])
        own.append(c.size)
        assert c.ours or c.timeout == growth.PEER_LIMIT
    pictured = {task for _, _, task in curves.PANELS}
    assert {task for task, ours in reached if not ours} >= pictured
    a_million = {task for (task, ours), sizes in reached.items() if ours and max(sizes) == 10**6}
    assert a_million == {"NeighborGraph", "PCA", "LaplacianEigenmaps", "Isomap"}
    assert all(len(set(sizes)) >= 3 for sizes in reached.values())  # for an exponent


def driven(work):
    """What a contestant returns."""
    try:
        while True:
            next(work)
    except StopIteration as stop:
        return stop.value


@pytest.fixture(scope="module")
def small():
    return constraint.with_columns(partial(roll, 600), 10, inverse=True)


def test_reference_of_the_constrained_problem(small):
    W = constraint.matrix(*(small[k] for k in ("data", "indices", "indptr")))
    L = np.eye(W.shape[0]) - constraint.normalized(W).toarray()
    for name, columns in (("_plain", []), ("_constrained", [small["C"]])):
        Q = constraint.excluded(W, *columns)
        P = np.eye(len(L)) - Q @ Q.T
        expected = np.linalg.eigvalsh(P @ L @ P + 9 * Q @ Q.T)[:3]
        np.testing.assert_allclose(small[name], expected, rtol=1e-8)
        by_products = constraint.reference(W, Q, inverse=False)
        np.testing.assert_allclose(by_products, expected, rtol=1e-8)


def test_accuracy_of_constrained_solutions(small):
    given = {k: v for k, v in small.items() if not k.startswith("_")}
    found = {c: driven(constraint.solve(**given, constrained=c)) for c in (True, False)}
    for result in found.values():
        assert constraint.accuracy(small, result)["residual/gap"] < 1e-3
    plain = {**found[False], "constrained": found[True]["constrained"]}
    assert constraint.accuracy(small, plain)["residual/gap"] > 0.1


@pytest.mark.parametrize("method", ["LLE", "LTSA"])
def test_stages_of_both_give_the_same_matrix(method):
    arrays = roll(400)
    found = [driven(run(arrays["X"], method)) for run in (stage.ours, stage.sklearn)]
    ours, theirs = (stage.matrix(**f).toarray() for f in found)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(theirs).max())
    rough = [stage.roughness(arrays, f)["log-roughness"] for f in found]
    assert rough[0] == pytest.approx(rough[1], abs=0.01)
    noise = {**found[0], "data": np.random.default_rng(0).permutation(found[0]["data"])}
    assert stage.roughness(arrays, noise)["log-roughness"] > rough[0] + 0.3


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


@pytest.mark.parametrize("card", [{}, {"card": "C", "card_memory_gb": 9.0, "versions": "v"}])
def test_tables_of_devices_with_and_without_a_card(card):
    about = {"cpu": "P", "cores": 2, "memory_gb": 4, "python": "3", "threads": 2} | card
    found = {"first": 2.0, "best": 1.0, "memory_gb": 3.0 if card else None}
    found["quality"] = {"residual / gap": 1e-8}
    kept = {"machine": about, "commit": "0" * 40, "work": {"eigenmaps": found}}
    lines = gpu.table(kept).splitlines()
    assert ("3.0 GB" in lines[2]) == bool(card)
    assert lines[-1].startswith("C, 9.0 GB; v" if card else "P, 2 cores, 4 GB")


def test_the_last_line_of_a_command_or_what_went_wrong():
    python = [sys.executable, "-c"]
    assert machine.last_line([*python, "print('x'); print('{\"a\": 1}')"], 60) == {"a": 1}
    assert machine.last_line([*python, "raise ValueError('bad')"], 60) == {
        "error": ["ValueError: bad"]
    }
    late = machine.last_line([*python, "import time; time.sleep(60)"], 0.5)
    assert late == {"error": "not ended after 0.5 s"}
