"""Descriptions of data and parameters, by which two fits can be compared."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from manifoldry.util.validation import row_blocks


def describe(value: Any) -> str:
    """A text that is the same for the same value in another process.

    Arrays are described by shape, type and a digest of their entries, random generators by their
    state, containers by their items, dataclasses by their fields, estimators by their parameters
    and other attributes, and everything else by its repr. The end of a long text is replaced by a
    digest of the whole.

    Examples
    --------
    >>> describe(0.5), describe(len)
    ('0.5', '<built-in function len>')
    >>> describe({"w": np.zeros((2, 3))})
    "{'w': float64 array of shape (2, 3), digest 01c88af0015f7556}"
    """
    if isinstance(value, np.random.Generator):
        return f"Generator, digest {_digest(repr(value.bit_generator.state).encode())}"
    if isinstance(value, np.random.RandomState):
        return f"RandomState, digest {_digest(repr(value.get_state(legacy=False)).encode())}"
    if sparse.issparse(value):
        value = sparse.csr_array(value)
        return _array_text(value, "sparse array", value.data, value.indices, value.indptr)
    if hasattr(value, "__array__") and not isinstance(value, np.generic | type):
        value = np.asarray(value)
        # The memory of an array of objects holds addresses, which differ between processes.
        content = describe(value.tolist()).encode() if value.dtype.hasobject else value
        return _array_text(value, "array", content)
    return _shortened(_content(value))


def _content(value: Any) -> str:
    """The text of a value, with those of everything in it."""
    kind = type(value).__name__
    if isinstance(value, Mapping):
        items = sorted(f"{describe(key)}: {describe(item)}" for key, item in value.items())
        return _of_kind(kind, "dict", f"{{{', '.join(items)}}}")
    if isinstance(value, set | frozenset):  # their order differs between processes
        return _of_kind(kind, "set", f"{{{', '.join(sorted(map(describe, value)))}}}")
    if isinstance(value, list):
        return _of_kind(kind, "list", f"[{', '.join(map(describe, value))}]")
    if isinstance(value, tuple):
        return _of_kind(kind, "tuple", f"({', '.join(map(describe, value))})")
    attributes = _attributes(value)
    if attributes is not None:
        return f"{kind}({', '.join(f'{k}={describe(v)}' for k, v in attributes.items())})"
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def _of_kind(kind: str, usual: str, text: str) -> str:
    return text if kind == usual else f"{kind}({text})"


def _attributes(value: Any) -> dict[str, Any] | None:
    """The parameters and fitted attributes of an estimator, or the fields of a dataclass."""
    if isinstance(value, BaseEstimator):
        return {**value.get_params(deep=False), **dict(sorted(vars(value).items()))}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, partial):
        return {"func": value.func, "args": value.args, "keywords": value.keywords}
    return None


def _shortened(text: str, length: int = 80) -> str:
    if len(text) <= length:
        return text
    end = f"..., digest {_digest(text.encode())}"
    return text[: length - len(end)] + end


def _array_text(value: Any, kind: str, *parts: Any) -> str:
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
