"""Trees of plain values turned into objects again, as `model_tree` has made them.

A tree may come from anybody. Classes are those of a table, objects are made without calling
constructors, attributes cannot replace methods, and the memory that is needed is at most
proportional to the size of the file. `model_checks` has what compiled loops rely on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from manifoldry.io.model_checks import check_object, is_saved
from manifoldry.io.model_types import class_named
from manifoldry.io.model_values import (
    FUNCTIONS,
    MAX_COPIED_BYTES,
    MAX_DEPTH,
    SPARSE,
    SPARSE_PARTS,
    DamagedModelError,
    Tree,
    plain_dtype,
)
from manifoldry.util.estimate import Estimate
from manifoldry.util.saved import set_attributes
from manifoldry.util.typing import Array


class Decoder:
    """Turns trees into objects again, given the arrays."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self._objects: list[Any] = []
        # Of all entries together: a few bytes of a file can ask for the same copy many times.
        self._bytes_left = MAX_COPIED_BYTES + sum(array.nbytes for array in arrays)

    def model(self, tree: Tree) -> BaseEstimator:
        """The estimator of a tree, whose objects have been checked."""
        made = self.decode(tree)
        if not isinstance(made, BaseEstimator):
            raise DamagedModelError("it contains no estimator")
        for each in self._objects:  # now that all are complete
            check_object(each)
        return made

    def decode(self, tree: Tree, depth: int = 0) -> Any:
        """The value of a tree; DamagedModelError if it is none."""
        if depth > MAX_DEPTH:
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

    def _reserve(self, count: int) -> None:
        """Take bytes for a copy from those that are left; an error if they do not suffice."""
        if count > self._bytes_left:
            raise DamagedModelError(
                f"copies of its arrays would take {(count - self._bytes_left) / 1e6:.0f} MB more "
                "than a file of this size may"
            )
        self._bytes_left -= count

    def _read_float(self, text: Tree, depth: int) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]

    def _read_array(self, number: Tree, depth: int) -> Array:
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise DamagedModelError(f"it has no array {str(number)[:40]}")
        return self.arrays[number]

    def _read_part(self, content: Tree, depth: int) -> Array:
        """A matrix as part of a larger one, as it was when it was saved."""
        tree, step = content
        part = self.decode(tree, depth)
        rows = part if part.flags.c_contiguous else part.T
        if step < rows.shape[1]:
            raise DamagedModelError("the rows of a matrix overlap")
        self._reserve(len(rows) * step * part.itemsize)
        whole = np.zeros((len(rows), step), part.dtype)
        whole[:, : rows.shape[1]] = rows
        kept = whole[:, : rows.shape[1]]
        return kept if part.flags.c_contiguous else kept.T

    def _read_objects(self, content: Tree, depth: int) -> Array:
        kind, shape, items = content
        values = [self.decode(item, depth) for item in items]
        dtype = np.dtype(object) if kind == "O" else plain_dtype(kind, "U")
        self._reserve(len(values) * dtype.itemsize)
        out = np.empty(len(values), dtype)
        for i, value in enumerate(values):  # one by one: lists are objects, too
            out[i] = value
        return out.reshape(shape)

    def _read_tuple(self, items: Tree, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(list(items), depth))

    def _read_set(self, items: Tree, depth: int) -> set[Any]:
        return set(self.decode(list(items), depth))

    def _read_frozenset(self, items: Tree, depth: int) -> frozenset[Any]:
        return frozenset(self.decode(list(items), depth))

    def _read_records(self, columns: Tree, depth: int) -> Array:
        read = [(str(name), self.decode(column, depth)) for name, column in columns]
        self._reserve(sum(column.nbytes for _, column in read))
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
        return plain_dtype(text)

    def _read_number(self, text: Tree, depth: int) -> type:
        return plain_dtype(text).type

    def _read_sparse(self, content: Tree, depth: int) -> Any:
        kind, shape, parts = content
        made, arrays = SPARSE[kind], [self.decode(part, depth) for part in parts]
        data, *places = arrays
        if data.dtype.kind not in "biufc" or any(part.dtype.kind not in "iu" for part in places):
            raise DamagedModelError("the parts of a sparse matrix are no numbers")
        if kind.startswith("coo"):
            matrix = made((data, tuple(places)), shape=tuple(shape))
        else:
            matrix = made((data, *places), shape=tuple(shape))
        self._reserve(_copied_bytes(matrix, arrays))
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
        return FUNCTIONS[name]

    def _read_same(self, number: Tree, depth: int) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise DamagedModelError(f"it has no object {str(number)[:40]} before this place")
        return self._objects[number]

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
        for attribute in attributes:
            if not is_saved(kind, attribute):
                raise DamagedModelError(f"a {name} has no attribute {attribute[:80]!r}")
        state = {key: self.decode(value, depth) for key, value in attributes.items()}
        if isinstance(made, BaseEstimator):
            set_attributes(made, state)
        else:
            made.__dict__.update(state)
            _require_fields(made)
        return made


def _copied_bytes(matrix: Any, given: Sequence[Array]) -> int:
    """Bytes of the parts of a sparse matrix that are not those it was given, but conversions."""
    parts = (getattr(matrix, name) for name in SPARSE_PARTS[matrix.format])
    pairs = zip(parts, given, strict=True)
    return sum(part.nbytes for part, each in pairs if not np.may_share_memory(part, each))


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
