"""Eigenpairs of a sparse matrix whose rows are on the workers of a cluster.

LOBPCG with a two-level preconditioner. Only blocks of vectors and small matrices are computed with,
so that workers exchange

- the rows of one block that parts need of each other, for its product with the matrix;
- the unknowns of the coarse problem of the preconditioner;
- inner products of a basis of at most t + 3b columns, which the client adds up;

where the block has b = k + 6 columns at first; those that have converged leave it. With n rows, p
parts, e pairs of parts that exchange rows, counted in both directions, t known eigenvectors and z
nonzeros per row, an iteration takes

- time: about n (2bz + 60b² + 4bf) operations on all workers together, where f is the number of
  entries of the factors per row, at most 8z, and 4z on surfaces;
- network: 8b bytes for each row that another part needs, and 8 (3b + t) for each unknown of the
  coarse problem, of which there are at most 3000 (surfaces: 20 000); those at borders move twice or
  more;
- tasks: 6p + e + p/7 + 1, and one answer to the client, of 16 (t + 3b)² bytes.

The scheduler keeps the tasks of all iterations, though not their results, as long as workers have
the vectors, since it would run them again if a worker was lost. With 1000 parts that have ten
others each, 30 iterations are half a million tasks.

Memory per row is 8 (12b + 4t) bytes for vectors, 40z for copies of the matrix and 24f for factors.
The worker of the coarse problem needs up to 220 MB more.

The number of iterations depends on neither n nor p, but on the rows per unknown of the coarse
problem: on rolls of 2000 to 100 000 points it was 27 to 31 at 20 rows, and 68 at 300. It grows when
the eigenvalues after the k-th one are close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.eigen.distributed_basis import (
    Block,
    InnerProducts,
    RitzStep,
    orthonormal_coefficients,
)
from manifoldry.eigen.distributed_preconditioner import DistributedPreconditioner, TwoLevel
from manifoldry.eigen.problem import check_squares
from manifoldry.eigen.solver import converged, rejection_message, safe_gaps
from manifoldry.eigen.spectrum import (
    DEFAULT_ACCEPTANCE,
    ROUNDING,
    Spectrum,
    cluster_gaps,
    cluster_width,
)
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.typing import Array, IntArray

_REMEDY = (
    "pass DistributedLobpcg(max_iter=1000), or fit to landmarks, which are solved in memory, in a "
    "context manifoldry.distributed.using_options(landmarks=20_000)"
)


@dataclass(frozen=True, eq=False)
class DistributedProblem:
    """The smallest eigenvalues of a positive semidefinite matrix whose rows are on workers.

    With masses, a problem A f = λ B f is given in its standard form: the matrix B^-½ A B^-½, whose
    eigenvectors are g = B^½ f. The leading eigenvalues of a normalized affinity S are those of
    I − S, subtracted from 1.

    Parameters
    ----------
    matrix : DistributedMatrix
        The symmetric matrix in standard form.
    bounds : array of shape (n_parts + 1,)
        The first row of each part, and the number of all rows.
    norm : float
        An upper bound of the eigenvalues: 2 for a normalized Laplacian. Its square must not leave
        the range of double precision.
    deflate : list of Delayed, optional
        Known eigenvectors g of the smallest eigenvalue, (rows of a part, t), which are excluded:
        B^½ 1, restricted to each connected component. They need not be normalized.
    mass : list of Delayed, optional
        The diagonal of B, (rows of a part,); the identity by default.

    See Also
    --------
    DistributedLobpcg : solves it.
    SpectralProblem : the problem of a matrix in memory.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> from manifoldry.eigen import DistributedProblem
    >>> bounds = np.array([0, 4])
    >>> matrix = DistributedMatrix.of([dask.delayed(sp.eye_array(4, format="csr"))], bounds)
    >>> DistributedProblem(matrix, bounds, norm=1.0).n
    4
    """

    matrix: DistributedMatrix
    bounds: IntArray
    norm: float
    deflate: list[Any] | None = None
    mass: list[Any] | None = None

    def __post_init__(self) -> None:
        if self.norm == 0:
            raise ValueError(
                "the operator's norm is 0, so that all vectors are eigenvectors; check the weights"
            )
        check_squares(self.norm, "norm")

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return int(self.bounds[-1])


@dataclass(frozen=True, eq=False)
class DistributedSpectrum:
    """The first k eigenpairs of a distributed problem, with residuals and gaps.

    Parameters
    ----------
    pairs : Spectrum
        Eigenvalues in ascending order, residuals and gaps. Its vectors have no rows.
    vectors : list of Delayed
        For each part, the rows of the eigenvectors f with fᵀBf = 1, (rows of a part, k); the entry
        of largest modulus is positive.
    n_iter : int
        Number of iterations.

    See Also
    --------
    DistributedLobpcg : computes it.
    Spectrum : eigenpairs in memory.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> from manifoldry.eigen import DistributedLobpcg, DistributedProblem
    >>> bounds = np.array([0, 4])
    >>> A = dask.delayed(sp.diags_array([1.0, 2.0, 3.0, 5.0], format="csr"))
    >>> problem = DistributedProblem(DistributedMatrix.of([A], bounds), bounds, norm=5.0)
    >>> spectrum = DistributedLobpcg().solve(problem, 2, np.random.default_rng(0))
    >>> spectrum.values.round(9), spectrum.converged
    (array([1., 2.]), True)
    """

    pairs: Spectrum
    vectors: list[Any]
    n_iter: int

    @property
    def values(self) -> Array:
        """The eigenvalues, (k,)."""
        return self.pairs.values

    @property
    def converged(self) -> bool:
        """Whether all residuals are small enough for the gaps between eigenvalues."""
        return self.pairs.accepted

    def summary(self) -> str:
        """Return one line with the solver, the reason, and the worst residual with its gap."""
        return self.pairs.summary()


@dataclass(frozen=True)
class DistributedLobpcg:
    """Locally optimal block preconditioned conjugate gradients for matrices on workers.

    As in :class:`Lobpcg`, the basis is orthonormal at each step. Results depend on the division
    into parts only to rounding and, for the same parts and seed, not on the workers.

    Parameters
    ----------
    oversampling : int, default=5
        Block columns in addition to the wanted pairs; they speed up convergence.
    max_iter : int, default=200
        Largest number of iterations.
    patience : int, default=25
        Iterations end if residuals have not become smaller by half in so many of them, or in a
        fifth of so many if rounding errors keep them between what is aimed at and accepted.
    preconditioner : TwoLevel, optional
        Options of the preconditioner.

    See Also
    --------
    Lobpcg : for matrices in memory.
    DistributedProblem : what it solves.

    Examples
    --------
    The path of 60 vertices, in two parts:

    >>> import dask
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from manifoldry.distributed.exchange import DistributedMatrix
    >>> from manifoldry.eigen import DistributedLobpcg, DistributedProblem
    >>> ones = np.ones(60)
    >>> A = sp.diags_array([-ones[1:], 2 * ones, -ones[1:]], offsets=[-1, 0, 1]).tolil()
    >>> A[0, 0] = A[-1, -1] = 1
    >>> bounds = np.array([0, 25, 60])
    >>> blocks = [dask.delayed(A.tocsr()[:25]), dask.delayed(A.tocsr()[25:])]
    >>> known = [dask.delayed(ones[:25, None]), dask.delayed(ones[25:, None])]
    >>> matrix = DistributedMatrix.of(blocks, bounds)
    >>> problem = DistributedProblem(matrix, bounds, norm=4.0, deflate=known)
    >>> spectrum = DistributedLobpcg().solve(problem, 2, np.random.default_rng(0))
    >>> np.abs(spectrum.values - 2 + 2 * np.cos(np.pi * np.array([1, 2]) / 60)).max() < 1e-12
    np.True_
    """

    oversampling: int = 5
    max_iter: int = 200
    patience: int = 25
    preconditioner: TwoLevel = field(default_factory=TwoLevel)

    def solve(
        self,
        problem: DistributedProblem,
        k: int,
        rng: np.random.Generator,
        *,
        start: Sequence[Any] | None = None,
        verbose: bool = False,
    ) -> DistributedSpectrum:
        """Return the k smallest eigenvalues that are not deflated, and their eigenvectors.

        A ConvergenceWarning is issued if a residual is too large for its gap.

        Parameters
        ----------
        problem : DistributedProblem
            The problem.
        k : int
            Number of eigenpairs.
        rng : numpy.random.Generator
            Source of start vectors.
        start : list of Delayed, optional
            For each part, rows of approximate eigenvectors f, (rows of a part, any number).
        verbose : bool, default=False
            Whether progress is shown.

        Returns
        -------
        DistributedSpectrum
            The eigenpairs.
        """
        known = _Known.of(problem)
        most = problem.n - known.count
        if not 1 <= k <= most:
            raise ValueError(
                f"k={k} eigenpairs were requested, but a matrix of order n={problem.n} with "
                f"{known.count} known eigenvectors has {most} others; pass k between 1 and {most}"
            )
        b = min(k + 1 + self.oversampling, most)
        seeds = rng.integers(2**63, size=len(known.blocks)).tolist()
        guess = [delayed(_moduli)(block) for block in known.blocks]
        columns = b + known.count
        inverse = self.preconditioner.built(
            problem.matrix, problem.bounds, guess, problem.norm, columns, seeds
        )
        W = _starts(problem, inverse.starts(), start, columns, seeds)
        blocks, n_iter = self._iterated(problem, known.blocks, W, inverse, k, b, verbose)
        found = _verified(problem, known.blocks, blocks, k)
        pairs = replace(
            found.pairs,
            solver=type(self).__name__,
            reason=f"{n_iter} iterations on {len(blocks)} parts",
        )
        if not pairs.accepted:
            warn(rejection_message(pairs, _REMEDY), ConvergenceWarning)
        return replace(found, pairs=pairs, n_iter=n_iter)

    def _iterated(
        self,
        problem: DistributedProblem,
        blocks: list[Any],
        W: list[Any],
        inverse: DistributedPreconditioner,
        k: int,
        b: int,
        verbose: bool,
    ) -> tuple[list[Any], int]:
        """Blocks after all iterations, and the number of these."""
        values: Array = np.empty(0)
        excesses, active = [], None
        with ProgressReporter("eigenvectors", verbose) as reporter:
            for n_iter in range(self.max_iter + 1):
                blocks, W, AW, gram = _expanded(problem.matrix, blocks, W)
                if n_iter:
                    first, residuals = values[: k + 1], gram.residuals
                    if converged(problem.norm, first, residuals[: k + 1]):
                        break
                    gaps = _gaps(values, problem.norm)
                    excesses.append(float((residuals[:k] / gaps[:k]).max()))
                    if _stagnates(excesses, self.patience):
                        break
                    active = _active(values, residuals, problem.norm)
                rotated = active is not None and len(values) == b
                step = RitzStep.of(gram, b, active if rotated else None)
                values = step.values
                advance = delayed(Block.advanced)
                blocks = [advance(*each, step) for each in zip(blocks, W, AW, strict=True)]
                W = inverse.applied(blocks)
                # Most iterations end long before the largest number of them.
                reporter.show(np.nan, f"iteration {n_iter + 1}")
            reporter.show(1.0, f"{n_iter} iterations", last=True)
        return blocks, n_iter


@dataclass(frozen=True, eq=False)
class _Known:
    """Orthonormal known eigenvectors."""

    blocks: list[Any]
    count: int

    @classmethod
    def of(cls, problem: DistributedProblem) -> _Known:
        if problem.deflate is None:
            sizes = np.diff(problem.bounds).tolist()
            V = [delayed(np.empty)((rows, 0)) for rows in sizes]
            return cls(_with_products(problem.matrix, V), 0)
        grams = [delayed(_inner_products)(part) for part in problem.deflate]
        M = compute([combined(grams, sum)], "known eigenvectors")[0]
        scale = 1 / np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
        T = orthonormal_coefficients(scale[:, None] * M * scale, (len(M),))[0]
        V = persist(delayed(np.matmul)(part, scale[:, None] * T) for part in problem.deflate)
        return cls(_with_products(problem.matrix, V), T.shape[1])


def _with_products(matrix: DistributedMatrix, V: list[Any]) -> list[Any]:
    return persist(map(delayed(Block.of), V, matrix.times(V)))


def _inner_products(V: Array) -> Array:
    return np.asarray(V.T @ V)


def _moduli(block: Block) -> Array:
    """The sum of known eigenvectors of connected components, or 1 without any."""
    return np.linalg.norm(block.V, axis=1) if block.V.shape[1] else np.ones(len(block.V))


def _starts(
    problem: DistributedProblem,
    coarse: list[Any],
    given: Sequence[Any] | None,
    columns: int,
    seeds: list[int],
) -> list[Any]:
    none = [None] * len(coarse)
    each = zip(coarse, given or none, problem.mass or none, seeds, strict=True)
    return [delayed(_start)(X, F, mass, columns, seed) for X, F, mass, seed in each]


def _start(X: Array, F: Array | None, mass: Array | None, columns: int, seed: int) -> Array:
    """Approximate eigenvectors, with random ones if they are too few."""
    if F is not None:
        X = np.hstack([F if mass is None else np.sqrt(mass)[:, None] * F, X])
    missing = max(0, columns - X.shape[1])
    return np.hstack([X, np.random.default_rng(seed).standard_normal((len(X), missing))])


def _expanded(
    matrix: DistributedMatrix, blocks: list[Any], W: list[Any]
) -> tuple[list[Any], list[Any], list[Any], InnerProducts]:
    """Blocks, W and its products, which the workers keep, and all inner products."""
    n_parts = len(blocks)
    kept = persist([*blocks, *W, *matrix.times(W)])
    blocks, W, AW = kept[:n_parts], kept[n_parts : 2 * n_parts], kept[2 * n_parts :]
    grams = map(delayed(InnerProducts.of), blocks, W, AW)
    return blocks, W, AW, compute([combined(list(grams), InnerProducts.sum)], "inner products")[0]


def _gaps(values: Array, norm: float) -> Array:
    return DEFAULT_ACCEPTANCE.finite_gaps(cluster_gaps(values, cluster_width(norm)), norm)


def _active(values: Array, residuals: Array, norm: float) -> IntArray:
    """Iterates that would gain from further steps; one at least, so that there is a step."""
    least = 0.1 * DEFAULT_ACCEPTANCE.stop_angle * _gaps(values, norm)
    active = np.flatnonzero(residuals > np.maximum(least, ROUNDING / 2 * norm))
    return active if len(active) else np.array([int(np.argmax(residuals / least))])


def _stagnates(excesses: list[float], patience: int) -> bool:
    """Whether residuals have not halved in so many iterations, or a fifth of it if acceptable."""
    if min(excesses) <= DEFAULT_ACCEPTANCE.angle:
        patience = max(1, patience // 5)
    return len(excesses) > patience and min(excesses[-patience:]) > 0.5 * min(excesses[:-patience])


def _verified(
    problem: DistributedProblem, known: list[Any], blocks: list[Any], k: int
) -> DistributedSpectrum:
    """The pairs of the iterates, by a Rayleigh–Ritz step with new products."""
    X = persist(delayed(_iterates)(block) for block in blocks)
    known, X, AX, gram = _expanded(problem.matrix, known, X)
    step, norm = RitzStep.of(gram, gram.sizes[-1]), problem.norm
    advance = delayed(Block.advanced)
    final = persist(advance(*each, step) for each in zip(known, X, AX, strict=True))
    squares = compute([combined([delayed(_squares)(b) for b in final], sum)], "residuals")[0]
    values, residuals = step.values, np.sqrt(squares)
    pairs = Spectrum(
        values=values[:k].copy(),
        vectors=np.empty((0, k)),
        residuals=residuals[:k].copy(),
        gaps=safe_gaps(values[: k + 1], residuals, k, cluster_width(norm)),
        next_value=float(values[k]) if len(values) > k else float("nan"),
        norm=norm,
    )
    masses = problem.mass or [None] * len(final)
    pieces = zip(final, masses, strict=True)
    F = persist(delayed(_eigenvectors)(block, mass, k) for block, mass in pieces)
    return DistributedSpectrum(pairs, _with_fixed_signs(F), 0)


def _iterates(block: Block) -> Array:
    return block.X


def _squares(block: Block) -> Array:
    return block.squares


def _eigenvectors(block: Block, mass: Array | None, k: int) -> Array:
    G = block.X[:, :k]
    return G.copy() if mass is None else G / np.sqrt(mass)[:, None]


def _with_fixed_signs(F: list[Any]) -> list[Any]:
    """Vectors whose entry of largest modulus is positive: the first one if several are equal."""
    largest = compute([combined([delayed(_largest)(part) for part in F], _maximum)], "signs")[0]
    signs = compute([combined([delayed(_signs)(part, largest) for part in F], _first)], "signs")[0]
    return persist(delayed(np.multiply)(part, np.where(signs == 0, 1.0, signs)) for part in F)


def _largest(F: Array) -> Array:
    return np.asarray(np.abs(F).max(axis=0, initial=0.0))


def _maximum(arrays: list[Array]) -> Array:
    return np.asarray(np.max(arrays, axis=0))


def _signs(F: Array, largest: Array, tie: float = 1e-6) -> Array:
    """Sign of the first entry of each column that is as large as the largest one, or 0."""
    reached = np.vstack([np.abs(F) >= (1 - tie) * largest, np.ones(F.shape[1], dtype=bool)])
    entries = np.vstack([F, np.zeros(F.shape[1])])
    return np.sign(entries[np.argmax(reached, axis=0), np.arange(F.shape[1])])


def _first(signs: list[Array]) -> Array:
    out = signs[0]
    for each in signs[1:]:
        out = np.where(out == 0, each, out)
    return out
