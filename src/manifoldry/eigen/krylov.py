"""Thick-restart Lanczos iteration, and the search for eigenvectors of repeated eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from manifoldry.eigen.standard import Product, StandardProblem
from manifoldry.util.arrays import like, namespace, to_numpy
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.typing import Array

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Subspace:
    """A subspace, given by a function that draws random vectors and the projection onto it."""

    start: Callable[[], Array]
    project: Callable[[Array], Array]


# Function of the k largest Ritz values (descending) and their residuals: has it converged?
Stop = Callable[[Array, Array], bool]
# Function of the same and the number of products so far: should the iteration give up?
GiveUp = Callable[[Array, Array, int], bool]


@dataclass(frozen=True, eq=False)
class RitzPairs:
    """The k largest Ritz pairs of a Lanczos run, converged or not."""

    values: Array  # (k,), descending
    vectors: Array  # (n, k), orthonormal
    residuals: Array  # (k,)
    products: int
    converged: bool
    lowest: float  # smallest Ritz value of the whole basis


def too_small(standard: StandardProblem, k: int, smallest_order: int = 50) -> bool:
    """Whether to use a dense solver: a Krylov space for k pairs would span most of the space.

    Up to order `smallest_order` a dense solve is always cheaper than an iteration.
    """
    return standard.dimension <= max(smallest_order, 4 * k)


def blas_threads(
    standard: StandardProblem, single_thread_up_to: int = 200
) -> AbstractContextManager[None]:
    """Return a context that limits BLAS to one thread, unless A is dense.

    Up to order `single_thread_up_to` BLAS uses one thread for these products by itself.
    """
    large = standard.sparse and standard.n > single_thread_up_to
    return one_blas_thread() if large else nullcontext()


def start_block(standard: StandardProblem, columns: int, rng: np.random.Generator) -> Array:
    """Return random columns (n, columns) in the orthogonal complement of Q."""
    return standard.project(standard.placed(rng.standard_normal((standard.n, columns))))


def constrained_subspace(standard: StandardProblem, rng: np.random.Generator) -> Subspace:
    """Return the orthogonal complement of Q as a Subspace."""
    return Subspace(lambda: start_block(standard, 1, rng)[:, 0], standard.project_once)


def largest_pairs(
    operator: Product,
    k: int,
    space: Subspace,
    stop: Stop,
    *,
    basis: int,
    max_products: int,
    every: int = 1,
    give_up: GiveUp | None = None,
) -> RitzPairs:
    """Return the k largest Ritz pairs of a symmetric operator in a subspace (Wu and Simon 2000).

    The subspace need not be invariant: each product is projected onto it after it has been
    orthogonalized against the basis. Projecting before would let the component outside the
    subspace grow from step to step.

    The basis is orthogonal to rounding at every step. ARPACK's stopping criterion is relative to
    the eigenvalue; here the function `stop` gets values and residuals every `every` products and
    can compare the residuals with the gaps.
    """
    m = min(basis, operator.n - 1)
    start = space.start()
    # One row per basis vector.
    V, T = namespace(start).empty((m + 1, operator.n)), np.zeros((m, m))
    V[0] = start / _length(start)
    kept = products = 0
    while True:
        for j in range(kept, m):
            beta = _extend(operator, V, T, j, j - 1 if j > kept else 0, space)
            products += 1
            at_end = j == m - 1 or products >= max_products
            if j + 1 < k or not (at_end or (j - kept) % every == every - 1):
                continue
            theta, S = np.linalg.eigh(T[: j + 1, : j + 1])
            residuals = beta * np.abs(S[-1])
            leading, errors = theta[: -k - 1 : -1], residuals[: -k - 1 : -1]
            done = stop(leading, errors)
            give_up_now = give_up is not None and give_up(leading, errors, products)
            if done or give_up_now or products >= max_products:
                vectors = (like(S[:, : -k - 1 : -1], V).T @ V[: j + 1]).T
                return RitzPairs(leading, vectors, errors, products, done, float(theta[0]))
        kept = min(k + (m - k) // 2, m - 2) if m > k + 2 else k
        V[:kept] = like(S[:, -kept:], V).T @ V[:m]
        V[kept] = V[m]
        T[:] = 0
        T[range(kept), range(kept)] = theta[-kept:]


def _extend(
    operator: Product,
    V: Array,
    T: Array,
    j: int,
    first: int,
    space: Subspace,
    cancellation: float = 1e-3,
) -> float:
    """Store the next basis vector in V[j + 1] and row j of T; return the norm before scaling.

    If that norm is below `cancellation` times the norm of the product, digits were lost and the
    vector is orthogonalized once more.
    """
    w = operator @ V[j]
    scale = max(_length(w), float(np.abs(T).max()))
    # Most of w lies along V[first:], its two predecessors (after a restart, all vectors that were
    # kept). After removing that part, one orthogonalization against the whole basis suffices.
    h = np.zeros(j + 1)
    for i in (first, 0):
        c = V[i : j + 1] @ w
        w -= c @ V[i : j + 1]
        h[i:] += to_numpy(c)
    w = space.project(w)
    beta = _length(w)
    if beta < cancellation * scale:
        w = space.project(w - (V[: j + 1] @ w) @ V[: j + 1])
        beta = _length(w)
    T[j, : j + 1] = T[: j + 1, j] = h
    if beta <= 10 * _EPS * scale:
        # The basis spans an invariant subspace: continue with a random orthogonal vector.
        w, beta = space.start(), 0.0
        for _ in range(3):
            w -= (V[: j + 1] @ w) @ V[: j + 1]
            w /= _length(w)
        V[j + 1] = w
    else:
        V[j + 1] = w / beta
    return beta


def _length(x: Array) -> float:
    return float(namespace(x).linalg.norm(x))


def deflated(operator: Product, V: Array, shift: float = 0.0) -> Product:
    """Return operator − shift·I deflated by the eigenvectors V, whose eigenvalues become 0."""

    def product(X: Array) -> Array:
        X = X - V @ (V.T @ X)
        Y = operator @ X
        if shift:
            Y = Y - shift * X
        return Y - V @ (V.T @ Y)

    return Product(operator.n, product)


def _without(V: Array, start: Callable[[], Array]) -> Array:
    x = start()
    return x - V @ (V.T @ x)


def with_product_counter(operator: Product) -> tuple[Product, list[int]]:
    """Return the operator and a list whose only entry counts the products so far."""
    count = [0]

    def product(X: Array) -> Array:
        count[0] += 1
        return operator @ X

    return Product(operator.n, product), count


def _search_finished(
    bound: float, top: float, products: list[int], n: int, theta: Array, r: Array
) -> bool:
    """Whether the largest eigenvalue has converged or is certainly below `bound`."""
    below = theta[0] + 2 * r[0] < bound and _unlikely_missed(theta[0], bound, products[0], n)
    return bool(below or r[0] <= max(1e-9 * abs(theta[0] - bound), 1e-14 * top))


def _unlikely_missed(
    theta: float, bound: float, products: int, n: int, probability: float = 1e-3
) -> bool:
    """Whether an eigenvalue at `bound` would have been found after this many products.

    A small residual only shows that some eigenvalue is near theta. The number of products bounds
    the distance from theta to the largest eigenvalue, except with a probability over random start
    vectors of at most `probability` (Kuczynski and Wozniakowski 1992).
    """
    gap = max(0.0, 1 - theta / bound) if bound > 0 else 0.0
    return bool(1.648 * np.sqrt(n) * np.exp(-(2 * products - 1) * np.sqrt(gap)) < probability)


def with_full_multiplicity(
    operator: Product,
    run: RitzPairs,
    k: int,
    space: Subspace,
    *,
    basis: int,
    max_products: int,
) -> tuple[Array, Array]:
    """Return the vectors V of a run and missing ones of its first k − 1 eigenvalues, with values.

    Both are in descending order of the values.

    A Krylov space from one start vector contains one vector per eigenspace. A second run from
    another start vector, with V deflated, finds a further eigenvector as its largest Ritz pair. It
    stops early if there is none: when its largest Ritz value plus residual is below the last
    wanted eigenvalue, after enough products that a missed eigenvector is unlikely. Column k of V
    and those after it are not wanted; column k only measures the gap. The operator must be
    positive definite, so that the zero eigenvalues of the deflated vectors are never the largest.
    The bound of `_unlikely_missed` decreases with the gap relative to the whole spectrum, so the
    operator is shifted towards its lowest eigenvalue, as estimated by `run`.
    """
    V, values = run.vectors, run.values
    for _ in range(2 * k):
        # The estimate is not a bound: a tenth of the spectrum is left between it and the shift.
        shift = max(0.0, run.lowest - 0.1 * (values[0] - run.lowest))
        bound, top = values[max(k - 1, 1) - 1] - shift, values[0]
        rest, products = with_product_counter(deflated(operator, V, shift))

        decided = partial(_search_finished, bound, top, products, len(V))
        outside = Subspace(partial(_without, V, space.start), space.project)
        found = largest_pairs(
            rest, 1, outside, decided, basis=basis, max_products=max_products, every=2
        )
        if found.values[0] + 2 * found.residuals[0] < bound:
            break
        if not found.converged and found.values[0] < bound:
            break  # no eigenvalue at the bound was found
        extra, xp = found.vectors - V @ (V.T @ found.vectors), namespace(V)
        V = xp.linalg.qr(xp.hstack([V, extra / xp.linalg.norm(extra)]))[0]
        values, C = np.linalg.eigh(to_numpy(V.T @ (operator @ V)))
        V, values = V @ like(C[:, ::-1], V), values[::-1]
    return V, values
