"""Sums over all pairs of points on a map: the one place where repulsion costs n².

A point exerts κ(d²) on another at distance d. Three kinds of sums over the sources m of a target n,
with κ = exp(−d²), or Student's κ = u^{−(α+1)/2} where u = 1 + d²/α, and u = 1 for the Gaussian:

- mass, Σₘ aₘ κ;
- force, Σₘ aₘ κ·u⁻¹·(yₙ − yₘ), the steps weighted as in a gradient;
- second moments, Σₘ aₘ κ·u⁻²·(yₙᵢ − yₘᵢ)² for every coordinate i, as in a Hessian's diagonal.

Small sums run in numpy, larger ones in compiled loops.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

_LARGE = 5e5  # pairs from which 500 calls are worth a first compilation, some 1.5 s
_COMPILED = 3  # coordinates up to which there are compiled loops
_BLOCK, _NUMPY_BLOCK = 2**20, 2**16  # pairs that a thread takes at a time, compiled and in numpy


class PairSums(NamedTuple):
    """Of every target: sums over the sources other than itself."""

    mass: Array
    """Σₘ aₘ κ(d²), (n_targets,), in double precision."""
    force: Array
    """Σₘ aₘ κ′(d²)·(yₙ − yₘ), (n_targets, d); κ′ = κ, for Student's kernel κ·(1 + d²/α)⁻¹."""


def gaussian_sums(
    targets: Array, sources: Array | None = None, charges: Array | None = None
) -> PairSums:
    """Sums with κ = exp(−d²); without `sources` the targets act on each other, not on themselves.

    Parameters
    ----------
    targets, sources : arrays of shape (n_targets, d) and (n_sources, d)
    charges : array of shape (n_sources,), default=None
        The aₘ; one by default.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_sums(np.array([[0.0], [1.0], [1.0]])).mass.round(3)
    array([0.736, 1.368, 1.368])
    """
    return PairSums(*_sums(targets, sources, charges, None, 1))


def student_sums(
    targets: Array,
    sources: Array | None = None,
    charges: Array | None = None,
    dof: float = 1.0,
) -> PairSums:
    """Sums with κ = (1 + d²/α)^{−(α+1)/2}, α being the degrees of freedom `dof`.

    Examples
    --------
    >>> import numpy as np
    >>> student_sums(np.array([[0.0], [1.0], [1.0]])).mass
    array([1. , 1.5, 1.5])
    """
    return PairSums(*_sums(targets, sources, charges, dof, 1))


def weighted_gaussian_sums(Y: Array, W: Array) -> PairSums:
    """Sums with Wₙₘ·exp(−d²), W a dense symmetric matrix whose diagonal does not count."""
    return PairSums(*_sums(Y, None, _by_rows(W), None, 1))


def gaussian_moments(
    targets: Array, sources: Array | None = None, charges: Array | None = None
) -> Array:
    """Second moments Σₘ aₘ exp(−d²)·(yₙᵢ − yₘᵢ)², (n_targets, d); arguments of `gaussian_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_moments(np.array([[0.0], [1.0], [1.0]])).round(3)
    array([[0.736],
           [0.368],
           [0.368]])
    """
    return _sums(targets, sources, charges, None, 2)[1]


def student_moments(
    targets: Array,
    sources: Array | None = None,
    charges: Array | None = None,
    dof: float = 1.0,
) -> Array:
    """Second moments Σₘ aₘ κ·(1 + d²/α)⁻²·(yₙᵢ − yₘᵢ)², (n_targets, d), with Student's κ.

    The weight is that of κ″, up to a factor: the part of a Hessian's diagonal that is positive
    where points repel each other.
    """
    return _sums(targets, sources, charges, dof, 2)[1]


def weighted_gaussian_moments(Y: Array, W: Array) -> Array:
    """Second moments with Wₙₘ·exp(−d²), as in `weighted_gaussian_sums`."""
    return _sums(Y, None, _by_rows(W), None, 2)[1]


def _sums(
    targets: Array, sources: Array | None, weights: Array | None, dof: float | None, order: int
) -> tuple[Array, Array]:
    """Mass of every target, and moments of the given order."""
    T = _columns(targets)
    S = T if sources is None else _columns(sources, T.dtype)
    A = None if weights is None else _rows(weights, T.dtype)
    _check_shapes(T, S, A)
    mass, moments = np.empty(T.shape[1]), np.empty(T.shape[::-1], T.dtype)
    large = T.shape[1] * S.shape[1] > _LARGE and len(T) <= _COMPILED
    how, block = (_compiled, _BLOCK) if large else (_in_numpy, _NUMPY_BLOCK)
    fill = how(T, S, A, sources is None, dof, order, mass, moments)
    map_threads(fill, row_blocks(T.shape[1], S.shape[1], block))
    return mass, moments


def _columns(Y: Array, dtype: np.dtype | None = None) -> Array:
    """Coordinates (d, n), each in one piece, in single precision if they were, else in double."""
    Y = np.asarray(Y)
    if dtype is None:
        dtype = np.dtype(np.float32 if Y.dtype == np.float32 else np.float64)
    return np.array(Y.T, dtype=dtype, order="C")


def _rows(weights: Array, dtype: np.dtype) -> Array:
    """Weights (n, n), or charges (1, n), always of one type for the compiler: read-only rows."""
    A = np.atleast_2d(weights)
    A = A if A.dtype in (np.float32, np.float64) else A.astype(dtype)
    A = np.require(A, requirements=["C", "A"]).view()
    A.flags.writeable = False
    return A


def _by_rows(W: Array) -> Array:
    """A symmetric matrix by rows, without a copy where it is stored by columns."""
    W = np.asarray(W)
    return W.T if W.flags.f_contiguous else W


def _check_shapes(T: Array, S: Array, A: Array | None) -> None:
    """Compiled loops read what they are told is there."""
    if len(T) != len(S):
        raise ValueError(f"targets have {len(T)} coordinates and sources {len(S)}; must be equal")
    (m, n) = (T.shape[1], S.shape[1])
    if A is not None and A.shape not in ((1, n), (m, n)):
        raise ValueError(f"weights of shape {A.shape} must be ({n},), or ({m}, {n}) for all pairs")


def _compiled(
    T: Array, S: Array, A: Array | None, own: bool, dof: float | None, order: int,
    mass: Array, moments: Array,
) -> Callable[[slice], None]:  # fmt: skip
    """Fills blocks of rows by compiled loops."""
    from manifoldry.objectives.kernels import pair_sums

    loop = pair_sums(len(T), order)
    rate = None if dof is None else T.dtype.type(1 / dof)
    power = None if dof in (None, 1) else (dof + 1) / 2

    def fill(block: slice) -> None:
        loop(T, S, A, own, rate, power, mass, moments, block.start, block.stop)

    return fill


def _in_numpy(
    T: Array, S: Array, A: Array | None, own: bool, dof: float | None, order: int,
    mass: Array, moments: Array,
) -> Callable[[slice], None]:  # fmt: skip
    """Fills blocks of rows by numpy; the reference."""

    def fill(block: slice) -> None:
        steps = T[:, block, None] - S[:, None]  # (d, n_block, n_sources)
        with np.errstate(over="ignore"):  # infinitely far is far enough
            D = np.einsum("cij,cij->ij", steps, steps)
        u = 1 if dof is None else 1 + D / dof
        K = np.exp(-D) if dof is None else u ** (-(dof + 1) / 2)
        if A is not None:
            K *= A[block] if len(A) > 1 else A
        if own:
            K[np.arange(len(K)), np.arange(T.shape[1])[block]] = 0
        mass[block] = K.sum(axis=1, dtype=float)
        for _ in range(order):
            K /= u
        for c, step in enumerate(steps):
            moments[block, c] = np.einsum("ij,ij->i", K if order == 1 else K * step, step)

    return fill
