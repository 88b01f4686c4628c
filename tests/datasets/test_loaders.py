"""The loaders on files of the right shape made here, and on the real files where they are."""

import hashlib

import numpy as np
import pytest

from manifoldry import datasets
from manifoldry.datasets import (
    find_data,
    load_coil20,
    load_frey_faces,
    load_glove,
    load_isomap_faces,
    load_mnist,
    load_pbmc,
    load_photographs,
    load_rotating_monkey,
    load_usps,
    storage,
)
from manifoldry.datasets.registry import REGISTRY


def fake_array(spec):
    """Zeros of the registered shape with a mark in the first and last element."""
    if spec.kind == "text":
        return np.array([f"{spec.key} {i}" for i in range(spec.shape[0])])
    array = np.zeros(spec.shape, np.uint8 if spec.kind == "integer" else np.float32)
    array.flat[0], array.flat[-1] = 1, min(spec.high, 255 if array.ndim > 1 else 9)
    return array


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Write a stand-in for a registered file, with some arrays given."""
    monkeypatch.setenv("MANIFOLDRY_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def write(name, **given):
        arrays = {spec.key: fake_array(spec) for spec in REGISTRY[name].arrays}
        np.savez(tmp_path / f"{name}.npz", **(arrays | given))

    return write


def coil_arrays():
    return {
        "object": np.repeat(np.arange(1, 21), 72).astype(np.uint8),
        "angle": np.tile(np.arange(0, 360, 5), 20).astype(np.uint16),
    }


def test_mnist_is_float_in_the_unit_interval_with_raw_bytes(fake):
    fake("mnist")
    digits = load_mnist(split="test")
    assert digits.X.dtype == np.float32
    assert digits.X[-1, -1] == 1
    assert digits.raw.dtype == np.uint8
    assert digits.raw[-1, -1] == 255
    assert digits.images.shape == (10000, 28, 28)
    assert np.shares_memory(digits.images, digits.X)
    assert digits.indices[0] == 60000
    assert digits.y[-1] == 9
    assert repr(digits) == "Dataset(mnist: 10000 samples, images of 28×28 pixels)"
    X, y = digits
    assert X is digits.X
    assert y is digits.y


def test_mnist_draws_rows_in_order_and_repeatably(fake):
    fake("mnist")
    first, again = (load_mnist(500, split="train", random_state=0) for _ in range(2))
    assert np.array_equal(first.indices, again.indices)
    assert (np.diff(first.indices) > 0).all()
    assert first.indices.max() < 60000
    assert first.X.shape == (500, 784)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "valid"}, "split='valid' must be 'all', 'train' or 'test'"),
        ({"n_samples": 0}, "n_samples=0 must be at least 1"),
        ({"n_samples": 10001, "split": "test"}, "n_samples=10001 must be at most 10000"),
    ],
)
def test_mnist_names_wrong_options_before_reading(options, words):
    with pytest.raises(ValueError, match=words):
        load_mnist(**options)


def test_mnist_is_fetched_from_openml_and_stored(tmp_path, monkeypatch):
    monkeypatch.delenv("MANIFOLDRY_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []

    def fetch_openml(name, **options):
        from sklearn.utils import Bunch

        calls.append((name, options))
        data = np.zeros((70000, 784), np.int64)
        data[60000, 0] = 255
        return Bunch(data=data, target=np.array(["7"] * 60000 + ["3"] * 10000, dtype=object))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    for _ in range(2):
        digits = load_mnist(split="test")
        assert digits.X[0, 0] == 1
        assert set(digits.y) == {3}
    [(name, options)] = calls
    assert (name, options["version"], options["as_frame"]) == ("mnist_784", 1, False)
    assert (tmp_path / "manifoldry" / "mnist.npz").is_file()


def test_openml_is_read_without_pandas_too(monkeypatch):
    from sklearn.utils import Bunch

    seen = {}

    def fetch_openml(name, **options):
        seen.update(options)
        return Bunch(data=np.zeros((2, 2)), target=np.array(["1", "2"]))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    storage._openml_mnist()
    assert seen["parser"] == "liac-arff"


def test_usps(fake):
    fake("usps")
    assert load_usps(split="train").images.shape == (7291, 16, 16)
    assert load_usps(split="test").X.shape == (2007, 256)
    assert load_usps(100, random_state=0).X.shape == (100, 256)


def test_coil20_chooses_objects(fake):
    fake("coil20", **coil_arrays())
    coil = load_coil20(objects=[3, 20])
    assert set(coil.y) == {3, 20}
    assert coil.images.shape == (144, 128, 128)
    assert coil.coordinates.shape == (144, 1)
    assert coil.coordinates.max() == 355
    assert coil.coordinate_names == ("angle",)
    assert coil.X[-1, -1] == 1
    assert set(load_coil20(objects=2).y) == {1, 2}


@pytest.mark.parametrize("objects", [[0, 1], [21], [], 21])
def test_coil20_names_wrong_objects(objects):
    with pytest.raises(ValueError, match=r"1 or more|from 1 to 20"):
        load_coil20(objects=objects)


def test_isomap_faces_in_both_resolutions(fake):
    bits = np.zeros((698, 4096), np.uint8)
    bits[5, 64] = 1  # row 1, column 0
    fake("isomap_faces32", images64_binary_packed=np.packbits(bits, axis=1))
    gray, binary = load_isomap_faces(), load_isomap_faces(resolution=64)
    assert gray.images.shape == (698, 32, 32)
    assert gray.coordinates.shape == (698, 3)
    assert gray.y is None
    assert binary.images.shape == (698, 64, 64)
    assert np.argwhere(binary.images).tolist() == [[5, 1, 0]]
    with pytest.raises(ValueError, match="resolution=48 must be 32"):
        load_isomap_faces(resolution=48)


def test_frames_and_tables(fake):
    for name in ("frey_faces", "rotating_monkey", "glove100_top10000", "pbmc68k_reduced"):
        fake(name)
    assert load_frey_faces().coordinates[-1, 0] == 1964
    assert load_rotating_monkey().images.shape == (121, 120, 160)
    words = load_glove(50, random_state=0)
    assert words.sample_names.tolist() == [f"words {i}" for i in words.indices]
    cells = load_pbmc()
    assert cells.labels[-1] == "names 9"
    assert np.array_equal(cells.target_names[cells.y], cells.labels)
    assert cells.target_names.shape == (10,)
    assert cells.target_names.dtype.kind == "U"
    assert load_pbmc(features="genes").X.shape == (700, 765)
    with pytest.raises(AttributeError, match="has no images; use X"):
        _ = cells.images
    with pytest.raises(ValueError, match="features='umap'"):
        load_pbmc(features="umap")


def test_photographs_need_only_their_own_file(fake):
    fake("photos_more")
    pictures = load_photographs(names=["raccoon", "brick"])
    assert {name: image.shape for name, image in pictures.items()} == {
        "raccoon": (768, 1024),
        "brick": (512, 512),
    }
    assert pictures["brick"].dtype == np.float32
    assert pictures["brick"].max() == 1
    with pytest.raises(datasets.DataNotFoundError, match=r"photo_camera\.npz"):
        load_photographs()
    fake("photo_camera")
    assert len(load_photographs()) == 7
    with pytest.raises(ValueError, match=r"'lena'.*pass some of camera"):
        load_photographs(names=["lena"])


# Real files, where there are some


def real(name):
    path = find_data(name)
    if path is None:
        pytest.skip(f"{name}.npz is not there; set MANIFOLDRY_DATA to its directory")
    return path


@pytest.mark.parametrize("name", REGISTRY)
def test_real_files_are_as_registered(name):
    path = real(name)
    storage.read(path, REGISTRY[name])
    if hashlib.sha256(path.read_bytes()).hexdigest() != REGISTRY[name].sha256:
        pytest.skip(f"{path} is another copy than the one registered")


def test_real_mnist_has_the_known_class_counts():
    real("mnist")
    counts = np.bincount(load_mnist().y)
    assert counts.tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


def test_real_usps_has_the_known_class_counts():
    real("usps")
    counts = np.bincount(load_usps().y)
    assert counts.tolist() == [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821]


def test_real_coil20_views_are_neighbors():
    real("coil20")
    coil = load_coil20(objects=2)
    assert np.array_equal(np.unique(coil.coordinates), np.arange(0, 360, 5))
    views = coil.X[coil.y == 1][np.argsort(coil.coordinates[coil.y == 1, 0])]
    step = np.linalg.norm(views - np.roll(views, 1, axis=0), axis=1).mean()
    assert step < 0.5 * np.linalg.norm(views - np.roll(views, 36, axis=0), axis=1).mean()


def test_real_faces_agree_between_resolutions():
    real("isomap_faces32")
    gray, binary = load_isomap_faces(), load_isomap_faces(resolution=64)
    blocks = binary.images.reshape(698, 32, 2, 32, 2).sum(axis=(2, 4))
    assert not ((blocks == 0) & (gray.images >= 0.5)).any()
    assert not ((blocks == 4) & (gray.images < 0.5)).any()
    assert gray.coordinates.mean(axis=0) == pytest.approx(0, abs=1e-3)
