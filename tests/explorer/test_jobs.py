"""Work in the background: its order, its end, and real processes."""

import gc
import os
import signal
import subprocess
import sys
import weakref
from threading import Event

import numpy as np
import psutil
import pytest

import manifoldry
from manifoldry.explorer.jobs import _WORKER, Job, JobQueue, read_frame, write_frame
from manifoldry.explorer.messages import pack
from manifoldry.io import Table
from manifoldry.methods.catalog import METHODS, find_method

SLOW = {"max_iter": "1000000"}  # t-SNE of a few hundred rows for minutes


@pytest.fixture
def queue(monkeypatch):
    """A queue whose work is a function in this process, given as the task."""
    told = []
    made = JobQueue(lambda job: told.append((job.id, job.state)), lambda job, Y: None)
    made.told = told
    monkeypatch.setattr(made, "_result", lambda job: job.task())
    yield made
    made.close()


def job(name, task=dict, kind="map", finish=lambda result: None, **options):
    return Job(name, kind, f"work {name}", task, finish, **options)


def test_maps_come_before_evidence(queue):
    hold, order = Event(), []
    first = queue.add(job("first", lambda: hold.wait(30) and {}))
    kinds = ["evidence", "map", "stability", "evidence", "map"]
    jobs = [
        queue.add(job(str(i), dict, kind, lambda result, i=i: order.append(i)))
        for i, kind in enumerate(kinds)
    ]
    hold.set()
    assert all(each.ended.wait(30) for each in [first, *jobs])
    assert order == [1, 4, 0, 2, 3]
    assert [state for name, state in queue.told if name == "1"] == ["waiting", "running", "done"]


def test_a_job_that_waits_can_be_canceled(queue):
    hold, done = Event(), []
    first = queue.add(job("first", lambda: hold.wait(30) and {}))
    second = queue.add(job("second", lambda: done.append(1) or {}))
    queue.cancel(second)
    assert second.ended.is_set()
    hold.set()
    third = queue.add(job("third"))
    assert third.ended.wait(30)
    assert (first.state, second.state, third.state, done) == ("done", "canceled", "done", [])
    queue.cancel(first)  # which is over
    assert first.state == "done"


@pytest.mark.parametrize("where", ["task", "finish"])
def test_an_error_ends_only_its_own_job(queue, where):
    def wrong(*_):
        raise ValueError("the data\nhave  a fault")

    failing = queue.add(job("failing", **{where: wrong}))
    after = queue.add(job("after"))
    assert after.ended.wait(30)
    assert failing.described()["state"] == "failed"
    assert failing.described()["status"] == "the data have a fault"
    assert after.described()["fraction"] == 1


def test_errors_without_a_text_are_named(queue):
    def wrong():
        raise AssertionError

    failing = queue.add(job("failing", wrong))
    assert failing.ended.wait(30)
    assert failing.status == "AssertionError"


def test_a_canceled_job_stays_canceled(queue):
    """Killing its process makes errors, which are not those of the data."""
    began, canceled = Event(), Event()

    def work():
        began.set()
        assert canceled.wait(30)
        raise BrokenPipeError("broken pipe")

    running = queue.add(job("running", work))
    assert began.wait(30)
    queue.cancel(running)
    canceled.set()
    assert running.ended.wait(30)
    assert (running.state, running.status) == ("canceled", "canceled")


def test_no_job_is_taken_after_the_end(queue):
    queue.close()
    late = queue.add(job("late"))
    assert late.state == "canceled"
    assert late.ended.is_set()


def test_what_cannot_be_stopped(queue):
    hold, began = Event(), Event()

    def work():
        began.set()
        return hold.wait(30) and {}

    first = queue.add(job("first", work))
    second = queue.add(job("second", can_stop=True))
    assert began.wait(30)
    for each in (first, second):
        with pytest.raises(ValueError, match=f"work {each.id} cannot be stopped now; cancel it"):
            queue.stop(each)
    hold.set()
    assert second.ended.wait(30)
    with pytest.raises(ValueError, match="this work is not known"):
        queue.find("third")


def test_frames_between_processes(tmp_path):
    with (tmp_path / "stream").open("w+b") as stream:
        write_frame(stream, {"a": np.arange(3, dtype="f4")})
        write_frame(stream, {"b": 1})
        stream.write((2**60).to_bytes(8, "little"))
        stream.seek(0)
        np.testing.assert_array_equal(read_frame(stream)["a"], [0, 1, 2])
        assert read_frame(stream) == {"b": 1}
    (tmp_path / "cut").write_bytes((100).to_bytes(8, "little") + pack({})[:5])
    with (tmp_path / "cut").open("rb") as stream, pytest.raises(EOFError):
        read_frame(stream)


def test_a_job_cannot_be_canceled_while_its_result_is_kept(queue):
    """The map would be there, although the page says that it was canceled."""
    began, hold, kept = Event(), Event(), []

    def keep(result):
        began.set()
        assert hold.wait(30)
        kept.append(result)

    running = queue.add(job("running", lambda: {"a": 1}, finish=keep))
    assert began.wait(30)
    with pytest.raises(ValueError, match="work running has ended, and its result is being kept"):
        queue.cancel(running)
    assert running.state == "running"
    hold.set()
    assert running.ended.wait(30)
    assert (running.state, kept) == ("done", [{"a": 1}])
    queue.cancel(running)  # it is over, so there is nothing to refuse
    assert running.state == "done"


@pytest.mark.parametrize("end", ["done", "failed", "canceled", "canceled while it waits"])
def test_a_job_that_has_ended_holds_on_to_nothing(queue, end):
    class Large:
        pass

    hold, began = Event(), Event()

    def first():
        began.set()
        return hold.wait(30) and {}

    held = Large()
    gone = weakref.ref(held)
    before = queue.add(job("before", first))
    assert began.wait(30)

    def work(large=held):
        if end == "canceled":
            queue.cancel(each)
        if end == "failed":
            raise ValueError
        return {}

    each = queue.add(job("each", work, finish=lambda result, large=held: None))
    del held, work
    if end == "canceled while it waits":
        queue.cancel(each)
        gc.collect()
        assert gone() is None
    hold.set()
    assert each.ended.wait(30)
    last = queue.add(job("last"))
    assert last.ended.wait(30)
    assert before.state == "done"
    assert each.state == end.split()[0]
    gc.collect()
    assert gone() is None


def test_few_jobs_that_have_ended_are_listed(queue):
    hold = Event()
    jobs = [queue.add(job(str(i))) for i in range(50)]
    assert all(each.ended.wait(30) for each in jobs)
    running = queue.add(job("running", lambda: hold.wait(30) and {}))
    waiting = queue.add(job("waiting"))
    assert list(queue.jobs) == [str(i) for i in range(30, 50)] + ["running", "waiting"]
    with pytest.raises(ValueError, match="this work is not known"):
        queue.find("29")
    hold.set()
    assert running.ended.wait(30)
    assert waiting.ended.wait(30)


# Real processes


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(300, 5))


def events_of(session):
    """What pages are told from now on."""
    events = []
    session.listen(lambda name, content: events.append((name, content)))
    return events


def workers():
    """Processes of jobs; other tests may have left processes of their own, such as Dask's."""
    found = psutil.Process().children(recursive=True)
    running = [each for each in found if each.is_running() and each.status() != "zombie"]
    return [each for each in running if "manifoldry.explorer.worker" in " ".join(each.cmdline())]


def test_a_fit_by_settings_and_its_evidence(make_session, flowers, until, ask):
    """The map and all metrics are those of the estimator and of assess with the same seed."""
    session = make_session(flowers, seed=3)
    events = events_of(session)
    job = ask(session, "fit", method="isomap", settings={"n_neighbors": "60"}, homotopy=False)
    fitted = session.work.jobs.find(job["id"])
    assert fitted.ended.wait(60)
    assert fitted.state == "done", fitted.status
    (shown,) = session.maps.values()
    expected = manifoldry.Isomap(n_neighbors=60).fit(flowers.X)
    np.testing.assert_allclose(shown.embedding, expected.embedding_, atol=1e-8)
    assert shown.model.n_neighbors == 60
    until(lambda: shown.evidence is not None)
    codes = np.unique(flowers.labels["species"], return_inverse=True)[1]
    found = manifoldry.assess(flowers.X, expected, codes, random_state=3)
    reply = ask(session, "evidence", map=shown.id)
    assert reply["job"] is None
    for metric in reply["evidence"]["metrics"]:
        assert metric["value"] == pytest.approx(float(found.metrics[metric["name"]]), rel=1e-6)
    names = [name for name, _ in events]
    assert {"job", "map", "evidence"} <= set(names)
    assert names.index("map") < names.index("evidence")
    assert not workers()


def test_faults_of_settings_and_of_processes(make_session, points, until, ask):
    """Each is told in words, and the next one runs."""
    session = make_session(points)

    def fit(**settings):
        job = ask(session, "fit", method="tsne", settings=settings, homotopy=False)
        return session.work.jobs.find(job["id"])

    wrong, large, killed = fit(perplexities="5"), fit(perplexity="1000"), fit(**SLOW)
    until(lambda: killed.process is not None)
    until(lambda: killed.process.pid in [each.pid for each in workers()])
    os.kill(killed.process.pid, signal.SIGKILL)
    assert killed.ended.wait(60)
    assert [each.state for each in (wrong, large, killed)] == ["failed"] * 3
    assert wrong.status == "TSNE has no parameter 'perplexities'"
    assert "perplexity=1000" in large.status
    assert killed.status.startswith("the process was killed")
    assert session.maps == {}
    assert not workers()


def test_stop_keeps_the_map_and_cancel_does_not(make_session, points, until, ask, refused):
    session = make_session(points)
    session.work.assess_unasked = lambda shown: None
    events = events_of(session)
    jobs = []
    for _ in range(3):
        made = ask(session, "fit", method="tsne", settings=SLOW, homotopy=False)
        jobs.append(session.work.jobs.find(made["id"]))
    stopped, canceled, last = jobs
    until(lambda: any(name == "preview" for name, _ in events))
    assert "cannot be stopped now" in refused(session, "stop", job=last.id)
    ask(session, "stop", job=stopped.id)
    assert stopped.ended.wait(60)
    assert stopped.state == "done", stopped.status
    (shown,) = session.maps.values()
    assert shown.model.status_ == "stopped by a callback"
    assert not shown.model.converged_
    assert shown.model.callback is None
    assert np.isfinite(shown.embedding).all()
    xy = next(content for name, content in events if name == "preview")["xy"]
    assert xy.shape == (300, 2)
    assert np.abs(xy).max() == pytest.approx(1 / 1.02, rel=1e-5)

    until(lambda: canceled.process is not None)
    pid = canceled.process.pid
    assert ask(session, "cancel", job=canceled.id)["state"] == "canceled"
    assert canceled.ended.wait(60)
    assert canceled.state == "canceled"
    assert not psutil.pid_exists(pid)
    assert len(session.maps) == 1

    until(lambda: last.process is not None)
    pid = last.process.pid
    session.close()
    assert last.state == "canceled"
    until(lambda: not psutil.pid_exists(pid))
    assert not session.folder.exists()
    assert not workers()


def test_a_worker_ends_with_the_explorer(points, tmp_path):
    """Without a word, as when the explorer is killed."""
    np.save(tmp_path / "x.npy", points)
    task = {"do": "fit", "data": str(tmp_path / "x.npy"), "method": "tsne", "n_components": 2,
            "seed": 0, "n_jobs": None, "settings": SLOW, "homotopy": False,
            "model": str(tmp_path / "model")}  # fmt: skip
    command = [sys.executable, "-P", "-c", _WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        write_frame(process.stdin, task)
        assert set(read_frame(process.stdout)) in ({"fraction", "status"}, {"preview"})
        process.stdin.close()
        process.stdin = None
        assert process.wait(30) == 1


def test_programs_in_the_folder_of_the_data_are_not_run(make_session, points, tmp_path,
                                                        monkeypatch):  # fmt: skip
    """Names of the standard library and of a dependency, which an explorer started there finds."""
    for name in ("queue", "random", "struct", "numpy", "manifoldry", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(
            f"from pathlib import Path\nPath({str(tmp_path)!r}, 'was-run-{name}').touch()\n"
        )
    monkeypatch.chdir(tmp_path)
    session = make_session(points)
    fitted = session.work.fit(METHODS[0])
    assert fitted.ended.wait(60)
    assert (fitted.state, fitted.status) == ("done", "")
    (shown,) = session.maps.values()
    np.testing.assert_allclose(shown.embedding, manifoldry.PCA(2).fit(points).embedding_, atol=1e-8)
    assert list(tmp_path.glob("was-run-*")) == []


def test_cancel_while_a_large_task_is_written(make_session, until):
    """A pipe holds less than the labels of the rows, so the writing breaks."""
    n = 60_000
    labels = {"kind": np.arange(n) % 3}
    session = make_session(Table(np.zeros((n, 1)), labels=labels))
    shown = session.add_map("map", np.random.default_rng(0).normal(size=(n, 2)))
    running = session.work.assess(shown)
    until(lambda: running.process is not None)
    session.work.jobs.cancel(running)
    assert running.ended.wait(60)
    assert (running.state, running.status) == ("canceled", "canceled")


def no_files_of(session, shown_id):
    return list(session.folder.glob(f"*{shown_id}*")) == []


@pytest.mark.parametrize("when", ["it waits", "it begins", "it runs"])
def test_the_work_on_a_map_ends_with_it(make_session, points, until, monkeypatch, when):
    """Its files are deleted, and its memory is free again."""
    session = make_session(points)
    events = events_of(session)
    wrote, go_on = Event(), Event()
    usual = session.work._task_about

    def task_about(shown, kind):
        if when == "it begins":  # the map is removed before its files are written
            wrote.set()
            assert go_on.wait(30)
        return usual(shown, kind)

    monkeypatch.setattr(session.work, "_task_about", task_about)
    model = manifoldry.PCA(2).fit(points)
    shown = session.add_map("PCA", model.embedding_, model)
    slow = None
    if when == "it waits":
        slow = session.work.fit(find_method("tsne"), SLOW)
        until(lambda: slow.process is not None)
    jobs = [session.work.assess(shown), session.work.refit(shown)]
    if when == "it begins":
        assert wrote.wait(30)
    if when == "it runs":
        until(lambda: jobs[0].told)
        assert not no_files_of(session, shown.id)
    session.remove_map(shown.id)
    removed, gone = shown.id, weakref.ref(shown)
    del shown
    go_on.set()
    assert all(job.ended.wait(30) for job in jobs)
    assert [job.state for job in jobs] == ["canceled"] * 2
    until(lambda: no_files_of(session, removed))
    if when == "it begins":  # until the queue has done with it
        until(lambda: [content["state"] for name, content in events if name == "job"][-1] ==
              "canceled")  # fmt: skip
    monkeypatch.undo()
    del task_about
    until(lambda: (gc.collect(), gone() is None)[1])
    assert "evidence" not in [name for name, _ in events]
    if slow is not None:
        session.work.jobs.cancel(slow)
