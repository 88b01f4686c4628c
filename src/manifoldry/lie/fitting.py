"""Least-squares fit of generators and amounts: to first order, then with the exponential."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize

from manifoldry.lie.amounts import AmountSearch
from manifoldry.lie.pairs import Pairs, gram_matrix, normalized
from manifoldry.util.typing import Array

Report: TypeAlias = Callable[[str], None]
"""Takes a line about the progress of a fit."""


def no_report(text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class LieFit:
    """Generators, amounts of all pairs, and the objective after each iteration."""

    G: Array
    amounts: Array
    trace: Array
    converged: bool


def alternate(
    pairs: Pairs,
    n_generators: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    report: Report = no_report,
) -> LieFit:
    """Minimize the first-order objective over amounts and generators in turn, monotonically."""
    amounts = annealed_amounts(pairs, initial_amounts(pairs, n_generators, rng))
    G, amounts = normalized(best_generators(pairs, amounts), amounts)
    trace = [pairs.first_order(G, amounts)]
    for step in range(1, max_iter + 1):
        amounts = best_amounts(pairs, G)
        G, amounts = normalized(best_generators(pairs, amounts), amounts)
        trace.append(pairs.first_order(G, amounts))
        report(f"first order, step {step} of at most {max_iter}; value {trace[-1]:.4g}")
        if trace[-2] - trace[-1] <= tol * trace[-2]:
            return LieFit(G, amounts, np.array(trace), True)
    return LieFit(G, amounts, np.array(trace), False)


def best_amounts(pairs: Pairs, G: Array) -> Array:
    """Exact minimizer over amounts: a small least-squares problem for each pair."""
    directions = np.stack([pairs.X @ each.T for each in G])  # (n_generators, n_pairs, r)
    normal = np.einsum("inr,jnr->nij", directions, directions) + pairs.penalty * gram_matrix(G)
    right = np.einsum("inr,nr->ni", directions, pairs.Y - pairs.X)
    return np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0])


def best_generators(pairs: Pairs, amounts: Array, rounding: float = 1e-13) -> Array:
    """Exact minimizer over generators: ridge regression of y − x on all αᵢx jointly."""
    n, q = amounts.shape
    r = pairs.X.shape[1]
    Z = (amounts[:, :, None] * pairs.X[:, None, :]).reshape(n, q * r)
    normal = Z.T @ Z + np.kron(pairs.penalty * (amounts.T @ amounts), np.eye(r))
    # Keeps the matrix definite if all amounts of a generator are zero; it then stays zero.
    normal[np.diag_indices_from(normal)] += rounding * np.trace(normal) or 1.0
    factor = cho_factor(normal, overwrite_a=True)
    stacked = cho_solve(factor, Z.T @ (pairs.Y - pairs.X))  # (q·r, r): the Gᵢᵀ, stacked
    return np.ascontiguousarray(stacked.reshape(q, r, r).transpose(0, 2, 1))


def initial_amounts(
    pairs: Pairs,
    n_generators: int,
    rng: np.random.Generator,
    *,
    power_steps: int = 15,
    oversampling: int = 4,
) -> Array:
    """Leading left singular vectors of the rows (y − x)xᵀ with whitened x (method of moments).

    With white x, the rows are αₙG plus terms that average out, so G is their leading direction.
    Subspace iteration with `oversampling` additional vectors converges faster.
    """
    change, X = pairs.Y - pairs.X, whitened(pairs)
    r = X.shape[1]
    V = rng.standard_normal((min(n_generators + oversampling, r * r), r, r))
    for _ in range(power_steps):
        amounts = np.column_stack([((X @ each.T) * change).sum(axis=1) for each in V])
        amounts = np.linalg.qr(amounts)[0]
        V = np.stack([(change * column[:, None]).T @ X for column in amounts.T])
    vectors = eigh(gram_matrix(V))[1]
    return np.asarray(amounts @ vectors[:, ::-1][:, :n_generators])


def annealed_amounts(
    pairs: Pairs,
    amounts: Array,
    penalties: tuple[float, ...] = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001),
    sweeps: int = 10,
) -> Array:
    """Amounts after `sweeps` alternations at each of a decreasing sequence of relative penalties.

    With few pairs, the method of moments is inaccurate, and the alternation can converge to a
    generator that explains a single pair. A strong penalty favors what many pairs share. Starting
    from penalty 30, translation of 20 pixels was found from 40 pairs in 20 of 20 samples, starting
    from 1 in 16 of 20, without annealing in 4 of 8.
    """
    unit = float((pairs.X**2).mean())
    for fraction in penalties:
        strict = replace(pairs, penalty=max(fraction * unit, pairs.penalty))
        for _ in range(sweeps):
            G, _ = normalized(best_generators(strict, amounts), amounts)
            amounts = best_amounts(strict, G)
    return amounts


def whitened(pairs: Pairs) -> Array:
    """First rows of the pairs, whitened; the penalty limits the scaling of small variances."""
    values, V = eigh(pairs.X.T @ pairs.X / len(pairs.X))
    return pairs.X @ (V / np.sqrt(np.maximum(values, 0) + pairs.penalty))


_OVERFLOW_VALUE = 1e30  # objective if the exponential overflows


Start: TypeAlias = tuple[Array, Array]


@np.errstate(over="ignore", invalid="ignore")  # amounts that overflow are rejected
def refine(
    pairs: Pairs,
    starts: list[Start],
    max_iter: int,
    tol: float,
    report: Report = no_report,
    *,
    rounds: int = 10,
    margin: float = 1.25,
) -> LieFit:
    """Search all amounts, then minimize over generators and amounts jointly by L-BFGS; repeat.

    After each minimization, amounts up to `margin` times the largest are searched again.
    """
    G, amounts = min(
        (_search_amounts(pairs, *each) for each in starts), key=lambda s: pairs.value(*s)
    )
    trace, converged = [pairs.value(G, amounts)], False
    for number in range(1, rounds + 1):
        stage = f"exponential, round {number} of at most {rounds}"
        G, amounts, converged = descend(pairs, G, amounts, max_iter, tol, stage, report)
        G, amounts = normalized(G, amounts)
        max_amounts = margin * np.abs(amounts).max(axis=0)
        amounts = AmountSearch(G, pairs.penalty).improve(pairs.X, pairs.Y, max_amounts, amounts)
        trace.append(pairs.value(G, amounts))
        if trace[-2] - trace[-1] <= tol * trace[-2]:
            return LieFit(*normalized(G, amounts), np.array(trace), converged)
    return LieFit(*normalized(G, amounts), np.array(trace), False)


def _search_amounts(
    pairs: Pairs, G: Array, amounts: Array, factor: float = 2.0, quantile: float = 0.9
) -> tuple[Array, Array]:
    """The same generators, with new amounts up to `factor` times a quantile of the given ones.

    The quantile is used since first-order amounts of single pairs can be far too large, and larger
    amounts include full rotations.
    """
    max_amounts = factor * np.quantile(np.abs(amounts), quantile, axis=0)
    return G, AmountSearch(G, pairs.penalty).find(pairs.X, pairs.Y, max_amounts)


def midpoint_start(
    pairs: Pairs,
    n_generators: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    report: Report = no_report,
    *,
    fraction: float = 0.25,
    per_feature: int = 3,
) -> tuple[Array, Array]:
    """Generators from y − x ≈ A(x + y)/2, fitted to the pairs that moved least.

    This gives 2·tanh(A/2) in place of A, correct to second order. In contrast to a fit from x,
    large rotations do not look like contractions, which make first-order fits converge to −G². The
    pairs used are a fraction of all, but at least `per_feature` per feature.
    """
    length = np.linalg.norm(pairs.X + pairs.Y, axis=1)
    size = np.linalg.norm(pairs.Y - pairs.X, axis=1) / np.where(length > 0, length, 1.0)
    n_used = max(int(fraction * len(size)), per_feature * pairs.X.shape[1])
    smallest = np.argsort(np.where(size > 0, size, np.inf), kind="stable")[:n_used]
    middle = midpoints(pairs)
    subset = Pairs(middle.X[smallest], middle.Y[smallest], pairs.penalty)
    G = alternate(subset, n_generators, max_iter, tol, rng, report).G
    return G, best_amounts(middle, G)


def midpoints(pairs: Pairs) -> Pairs:
    """The same differences y − x, with x replaced by the midpoint of each pair."""
    middle = (pairs.X + pairs.Y) / 2
    return Pairs(middle, middle + (pairs.Y - pairs.X), pairs.penalty)


def descend(
    pairs: Pairs,
    G: Array,
    amounts: Array,
    max_iter: int,
    tol: float,
    stage: str = "",
    report: Report = no_report,
) -> tuple[Array, Array, bool]:
    """Minimize over generators and amounts jointly by preconditioned L-BFGS."""
    preconditioner, unit = Preconditioner.of(pairs, G, amounts), pairs.value(G, amounts) or 1.0
    steps = count(1)

    def objective(packed: Array) -> tuple[float, Array]:
        value, by_G, by_amounts = pairs.gradient(*preconditioner.unpack(packed))
        if not np.isfinite(value):
            return _OVERFLOW_VALUE, np.zeros_like(packed)
        return value / unit, preconditioner.gradient_of(by_G, by_amounts) / unit

    options: dict[str, Any] = {"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 20}
    found = minimize(
        objective,
        preconditioner.pack(G, amounts),
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=lambda _: report(f"{stage}, step {next(steps)} of at most {max_iter}"),
    )
    return *preconditioner.unpack(found.x), bool(found.nit < max_iter)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Change of variables after which the Hessian is close to the identity, to first order.

    Gᵢ is multiplied by the root of the second moment of αᵢx, and an amount by the distance that its
    generator moves its row.
    """

    roots: Array  # (n_generators, r, r)
    inverse: Array
    amount_scales: Array  # (n_pairs, n_generators)

    @classmethod
    def of(cls, pairs: Pairs, G: Array, amounts: Array) -> Preconditioner:
        """Preconditioner at the given generators and amounts."""
        middle = (pairs.X + pairs.Y) / 2
        roots, inverse = [], []
        for column in amounts.T:
            Z = column[:, None] * middle
            values, V = eigh(Z.T @ Z + pairs.penalty * (column @ column) * np.eye(Z.shape[1]))
            size = np.sqrt(np.maximum(values, 1e-12 * values[-1]) / pairs.total_change)
            size[size == 0] = 1.0  # all amounts of this generator are zero
            roots.append((V * size) @ V.T)
            inverse.append((V / size) @ V.T)
        moves = [np.linalg.norm(middle @ each.T, axis=1) for each in G]
        amount_scales = np.stack(moves, axis=1) / np.sqrt(pairs.total_change)
        amount_scales[amount_scales == 0] = 1.0
        return cls(np.array(roots), np.array(inverse), amount_scales)

    def pack(self, G: Array, amounts: Array) -> Array:
        """All variables in one vector."""
        return np.concatenate([(G @ self.roots).ravel(), (amounts * self.amount_scales).ravel()])

    def unpack(self, packed: Array) -> tuple[Array, Array]:
        """Generators and amounts."""
        cut = self.roots.size
        H, scaled = packed[:cut].reshape(self.roots.shape), packed[cut:]
        return H @ self.inverse, scaled.reshape(self.amount_scales.shape) / self.amount_scales

    def gradient_of(self, by_G: Array, by_amounts: Array) -> Array:
        """Gradient by the packed variables."""
        return np.concatenate(
            [(by_G @ self.inverse).ravel(), (by_amounts / self.amount_scales).ravel()]
        )
