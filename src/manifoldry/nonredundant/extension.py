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
from manifoldry.nonredundant.criteria import Penalty, Quadratics
from manifoldry.nonredundant.gradients import Steps
from manifoldry.nonredundant.smoother import Functions
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Multipliers:
    """A combination of a constant, the earlier coordinates, and functions of them."""

    functions: Functions | Quadratics | None
    coefficients: Array
    low: Array  # (q,): where the training points lie; beyond, nothing is extrapolated
    high: Array

    @classmethod
    def fitted(
        cls, functions: Functions | Quadratics | None, before: Array, values: Array
    ) -> tuple[Multipliers, Array]:
        """The combination nearest to `values` at the training points, and what it leaves."""
        columns = _columns(functions, before)
        size = np.linalg.norm(columns, axis=0)
        size[size == 0] = 1.0
        coefficients = _least_squares(columns / size, values) / size
        low, high = before.min(axis=0), before.max(axis=0)
        return cls(functions, coefficients, low, high), values - columns @ coefficients

    def is_tame(self, before: Array, size: float, wild: float = 3.0) -> bool:
        """Whether it is between the training points at most `wild` times its `size` at them.

        On a few points, functions that nearly contain each other are told apart by rounding, and
        their combination swings wildly in between.
        """
        order = np.argsort(before[:, 0], kind="stable")
        between = (before[order[1:]] + before[order[:-1]]) / 2
        return bool(np.abs(self(between)).max(initial=0.0) <= wild * size)

    def __call__(self, before: Array) -> Array:
        """Its values at earlier coordinates (n, q)."""
        before = np.clip(before, self.low, self.high)
        return np.asarray(_columns(self.functions, before) @ self.coefficients)


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


def _columns(functions: Functions | Quadratics | None, before: Array) -> Array:
    extra = [] if functions is None else [functions(before)]
    return np.column_stack([np.ones(len(before)), before, *extra])


@dataclass(frozen=True, eq=False)
class Correction:
    """What a coordinate has beyond the method's own formula.

    Whatever is no function of the earlier coordinates is regressed on them and on what the formula
    gives.
    """

    multipliers: Multipliers | None
    rest: LocalRegression | None

    @classmethod
    def of(
        cls,
        functions: Functions | Quadratics | None,
        missing: Array,
        bare: Array,
        before: Array,
        rounding: float = 1e-8,
    ) -> Correction:
        """From what is `missing` at the training points, where the formula gives `bare`.

        What the excluded functions leave is none below the fraction `rounding` of the coordinate.
        """
        multipliers, rest = Multipliers.fitted(functions, before, missing)
        Z = np.column_stack([before, bare])
        if not multipliers.is_tame(before, np.abs(missing).max()):
            return cls(None, LocalRegression(Z, missing[:, None]))
        if np.abs(rest).max() <= rounding * np.abs(bare + missing).max():
            return cls(multipliers, None)
        return cls(multipliers, LocalRegression(Z, rest[:, None]))

    def at(self, before: Array, bare: Array) -> Array:
        """What is missing at new points."""
        missing = np.zeros(len(before)) if self.multipliers is None else self.multipliers(before)
        if self.rest is None:
            return missing
        return np.asarray(missing + self.rest.predict(np.column_stack([before, bare]))[:, 0])


def over(Y: Array, size: Array) -> Array:
    """Functions of coordinates of that size; a coordinate that is zero is one of size zero."""
    return Y / np.where(size > 0, size, 1.0)


@dataclass(frozen=True, eq=False)
class GradientRow:
    """The equation of a coordinate kept apart by its gradient, at a new point.

    (A + mR) f = λ B f + B C a, with R of :class:`~manifoldry.nonredundant.gradients.OldGradients`.
    The row of a new point has the point's own value as its only unknown: all else, the gradients at
    the training points included, stays as it is.
    """

    penalty: Penalty
    f: Array  # (n,): the coordinate at the training points
    components: Array  # (n, q): of its gradient along the old ones, there
    multipliers: Multipliers

    @classmethod
    def of(
        cls,
        penalty: Penalty,
        f: Array,
        mass: Array,
        energy: Array,
        functions: Functions | Quadratics | None,
    ) -> GradientRow:
        """From the training points' own equations; `energy` is A f."""
        old = penalty.old
        beyond = (energy + penalty.weight * (old.penalty @ f)) / mass - penalty.value * f
        multipliers, _ = Multipliers.fitted(functions, old.F, beyond)
        return cls(penalty, f, old.components(f), multipliers)

    def solve(self, W: sparse.csr_array, mass: Array, here: Array) -> Array:
        """Values at points with weights `W` to training points, at earlier coordinates `here`."""
        old, m = self.penalty.old, self.penalty.weight
        edges = Steps.of(W, old.F, here, old.unit)
        n, q = here.shape
        out = edges.along(edges.frames(old.floor), edges.rows)
        out *= (np.sqrt(edges.degree)[edges.rows] * edges.fraction)[:, None]
        back = -edges.along(old.frames, edges.columns)
        back *= (edges.weights / np.sqrt(old.edges.degree)[edges.columns])[:, None]

        def per_row(values: Array) -> Array:
            return np.bincount(edges.rows, values, n).astype(np.float64, copy=False)

        f = self.f[edges.columns]
        own = np.stack([per_row(out[:, j]) for j in range(q)], axis=1)
        theirs = np.stack([per_row(out[:, j] * f) for j in range(q)], axis=1)
        from_others = per_row((back * self.components[edges.columns]).sum(axis=1))
        left = edges.degree - self.penalty.value * mass + m * (own**2).sum(axis=1)
        right = per_row(edges.weights * f) + m * ((own * theirs).sum(axis=1) - from_others)
        right += mass * self.multipliers(here)
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
class ComponentSteps:
    """How coordinates of one component follow from the method's own formula, one after the other."""

    sites: IntArray  # training points of the component's problem
    size: Array  # (k,): coordinates over functions of unit norm
    steps: list[Correction | GradientRow]  # of the coordinates after the first

    def corrected(self, Y: Array, weights: tuple[sparse.csr_array, Array] | None) -> Array:
        """Coordinates from what the formula gives; gradients need the points' weights too."""
        F = over(Y, self.size)
        for i, step in enumerate(self.steps, start=1):
            if isinstance(step, GradientRow):
                assert weights is not None  # such a step is made only where there are weights
                W, mass = weights
                W = W if len(self.sites) == W.shape[1] else W[:, self.sites]
                F[:, i] = step.solve(W, mass, F[:, :i])
            else:
                F[:, i] += step.at(F[:, :i], F[:, i])
        return F * self.size


@dataclass(frozen=True, eq=False)
class CorrectedExtension(Extension):
    """A method's own extension, each coordinate corrected for its constraints in turn."""

    base: Extension
    components: list[ComponentSteps]

    def transform(self, X: Matrix) -> Array:
        numbers = getattr(self.base, "numbers_per_row", X.shape[1])
        blocks = [self.place(*self.within(X[block])) for block in row_blocks(X.shape[0], numbers)]
        return np.concatenate([np.empty((0, len(self.components[0].size))), *blocks])

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.base.place(Y, component)

    def within(self, X: Matrix) -> tuple[Array, IntArray]:
        Y, component = self.base.within(X)
        weights = self.base.weights(X) if isinstance(self.base, HasWeights) else None
        for number, steps in enumerate(self.components):
            rows = np.flatnonzero(component == number)
            if len(rows):
                own = None if weights is None else (weights[0][rows], weights[1][rows])
                Y[rows] = steps.corrected(Y[rows], own)
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
