"""Word vectors and single-cell data."""

from __future__ import annotations

from typing import Literal

import numpy as np

from manifoldry.datasets.dataset import Dataset, choose_rows, dataset_of
from manifoldry.datasets.registry import REGISTRY
from manifoldry.datasets.storage import fetch
from manifoldry.util.typing import RandomState


def load_glove(n_samples: int | None = None, *, random_state: RandomState = None) -> Dataset:
    """Load GloVe vectors, 100 dimensions, of the 10000 most frequent English words.

    Parameters
    ----------
    n_samples : int, default=None
        Draw this many words at random, in order of frequency; None keeps all.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the draw.

    Returns
    -------
    Dataset
        `X` is float32 (`raw` float16), `sample_names` the words, most frequent first.

    See Also
    --------
    load_pbmc : single cells.

    Examples
    --------
    >>> from manifoldry.datasets import load_glove
    >>> load_glove().sample_names[0]  # doctest: +SKIP
    'the'
    """
    file = REGISTRY["glove100_top10000"]
    arrays = fetch(file)
    rows = choose_rows(np.arange(len(arrays["X"])), n_samples, random_state)
    return dataset_of(file, arrays["X"], rows, sample_names=arrays["words"][rows])


def load_pbmc(*, features: Literal["pca", "genes"] = "pca") -> Dataset:
    """Load 700 peripheral blood cells of 10 types.

    Parameters
    ----------
    features : {"pca", "genes"}, default="pca"
        50 principal components, or the scaled expression of 765 genes.

    Returns
    -------
    Dataset
        `X` is float32, `y` the cell type, and `target_names` the names of types 0 to 9.

    See Also
    --------
    manifoldry.tl.embed : maps of cells in an AnnData.

    Examples
    --------
    >>> from manifoldry.datasets import load_pbmc
    >>> load_pbmc()  # doctest: +SKIP
    Dataset(pbmc68k_reduced: 700 samples, 50 features)
    """
    keys = {"pca": "pca", "genes": "genes_scaled"}
    if features not in keys:
        raise ValueError(f"features={features!r} must be 'pca' or 'genes'")
    file = REGISTRY["pbmc68k_reduced"]
    arrays = fetch(file)
    return dataset_of(file, arrays[keys[features]], y=arrays["y"], target_names=arrays["names"])
