"""Loading runs no code, whatever a file contains, and files of earlier versions are loaded."""

import builtins
import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry as mf
from manifoldry.io import DamagedModelError, model_layout, model_types
from manifoldry.io.model_decoder import Decoder
from manifoldry.util.estimate import Estimate

HERE = Path(__file__).parent
FORMATS = sorted((HERE / "models").glob("format-*.model"))


def test_a_model_of_every_format_is_kept():
    names = [f"format-{number + 1}.model" for number in range(model_layout.FORMAT)]
    assert [path.name for path in FORMATS] == names


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.stem)
@pytest.mark.parametrize("mapped", [False, True])
def test_models_of_earlier_versions(path, mapped, monkeypatch):
    monkeypatch.setattr(model_layout, "_SMALL", 0 if mapped else 2**26)
    expected = np.load(path.with_suffix(".npz"))
    # Other versions of manifoldry and of scikit-learn.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = mf.load(path)
    coordinates = model.transform(np.load(path.with_suffix(".npy")))
    np.testing.assert_allclose(coordinates, expected["coordinates"], rtol=1e-9, atol=1e-12)
    inverse = model.inverse_transform(expected["coordinates"])
    np.testing.assert_allclose(inverse, expected["inverse"], rtol=1e-9, atol=1e-12)


def fail(*arguments, **options):
    raise AssertionError("loading a model has reached a function that can run code")


def tree_of(name):
    """An object of a class with all of the attributes that a file may have."""
    kind = model_types.class_named(name)
    attributes = [field.name for field in fields(kind)] if is_dataclass(kind) else ["anything_"]
    return {"object": [name, dict.fromkeys(attributes)]}


@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")  # there is no version in these
def test_no_class_runs_code_while_it_is_loaded(monkeypatch):
    """Neither pickle and the like nor constructors, and no module outside the table."""
    kinds = {name: model_types.class_named(name) for name in model_types._modules()}
    for kind in {*kinds.values()} - {Estimate}:
        monkeypatch.setattr(kind, "__init__", fail)
        if is_dataclass(kind):
            monkeypatch.setattr(kind, "__post_init__", fail, raising=False)
        for name in ("__setstate__", "__reduce__", "__reduce_ex__"):
            monkeypatch.setattr(kind, name, fail, raising=False)
    for place, name in (
        (pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (pickle, "_Unpickler"),
        (joblib, "load"), (np, "load"), (os, "system"), (subprocess, "Popen"), (builtins, "eval"),
        (builtins, "exec"), (builtins, "compile"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, fail)
    loaded = {at: sys.modules[at] for at in model_types._modules().values()}
    monkeypatch.setattr(model_types, "import_module", loaded.__getitem__)
    for name, kind in kinds.items():
        if issubclass(kind, tuple):
            continue  # a constructor of the interpreter: only stores its arguments
        decoder = Decoder([])
        if issubclass(kind, float):
            with pytest.raises(DamagedModelError):
                decoder.decode(tree_of(name))
        else:
            assert type(decoder.decode(tree_of(name))) is kind


def fuzz(folder, seed, count):
    """Counts of the outcomes of damaged and forged files, found by a process with limits."""
    run = subprocess.run(
        [sys.executable, HERE / "fuzz_models.py", str(seed), str(count), folder],
        capture_output=True, text=True, timeout=100 + count,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def test_damaged_and_forged_files(tmp_path):
    for path in (FORMATS[-1], FORMATS[-1].with_suffix(".npy")):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    counts = fuzz(tmp_path, 0, 300)
    assert sum(counts.values()) == 300
    assert counts["refused"] > 100
    assert counts["loaded, used"] > 10  # the forger gets past the checksums
    assert counts.get("loaded, too slow", 0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_and_forged_files_of_many_models(tmp_path, seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, 4))
    for name, model in {
        "pipeline": make_pipeline(StandardScaler(), mf.LTSA(n_neighbors=10)),
        "isomap": mf.Isomap(n_neighbors=8, n_landmarks=20),
        "tsne": mf.TSNE(max_iter=50, perplexity=8),
        "ee": mf.ElasticEmbedding(max_iter=20, perplexity=8),
        "ukr": mf.UKR(max_iter=20),
        "kernel": mf.KernelPCA(),
        "diffusion": mf.DiffusionMaps(n_neighbors=8),
        "lle": mf.LLE(n_neighbors=8),
        "nonredundant": mf.NonRedundant(mf.LaplacianEigenmaps(n_neighbors=8)),
        "conformal": mf.ConformalInverse(mf.Isomap(n_neighbors=8)),
        "mds": mf.ClassicalMDS(),
    }.items():
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            model.fit(X[:60])
        mf.save(model, tmp_path / f"{name}.model")
        np.save(tmp_path / f"{name}.npy", X[60:])
    counts = fuzz(tmp_path, seed, 1500)
    assert sum(counts.values()) == 1500
