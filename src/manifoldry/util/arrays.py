"""Functions of arrays that follow the array API standard: numpy, CuPy, array_api_strict.

They let iterative methods run on a device: namespaces, changes of precision, and copies.
Sums over entries are in `device/vectors.py`.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from manifoldry.util.typing import Array


def namespace(Y: Any) -> Any:
    """The array namespace of `Y`; always numpy for numpy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    if on_cpu(Y):
        return np
    if hasattr(Y, "__array_namespace__"):
        return Y.__array_namespace__()
    return sys.modules[type(Y).__module__.partition(".")[0]]  # older versions of CuPy


def on_cpu(Y: Any) -> bool:
    """Whether `Y` is an array of numpy itself, not of a namespace that extends it."""
    return isinstance(Y, np.ndarray) and not hasattr(Y, "device_")


def as_array(Y: Any) -> Array:
    """Return `Y` unchanged if it is an array of another namespace, else as a numpy array."""
    foreign = hasattr(Y, "__array_namespace__") or hasattr(Y, "__cuda_array_interface__")
    return Y if foreign and not on_cpu(Y) else np.asarray(Y)


def to_numpy(Y: Any) -> Array:
    """Return `Y` as a numpy array; copies only from a device."""
    if on_cpu(Y):
        return Y
    return np.asarray(Y.get() if hasattr(Y, "get") else Y)


def like(X: Any, Y: Array) -> Array:
    """Convert `X` to the namespace of `Y`, keeping its precision."""
    if isinstance(X, type(Y)) and on_cpu(X) == on_cpu(Y):
        return X
    return namespace(Y).asarray(to_numpy(X))


def like_if_array(value: Any, Y: Array) -> Any:
    """Convert an array to the namespace of `Y`; other values are returned as they are."""
    return like(value, Y) if getattr(value, "ndim", 0) > 0 else value


def on_cpu_if_array(value: Any) -> Any:
    """Convert an array of any namespace to numpy; other values are returned as they are."""
    return to_numpy(value) if getattr(value, "ndim", 0) > 0 else value


def cast(Y: Any, dtype: Any) -> Array:
    """Convert `Y` to another dtype, without a copy if it has that dtype.

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
    """Convert `Y` to double precision, without a copy if possible."""
    if on_cpu(Y):
        return np.asarray(Y, dtype=np.float64)
    return cast(Y, namespace(Y).float64)


def on_host(operator: Callable[[Array], Array], G: Array) -> Array:
    """Apply an operator on numpy arrays in double precision to `G` of any namespace.

    Sparse products and factorizations run on the CPU; this is the only transfer from a device.
    """
    return cast(like(operator(double(to_numpy(G))), G), G.dtype)


def is_floating(Y: Array) -> bool:
    """Whether `Y` has a real floating-point dtype."""
    if isinstance(Y.dtype, np.dtype):
        return bool(np.issubdtype(Y.dtype, np.floating))
    return bool(namespace(Y).isdtype(Y.dtype, "real floating"))


def precision(Y: Array) -> float:
    """Machine epsilon of the dtype of `Y`."""
    return float(namespace(Y).finfo(Y.dtype).eps)


def all_finite(Y: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    xp = namespace(Y)
    return bool(xp.all(xp.isfinite(Y)))


def largest(Y: Array) -> float:
    """Largest absolute value of the entries."""
    xp = namespace(Y)
    return float(xp.max(xp.abs(Y)))


def hstack_columns(A: Array, B: Array) -> Array:
    """Concatenate the columns of two arrays."""
    xp = namespace(A)
    join = xp.concat if hasattr(xp, "concat") else xp.concatenate
    return join([A, B], axis=1)


def copied(Y: Array) -> Array:
    """A copy of `Y`."""
    return Y.copy() if hasattr(Y, "copy") else namespace(Y).asarray(Y, copy=True)


def read_only(Y: Array) -> Array:
    """A read-only view of `Y` for numpy arrays; `Y` itself for others."""
    if not on_cpu(Y):
        return Y
    view = Y.view()
    view.flags.writeable = False
    return view


def equal(A: Array, B: Array) -> bool:
    """Whether two arrays of the same namespace have equal shapes and entries."""
    return A.shape == B.shape and bool(namespace(A).all(A == B))
