"""The session of docs/anndata.md runs, and its figures are those of the session."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scanpy")


@pytest.mark.slow  # its neighbors need umap, which compiles for half a minute when it is new
def test_the_session_of_the_documentation(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "anndata.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(block, names)
    adata, new = names["adata"], names["new"]
    stated = re.search(r"unpredictability\"\]  # ([\d., ]+)", text)[1].split(",")
    found = adata.uns["diffusion_maps"]["unpredictability"]
    np.testing.assert_allclose(found, np.array(stated, dtype=float), atol=0.006)
    np.testing.assert_allclose(adata.uns["nonredundant"]["unpredictability"], [1, 0.89], atol=0.01)
    summary = re.search(r"The summary ends:\n\n```text\n(.*?)```", text, flags=re.S)[1]
    for sentence in summary.split("\n"):
        assert sentence.removesuffix(" ...") in str(names["found"])
    assert {"X_laplacian_eigenmaps", "X_isomap", "maps", "X_tsne"} <= set(adata.obsm)
    assert new.obsm["X_tsne"].shape == (100, 2)
    np.testing.assert_array_equal(names["model"].transform(new), new.obsm["X_tsne"])
