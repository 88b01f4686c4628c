"""Files of pages: within limits, in their folder, and only of known formats."""

import gzip
import io
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from manifoldry.explorer.unpacked_size import unpacked_size
from manifoldry.explorer.uploads import UploadLimits, Uploads


@pytest.fixture
def uploads(tmp_path):
    return Uploads(tmp_path / "uploads", UploadLimits(most_bytes=100, most_files=2))


def files(tmp_path):
    """Everything below the folder of the test."""
    return sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file())


def test_parts_become_a_file(uploads):
    made = uploads.receive(None, "new rows.CSV", 0, 9, b"a,b\n")
    with pytest.raises(ValueError, match="only 4 of 9 bytes have arrived"):
        uploads.finished(made)
    assert uploads.receive(made, "ignored", 4, 9, b"") == made
    uploads.receive(made, "", 4, 9, b"1,2\n3")
    path = uploads.finished(made)
    assert path.read_bytes() == b"a,b\n1,2\n3"
    assert path.name == "rows.csv"
    uploads.discard(made)
    assert not path.parent.exists()
    uploads.discard(made)  # again does nothing
    with pytest.raises(ValueError, match="not here any more"):
        uploads.finished(made)


def test_images_are_in_a_folder_of_their_own(uploads):
    made = uploads.receive(None, "face.PNG", 0, 3, b"abc")
    folder = uploads.finished(made)
    assert [each.name for each in folder.iterdir()] == ["rows.png"]


@pytest.mark.parametrize("size", [101, 10**9, 10**30, 0, -1])
def test_a_size_beyond_the_limit_is_refused_before_anything_is_written(uploads, tmp_path, size):
    with pytest.raises(ValueError, match=r"the file has .* MB, but 0 < size <= 0.0001 MB"):
        uploads.receive(None, "x.csv", 0, size, b"1,2\n")
    assert list(tmp_path.iterdir()) == []


def test_a_gigabyte_is_refused_by_default(tmp_path):
    with pytest.raises(ValueError, match=r"the file has 1000 MB.*manifoldry transform"):
        Uploads(tmp_path / "uploads").receive(None, "x.csv", 0, 10**9, b"1,2\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("offset", "part"), [(5, b"1"), (3, b"1"), (-4, b"1"), (10**20, b"1"), (4, b"1234567")]
)
def test_parts_that_do_not_fit_end_the_file(uploads, tmp_path, offset, part):
    made = uploads.receive(None, "x.csv", 0, 10, b"1234")
    with pytest.raises(ValueError, match="do not fit together; send it again"):
        uploads.receive(made, "x.csv", offset, 10, part)
    assert files(tmp_path) == []
    with pytest.raises(ValueError, match="not here any more"):
        uploads.receive(made, "x.csv", 4, 10, b"5")


@pytest.mark.parametrize(("offset", "part"), [(1, b"1"), (0, b"12345678901")])
def test_a_first_part_that_does_not_fit(uploads, tmp_path, offset, part):
    with pytest.raises(ValueError, match="do not fit together"):
        uploads.receive(None, "x.csv", offset, 10, part)
    assert files(tmp_path) == []


def test_the_declared_size_is_that_of_the_first_part(uploads):
    made = uploads.receive(None, "x.csv", 0, 4, b"12")
    with pytest.raises(ValueError, match="do not fit together"):
        uploads.receive(made, "x.csv", 2, 10**9, b"345")


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd.csv", "/etc/passwd.csv", "C:\\x.csv", "..\\..\\x.csv", "a\x00b.csv",
        ".\x00/../x.csv", "con.csv", "x" * 5000 + ".csv", "~/.bashrc.csv", "%2e%2e%2fx.csv",
        "a/b/c.csv", "\n.csv", "$(touch x).csv", "x.csv.csv",
    ],
)  # fmt: skip
def test_names_lead_nowhere_else(uploads, tmp_path, name):
    made = uploads.receive(None, name, 0, 1, b"1")
    path = uploads.finished(made)
    assert path == tmp_path / "uploads" / made / "rows.csv"
    assert re.fullmatch("[0-9a-f]{16}", made)
    assert files(tmp_path) == [f"uploads/{made}/rows.csv"]


@pytest.mark.parametrize(
    "name",
    ["x", "", ".", "..", "x.py", "x.model", "x.pkl", "x.exe", "x.csv/", "x.csv/..", "x.csv\x00.py",
     "x.zip", "x.gz", "x.npy.gz", "x.png.gz", "x.csv ", "csv", ".csv",
     "x.feather", "x.arrow", "x.ipc", "x.parquet.gz"],
)  # fmt: skip
def test_unknown_endings_are_refused_and_drop_nothing(uploads, tmp_path, name):
    kept = [uploads.receive(None, "x.csv", 0, 1, b"1") for _ in range(2)]
    if name == "x.csv/":  # the same path for Python
        assert uploads.receive(None, name, 0, 1, b"1")
        return
    with pytest.raises(ValueError, match="a file with the ending"):
        uploads.receive(None, name, 0, 1, b"1")
    assert len(list((tmp_path / "uploads").iterdir())) == 2
    assert all(uploads.finished(each).exists() for each in kept)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".csv.gz", ".TXT.GZ", ".parquet",
                                    ".pq", ".npy", ".npz"])  # fmt: skip
def test_endings_that_are_kept(uploads, ending):
    made = uploads.receive(None, f"my.table{ending}", 0, 1, b"1")
    assert uploads.finished(made).name == f"rows{ending.lower()}"


def test_the_oldest_file_is_dropped(uploads, tmp_path):
    made = [uploads.receive(None, "x.csv", 0, 2, b"1") for _ in range(3)]
    with pytest.raises(ValueError, match="not here any more; send it again"):
        uploads.receive(made[0], "x.csv", 1, 2, b"2")
    for each in made[1:]:
        uploads.receive(each, "x.csv", 1, 2, b"2")
    assert len(files(tmp_path)) == 2


MOST_UNPACKED = 100_000


@pytest.fixture
def unpacking(tmp_path):
    return Uploads(tmp_path / "uploads", UploadLimits(most_unpacked=MOST_UNPACKED))


def send(uploads, name, content):
    return uploads.receive(None, name, 0, len(content), content)


def saved(write):
    """What a function writes into a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def parquet(columns):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    return saved(lambda file: pandas.DataFrame(columns).to_parquet(file, compression="zstd"))


SMALL_BUT_LARGE = {
    "x.csv.gz": lambda: gzip.compress(b"1,2\n" * 30_000),
    "x.TXT.GZ": lambda: gzip.compress(b"1") + gzip.compress(bytes(MOST_UNPACKED)),  # two members
    "x.npz": lambda: saved(
        lambda file: np.savez_compressed(file, a=np.zeros(12_000), b=np.zeros(12_000))
    ),
    "x.parquet": lambda: parquet({"a": np.zeros(13_000)}),
    "x.pq": lambda: parquet({"a": ["x" * 1000 + str(i) for i in range(120)]}),
}


@pytest.mark.parametrize("name", SMALL_BUT_LARGE)
def test_small_files_that_are_large_when_they_are_unpacked(unpacking, tmp_path, name):
    content = SMALL_BUT_LARGE[name]()
    assert len(content) < MOST_UNPACKED / 10
    made = send(unpacking, name, content)
    with pytest.raises(ValueError, match=r"more than 0.1 MB when it is unpacked.*transform MODEL"):
        unpacking.finished(made)
    assert files(tmp_path) == []
    with pytest.raises(ValueError, match="not here any more"):
        unpacking.finished(made)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv.gz", lambda: gzip.compress(b"1,2\n" * 25_000)),  # exactly what is taken
        ("x.npz", lambda: saved(lambda file: np.savez_compressed(file, np.zeros(12_000)))),
        ("x.parquet", lambda: parquet({"a": np.zeros(12_000)})),
        # Damaged files have no other size; reading them says what is wrong.
        ("x.csv.gz", lambda: b"no gzip"),
        ("x.csv.gz", lambda: gzip.compress(b"1,2\n" * 1000)[:-9]),
        ("x.csv.gz", lambda: gzip.compress(b"1,2\n" * 1000)[:20] + b"damage" * 5),
        ("x.npz", lambda: b"PK but no archive"),
        ("x.parquet", lambda: b"PAR1 but no table PAR1"),
    ],
)
def test_files_whose_size_is_taken(unpacking, name, content):
    sent = content()
    assert unpacking.finished(send(unpacking, name, sent)).read_bytes() == sent


@pytest.mark.parametrize("level", [0, 9])
def test_bytes_of_gzip_are_counted_no_further_than_needed(tmp_path, level):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000), level))
    assert unpacked_size(path, 10**9) == 50_000_000
    assert 3_000_000 < unpacked_size(path, 3_000_000) < 6_000_000


@pytest.mark.parametrize("upload", ["..", "../..", "", "0" * 16])
def test_identifiers_of_others(uploads, upload, tmp_path):
    (tmp_path / "mine.csv").write_text("1")
    for action in (uploads.finished, lambda u: uploads.receive(u, "x.csv", 0, 1, b"1")):
        with pytest.raises(ValueError, match="not here any more"):
            action(upload)
    uploads.discard(upload)
    assert (tmp_path / "mine.csv").exists()


def test_pages_that_send_at_the_same_time(tmp_path):
    uploads = Uploads(tmp_path, UploadLimits(most_bytes=1000, most_files=8))

    def send(i):
        made = None
        for at in range(50):
            made = uploads.receive(made, "x.csv", 2 * at, 100, bytes([i, at]))
        return uploads.finished(made).read_bytes()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(send, range(8)))
    assert found == [bytes(value for at in range(50) for value in (i, at)) for i in range(8)]
