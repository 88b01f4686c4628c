"""Model files: what they contain, what they refuse, and what damage does to them."""

import hashlib
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manifoldry as mf
from manifoldry.exceptions import VersionWarning
from manifoldry.io import DamagedModelError, UnsavableError, model_decoder, model_layout, model_tree
from manifoldry.io.model_decoder import Decoder
from manifoldry.io.model_tree import Encoder
from manifoldry.objectives import FFTInterpolation, StudentKernel

FIXED = len(model_layout._MAGIC) + 8 + 32  # bytes before the header


@pytest.fixture(name="X")
def training_data():
    return np.random.default_rng(0).normal(size=(40, 5))


@pytest.fixture
def path(X, tmp_path):
    return mf.save(mf.LaplacianEigenmaps(n_neighbors=6).fit(X), tmp_path / "le.model")


def forge(path, change):
    """Change the header of a file and make its checksum fit, as an attacker would."""
    data = path.read_bytes()
    size = int.from_bytes(data[FIXED - 40 : FIXED - 32], "little")
    header = json.loads(data[FIXED : FIXED + size])
    arrays = data[-(-(FIXED + size) // 64) * 64 :]
    header = change(header) or header
    text = json.dumps(header).encode()
    start = model_layout._MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest()
    head = start + text
    path.write_bytes(head + bytes(-len(head) % 64) + arrays)


def test_pipelines_with_scalers_and_functions(X, tmp_path):
    steps = FunctionTransformer(np.log1p), StandardScaler(), decomposition.PCA(3)
    model = make_pipeline(*steps, mf.LTSA(n_neighbors=8)).fit(np.abs(X))
    same = mf.load(mf.save(model, tmp_path / "pipeline.model"))
    assert np.array_equal(same.transform(np.abs(X)), model.transform(np.abs(X)))
    assert same[0].func is np.log1p


def test_random_states_go_on_where_they_were(X, tmp_path):
    for state in (np.random.RandomState(3), np.random.default_rng(3)):
        state.normal(size=5)
        model = mf.PCA().fit(X).set_params(random_state=state)
        same = mf.load(mf.save(model, tmp_path / "state.model")).random_state
        assert np.array_equal(same.normal(size=9), state.normal(size=9))


def test_what_a_model_shares_is_stored_once(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 30))
    model = mf.LaplacianEigenmaps(n_neighbors=8).fit(X)
    same = mf.load(mf.save(model, tmp_path / "shared.model"))
    size = (tmp_path / "shared.model").stat().st_size
    assert size == pytest.approx(len(pickle.dumps(model)), rel=0.05)
    assert same.extension_.source.graph.index.X is same.inverse_.X


def test_information_without_loading(path, X):
    info = mf.read_info(path)
    assert info.estimator == "LaplacianEigenmaps"
    assert info.parameters["n_neighbors"] == "6"
    assert info.training["n_samples"] == 40
    assert info.training["n_features_in"] == 5
    assert info.versions["manifoldry"] == mf.__version__
    assert info.n_bytes == path.stat().st_size


def test_functions_are_refused_by_place(X, tmp_path):
    model = mf.Isomap(n_neighbors=8, metric=lambda a, b: abs(a - b).sum()).fit(X)
    with pytest.raises(UnsavableError, match=r"Isomap\.metric is the function .*lambda.*pickle"):
        mf.save(model, tmp_path / "function.model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="must be an estimator, not dict"):
        mf.save({}, tmp_path / "dict.model")


def test_a_failed_write_leaves_the_previous_file(path, monkeypatch):
    before = path.read_bytes()

    def fail(file):
        raise OSError("no space left on device")

    monkeypatch.setattr(model_layout, "_pad", fail)
    with pytest.raises(OSError, match="no space"):
        mf.save(mf.PCA().fit(np.eye(4)), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_large_files_are_mapped_and_private(path, X, monkeypatch):
    model, before = mf.load(path), path.read_bytes()
    monkeypatch.setattr(model_layout, "_SMALL", 0)
    mapped = mf.load(path)
    assert np.array_equal(mapped.transform(X), model.transform(X))
    mapped.embedding_[:] = 0  # stays in this process
    assert path.read_bytes() == before


def test_damage_of_arrays_is_found_by_verify(path, monkeypatch):
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedModelError, match="checksum of an array"):
        mf.load(path)
    monkeypatch.setattr(model_layout, "_SMALL", 0)
    mf.load(path)  # of a large file only the header is read
    with pytest.raises(DamagedModelError, match="checksum of an array"):
        mf.load(path, verify=True)


def test_flipped_bytes_and_cut_files_are_refused(path):
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for place in (*range(FIXED), *rng.integers(FIXED, len(data) - 64, 100)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            mf.load(path)
        except DamagedModelError:
            continue
        assert not any(data[place - 1 : place + 1])  # only padding may change unnoticed
    for length in (0, 3, FIXED - 1, FIXED + 50, len(data) // 2, len(data) - 64):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedModelError):
            mf.load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.model"
    for content in (b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(DamagedModelError, match=r"is no model file.*manifoldry\.save"):
            mf.load(path)
    with pytest.raises(FileNotFoundError):
        mf.load(tmp_path / "none.model")


def nested(depth):
    tree = []
    for _ in range(depth):
        tree = [tree]
    return tree


class Touched:
    """Would leave a trace if unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("touched"),)


def le(**attributes):
    return {"object": ["LaplacianEigenmaps", attributes]}


TREES = {
    "a function": {"object": ["os.system", {}]},
    "a class of another package": {"object": ["subprocess.Popen", {"args": ["true"]}]},
    "a private module": {"object": ["manifoldry.io.model_file.Path", {}]},
    "a pickle": {"pickle": pickle.dumps(Touched()).hex()},
    "no estimator": [1, 2],
    "deep nesting": nested(900),
    "unknown array": {"array": 10**6},
    "negative array": {"array": -1},
    "later object": {"same": 5},
    "negative object": {"same": -1},
    "two meanings": {"array": 0, "tuple": []},
    "object arrays": {"dtype": "|O"},
    "wrong kind": {"object": ["Unit", {}]},
    "huge integers": {"slice": [10**400, {"float": "1e999"}, None]},
    "a missing field": {"object": ["NeighborGraph", {}]},
    "a method": le(transform=None),
    "a property": le(_n_features_out=3),
    "a class": le(__class__=None),
    "the dictionary": le(__dict__={"dict": []}),
    "no identifier": le(**{"a b": 1}),
    "a value that is computed": {
        "object": ["FactoredWeights", {"left": None, "right": None, "n_factors": 10**9}]
    },
    "a folder of pickles": {"object": ["sklearn.Pipeline", {"steps": [], "memory": "/tmp"}]},
    "texts of gigabytes": le(a={"objects": ["<U500000000", [2], ["a", "b"]]}),
    "records of gigabytes": le(
        a={"records": [[f"c{i}", {"array": 0}] for i in range(10**5)]},
    ),
    "an object array as numbers": le(a={"objects": ["|O", [1], ["a"]]}),
    "a shape of another size": le(a={"objects": ["O", [5], ["a"]]}),
    "a part of gigabytes": le(a={"part": [{"array": 0}, 2**40]}),
    "a part that overlaps": le(a={"part": [{"array": 0}, 1]}),
    "a sub-array": le(a={"dtype": "(1000000,1000000)<f8"}),
    "a number that is true": le(a={"array": True}),
    "a sparse matrix out of range": {
        "sparse": ["csr_array", [2, 2], [{"array": 0}, {"array": 0}, {"array": 0}]]
    },
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_forged_objects_are_refused(path, tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forge(path, lambda header: header | {"tree": tree})
    with pytest.raises(DamagedModelError):
        mf.load(path)
    assert not Path("touched").exists()


COPIES = {  # of 8 kB each
    "texts": {"objects": ["<U1000", [2], ["a", "b"]]},
    "records": {"records": [["c0", {"array": 0}], ["c1", {"array": 0}]]},
    "parts": {"part": [{"array": 1}, 500]},
    "indices of sparse matrices": {
        "sparse": ["csr_matrix", [1000, 1000], [{"array": 0}, {"array": 2}, {"array": 3}]]
    },
}


@pytest.mark.parametrize("tree", COPIES.values(), ids=COPIES)
def test_the_memory_of_all_entries_together_is_limited(tree, monkeypatch):
    monkeypatch.setattr(model_decoder, "MAX_COPIED_BYTES", 50_000)
    arrays = [np.ones(500), np.ones((2, 3)), np.arange(500), np.minimum(np.arange(1001), 500)]
    Decoder(arrays).decode([tree] * 2)
    with pytest.raises(DamagedModelError, match="MB more than a file of this size may"):
        Decoder(arrays).decode([tree] * 15)


def test_parts_of_matrices_beyond_the_limit_are_stored_without_their_layout(monkeypatch):
    monkeypatch.setattr(model_tree, "MAX_COPIED_BYTES", 1000)
    parts = [np.ones((10, 5))[:, :3] for _ in range(4)]  # of 400 bytes each
    trees = Encoder().encode(parts, "parts")
    assert [next(iter(tree)) for tree in trees] == ["part", "part", "array", "array"]


def test_the_forger_is_right_otherwise(path):
    forge(path, lambda header: header | {"tree": le(a={"objects": ["O", [1], [["a", "b"]]]})})
    assert mf.load(path).a.tolist() == [["a", "b"]]


ARRAYS = {
    "huge": {"shape": [2**40]},
    "negative": {"shape": [-5]},
    "before the arrays": {"offset": -64},
    "beyond the end": {"offset": 2**62},
    "objects": {"dtype": "|O"},
    "records": {"dtype": "<i4,<i4"},
    "overflowing": {"shape": [2**33, 2**33]},
    "overlapping": {"offset": 0, "shape": [1]},
    "of a fraction": {"shape": [2.5]},
    "of true": {"shape": [True]},
    "with a gap": {"offset": 4096},
}


@pytest.mark.parametrize("change", ARRAYS.values(), ids=ARRAYS)
def test_forged_arrays_are_refused(path, change):
    forge(path, lambda header: header["arrays"][1].update(change))
    with pytest.raises(DamagedModelError):
        mf.load(path)


def test_texts_as_parts_of_a_sparse_matrix_are_refused(path):
    """Their conversion could take much memory."""
    text = {"objects": ["<U1", [1], ["a"]]}
    tree = {"sparse": ["csr_array", [1, 1], [{"array": 0}, text, {"array": 0}]]}
    forge(path, lambda header: header | {"tree": tree})
    with pytest.raises(DamagedModelError, match="no numbers"):
        mf.load(path)


def test_arrays_that_overlap_are_refused(path):
    """Checksums of many large arrays at one place could take hours."""
    forge(path, lambda header: header["arrays"].insert(0, dict(header["arrays"][0])))
    with pytest.raises(DamagedModelError, match="not at its place"):
        mf.load(path)


def test_numbers_that_are_not_finite_are_an_ordinary_error(X, tmp_path):
    """LAPACK would search for their singular vectors for ever."""
    model = mf.LTSA(n_neighbors=8).fit(X)
    Z = model.transform(X[:3] + 0.01)
    model = mf.load(mf.save(model, tmp_path / "ltsa.model"))
    model.extension_.graph.index.X[5] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        model.inverse_transform(Z)


def test_bytes_after_the_arrays_are_refused(path):
    path.write_bytes(path.read_bytes() + b"PK")
    with pytest.raises(DamagedModelError, match="more bytes than its arrays"):
        mf.load(path)


@pytest.mark.parametrize("name", ["versions", "arrays", "tree", "format"])
def test_missing_entries_of_the_header_are_refused(path, name):
    forge(path, lambda header: header.pop(name) and None)
    with pytest.raises(DamagedModelError):
        mf.load(path)


@pytest.mark.parametrize("value", [{"format": 0}, {"format": "1"}, {"format": True}, {"x": np.nan}])
def test_wrong_entries_of_the_header_are_refused(path, value):
    forge(path, lambda header: header | value)
    with pytest.raises(DamagedModelError):
        mf.load(path)
    with pytest.raises(DamagedModelError):
        mf.read_info(path)


def test_entries_that_occur_twice_are_refused(path):
    data = path.read_bytes()
    text = data[FIXED : FIXED + int.from_bytes(data[FIXED - 40 : FIXED - 32], "little")]
    text = text.replace(b'"created":', b'"format":1,"created":')
    start = model_layout._MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest()
    path.write_bytes(start + text)
    with pytest.raises(DamagedModelError, match="occurs twice"):
        mf.load(path)


def saved_unchecked(model, path, monkeypatch):
    """Save a model that save would refuse, as an attacker could."""
    with monkeypatch.context() as patch:
        patch.setattr(model_decoder, "check_object", lambda made: None)
        return mf.save(model, path)


def test_what_compiled_loops_rely_on_is_checked(X, tmp_path, monkeypatch):
    """They would read memory that is not theirs."""
    path = tmp_path / "forged.model"
    model = mf.LaplacianEigenmaps(n_neighbors=6).fit(X)
    graph = model.extension_.source.graph
    for name, value in {
        "indices": np.full_like(graph.indices, 10**6),
        "indptr": graph.indptr * 2,
        "neighbor_radius": graph.neighbor_radius[:5],
        "last_neighbor": graph.last_neighbor[:5],
        "n_neighbors": 1000,
        "index": model.extension_,
    }.items():
        before = getattr(graph, name)
        vars(graph)[name] = value
        saved_unchecked(model, path, monkeypatch)
        vars(graph)[name] = before
        with pytest.raises(DamagedModelError):
            mf.load(path)
    mf.load(mf.save(model, path))

    model = mf.Isomap(n_neighbors=6, n_landmarks=10).fit(X)
    vars(model.extension_.geodesics)["targets"] = np.array([10**9] * 10)
    with pytest.raises(DamagedModelError, match="not one of the 40 points"):
        mf.load(saved_unchecked(model, path, monkeypatch))

    model = make_pipeline(mf.SpectralClustering(3, n_neighbors=6)).fit(X)
    model[-1]._kmeans.cluster_centers_ = np.zeros((3, 1))
    with pytest.raises(DamagedModelError, match="features"):
        mf.load(saved_unchecked(model, path, monkeypatch))


def test_a_model_that_could_not_be_loaded_is_not_saved(path):
    model, before = mf.load(path), path.read_bytes()
    model.extension_.source.graph.indices[3] = 10**6
    with pytest.raises(UnsavableError, match="not one of the 40 points"):
        mf.save(model, path)
    assert path.read_bytes() == before


def test_versions(path, monkeypatch):
    written = f"written by manifoldry {mf.__version__}"
    monkeypatch.setattr(mf, "__version__", "99.0")
    with pytest.warns(VersionWarning, match=rf"{re.escape(written)}.* loaded by 99\.0"):
        mf.load(path)
    forge(path, lambda header: header | {"format": 2})
    with pytest.raises(DamagedModelError, match=r"version 2 of the format.*update manifoldry"):
        mf.load(path)


def test_every_name_is_a_class_that_can_be_found():
    from manifoldry.io.model_types import _modules, class_named, name_of

    for name in _modules():
        assert name_of(class_named(name)) == name or class_named(name).__name__ != name


def test_sums_on_a_mesh_are_saved_without_their_caches():
    Y = np.random.default_rng(0).normal(scale=10, size=(300, 2))
    fft = FFTInterpolation()
    before = pickle.dumps(fft)
    fft.sums(StudentKernel(), Y)
    assert pickle.dumps(fft) == before
    assert Decoder([]).decode(Encoder().encode(fft, "sums")) == fft
