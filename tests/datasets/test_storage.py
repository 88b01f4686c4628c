"""Lookup order, checks of files, atomic writing and the (mocked) download."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

from manifoldry.datasets import DataFormatError, DataNotFoundError, data_home, find_data, storage
from manifoldry.datasets.registry import REGISTRY, ArraySpec, DataFile
from manifoldry.exceptions import ManifoldryWarning

TOY = DataFile(
    name="toy",
    arrays=(ArraySpec("X", (4, 3), "integer"), ArraySpec("words", (4,), "text")),
    sha256="0123abcd",
    source="made up",
    license="none needed",
)
REMOTE = DataFile("remote", TOY.arrays, "4567", "a server", "free", downloadable=True)


def toy_arrays(value=7):
    return {"X": np.full((4, 3), value, np.uint8), "words": np.array(list("abcd"))}


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Point both places at empty directories: (the one of the variable, the cache)."""
    monkeypatch.setenv("MANIFOLDRY_DATA", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "chosen", tmp_path / "cache" / "manifoldry"


@pytest.fixture
def server(monkeypatch):
    """A download that counts its calls."""
    calls = []

    def download():
        calls.append(1)
        return toy_arrays(1)

    monkeypatch.setitem(storage._DOWNLOADS, "remote", download)
    return calls


# Where


def test_data_home_honours_xdg_and_ignores_relative_paths(monkeypatch, tmp_path):
    assert data_home() == tmp_path / "cache" / "manifoldry"
    monkeypatch.setenv("HOME", str(tmp_path))
    for useless in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", useless)
        assert data_home() == tmp_path / ".cache" / "manifoldry"
    assert not data_home().exists()


def test_the_variable_comes_before_the_cache(places):
    chosen, cache = places
    storage.write(cache / "toy.npz", toy_arrays(2))
    assert storage.fetch(TOY)["X"][0, 0] == 2
    storage.write(chosen / "toy.npz", toy_arrays(1))
    assert storage.fetch(TOY)["X"][0, 0] == 1


def test_without_the_variable_only_the_cache_is_searched(places, monkeypatch):
    monkeypatch.delenv("MANIFOLDRY_DATA")
    assert storage.search_path() == [places[1]]


def test_find_data(places):
    assert find_data("coil20") is None
    storage.write(places[0] / "coil20.npz", toy_arrays())
    assert find_data("coil20") == places[0] / "coil20.npz"
    with pytest.raises(ValueError, match="name='coil' is unknown; pass one of mnist"):
        find_data("coil")


def test_a_missing_file_says_what_to_put_where(places):
    with pytest.raises(DataNotFoundError) as caught:
        storage.fetch(TOY)
    message = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    for place in places:
        assert str(place / "toy.npz") in message
    for words in ("X: integer 4×3", "words: text 4", "0123abcd", "made up", "none needed"):
        assert words in message


def test_a_missing_file_mentions_the_variable_when_it_is_not_set(monkeypatch):
    monkeypatch.delenv("MANIFOLDRY_DATA")
    with pytest.raises(DataNotFoundError, match="set MANIFOLDRY_DATA"):
        storage.fetch(TOY)


# What


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": np.zeros((4, 2), np.uint8)}, r"'X' has shape \(4, 2\), expected \(4, 3\)"),
        ({"X": np.zeros((4, 3))}, "'X' has dtype float64, expected integer"),
        ({"words": np.arange(4)}, "'words' has dtype int64, expected text"),
        ({"X": None}, r"'X' is missing, expected integer of shape \(4, 3\)"),
    ],
)
def test_wrong_contents_are_named(places, change, words):
    arrays = {key: array for key, array in (toy_arrays() | change).items() if array is not None}
    storage.write(places[0] / "toy.npz", arrays)
    with pytest.raises(DataFormatError, match=words) as caught:
        storage.fetch(TOY)
    assert str(places[0] / "toy.npz") in str(caught.value)
    assert "0123abcd" in str(caught.value)


def test_other_integers_and_more_keys_are_welcome(places):
    arrays = toy_arrays() | {"X": np.zeros((4, 3), np.int64), "extra": np.ones(2)}
    storage.write(places[0] / "toy.npz", arrays)
    assert set(storage.fetch(TOY)) == {"X", "words"}


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.95])
def test_truncated_files_are_refused(places, kept):
    path = places[0] / "toy.npz"
    storage.write(path, toy_arrays())
    whole = path.read_bytes()
    path.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    with pytest.raises(DataFormatError, match=r"cannot be read .*replace it"):
        storage.fetch(TOY)


def test_damaged_bytes_inside_are_refused(places):
    path = places[0] / "toy.npz"
    storage.write(path, toy_arrays())
    damaged = bytearray(path.read_bytes())
    start = damaged.index(b"X.npy") + 30  # inside the compressed array
    damaged[start : start + 8] = bytes(byte ^ 0xFF for byte in damaged[start : start + 8])
    path.write_bytes(bytes(damaged))
    with pytest.raises(DataFormatError, match="cannot be read"):
        storage.fetch(TOY)


def test_a_bare_array_and_a_text_file_are_refused(places):
    places[0].mkdir()
    with (places[0] / "toy.npz").open("wb") as stream:
        np.save(stream, np.zeros((4, 3)))
    with pytest.raises(DataFormatError):
        storage.fetch(TOY)
    (places[0] / "toy.npz").write_text("<html>not found</html>")
    with pytest.raises(DataFormatError, match="cannot be read"):
        storage.fetch(TOY)


def test_pickled_objects_are_never_loaded(places):
    storage.write(places[0] / "toy.npz", toy_arrays() | {"words": np.array([{}] * 4, dtype=object)})
    with pytest.raises(DataFormatError, match="has dtype object, expected text"):
        storage.fetch(TOY)


def npz(path, **members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, content in members.items():
            archive.writestr(f"{key}.npy", content)


def test_a_header_that_claims_terabytes_is_refused_before_anything_is_allocated(places):
    header = io.BytesIO()
    claim = {"descr": "<i8", "fortran_order": False, "shape": (2**40,)}
    np.lib.format.write_array_header_1_0(header, claim)
    npz(places[0] / "toy.npz", X=header.getvalue())
    with pytest.raises(DataFormatError, match=r"has shape \(1099511627776,\), expected"):
        storage.fetch(TOY)


def test_text_that_expands_to_gigabytes_is_refused(places):
    header = io.BytesIO()
    claim = {"descr": "<U100000000", "fortran_order": False, "shape": (4,)}
    np.lib.format.write_array_header_1_0(header, claim)
    whole = io.BytesIO()
    np.save(whole, toy_arrays()["X"])
    npz(places[0] / "toy.npz", X=whole.getvalue(), words=header.getvalue())
    with pytest.raises(DataFormatError, match="expected shorter text"):
        storage.fetch(TOY)


@pytest.mark.parametrize(
    ("offset", "value"), [(8, 99), (6, 1)], ids=["unknown compression", "encrypted"]
)
def test_zip_files_that_cannot_be_read_are_refused(places, offset, value):
    """The two header fields of each member; `offset` is that of the one in front of the data."""
    path = places[0] / "toy.npz"
    storage.write(path, toy_arrays())
    changed = bytearray(path.read_bytes())
    for magic, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        at = changed.find(magic)
        while at >= 0:
            changed[at + offset + shift] = value
            at = changed.find(magic, at + 4)
    path.write_bytes(bytes(changed))
    with pytest.raises(DataFormatError, match="cannot be read"):
        storage.fetch(TOY)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 1.5])
def test_values_out_of_range_are_refused(places, bad):
    file = DataFile("gray", (ArraySpec("X", (2, 2), "float", 0, 1),), "89ab", "made up", "none")
    storage.write(places[0] / "gray.npz", {"X": np.array([[0.0, 1.0], [0.5, bad]])})
    with pytest.raises(DataFormatError, match="expected 0 to 1"):
        storage.fetch(file)


def test_labels_out_of_range_are_refused(places):
    file = DataFile("ten", (ArraySpec("y", (3,), "integer", 0, 9),), "89ab", "made up", "none")
    storage.write(places[0] / "ten.npz", {"y": np.array([0, 9, 10])})
    with pytest.raises(DataFormatError, match="values from 0 to 10, expected 0 to 9"):
        storage.fetch(file)


def no_home():
    raise RuntimeError("Could not determine home directory.")


def test_without_a_home_directory_the_directory_of_the_variable_is_used(places, monkeypatch):
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME")
    storage.write(places[0] / "toy.npz", toy_arrays())
    assert storage.fetch(TOY)["X"].shape == (4, 3)
    monkeypatch.delenv("MANIFOLDRY_DATA")
    with pytest.raises(DataNotFoundError, match=r"no home directory .* set MANIFOLDRY_DATA"):
        storage.fetch(TOY)


# Writing


def test_writing_leaves_only_the_file(places):
    path = places[1] / "toy.npz"
    storage.write(path, toy_arrays(3))
    assert [entry.name for entry in path.parent.iterdir()] == ["toy.npz"]
    assert storage.read(path, TOY)["X"][0, 0] == 3


def test_a_failed_write_keeps_the_old_file_and_no_litter(places, monkeypatch):
    path = places[1] / "toy.npz"
    storage.write(path, toy_arrays(3))

    def fail(stream, **arrays):
        stream.write(b"half of")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(KeyboardInterrupt):
        storage.write(path, toy_arrays(4))
    monkeypatch.undo()
    assert storage.read(path, TOY)["X"][0, 0] == 3
    assert len(list(path.parent.iterdir())) == 1


# Downloading


def test_download_happens_once_and_is_kept(places, server):
    for _ in range(2):
        assert storage.fetch(REMOTE)["X"][0, 0] == 1
    assert len(server) == 1
    assert (places[1] / "remote.npz").is_file()
    assert not places[0].exists()


def test_download_can_be_refused(server):
    with pytest.raises(DataNotFoundError, match=r"remote\.npz was not found"):
        storage.fetch(REMOTE, download_if_missing=False)
    assert not server


def test_a_damaged_copy_is_reported_not_replaced(places, server):
    places[1].mkdir(parents=True)
    (places[1] / "remote.npz").write_bytes(b"PK")
    with pytest.raises(DataFormatError, match="delete it to download it again"):
        storage.fetch(REMOTE)
    assert not server


@pytest.mark.parametrize("trouble", [URLError("no network"), ValueError("bad parse")])
def test_a_failed_download_says_what_to_do(monkeypatch, places, trouble):
    def fail():
        raise trouble

    monkeypatch.setitem(storage._DOWNLOADS, "remote", fail)
    with pytest.raises(DataNotFoundError, match=r"could not be downloaded .*Put it at") as caught:
        storage.fetch(REMOTE)
    assert caught.value.__cause__ is trouble
    assert not places[1].exists()


def test_a_wrong_download_is_not_kept(monkeypatch, places):
    monkeypatch.setitem(storage._DOWNLOADS, "remote", lambda: {"X": np.zeros((1, 1), np.uint8)})
    with pytest.raises(DataNotFoundError, match=r"has shape \(1, 1\), expected \(4, 3\)"):
        storage.fetch(REMOTE)
    assert not places[1].exists()


def test_a_disk_that_cannot_be_written_costs_a_warning_only(monkeypatch, server):
    def refuse(path, arrays):
        raise OSError("read-only")

    monkeypatch.setattr(storage, "write", refuse)
    with pytest.warns(ManifoldryWarning, match="could not be kept"):
        assert storage.fetch(REMOTE)["X"].shape == (4, 3)


# The registry and the package


def test_registry_is_complete():
    for name, file in REGISTRY.items():
        assert file.name == name
        assert len(file.sha256) == 64
        assert file.arrays
        assert file.source
        assert file.license
    assert [name for name, file in REGISTRY.items() if file.downloadable] == ["mnist"]
    assert list(storage._DOWNLOADS) == ["mnist"]


def test_importing_datasets_is_light():
    code = "import sys, manifoldry.datasets; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "scipy", "matplotlib", "pandas"} & set(done.stdout.split())


def test_storage_paths_are_absolute_even_with_a_tilde(monkeypatch):
    monkeypatch.setenv("MANIFOLDRY_DATA", os.path.join("~", "data"))
    assert storage.search_path()[0] == Path.home() / "data"
