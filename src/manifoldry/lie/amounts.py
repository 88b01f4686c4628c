"""How much of a known transformation lies between the rows of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import expm

from manifoldry.lie.flow import Flow, flow_of
from manifoldry.lie.pairs import gram_matrix
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class AmountSearch:
    """Minimize ‖y − exp(Σᵢ αᵢGᵢ)x‖² + λ‖Σᵢ αᵢGᵢ‖² over the amounts α of every pair.

    There are several minima, as where a pattern repeats. Rays of amounts are followed outwards, in
    steps short enough not to jump over a minimum, and from the best place found damped
    Gauss–Newton steps lead to the bottom.

    Parameters
    ----------
    G : array of shape (n_generators, r, r)
        The generators.
    penalty : float
        The λ of the objective.
    ray_steps : int
        Steps of a ray, at most.
    signed_up_to : int
        Generators up to which all combinations of signs are rays; beyond, axes only.
    lowest : int
        Minima on the rays from which the bottom is looked for, besides the nearest to zero.
    equal, nothing : float
        Minima count as equal if they differ by the fraction `equal`, or `nothing` of the change.
    good : float
        Fraction of the change left unexplained at which no better minimum is looked for.
    table : int
        Numbers per pair that are reckoned with when pairs are searched in blocks.
    newton_steps : int
        Damped steps, at most.
    accurate : float
        Relative step at which a pair has arrived.
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
        """What moves rows."""
        return flow_of(self.G)

    @np.errstate(over="ignore", invalid="ignore")  # amounts that overflow are tried, and not taken
    def find(self, X: Array, Y: Array, max_amounts: Array) -> Array:
        """Amounts up to about `reach`, (n_generators,), of every pair.

        Of minima that are about equally good, as for a pattern that has turned full circle, the
        one closest to zero is taken.
        """
        found, values = self._minima(X, Y, max_amounts)
        change = ((Y - X) ** 2).sum(axis=1)
        acceptable = (1 + self.equal_fraction) * values.min(axis=0) + self.equal_change * change
        size = np.linalg.norm(found / np.where(max_amounts > 0, max_amounts, 1.0), axis=2)
        chosen = np.where(values <= acceptable, size, np.inf).argmin(axis=0)
        return np.asarray(found[chosen, np.arange(len(X))])

    def improve(self, X: Array, Y: Array, max_amounts: Array, amounts: Array) -> Array:
        """The best amounts known or found, so that no pair is worse off than with `amounts`."""
        found, values = self._minima(X, Y, max_amounts)
        known = self.gauss_newton(X, Y, amounts)
        found = np.concatenate([found, known[None]])
        values = np.vstack([values, self.values(X, Y, known)])
        return np.asarray(found[values.argmin(axis=0), np.arange(len(X))])

    def values(self, X: Array, Y: Array, amounts: Array) -> Array:
        """The objective of every pair."""
        return self._values(Y, self.flow.move(X, amounts), amounts)

    def gauss_newton(self, X: Array, Y: Array, amounts: Array) -> Array:
        """Damped Gauss–Newton steps, each pair by itself, none of which makes a pair worse."""
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
        """Steps cut to a length within which a row turns no further than to the next minimum."""
        length = np.abs(step) @ self.flow.norms
        return step / np.maximum(1.0, length)[:, None]

    def _derivatives(self, X: Array, Y: Array, amounts: Array) -> tuple[Array, Array, Array]:
        """Of every pair the objective, half its slope and half its Gauss–Newton curvature."""
        Z, derivatives = self.flow.tangents(X, amounts)
        K = self.penalty * gram_matrix(self.G)
        gradient = np.einsum("inr,nr->ni", derivatives, Z - Y) + amounts @ K
        curvature = np.einsum("inr,jnr->nij", derivatives, derivatives) + K
        return self._values(Y, Z, amounts), gradient, curvature

    def _values(self, Y: Array, Z: Array, amounts: Array) -> Array:
        size = np.einsum("ni,ij,nj->n", amounts, gram_matrix(self.G), amounts)
        return ((Z - Y) ** 2).sum(axis=1) + self.penalty * size

    def _minima(self, X: Array, Y: Array, max_amounts: Array) -> tuple[Array, Array]:
        """Amounts at a few promising minima of every pair, and the objective there."""
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
            # Once a pair is well explained, only smaller amounts are of interest.
            smaller = np.linalg.norm(found[k], axis=1) < np.linalg.norm(found[0], axis=1)
            rows = np.flatnonzero(
                known[k] & ((values[0] > self.good_fit * value_at_zero) | smaller)
            )
            found[k, rows] = self.gauss_newton(X[rows], Y[rows], found[k, rows])
            values[k, rows] = self.values(X[rows], Y[rows], found[k, rows])
        return found, values

    def _minima_on_rays(self, X: Array, Y: Array, max_amounts: Array) -> tuple[Array, Array]:
        """The objective of every pair where it is lowest on rays from zero, infinite elsewhere.

        Returns a table (n_places, n_pairs) and the amounts of its places, zero being the first.
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
        """Amounts on the way from zero to `end`, and the objective of all pairs at each."""
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
    """Of every pair the lowest places of the table, and the nearest that explains half as much.

    Where minima are equally low, how near a place of the grid happens to be decides which look
    lowest; the nearest to zero has to be among those that are looked at closely.
    """
    lowest = np.argsort(table, axis=0, kind="stable")[:count]
    best = table.min(axis=0)
    low = table <= (best + np.maximum(value_at_zero, best)) / 2
    nearest = np.where(low, distances[:, None], np.inf).argmin(axis=0)
    return np.vstack([lowest, nearest])


def _damped_steps(gradient: Array, curvature: Array, damping: Array) -> Array:
    """Steps of all pairs; one that nothing moves, such as x = 0, stays where it is."""
    size = np.einsum("nii->ni", curvature).max(axis=1)
    ridge = np.where(size > 0, (damping + 1e-14) * size, 1.0)
    damped = curvature + ridge[:, None, None] * np.eye(gradient.shape[1])
    return np.asarray(-np.linalg.solve(damped, gradient[:, :, None])[:, :, 0])
