"""Requests of pages: right ones get what the estimator says, wrong ones a text and no more."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manifoldry
from manifoldry.explorer.actions import ACTIONS, answer
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.messages import pack, unpack
from manifoldry.explorer.session import Session
from manifoldry.explorer.uploads import UploadLimits
from manifoldry.io import Table

ROWS = np.array([3, 5], dtype=np.uint32)
# Arguments that are right, by action; "map" stands for the identifier of the map.
RIGHT = {
    "start": {},
    "positions": {"map": "map", "step": None},
    "coordinates": {"map": "map", "shown": [1, 0]},
    "color": {"by": "label", "name": "species", "map": None},
    "rows": {"rows": [3, 5]},
    "search": {"text": "setosa"},
    "invert": {"map": "map", "at": [[0.0, 0.1]]},
    "upload": {
        "id": None,
        "name": "x.csv",
        "offset": 0,
        "size": 2,
        "bytes": ROWS.view(np.uint8)[:2],
    },
    "discard": {"upload": "x"},
    "place": {"text": "5 3 2 1"},
    "distinguish": {"rows": ROWS},
    "label": {"rows": ROWS, "column": "group", "value": "mine"},
    "export": {"rows": ROWS},
    "select": {"rows": ROWS},
    "fit": {"method": "pca", "settings": {}, "homotopy": False},
    "evidence": {"map": "map"},
    "stability": {"map": "map"},
    "cancel": {"job": "job"},
    "stop": {"job": "job"},
    "keep": {"map": "map"},
    "remove": {"map": "map"},
}


@pytest.fixture
def quiet(session, monkeypatch):
    """A session whose work in the background does not begin."""

    def add(job):
        session.work.jobs.jobs[job.id] = job
        return job

    monkeypatch.setattr(session.work.jobs, "add", add)
    return session


@pytest.fixture
def arguments(quiet):
    """Function that returns right arguments of an action."""
    shown = next(iter(quiet.maps))
    work = quiet.work.refit(quiet.maps[shown]).id

    def of(action):
        stands = {"map": shown, "job": work}
        return {
            key: stands.get(value, value) if isinstance(value, str) else value
            for key, value in RIGHT[action].items()
        }

    return of


def test_every_action_has_an_example():
    assert set(RIGHT) == set(ACTIONS)


@pytest.mark.parametrize("action", sorted(set(RIGHT) - {"stop"}))
def test_right_requests_have_replies_that_can_be_sent(quiet, arguments, action):
    reply = answer(quiet, {"id": 7, "ask": action, "with": arguments(action)}, "page")
    assert set(reply) == {"id", "reply"}, reply
    assert unpack(pack(reply))["id"] == 7


WRONG = [None, True, -1, 10**30, 0.5, float("nan"), "", "x" * 100_000, "\ud800", "../../etc/passwd",
         [], [None], [[[1]]], [1e300], {}, {"a": {}}, np.zeros(3), np.array([-1], dtype=np.int32),
         np.full(2, np.nan, dtype=np.float32), np.array([2**32 - 1], dtype=np.uint32)]  # fmt: skip


@pytest.mark.parametrize("action", sorted(RIGHT))
def test_wrong_arguments_are_answered(quiet, arguments, action):
    """Each in turn is left out or absurd; the reply can be sent, and errors are sentences."""
    right = arguments(action)
    requests = [right | {name: wrong} for name in right for wrong in WRONG]
    requests += [{key: right[key] for key in right if key != name} for name in right]
    refused = 0
    for request in requests:
        reply = answer(quiet, {"id": 1, "ask": action, "with": request}, "page")
        assert set(reply) in ({"id", "reply"}, {"id", "error"})
        pack(reply)
        if "error" in reply:
            refused += 1
            assert 10 < len(reply["error"]) < 101_000
            assert "Traceback" not in reply["error"]
            assert not reply["error"].startswith(("KeyError", "AttributeError", "IndexError",
                                                  "AssertionError", "RuntimeError"))  # fmt: skip
    assert refused or action == "start"


@pytest.mark.parametrize("action", sorted(set(RIGHT) - {"start"}))
def test_no_arguments_at_all(quiet, refused, action):
    assert refused(quiet, action).startswith("the request has no ")


@pytest.mark.parametrize(
    "message",
    [None, [], 3, "start", {}, {"ask": "start"}, {"ask": "start", "with": None},
     {"ask": "start", "with": []}, {"ask": "__class__", "with": {}}, {"ask": ["start"], "with": {}},
     {"ask": None, "with": {}}, {"with": {}}, {"id": [1], "ask": 3, "with": {}}],
)  # fmt: skip
def test_requests_that_are_none(session, message):
    reply = answer(session, message, "page")
    assert reply["error"] == "the request is not known; reload the page"
    assert reply["id"] == (message.get("id") if isinstance(message, dict) else None)


HARMLESS = sorted(set(RIGHT) - {"remove", "fit", "evidence", "stability"})


@settings(deadline=None, database=None, derandomize=True, max_examples=100,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "ask", "with", "map", "rows", "text", "by"]), inner, max_size=3),
    max_leaves=8), st.sampled_from(HARMLESS))  # fmt: skip
def test_anything_is_answered(quiet, value, action):
    for message in (value, {"id": 1, "ask": action, "with": value}):
        pack(answer(quiet, message, "page"))
    assert len(quiet.maps) == 1


# What right requests give


def test_start(session, ask):
    reply = ask(session, "start")
    assert (reply["title"], reply["n"], reply["n_features"]) == ("test", 150, 4)
    assert reply["labels"] == [{"name": "species", "kind": "classes", "own": False}]
    assert (reply["row_kind"], reply["image"], reply["hosted"]) == ("table", None, "page")
    assert [each["name"] for each in reply["maps"]] == ["PCA"]
    assert reply["version"] == manifoldry.__version__
    assert reply["upload_bytes"] == 200_000_000
    selection = reply.pop("selection")
    assert (selection.dtype, len(selection)) == (np.uint32, 0)
    json.dumps(reply, allow_nan=False)


def test_a_page_begins_with_the_selection(session, ask):
    ask(session, "select", rows=ROWS)
    np.testing.assert_array_equal(ask(session, "start")["selection"], ROWS)


def test_a_map_that_is_made_while_a_page_begins_is_not_lost(session, ask, monkeypatch, flowers):
    """The page is told only of maps that come after the reply to `start`."""
    from manifoldry.explorer import actions

    usual = actions.described_methods

    def meanwhile():
        session.add_map("late", flowers.X[:, :2])
        return usual()

    monkeypatch.setattr(actions, "described_methods", meanwhile)
    assert [each["name"] for each in ask(session, "start")["maps"]] == ["PCA", "late"]


def test_positions_and_other_coordinates(make_session, flowers, ask):
    session = make_session(flowers)
    model = manifoldry.PCA(3).fit(flowers.X)
    shown = session.add_map("PCA", model.embedding_, model)
    xy = ask(session, "positions", map=shown.id, step=None)["xy"]
    assert xy.dtype == np.float32
    for j in range(2):
        assert np.corrcoef(xy[:, j], model.embedding_[:, j])[0, 1] == pytest.approx(1)
    told = []
    session.listen(lambda name, content: told.append((name, content["shown"])))
    assert ask(session, "coordinates", map=shown.id, shown=[2, 1])["redrawn"] == 1
    assert told == [("map", [2, 1])]
    xy = ask(session, "positions", map=shown.id, step=None)["xy"]
    assert np.corrcoef(xy[:, 0], model.embedding_[:, 2])[0, 1] == pytest.approx(1)


@pytest.mark.filterwarnings("ignore:.* off the map")
def test_data_at_positions(session, pca, ask, flowers):
    (shown,) = session.maps.values()
    at = [[0.0, 0.0], [0.5, -0.2], [40.0, 0.0]]
    reply = ask(session, "invert", map=shown.id, at=at)
    expected = pca.inverse_transform(shown.view.frame.coordinates(np.array(at)))
    np.testing.assert_allclose(reply["data"].reshape(3, 4), expected, rtol=1e-5)
    assert {reply[name].dtype for name in ("data", "low", "high")} == {np.dtype(np.float64)}
    np.testing.assert_allclose(reply["low"], flowers.X.min(axis=0), rtol=1e-15)
    np.testing.assert_allclose(reply["high"], flowers.X.max(axis=0), rtol=1e-15)
    assert reply["cautions"][0] == ""
    assert reply["cautions"][2].startswith("Off the map")
    assert [each.tolist() for each in reply["notable"]] == [[0, 1, 2, 3]] * 3


def test_data_far_from_zero_keep_their_digits(make_session, ask):
    """Such as times in seconds, of which single precision has only every second minute."""
    X = 1.7e9 + np.random.default_rng(0).normal(size=(30, 3))
    model = manifoldry.PCA(2).fit(X)
    session = make_session(X)
    shown = session.add_map("PCA", model.embedding_, model)
    at = shown.drawn[:5].astype(float)
    found = ask(session, "invert", map=shown.id, at=at.tolist())["data"]
    np.testing.assert_allclose(found, model.inverse_transform(model.embedding_[:5]), atol=1e-4,
                               rtol=0)  # fmt: skip


@pytest.mark.parametrize("at", [[], [[0]], [[0, 0, 0]], [[0, None]], [[0, 1e999]], [["a", 0]],
                                [[0, 0]] * 201, [0, 0], [[[0, 0]]]])  # fmt: skip
def test_positions_that_are_none(session, refused, at):
    text = refused(session, "invert", map=next(iter(session.maps)), at=at)
    assert text == "the request has no list of at most 200 positions"


def test_a_map_that_cannot_be_inverted(session, refused):
    made = session.add_map("x", np.random.default_rng(0).normal(size=(150, 2)))
    assert "pass a fitted estimator" in refused(session, "invert", map=made.id, at=[[0, 0]])


def test_an_uploaded_file_is_placed_and_deleted(session, ask, refused, pca, flowers):
    content = ",".join(flowers.names).encode() + b"\n5,3,2,1\n6,2,4,1\n"
    half = len(content) // 2
    first = ask(session, "upload", id=None, name="new.csv", offset=0, size=len(content),
                bytes=np.frombuffer(content[:half], dtype="u1"))  # fmt: skip
    assert first["received"] == half
    assert "have arrived" in refused(session, "place", upload=first["id"])
    sent = None
    for at in (0, half):
        part = np.frombuffer(content[:half] if at == 0 else content[half:], dtype="u1")
        sent = ask(session, "upload", id=sent, name="new.csv", offset=at, size=len(content),
                   bytes=part)["id"]  # fmt: skip
    reply = ask(session, "place", upload=sent)
    (shown,) = session.maps.values()
    expected = shown.view.frame.drawn(pca.transform([[5, 3, 2, 1], [6, 2, 4, 1]]))
    np.testing.assert_allclose(reply["xy"][shown.id], expected, atol=1e-6)
    assert list(session.uploads.folder.iterdir()) == []
    assert "not here any more" in refused(session, "place", upload=sent)


def test_a_file_that_is_no_table_is_deleted_too(session, ask, refused):
    part = np.frombuffer(b"\x00\x01\x02", dtype="u1")
    sent = ask(session, "upload", id=None, name="x.csv", offset=0, size=3, bytes=part)["id"]
    assert refused(session, "place", upload=sent)
    assert list(session.uploads.folder.iterdir()) == []


def test_a_file_that_is_not_wanted_any_more(session, ask, refused):
    part = np.frombuffer(b"a,b", dtype="u1")
    sent = ask(session, "upload", id=None, name="x.csv", offset=0, size=9, bytes=part)["id"]
    assert ask(session, "discard", upload=sent) == {}
    assert list(session.uploads.folder.iterdir()) == []
    assert "not here any more" in refused(session, "upload", id=sent, name="x.csv", offset=3,
                                          size=9, bytes=part)  # fmt: skip
    assert ask(session, "discard", upload=sent) == {}  # again does nothing


def test_a_file_that_is_large_when_it_is_unpacked(make_session, flowers, ask, refused):
    session = make_session(flowers, limits=UploadLimits(most_unpacked=10_000))
    content = gzip.compress(b"1,2,3,4\n" * 10_000)
    assert len(content) < 1000
    sent = ask(session, "upload", id=None, name="x.csv.gz", offset=0, size=len(content),
               bytes=np.frombuffer(content, dtype="u1"))["id"]  # fmt: skip
    text = refused(session, "place", upload=sent)
    assert "more than 0.01 MB when it is unpacked" in text
    assert "manifoldry transform" in text
    assert list(session.uploads.folder.iterdir()) == []


def test_a_model_is_kept_as_a_file(session, ask, pca, flowers, tmp_path):
    (shown,) = session.maps.values()
    reply = ask(session, "keep", map=shown.id)
    assert (reply["name"], reply["bytes"].dtype) == ("pca.model", np.uint8)
    (tmp_path / "pca.model").write_bytes(reply["bytes"].tobytes())
    loaded = manifoldry.load(tmp_path / "pca.model")
    np.testing.assert_allclose(loaded.transform(flowers.X), pca.transform(flowers.X))
    assert list(session.folder.iterdir()) == []


def test_features_of_a_map_alone_are_no_colors(make_session, refused, pca):
    data = ExploredData(Table(np.empty((150, 0))), None, restored=np.zeros((2, 4)))
    session = Session(data, "", [])
    text = refused(session, "color", by="feature", name="column 1", map=None)
    session.close()
    assert text == "The data are not here, only the map; start the explorer with both."


def test_selection_label_export_and_what_distinguishes(session, ask):
    rows = np.arange(50, dtype=np.uint32)
    ask(session, "select", rows=rows)
    np.testing.assert_array_equal(session.selection, rows)
    assert ask(session, "distinguish", rows=rows)["text"].startswith("100% have the species setosa")
    assert ask(session, "label", rows=rows, column="mine", value="a") == {
        "name": "mine",
        "saved": "",
    }
    reply = ask(session, "color", by="label", name="mine", map=None)
    counts = {each["name"]: each["count"] for each in reply["classes"]}
    assert counts == {"a": 50, "no label": 100}
    exported = ask(session, "export", rows=rows[:2])
    assert exported["text"].tobytes().decode().splitlines()[0].endswith('"species","mine"')


def test_colors(session, ask, refused, flowers):
    reply = ask(session, "color", by="feature", name="petal_width", map=None)
    np.testing.assert_allclose(reply["values"], flowers.X[:, 3], rtol=1e-6)
    shown = next(iter(session.maps))
    text = refused(session, "color", by="evidence", name="continuity", map=shown)
    assert "compute its evidence" in text
    text = refused(session, "color", by="nothing", name="", map=None)
    assert text == "by='nothing' must be 'label', 'feature' or 'evidence'"


@pytest.mark.parametrize(
    ("action", "args", "texts"),
    [
        ("positions", {"map": "x"}, ["not here any more", "reload"]),
        ("coordinates", {"shown": [0, 2]}, ["coordinate 2", "0 to 1"]),
        ("coordinates", {"shown": [0]}, ["two coordinates"]),
        ("coordinates", {"shown": [0, "1"]}, ["two coordinates"]),
        ("color", {"name": "kind"}, ["no label 'kind'"]),
        ("rows", {"rows": [150]}, ["row=150", "150"]),
        ("rows", {"rows": [0] * 1001}, ["1001 rows", "1000"]),
        ("upload", {"size": 10**9}, ["1000 MB", "200 MB", "manifoldry transform"]),
        ("upload", {"name": "x.exe"}, ["'.exe'", ".csv"]),
        ("place", {"text": "1 2"}, ["2 numbers", "4 columns"]),
        ("distinguish", {"rows": np.array([150], dtype="u4")}, ["row=150", "0 to 149"]),
        ("label", {"column": "species"}, ["'species'", "another name"]),
        ("fit", {"method": "isomaps"}, ["'isomaps'", "did you mean isomap"]),
        ("fit", {"method": "umap"}, ["'umap'", "tsne"]),
        ("cancel", {"job": "x"}, ["not known", "anew"]),
        ("stop", {}, ["cannot be stopped", "cancel it"]),
    ],
)
def test_errors_name_the_value_and_the_remedy(quiet, arguments, refused, action, args, texts):
    said = refused(quiet, action, **arguments(action) | args)
    for text in texts:
        assert text in said


def test_evidence_begins_once(quiet, ask):
    shown = next(iter(quiet.maps))
    first, second = (ask(quiet, "evidence", map=shown) for _ in range(2))
    assert first["evidence"] is None
    assert first["job"]["id"] == second["job"]["id"]
    assert first["job"]["kind"] == "evidence"
