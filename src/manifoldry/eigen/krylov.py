"""Thick-restart Lanczos behind one door: start vector, stopping rule, bound on products."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

from manifoldry.eigen.standard import StandardProblem
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Subspace:
    """A subspace to search in: random directions of it, and the projection onto it."""

    start: Callable[[], Array]
    project: Callable[[Array], Array]


# Given the k leading Ritz values, falling, and their residuals: may the iteration stop?
Stop = Callable[[Array, Array], bool]
# Given the same and the number of products so far: is it hopeless?
GiveUp = Callable[[Array, Array, int], bool]


@dataclass(frozen=True, eq=False)
class RitzPairs:
    """Leading Ritz pairs of a run, whether or not they have converged."""

    values: Array  # (k,), falling
    vectors: Array  # (n, k), orthonormal
    residuals: Array  # (k,)
    products: int
    converged: bool
    lowest: float  # smallest Ritz value of the whole basis


def too_small(standard: StandardProblem, k: int, smallest_order: int = 50) -> bool:
    """Whether an iteration for k pairs would span most of the space: then it is solved densely.

    Up to `smallest_order` a dense solve is cheaper than any iteration.
    """
    return standard.dimension <= max(smallest_order, 4 * k)


def blas_threads(
    standard: StandardProblem, single_thread_up_to: int = 200
) -> AbstractContextManager[None]:
    """Return the BLAS threads for an iteration on single vectors: one, unless A is dense.

    Forty vectors no longer than `single_thread_up_to` are left to one thread by BLAS itself.
    """
    large = standard.sparse and standard.n > single_thread_up_to
    return one_blas_thread() if large else nullcontext()


def start_block(standard: StandardProblem, columns: int, rng: np.random.Generator) -> Array:
    """Return random columns (n, columns) inside the complement of Q."""
    return standard.project(rng.standard_normal((standard.n, columns)))


def constrained_subspace(standard: StandardProblem, rng: np.random.Generator) -> Subspace:
    """Return the complement of Q as a space to search in."""
    Q = standard.Q

    def project(x: Array) -> Array:
        return x - Q @ (Q.T @ x) if Q.shape[1] else x

    return Subspace(lambda: start_block(standard, 1, rng)[:, 0], project)


def largest_pairs(
    operator: LinearOperator,
    k: int,
    space: Subspace,
    stop: Stop,
    *,
    basis: int,
    max_products: int,
    every: int = 1,
    give_up: GiveUp | None = None,
) -> RitzPairs:
    """Return k leading Ritz pairs of a symmetric operator in a subspace (Wu and Simon 2000).

    The operator may lead out of the subspace: what it gives is projected, once, when all else
    has been taken out of it. Earlier would let the part outside grow from step to step.

    The basis is orthogonal to rounding at every step. ARPACK's stopping rule is relative to the
    eigenvalue; here the caller's rule sees values and residuals every `every` products, and can
    weigh one against the gaps of the others.
    """
    m = min(basis, operator.shape[0] - 1)
    V, T = np.empty((m + 1, operator.shape[0])), np.zeros((m, m))  # one row per basis vector
    V[0] = space.start()
    V[0] /= np.linalg.norm(V[0])
    kept = products = 0
    while True:
        for j in range(kept, m):
            beta = _extend(operator, V, T, j, j - 1 if j > kept else 0, space)
            products += 1
            at_end = j == m - 1 or products >= max_products
            if j + 1 < k or not (at_end or (j - kept) % every == every - 1):
                continue
            theta, S = eigh(T[: j + 1, : j + 1], check_finite=False)
            residuals = beta * np.abs(S[-1])
            leading, errors = theta[: -k - 1 : -1], residuals[: -k - 1 : -1]
            done = stop(leading, errors)
            give_up_now = give_up is not None and give_up(leading, errors, products)
            if done or give_up_now or products >= max_products:
                vectors = (S[:, : -k - 1 : -1].T @ V[: j + 1]).T
                return RitzPairs(leading, vectors, errors, products, done, float(theta[0]))
        kept = min(k + (m - k) // 2, m - 2) if m > k + 2 else k
        V[:kept] = S[:, -kept:].T @ V[:m]
        V[kept] = V[m]
        T[:] = 0
        T[range(kept), range(kept)] = theta[-kept:]


def _extend(
    operator: LinearOperator,
    V: Array,
    T: Array,
    j: int,
    first: int,
    space: Subspace,
    cancellation: float = 1e-3,
) -> float:
    """Put the next direction into V[j + 1] and row j into T; return its length.

    A direction shorter than the fraction `cancellation` of the product has lost digits to cancellation,
    and takes one more sweep.
    """
    w = operator @ V[j]
    scale = max(float(np.linalg.norm(w)), float(np.abs(T).max()))
    # The bulk of w lies along V[first:], its two predecessors (after a restart, all that was
    # kept): with that gone, one sweep over the whole basis is as good as two.
    h = np.zeros(j + 1)
    for i in (first, 0):
        c = V[i : j + 1] @ w
        w -= c @ V[i : j + 1]
        h[i:] += c
    w = space.project(w)
    beta = float(np.linalg.norm(w))
    if beta < cancellation * scale:
        w = space.project(w - (V[: j + 1] @ w) @ V[: j + 1])
        beta = float(np.linalg.norm(w))
    T[j, : j + 1] = T[: j + 1, j] = h
    if beta <= 10 * _EPS * scale:
        # An invariant subspace: go on in a direction that it lacks.
        w, beta = space.start(), 0.0
        for _ in range(3):
            w -= (V[: j + 1] @ w) @ V[: j + 1]
            w /= np.linalg.norm(w)
        V[j + 1] = w
    else:
        V[j + 1] = w / beta
    return beta


def locked(operator: LinearOperator, V: Array) -> LinearOperator:
    """Return the operator with the eigenvectors V taken out (their eigenvalue becomes 0)."""

    def product(X: Array) -> Array:
        Y = operator @ (X - V @ (V.T @ X))
        return Y - V @ (V.T @ Y)

    return LinearOperator(operator.shape, matvec=product, matmat=product, dtype=np.float64)


def _without(V: Array, start: Callable[[], Array]) -> Array:
    x = start()
    return x - V @ (V.T @ x)


def counted(operator: LinearOperator) -> tuple[LinearOperator, list[int]]:
    """Return the operator and, as its only entry, a list's running count of products."""
    count = [0]

    def product(X: Array) -> Array:
        count[0] += 1
        return operator @ X

    return LinearOperator(operator.shape, matvec=product, dtype=np.float64), count


def _search_finished(
    bound: float, top: float, products: list[int], n: int, theta: Array, r: Array
) -> bool:
    """Whether the rest has nothing at the bound or above, or its top has converged."""
    below = theta[0] + 2 * r[0] < bound and _unlikely_missed(theta[0], bound, products[0], n)
    return bool(below or r[0] <= max(1e-9 * abs(theta[0] - bound), 1e-14 * top))


def _unlikely_missed(
    theta: float, bound: float, products: int, n: int, probability: float = 1e-3
) -> bool:
    """Whether an eigenvalue at `bound` can hardly have hidden from that many products.

    A small residual only says that some eigenvalue is near theta. That the top one is not far
    above follows from the number of products, with all but the probability `probability` over
    random starts (Kuczynski and Wozniakowski 1992).
    """
    gap = max(0.0, 1 - theta / bound) if bound > 0 else 0.0
    return bool(1.648 * np.sqrt(n) * np.exp(-(2 * products - 1) * np.sqrt(gap)) < probability)


def with_full_multiplicity(
    operator: LinearOperator,
    V: Array,
    space: Subspace,
    *,
    basis: int,
    max_products: int,
) -> Array:
    """Return V together with eigenvectors of larger eigenvalues that V lacks.

    A Krylov space of one start vector holds one vector per eigenspace. A run on the rest of the
    space, from another start, sees a further copy at its very top, and knows early if there is
    none: as soon as its top is farther below the last wanted pair than its residual, after so
    many products that a copy can hardly have hidden from them. The last
    column of V is not wanted, it only measures a gap. The operator must be positive, so that
    what is locked cannot pass for a top eigenvalue.
    """
    k = V.shape[1]
    for _ in range(2 * k):
        V = np.linalg.qr(V)[0]
        values = np.linalg.eigvalsh(V.T @ (operator @ V))
        bound, top = values[-max(k - 1, 1)], values[-1]

        rest, products = counted(locked(operator, V))

        decided = partial(_search_finished, bound, top, products, len(V))
        outside = Subspace(partial(_without, V, space.start), space.project)
        found = largest_pairs(
            rest, 1, outside, decided, basis=basis, max_products=max_products, every=2
        )
        if found.values[0] + 2 * found.residuals[0] < bound:
            break
        if not found.converged and found.values[0] < bound:
            break  # nothing stands out of the rest
        extra = found.vectors - V @ (V.T @ found.vectors)
        V = np.hstack([V, extra / np.linalg.norm(extra)])
    return V
