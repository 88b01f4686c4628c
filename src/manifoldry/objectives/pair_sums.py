"""Sums over pairs of points on a map: the one interface through which objectives ask for them.

Another implementation, approximate or on another device, is a subclass of :class:`PairSums` that is
passed to an objective; nothing above it changes. :class:`~manifoldry.objectives.Exact` is the one
that there is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


class Sums(NamedTuple):
    """Of every point: sums over the others."""

    kernel_sums: Array
    """Σⱼ aᵢⱼ·κ(dᵢⱼ²), (n,), in double precision."""
    force: Array
    """Σⱼ aᵢⱼ·κφ′(dᵢⱼ²)·(yᵢ − yⱼ), (n, d): minus half the mass's gradient."""


class Attraction(NamedTuple):
    """What attraction Σ Wᵢⱼ·φ(dᵢⱼ²) does to a map; all in double precision."""

    value: float
    force: Array
    """A quarter of the gradient, Σⱼ Wᵢⱼ·φ′·(yᵢ − yⱼ), (n, d)."""
    degree: Array
    """Weight with which every point is pulled, Σⱼ Wᵢⱼ·φ′: a quarter of its curvature, (n,)."""


class LogSums(NamedTuple):
    """S = Σⱼ aⱼ·κ(‖z − yⱼ‖²) at places z that are no points of the map."""

    log_sum: Array
    """log S, (n_places,): S itself may underflow."""
    gradient: Array
    """∇S/S, (n_places, d)."""
    hessian: Array
    """∇²S/S, (n_places, d, d)."""


class PairSums(ABC):
    """Sums of a kernel κ = exp(−φ) over the pairs of a map `Y`, (n, d), a point not with itself.

    The weights aᵢⱼ of the pairs are one by default; a vector (n,) for weights aⱼ; a dense symmetric
    matrix; or a sparse one, whose other pairs do not count. Results have the type of `Y`.
    """

    @abstractmethod
    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        """Masses and forces."""

    @abstractmethod
    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        """Σⱼ aᵢⱼ·max(κ″, 0)·(yᵢ − yⱼ)², coordinate by coordinate, (n, d)."""

    @abstractmethod
    def attraction(self, kernel: Kernel, W: sparse.csr_array) -> Callable[[Array], Attraction]:
        """Attraction with weights `W`, as a function of the map; prepared for many calls."""

    @abstractmethod
    def at_positions(
        self, kernel: Kernel, Z: Array, Y: Array, nearest: Array, weights: Array | None = None
    ) -> LogSums:
        """Sums over the map `Y` at the places `Z`, each independent of the other places.

        `nearest`, (n_places,), are the squared distances to the nearest point of the map, and
        `weights`, (n_places, n), the weights a; one by default.
        """

    def log_kernel_sums(self, kernel: Kernel, Y: Array, rows: IntArray) -> Array:
        """Log Σⱼ κ of the points `rows`, so far from all others that the sum itself underflows."""
        log_kernel_sums = np.empty(len(rows))
        for block in row_blocks(len(rows), 4 * Y.size):
            logs, _ = _log_terms(kernel, Y, rows[block])
            log_kernel_sums[block] = logsumexp(logs, axis=1)
        return log_kernel_sums

    def underflowed_force(
        self, kernel: Kernel, Y: Array, rows: IntArray, log_rates: Array
    ) -> Array:
        """Σ rᵢ·κφ′·(yᵢ − yⱼ) over pairs (i, j) with i in `rows`, for both ends, (n, d).

        Rates r are given as logarithms, since they overflow where masses underflow.
        """
        force = np.zeros(Y.shape)
        for block in row_blocks(len(rows), 4 * Y.size):
            some = rows[block]
            logs, D = _log_terms(kernel, Y, some)
            K = np.exp(logs + log_rates[some, None]) * kernel.derivative(D)
            np.add.at(force, some, K.sum(axis=1)[:, None] * Y[some] - K @ Y)
            force += K.sum(axis=0)[:, None] * Y - K.T @ Y[some]
        return force

    def underflowed_moments(
        self, kernel: Kernel, Y: Array, rows: IntArray, log_rates: Array
    ) -> Array:
        """Σ rᵢ·max(κ″, 0)·(yᵢ − yⱼ)² over pairs with i in `rows`, for both ends, (n, d)."""
        moments = np.zeros(Y.shape)
        for block in row_blocks(len(rows), 4 * Y.size):
            some = rows[block]
            logs, D = _log_terms(kernel, Y, some)
            K = np.exp(logs + log_rates[some, None]) * kernel.curvature(D)
            terms = K[:, :, None] * _squares(Y, some)
            np.add.at(moments, some, terms.sum(axis=1))
            moments += terms.sum(axis=0)
        return moments


def _squares(Y: Array, rows: IntArray) -> Array:
    return (Y[rows, None].astype(np.float64) - Y) ** 2


def _log_terms(kernel: Kernel, Y: Array, rows: IntArray) -> tuple[Array, Array]:
    """Log κ of the points `rows` with all, (n_rows, n), −∞ with themselves; and D, one there."""
    D = _squares(Y, rows).sum(axis=2)
    itself = np.arange(len(rows)), rows
    D[itself] = 1.0  # where every kernel is finite
    logs = -kernel.phi(D)
    logs[itself] = -np.inf
    return logs, D


def position_sums(
    kernel: Kernel, Z: Array, Y: Array, nearest: Array, weights: Array | None, columns: int
) -> LogSums:
    """See :meth:`PairSums.at_positions`; `columns` points of the map are worked on at a time."""
    # The largest κ counts as one, so that not all of them underflow.
    smallest = kernel.phi(nearest)[:, None]
    parts = []
    for start in range(0, len(Y), columns):
        block = slice(start, start + columns)
        a = None if weights is None else weights[:, block]
        parts.append(_part(kernel, Z, Y[block], smallest, a))
    S, dS, ddS = (sum(part) for part in zip(*parts, strict=True))
    scale = np.where(S > 0, S, 1.0)  # no charge may count
    with np.errstate(divide="ignore"):
        log_sum = np.log(S) - smallest[:, 0]
    return LogSums(log_sum, dS / scale[:, None], ddS / scale[:, None, None])


def _part(
    kernel: Kernel, Z: Array, Y: Array, smallest: Array, weights: Array | None
) -> tuple[Array, Array, Array]:
    """What some points of the map contribute to S, ∇S and ∇²S."""
    steps = [z[:, None] - y for z, y in zip(Z.T, Y.T, strict=True)]
    D = squared_lengths(steps)
    derivative, second_derivative = kernel.derivative(D), kernel.second_derivative(D)
    K = np.exp(smallest - kernel.phi(D))
    if weights is not None:
        K *= weights
    Q = K * derivative
    dS = -2 * np.stack([dot(Q, step) for step in steps], axis=1)
    ddS = second_moments(K * (4 * (derivative * derivative - second_derivative)), steps)
    return K.sum(axis=1), dS, ddS - isotropic(2 * Q.sum(axis=1), len(steps))


def dot(A: Array, B: Array) -> Array:
    """Σⱼ AᵢⱼBᵢⱼ."""
    return np.asarray(np.einsum("ij,ij->i", A, B))


def squared_lengths(steps: list[Array]) -> Array:
    """Squared lengths of steps, given coordinate by coordinate."""
    D = steps[0] * steps[0]
    for step in steps[1:]:
        D += step * step
    return D


def second_moments(W: Array, steps: list[Array]) -> Array:
    """Σⱼ Wᵢⱼ·δᵢⱼδᵢⱼᵀ, (n, d, d)."""
    d = len(steps)
    M = np.empty((len(W), d, d))
    for i in range(d):
        weighted = W * steps[i]
        for j in range(i, d):
            M[:, i, j] = M[:, j, i] = dot(weighted, steps[j])
    return M


def isotropic(a: Array, d: int) -> Array:
    """Multiples aᵢ of the identity, (n, d, d)."""
    return np.asarray(a[:, None, None] * np.eye(d))
