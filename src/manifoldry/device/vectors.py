"""Arrays as vectors: inner products, norms, linear combinations, and points around their mean.

Functions of arrays of any namespace. Sums are in double precision. Those on a device are few
launches of kernels, and at most one copy, of the results.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from manifoldry.device.base import device_of
from manifoldry.util.arrays import cast, double, namespace, on_cpu
from manifoldry.util.typing import Array


def inner_products(*pairs: tuple[Array, Array]) -> list[float]:
    """Σ AᵢⱼBᵢⱼ of several pairs of arrays, all of one size.

    On the CPU BLAS is not used, because its threads wait for each other, for milliseconds on a busy
    machine.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[3.0], [4.0]])
    >>> inner_products((A, A), (A, 2 * A))
    [25.0, 50.0]
    """
    if not pairs:
        return []
    device = device_of(pairs[0][0])
    if device is not None:
        return [float(value) for value in device.host(device.inner_products(pairs))]
    return [_inner(double(A), double(B)) for A, B in pairs]


def _inner(A: Array, B: Array) -> float:
    if on_cpu(A):
        return float(np.einsum("ij,ij->", A, B))
    return float(namespace(A).sum(A * B))


def inner(A: Array, B: Array) -> float:
    """Σ AᵢⱼBᵢⱼ."""
    return inner_products((A, B))[0]


def norms(*arrays: Array) -> list[float]:
    """Frobenius norms of several arrays, all of one size."""
    return [sqrt(square) for square in inner_products(*((A, A) for A in arrays))]


def norm(A: Array) -> float:
    """Frobenius norm of `A`.

    Examples
    --------
    >>> import numpy as np
    >>> norm(np.array([[3.0], [4.0]]))
    5.0
    """
    return norms(A)[0]


def combination(factors: Sequence[float], arrays: Sequence[Array]) -> Array:
    """Σ cₜ·Aₜ of arrays of one shape.

    Examples
    --------
    >>> import numpy as np
    >>> combination([1.0, -2.0], [np.ones(2), np.array([0.0, 1.0])])
    array([ 1., -1.])
    """
    device = device_of(arrays[0])
    if device is not None:
        dtype = np.result_type(*arrays)
        return device.combination(factors, [cast(array, dtype) for array in arrays])
    total = float(factors[0]) * arrays[0]
    for factor, array in zip(factors[1:], arrays[1:], strict=True):
        total = total + float(factor) * array
    return total


def centered(Y: Array, dtype: Any = np.float64) -> Array:
    """Points minus their mean, which is computed in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> centered(np.array([[1.0], [2.0]]))
    array([[-0.5],
           [ 0.5]])
    """
    device = device_of(Y)
    if device is not None:
        return device.centered(Y, dtype)
    if on_cpu(Y):
        return np.asarray(Y - Y.mean(axis=0, dtype=np.float64)).astype(dtype, copy=False)
    xp, Y = namespace(Y), double(Y)
    return cast(Y - xp.mean(Y, axis=0), getattr(xp, np.dtype(dtype).name))
