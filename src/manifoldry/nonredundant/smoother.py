"""Functions that span the row space of a kernel smoother.

A kernel smoother on given coordinates is an n × n matrix P of numerically low rank (Blau & Michaeli
2017). Its right singular vectors are those of the matrix itself or of a low-rank approximation
whose error is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from scipy import sparse

from manifoldry.device import Device, current_device, device_of
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.nonredundant.dense import triangular_solution
from manifoldry.nonredundant.factor import KernelFactor, gaussian_kernel, kernel_factor
from manifoldry.nonredundant.sample import PointSample, sampled_points
from manifoldry.nonredundant.singular import (
    leading_of_gram,
    leading_of_sparse,
    singular_coefficients,
)
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.checks import check_count, check_nonnegative, check_option
from manifoldry.util.memory import available_memory
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_matrix, row_blocks

LocalFit = Literal["nadaraya_watson", "local_linear"]
LOCAL_FITS = ("nadaraya_watson", "local_linear")
POINT_WEIGHTS = ("mass", "uniform")
# Singular values below this fraction of the largest are ignored (Blau & Michaeli 2017).
CUTOFF = 0.03


@dataclass(frozen=True)
class KernelSmoother:
    """A kernel smoother, and how accurately the functions that it predicts are computed.

    Parameters
    ----------
    local_fit : {"nadaraya_watson", "local_linear"}, default="nadaraya_watson"
        Local means (Nadaraya–Watson) or local linear fits.
    point_weights : {"mass", "uniform"}, default="mass"
        Weight of each point: its mass in the eigenproblem (for Laplacian eigenmaps the degree), or
        the same for all, as published. These differ only for problems with a mass.
    n_neighbors : int, default=None
        Number of nearest points, by the earlier coordinates, to which each row of the smoother is
        restricted (points as far as the last one are included). None means all points. The
        publication used as many as fit into memory.
    tol : float, default=None
        Accuracy for more than 500 points: the n × n matrix, whose largest eigenvalue is 1, is
        replaced by one of low rank, and what that leaves out has no eigenvalue above `tol`
        (estimated from a random sample). None means 1e-8 for up to `exact_up_to` points and beyond
        that 0.03, the cutoff of the singular values (0.045 if that takes more than 500 columns, as
        it does from the sixth coordinate of digits on), or 0.003 for local linear fits. 0 means
        that the matrix itself is used for any number of points.
    max_columns : int, default=5000
        Maximum number of columns of the low-rank factor for more than `exact_up_to` points. If it
        does not reach `tol`, a warning states what is left out.
    exact_up_to : int, default=4000
        Number of points up to which the matrix itself is used if n/2 columns do not reach `tol`.
    sample_size : int, default=None
        Number of points from which the low-rank matrix is computed; the functions that it predicts
        are then evaluated at all points. Isolated points are preferred, and each sampled point
        counts for those that it represents. None means all points if `tol` is given or there are
        at most `exact_up_to` points, and beyond that 40 times the trace of the smoother, at least
        4000: about 5500 from ten coordinates of 15 000 digits. At least 100: points are drawn
        independently of each other, and of few wanted ones none may be drawn.

    See Also
    --------
    manifoldry.NonRedundant : takes it as ``smoother``.

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps, NonRedundant
    >>> from manifoldry.nonredundant import KernelSmoother
    >>> published = KernelSmoother(point_weights="uniform", tol=0)
    >>> model = NonRedundant(LaplacianEigenmaps(), criterion="prediction", smoother=published)
    """

    local_fit: LocalFit = "nadaraya_watson"
    point_weights: Literal["mass", "uniform"] = "mass"
    n_neighbors: int | None = None
    tol: float | None = None
    max_columns: int = 5000
    exact_up_to: int = 4000
    sample_size: int | None = None

    def __post_init__(self) -> None:
        check_option("local_fit", self.local_fit, LOCAL_FITS)
        check_option("point_weights", self.point_weights, POINT_WEIGHTS)
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors, 2)
        if self.tol is not None:
            check_nonnegative("tol", self.tol)
        check_count("max_columns", self.max_columns, 2)
        check_count("exact_up_to", self.exact_up_to, 0)
        if self.sample_size is not None:
            check_count("sample_size", self.sample_size, 100)

    def weights(self, mass: Array) -> Array:
        """Return the weight of each point.

        Parameters
        ----------
        mass : array of shape (n,)
            Masses of the points in the eigenproblem.

        Returns
        -------
        array of shape (n,)
            The masses, or equal weights.
        """
        return mass if self.point_weights == "mass" else namespace(mass).ones(len(mass))

    def sample(self, Z: Array, weights: Array) -> PointSample:
        """Return the points from which a low-rank matrix is computed.

        Parameters
        ----------
        Z : array of shape (n, d)
            The earlier coordinates.
        weights : array of shape (n,)
            Weights of the points.

        Returns
        -------
        PointSample
            The points.
        """
        n = len(Z)
        if self.sample_size is None and (self.tol is not None or n <= self.exact_up_to):
            return PointSample.all(n)
        return sampled_points(Z, weights, self.sample_size)

    def tolerance(self, n: int) -> float:
        """Return the largest eigenvalue that may be left out.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        float
            The tolerance.
        """
        if self.tol is not None:
            return self.tol
        if n <= self.exact_up_to:
            return 1e-8
        return 0.1 * CUTOFF if self.linear else CUTOFF

    @property
    def tolerance_of_many(self) -> float:
        """The same for factors of more than 500 columns, if it is larger."""
        return 1.5 * CUTOFF if self.tol is None and not self.linear else 0.0

    @property
    def linear(self) -> bool:
        """Whether the fits are linear."""
        return self.local_fit == "local_linear"


def resolve_smoother(spec: str | KernelSmoother) -> KernelSmoother:
    """The smoother specified by a ``smoother`` argument: an object, or the name of a local fit."""
    if isinstance(spec, KernelSmoother):
        return spec
    if not isinstance(spec, str) or spec not in LOCAL_FITS:
        names = ", ".join(map(repr, LOCAL_FITS))
        raise ValueError(f"smoother={spec!r} must be one of {names}, or a KernelSmoother object")
    return KernelSmoother(spec)  # type: ignore[arg-type]  # one of LOCAL_FITS, checked above


@dataclass(frozen=True, eq=False)
class SmootherFunctions:
    """Functions on the points that span what a smoother can predict."""

    values: Array  # (n, r)
    singular_values: Array  # (r,): of the smoother, decreasing

    @property
    def count(self) -> int:
        """Number of functions."""
        return len(self.singular_values)


def smoother_functions(
    F: Array,
    mass: Array,
    bandwidth: float,
    smoother: KernelSmoother | None = None,
    *,
    cut: float = CUTOFF,
    most: int | None = None,
    factor_from: int = 500,
) -> SmootherFunctions:
    """Functions that span what a smoother on the columns of `F` can predict.

    The smoother has weights P_jk ∝ exp(−‖z_j − z_k‖²/2)·w_k, where w are the point weights and z
    the coordinates over `bandwidth` times the root of the sum of their mean squares. With the right
    singular vectors v of P B^{-1/2} whose singular values are above `cut` times the largest (Blau &
    Michaeli's cutoff), at most the `most` leading ones, the functions are B^{-1/2} v: if
    Σ B·function·f = 0 for all of them, P f is nearly zero.

    Up to `factor_from` points the n × n matrix is decomposed, whatever `tol` is.

    With more points, on the current device if there is one; it then has the values.
    """
    smoother = smoother or KernelSmoother()
    n, q = F.shape
    device = _device_for(smoother, n > factor_from)
    if device is not None:
        F, mass = device.array(np.ascontiguousarray(F)), device.array(mass, keep=False)
    w = smoother.weights(mass)
    width = bandwidth * sqrt(float((w @ F**2).sum() / w.sum())) or 1.0
    Z = F / width
    points = _Points(Z, mass, smoother, cut, n if most is None else most)
    if smoother.n_neighbors is not None:
        return _from_matrix(_sparse_kernel(Z, min(smoother.n_neighbors, n)), points)
    tol = smoother.tolerance(n)
    if tol > 0 and n > factor_from:
        columns = n // 2 if n <= smoother.exact_up_to else min(n, smoother.max_columns)
        sample = smoother.sample(Z, w)
        rows = like(sample.rows, Z)
        columns = _columns_in_memory(min(columns, len(rows)), len(rows), q, smoother, device)
        many = smoother.tolerance_of_many if n > smoother.exact_up_to else 0.0
        represented = w[rows] * like(sample.counts, Z)
        factor = kernel_factor(Z[rows], represented, tol, columns, tol_of_many=many)
        if factor.left_out <= tol or n > smoother.exact_up_to:
            _warn_if_inaccurate(factor, max(tol, many), q)
            return _from_factor(factor, sample, points)
    remedy = "pass smoother=KernelSmoother(tol=0.03)"
    _plan((n, n), 40, f"the smoother of {n} points as a matrix", remedy, device)
    return _from_matrix(gaussian_kernel(Z, Z), points)


def _device_for(smoother: KernelSmoother, many: bool) -> Device | None:
    """The device that computes the functions; None for the CPU."""
    device = current_device()
    if device is None or not many:
        return None
    if smoother.n_neighbors is not None:
        device.runs_on_host("the kernel smoother", "it is restricted to nearest neighbors")
        return None
    return device


def _plan(
    shape: tuple[int, int], bytes_per_entry: float, what: str, remedy: str, device: Device | None
) -> None:
    """Plan memory for a matrix where it will be."""
    if device is None:
        plan_matrix(shape, bytes_per_entry, what, remedy)
    else:
        device.plan(bytes_per_entry * shape[0] * shape[1], what, remedy)


@dataclass(frozen=True, eq=False)
class _Points:
    """What both ways to the functions share."""

    Z: Array  # coordinates in units of the bandwidth
    mass: Array
    smoother: KernelSmoother
    cut: float
    most: int

    @property
    def weights(self) -> Array:
        return self.smoother.weights(self.mass)

    @property
    def root(self) -> Array:
        """Factor of the columns of P B^{-1/2}."""
        return self.weights / namespace(self.mass).sqrt(self.mass)

    def functions(self, V: Array, squares: Array) -> SmootherFunctions:
        """From the singular vectors of P B^{-1/2} and the squares of its singular values."""
        root = namespace(self.mass).sqrt(self.mass)
        return SmootherFunctions(like(V, root) / root[:, None], np.sqrt(squares))


def _from_factor(factor: KernelFactor, sample: PointSample, points: _Points) -> SmootherFunctions:
    """The functions of P B^{-1/2} ≈ A Xᵀ, with A and X made of the columns of the factor.

    The factor is that of the sampled points; the functions are evaluated at all points.
    """
    xp, linear = namespace(points.Z), points.smoother.linear
    rows, counts = like(sample.rows, points.Z), like(sample.counts, points.Z)
    L, Z, w = factor.L, points.Z[rows], points.weights[rows] * counts
    constant, slope = _fit(lambda X: factor.smoothed(w, X), Z, linear)
    represented = xp.sqrt(counts)[:, None]
    fits = xp.column_stack([constant, slope]) if linear else constant[:, None]
    A = _scaled_columns(L, represented * fits)
    terms = xp.column_stack([xp.ones(len(rows)), Z]) if linear else xp.ones((len(rows), 1))
    X = _scaled_columns(L, represented * points.root[rows, None] * terms)
    # What L Lᵀ lacks on the diagonal is known.
    own = constant + (slope * Z).sum(axis=1) if linear else constant
    diagonal = own * factor.residual * points.root[rows]
    squares, E = singular_coefficients(A, X, diagonal, points.cut, points.most)
    # L = K(points, pivots) R⁻¹, where R is upper triangular: Rᵀ are the rows of L at the pivots.
    pivots = like(factor.pivots, Z)
    R, blocks = L[pivots].T, xp.split(E, terms.shape[1])
    T = xp.vstack([triangular_solution(R, block) for block in blocks])
    shape = (len(points.Z), len(squares))
    remedy = "compute fewer coordinates, or pass a larger bandwidth"
    what = f"the {shape[1]} functions that {shape[0]} points predict"
    _plan(shape, 24, what, remedy, device_of(Z))
    values = xp.empty(shape, dtype=L.dtype)
    for block in row_blocks(len(values), 2 * len(T)):
        columns = gaussian_kernel(points.Z[block], Z[pivots], L.dtype.type)
        if linear:
            columns = xp.hstack([columns, _scaled_columns(columns, points.Z[block])])
        xp.matmul(columns, T, out=values[block])
    values *= (points.weights / points.mass).astype(L.dtype)[:, None]
    return SmootherFunctions(values, np.sqrt(squares))


def _scaled_columns(L: Array, scales: Array) -> Array:
    """The columns of L with rows scaled by each column of `scales`."""
    scales = scales.astype(L.dtype)
    if scales.shape[1] == 1:
        return scales * L
    return namespace(L).hstack([s[:, None] * L for s in scales.T])


def _from_matrix(K: Matrix, points: _Points) -> SmootherFunctions:
    """The functions from the matrix itself."""
    Z, w, root, linear = points.Z, points.weights, points.root, points.smoother.linear
    constant, slope = _fit(lambda X: K @ (w * X.T).T, Z, linear)
    if sparse.issparse(K):
        rows, k = np.repeat(np.arange(len(Z)), np.diff(K.indptr)), K.indices
        fits = constant[rows]
        if linear:
            fits = fits + np.einsum("eq,eq->e", slope[rows], Z[k])
        S: Matrix = sparse.csr_array((K.data * fits * root[k], k, K.indptr), shape=K.shape)
    else:
        S = K * (constant[:, None] + (slope @ Z.T if linear else 0.0)) * root
    if sparse.issparse(S) and len(Z) > points.smoother.exact_up_to:
        squares, V = leading_of_sparse(S, points.cut, points.most)
    else:
        G = S.T @ S
        squares, V = leading_of_gram(
            G.toarray() if sparse.issparse(G) else to_numpy(G), points.cut, points.most
        )
    return points.functions(V, squares)


def _sparse_kernel(Z: Array, k: int) -> sparse.csr_array:
    """Kernel of each point to its `k` nearest ones, itself included, and to others as near."""
    blocks = []
    for block in row_blocks(len(Z), 4 * len(Z)):
        K = gaussian_kernel(Z[block], Z)
        least = np.partition(K, -k, axis=1)[:, -k] * (1 - 1e-9)  # equal ones differ by rounding
        K[least[:, None] > K] = 0.0
        blocks.append(sparse.csr_array(K))
    return sparse.csr_array(sparse.vstack(blocks))


def _columns_in_memory(
    columns: int, n: int, q: int, smoother: KernelSmoother, device: Device | None
) -> int:
    """Number of columns, reduced to what fits into the free memory."""
    columns = columns // (q + 1) if smoother.linear else columns
    free = available_memory() if device is None else device.free_memory
    if free is not None:
        columns = min(columns, int(free / (32 * n * (q + 1 if smoother.linear else 1))))
    return max(2, columns)


def _warn_if_inaccurate(factor: KernelFactor, tol: float, q: int) -> None:
    if factor.left_out > tol:
        warn(
            f"the smoother for coordinate {q} (counted from 0) leaves out an eigenvalue of "
            f"{factor.left_out:.2g} with {factor.L.shape[1]} columns, where tol={tol:g} is "
            "allowed: this coordinate and later ones may differ from the exact ones; pass a larger "
            "bandwidth, or smoother=KernelSmoother(...) with more max_columns or a larger tol",
            ConvergenceWarning,
        )


def _fit(
    smooth: Callable[[Array], Array], Z: Array, linear: bool, ridge: float = 1e-9
) -> tuple[Array, Array]:
    """Constants a (n,) and slopes b (n, q or 0) of P_jk = k_jk·w_k·(a_j + b_jᵀ z_k).

    `ridge` regularizes the local covariances; it is relative to the squared width of the kernel.
    """
    (n, q), xp = Z.shape, namespace(Z)
    total = smooth(xp.ones(n))
    if not linear:
        return 1 / total, xp.empty((n, 0))
    first = smooth(Z)
    pairs = [(i, j) for i in range(q) for j in range(i, q)]
    second = smooth(xp.stack([Z[:, i] * Z[:, j] for i, j in pairs], axis=1))
    mean = first / total[:, None]
    cov = xp.empty((n, q, q))
    for column, (i, j) in enumerate(pairs):
        cov[:, i, j] = cov[:, j, i] = second[:, column] / total - mean[:, i] * mean[:, j]
    # The fit at z_j weighs z_k by 1 + (z_j − mean)ᵀ cov⁻¹ (z_k − mean), over the total.
    cov += ridge * xp.eye(q)
    slope = xp.linalg.solve(cov, (Z - mean)[:, :, None])[:, :, 0]
    return (1 - (slope * mean).sum(axis=1)) / total, slope / total[:, None]
