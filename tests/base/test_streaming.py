"""transform of many rows in bounded memory."""

import tracemalloc
import warnings

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.base import embedder
from manifoldry.density import mixture_of_factor_analyzers
from manifoldry.exceptions import ExtensionWarning, counting_rows, warn_about_rows
from manifoldry.util.validation import row_blocks, streaming_blocks

BLOCK = 250
MODELS = {
    "PCA": lambda: mf.PCA(2),
    "KernelPCA": lambda: mf.KernelPCA(2),
    "LaplacianEigenmaps": lambda: mf.LaplacianEigenmaps(2),
    "LLE": lambda: mf.LLE(2),
    "Isomap": lambda: mf.Isomap(2),
    "TSNE": lambda: mf.TSNE(2, max_iter=30),
    "MixtureOfFactorAnalyzers": lambda: mf.MixtureOfFactorAnalyzers(2, 1),
}


@pytest.fixture
def small_blocks(monkeypatch):
    for module in (embedder, mixture_of_factor_analyzers):
        monkeypatch.setattr(
            module, "streaming_blocks", lambda X: row_blocks(X.shape[0], 1, budget=BLOCK)
        )


def sheet(n, seed=0):
    t = np.random.default_rng(seed).uniform(size=(n, 2)) * [3, 2]
    return np.column_stack([t, np.sin(t[:, 0]), np.cos(t[:, 0]), np.zeros((n, 20))])


def peak(model, X):
    """Peak memory of transform, without its result."""
    tracemalloc.start()
    try:
        placed = model.transform(X)
        return tracemalloc.get_traced_memory()[1] - placed.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", MODELS)
def test_memory_does_not_grow_with_the_number_of_rows(name, small_blocks, tmp_path):
    """The data are a read-only memory map, which must not be copied either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]().fit(sheet(200))
        path = tmp_path / "X.npy"
        np.save(path, sheet(8 * BLOCK, seed=1))
        X = np.load(path, mmap_mode="r")
        peak(model, X)  # what is computed once
        few, many = peak(model, X[: 2 * BLOCK]), peak(model, X)
    # 48 bytes per row: coordinates and labels in double precision; a row of the data has 192.
    assert many - few <= 6 * BLOCK * 48


def test_blocks_do_not_change_the_result(monkeypatch):
    X, new = sheet(200), sheet(60, seed=1)
    new[5] = X[3]
    model = mf.LaplacianEigenmaps(2).fit(X)
    together = model.transform(new)
    monkeypatch.setattr(embedder, "streaming_blocks", lambda X: row_blocks(X.shape[0], 1, budget=7))
    np.testing.assert_allclose(model.transform(new), together, rtol=1e-9)


def test_blocks_have_bounded_rows():
    def rows(n, d):
        return {b.stop - b.start for b in streaming_blocks(np.broadcast_to(0.0, (n, d)))}

    assert max(rows(200_000, 3)) == 65536
    assert max(rows(200_000, 512)) == 8192
    assert max(rows(5000, 100_000)) == 1024


def test_a_warning_about_rows_of_several_blocks_is_one():
    text = "{count} of {total} rows are odd"

    def in_blocks(*counts):
        with counting_rows():
            for count in counts:
                warn_about_rows(count, 10, text, ExtensionWarning)

    with pytest.warns(ExtensionWarning) as caught:
        in_blocks(2, 0, 3)
    assert [str(w.message) for w in caught] == ["5 of 30 rows are odd"]
    with pytest.warns(ExtensionWarning, match="4 of 10"):
        warn_about_rows(4, 10, text, ExtensionWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_blocks(0, 0)
