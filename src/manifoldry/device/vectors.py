"""Arrays as vectors: inner products, norms, linear combinations, and points around their mean.

Functions of arrays of any namespace. Sums are in double precision. Those on a device are few
launches of kernels, and at most one copy, of the results.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from manifoldry.device.base import device_of
from manifoldry.device.primitives import MomentumRule
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


def momentum_step(
    arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
) -> tuple[Array, Array, Array]:
    """The embedding, the velocity and the gains after a step with momentum.

    `arrays` are the embedding, the direction from which it goes away, the velocity and the gains.

    Examples
    --------
    >>> import numpy as np
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> momentum_step((zero, one, one, one), MomentumRule(0.2, 0.8, 0.01, momentum=0.5, rate=1.0))
    (array([-0.3]), array([-0.3]), array([0.8]))
    """
    device = device_of(arrays[0])
    if device is not None:
        return device.momentum_step(arrays, rule)
    return with_momentum(namespace(arrays[0]), arrays, rule)


def with_momentum(
    xp: Any, arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
) -> tuple[Array, Array, Array]:
    """The same by functions of the namespace `xp`."""
    Y, Z, V, gains = arrays
    gains = xp.where(V * Z < 0, gains + rule.gain_increment, gains * rule.gain_decay)
    gains = xp.where(gains < rule.min_gain, rule.min_gain, gains)
    V = rule.momentum * V - rule.rate * gains * Z
    return Y + V, V, gains


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
