"""Out-of-sample extension of non-redundant coordinates.

A constrained eigenvector satisfies A f = λ B f + B C a, where the columns of C are functions of the
earlier coordinates and a are Lagrange multipliers. The extension of the wrapped method evaluates
the first term at new points; the second term can be evaluated anywhere, one coordinate after the
other. So new points satisfy the same equation as training points.
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
    """The term C a: a linear combination of a constant, the earlier coordinates and `functions`."""

    functions: SmootherFunctions | QuadraticFunctions | None
    coefficients: Array
    low: Array  # (q,): range of the training points, to which arguments are clipped
    high: Array

    @classmethod
    def fitted(
        cls, functions: SmootherFunctions | QuadraticFunctions | None, earlier: Array, values: Array
    ) -> tuple[MultiplierTerm, Array]:
        """Least-squares fit to `values` at the training points, and its residual."""
        columns = _columns(functions, earlier)
        size = np.linalg.norm(columns, axis=0)
        size[size == 0] = 1.0
        coefficients = _least_squares(columns / size, values) / size
        low, high = earlier.min(axis=0), earlier.max(axis=0)
        return cls(functions, coefficients, low, high), values - columns @ coefficients

    def is_bounded_between(self, earlier: Array, size: float, max_ratio: float = 3.0) -> bool:
        """Whether values halfway between training points are at most `max_ratio` times `size`.

        On few points nearly dependent functions get coefficients that rounding determines, and
        their combination oscillates between the points.
        """
        order = np.argsort(earlier[:, 0], kind="stable")
        between = (earlier[order[1:]] + earlier[order[:-1]]) / 2
        return bool(np.abs(self(between)).max(initial=0.0) <= max_ratio * size)

    def __call__(self, earlier: Array) -> Array:
        """Values at earlier coordinates (n, q)."""
        earlier = np.clip(earlier, self.low, self.high)
        return np.asarray(_columns(self.functions, earlier) @ self.coefficients)


def _least_squares(A: Array, b: Array, ill_conditioned: float = 1e-9) -> Array:
    """Minimize ‖Ax − b‖ by the normal equations, or by SVD if these are ill-conditioned.

    AᵀA is ill-conditioned if its smallest eigenvalue is below `ill_conditioned` times its largest.
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
    """Difference between a coordinate and the formula of the wrapped method.

    It is the multiplier term plus a residual, which is predicted by local regression from the
    earlier coordinates and the value of the formula.
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
        """From the difference `missing` at the training points, where the formula is `uncorrected`.

        A residual below `rounding` times the coordinate is taken as zero.
        """
        term, residual = MultiplierTerm.fitted(functions, earlier, missing)
        Z = np.column_stack([earlier, uncorrected])
        if not term.is_bounded_between(earlier, np.abs(missing).max()):
            return cls(None, LocalRegression(Z, missing[:, None]))
        if np.abs(residual).max() <= rounding * np.abs(uncorrected + missing).max():
            return cls(term, None)
        return cls(term, LocalRegression(Z, residual[:, None]))

    def at(self, earlier: Array, uncorrected: Array) -> Array:
        """Differences at new points."""
        term = self.multiplier_term
        missing = np.zeros(len(earlier)) if term is None else term(earlier)
        if self.residual is None:
            return missing
        Z = np.column_stack([earlier, uncorrected])
        return np.asarray(missing + self.residual.predict(Z)[:, 0])


def divided_by(Y: Array, scale: Array) -> Array:
    """Coordinates divided by their scale; those of scale zero are left as they are."""
    return Y / np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True, eq=False)
class GradientEquation:
    """Extension of a coordinate with a penalty on its gradient.

    The coordinate satisfies (A + mR) f = λ B f + B C a, with the matrix R of
    :class:`~manifoldry.nonredundant.gradients.EarlierGradients`. A new point adds one row with its
    own value as the only unknown; the gradients at the training points are kept fixed.
    """

    penalty: GradientPenalty
    f: Array  # (n,): the coordinate at the training points
    components: Array  # (n, q): of its gradient along the earlier ones, there
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
        """Fit the multiplier term to the equations of the training points; `energy` is A f."""
        gradients = penalty.earlier
        beyond = (energy + penalty.weight * (gradients.penalty @ f)) / mass - penalty.value * f
        term, _ = MultiplierTerm.fitted(functions, gradients.F, beyond)
        return cls(penalty, f, gradients.components(f), term)

    def solve(self, W: sparse.csr_array, mass: Array, coordinates: Array) -> Array:
        """Values at new points.

        `W` has their weights to training points, `mass` their entries of B, and `coordinates` their
        earlier coordinates.
        """
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
        with np.errstate(invalid="ignore"):  # points without neighbors get NaN
            mean = per_row(edges.weights * f) / edges.degree
            value = np.where(left < SMALLEST_DIVISOR * edges.degree, mean, right / left)
        return _clip_to_neighbors(value, edges.rows, f)


def _clip_to_neighbors(values: Array, rows: IntArray, f: Array) -> Array:
    """Clip values to the range of the neighbors' `f`, widened at either end by twice its length."""
    low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    np.minimum.at(low, rows, f)
    np.maximum.at(high, rows, f)
    reach = 2 * (high - low)
    return np.clip(values, low - reach, high + reach)


@dataclass(frozen=True, eq=False)
class ComponentCorrections:
    """Corrections of the coordinates of one connected component, in order."""

    training_points: IntArray  # training points of the component's problem
    scale: Array  # (k,): ratio of coordinates to eigenvectors
    corrections: list[Correction | GradientEquation]  # of the coordinates after the first

    def apply(self, Y: Array, weights: tuple[sparse.csr_array, Array] | None) -> Array:
        """Correct the values `Y` of the formula; gradient equations also need `weights`."""
        F = divided_by(Y, self.scale)
        for i, correction in enumerate(self.corrections, start=1):
            if isinstance(correction, GradientEquation):
                assert weights is not None  # such equations are made only where there are weights
                W, mass = weights
                W = W if len(self.training_points) == W.shape[1] else W[:, self.training_points]
                F[:, i] = correction.solve(W, mass, F[:, :i])
            else:
                F[:, i] += correction.at(F[:, :i], F[:, i])
        return F * self.scale


@dataclass(frozen=True, eq=False)
class CorrectedExtension(Extension):
    """The extension of the wrapped method, with every coordinate corrected for its constraints."""

    base: Extension
    components: list[ComponentCorrections]
    constrained: bool  # whether any coordinate differs from an eigenvector of the wrapped method

    def transform(self, X: Matrix) -> Array:
        numbers = getattr(self.base, "numbers_per_row", X.shape[1])
        blocks = [
            self.place(*self.component_coordinates(X[block]))
            for block in row_blocks(X.shape[0], numbers)
        ]
        return np.concatenate([np.empty((0, len(self.components[0].scale))), *blocks])

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.base.place(Y, component)

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        Y, component = self.base.component_coordinates(X)
        weights = self.base.weights(X) if isinstance(self.base, HasWeights) else None
        for number, corrections in enumerate(self.components):
            rows = np.flatnonzero(component == number)
            if len(rows):
                own = None if weights is None else (weights[0][rows], weights[1][rows])
                Y[rows] = corrections.apply(Y[rows], own)
        return Y, component

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        if self.constrained:
            raise ValueError(
                "the coordinates have different constraints, so no single kernel has all of them "
                "as eigenvectors; fit the estimator without NonRedundant"
            )
        raise ValueError(
            "NonRedundant has no equivalent kernel; these coordinates equal those of the "
            "estimator, so fit it without NonRedundant and call its equivalent_kernel"
        )


@runtime_checkable
class HasWeights(Protocol):
    """An extension that computes weights between new points and training points."""

    def weights(self, X: Matrix) -> tuple[sparse.csr_array, Array]:
        """Weights to the other training points, and row sums that include a point's own weight."""
        ...
