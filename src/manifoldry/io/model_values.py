"""What a model file may contain besides objects: kinds of arrays, sparse matrices and functions.

Writing and reading have the same limits, so that a file that was written can be read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

Tree = Any  # what json.dumps takes
SPARSE_PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"),
                "dia": ("data", "offsets"), "coo": ("data", "row", "col")}  # fmt: skip
SPARSE = {
    f"{layout}_{kind}": getattr(sparse, f"{layout}_{kind}")
    for layout in SPARSE_PARTS for kind in ("array", "matrix")
}  # fmt: skip
# Functions that a FunctionTransformer may have: they change numbers, and nothing else.
FUNCTIONS = {name: getattr(np, name) for name in ("log1p", "expm1", "log2", "sqrt", "square")}
ARRAY_KINDS = "biufc"  # numbers and booleans
MAX_DEPTH = 100
# Of all arrays of texts, which take as much memory as the longest, of records, whose columns may be
# the same array, and of parts of matrices, beyond the bytes of the arrays in the file: a small file
# could ask for any amount.
MAX_COPIED_BYTES = 2**27


class UnsavableError(TypeError):
    """A part of a model that a model file cannot contain.

    Functions of your own are such parts, since a file has no code. The message names the part.

    See Also
    --------
    manifoldry.save : raises it.

    Examples
    --------
    >>> import tempfile, numpy as np, manifoldry
    >>> from manifoldry.io import UnsavableError
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> model = manifoldry.Isomap(n_neighbors=5, metric=lambda a, b: abs(a - b).max()).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     try:
    ...         manifoldry.save(model, f"{folder}/map.model")
    ...     except UnsavableError:
    ...         print("pass the name of a metric")
    pass the name of a metric
    """


class DamagedModelError(ValueError):
    """A file that is no model file, or not the one that was written.

    See Also
    --------
    manifoldry.load : raises it.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, manifoldry
    >>> from manifoldry.io import DamagedModelError
    >>> model = manifoldry.PCA().fit(np.random.default_rng(0).normal(size=(20, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = manifoldry.save(model, f"{folder}/pca.model")
    ...     _ = path.write_bytes(path.read_bytes()[:-1])  # a copy that was cut off
    ...     try:
    ...         manifoldry.load(path)
    ...     except DamagedModelError:
    ...         print("copy the file again")
    copy the file again
    """


def plain_dtype(text: Any, kinds: str = ARRAY_KINDS) -> np.dtype[Any]:
    """The type of numbers, or of texts, that a file names; DamagedModelError for any other."""
    # NumPy would evaluate other texts as literals of Python.
    if not re.fullmatch(rf"[<>|][{kinds}][0-9]{{1,9}}", str(text)):
        raise DamagedModelError(f"it has numbers of the type {str(text)[:80]!r}")
    return np.dtype(text)
