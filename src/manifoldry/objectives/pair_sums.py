"""Interface of the sums over pairs of embedded points that objectives need.

:class:`~manifoldry.objectives.Exact` computes them. Another implementation, approximate or on
another device, is a subclass of :class:`PairSums` that is passed to an objective.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from manifoldry.device import device_of
from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

if TYPE_CHECKING:
    from manifoldry.objectives.position_sums import PositionSums


class Sums(NamedTuple):
    """Sums over all other points, for every point."""

    kernel_sums: Array
    """Σⱼ aᵢⱼ·κ(dᵢⱼ²), (n,), in double precision."""
    force: Array
    """Σⱼ aᵢⱼ·κφ′(dᵢⱼ²)·(yᵢ − yⱼ), (n, d): −½ times the gradient of the kernel sum."""
    resolution: float = 0.0
    """Kernel sums below this value are inaccurate; zero if all are exact up to rounding."""


class Attraction(NamedTuple):
    """The attraction Σ Wᵢⱼ·φ(dᵢⱼ²) and its derivatives, in double precision."""

    value: float
    force: Array
    """Σⱼ Wᵢⱼ·φ′·(yᵢ − yⱼ), a quarter of the gradient, (n, d)."""
    degree: Array
    """Σⱼ Wᵢⱼ·φ′, a quarter of the diagonal of the Hessian without its φ″ terms, (n,)."""


class LogSums(NamedTuple):
    """S = Σⱼ aⱼ·κ(‖z − yⱼ‖²) at positions z, with derivatives."""

    log_sum: Array
    """log S, (n_positions,); S itself may underflow."""
    gradient: Array
    """∇S/S, (n_positions, d)."""
    hessian: Array
    """∇²S/S, (n_positions, d, d)."""

    def take(self, positions: slice) -> "LogSums":
        """Return the sums at some of the positions."""
        return LogSums(*(part[positions] for part in self))


class PairSums(ABC):
    """Base class of sums of a kernel κ = exp(−φ) over all pairs of different points of `Y`, (n, d).

    The weights aᵢⱼ are None for all one, a vector (n,) for weights aⱼ, a dense symmetric matrix,
    or a sparse one. Results have the dtype of `Y`.

    See Also
    --------
    Fastest : the default, which chooses among the others.
    Exact, FFTInterpolation, CellSums : exact and approximate sums.
    Pairwise : takes one as ``pair_sums``.

    Examples
    --------
    An objective says how it computes sums over pairs:

    >>> import numpy as np
    >>> from manifoldry.objectives import tsne
    >>> objective = tsne(np.array([[0, 0.5], [0.5, 0]]))
    >>> objective.pairs_reason(np.array([[0.0], [1.0]]))
    'exact: at most exact_up_to=2000 points'
    """

    @abstractmethod
    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        """Return the kernel sums and forces of every point.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            The points.
        weights : array or sparse array, default=None
            The weights a.

        Returns
        -------
        Sums
            The sums Σⱼ aᵢⱼ·κ and the forces Σⱼ aᵢⱼ·κφ′·(yᵢ − yⱼ).
        """

    @abstractmethod
    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        """Return Σⱼ aᵢⱼ·max(κ″, 0)·(yᵢ − yⱼ)² for every coordinate.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            The points.
        weights : array or sparse array, default=None
            The weights a.

        Returns
        -------
        array of shape (n, d)
            The moments.
        """

    @abstractmethod
    def attraction(self, kernel: Kernel, W: sparse.csr_array) -> Callable[[Array], Attraction]:
        """Return the attraction with weights `W` as a function of the embedding.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ; the attraction is Σ Wᵢⱼ·φ.
        W : sparse array of shape (n, n)
            The weights.

        Returns
        -------
        callable
            Returns the value and the derivatives at an embedding.
        """

    @abstractmethod
    def at_positions(
        self, kernel: Kernel, Y: Array, factors: Array | None = None
    ) -> "PositionSums":
        """Return the sums over the points as a function of the position.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            The points.
        factors : array of shape (n, n_factors), default=None
            Factors of the points, if the weights of new points are factored.

        Returns
        -------
        PositionSums
            Its method ``at`` computes the sums.
        """

    def reason(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> str:
        """Return how the sums over the pairs are computed, and why.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            The points.
        weights : array or sparse array, default=None
            The weights a.

        Returns
        -------
        str
            The reason, in words.
        """
        return f"{type(self).__name__}, as requested"

    def without_cache(self) -> Self:
        """Return a copy without large arrays that can be recomputed.

        Returns
        -------
        PairSums
            The copy.
        """
        return self

    def log_kernel_sums(self, kernel: Kernel, Y: Array, rows: IntArray) -> Array:
        """Return log Σⱼ κ of points for which the sum itself underflows.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            All points.
        rows : array of int
            The points whose sums are computed.

        Returns
        -------
        array of shape (n_rows,)
            Logarithms of the sums.
        """
        device = device_of(Y)
        if device is not None:  # rare: the embedding has just been scaled far up
            return device.array(self.log_kernel_sums(kernel, device.host(Y), device.host(rows)))
        log_kernel_sums = np.empty(len(rows))
        for block in row_blocks(len(rows), 4 * Y.size):
            logs, _ = _log_terms(kernel, Y, rows[block])
            log_kernel_sums[block] = logsumexp(logs, axis=1)
        return log_kernel_sums

    def underflowed_force(
        self, kernel: Kernel, Y: Array, rows: IntArray, log_rates: Array
    ) -> Array:
        """Return the forces rᵢ·κφ′·(yᵢ − yⱼ) of the pairs (i, j) with i in `rows`, on both points.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            All points.
        rows : array of int
            The points i.
        log_rates : array of shape (n_rows,)
            Logarithms of the rates r, which overflow where kernel sums underflow.

        Returns
        -------
        array of shape (n, d)
            The forces.
        """
        device = device_of(Y)
        if device is not None:
            parts = map(device.host, (Y, rows, log_rates))
            return device.array(self.underflowed_force(kernel, *parts))
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
        """Return the moments rᵢ·max(κ″, 0)·(yᵢ − yⱼ)² of the pairs with i in `rows`, of both.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        Y : array of shape (n, d)
            All points.
        rows : array of int
            The points i.
        log_rates : array of shape (n_rows,)
            Logarithms of the rates r.

        Returns
        -------
        array of shape (n, d)
            The moments.
        """
        device = device_of(Y)
        if device is not None:
            parts = map(device.host, (Y, rows, log_rates))
            return device.array(self.underflowed_moments(kernel, *parts))
        moments = np.zeros(Y.shape)
        for block in row_blocks(len(rows), 4 * Y.size):
            some = rows[block]
            logs, D = _log_terms(kernel, Y, some)
            K = np.exp(logs + log_rates[some, None]) * kernel.curvature(D)
            terms = K[:, :, None] * _squares(Y, some)
            np.add.at(moments, some, terms.sum(axis=1))
            moments += terms.sum(axis=0)
        return moments


def is_matrix(weights: Matrix | None) -> bool:
    """Whether there is a weight for every pair of points."""
    return weights is not None and (sparse.issparse(weights) or np.ndim(weights) == 2)


def _squares(Y: Array, rows: IntArray) -> Array:
    return (Y[rows, None].astype(np.float64) - Y) ** 2


def _log_terms(kernel: Kernel, Y: Array, rows: IntArray) -> tuple[Array, Array]:
    """Log κ and squared distances of the points `rows` to all, (n_rows, n).

    A point has log κ = −∞ and D = 1 with itself.
    """
    D = _squares(Y, rows).sum(axis=2)
    itself = np.arange(len(rows)), rows
    D[itself] = 1.0  # a value at which every kernel is finite
    logs = -kernel.phi(D)
    logs[itself] = -np.inf
    return logs, D


def position_sums(
    kernel: Kernel, Z: Array, Y: Array, nearest: Array, weights: Array | None, columns: int
) -> LogSums:
    """Sums at the positions `Z` by numpy, for any kernel; `columns` is the number per block.

    `nearest`, (n_positions,), are the squared distances to the nearest point of `Y`; `weights`,
    (n_positions, n), are the weights a, by default one.
    """
    # Kernels are divided by the largest one, so that not all of them underflow.
    smallest = kernel.phi(nearest)[:, None]
    parts = []
    for start in range(0, len(Y), columns):
        block = slice(start, start + columns)
        a = None if weights is None else weights[:, block]
        parts.append(_part(kernel, Z, Y[block], smallest, a))
    S, dS, ddS = (sum(part) for part in zip(*parts, strict=True))
    return log_sums(S, dS, ddS, smallest[:, 0])


def log_sums(S: Array, dS: Array, ddS: Array, smallest: Array) -> LogSums:
    """From sums and derivatives with kernels multiplied by the exponentials of `smallest`."""
    scale = np.where(S > 0, S, 1.0)  # S = 0 if all weights are zero
    with np.errstate(divide="ignore"):
        log_sum = np.log(S) - smallest
    return LogSums(log_sum, dS / scale[:, None], ddS / scale[:, None, None])


def _part(
    kernel: Kernel, Z: Array, Y: Array, smallest: Array, weights: Array | None
) -> tuple[Array, Array, Array]:
    """Contributions of the points `Y` to S, ∇S and ∇²S."""
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
    return np.einsum("ij,ij->i", A, B)


def squared_lengths(steps: list[Array]) -> Array:
    """Squared lengths of vectors, given as a list of coordinates."""
    D = steps[0] * steps[0]
    for step in steps[1:]:
        D += step * step
    return D


def second_moments(W: Array, steps: list[Array]) -> Array:
    """Σⱼ Wᵢⱼ·δᵢⱼδᵢⱼᵀ, (n, d, d)."""
    d = len(steps)
    M = namespace(W).empty((len(W), d, d))
    for i in range(d):
        weighted = W * steps[i]
        for j in range(i, d):
            M[:, i, j] = M[:, j, i] = dot(weighted, steps[j])
    return M


def isotropic(a: Array, d: int) -> Array:
    """Multiples aᵢ of the identity, (n, d, d)."""
    return a[:, None, None] * namespace(a).eye(d)
