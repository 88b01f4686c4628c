"""Generators and amounts with the true exponential, from a start that holds to first order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from manifoldry.lie.alternation import Solution, alternate, best_amounts
from manifoldry.lie.amounts import AmountSearch
from manifoldry.lie.pairs import Pairs, normalised
from manifoldry.util.typing import Array

_REFUSED = 1e30  # value of operators whose exponential overflows


Start: TypeAlias = tuple[Array, Array]


@np.errstate(over="ignore", invalid="ignore")  # amounts that overflow are tried, and not taken
def refine(
    pairs: Pairs,
    starts: list[Start],
    max_iter: int,
    tol: float,
    *,
    rounds: int = 10,
    margin: float = 1.25,
) -> Solution:
    """Search all amounts, then descend in generators and amounts together; repeat.

    When all pairs have found their amounts, others are looked for `margin` times as far out.
    """
    G, amounts = min((_searched(pairs, *each) for each in starts), key=lambda s: pairs.value(*s))
    trace, converged = [pairs.value(G, amounts)], False
    for _ in range(rounds):
        G, amounts, converged = descend(pairs, G, amounts, max_iter, tol)
        G, amounts = normalised(G, amounts)
        reach = margin * np.abs(amounts).max(axis=0)
        amounts = AmountSearch(G, pairs.penalty).improve(pairs.X, pairs.Y, reach, amounts)
        trace.append(pairs.value(G, amounts))
        if trace[-2] - trace[-1] <= tol * trace[-2]:
            return Solution(*normalised(G, amounts), np.array(trace), converged)
    return Solution(*normalised(G, amounts), np.array(trace), False)


def _searched(
    pairs: Pairs, G: Array, amounts: Array, beyond: float = 2.0, most: float = 0.9
) -> tuple[Array, Array]:
    """The same generators with amounts of all pairs looked for anew, farther out than so far.

    That is this many times as far as the share `most` of them is: first-order amounts of single
    pairs can be far too large, and beyond the true ones lie those that turn full circle.
    """
    reach = beyond * np.quantile(np.abs(amounts), most, axis=0)
    return G, AmountSearch(G, pairs.penalty).find(pairs.X, pairs.Y, reach)


def midpoint_start(
    pairs: Pairs,
    n_generators: int,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    *,
    share: float = 0.25,
    per_feature: int = 3,
) -> tuple[Array, Array]:
    """Generators from y − x ≈ A(x + y)/2, learned on the pairs that moved, but least.

    That is 2·tanh(A/2) in place of A: right to second order, and what turns does not look like
    what shrinks, as it does from x, where large turns make first-order fits settle on −G². Those
    are a share of all pairs, and at least so many per feature.
    """
    length = np.linalg.norm(pairs.X + pairs.Y, axis=1)
    size = np.linalg.norm(pairs.Y - pairs.X, axis=1) / np.where(length > 0, length, 1.0)
    count = max(int(share * len(size)), per_feature * pairs.X.shape[1])
    least = np.argsort(np.where(size > 0, size, np.inf), kind="stable")[:count]
    middle = midpoints(pairs)
    some = Pairs(middle.X[least], middle.Y[least], pairs.penalty)
    G = alternate(some, n_generators, max_iter, tol, rng).G
    return G, best_amounts(middle, G)


def midpoints(pairs: Pairs) -> Pairs:
    """The same changes, seen from the middle of each pair."""
    middle = (pairs.X + pairs.Y) / 2
    return Pairs(middle, middle + (pairs.Y - pairs.X), pairs.penalty)


def descend(
    pairs: Pairs, G: Array, amounts: Array, max_iter: int, tol: float
) -> tuple[Array, Array, bool]:
    """L-BFGS in generators and amounts, in units in which all of them matter alike."""
    units, unit = Units.of(pairs, G, amounts), pairs.value(G, amounts) or 1.0

    def objective(packed: Array) -> tuple[float, Array]:
        value, by_G, by_amounts = pairs.gradient(*units.unpack(packed))
        if not np.isfinite(value):
            return _REFUSED, np.zeros_like(packed)
        return value / unit, units.pull(by_G, by_amounts) / unit

    options: dict[str, Any] = {"maxiter": max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 20}
    found = minimize(
        objective, units.pack(G, amounts), jac=True, method="L-BFGS-B", options=options
    )
    return *units.unpack(found.x), bool(found.nit < max_iter)


@dataclass(frozen=True, eq=False)
class Units:
    """A change of variables after which the curvature is near the identity to first order.

    Generators act on rows: Gᵢ is multiplied by the root of the second moment of αᵢx; an amount is
    multiplied by how far its generator moves its row.
    """

    roots: Array  # (n_generators, r, r)
    inverse: Array
    lengths: Array  # (n_pairs, n_generators)

    @classmethod
    def of(cls, pairs: Pairs, G: Array, amounts: Array) -> Units:
        """Units for descending from here."""
        middle = (pairs.X + pairs.Y) / 2
        roots, inverse = [], []
        for column in amounts.T:
            Z = column[:, None] * middle
            values, V = eigh(Z.T @ Z + pairs.penalty * (column @ column) * np.eye(Z.shape[1]))
            size = np.sqrt(np.maximum(values, 1e-12 * values[-1]) / pairs.moved)
            size[size == 0] = 1.0  # no pair has any amount of this generator
            roots.append((V * size) @ V.T)
            inverse.append((V / size) @ V.T)
        moves = [np.linalg.norm(middle @ each.T, axis=1) for each in G]
        lengths = np.stack(moves, axis=1) / np.sqrt(pairs.moved)
        lengths[lengths == 0] = 1.0
        return cls(np.array(roots), np.array(inverse), lengths)

    def pack(self, G: Array, amounts: Array) -> Array:
        """All variables in one vector."""
        return np.concatenate([(G @ self.roots).ravel(), (amounts * self.lengths).ravel()])

    def unpack(self, packed: Array) -> tuple[Array, Array]:
        """Generators and amounts."""
        cut = self.roots.size
        H, scaled = packed[:cut].reshape(self.roots.shape), packed[cut:]
        return H @ self.inverse, scaled.reshape(self.lengths.shape) / self.lengths

    def pull(self, by_G: Array, by_amounts: Array) -> Array:
        """Gradient by the packed variables."""
        return np.concatenate([(by_G @ self.inverse).ravel(), (by_amounts / self.lengths).ravel()])
