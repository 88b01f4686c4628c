"""Descriptions of data and parameters, by which two fits can be compared."""

import hashlib
import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from manifoldry.util.validation import row_blocks


def describe(value: Any) -> str:
    """A text that is the same for the same value in another process.

    Arrays are described by shape, type and a digest of their entries, random generators by their
    state, fitted estimators also by their arrays, and everything else by its repr.

    Examples
    --------
    >>> describe(0.5), describe(len)
    ('0.5', '<built-in function len>')
    >>> describe(np.zeros((2, 3)))
    'float64 array of shape (2, 3), digest 01c88af0015f7556'
    """
    if isinstance(value, np.random.Generator):
        return f"Generator, digest {_digest(repr(value.bit_generator.state).encode())}"
    if isinstance(value, np.random.RandomState):
        return f"RandomState, digest {_digest(repr(value.get_state(legacy=False)).encode())}"
    if sparse.issparse(value):
        value = sparse.csr_array(value)
        return _array_text(value, "sparse array", value.data, value.indices, value.indptr)
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)
        return _array_text(value, "array", value)
    text = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
    return "; ".join([text, *_fitted_arrays(value)])


def _fitted_arrays(value: Any) -> list[str]:
    """The fitted attributes of an estimator that are arrays."""
    if not isinstance(value, BaseEstimator):
        return []
    value = getattr(value, "estimator", value)  # of a FrozenEstimator
    fitted = {name: array for name, array in vars(value).items() if name.endswith("_")}
    return [f"{k} {describe(v)}" for k, v in fitted.items() if isinstance(v, np.ndarray)]


def _array_text(value: Any, kind: str, *parts: np.ndarray) -> str:
    return f"{value.dtype} {kind} of shape {value.shape}, digest {_digest(*parts)}"


def _digest(*parts: Any) -> str:
    sums = hashlib.blake2b(digest_size=8)
    for part in parts:
        if isinstance(part, bytes):
            sums.update(part)
            continue
        for block in row_blocks(len(np.atleast_1d(part)), max(part[:1].size, 1)):
            sums.update(np.ascontiguousarray(part[block]).tobytes())
    return sums.hexdigest()
