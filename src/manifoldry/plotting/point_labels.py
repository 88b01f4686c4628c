"""Labels of points: missing ones, categories of pandas, and the order of their names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.text import natural_order
from manifoldry.util.typing import IntArray

Mask = NDArray[np.bool_]


def categories_of(color: Any) -> tuple[Any, list[str]] | None:
    """Codes and names, in their order, of categories of pandas; None for anything else."""
    source = getattr(color, "cat", color)  # a Series has them in `cat`
    if not (hasattr(source, "codes") and hasattr(source, "categories")):
        return None
    return np.asarray(source.codes), [str(each) for each in source.categories]


def missing_entries(array: Any) -> Mask:
    """Mask of the entries that are None, NaN, or the missing values of pandas."""
    if array.dtype.kind == "O":
        return np.array([_is_missing(each) for each in array], dtype=bool)
    return np.isnan(array) if array.dtype.kind in "fmM" else np.zeros(len(array), dtype=bool)


def _is_missing(label: Any) -> bool:
    same = label == label  # false for NaN, and neither true nor false for the NA of pandas
    return label is None or not isinstance(same, bool | np.bool_) or not same


def inferred(known: Any) -> Any:
    """Labels as numbers, booleans or strings."""
    found = np.array(known.tolist()) if known.dtype.kind == "O" and len(known) else known
    if found.ndim == 1 and found.dtype.kind in "iufbUS":
        return found
    return np.array([str(label) for label in known], dtype=str)


def sorted_names(known: Any) -> tuple[list[str], IntArray]:
    """Names of the different labels in natural order, and the position of each label."""
    found, codes = np.unique(known, return_inverse=True)
    order = sorted(range(len(found)), key=lambda i: _natural(found[i]))
    return [str(found[i]) for i in order], np.argsort(order)[codes]


def _natural(label: Any) -> Any:
    """Sort key that puts "class 2" before "class 10"."""
    return natural_order(label) if isinstance(label, str) else label


def spread(known: Any, missing: Mask, fill: float) -> Any:
    """Entries of all points: the known ones at their places, and `fill`."""
    entries = np.full(len(missing), fill, dtype=known.dtype)
    entries[~missing] = known
    return entries
