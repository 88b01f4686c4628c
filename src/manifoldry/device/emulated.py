"""A device that only exists in the imagination of numpy.

It tests on any machine what is built on the primitives: which arrays are where, what is copied, and
whether results are those of the CPU. Like CuPy it refuses to mix its arrays with those of numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from manifoldry.device.base import Device
from manifoldry.device.emulated_mesh import emulated_gather, emulated_spread
from manifoldry.device.primitives import DeviceMatrix, KernelShape, MomentumRule, Nodes
from manifoldry.device.vectors import with_momentum
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks


class EmulatedArray(np.ndarray):
    """An array that only functions of numpy without other arrays of numpy accept."""

    def get(self) -> Array:
        """Return it as an array of the host."""
        _count("to host", self)
        return np.array(self.view(np.ndarray))

    def tolist(self) -> Any:
        """Return it as nested lists of the host."""
        return self.get().tolist()

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        assert self.device_ is not None
        return self.device_.xp

    def __getitem__(self, key: Any) -> Any:
        _check(*_flat(key if isinstance(key, tuple) else (key,)))
        return self._wrapped(super().__getitem__(_plain(key)))

    def __dlpack_device__(self) -> Any:
        return 12, 0  # an extension, so that nobody takes it for memory of the host

    def __array_finalize__(self, source: Any) -> None:
        self.device_: Device | None = getattr(source, "device_", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.get("out", ())
        _check(*inputs, *out)
        if out:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return out[0] if out else self._wrapped(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _check(*_flat(args), *_flat(tuple(kwargs.values())))
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return self._wrapped(function(*map(_plain, args), **plain))

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, tuple) and type(result) is not tuple:  # of numpy.linalg
            return type(result)(*map(self._wrapped, result))
        if isinstance(result, tuple | list):
            return type(result)(map(self._wrapped, result))
        if isinstance(result, np.ndarray | np.generic):
            wrapped = np.asarray(result).view(EmulatedArray)
            wrapped.device_ = self.device_
            return wrapped
        return result


COPIES: Counter[str] = Counter()
"""Numbers of copies of arrays that are no scalars, "to host" and "to device"."""

LONG_COPIES: Counter[tuple[str, tuple[int, ...]]] = Counter()
"""Numbers of those of more than 64 entries, by direction and shape."""


def _count(direction: str, array: Array) -> None:
    COPIES[direction] += array.size > 1
    if array.size > 64:
        LONG_COPIES[direction, array.shape] += 1


def _plain(value: Any) -> Any:
    if isinstance(value, EmulatedArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value


def _flat(values: Any) -> list[Any]:
    nested = [_flat(v) if isinstance(v, tuple | list) else [v] for v in values]
    return [value for part in nested for value in part]


def _check(*values: Any) -> None:
    if any(type(value) is np.ndarray and value.ndim > 0 for value in values):
        raise TypeError("an array of numpy is used with one of a device; copy it with device.array")


class _Namespace:
    """numpy, except that new arrays are on the device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.linalg = np.linalg
        self.fft = np.fft
        self.ndarray = EmulatedArray

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if isinstance(value, type) or not callable(value) or isinstance(value, np.ufunc):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in ("array", "asarray", "ascontiguousarray"):  # which copy to the device
                if type(args[0]) is np.ndarray:
                    _count("to device", args[0])
            else:
                _check(*_flat(args), *_flat(tuple(kwargs.values())))
            result = value(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
            return self._on_device(result)

        return call

    def _on_device(self, result: Any) -> Any:
        if isinstance(result, tuple | list):
            return type(result)(map(self._on_device, result))
        if not isinstance(result, np.ndarray):
            return result
        wrapped = result.view(EmulatedArray)
        wrapped.device_ = self._device
        return wrapped


class EmulatedDevice(Device):
    """The primitives in numpy, on arrays that behave like those of a GPU.

    Parameters
    ----------
    free_memory : int, default=2**34
        Bytes that it claims to have.

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.device.emulated import EmulatedDevice
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> model = LaplacianEigenmaps(device=EmulatedDevice()).fit(X)
    >>> model.neighbor_search_
    'all pairs on emulated'
    """

    name = "emulated"

    def __init__(self, free_memory: int = 2**34) -> None:
        self.memory = free_memory
        self.xp = _Namespace(self)

    def __repr__(self) -> str:
        return "EmulatedDevice()"

    def __reduce__(self) -> Any:
        return EmulatedDevice, (self.memory,)

    @property
    def free_memory(self) -> int:
        return self.memory

    def owns(self, array: Any) -> bool:
        return isinstance(array, EmulatedArray) and array.device_ is self

    def _upload(self, host: Array) -> Array:
        _count("to device", host)
        return self._own(np.array(host))

    def _own(self, array: Any) -> Any:
        own = np.asarray(array).view(EmulatedArray)
        own.device_ = self
        return own

    def nearest(
        self, X: Array, Y: Array, k: int, own: Array | None, accurate: bool
    ) -> tuple[Array, Array]:
        X, Y = _plain(X), _plain(Y)
        if not accurate:
            X, Y = _rounded(X), _rounded(Y)
        D = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * (X @ Y.T)
        if own is not None:
            known = np.flatnonzero(_plain(own) >= 0)
            D[known, _plain(own)[known]] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, :k].astype(np.int32)
        return self._own(order), self._own(np.take_along_axis(D, order, axis=1))

    def merge_nearest(
        self, X: Array, Y: Array, first: int, rows: Array, found: tuple[Array, Array]
    ) -> None:
        X, Y, rows, (ids, best) = _rounded(_plain(X)), _rounded(_plain(Y)), _plain(rows), found
        D = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * (X @ Y.T)
        numbers = np.broadcast_to(np.arange(first, first + len(Y), dtype=np.int32), D.shape)
        D = np.where(numbers == rows[:, None], np.inf, D)
        all_ids, all_squares = (
            np.concatenate([_plain(old)[rows], new], axis=1)
            for old, new in ((ids, numbers), (best, D))
        )
        order = np.lexsort((all_ids, all_squares), axis=1)[:, : best.shape[1]]
        for old, new in ((ids, all_ids), (best, all_squares)):
            _plain(old)[rows] = np.take_along_axis(new, order, axis=1)

    def distances(self, X: Array, Y: Array, indices: Array, rows: Array | None = None) -> Array:
        X, Y, columns = _plain(X), _plain(Y), _plain(indices).ravel()
        own = np.repeat(np.arange(len(X)), indices.shape[-1]) if rows is None else _plain(rows)
        out = np.empty(len(columns))
        for block in row_blocks(len(columns), X.shape[1]):
            steps = X[own[block]].astype(float) - Y[columns[block]]
            out[block] = np.sqrt(np.einsum("ij,ij->i", steps, steps))
        return self._own(out.reshape(indices.shape))

    def sort_rows(self, indices: Array, values: Array) -> tuple[Array, Array]:
        indices, values = _plain(indices), _plain(values)
        order = np.lexsort((indices, values), axis=1)
        sorted_indices = np.take_along_axis(indices, order, axis=1)
        return self._own(sorted_indices), self._own(np.take_along_axis(values, order, axis=1))

    def smallest(self, table: Array, k: int) -> Array:
        order = np.argsort(_plain(table), axis=1, kind="stable")
        return self._own(order[:, :k].astype(np.int32))

    def ranks(self, table: Array, columns: Array) -> Array:
        order = np.argsort(_plain(table), axis=1, kind="stable")
        ranks = np.argsort(order, axis=1) + 1
        return self._own(np.take_along_axis(ranks, _plain(columns), axis=1).astype(np.int32))

    def log_precisions(self, t: Array, perplexity: float) -> Array:
        t, rank = _plain(t), int(np.ceil(perplexity)) - 1
        low, high = -40 - np.log(t[:, -1]), 10 - np.log(t[:, rank])
        for _ in range(100):
            middle = (low + high) / 2
            above = _entropy(middle, t) > np.log(perplexity)
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return self._own((low + high) / 2)

    def eigh(self, A: Array) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(_plain(A))
        return self._own(values), self._own(vectors)

    def left_vectors(self, A: Array) -> tuple[Array, Array]:
        vectors, values, _ = np.linalg.svd(_plain(A), full_matrices=False)
        return self._own(vectors), self._own(values)

    def pair_sums(
        self, Y: Array, weights: Any, shape: KernelShape, order: int
    ) -> tuple[Array, Array]:
        Y, weights = _plain(Y), _plain(weights)
        if isinstance(weights, tuple):
            weights = np.maximum(weights[0] @ weights[1].T, 0)
        sums, moments = np.empty(len(Y)), np.empty(Y.shape)
        for rows in row_blocks(len(Y), Y.size):
            steps = Y[rows, None].astype(float) - Y  # (n_rows, n, d)
            base, K = _kernel((steps**2).sum(axis=2), shape)
            if weights is not None:
                K = K * (weights[rows] if weights.ndim == 2 else weights)
            K[np.arange(len(K)), np.arange(len(Y))[rows]] = 0
            sums[rows] = K.sum(axis=1)
            moments[rows] = np.einsum("ij,ijc->ic", K / base**order, steps**order)
        return self._own(sums), self._own(moments.astype(Y.dtype))

    def corners(self, Y: Array) -> Array:
        Y = _plain(Y).astype(float)
        return np.stack([Y.min(axis=0), Y.max(axis=0)])

    def spread(self, Y: Array, charges: Array | None, nodes: Nodes) -> Array:
        return self._own(emulated_spread(_plain(Y), _plain(charges), nodes))

    def gather(
        self,
        Y: Array,
        potential: Array,
        near: Array,
        nodes: Nodes,
        left: Array | None,
        right: Array | None,
        slopes: bool,
    ) -> tuple[Array, Array]:
        Y, potential, near, left, right = map(_plain, (Y, potential, near, left, right))
        values, gradients = emulated_gather(Y, potential, near, nodes, left, right, slopes)
        return self._own(values), self._own(gradients)

    def position_sums(
        self, Z: Array, Y: Array, least: Array, weights: Array | None, shape: KernelShape
    ) -> tuple[Array, Array, Array]:
        Z, Y, least, weights = map(_plain, (Z, Y, least, weights))
        steps = Z[:, None] - Y
        base, K = _kernel((steps**2).sum(axis=2), shape)
        K = (K if weights is None else K * weights) * np.exp(least)[:, None]
        rate, power = shape.rate or 1.0, shape.power or 1.0
        first = rate * power * K / base  # −dκ/dD
        second = first * (1.0 if shape.power is None else rate * (power + 1) / base)
        gradient = -2 * np.einsum("ij,ijc->ic", first, steps)
        hessian = 4 * np.einsum("ij,ijc,ije->ice", second, steps, steps)
        hessian -= 2 * first.sum(axis=1)[:, None, None] * np.eye(Z.shape[1])
        return tuple(map(self._own, (K.sum(axis=1), gradient, hessian)))

    def squared_distances(self, X: Array, Y: Array) -> Array:
        from scipy.spatial.distance import cdist

        return self._own(cdist(_plain(X), _plain(Y), "sqeuclidean"))

    def nearest_squares(self, X: Array, Y: Array) -> Array:
        return self.squared_distances(X, Y).min(axis=1)

    def edge_sums(self, Y: Array, W: DeviceMatrix, rate: float) -> tuple[Any, Array, Array]:
        indptr, indices, data = map(_plain, W[:3])
        Y, n = _plain(Y), W.n_rows
        rows = np.repeat(np.arange(n), np.diff(indptr))
        steps = Y[rows].astype(float) - Y[indices]
        base = 1 + rate * (steps**2).sum(axis=1)
        force, degree = np.zeros(Y.shape), np.zeros(n)
        np.add.at(force, rows, (data / base)[:, None] * steps)
        np.add.at(degree, rows, data / base)
        total = float((data * np.log(base)).sum())
        return total, self._own(force.astype(Y.dtype)), self._own(degree.astype(Y.dtype))

    def product(self, A: DeviceMatrix, X: Array) -> Array:
        from scipy import sparse

        parts = _plain(A.data), _plain(A.indices), _plain(A.indptr)
        matrix = sparse.csr_array(parts, shape=(A.n_rows, A.n_columns))
        return self._own((matrix @ _plain(X)).astype(X.dtype))

    def min_plus(self, A: DeviceMatrix, X: Array) -> Array:
        indptr, indices, data, X = map(_plain, (A.indptr, A.indices, A.data, X))
        out = np.full((A.n_rows, X.shape[1]), np.inf, dtype=X.dtype)
        for i in np.flatnonzero(np.diff(indptr)):
            row = slice(indptr[i], indptr[i + 1])
            out[i] = (data[row, None] + X[indices[row]]).min(axis=0)
        return self._own(out)

    def inner_products(self, pairs: Sequence[tuple[Array, Array]]) -> Array:
        plain = [[_plain(part).astype(float) for part in pair] for pair in pairs]
        return self._own(np.array([np.sum(a * b) for a, b in plain]))

    def combination(self, factors: Sequence[float], arrays: Sequence[Array]) -> Array:
        terms = [factor * _plain(array) for factor, array in zip(factors, arrays, strict=True)]
        return self._own(np.sum(terms, axis=0, dtype=float).astype(arrays[0].dtype))

    def centered(self, Y: Array, dtype: Any) -> Array:
        Y = _plain(Y).astype(float)
        return self._own((Y - Y.mean(axis=0)).astype(dtype))

    def momentum_step(
        self, arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
    ) -> tuple[Array, Array, Array]:
        Y, V, gains = with_momentum(np, _plain(arrays), rule)
        return self._own(Y), self._own(V), self._own(gains)

    def chebyshev_step(
        self,
        W: DeviceMatrix,
        diagonals: tuple[Array, Array],
        factors: tuple[float, float],
        state: tuple[Array, Array, Array],
    ) -> Array:
        (diagonal, inverse), (step, R, X) = diagonals, state
        R -= diagonal * step - self.product(W, step)
        new = factors[0] * step + factors[1] * inverse * R
        X += new
        return new

    def cholesky(self, G: Array) -> Array:
        return self._own(np.linalg.cholesky(_plain(G)).T)

    def solve_triangular(self, R: Array, B: Array, *, transposed: bool = False) -> Array:
        from scipy.linalg import solve_triangular

        return self._own(solve_triangular(_plain(R), _plain(B), trans=int(transposed)))


def _entropy(alpha: Array, t: Array) -> Array:
    """Entropy of the weights exp(−eᵅ·t) of each row, divided by their sum."""
    with np.errstate(over="ignore"):
        exponents = np.minimum(np.exp(alpha)[:, None] * t, 800)  # beyond, weights are zero
    weights = np.exp(-exponents)
    totals = weights.sum(axis=1)
    return np.log(totals) + (weights * exponents).sum(axis=1) / totals


def _kernel(D: Array, shape: KernelShape) -> tuple[Array | float, Array]:
    """The base b, one for the Gaussian, and κ."""
    if shape.rate is None:
        return 1.0, np.exp(-D)
    base = 1 + shape.rate * D
    return base, base ** -(shape.power or 1.0)


def _rounded(X: Array, bits: int = 11) -> Array:
    """Single precision with fewer bits, as in products of tensor cores."""
    mantissa, exponent = np.frexp(X)
    return np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent).astype(X.dtype)
