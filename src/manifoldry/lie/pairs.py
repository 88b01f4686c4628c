"""Pairs of rows and what is minimized over generators and amounts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from manifoldry.lie.flow import flow_of
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Pairs:
    """Minimize Σₙ ‖yₙ − exp(Aₙ)xₙ‖² + λ‖Aₙ‖², Aₙ = Σᵢ αₙᵢGᵢ, relative to Σ‖yₙ − xₙ‖².

    The penalty is what noise of variance λ in every entry of x would add to first order. It
    depends on the operators Aₙ alone: neither the scale of generators nor, with several, their
    mixture matters, so these can be fixed at any time without changing the objective.
    """

    X: Array
    Y: Array
    penalty: float

    @property
    def moved(self) -> float:
        """Σ‖y − x‖²."""
        return float(((self.Y - self.X) ** 2).sum())

    def value(self, G: Array, amounts: Array) -> float:
        """The objective with the true exponential."""
        residual = flow_of(G).move(self.X, amounts) - self.Y
        return self._total(residual, G, amounts)

    def first_order(self, G: Array, amounts: Array) -> float:
        """The objective with 1 + A in place of exp(A)."""
        moved = sum(amounts[:, i, None] * (self.X @ G[i].T) for i in range(len(G)))
        return self._total(self.X + moved - self.Y, G, amounts)

    def gradient(self, G: Array, amounts: Array) -> tuple[float, Array, Array]:
        """The objective with the true exponential, and its gradients by `G` and the amounts."""
        flow, unit = flow_of(G), 2 / self.moved
        Z, slopes = flow.tangents(self.X, amounts)
        residual = Z - self.Y
        by_G = flow.pullback(self.X, amounts, residual)
        by_G += self.penalty * np.tensordot(amounts.T @ amounts, G, axes=1)
        by_amounts = np.einsum("inr,nr->ni", slopes, residual)
        by_amounts += self.penalty * amounts @ products(G)
        return self._total(residual, G, amounts), unit * by_G, unit * by_amounts

    def _total(self, residual: Array, G: Array, amounts: Array) -> float:
        size = ((amounts.T @ amounts) * products(G)).sum()
        return float((residual**2).sum() + self.penalty * size) / self.moved


def products(G: Array) -> Array:
    """Inner products of generators, as vectors of their entries."""
    flat = G.reshape(len(G), -1)
    return flat @ flat.T


def normalised(G: Array, amounts: Array) -> tuple[Array, Array]:
    """The same operators Σᵢ αₙᵢGᵢ from orthonormal generators and uncorrelated amounts.

    This is the singular value decomposition of all operators, strongest generator first: it fixes
    the scale of generators and, where there are several, their mixture. The largest amount of
    each is positive.
    """
    Q, R = qr(G.reshape(len(G), -1).T, mode="economic")
    U, S, Wt = np.linalg.svd(amounts @ R.T, full_matrices=False)
    amounts, flat = U * S, Wt @ Q.T
    largest = np.take_along_axis(amounts, np.abs(amounts).argmax(axis=0)[None], axis=0)[0]
    signs = np.where(largest < 0, -1.0, 1.0)
    return (signs[:, None] * flat).reshape(G.shape), amounts * signs
