"""A fitted model as a tree of plain values, with its arrays aside.

The tree consists of what JSON has: numbers, strings, lists, and dictionaries with one key that
says what they stand for. An object is the name of its class and its attributes; an array is the
number of its entry in a list. Objects and arrays that a model holds in several places are stored
once, and are the same object again after loading (`model_decoder`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from manifoldry.device import Device
from manifoldry.io.model_checks import is_saved
from manifoldry.io.model_types import name_of, sklearn_names
from manifoldry.io.model_values import (
    ARRAY_KINDS,
    FUNCTIONS,
    MAX_COPIED_BYTES,
    SPARSE,
    SPARSE_PARTS,
    Tree,
    UnsavableError,
)
from manifoldry.util.estimate import Estimate
from manifoldry.util.saved import lasting_state
from manifoldry.util.typing import Array


class Encoder:
    """Turns objects into trees, and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}  # of arrays and objects that have been met
        self._kept: list[Any] = []  # so that no other object gets the same id
        self._n_objects = 0
        self._bytes_left = MAX_COPIED_BYTES  # for parts of matrices

    def encode(self, value: Any, where: str) -> Tree:
        """The tree of a value; `where` is its place in the model, for messages."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        for kind, encode in self._containers.items():
            if type(value) is kind:
                return encode(value, where)
        return self._other(value, where)

    @property
    def _containers(self) -> dict[type, Callable[[Any, str], Tree]]:
        def items(values: Any, where: str) -> list[Tree]:
            return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

        return {
            list: items,
            tuple: lambda value, where: {"tuple": items(value, where)},
            set: lambda value, where: {"set": items(sorted(value, key=repr), where)},
            frozenset: lambda value, where: {"frozenset": items(sorted(value, key=repr), where)},
            deque: lambda value, where: {"deque": [items(value, where), value.maxlen]},
            dict: lambda value, where: {
                "dict": [
                    [self.encode(key, where), self.encode(item, f"{where}[{key!r}]")]
                    for key, item in value.items()
                ]
            },
            slice: lambda value, where: {
                "slice": items((value.start, value.stop, value.step), where)
            },
        }

    def _other(self, value: Any, where: str) -> Tree:
        if isinstance(value, Estimate):
            ends = [] if value.exact else [value.low, value.high]
            return {"estimate": [self.encode(float(v), where) for v in (value, *ends)]}
        if isinstance(value, Device):
            return value.name  # another machine may not have it, and computes elsewhere
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), where)}
        if isinstance(value, np.dtype) and value.kind in ARRAY_KINDS:
            return {"dtype": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"number": np.dtype(value).str}
        if sparse.issparse(value) and type(value).__name__ in SPARSE:
            return self._once(value, lambda: self._sparse(value, where))
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=False), where)}
        if isinstance(value, np.random.Generator):
            return {"generator": self.encode(value.bit_generator.state, where)}
        if isinstance(value, np.ufunc) and value in FUNCTIONS.values():
            return {"function": value.__name__}
        name = name_of(type(value))
        if name is None:
            raise UnsavableError(
                f"{where} is {_described(value)}, which a model file cannot contain, since loading "
                f"it could run code: {_remedy(value)}, or use pickle for files that only you load"
            )
        if isinstance(value, tuple):  # a named one
            return {"named": [name, [self.encode(v, where) for v in value]]}
        return self._once(value, lambda: self._object(name, value, where))

    def _object(self, name: str, value: Any, where: str) -> Tree:
        items = _state(value).items()
        return {"object": [name, {k: self.encode(v, f"{where}.{k}") for k, v in items}]}

    def _sparse(self, value: Any, where: str) -> Tree:
        parts = [self._array(getattr(value, part), where) for part in SPARSE_PARTS[value.format]]
        return {"sparse": [type(value).__name__, list(map(int, value.shape)), parts]}

    def _once(self, value: Any, encode: Callable[[], Tree]) -> Tree:
        """The tree of an object, or its number if it has been met."""
        if id(value) in self._numbers:
            return {"same": self._numbers[id(value)]}
        self._numbers[id(value)] = self._n_objects
        self._kept.append(value)
        self._n_objects += 1
        return encode()

    def _array(self, value: Array, where: str) -> Tree:
        if type(value) not in (np.ndarray, np.memmap):  # a mask would be lost
            raise UnsavableError(f"{where} is {_described(value)}: convert it with np.asarray")
        if value.dtype.kind in "OU":
            texts = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value.ravel())]
            kind = "O" if value.dtype.kind == "O" else value.dtype.str
            return {"objects": [kind, list(value.shape), texts]}
        if value.dtype.names:
            records: Any = value
            columns = [[name, self._array(records[name], where)] for name in value.dtype.names]
            return {"records": columns}
        if value.dtype.kind not in ARRAY_KINDS:
            raise UnsavableError(
                f"{where} is an array of {value.dtype}, which a model file cannot contain: convert "
                "it to numbers or to texts (dtype=object)"
            )
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.arrays)
            self._kept.append(value)
            self.arrays.append(np.asarray(value))
        number = {"array": self._numbers[id(value)]}
        step = self._step_of_part(value)
        return number if step is None else {"part": [number, step]}

    def _step_of_part(self, array: Array) -> int | None:
        """Distance, in numbers, of the rows or columns of a matrix that is part of a larger one.

        Products with the matrix have other bits if its rows or columns are moved together. None if
        it is no such part, or if the larger one takes too much memory.
        """
        if array.ndim != 2 or array.flags.c_contiguous or array.flags.f_contiguous:
            return None
        near, far = sorted(array.strides)
        count = far * max(array.shape)
        if near != array.itemsize or far % array.itemsize or count > self._bytes_left:
            return None
        self._bytes_left -= count
        return far // array.itemsize


def _state(value: Any) -> dict[str, Any]:
    """The attributes to save."""
    if isinstance(value, BaseEstimator):
        return lasting_state(value)
    state = value.__getstate__() or {}
    return {name: each for name, each in state.items() if is_saved(type(value), name)}


def _described(value: Any) -> str:
    kind = type(value)
    name = getattr(value, "__qualname__", None)
    return (
        f"the function {name}"
        if callable(value) and name
        else f"a {kind.__module__}.{kind.__qualname__}"
    )


def _remedy(value: Any) -> str:
    if type(value).__name__ in ("KDTree", "BallTree"):
        return "pass algorithm='brute'"
    if isinstance(value, BaseEstimator):
        return f"of scikit-learn, choose among {', '.join(sklearn_names())}"
    return "choose a value by name or number"
