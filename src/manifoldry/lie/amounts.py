"""Search for the amounts (coefficients of the generators) of each pair, with generators fixed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import expm

from manifoldry.lie.flow import Flow, flow_of
from manifoldry.lie.pairs import gram_matrix
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class AmountSearch:
    """Minimize ‖y − exp(Σᵢ αᵢGᵢ)x‖² + λ‖Σᵢ αᵢGᵢ‖² over the amounts α of each pair.

    The objective can have several minima, for example for periodic patterns. It is evaluated on a
    grid along rays from zero, with steps short enough not to skip a minimum; damped Gauss–Newton
    steps then start from the best grid points.

    Parameters
    ----------
    G : array of shape (n_generators, r, r)
        The generators.
    penalty : float
        The λ of the objective.
    ray_steps : int
        Largest number of grid points on a ray.
    max_signed : int
        Up to this many generators, rays cover all combinations of signs; with more, only the axes.
    n_lowest : int
        Number of lowest minima on the rays to refine, besides the one nearest to zero.
    equal_fraction, equal_change : float
        Minima count as equal if their values differ by less than the fraction `equal_fraction` plus
        `equal_change` times ‖y − x‖².
    good_fit : float
        Fraction of ‖y − x‖² left unexplained below which no better minimum is searched.
    values_per_pair : int
        Assumed memory per pair, in numbers, which determines the size of blocks of pairs.
    newton_steps : int
        Largest number of Gauss–Newton steps.
    step_tol : float
        Relative step at which the iteration of a pair stops.
    """

    G: Array
    penalty: float = 0.0
    ray_steps: int = 64
    max_signed: int = 3
    n_lowest: int = 2
    equal_fraction: float = 0.1
    equal_change: float = 1e-3
    good_fit: float = 0.01
    values_per_pair: int = 4096
    newton_steps: int = 15
    step_tol: float = 1e-7

    @cached_property
    def flow(self) -> Flow:
        """The exponential of the generators."""
        return flow_of(self.G)

    @np.errstate(over="ignore", invalid="ignore")  # rejected if they overflow
    def find(self, X: Array, Y: Array, max_amounts: Array) -> Array:
        """Best amounts of each pair, up to about `max_amounts`, (n_generators,).

        Of minima with about equal values, as after a full rotation, the one closest to zero is
        returned.
        """
        found, values = self._minima(X, Y, max_amounts)
        change = ((Y - X) ** 2).sum(axis=1)
        acceptable = (1 + self.equal_fraction) * values.min(axis=0) + self.equal_change * change
        size = np.linalg.norm(found / np.where(max_amounts > 0, max_amounts, 1.0), axis=2)
        chosen = np.where(values <= acceptable, size, np.inf).argmin(axis=0)
        return np.asarray(found[chosen, np.arange(len(X))])

    def improve(self, X: Array, Y: Array, max_amounts: Array, amounts: Array) -> Array:
        """The best of `amounts`, refined, and the minima found; no pair gets worse."""
        found, values = self._minima(X, Y, max_amounts)
        known = self.gauss_newton(X, Y, amounts)
        found = np.concatenate([found, known[None]])
        values = np.vstack([values, self.values(X, Y, known)])
        return np.asarray(found[values.argmin(axis=0), np.arange(len(X))])

    def values(self, X: Array, Y: Array, amounts: Array) -> Array:
        """The objective of each pair."""
        return self._values(Y, self.flow.move(X, amounts), amounts)

    def gauss_newton(self, X: Array, Y: Array, amounts: Array) -> Array:
        """Damped Gauss–Newton iteration of each pair; no step increases the objective."""
        amounts, damping, active = amounts.copy(), np.full(len(X), 1e-4), np.arange(len(X))
        value, gradient, curvature = self._derivatives(X, Y, amounts)
        for _ in range(self.newton_steps):
            step = self._limited(_damped_steps(gradient, curvature, damping[active]))
            trial = amounts[active] + step
            found = self._derivatives(X[active], Y[active], trial)
            better = found[0] <= value
            amounts[active[better]] = trial[better]
            damping[active] *= np.where(better, 0.1, 10.0)
            for old, new in zip((value, gradient, curvature), found, strict=True):
                old[better] = new[better]
            unconverged = np.abs(step).max(axis=1) > self.step_tol * np.abs(trial).max(axis=1)
            active, value, gradient, curvature = (
                active[unconverged],
                value[unconverged],
                gradient[unconverged],
                curvature[unconverged],
            )
            if not len(active):
                break
        return amounts

    def _limited(self, step: Array) -> Array:
        """Steps scaled down so that Σᵢ|stepᵢ|·‖Gᵢ‖ ≤ 1, which is too short to skip a minimum."""
        length = np.abs(step) @ self.flow.norms
        return step / np.maximum(1.0, length)[:, None]

    def _derivatives(self, X: Array, Y: Array, amounts: Array) -> tuple[Array, Array, Array]:
        """The objective of each pair, half its gradient and half its Gauss–Newton Hessian."""
        Z, derivatives = self.flow.tangents(X, amounts)
        K = self.penalty * gram_matrix(self.G)
        gradient = np.einsum("inr,nr->ni", derivatives, Z - Y) + amounts @ K
        curvature = np.einsum("inr,jnr->nij", derivatives, derivatives) + K
        return self._values(Y, Z, amounts), gradient, curvature

    def _values(self, Y: Array, Z: Array, amounts: Array) -> Array:
        size = np.einsum("ni,ij,nj->n", amounts, gram_matrix(self.G), amounts)
        return ((Z - Y) ** 2).sum(axis=1) + self.penalty * size

    def _minima(self, X: Array, Y: Array, max_amounts: Array) -> tuple[Array, Array]:
        """Amounts at a few candidate minima of each pair, and the objective there."""
        blocks = [
            self._minima_of(X[b], Y[b], max_amounts)
            for b in row_blocks(len(X), self.values_per_pair)
        ]
        found, values = zip(*blocks, strict=True)
        return np.concatenate(found, axis=1), np.concatenate(values, axis=1)

    def _minima_of(self, X: Array, Y: Array, max_amounts: Array) -> tuple[Array, Array]:
        table, grid = self._minima_on_rays(X, Y, max_amounts)
        distances = np.linalg.norm(grid / np.where(max_amounts > 0, max_amounts, 1.0), axis=1)
        value_at_zero = ((Y - X) ** 2).sum(axis=1)
        chosen = _candidates(table, distances, value_at_zero, self.n_lowest)
        known = np.isfinite(np.take_along_axis(table, chosen, axis=0))
        found = grid[chosen]  # (n_minima, n_pairs, n_generators)
        values = np.full(known.shape, np.inf)
        for k in range(len(found)):
            # If the first minimum fits well, only smaller amounts are refined.
            smaller = np.linalg.norm(found[k], axis=1) < np.linalg.norm(found[0], axis=1)
            rows = np.flatnonzero(
                known[k] & ((values[0] > self.good_fit * value_at_zero) | smaller)
            )
            found[k, rows] = self.gauss_newton(X[rows], Y[rows], found[k, rows])
            values[k, rows] = self.values(X[rows], Y[rows], found[k, rows])
        return found, values

    def _minima_on_rays(self, X: Array, Y: Array, max_amounts: Array) -> tuple[Array, Array]:
        """The objective of each pair at its minima on rays from zero, infinite elsewhere.

        Returns a table (n_grid, n_pairs) and the amounts (n_grid, n_generators), zero first.
        """
        value_at_zero = ((Y - X) ** 2).sum(axis=1)
        tables: list[Array] = [value_at_zero[None].copy()]
        grid: list[Array] = [np.zeros((1, len(self.G)))]
        for direction in _directions(len(self.G), self.max_signed):
            ray, found = self._values_along(X, Y, direction * max_amounts)
            before = np.vstack([value_at_zero[None], found[:-1]])
            after = np.vstack([found[1:], np.full((1, len(X)), np.inf)])
            tables[0][0, found[0] < value_at_zero] = np.inf
            tables.append(np.where((found < before) & (found <= after), found, np.inf))
            grid.append(ray)
        return np.vstack(tables), np.vstack(grid)

    def _values_along(self, X: Array, Y: Array, end: Array) -> tuple[Array, Array]:
        """Grid of amounts from zero to `end`, and the objective of all pairs at each."""
        A = np.tensordot(end, self.G, axes=1)
        steps = int(min(self.ray_steps, np.ceil(np.linalg.norm(A, 2)) + 1))
        ray = np.arange(1, steps + 1)[:, None] / steps * end
        step, values = expm(A / steps).T, []
        for amount in ray:
            X = X @ step
            values.append(self._values(Y, X, np.broadcast_to(amount, (len(X), len(end)))))
        return ray, np.array(values)


def _directions(q: int, max_signed: int) -> Array:
    if q <= max_signed:
        return np.array([signs for signs in product((-1.0, 0.0, 1.0), repeat=q) if any(signs)])
    return np.vstack([np.eye(q), -np.eye(q)])


def _candidates(table: Array, distances: Array, value_at_zero: Array, count: int) -> IntArray:
    """Indices of the lowest grid points of each pair, and of the nearest to zero half as good.

    If minima are equally low, the position of the grid decides which looks lowest, so the minimum
    nearest to zero has to be among the candidates.
    """
    lowest = np.argsort(table, axis=0, kind="stable")[:count]
    best = table.min(axis=0)
    low = table <= (best + np.maximum(value_at_zero, best)) / 2
    nearest = np.where(low, distances[:, None], np.inf).argmin(axis=0)
    return np.vstack([lowest, nearest])


def _damped_steps(gradient: Array, curvature: Array, damping: Array) -> Array:
    """Damped Gauss–Newton steps; zero where the curvature is zero, as for x = 0."""
    size = np.einsum("nii->ni", curvature).max(axis=1)
    ridge = np.where(size > 0, (damping + 1e-14) * size, 1.0)
    damped = curvature + ridge[:, None, None] * np.eye(gradient.shape[1])
    return np.asarray(-np.linalg.solve(damped, gradient[:, :, None])[:, :, 0])
