"""A fitted model as a tree of plain values, with its arrays aside.

The tree consists of what JSON has: numbers, strings, lists, and dictionaries with one key that
says what they stand for. An object is the name of its class and its attributes; an array is the
number of its entry in a list. Objects and arrays that a model holds in several places are stored
once, and are the same object again after loading.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from manifoldry.io.model_types import class_named, name_of
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array

Tree = Any  # what json.dumps takes
_SPARSE_PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"),
                 "dia": ("data", "offsets"), "coo": ("data", "row", "col")}  # fmt: skip
_SPARSE = {
    f"{layout}_{kind}": getattr(sparse, f"{layout}_{kind}")
    for layout in _SPARSE_PARTS for kind in ("array", "matrix")
}  # fmt: skip
# Functions that a FunctionTransformer may have: they change numbers, and nothing else.
_FUNCTIONS = {name: getattr(np, name) for name in ("log1p", "expm1", "log2", "sqrt", "square")}
_ARRAY_KINDS = "biufc"  # numbers and booleans
_MAX_DEPTH = 100


class UnsavableError(TypeError):
    """A part of a model that a model file cannot contain."""


class DamagedModelError(ValueError):
    """A file that is no model file, or not the one that was written."""


class Encoder:
    """Turns objects into trees, and collects the arrays."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._numbers: dict[int, int] = {}  # of arrays and objects that have been met
        self._kept: list[Any] = []  # so that no other object gets the same id
        self._n_objects = 0

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
            set: lambda value, where: {"set": items(sorted(value), where)},
            frozenset: lambda value, where: {"frozenset": items(sorted(value), where)},
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
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), where)}
        if isinstance(value, np.dtype) and value.kind in _ARRAY_KINDS:
            return {"dtype": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"number": np.dtype(value).str}
        if sparse.issparse(value) and type(value).__name__ in _SPARSE:
            return self._once(value, lambda: self._sparse(value, where))
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(legacy=False), where)}
        if isinstance(value, np.random.Generator):
            return {"generator": self.encode(value.bit_generator.state, where)}
        if isinstance(value, np.ufunc) and value in _FUNCTIONS.values():
            return {"function": value.__name__}
        name = name_of(type(value))
        if name is None:
            raise UnsavableError(
                f"{where} is {_described(value)}, which a model file cannot contain, since loading "
                "it could run code: choose a value by name or number, or use pickle for files that "
                "only you load"
            )
        if isinstance(value, tuple):  # a named one
            return {"named": [name, [self.encode(v, where) for v in value]]}
        return self._once(value, lambda: self._object(name, value, where))

    def _object(self, name: str, value: Any, where: str) -> Tree:
        items = _state(value).items()
        return {"object": [name, {k: self.encode(v, f"{where}.{k}") for k, v in items}]}

    def _sparse(self, value: Any, where: str) -> Tree:
        parts = [self._array(getattr(value, part), where) for part in _SPARSE_PARTS[value.format]]
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
        if value.dtype.kind in "OUT":
            texts = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value.ravel())]
            kind = "O" if value.dtype.kind == "O" else value.dtype.str
            return {"objects": [kind, list(value.shape), texts]}
        if value.dtype.names:
            records: Any = value
            columns = [[name, self._array(records[name], where)] for name in value.dtype.names]
            return {"records": columns}
        if value.dtype.kind not in _ARRAY_KINDS:
            raise UnsavableError(f"{where} is an array of {value.dtype}, which cannot be saved")
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.arrays)
            self._kept.append(value)
            self.arrays.append(np.asarray(value))
        return {"array": self._numbers[id(value)]}


class Decoder:
    """Turns trees into objects again, given the arrays."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self._objects: list[Any] = []

    def decode(self, tree: Tree, depth: int = 0) -> Any:
        """The value of a tree; DamagedModelError if it is none."""
        if depth > _MAX_DEPTH:
            raise DamagedModelError("its objects are nested too deeply")
        if tree is None or isinstance(tree, (bool, str, int, float)):
            return tree
        if isinstance(tree, list):
            return [self.decode(item, depth + 1) for item in tree]
        if isinstance(tree, dict) and len(tree) == 1:
            ((kind, content),) = tree.items()
            read = getattr(self, f"_read_{kind}", None)
            if read is not None:
                return read(content, depth + 1)
        raise DamagedModelError("it has an entry that is no value")

    def _read_float(self, text: Tree, depth: int) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]

    def _read_array(self, number: Tree, depth: int) -> Array:
        if not 0 <= int(number) < len(self.arrays):
            raise DamagedModelError(f"it has no array {number}")
        return self.arrays[number]

    def _read_objects(self, content: Tree, depth: int) -> Array:
        kind, shape, items = content
        values = [self.decode(item, depth) for item in items]
        if kind == "O":
            out = np.empty(len(values), dtype=object)
            out[:] = values
            return out.reshape(shape)
        return np.array(values, dtype=_plain_dtype(kind, "U")).reshape(shape)

    def _read_tuple(self, items: Tree, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(list(items), depth))

    def _read_set(self, items: Tree, depth: int) -> set[Any]:
        return set(self.decode(list(items), depth))

    def _read_frozenset(self, items: Tree, depth: int) -> frozenset[Any]:
        return frozenset(self.decode(list(items), depth))

    def _read_records(self, columns: Tree, depth: int) -> Array:
        read = [(str(name), self.decode(column, depth)) for name, column in columns]
        dtype = [(name, column.dtype) for name, column in read]
        records = np.empty(read[0][1].shape, dtype)
        for name, column in read:
            records[name] = column
        return records

    def _read_deque(self, content: Tree, depth: int) -> deque[Any]:
        items, longest = content
        return deque(self.decode(items, depth), maxlen=longest)

    def _read_dict(self, items: Tree, depth: int) -> dict[Any, Any]:
        return {self.decode(key, depth): self.decode(value, depth) for key, value in items}

    def _read_slice(self, items: Tree, depth: int) -> slice:
        return slice(*self.decode(items, depth))

    def _read_estimate(self, values: Tree, depth: int) -> Estimate:
        return Estimate(*self.decode(values, depth))

    def _read_scalar(self, tree: Tree, depth: int) -> Any:
        return self.decode(tree, depth)[()]

    def _read_dtype(self, text: Tree, depth: int) -> np.dtype[Any]:
        return _plain_dtype(text)

    def _read_number(self, text: Tree, depth: int) -> type:
        return _plain_dtype(text).type

    def _read_sparse(self, content: Tree, depth: int) -> Any:
        kind, shape, parts = content
        made, arrays = _SPARSE[kind], [self.decode(part, depth) for part in parts]
        data, *places = arrays
        if kind.startswith("coo"):
            matrix = made((data, tuple(places)), shape=tuple(shape))
        else:
            matrix = made((data, *places), shape=tuple(shape))
        if kind.startswith("cs"):
            matrix.check_format(full_check=True)  # compiled loops trust the indices
        self._objects.append(matrix)
        return matrix

    def _read_random_state(self, tree: Tree, depth: int) -> np.random.RandomState:
        made = np.random.RandomState(0)
        made.set_state(self.decode(tree, depth))
        return made

    def _read_generator(self, tree: Tree, depth: int) -> np.random.Generator:
        state = self.decode(tree, depth)
        bits = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}[state["bit_generator"]]()
        bits.state = state
        return np.random.Generator(bits)

    def _read_function(self, name: Tree, depth: int) -> Any:
        return _FUNCTIONS[name]

    def _read_same(self, number: Tree, depth: int) -> Any:
        return self._objects[range(len(self._objects))[number]]

    def _read_named(self, content: Tree, depth: int) -> Any:
        name, values = content
        kind = _known(name)
        if not issubclass(kind, tuple):
            raise DamagedModelError(f"{name} is no tuple")
        return kind(*self.decode(values, depth))

    def _read_object(self, content: Tree, depth: int) -> Any:
        name, attributes = content
        kind = _known(name)
        if issubclass(kind, (tuple, float)):
            raise DamagedModelError(f"{name} has no attributes")
        made = kind.__new__(kind)
        self._objects.append(made)
        state = {str(key): self.decode(value, depth) for key, value in attributes.items()}
        if isinstance(made, BaseEstimator):
            BaseEstimator.__setstate__(made, state)
        else:
            made.__dict__.update(state)
            _require_fields(made)
            if isinstance(made, NeighborGraph):
                made.check()
        return made


def _state(value: Any) -> dict[str, Any]:
    """The attributes to save."""
    if isinstance(value, BaseEstimator):
        return dict(BaseEstimator.__getstate__(value))
    return dict(value.__getstate__() or {})


def _require_fields(made: Any) -> None:
    """A dataclass must have all of its fields; those with defaults have them by their class."""
    if is_dataclass(made):
        missing = [field.name for field in fields(made) if not hasattr(made, field.name)]
        if missing:
            raise DamagedModelError(f"a {type(made).__name__} has no {missing[0]}")


def _known(name: Any) -> type:
    kind = class_named(name) if isinstance(name, str) else None
    if kind is None:
        raise DamagedModelError(
            f"it contains an object of the class {str(name)[:80]!r}, which manifoldry does not load"
        )
    return kind


def _plain_dtype(text: Any, kinds: str = _ARRAY_KINDS) -> np.dtype[Any]:
    dtype = np.dtype(str(text))
    if dtype.kind not in kinds:
        raise DamagedModelError(f"it has numbers of the type {str(text)[:80]!r}")
    return dtype


def _described(value: Any) -> str:
    kind = type(value)
    name = getattr(value, "__qualname__", None)
    return (
        f"the function {name}"
        if callable(value) and name
        else f"a {kind.__module__}.{kind.__qualname__}"
    )
