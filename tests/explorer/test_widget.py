"""The widget: requests of a view are answered to it, events go to all views."""

import gc

import numpy as np
import pytest

import manifoldry
from manifoldry.explorer.jobs import JobQueue
from manifoldry.explorer.messages import assemble, dismantle

pytest.importorskip("anywidget")


@pytest.fixture
def explorer(flowers, pca, monkeypatch):
    monkeypatch.setattr(JobQueue, "add", lambda queue, job: queue.jobs.setdefault(job.id, job))
    made = manifoldry.explore(pca, flowers, height=300)
    yield made
    made.close()


@pytest.fixture
def widget(explorer, monkeypatch):
    """A widget whose messages are kept instead of sent."""
    sent = []
    made = explorer.widget
    monkeypatch.setattr(type(made), "send", lambda self, content, buffers=None: sent.append(
        (content, [bytes(each) for each in buffers or []])))  # fmt: skip
    made.sent = sent
    return made


def ask(widget, message, view="v1"):
    """Send as a view does, through the callback that Jupyter calls."""
    header, buffers = dismantle(message)
    before = len(widget.sent)
    widget._handle_custom_msg(
        {"view": view, "message": header}, [memoryview(each) for each in buffers]
    )
    return [
        (content.get("view"), assemble(content["message"], found))
        for content, found in widget.sent[before:]
    ]


def test_replies_name_the_view(widget, pca):
    (found,) = ask(widget, {"id": 4, "ask": "start", "with": {}}, view="some view")
    view, reply = found
    assert (view, reply["id"]) == ("some view", 4)
    assert (reply["reply"]["n"], reply["reply"]["hosted"]) == (150, "notebook")
    shown = reply["reply"]["maps"][0]["id"]
    request = {"id": 5, "ask": "positions", "with": {"map": shown, "step": None}}
    ((view, reply),) = ask(widget, request, view="other")
    assert view == "other"
    xy = reply["reply"]["xy"].reshape(-1, 2)
    assert np.corrcoef(xy[:, 0], pca.embedding_[:, 0])[0, 1] == pytest.approx(1)


def test_a_selection_on_the_page_reaches_python(widget, explorer):
    rows = np.array([5, 3], dtype=np.uint32)
    ask(widget, {"id": 1, "ask": "select", "with": {"rows": rows}})
    np.testing.assert_array_equal(explorer.selection, [3, 5])
    np.testing.assert_array_equal(widget.selection, [3, 5])
    assert widget.n_changes == 0  # the page sets it itself


def test_a_selection_in_python_reaches_the_page(widget, explorer):
    explorer.select([7])
    ((content, buffers),) = widget.sent
    message = assemble(content["message"], buffers)
    assert "view" not in content
    assert message["event"] == "select"
    assert message["with"]["rows"].tolist() == [7]
    assert widget.n_changes == 1
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "n_changes")
    explorer.select([7])  # also the same rows: who waits for a selection is told
    explorer.select([])
    assert seen == [2, 3]
    explorer._session.tell("say", {"text": "nothing"})
    assert widget.n_changes == 3


def test_labels_made_in_one_view_reach_the_others(widget, explorer):
    args = {"rows": np.array([3], dtype="u4"), "column": "mine", "value": "a"}
    found = ask(widget, {"id": 1, "ask": "label", "with": args})
    events = [message["event"] for view, message in found if view is None]
    replies = [message["reply"] for view, message in found if view == "v1"]
    assert events == ["labels"]
    assert replies == [{"name": "mine", "saved": ""}]
    assert explorer.labels["mine"][3] == "a"


@pytest.mark.parametrize(
    "content",
    [{}, None, [], "text", {"view": "v1"}, {"view": "v1", "message": None},
     {"view": "v1", "message": {"id": 1, "ask": "select", "with": {"rows": {
         "$array": 3, "dtype": "u4"}}}},
     {"view": "v1", "message": {"id": 1, "ask": "nothing", "with": {}}}],
)  # fmt: skip
def test_garbage_is_answered(widget, content):
    widget._handle_custom_msg(content, [])
    ((sent, _),) = widget.sent
    assert sent["message"]["error"]


def test_the_same_widget_every_time(explorer):
    assert explorer.widget is explorer.widget
    assert explorer._display_() is explorer.widget
    assert explorer.widget.height == 300
    assert explorer.widget.n_changes == 0
    assert "n_changes" in explorer.widget.keys  # which are synchronized


def test_the_session_lives_as_long_as_the_widget(flowers, pca, monkeypatch):
    """It is the widget that a notebook shows, not the explorer."""
    monkeypatch.setattr(JobQueue, "add", lambda queue, job: queue.jobs.setdefault(job.id, job))
    widget = manifoldry.explore(pca, flowers).widget
    sent = []
    widget.send = lambda content, buffers=None: sent.append(content["message"])
    gc.collect()
    widget._handle_custom_msg(
        {"view": "v", "message": {"id": 1, "ask": "search", "with": {"text": "setosa"}}}, []
    )
    assert sent[-1]["reply"]["total"] == 50
    folder = widget._kept._session.folder
    assert folder.exists()
    widget.close()
    assert folder.exists()
    del widget
    gc.collect()
    assert not folder.exists()


def test_a_widget_that_is_closed_hears_nothing(widget, explorer):
    widget.close()
    explorer.select([3])
    assert widget.sent == []
