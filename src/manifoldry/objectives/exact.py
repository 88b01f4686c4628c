"""Exact sums over pairs: by numpy for any kernel, by compiled loops for many points."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import sparse

from manifoldry.device import device_of
from manifoldry.objectives import on_device
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.pair_kernel import (
    MAX_COMPILED_DIMENSION,
    Kernel,
    StudentKernel,
    kernel_constants,
)
from manifoldry.objectives.pair_sums import Attraction, PairSums, Sums
from manifoldry.objectives.position_sums import ExactPositionSums, PositionSums
from manifoldry.objectives.weights import graph_laplacian, with_values
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_instance
from manifoldry.util.local_matrix import LocalMatrix
from manifoldry.util.sparse_products import product
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class QuadraticAttraction:
    """Attraction Σ Wᵢⱼdᵢⱼ² = 2·tr YᵀLY, where L is the Laplacian of W."""

    L: LocalMatrix

    def __call__(self, Y: Array) -> Attraction:
        Y = Y.astype(np.float64, copy=False)
        force = self.L.restored(product(self.L.matrix, self.L.sorted(Y)))
        return Attraction(2 * float(np.einsum("ij,ij->", Y, force)), force, self._degree)

    @cached_property
    def _degree(self) -> Array:
        return self.L.restored(self.L.matrix.diagonal())


def quadratic_attraction(slope: float, W: sparse.csr_array, Y: Array) -> Attraction:
    """Attraction slope·Σ Wᵢⱼdᵢⱼ² by products; `W` may have the first rows of a matrix only."""
    Y = Y[: W.shape[1]] - Y.mean(axis=0)
    squares, degree = np.einsum("ij,ij->i", Y, Y), slope * W.sum(axis=1)
    near, own = slope * (W @ np.column_stack([Y, squares])), slice(W.shape[0])
    terms = degree * squares[own] - 2 * np.einsum("ij,ij->i", Y[own], near[:, :-1]) + near[:, -1]
    return Attraction(float(terms.sum()), degree[:, None] * Y[own] - near[:, :-1], degree)


def edge_attraction(kernel: Kernel, W: sparse.csr_array, block: int, Y: Array) -> Attraction:
    """Attraction Σ Wᵢⱼ·φ(dᵢⱼ²) for any kernel; `W` may have the first rows of a matrix only."""
    Y = np.asarray(Y, dtype=np.float64)
    D = edge_squares(Y, W, block)
    T = with_values(W, kernel.times_derivative(W.data, D))
    degree = T.sum(axis=1)
    force = degree[:, None] * Y[: len(degree)] - T @ Y
    return Attraction(_weighted(W.data, kernel.phi(D)), force, degree)


def student_attraction(
    kernel: StudentKernel, W: sparse.csr_array, block: int, Y: Array
) -> Attraction:
    """The same for Student's kernel by compiled loops; `Y` has the dtype of `W`, in C order."""
    from manifoldry.objectives.compiled import student_rows

    fixed = Y, W.indptr, W.indices, W.data, Y.dtype.type(1 / kernel.dof)
    loop, force = student_rows(Y.shape[1]), np.empty((W.shape[0], Y.shape[1]), Y.dtype)
    degree = np.empty(W.shape[0], Y.dtype)

    def run(rows: tuple[int, int]) -> float:
        return float(loop(*fixed, force, degree, *rows))

    cost = sum(map_threads(run, _row_ranges(W, block)))
    derivative = Y.dtype.type(kernel.derivative_at_zero)
    return Attraction(kernel.power * cost, derivative * force, derivative * degree)


@dataclass(frozen=True, eq=False)
class StudentAttraction:
    """Attraction Σ Wᵢⱼ·φ(dᵢⱼ²) for Student's kernel, by compiled loops in the dtype of Y."""

    kernel: StudentKernel
    W: sparse.csr_array
    block: int

    def __call__(self, Y: Array) -> Attraction:
        if Y.shape[1] > MAX_COMPILED_DIMENSION:
            return edge_attraction(self.kernel, self.W, self.block, Y)
        local = self._single if Y.dtype == np.float32 else self._double
        Y = np.ascontiguousarray(local.sorted(Y), dtype=local.matrix.dtype)
        cost, *parts = student_attraction(self.kernel, local.matrix, self.block, Y)
        return Attraction(cost, *map(local.restored, parts))

    @cached_property
    def _single(self) -> LocalMatrix:
        """The weights in single precision."""
        return LocalMatrix.of(self.W, np.float32)

    @cached_property
    def _double(self) -> LocalMatrix:
        return LocalMatrix.of(self.W)


@dataclass(frozen=True, eq=False)
class AttractionAnywhere:
    """Attraction that is computed where the embedding is."""

    exact: "Exact"
    kernel: Kernel
    W: sparse.csr_array

    def __call__(self, Y: Array) -> Attraction:
        device = device_of(Y)
        if device is None:
            return self._on_cpu(Y)
        return self._on_device(device, Y)

    @cached_property
    def _on_cpu(self) -> Callable[[Array], Attraction]:
        return self.exact.attraction_on_cpu(self.kernel, self.W)

    @cached_property
    def _on_device(self) -> on_device.DeviceAttraction:
        return on_device.DeviceAttraction(self.kernel, self.W)


def edge_sums(kernel: Kernel, Y: Array, W: sparse.csr_array, block: int) -> Sums:
    """Kernel sums and forces over the edges of `W`."""
    D = edge_squares(Y, W, block)
    K = W.data * kernel(D)
    kernel_sums, F = with_values(W, K).sum(axis=1), with_values(W, kernel.times_derivative(K, D))
    return Sums(kernel_sums, F.sum(axis=1)[:, None] * Y - F @ Y)


def edge_moments(kernel: Kernel, Y: Array, W: sparse.csr_array, block: int) -> Array:
    """Second moments over the edges of `W`."""
    D = edge_squares(Y, W, block)
    K = W.data * kernel(D) * kernel.curvature(D)
    columns = [with_values(W, K * edge_squares(y[:, None], W, block)).sum(axis=1) for y in Y.T]
    return np.stack(columns, axis=1)


def edge_squares(Y: Array, W: sparse.csr_array, block: int) -> Array:
    """Squared distances of the pairs stored in `W`, by direct subtraction."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    squares, columns = (
        np.zeros(W.nnz),
        np.array(Y.T, order="C"),
    )  # indexing rows is ten times slower
    for some in row_blocks(W.nnz, 1, budget=block):
        for y in columns:
            step = np.subtract(y[rows[some]], y[W.indices[some]], dtype=np.float64)
            squares[some] += step * step
    return squares


def _row_ranges(W: sparse.csr_array, block: int) -> list[tuple[int, int]]:
    """Blocks of rows with similar numbers of edges, independent of the number of threads."""
    fractions = np.arange(0, W.nnz + block, block)
    return list(
        pairwise(np.unique(np.searchsorted(W.indptr, fractions).clip(0, W.shape[0])).tolist())
    )


def _weighted(weights: Array, values: Array) -> float:
    """Σ w·v without BLAS, whose threads would compete with ours."""
    return float(np.einsum("e,e->", weights, values))


@dataclass(frozen=True)
class Exact(PairSums):
    """Exact sums over pairs: O(n²) for all pairs, O(edges) for sparse weights.

    Results do not depend on the number of threads. The Gaussian and Student's kernel have compiled
    loops for embeddings of up to three dimensions.

    Parameters
    ----------
    compile_pairs : float, default=5e5
        Number of pairs from which compiled loops are used. The first compilation takes about
        1.5 s, which 500 calls make up for.
    compile_edges : float, default=1e5
        Number of edges from which compiled loops are used for the attraction.
    block, numpy_block, edge_block : int, default=2**20, 2**16, 2**16
        Block sizes that fit into the cache: pairs in compiled loops, pairs in numpy, and edges.

    See Also
    --------
    Fastest : the default, exact for few points.
    FFTInterpolation, CellSums : approximations.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import Exact, GaussianKernel
    >>> Exact().sums(GaussianKernel(), np.array([[0.0], [1.0], [1.0]])).kernel_sums.round(3)
    array([0.736, 1.368, 1.368])
    """

    compile_pairs: float = 5e5
    compile_edges: float = 1e5
    block: int = 2**20
    numpy_block: int = 2**16
    edge_block: int = 2**16

    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        device = device_of(Y)
        if sparse.issparse(weights):
            if device is not None:
                return on_device.edge_sums_on_device(device, kernel, Y, weights)
            return edge_sums(kernel, Y, weights, self.edge_block)
        if device is not None:
            return Sums(*on_device.all_pairs(device, kernel, Y, weights, 1))
        return Sums(*self._all_pairs(kernel, Y, weights, 1))

    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        device = device_of(Y)
        if sparse.issparse(weights):
            if device is not None:
                return on_device.edge_moments_on_device(device, kernel, Y, weights)
            return edge_moments(kernel, Y, weights, self.edge_block)
        if device is not None:
            return on_device.all_pairs(device, kernel, Y, weights, 2)[1]
        return self._all_pairs(kernel, Y, weights, 2)[1]

    def attraction(self, kernel: Kernel, W: sparse.csr_array) -> Callable[[Array], Attraction]:
        return AttractionAnywhere(self, kernel, W)

    def attraction_on_cpu(
        self, kernel: Kernel, W: sparse.csr_array
    ) -> Callable[[Array], Attraction]:
        """Return the attraction as a function of an embedding in the memory of the host.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        W : sparse array of shape (n, n)
            The weights.

        Returns
        -------
        callable
            Returns the value and the derivatives at an embedding.
        """
        if kernel.quadratic:
            L = kernel.derivative_at_zero * graph_laplacian(W)
            return QuadraticAttraction(LocalMatrix.of(L))
        if type(kernel) is StudentKernel and W.nnz >= self.compile_edges:
            return StudentAttraction(kernel, W, self.edge_block)
        return partial(edge_attraction, kernel, W, self.edge_block)

    def attraction_of_rows(self, kernel: Kernel, W: sparse.csr_array, Y: Array) -> Attraction:
        """Return the terms of some rows of the attraction, and their derivatives.

        Parameters
        ----------
        kernel : Kernel
            The kernel κ.
        W : sparse array of shape (n_rows, m)
            These rows of the weights.
        Y : array of shape (n, d)
            Positions of these rows, followed by those of the other points, n ≥ m.

        Returns
        -------
        Attraction
            The value and the derivatives.
        """
        if kernel.quadratic:
            return quadratic_attraction(kernel.derivative_at_zero, W, Y)
        compiled = W.nnz >= self.compile_edges and Y.shape[1] <= MAX_COMPILED_DIMENSION
        if type(kernel) is StudentKernel and compiled:
            Y = np.ascontiguousarray(Y, dtype=W.dtype)
            return student_attraction(kernel, W, self.edge_block, Y)
        return edge_attraction(kernel, W, self.edge_block, Y)

    def at_positions(
        self, kernel: Kernel, Y: Array, factors: Array | None = None
    ) -> ExactPositionSums:
        return ExactPositionSums(kernel, Y, self.compile_pairs)

    def _all_pairs(
        self, kernel: Kernel, Y: Array, weights: Array | FactoredWeights | None, order: int
    ) -> tuple[Array, Array]:
        """Kernel sum of every point, and moments of the given order."""
        T = _columns(Y)
        rows = _weight_rows(weights, T)
        kernel_sums, moments = np.empty(T.shape[1]), np.empty(T.shape[::-1], T.dtype)
        loop = compiled_loop(kernel, T, order) if self._use_compiled(T) else None
        fill = loop or _in_numpy(kernel, T, order)
        blocks = row_blocks(T.shape[1], T.shape[1], self.block if loop else self.numpy_block)
        map_threads(lambda block: fill(block, rows(block), kernel_sums, moments), blocks)
        return kernel_sums, moments

    def _use_compiled(self, T: Array) -> bool:
        return T.shape[1] ** 2 > self.compile_pairs and len(T) <= MAX_COMPILED_DIMENSION


@dataclass(frozen=True)
class ApproximateSums(PairSums):
    """Base class of approximations of the sums over all pairs; other sums are exact.

    Parameters
    ----------
    exact : Exact
        Computes sums with weights for every pair, sums over edges and sums at other positions.
    """

    exact: Exact = field(default=Exact(), kw_only=True)

    def __post_init__(self) -> None:
        check_instance("exact", self.exact, Exact)

    def attraction(self, kernel: Kernel, W: sparse.csr_array) -> Callable[[Array], Attraction]:
        return self.exact.attraction(kernel, W)

    def at_positions(self, kernel: Kernel, Y: Array, factors: Array | None = None) -> PositionSums:
        return self.exact.at_positions(kernel, Y)


Fill = Callable[[slice, Array | None, Array, Array], None]


def compiled_loop(kernel: Kernel, T: Array, order: int) -> Fill | None:
    """Return a compiled function that fills blocks of rows; None if the kernel has none."""
    constants = kernel_constants(kernel)
    if constants is None:
        return None
    from manifoldry.objectives.compiled import pair_sums

    loop = pair_sums(len(T), order)
    rate = None if constants.rate is None else T.dtype.type(constants.rate)
    # The loop omits this factor, which is one for the Gaussian.
    factor = kernel.derivative_at_zero if order == 1 else kernel.curvature_at_zero

    def fill(block: slice, A: Array | None, kernel_sums: Array, moments: Array) -> None:
        loop(T, A, rate, constants.power, kernel_sums, moments, block.start, block.stop)
        if factor != 1:
            moments[block] *= factor

    return fill


def _in_numpy(kernel: Kernel, T: Array, order: int) -> Fill:
    """Return a function that fills blocks of rows by numpy, for any kernel."""

    def fill(block: slice, A: Array | None, kernel_sums: Array, moments: Array) -> None:
        steps = T[:, block, None] - T[:, None]  # (d, n_block, n)
        with np.errstate(over="ignore"):  # κ is zero at infinite distance
            D = np.einsum("cij,cij->ij", steps, steps)
        itself = np.arange(len(D)), np.arange(T.shape[1])[block]
        D[itself] = 1  # a value at which every kernel is finite
        K = kernel(D)
        if A is not None:
            K *= A
        K[itself] = 0
        kernel_sums[block] = K.sum(axis=1, dtype=float)
        K = kernel.times_derivative(K, D) if order == 1 else K * kernel.curvature(D)
        for c, step in enumerate(steps):
            moments[block, c] = np.einsum("ij,ij->i", K if order == 1 else K * step, step)

    return fill


def _columns(Y: Array) -> Array:
    """Contiguous coordinates (d, n), in single precision if `Y` is, else in double."""
    Y = np.asarray(Y)
    dtype = np.float32 if Y.dtype == np.float32 else np.float64
    return np.array(Y.T, dtype=dtype, order="C")


def _weight_rows(
    weights: Array | FactoredWeights | None, T: Array
) -> Callable[[slice], Array | None]:
    """Return a function for the weights in a block of rows; one row if all rows are equal."""
    if weights is None:
        return lambda block: None
    n, A = T.shape[1], weights if isinstance(weights, FactoredWeights) else np.atleast_2d(weights)
    if A.shape not in ((1, n), (n, n)):  # compiled loops do not check bounds
        raise ValueError(f"weights of shape {A.shape} must be ({n},), or ({n}, {n}) for all pairs")
    if isinstance(A, FactoredWeights):
        factored = A
        return lambda block: _read_only(factored.rows(block))
    A = A.T if len(A) > 1 and A.flags.f_contiguous else A  # symmetric: the transpose needs no copy
    given = _read_only(A if A.dtype in (np.float32, np.float64) else A.astype(T.dtype))
    return lambda block: given[block] if len(given) > 1 else given


def _read_only(A: Array) -> Array:
    """A contiguous read-only view, one type for the compiler."""
    A = np.require(A, requirements=["C", "A"]).view()
    A.flags.writeable = False
    return A
