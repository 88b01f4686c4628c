"""Handwritten digits: MNIST and USPS."""

from __future__ import annotations

from typing import Literal

import numpy as np

from manifoldry.datasets.dataset import Dataset, choose_rows, dataset_of
from manifoldry.datasets.registry import REGISTRY
from manifoldry.datasets.storage import fetch
from manifoldry.util.typing import IntArray, RandomState

Split = Literal["all", "train", "test"]


def load_mnist(
    n_samples: int | None = None,
    *,
    split: Split = "all",
    random_state: RandomState = None,
    download_if_missing: bool = True,
) -> Dataset:
    """Load the 70000 MNIST digits, 28×28, downloading them if they are not found.

    Parameters
    ----------
    n_samples : int, default=None
        Draw this many rows at random, without replacement and in their original order; None
        keeps all. Only the drawn rows are converted to float.
    split : {"all", "train", "test"}, default="all"
        All rows, the first 60000 or the last 10000.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the draw.
    download_if_missing : bool, default=True
        Whether to download from OpenML (about 15 MB) if no copy is found.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, `raw` the bytes, `y` the digit.

    See Also
    --------
    load_usps : smaller digits, 9298 of them.
    sklearn.datasets.load_digits : 1797 digits of 8 × 8 pixels that come with scikit-learn.

    Examples
    --------
    >>> from manifoldry.datasets import load_mnist
    >>> X, y = load_mnist(n_samples=1000, random_state=0)  # doctest: +SKIP
    >>> X.shape, y.shape  # doctest: +SKIP
    ((1000, 784), (1000,))
    """
    file = REGISTRY["mnist"]
    rows = choose_rows(_rows_of(split, 60000, 70000), n_samples, random_state)
    arrays = fetch(file, download_if_missing=download_if_missing)
    return dataset_of(file, arrays["X"], rows, y=arrays["y"], image_shape=(28, 28))


def load_usps(
    n_samples: int | None = None,
    *,
    split: Split = "all",
    random_state: RandomState = None,
) -> Dataset:
    """Load the 9298 USPS digits, 16×16: smaller than MNIST, and slightly harder to classify.

    Parameters
    ----------
    n_samples : int, default=None
        Draw this many rows at random, without replacement and in their original order; None
        keeps all.
    split : {"all", "train", "test"}, default="all"
        All rows, the first 7291 or the last 2007.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator of the draw.

    Returns
    -------
    Dataset
        `X` is float32 in 0..1, as stored, `y` the digit.

    See Also
    --------
    load_mnist : more and larger digits.

    Examples
    --------
    >>> from manifoldry.datasets import load_usps
    >>> X, y = load_usps(split="test")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (2007, 256)
    """
    file = REGISTRY["usps"]
    rows = choose_rows(_rows_of(split, 7291, 9298), n_samples, random_state)
    arrays = fetch(file)
    return dataset_of(file, arrays["X"], rows, y=arrays["y"], image_shape=(16, 16))


def _rows_of(split: str, n_train: int, n_total: int) -> IntArray:
    bounds = {"all": (0, n_total), "train": (0, n_train), "test": (n_train, n_total)}
    if split not in bounds:
        raise ValueError(f"split={split!r} must be 'all', 'train' or 'test'")
    return np.arange(*bounds[split])
