"""Products of sparse matrices with a few columns, by compiled loops on several threads."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array

_PARTS = 16  # groups of rows that may be processed at the same time
_MIN_ENTRIES = 2e5  # below this scipy is fast enough, and nothing has to be compiled


def product(A: sparse.csr_array, X: Array) -> Array:
    """A·X for an array X of shape (n, k); k should be small.

    scipy takes two to three times as long and uses one thread. Each row is summed by one thread
    in the order of the matrix, so results do not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> product(sparse.csr_array(np.diag([1.0, 2.0])), np.ones((2, 1))).ravel()
    array([1., 2.])
    """
    if A.nnz < _MIN_ENTRIES:
        return np.stack([A @ x for x in X.T], axis=1)  # half the time of several columns at once
    from manifoldry.util.compiled import product_rows

    X = np.ascontiguousarray(X, dtype=A.dtype)
    if len(X) != A.shape[1]:  # compiled loops do not check bounds
        raise ValueError(f"X has {len(X)} rows, but the matrix has {A.shape[1]} columns")
    out = np.empty((A.shape[0], X.shape[1]), dtype=A.dtype)
    loop_over_rows(product_rows(X.shape[1]), A, X, out)
    return out


def loop_over_rows(loop: Any, A: sparse.csr_array, *arguments: Any) -> None:
    """Call a compiled loop on parts of the rows of `A` with similar numbers of entries.

    Its arguments are the three arrays of the matrix, the `arguments` and the range of rows.
    """
    wanted = np.linspace(0, A.nnz, _PARTS + 1)
    bounds = np.searchsorted(A.indptr, wanted[1:-1]).clip(0, A.shape[0])
    parts = pairwise([0, *bounds.tolist(), A.shape[0]])
    map_threads(lambda part: loop(A.indptr, A.indices, A.data, *arguments, *part), parts)
