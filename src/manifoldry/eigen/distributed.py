"""Eigenpairs of a sparse matrix whose rows are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.eigen.distributed_preconditioner import TwoLevel
from manifoldry.eigen.solver import rejection_message, safe_gaps
from manifoldry.eigen.spectrum import (
    DEFAULT_ACCEPTANCE,
    ROUNDING,
    Spectrum,
    cluster_gaps,
    cluster_width,
)
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.util.progress import progress
from manifoldry.util.typing import Array, IntArray


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
        An upper bound of the eigenvalues: 2 for a normalized Laplacian.
    deflate : list of Delayed, optional
        Known eigenvectors g of the smallest eigenvalue, (rows of a part, t), which are excluded:
        B^½ 1, restricted to each connected component. They need not be normalized.
    mass : list of Delayed, optional
        The diagonal of B, (rows of a part,); the identity by default.
    """

    matrix: DistributedMatrix
    bounds: IntArray
    norm: float
    deflate: list[Any] | None = None
    mass: list[Any] | None = None

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

    Parameters
    ----------
    oversampling : int, default=5
        Block columns in addition to the wanted pairs; they speed up convergence.
    max_iter : int, default=200
        Largest number of iterations.
    aggregates : int, default=2000
        Largest number of unknowns of the coarse problem.
    aggregate_size : int, default=30
        Least number of rows of which one such unknown is made, on average.
    shift : float, default=1e-8
        Multiple of the norm that is added to the diagonal of matrices that are factorized.
    """

    oversampling: int = 5
    max_iter: int = 200
    aggregates: int = 2000
    aggregate_size: int = 30
    smoothing: int = 1
    shift: float = 1e-8

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
        seeds = rng.integers(2**63, size=len(problem.bounds) - 1)
        known = _known(problem)
        t = _columns_of(known)
        if not 1 <= k <= problem.n - t:
            raise ValueError(
                f"k={k} eigenpairs were requested, but a matrix of order n={problem.n} with {t} "
                f"known eigenvectors has {problem.n - t} others; pass k between 1 and "
                f"{problem.n - t}"
            )
        size = min(k + 1 + self.oversampling, problem.n - t)
        precondition = TwoLevel.of(
            problem.matrix,
            problem.bounds,
            [delayed(_row_norms)(part) for part in known],
            [int(seed) for seed in seeds],
            count=min(self.aggregates, problem.n // self.aggregate_size),
            smoothing=self.smoothing,
            shift=self.shift * problem.norm,
            norm=problem.norm,
            start_columns=size + t,
        )
        wanted = min(k + 1, size)
        draw = delayed(_start)
        given = problem.mass if start is not None else None
        W = [
            draw(
                part,
                precondition.starts[p],
                size + t,
                int(seeds[p]),
                None if start is None else start[p],
                None if given is None else given[p],
            )
            for p, part in enumerate(known)
        ]
        blocks = [delayed(_Block.of)(part) for part in known]
        values = np.empty(0)
        steps = progress(range(self.max_iter + 1), self.max_iter + 1, "eigenvectors", verbose)
        for n_iter in steps:
            blocks, W, AW, gram = self._expanded(problem, blocks, W)
            if n_iter and _converged(values[:wanted], gram.residuals[:wanted], problem.norm):
                break
            step = _Step.of(gram, t, size)
            values = step.values
            blocks = [
                delayed(_advanced)(block, W[p], AW[p], step) for p, block in enumerate(blocks)
            ]
            active = _active(gram.residuals, values, wanted, problem.norm)
            W = precondition.applied(blocks, active)
        return self._verified(problem, blocks, k, t, n_iter)

    def _expanded(
        self, problem: DistributedProblem, blocks: list[Any], W: list[Any]
    ) -> tuple[list[Any], list[Any], list[Any], _Gram]:
        """Compute blocks, W, their products and all inner products."""
        AW = problem.matrix.times(W)
        kept = persist([*blocks, *W, *AW])
        p = len(blocks)
        blocks, W, AW = kept[:p], kept[p : 2 * p], kept[2 * p :]
        grams = [delayed(_Gram.of)(*each) for each in zip(blocks, W, AW, strict=True)]
        (gram,) = compute([combined(grams, _Gram.sum)], "inner products")
        return blocks, W, AW, gram

    def _verified(
        self, problem: DistributedProblem, blocks: list[Any], k: int, t: int, n_iter: int
    ) -> DistributedSpectrum:
        X = persist(delayed(_iterates)(block) for block in blocks)
        empty = [delayed(_without_iterates)(block) for block in blocks]
        empty, X, AX, gram = self._expanded(problem, empty, X)
        size = gram.M.shape[0] - t
        step = _Step.of(gram, t, size)
        final = persist(
            delayed(_advanced)(block, X[p], AX[p], step) for p, block in enumerate(empty)
        )
        squares = compute([combined([delayed(_squares)(b) for b in final], sum)], "residuals")[0]
        residuals, values = np.sqrt(squares), step.values
        pairs = Spectrum(
            values=values[:k].copy(),
            vectors=np.empty((0, k)),
            residuals=residuals[:k].copy(),
            gaps=safe_gaps(values[: k + 1], residuals, k, cluster_width(problem.norm)),
            next_value=float(values[k]) if len(values) > k else float("nan"),
            norm=problem.norm,
            solver=type(self).__name__,
            reason=f"{n_iter} iterations with products on workers",
        )
        if not pairs.accepted:
            warn(rejection_message(pairs), ConvergenceWarning)
        masses = problem.mass or [None] * len(final)
        f = persist(
            delayed(_vectors)(block, k, mass) for block, mass in zip(final, masses, strict=True)
        )
        (largest,) = compute([combined([delayed(_largest)(v) for v in f], _maximum)], "signs")
        signs = compute([combined([delayed(_signs)(v, largest) for v in f], _first_sign)], "signs")
        return DistributedSpectrum(pairs, persist(delayed(_scaled)(v, signs[0]) for v in f), n_iter)


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of known vectors V, iterates X and directions P with their products, and residuals."""

    V: Array
    AV: Array
    X: Array
    AX: Array
    P: Array
    AP: Array
    R: Array

    @classmethod
    def of(cls, V: Array) -> _Block:
        none = V[:, :0]
        return cls(V, np.zeros_like(V), none, none, none, none, none)

    def __sizeof__(self) -> int:
        return sum(each.nbytes for each in vars(self).values())

    def basis(self, W: Array) -> Array:
        return np.hstack([self.V, self.X, self.P, W])

    def products(self, AW: Array) -> Array:
        return np.hstack([self.AV, self.AX, self.AP, AW])


@dataclass(frozen=True, eq=False)
class _Gram:
    """Inner products of a basis with itself and with its products, and squares of residuals."""

    M: Array
    H: Array
    squares: Array
    sizes: tuple[int, int, int]

    @classmethod
    def of(cls, block: _Block, W: Array, AW: Array) -> _Gram:
        S = block.basis(W)
        sizes = block.X.shape[1], block.P.shape[1], W.shape[1]
        return cls(S.T @ S, S.T @ block.products(AW), (block.R**2).sum(axis=0), sizes)

    @classmethod
    def sum(cls, grams: list[_Gram]) -> _Gram:
        M, H, squares = grams[0].M, grams[0].H, grams[0].squares
        for each in grams[1:]:
            M, H, squares = M + each.M, H + each.H, squares + each.squares
        return replace(grams[0], M=M, H=H, squares=squares)

    @property
    def residuals(self) -> Array:
        return np.sqrt(self.squares)


@dataclass(frozen=True, eq=False)
class _Step:
    """Coefficients of the next iterates and directions in a basis."""

    C: Array
    D: Array
    values: Array

    @classmethod
    def of(cls, gram: _Gram, t: int, size: int) -> _Step:
        scale = 1 / np.sqrt(np.maximum(np.diag(gram.M), np.finfo(float).tiny))
        M, H = (scale[:, None] * each * scale for each in (gram.M, (gram.H + gram.H.T) / 2))
        T, starts = _orthonormal(M, (t, *gram.sizes))
        T = T[:, t:]
        values, c = np.linalg.eigh(T.T @ H @ T)
        c = c[:, :size]
        d = c.copy()
        d[: starts[1] - t] = 0  # without the part along the old iterates
        if gram.sizes[0] == 0:
            d = d[:, :0]
        for _ in range(2 if d.shape[1] else 0):
            d = d - c @ (c.T @ d)
            U, s, _ = np.linalg.svd(d, full_matrices=False)
            d = U[:, s > 1e-12]
        T = scale[:, None] * T
        return cls(T @ c, T @ d, values[:size])


def _orthonormal(
    M: Array, sizes: Sequence[int], tolerance: float = 1e-9
) -> tuple[Array, list[int]]:
    """Coefficients of an orthonormal basis, group by group, and where groups end in it."""
    T, ends, at = np.empty((len(M), 0)), [], 0
    for size in sizes:
        F = np.eye(len(M))[:, at : at + size]
        for repeat in range(2 if size else 0):
            F = F - T @ (T.T @ (M @ F))
            values, U = np.linalg.eigh(F.T @ M @ F)
            kept = values > (tolerance if repeat == 0 else 0.5)
            F = F @ (U[:, kept] / np.sqrt(values[kept]))
        T = np.hstack([T, F])
        ends.append(T.shape[1])
        at += size
    return T, ends


def _converged(values: Array, residuals: Array, norm: float) -> bool:
    gaps = DEFAULT_ACCEPTANCE.finite_gaps(cluster_gaps(values, cluster_width(norm)), norm)
    allowed = DEFAULT_ACCEPTANCE.stop_angles(len(gaps), 0) * gaps
    return bool((residuals <= np.maximum(allowed, ROUNDING * norm / 2)).all())


def _active(residuals: Array, values: Array, wanted: int, norm: float) -> list[int]:
    """Columns that have not converged by far."""
    if len(residuals) == 0:
        return list(range(len(values)))
    gaps = DEFAULT_ACCEPTANCE.finite_gaps(cluster_gaps(values, cluster_width(norm)), norm)
    least = np.maximum(0.1 * DEFAULT_ACCEPTANCE.stop_angle * gaps, ROUNDING * norm / 2)
    return [int(i) for i in np.flatnonzero(residuals > least)] or [0]


def _known(problem: DistributedProblem) -> list[Any]:
    """Orthonormal known eigenvectors."""
    if problem.deflate is None:
        return persist(delayed(_nothing)(int(b - a)) for a, b in pairwise(problem.bounds))
    grams = [delayed(_inner)(part) for part in problem.deflate]
    (M,) = compute([combined(grams, sum)], "known eigenvectors")
    scale = 1 / np.sqrt(np.diag(M))
    T = scale[:, None] * _orthonormal(scale[:, None] * M * scale, (len(M),))[0]
    return persist(delayed(_times)(part, T) for part in problem.deflate)


def _columns_of(parts: list[Any]) -> int:
    return int(compute([delayed(_width)(parts[0])], "columns")[0])


def _width(V: Array) -> int:
    return V.shape[1]


def _nothing(rows: int) -> Array:
    return np.empty((rows, 0))


def _inner(V: Array) -> Array:
    return V.T @ V


def _times(V: Array, T: Array) -> Array:
    return V @ T


def _row_norms(V: Array) -> Array:
    return np.linalg.norm(V, axis=1) if V.shape[1] else np.ones(len(V))


def _start(
    V: Array, coarse: Array, columns: int, seed: int, given: Array | None, mass: Array | None
) -> Array:
    """Approximate eigenvectors, completed by random ones."""
    pieces = [coarse]
    if given is not None:
        pieces.insert(0, given if mass is None else np.sqrt(mass)[:, None] * given)
    missing = max(0, columns - sum(each.shape[1] for each in pieces))
    pieces.append(np.random.default_rng(seed).standard_normal((len(V), missing)))
    return np.hstack(pieces)


def _advanced(block: _Block, W: Array, AW: Array, step: _Step) -> _Block:
    S, AS = block.basis(W), block.products(AW)
    X, AX = S @ step.C, AS @ step.C
    return replace(block, X=X, AX=AX, P=S @ step.D, AP=AS @ step.D, R=AX - X * step.values)


def _iterates(block: _Block) -> Array:
    return block.X


def _without_iterates(block: _Block) -> _Block:
    return _Block.of(block.V)


def _squares(block: _Block) -> Array:
    return np.asarray((block.R**2).sum(axis=0))


def _vectors(block: _Block, k: int, mass: Array | None) -> Array:
    V = block.X[:, :k]
    return V if mass is None else V / np.sqrt(mass)[:, None]


def _largest(V: Array) -> Array:
    return np.abs(V).max(axis=0, initial=0.0)


def _maximum(arrays: list[Array]) -> Array:
    return np.max(arrays, axis=0)


def _signs(V: Array, largest: Array, tie: float = 1e-6) -> Array:
    """Sign of the first entry whose modulus is the largest; 0 without one."""
    reached = np.abs(V) >= (1 - tie) * largest
    if not len(V):
        return np.zeros(V.shape[1])
    first = np.argmax(reached, axis=0)
    columns = np.arange(V.shape[1])
    return np.where(reached[first, columns], np.sign(V[first, columns]), 0.0)


def _first_sign(signs: list[Array]) -> Array:
    out = signs[0]
    for each in signs[1:]:
        out = np.where(out == 0, each, out)
    return out


def _scaled(V: Array, signs: Array) -> Array:
    return V * np.where(signs == 0, 1.0, signs)
