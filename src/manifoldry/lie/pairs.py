"""Pairs of rows, the basis they are represented in, and the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, svd
from sklearn.utils.extmath import randomized_svd

from manifoldry.lie.flow import flow_of
from manifoldry.util.array_like import array_like
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal directions, (r, n_features), through the origin, which linear maps keep fixed."""

    directions: Array
    energy: float  # fraction of the sum of squares in these directions

    @classmethod
    def of(
        cls,
        X: Array,
        Y: Array,
        max_directions: int,
        rng: np.random.Generator,
        exact_up_to: int = 4096,
    ) -> Basis:
        """At most `max_directions` leading directions of X and Y together (uncentered PCA).

        The SVD is exact if the smaller side of the data is at most `exact_up_to`, else randomized.
        """
        rows = np.vstack([X, Y])
        if min(rows.shape) <= exact_up_to:
            _, S, Vt = svd(rows, full_matrices=False)
        else:
            seed = int(rng.integers(2**31))
            _, S, Vt = randomized_svd(rows, max_directions, random_state=seed)
        kept = min(max_directions, int((S / S[0] > max(rows.shape) * np.finfo(float).eps).sum()))
        energy = float((S[:kept] ** 2).sum() / (rows**2).sum())
        return cls(Vt[:kept].copy(), min(1.0, energy))

    def coordinates(self, X: Array) -> Array:
        """Coordinates of rows in the basis."""
        return X @ self.directions.T

    def move(self, X: Array, before: Array, after: Array) -> Array:
        """Rows `X` with coordinates changed from `before` to `after`, the rest unchanged."""
        return X + (after - before) @ self.directions


@dataclass(frozen=True, eq=False)
class Pairs:
    """The objective Σₙ ‖yₙ − exp(Aₙ)xₙ‖² + λ‖Aₙ‖², Aₙ = Σᵢ αₙᵢGᵢ, relative to Σ‖yₙ − xₙ‖².

    The penalty is what noise of variance λ in each entry of x would add, to first order. It depends
    only on the operators Aₙ, so that rescaling or mixing generators does not change the objective.
    """

    X: Array
    Y: Array
    penalty: float

    @property
    def total_change(self) -> float:
        """Σ‖y − x‖²."""
        return float(((self.Y - self.X) ** 2).sum())

    def value(self, G: Array, amounts: Array) -> float:
        """The objective."""
        residual = flow_of(G).move(self.X, amounts) - self.Y
        return self._total(residual, G, amounts)

    def first_order(self, G: Array, amounts: Array) -> float:
        """The objective with I + A in place of exp(A)."""
        change = sum(amounts[:, i, None] * (self.X @ G[i].T) for i in range(len(G)))
        return self._total(self.X + change - self.Y, G, amounts)

    def gradient(self, G: Array, amounts: Array) -> tuple[float, Array, Array]:
        """The objective, and its gradients by `G` and the amounts."""
        flow, unit = flow_of(G), 2 / self.total_change
        Z, derivatives = flow.tangents(self.X, amounts)
        residual = Z - self.Y
        by_G = flow.pullback(self.X, amounts, residual)
        by_G += self.penalty * np.tensordot(amounts.T @ amounts, G, axes=1)
        by_amounts = np.einsum("inr,nr->ni", derivatives, residual)
        by_amounts += self.penalty * amounts @ gram_matrix(G)
        return self._total(residual, G, amounts), unit * by_G, unit * by_amounts

    def _total(self, residual: Array, G: Array, amounts: Array) -> float:
        size = ((amounts.T @ amounts) * gram_matrix(G)).sum()
        return float((residual**2).sum() + self.penalty * size) / self.total_change


def gram_matrix(G: Array) -> Array:
    """Frobenius inner products of the generators."""
    flat = G.reshape(len(G), -1)
    return flat @ flat.T


def normalized(G: Array, amounts: Array) -> tuple[Array, Array]:
    """The same operators Σᵢ αₙᵢGᵢ with orthonormal generators and uncorrelated amounts.

    This is the singular value decomposition of all operators, largest singular value first, which
    determines the scale and mixture of generators. The largest amount of each is positive.
    """
    Q, R = qr(G.reshape(len(G), -1).T, mode="economic")
    U, S, Wt = np.linalg.svd(amounts @ R.T, full_matrices=False)
    amounts, flat = U * S, Wt @ Q.T
    largest = np.take_along_axis(amounts, np.abs(amounts).argmax(axis=0)[None], axis=0)[0]
    signs = np.where(largest < 0, -1.0, 1.0)
    return (signs[:, None] * flat).reshape(G.shape), amounts * signs


def common_unit(X: Array, Y: Array) -> float:
    """A power of two near the largest entry, so that squares neither overflow nor underflow."""
    return max(power_of_two_scale(X), power_of_two_scale(Y))


def check_moving(X: Array, Y: Array) -> None:
    """Raise ValueError if X is zero or equal to Y, so that nothing can be learned."""
    if not X.any():
        raise ValueError(
            "all rows of X are zero, which no linear transformation changes; pass nonzero rows"
        )
    if not ((Y - X) ** 2).any():
        raise ValueError(
            "X and Y are equal, so there is no transformation to learn; pass as Y the transformed "
            "rows of X"
        )


def explained_fraction(X: Array, Y: Array, transformed: Array) -> float:
    """Fraction of Σ‖y − x‖² that the transformation explains."""
    change = float(((Y - X) ** 2).sum())
    left = float(((Y - transformed) ** 2).sum())
    return 1.0 - left / change if change else 1.0


def pair_losses(X: Array, Y: Array, transformed: Array) -> Array:
    """‖y − z‖² / ‖y − x‖² of each pair and transformed row z; 0 if the row does not change."""
    changes = ((Y - X) ** 2).sum(axis=1)
    return np.asarray(((Y - transformed) ** 2).sum(axis=1) / np.where(changes > 0, changes, np.inf))


def as_amounts(amount: Any, n: int, q: int) -> Array:
    """Return `amount`, validated and broadcast to all rows, (n, q)."""
    given = np.asarray(array_like(amount, "amount"), dtype=np.float64)
    if not np.isfinite(given).all():
        raise ValueError("amount contains NaN or infinity; pass finite numbers")
    if q == 1 and given.ndim == 1 and len(given) == n:
        given = given[:, None]  # one number per row for one generator
    if given.shape in ((q,), (1, q), (n, q)) or (q == 1 and given.size == 1):
        return np.broadcast_to(given, (n, q))
    raise ValueError(
        f"amount has shape {given.shape}; pass one number per generator ({q}), or shape ({n}, {q}) "
        "with one row of amounts for each row of X"
    )
