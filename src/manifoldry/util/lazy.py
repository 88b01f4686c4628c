"""Collections of Dask, which are recognized without importing it."""

from typing import Any

import numpy as np


def is_lazy(X: Any) -> bool:
    """Whether `X` is a collection of Dask, or of a library that wraps one.

    Objects of such libraries can be in memory; they have no graph then.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> is_lazy(da.ones(3)), is_lazy(np.ones(3))
    (True, False)
    """
    kind = type(X)
    # Looked up in the class: an object may claim to have any attribute.
    if kind is np.ndarray or not hasattr(kind, "__dask_graph__"):
        return False
    # Dask's own collections always have a graph, which is expensive to build for data frames.
    return kind.__module__.partition(".")[0] == "dask" or X.__dask_graph__() is not None


def random_sample_of(X: Any, name: str = "X") -> str:
    """Return code that gathers a random sample of the rows of a collection, for error messages.

    The first rows are no such sample: data are often sorted.

    Examples
    --------
    >>> import dask.array as da
    >>> print(random_sample_of(da.ones((9, 2)), "Y"))
    Y[rows].compute() with rows = numpy.sort(numpy.random.default_rng(0).choice(len(Y), 5000, ...))
    """
    if type(X).__name__ in ("DataFrame", "Series"):
        return f"{name}.sample(frac=0.01).compute()"
    drawn = f"numpy.random.default_rng(0).choice(len({name}), 5000, replace=False)"
    return f"{name}[rows].compute() with rows = numpy.sort({drawn})"
