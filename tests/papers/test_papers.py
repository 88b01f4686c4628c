"""Every reproduced publication runs, writes what it should, and its identities hold."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[2] / "papers"
RUNS = sorted(PAPERS.glob("*/run.py"))


def load_report():
    # `papers` is a folder of scripts, not a package; dataclasses look their module up by name.
    spec = importlib.util.spec_from_file_location("papers_report", PAPERS / "report.py")
    module = sys.modules["papers_report"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


report = load_report()
FIELDS = {"id", "what", "published", "criterion", "measured", "passed", "note", "status"}


def execute(*command):
    # Tests run in parallel already: more threads than cores only wait for each other.
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=os.environ | threads
    )


def criterion(passed=True, id="E1.1", **more):
    return report.Criterion(id, "what", "published", "criterion", "a | b", passed, **more)


@pytest.mark.slow  # ten to thirty seconds each; .ci/run takes the one that covers most methods
@pytest.mark.parametrize("run", RUNS, ids=[run.parent.name for run in RUNS])
def test_paper_runs(run, tmp_path):
    recorded = run.with_name("README.md").read_bytes()
    done = execute(run, "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / run.parent.name
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert {"paper", "title", "quick", "versions", "seeds", "seconds", "counts"} <= results.keys()
    assert {"manifoldry", "numpy", "scipy", "scikit-learn"} <= results["versions"].keys()
    assert results["quick"]
    check_criteria(results["criteria"])
    check_files(folder, run.parent)
    assert run.with_name("README.md").read_bytes() == recorded  # the record is left alone


def check_criteria(criteria):
    assert criteria
    for each in criteria:
        assert each.keys() >= FIELDS
        assert each["status"] in report.STATUSES
    broken = [each["what"] for each in criteria if each["identity"] and not each["passed"]]
    assert not broken


def check_files(folder, recorded):
    drawn = {path.name for path in folder.glob("figures/*.png")}
    assert drawn == {path.name for path in recorded.glob("figures/*.png")}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "| E" in readme
    assert all(f"(figures/{name})" in readme for name in drawn)
    assert recorded.name in (folder.parent / "README.md").read_text(encoding="utf-8")
    assert not list(folder.rglob(".*"))  # no temporary file left over


@pytest.mark.parametrize("paper", [run.parent for run in RUNS], ids=lambda paper: paper.name)
def test_recorded_results_are_full_and_small(paper):
    results = json.loads((paper / "results.json").read_text(encoding="utf-8"))
    assert not results["quick"]
    assert all(path.stat().st_size < 150_000 for path in paper.glob("figures/*.png"))


@pytest.mark.parametrize("paper", [run.parent for run in RUNS], ids=lambda paper: paper.name)
def test_every_failure_on_record_has_a_cause(paper):
    recorded = report.Report.read(paper / "results.json")
    failed = [each for each in recorded.criteria if each.passed is False]
    unexplained = [each.what for each in failed if recorded.failure(each) is None]
    assert not unexplained
    used = {recorded.failure(each) for each in failed}
    outdated = [entry for entry in recorded.failures if entry not in used]
    assert not outdated  # these criteria pass now, or have other names


@pytest.mark.parametrize("paper", [run.parent for run in RUNS], ids=lambda paper: paper.name)
def test_tables_are_those_of_the_record(paper):
    recorded = report.Report.read(paper / "results.json")
    readme = (paper / "README.md").read_text(encoding="utf-8")
    assert report.fill(readme, "results", recorded.markdown()) == readme
    summary = recorded.summary(report.read_claims(paper.name))
    assert report.fill(readme, "summary", summary) == readme
    index = (PAPERS / "README.md").read_text(encoding="utf-8")
    assert report.fill(index, "index", report.index_table(PAPERS)) == index
    page = report.SITE.read_text(encoding="utf-8")
    assert report.fill(page, "index", report.index_table(PAPERS, "{}.md")) == page


@pytest.mark.parametrize("paper", [run.parent for run in RUNS], ids=lambda paper: paper.name)
def test_summary_has_all_experiments_and_no_claim_that_failed_as_held(paper):
    recorded = report.Report.read(paper / "results.json")
    claims = report.read_claims(paper.name)
    listed = [id for claim in claims for id in claim.experiments]
    assert sorted(listed) == sorted({each.id for each in recorded.criteria})
    for claim in claims:
        failed = [recorded.failure(c) for c in recorded.criteria if c.id in claim.experiments]
        if claim.found.startswith(("**Held**", "**Held.**")):
            assert "claim" not in {each.cause for each in failed if each}, claim.says
    page = report.SITE.with_name(f"{paper.name}.md").read_text(encoding="utf-8")
    assert f"../../papers/{paper.name}/README.md" in page


def test_summary_counts_criteria_and_quotes_one():
    claim = report.Claim("a claim", "**Held.**", ["E1.1"], ["E1.1", "what"])
    criteria = (criterion(), criterion(False, id="E1.2"), criterion(id="E1.2", surrogate="s"))
    result = report.Report("p", "t", criteria, {}, failures=())
    both = report.Claim("another", "**Did not.**", ["E1.1", "E1.2"])
    text = result.summary([claim, both])
    assert "For example, what: a | b." in text
    assert "E1.1: 1 of 1 criteria met." in text
    assert "E1.1, E1.2: 2 of 3 criteria met; 1 of them on other data." in text
    with pytest.raises(ValueError, match=r"0 criteria of E1\.1 begin"):
        result.summary([report.Claim("a", "b", ["E1.1"], ["E1.1", "other"])])


def failure(what="what", cause="settings", evidence="a rerun with 20 neighbors"):
    return report.Failure("E1.1", what, cause, evidence)


def test_failure_is_explained_by_the_longest_matching_entry():
    entries = (failure("wh"), failure("what", "claim"), failure("other", "data"))
    failed, passed = criterion(False), criterion(True)
    result = report.Report("p", "t", (failed, passed), {"e": 1.0}, failures=entries)
    assert result.failure(failed) is entries[1]
    assert result.failure(passed) is None
    assert result.failure(criterion(False, id="E1.2")) is None
    assert result.causes() == {
        "claim": 1,
        "settings": 0,
        "data": 0,
        "criterion": 0,
        "ours": 0,
        "": 0,
    }
    assert "**FAILED**: claim" in result.markdown()


@pytest.mark.parametrize(
    ("wrong", "message"), [({"cause": "luck"}, "luck"), ({"evidence": " "}, "no evidence")]
)
def test_failure_needs_a_cause_and_evidence(wrong, message):
    with pytest.raises(ValueError, match=message):
        failure(**wrong)


@pytest.mark.parametrize(
    ("passed", "surrogate", "status"),
    [
        (True, "", "PASSED"),
        (True, "digits for faces", "SURROGATE"),
        (False, "digits for faces", "FAILED"),
        (None, "", "NOT YET"),
    ],
)
def test_status(passed, surrogate, status):
    assert criterion(passed, surrogate=surrogate).status == status


def test_numpy_booleans_count():
    import numpy as np

    assert criterion(np.False_).status == "FAILED"
    assert criterion(np.True_).passed is True


def test_failures_are_shown_in_text_and_markdown():
    criteria = (criterion(), criterion(False, note="with noise"))
    result = report.Report("p", "t", criteria, {"e": 1.0}, failures=(failure(),))
    assert "FAILED" in result.text()
    reason = (
        "with noise; holds only with other settings, which are named: a rerun with 20 neighbors"
    )
    assert f"↳ {reason}" in result.text()
    assert reason in result.markdown()
    assert "1 failed" in result.text()
    assert "a \\| b" in result.markdown()  # a bar would end the cell


def test_unexplained_failure_says_so():
    result = report.Report("p", "t", (criterion(False),), {"e": 1.0})
    assert "not explained" in result.text()
    assert result.causes()[""] == 1


def test_experiments_are_sorted_by_number():
    experiment = lambda lab: [criterion(id=id) for id in ("E1.10", "E1.2", "E1.1")]  # noqa: E731 (an experiment of one line)
    found = report.run("p", "t", [experiment], report.Lab(Path()))
    assert [each.id for each in found.criteria] == ["E1.1", "E1.2", "E1.10"]


def test_fill_replaces_only_what_is_between_the_markers():
    text = "before\n<!-- results -->\nold\n<!-- /results -->\nafter\n"
    once = report.fill(text, "results", "new")
    assert once == "before\n<!-- results -->\nnew\n<!-- /results -->\nafter\n"
    assert report.fill(once, "results", "new") == once


def test_fill_wants_markers():
    with pytest.raises(ValueError, match="<!-- results -->"):
        report.fill("no markers", "results", "new")


def test_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "results.json"
    report.write_text(path, "old")

    def half(temporary):
        temporary.write_text("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.replace_file(path, half)
    assert path.read_text() == "old\n"
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize("option", [["--quick"], ["--only", "scaling"]])
def test_partial_run_refuses_to_overwrite_the_record(option):
    done = execute(PAPERS / "lecture-notes" / "run.py", *option)
    assert done.returncode == 2
    assert "--out" in done.stderr


def test_unknown_experiment_is_named(tmp_path):
    done = execute(PAPERS / "lecture-notes" / "run.py", "--only", "scale", "--out", tmp_path)
    assert done.returncode == 2
    assert "['scale']" in done.stderr
    assert "scaling" in done.stderr


def test_a_quick_run_says_that_its_samples_are_small():
    full = report.Report("p", "t", (criterion(False),), {"e": 1.0})
    quick = report.Report("p", "t", (criterion(False),), {"e": 1.0}, quick=True)
    assert "samples are too small" in quick.text().splitlines()[-1]
    assert "samples are too small" in quick.markdown()
    assert "quick" not in full.text() + full.markdown()
