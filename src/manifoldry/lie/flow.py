"""exp(Σᵢ αᵢGᵢ)x for many rows x, each with its own amounts α, and its derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm

from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Flow(ABC):
    """The action exp(Σᵢ αᵢGᵢ)x of generators G, (n_generators, r, r), on rows x."""

    G: Array

    @abstractmethod
    def move(self, X: Array, amounts: Array) -> Array:
        """exp(Σᵢ αᵢGᵢ)x for each row x, with amounts (n_rows, n_generators)."""

    @abstractmethod
    def tangents(self, X: Array, amounts: Array) -> tuple[Array, Array]:
        """Transformed rows, and their derivatives by each amount, (n_generators, n_rows, r)."""

    @abstractmethod
    def pullback(self, X: Array, amounts: Array, weights: Array) -> Array:
        """Gradient of Σ ⟨weights, transformed rows⟩ with respect to G."""

    @cached_property
    def norms(self) -> Array:
        """Largest singular value of each generator."""
        return np.array([np.linalg.norm(G, 2) for G in self.G])

    def speeds(self, X: Array) -> Array:
        """√Σᵢ‖Gᵢx‖² of each row: how fast small amounts move it."""
        return np.asarray(np.sqrt(sum(((X @ each.T) ** 2).sum(axis=1) for each in self.G)))

    def move_by(self, X: Array, amount: Array) -> Array:
        """Transform all rows by the same amounts, (n_generators,), with one matrix exponential."""
        return X @ expm(np.tensordot(amount, self.G, axes=1)).T


def flow_of(G: Array, condition: float = 1e4) -> Flow:
    """The fastest accurate implementation: an eigendecomposition for one generator, else a series.

    The eigendecomposition is used up to the given condition number of the eigenvectors; errors of
    gradients grow with its square.
    """
    if len(G) == 1:
        eigen = EigenFlow(G)
        if eigen.condition <= condition:
            return eigen
    return SeriesFlow(G)


@dataclass(frozen=True, eq=False)
class EigenFlow(Flow):
    """One generator G = VΛV⁻¹: exp(αG)x = V·(e^{αλ} ∘ V⁻¹x), two matrix products for all rows."""

    equal_tol: float = 1e-5  # products αλ that differ by less count as equal

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors."""
        values, V = np.linalg.eig(self.G[0])
        return values.astype(np.complex128), V.astype(np.complex128)

    @cached_property
    def condition(self) -> float:
        """Condition number of the eigenvectors; infinite if they do not form a basis."""
        with np.errstate(all="ignore"):
            condition = float(np.linalg.cond(self.eigen[1]))
        return condition if np.isfinite(condition) else np.inf

    @cached_property
    def inverse(self) -> Array:
        """V⁻¹."""
        return np.linalg.inv(self.eigen[1])

    @cached_property
    def kept(self) -> Any:
        """Mask that keeps one eigenvalue of each conjugate pair; sufficient since rows are real."""
        return self.eigen[0].imag >= 0

    @cached_property
    def multiplicity(self) -> Array:
        """Number of eigenvalues that each kept one represents."""
        return np.where(self.eigen[0][self.kept].imag > 0, 2.0, 1.0)

    @cached_property
    def to_eigenbasis(self) -> Array:
        """Transposed kept rows of V⁻¹: real parts, then imaginary parts."""
        kept = self.inverse[self.kept]
        return np.hstack([kept.real.T, kept.imag.T])

    @cached_property
    def from_eigenbasis(self) -> Array:
        """Transposed kept columns of V, for real parts, then imaginary parts."""
        kept = self.eigen[1][:, self.kept] * self.multiplicity
        return np.vstack([kept.real.T, -kept.imag.T])

    def coordinates(self, X: Array) -> Array:
        """V⁻¹x for each row, kept entries only."""
        real, imaginary = np.split(X @ self.to_eigenbasis, 2, axis=1)
        return real + 1j * imaginary

    def move(self, X: Array, amounts: Array) -> Array:
        U = self.coordinates(X) * np.exp(amounts * self.eigen[0][self.kept])
        return np.hstack([U.real, U.imag]) @ self.from_eigenbasis

    def tangents(self, X: Array, amounts: Array) -> tuple[Array, Array]:
        Z = self.move(X, amounts)
        return Z, (Z @ self.G[0].T)[None]

    def pullback(self, X: Array, amounts: Array, weights: Array) -> Array:
        # Daletskii–Krein: V⁻ᵀ S Vᵀ with Sᵢⱼ = Σₙ wₙᵢ uₙⱼ (e^{αₙλᵢ} − e^{αₙλⱼ})/(λᵢ − λⱼ), two
        # matrix products for all rows. For equal eigenvalues the quotient is αₙe^{αₙλ}.
        (values, V), kept = self.eigen, self.kept
        U, W = self.coordinates(X), weights @ V.real + 1j * (weights @ V.imag)
        half = np.exp(amounts * values / 2)
        exponentials = half**2
        gap = values[:, None] - values[kept]
        close = np.abs(gap) * np.abs(amounts).max(initial=0.0) < self.equal_tol
        S = (W * exponentials).T @ U - W.T @ (U * exponentials[:, kept])
        S /= np.where(close, 1.0, gap)
        S[close] = ((W * half * amounts).T @ (U * half[:, kept]))[close]
        gradient = self.inverse.T @ (S * self.multiplicity) @ V[:, kept].T
        return np.ascontiguousarray(gradient.real)[None]


@dataclass(frozen=True, eq=False)
class SeriesFlow(Flow):
    """Any generators: power series of the exponential, in steps short enough to be accurate."""

    max_step_norm: float = 4.0  # the series then loses at most two digits

    def move(self, X: Array, amounts: Array) -> Array:
        steps, degree, amounts = self._plan(amounts)
        for _ in range(steps):
            X = np.sum(self._terms(X, amounts, degree), axis=0)
        return X

    def tangents(self, X: Array, amounts: Array) -> tuple[Array, Array]:
        steps, degree, amounts = self._plan(amounts)
        rows = np.concatenate([X[None], np.zeros((len(self.G), *X.shape))])
        for _ in range(steps):
            rows = self._step_with_derivatives(rows, amounts, degree)
        return rows[0], rows[1:] / steps

    def pullback(self, X: Array, amounts: Array, weights: Array) -> Array:
        steps, degree, amounts = self._plan(amounts)
        starts = [X]
        for _ in range(steps - 1):
            starts.append(np.sum(self._terms(starts[-1], amounts, degree), axis=0))
        gradient = np.zeros_like(self._stacked)  # (q·r, r), gradients by the Gᵢᵀ, stacked
        for start in reversed(starts):
            terms, adjoint = self._terms(start, amounts, degree), weights
            for k in range(degree, 0, -1):  # term k is A/k times term k − 1
                gradient += _row_kron(terms[k - 1], amounts / k).T @ adjoint
                adjoint = weights + _row_kron(adjoint, amounts / k) @ self._stacked_transposed
            weights = adjoint
        return gradient.reshape(self.G.shape).transpose(0, 2, 1)

    @cached_property
    def _stacked(self) -> Array:
        """The Gᵢᵀ stacked vertically, (n_generators · r, r)."""
        return self.G.transpose(0, 2, 1).reshape(-1, self.G.shape[1])

    @cached_property
    def _stacked_transposed(self) -> Array:
        return self.G.reshape(-1, self.G.shape[1])

    def _plan(self, amounts: Array) -> tuple[int, int, Array]:
        """Number of steps, degree of the series, and amounts per step."""
        norm = float((np.abs(amounts) @ self.norms).max(initial=0.0))
        steps = max(1, int(np.ceil(norm / self.max_step_norm)))
        term, degree = 1.0, 0
        while term > 1e-17 or degree < 2:
            degree += 1
            term *= norm / steps / degree
        return steps, degree, amounts / steps

    def _terms(self, X: Array, amounts: Array, degree: int) -> list[Array]:
        """Aᵏx/k! for k = 0 to `degree`."""
        terms = [X]
        for k in range(1, degree + 1):
            terms.append(_row_kron(terms[-1], amounts / k) @ self._stacked)
        return terms

    def _step_with_derivatives(self, rows: Array, amounts: Array, degree: int) -> Array:
        """One step of the rows and their derivatives by amounts, (1 + q, n_rows, r)."""
        term, out = rows, rows.copy()
        for k in range(1, degree + 1):
            derivatives = np.stack([term[0] @ each.T for each in self.G]) / k
            term = _row_kron(term, amounts / k) @ self._stacked
            term[1:] += derivatives
            out += term
        return out


def _row_kron(X: Array, amounts: Array) -> Array:
    """Row-wise Kronecker product of amounts and rows, (…, n_rows, n_generators · r)."""
    products = amounts[:, :, None] * X[..., None, :]
    return products.reshape(*X.shape[:-1], amounts.shape[1] * X.shape[-1])
