"""New rows on the maps: dropped, chosen or pasted; and files that are refused."""

import gzip
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import placed_in, until

MAGENTA = [224, 33, 138]


def table(names, X):
    return pd.DataFrame(X, columns=names).to_csv(index=False).encode()


def placed(page, name):
    """Where new rows are on a map."""
    drawn = until(
        lambda: page.js(
            "app.placed.value && [...app.placed.value.xy[argument]]", page.maps()[name]
        ),
        "placed",
    )
    return np.array(drawn).reshape(-1, 2)


def expected(exploration, page, name, X):
    """Where `transform` of the model puts them, computed without the explorer."""
    model = exploration.models[name]
    matrix, offset = placed_in(model.embedding_, page.positions(name))
    return model.transform(X) @ matrix + offset


def goes_on(page):
    """Whether the page still answers: rows can be placed on it."""
    panel = page.panel("New points")
    panel.get_by_label("Or paste rows").fill("5.1, 3.5, 1.4, 0.2")
    panel.get_by_role("button", name="Place these rows").click()
    until(lambda: "1 row placed" in panel.inner_text(), "a row is placed afterwards")
    return True


def test_dropped_file_is_placed_by_transform(digits_page, digits):
    rng = np.random.default_rng(0)
    X = digits.X[[3, 50, 120]].copy()
    X[1:] += rng.normal(size=(2, 64))
    digits_page.drop("new rows.csv", table(digits.names, X))
    panel = digits_page.panel("New points")
    until(lambda: "3 rows placed on 3 maps." in panel.inner_text(), "the rows are placed")
    for name in digits.models:
        found = placed(digits_page, name)
        np.testing.assert_allclose(found, expected(digits, digits_page, name, X), atol=2e-3)
        # A row of the data lies on itself.
        np.testing.assert_allclose(found[0], digits_page.positions(name)[3], atol=1e-6)
    picture = digits_page.picture()
    for name in digits.models:
        x, y = np.floor(digits_page.pixels(name)[3]).astype(int)
        np.testing.assert_allclose(picture[y, x], MAGENTA, atol=3)
    digits_page.shot("new-points", panel)
    panel.get_by_role("button", name="Remove them").click()
    x, y = np.floor(digits_page.pixels("PCA")[3]).astype(int)
    assert np.abs(digits_page.picture()[y, x] - MAGENTA).max() > 30
    assert "rows placed on" not in panel.inner_text()


def test_columns_are_taken_by_their_names(flowers_page, flowers):
    X = flowers.X[[0, 70]] + 0.05
    frame = pd.DataFrame(X, columns=flowers.names)[flowers.names[::-1]]
    frame.insert(0, "kind", ["x", "y"])
    flowers_page.drop("turned.csv", frame.to_csv(index=False).encode(), onto=".map >> nth=0")
    np.testing.assert_allclose(
        placed(flowers_page, "PCA"), expected(flowers, flowers_page, "PCA", X), atol=1e-5
    )
    panel = flowers_page.panel("New points")
    assert "2 rows placed on 1 map." in panel.inner_text()
    assert "elsewhere: Only its coordinates are known" in panel.inner_text()


@pytest.mark.parametrize("kind", ["csv.gz", "tsv", "npy", "parquet"])
def test_formats(flowers_page, flowers, kind, tmp_path):
    X, file = flowers.X[[5, 100]], tmp_path / f"new.{kind}"
    frame = pd.DataFrame(X, columns=flowers.names)
    if kind == "csv.gz":
        file.write_bytes(gzip.compress(table(flowers.names, X)))
    elif kind == "tsv":
        frame.to_csv(file, sep="\t", index=False)
    elif kind == "npy":
        np.save(file, X)
    else:
        frame.to_parquet(file)
    panel = flowers_page.panel("New points")
    with flowers_page.page.expect_file_chooser() as chooser:
        panel.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(file)
    np.testing.assert_allclose(
        placed(flowers_page, "PCA"), flowers_page.positions("PCA")[[5, 100]], atol=1e-5
    )


def test_pasted_rows(flowers_page, flowers):
    panel = flowers_page.panel("New points")
    X = flowers.X[[10, 90]]
    panel.get_by_label("Or paste rows").fill("\n".join("\t".join(map(str, row)) for row in X))
    panel.get_by_role("button", name="Place these rows").click()
    np.testing.assert_allclose(
        placed(flowers_page, "PCA"), flowers_page.positions("PCA")[[10, 90]], atol=1e-5
    )
    assert "All are like the data" in panel.inner_text()


def test_rows_unlike_the_data_are_marked(digits_page, digits):
    panel = digits_page.panel("New points")
    panel.get_by_label("Or paste rows").fill(" ".join(["500"] * 64))
    panel.get_by_role("button", name="Place these rows").click()
    until(
        lambda: "It is unlike the data that the maps were fitted to" in panel.inner_text(),
        "the caution",
    )


def _npz():
    content = BytesIO()
    np.savez(content, a=np.array([{"x": 1}], dtype=object))
    return content.getvalue()


BAD_FILES = {
    "random bytes": ("noise.csv", np.random.default_rng(0).bytes(5000), "the file"),
    "a program": (
        "setup.exe",
        b"MZ\x90\x00" + bytes(500),
        "a file with the ending '.exe' is not taken",
    ),
    "no ending": ("passwords", b"1,2,3,4\n", "a file with the ending '(none)' is not taken"),
    "other columns": ("other.csv", b"a,b,c,d\n1,2,3,4\n", "sepal length"),
    "too few columns": ("few.csv", b"1,2\n3,4\n", "sepal length"),
    "missing values": ("nan.csv", b"5.1,3.5,,0.2\n5,3,1,0\n", "missing"),
    "an infinite value": ("inf.csv", b"5.1,3.5,inf,0.2\n5,3,1,0\n", "inf"),
    "words": ("words.csv", b"to be,or,not,to be\nthat,is,the,question\n", "the file"),
    "no rows": ("head.csv", b"sepal length,sepal width,petal length,petal width\n", "the file"),
    "pickled objects": ("objects.npz", _npz(), "the file"),
    "no parquet": ("fake.parquet", b"PAR1 not really", "the file"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_with_a_reason(flowers_page, case):
    name, content, reason = BAD_FILES[case]
    flowers_page.drop(name, content)
    panel = flowers_page.panel("New points")
    alert = panel.get_by_role("alert")
    alert.wait_for()
    text = alert.inner_text()
    assert reason in text
    assert len(text) < 600
    assert "Traceback" not in text
    assert "/tmp" not in text
    assert flowers_page.js("app.placed.value") is None
    assert goes_on(flowers_page)
    assert alert.count() == 0


def in_view(page, what):
    """Whether it is in the part of the side column that is seen."""
    around, box = page.page.locator("aside").bounding_box(), what.bounding_box()
    return (
        around["y"] <= box["y"] and box["y"] + box["height"] <= around["y"] + around["height"] + 1
    )


def test_empty_file_is_refused_where_it_is_seen(flowers_page):
    flowers_page.drop("empty.csv", b"", onto=".map .plot >> nth=1")
    refusal = flowers_page.page.get_by_role("alert").filter(has_text="empty.csv is empty.")
    refusal.wait_for()
    until(lambda: in_view(flowers_page, refusal), "the column is scrolled there")
    assert goes_on(flowers_page)


def test_file_of_a_gigabyte_is_refused_without_being_sent(flowers_page, flowers_explored, tmp_path):
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(10**9)  # takes no place on the disk
    panel = flowers_page.panel("New points")
    with flowers_page.page.expect_file_chooser() as chooser:
        panel.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(large)
    refusal = "large.csv has 1,000 MB, but at most 200 MB can be uploaded."
    until(lambda: refusal in panel.inner_text(), "the refusal")
    assert not [each for each in flowers_page.sent if each["ask"] == "upload"]
    assert goes_on(flowers_page)
    # The server does not rely on the page.
    first = np.zeros(1000, dtype=np.uint8)
    reply = flowers_explored.server.ask(
        "upload", name="large.csv", offset=0, size=10**9, bytes=first
    )
    assert "the file has 1000 MB" in reply


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("5.1, 3.5, 1.4", "line 1 has 3 numbers"),
        ("5.1, 3.5, 1.4, 0.2\n1 2 3", "line 2 has 3 numbers"),
        ("5.1, 3.5, nan, 0.2", "line 1 has a missing or infinite value"),
        ("<script>alert(1)</script>", ""),
    ],
)
def test_bad_rows_are_refused_with_a_reason(flowers_page, text, reason):
    panel = flowers_page.panel("New points")
    panel.get_by_label("Or paste rows").fill(text)
    panel.get_by_role("button", name="Place these rows").click()
    alert = panel.get_by_role("alert")
    alert.wait_for()
    assert reason in alert.inner_text() != ""
    assert goes_on(flowers_page)


def test_uploads_stay_in_their_folder(flowers_page, flowers, flowers_explored):
    before = sorted(path.name for path in flowers.folder.parent.rglob("*"))
    flowers_page.drop("../../../escaped.csv", table(flowers.names, flowers.X[:2]))
    placed(flowers_page, "PCA")
    bytes_ = np.frombuffer(b"1,2,3,4\n", dtype=np.uint8)
    for name in (
        "../../escaped.csv",
        "/tmp/escaped.csv",
        "..\\escaped.csv",
        "a/\0b.csv",
        "x" * 5000 + ".csv",
    ):
        reply = flowers_explored.server.ask("upload", name=name, offset=0, size=8, bytes=bytes_)
        assert "id" in reply
        flowers_explored.server.ask("place", upload=reply["id"])
    # An identifier is not a path either.
    assert "not here any more" in flowers_explored.server.ask("place", upload="../../flowers.csv")
    assert sorted(path.name for path in flowers.folder.parent.rglob("*")) == before
