"""New points on a non-redundant map.

A constrained eigenvector obeys A f = λ B f + B C a, where the columns of C are functions of the
coordinates before it, and a are multipliers. A method's own extension knows the first term; the
second can be evaluated anywhere, coordinate after coordinate. So new points are placed by the same
equation as training points, and those return to their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from manifoldry.extension.base import Extension
from manifoldry.extension.laplacian import SMALLEST_DIVISOR
from manifoldry.extension.regression import LocalRegression
from manifoldry.nonredundant.criteria import GradientPenalty, QuadraticFunctions
from manifoldry.nonredundant.gradients import EdgeDifferences
from manifoldry.nonredundant.smoother import SmootherFunctions
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class MultiplierTerm:
    """A combination of a constant, the earlier coordinates, and functions of them."""

    functions: SmootherFunctions | QuadraticFunctions | None
    coefficients: Array
    low: Array  # (q,): where the training points lie; beyond, nothing is extrapolated
    high: Array

    @classmethod
    def fitted(
        cls, functions: SmootherFunctions | QuadraticFunctions | None, earlier: Array, values: Array
    ) -> tuple[MultiplierTerm, Array]:
        """The combination nearest to `values` at the training points, and what it leaves."""
        columns = _columns(functions, earlier)
        size = np.linalg.norm(columns, axis=0)
        size[size == 0] = 1.0
        coefficients = _least_squares(columns / size, values) / size
        low, high = earlier.min(axis=0), earlier.max(axis=0)
        return cls(functions, coefficients, low, high), values - columns @ coefficients

    def is_bounded_between(self, earlier: Array, size: float, max_ratio: float = 3.0) -> bool:
        """Whether it is between the training points at most `max_ratio` times its `size` at them.

        On a few points, functions that nearly contain each other are told apart by rounding, and
        their combination swings wildly in between.
        """
        order = np.argsort(earlier[:, 0], kind="stable")
        between = (earlier[order[1:]] + earlier[order[:-1]]) / 2
        return bool(np.abs(self(between)).max(initial=0.0) <= max_ratio * size)

    def __call__(self, earlier: Array) -> Array:
        """Its values at earlier coordinates (n, q)."""
        earlier = np.clip(earlier, self.low, self.high)
        return np.asarray(_columns(self.functions, earlier) @ self.coefficients)


def _least_squares(A: Array, b: Array, ill_conditioned: float = 1e-9) -> Array:
    """Coefficients x of smallest ‖Ax − b‖, through AᵀA where its condition allows it.

    Where the ratio of its eigenvalues is below `ill_conditioned` it loses too many digits.
    """
    G = A.T @ A
    values = np.linalg.eigvalsh(G)
    if values[0] < ill_conditioned * values[-1]:
        return np.asarray(np.linalg.lstsq(A, b, rcond=1e-13)[0])
    factor = cho_factor(G)
    x = cho_solve(factor, A.T @ b)
    return np.asarray(x + cho_solve(factor, A.T @ (b - A @ x)))


def _columns(functions: SmootherFunctions | QuadraticFunctions | None, earlier: Array) -> Array:
    extra = [] if functions is None else [functions(earlier)]
    return np.column_stack([np.ones(len(earlier)), earlier, *extra])


@dataclass(frozen=True, eq=False)
class Correction:
    """What a coordinate has beyond the method's own formula.

    Whatever is no function of the earlier coordinates is regressed on them and on what the formula
    gives.
    """

    multiplier_term: MultiplierTerm | None
    residual: LocalRegression | None

    @classmethod
    def of(
        cls,
        functions: SmootherFunctions | QuadraticFunctions | None,
        missing: Array,
        uncorrected: Array,
        earlier: Array,
        rounding: float = 1e-8,
    ) -> Correction:
        """From what is `missing` at the training points, where the formula gives `uncorrected`.

        What the excluded functions leave is none below the fraction `rounding` of the coordinate.
        """
        term, residual = MultiplierTerm.fitted(functions, earlier, missing)
        Z = np.column_stack([earlier, uncorrected])
        if not term.is_bounded_between(earlier, np.abs(missing).max()):
            return cls(None, LocalRegression(Z, missing[:, None]))
        if np.abs(residual).max() <= rounding * np.abs(uncorrected + missing).max():
            return cls(term, None)
        return cls(term, LocalRegression(Z, residual[:, None]))

    def at(self, earlier: Array, uncorrected: Array) -> Array:
        """What is missing at new points."""
        missing = (
            np.zeros(len(earlier))
            if self.multiplier_term is None
            else self.multiplier_term(earlier)
        )
        if self.residual is None:
            return missing
        return np.asarray(
            missing + self.residual.predict(np.column_stack([earlier, uncorrected]))[:, 0]
        )


def divided_by(Y: Array, scale: Array) -> Array:
    """Functions of coordinates of that size; a coordinate that is zero is one of size zero."""
    return Y / np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True, eq=False)
class GradientEquation:
    """The equation of a coordinate kept apart by its gradient, at a new point.

    (A + mR) f = λ B f + B C a, with R of :class:`~manifoldry.nonredundant.gradients.EarlierGradients`.
    The row of a new point has the point's own value as its only unknown: all else, the gradients at
    the training points included, stays as it is.
    """

    penalty: GradientPenalty
    f: Array  # (n,): the coordinate at the training points
    components: Array  # (n, q): of its gradient along the old ones, there
    multiplier_term: MultiplierTerm

    @classmethod
    def of(
        cls,
        penalty: GradientPenalty,
        f: Array,
        mass: Array,
        energy: Array,
        functions: SmootherFunctions | QuadraticFunctions | None,
    ) -> GradientEquation:
        """From the training points' own equations; `energy` is A f."""
        gradients = penalty.earlier
        beyond = (energy + penalty.weight * (gradients.penalty @ f)) / mass - penalty.value * f
        term, _ = MultiplierTerm.fitted(functions, gradients.F, beyond)
        return cls(penalty, f, gradients.components(f), term)

    def solve(self, W: sparse.csr_array, mass: Array, coordinates: Array) -> Array:
        """Values at points with weights `W` to training points, at earlier coordinates `coordinates`."""
        gradients, m = self.penalty.earlier, self.penalty.weight
        edges = EdgeDifferences.of(W, gradients.F, coordinates, gradients.unit)
        n, q = coordinates.shape
        out = edges.along(edges.frames(gradients.floor), edges.rows)
        out *= (np.sqrt(edges.degree)[edges.rows] * edges.fraction)[:, None]
        back = -edges.along(gradients.frames, edges.columns)
        back *= (edges.weights / np.sqrt(gradients.edges.degree)[edges.columns])[:, None]

        def per_row(values: Array) -> Array:
            return np.bincount(edges.rows, values, n).astype(np.float64, copy=False)

        f = self.f[edges.columns]
        own = np.stack([per_row(out[:, j]) for j in range(q)], axis=1)
        theirs = np.stack([per_row(out[:, j] * f) for j in range(q)], axis=1)
        from_others = per_row((back * self.components[edges.columns]).sum(axis=1))
        left = edges.degree - self.penalty.value * mass + m * (own**2).sum(axis=1)
        right = per_row(edges.weights * f) + m * ((own * theirs).sum(axis=1) - from_others)
        right += mass * self.multiplier_term(coordinates)
        with np.errstate(invalid="ignore"):  # nobody on the map is near: nowhere
            mean = per_row(edges.weights * f) / edges.degree
            value = np.where(left < SMALLEST_DIVISOR * edges.degree, mean, right / left)
        return _near_neighbors(value, edges.rows, f)


def _near_neighbors(values: Array, rows: IntArray, f: Array) -> Array:
    """Values no farther from those of the neighbors `f` of every row than twice their range."""
    low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    np.minimum.at(low, rows, f)
    np.maximum.at(high, rows, f)
    reach = 2 * (high - low)
    return np.clip(values, low - reach, high + reach)


@dataclass(frozen=True, eq=False)
class ComponentCorrections:
    """How coordinates of one component follow from the method's own formula, one after the other."""

    sites: IntArray  # training points of the component's problem
    scale: Array  # (k,): coordinates over functions of unit norm
    corrections: list[Correction | GradientEquation]  # of the coordinates after the first

    def apply(self, Y: Array, weights: tuple[sparse.csr_array, Array] | None) -> Array:
        """Coordinates from what the formula gives; gradients need the points' weights too."""
        F = divided_by(Y, self.scale)
        for i, correction in enumerate(self.corrections, start=1):
            if isinstance(correction, GradientEquation):
                assert weights is not None  # such a step is made only where there are weights
                W, mass = weights
                W = W if len(self.sites) == W.shape[1] else W[:, self.sites]
                F[:, i] = correction.solve(W, mass, F[:, :i])
            else:
                F[:, i] += correction.at(F[:, :i], F[:, i])
        return F * self.scale


@dataclass(frozen=True, eq=False)
class CorrectedExtension(Extension):
    """A method's own extension, each coordinate corrected for its constraints in turn."""

    base: Extension
    components: list[ComponentCorrections]

    def transform(self, X: Matrix) -> Array:
        numbers = getattr(self.base, "numbers_per_row", X.shape[1])
        blocks = [self.place(*self.within(X[block])) for block in row_blocks(X.shape[0], numbers)]
        return np.concatenate([np.empty((0, len(self.components[0].scale))), *blocks])

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.base.place(Y, component)

    def within(self, X: Matrix) -> tuple[Array, IntArray]:
        Y, component = self.base.within(X)
        weights = self.base.weights(X) if isinstance(self.base, HasWeights) else None
        for number, corrections in enumerate(self.components):
            rows = np.flatnonzero(component == number)
            if len(rows):
                own = None if weights is None else (weights[0][rows], weights[1][rows])
                Y[rows] = corrections.apply(Y[rows], own)
        return Y, component

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        raise ValueError(
            "these coordinates were found one after another, under constraints of their own; they "
            "are eigenvectors of no common kernel"
        )


@runtime_checkable
class HasWeights(Protocol):
    """An extension that weighs new points against training points on a graph."""

    def weights(self, X: Matrix) -> tuple[sparse.csr_array, Array]:
        """Weights to other training points than a point's own, and the sum with that."""
        ...
