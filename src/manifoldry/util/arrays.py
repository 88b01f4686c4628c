"""Arrays of any namespace that follows the array API: numpy's, CuPy's, array_api_strict's.

What a search needs beyond operators, so that a map may stay on a device: the namespace behind an
array, changes of precision, and reductions to Python floats, which steer every search.
"""

import sys
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from manifoldry.util.typing import Array


def namespace(Y: Any) -> Any:
    """The module whose functions take `Y`: numpy for numpy's arrays, in all of its versions.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    if isinstance(Y, np.ndarray):
        return np
    if hasattr(Y, "__array_namespace__"):
        return Y.__array_namespace__()
    return sys.modules[type(Y).__module__.partition(".")[0]]  # older versions of CuPy


def as_array(Y: Any) -> Array:
    """`Y` as an array: as it is if it comes from a namespace or a device, else numpy's."""
    foreign = hasattr(Y, "__array_namespace__") or hasattr(Y, "__cuda_array_interface__")
    return Y if foreign and not isinstance(Y, np.ndarray) else np.asarray(Y)


def to_numpy(Y: Any) -> Array:
    """`Y` in numpy; a copy only where it lies on a device."""
    if isinstance(Y, np.ndarray):
        return Y
    return np.asarray(Y.get() if hasattr(Y, "get") else Y)


def like(X: Any, Y: Array) -> Array:
    """`X` in the namespace of `Y`, with its own precision; as it is if it is there already."""
    if isinstance(X, type(Y)):
        return X
    return namespace(Y).asarray(to_numpy(X))


def cast(Y: Any, dtype: Any) -> Array:
    """`Y` in another precision; as it is where it has that one.

    Examples
    --------
    >>> import numpy as np
    >>> cast(np.ones(2), np.float32).dtype
    dtype('float32')
    """
    if hasattr(Y, "astype"):
        return Y.astype(dtype, copy=False)
    return namespace(Y).astype(Y, dtype, copy=False)


def double(Y: Array) -> Array:
    """`Y` in double precision; as it is where it has that."""
    if isinstance(Y, np.ndarray):
        return np.asarray(Y, dtype=np.float64)
    return cast(Y, namespace(Y).float64)


def on_host(operator: Callable[[Array], Array], G: Array) -> Array:
    """An operator of numpy's arrays in double precision, applied to `G` of any namespace.

    The one place where a search leaves its device: sparse products and factors are the CPU's.
    """
    return cast(like(operator(double(to_numpy(G))), G), G.dtype)


def is_floating(Y: Array) -> bool:
    """Whether `Y` has real floating-point numbers."""
    if isinstance(Y.dtype, np.dtype):
        return bool(np.issubdtype(Y.dtype, np.floating))
    return bool(namespace(Y).isdtype(Y.dtype, "real floating"))


def precision(Y: Array) -> float:
    """Machine epsilon of the numbers in `Y`."""
    return float(namespace(Y).finfo(Y.dtype).eps)


def all_finite(Y: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    xp = namespace(Y)
    return bool(xp.all(xp.isfinite(Y)))


def largest(Y: Array) -> float:
    """Largest modulus of an entry."""
    xp = namespace(Y)
    return float(xp.max(xp.abs(Y)))


def inner(A: Array, B: Array) -> float:
    """Σ AᵢⱼBᵢⱼ in double precision.

    Not by BLAS: its threads wait for each other, on a busy machine for milliseconds.
    """
    if isinstance(A, np.ndarray):
        A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
        return float(np.einsum("ij,ij->", A, B))
    return float(namespace(A).sum(double(A) * double(B)))


def norm(A: Array) -> float:
    """Length of `A` as one vector, in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> norm(np.array([[3.0], [4.0]]))
    5.0
    """
    return sqrt(inner(A, A))


def centered(Y: Array) -> Array:
    """`Y` about its mean, in double precision."""
    if isinstance(Y, np.ndarray):
        return np.asarray(Y - Y.mean(axis=0, dtype=np.float64))
    Y = double(Y)
    return Y - namespace(Y).mean(Y, axis=0)


def extent(Y: Array) -> float:
    """Size of a map, wherever it lies: the length of its offsets from their mean."""
    return norm(centered(Y))


def beside(A: Array, B: Array) -> Array:
    """The columns of two blocks, in one."""
    xp = namespace(A)
    join = xp.concat if hasattr(xp, "concat") else xp.concatenate
    return join([A, B], axis=1)


def copied(Y: Array) -> Array:
    """A copy of `Y`."""
    return Y.copy() if hasattr(Y, "copy") else namespace(Y).asarray(Y, copy=True)


def read_only(Y: Array) -> Array:
    """`Y` for others to look at; numpy's arrays can say that they must not be written to."""
    if not isinstance(Y, np.ndarray):
        return Y
    view = Y.view()
    view.flags.writeable = False
    return view


def equal(A: Array, B: Array) -> bool:
    """Whether two arrays of one namespace are of one shape and have the same entries."""
    return A.shape == B.shape and bool(namespace(A).all(A == B))
