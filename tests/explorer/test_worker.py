"""What the process of a job does, called in this process."""

import io

import numpy as np
import pytest
from scipy import sparse

import manifoldry
from manifoldry.explorer.jobs import read_frame
from manifoldry.explorer.worker import Reporter, checked_settings, fit_method, load_data

X = np.random.default_rng(0).normal(size=(60, 4))


@pytest.fixture
def task(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return {"do": "fit", "data": str(tmp_path / "x.npy"), "method": "elastic-embedding",
            "n_components": 2, "seed": 0, "n_jobs": None, "settings": {}, "homotopy": False,
            "model": str(tmp_path / "model")}  # fmt: skip


def test_settings_are_typed_values():
    found = checked_settings(manifoldry.Isomap(), {"n_neighbors": "7", "radius": "none",
                                                   "metric": "cityblock"})  # fmt: skip
    assert found == {"n_neighbors": 7, "radius": None, "metric": "cityblock"}
    with pytest.raises(ValueError, match="Isomap has no parameter 'neighbors'"):
        checked_settings(manifoldry.Isomap(), {"neighbors": "7"})


def test_a_homotopy_is_kept_in_the_model(task):
    fit_method(task | {"homotopy": True, "settings": {"weight": "30"}}, Reporter(io.BytesIO()))
    model = manifoldry.load(task["model"])
    expected = manifoldry.ElasticEmbedding(weight=30, optimizer="homotopy", random_state=0).fit(X)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-6)
    assert len(model.path_.kept) > 1
    assert model.callback is None


def test_warnings_become_notes(task):
    far = X.copy()
    far[:30] += 1e3
    np.save(task["data"], far)
    result = fit_method(task | {"method": "isomap"}, Reporter(io.BytesIO()))
    assert len(result["notes"]) == 1
    assert "2 connected components" in result["notes"][0]


def test_a_method_without_homotopy(task):
    with pytest.raises(ValueError, match="optimizer"):
        fit_method(task | {"method": "isomap", "homotopy": True}, Reporter(io.BytesIO()))


def test_sparse_and_dense_data(tmp_path):
    S = sparse.random(20, 5, density=0.3, random_state=0, format="csr")
    sparse.save_npz(tmp_path / "x.npz", S)
    np.testing.assert_array_equal(load_data(str(tmp_path / "x.npz")).toarray(), S.toarray())
    np.save(tmp_path / "x.npy", X)
    found = load_data(str(tmp_path / "x.npy"))
    np.testing.assert_array_equal(found, X)
    assert isinstance(found, np.memmap)
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        load_data(str(tmp_path / "o.npy"))


def test_progress_that_is_not_known():
    stream = io.BytesIO()
    Reporter(stream).progress(float("nan"), "comparing")
    stream.seek(0)
    assert read_frame(stream) == {"fraction": None, "status": "comparing"}
