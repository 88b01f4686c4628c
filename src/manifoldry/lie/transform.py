"""Generators of a continuous transformation, learned from pairs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from manifoldry.exceptions import ConvergenceWarning, RankWarning
from manifoldry.lie.amounts import AmountSearch
from manifoldry.lie.fitting import Solution, alternate, midpoint_start, refine
from manifoldry.lie.flow import flow_of
from manifoldry.lie.pairs import (
    Basis,
    Pairs,
    as_amounts,
    check_moving,
    common_unit,
    explained_fraction,
)
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_count,
    check_nonnegative,
    check_positive,
)
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import (
    check_data,
    plan_memory,
    power_of_two_scale,
    refuse_masked,
    row_blocks,
)
from manifoldry.util.warn import warn


class LieTransform(BaseEstimator):
    """Learn a continuous transformation from pairs of rows before and after a bit of it.

    Minimizes Σₙ ‖yₙ − exp(Σᵢ αₙᵢGᵢ)xₙ‖² over generators Gᵢ, which all pairs share, and amounts
    αₙᵢ, which nobody has to know. One matrix then describes, say, translation wherever it happens:
    unlike methods that learn a manifold from neighbors, it extrapolates far beyond the pairs, to
    images that were not among them. Use it where rows come in pairs, or as a film, and what
    happens between them is linear in the row: translated, rotated or scaled images and signals,
    systems of linear differential equations observed at unknown times.

    First y − x ≈ Σᵢ αᵢGᵢx is solved by least squares for amounts and generators in turn (Rao &
    Ruderman 1999); then, with `refine`, both are fitted with the true exponential, which pairs
    that moved far need.

    The scale of a generator, and the mixture of several, are not determined by pairs: generators
    are orthonormal as vectors of their entries, amounts are uncorrelated over the training pairs,
    and the strongest comes first; the largest amount of each is positive.

    Parameters
    ----------
    n_generators : int, default=1
        Number of transformations that act at once.
    n_components : int, default=None
        Learn within this many leading directions of the rows (uncentered PCA of both sides of the
        pairs); what lies outside stays as it is. By default all that the pairs have, 256 at most:
        a generator of images of 32 × 32 pixels would have a million entries otherwise.
    reg : float, default=1e-3
        Penalty on the size of the operators, relative to the mean square of X along a direction
        of the basis: what noise of that fraction in X would do. Raise it for noisy or few pairs.
    refine : bool, default=True
        Whether to fit the true exponential after the first-order solution.
    max_iter : int, default=300
        Most sweeps of the first stage, and most steps of a descent of the second.
    tol : float, default=1e-6
        Relative decrease of the objective below which a stage ends.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start; ``None`` is a fixed seed.

    Attributes
    ----------
    generators_ : array of shape (n_generators, n_features, n_features)
        The generators G, put together from the basis when asked for.
    amounts_ : array of shape (n_pairs, n_generators)
        Amounts α of the training pairs.
    loss_ : float
        Fraction of the training pairs' Σ‖y − x‖² that is left between y and exp(Σᵢ αᵢGᵢ)x.
    trace_ : array of shape (n_iter + 1,)
        The first-order objective after every sweep, penalty included, relative to Σ‖y − x‖²; it
        never rises.
    refinement_trace_ : array
        The objective with the exponential after every descent; empty without `refine`.
    n_iter_ : int
        Sweeps of the first stage.
    converged_ : bool
        Whether the last stage ended because nothing changed any more.
    components_ : array of shape (n_directions, n_features)
        Directions of the basis.
    basis_energy_ : float
        Fraction of the rows' sum of squares that the basis holds.

    Examples
    --------
    Points of the plane, turned by unknown angles:

    >>> import numpy as np
    >>> from manifoldry.lie import LieTransform
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0.0, 0.3, 50)
    >>> X = rng.normal(size=(50, 2))
    >>> Y = np.column_stack([
    ...     np.cos(angle) * X[:, 0] - np.sin(angle) * X[:, 1],
    ...     np.sin(angle) * X[:, 0] + np.cos(angle) * X[:, 1]])
    >>> model = LieTransform().fit(X, Y)
    >>> radian = np.sqrt(2)  # the amount that turns by one, a generator having unit norm
    >>> np.allclose(model.generators_ * radian, [[0, -1], [1, 0]], atol=1e-3)
    True
    >>> model.apply([[1.0, 0.0]], np.pi / 2 * radian).round(2)
    array([[0., 1.]])
    >>> model.estimate([[1.0, 0.0]], [[0.0, 1.0]], largest=3 * radian) / radian
    array([[1.57...]])
    """

    def __init__(
        self,
        n_generators: int = 1,
        *,
        n_components: int | None = None,
        reg: float = 1e-3,
        refine: bool = True,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.n_generators = n_generators
        self.n_components = n_components
        self.reg = reg
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn generators from pairs.

        Parameters
        ----------
        X : array of shape (n_pairs, n_features)
            Rows before.
        Y : array of shape (n_pairs, n_features)
            The same rows after an unknown amount of the transformation.
        """
        self._check_parameters()
        rng = as_generator(self.random_state, unset=0)
        X, Y = self._read(X, Y, reset=True)
        unit = common_unit(X, Y)
        X, Y = X / unit, Y / unit
        check_moving(X, Y)
        basis = Basis.of(X, Y, self._max_directions(X), rng)
        pairs = self._pairs(basis.coordinates(X), basis.coordinates(Y))
        self._store(basis, self._solve(pairs, rng))
        self.loss_ = 1.0 - explained_fraction(X, Y, self._transformed(X, self.amounts_))
        return self

    def apply(self, X: Any, amount: Any) -> Array:
        """Rows of `X` transformed: exp(Σᵢ αᵢGᵢ)x.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to transform, among the training pairs or not.
        amount : float or array
            How much of it: one number, or one per row, for a single generator; for several one
            number per generator, the same for all rows, or (n_samples, n_generators). Negative
            amounts undo positive ones.
        """
        check_is_fitted(self)
        X = self._read_one(X)
        amounts = as_amounts(amount, len(X), len(self._flow.G))
        unit = power_of_two_scale(X)
        with np.errstate(over="ignore", invalid="ignore"):
            transformed = unit * self._transformed(X / unit, amounts)
        if not np.isfinite(transformed).all():
            raise ValueError(
                f"amounts up to {np.abs(amounts).max():.3g} take the rows beyond the range of "
                "floating point; pass smaller amounts (those of training are in amounts_)"
            )
        return transformed.astype(X.dtype, copy=False)

    def estimate(
        self, X: Any, Y: Any, *, largest: float | None = None, return_residual: bool = False
    ) -> Array | tuple[Array, Array]:
        """Amounts of the transformation that lead from rows of `X` to rows of `Y`.

        Every pair is searched for its best minimum; of equally good ones, as where a pattern
        repeats, the amount closest to zero is returned.

        Parameters
        ----------
        X, Y : arrays of shape (n_pairs, n_features)
            Rows before and after.
        largest : float, default=None
            Look for amounts about as large as this, of every generator; by default twice the
            largest of the training pairs.
        return_residual : bool, default=False
            Also return, for every pair, the length of what the transformation leaves between the
            rows, ‖y − exp(Σᵢ αᵢGᵢ)x‖: compare it with ‖y − x‖.

        Returns
        -------
        array of shape (n_pairs, n_generators), or that and an array of shape (n_pairs,)
        """
        check_is_fitted(self)
        X, Y = self._read(X, Y, reset=False)
        unit = common_unit(X, Y)
        X, Y = X / unit, Y / unit
        amounts = self._estimate_amounts(X, Y, largest)
        if not return_residual:
            return amounts
        return amounts, unit * np.linalg.norm(Y - self._transformed(X, amounts), axis=1)

    def score(self, X: Any, Y: Any) -> float:
        """Fraction of the change from `X` to `Y` that the best amounts explain.

        1 − Σ‖y − exp(Σᵢ αᵢGᵢ)x‖² / Σ‖y − x‖²: 1 is perfect, 0 no better than leaving the rows as
        they are. The usual R² compares with the mean of `Y` instead, and would be near 1 for rows
        that hardly move, whatever was learned.
        """
        check_is_fitted(self)
        X, Y = self._read(X, Y, reset=False)
        unit = common_unit(X, Y)
        X, Y = X / unit, Y / unit
        return explained_fraction(X, Y, self._transformed(X, self._estimate_amounts(X, Y, None)))

    @property
    def generators_(self) -> Array:
        """The generators, (n_generators, n_features, n_features)."""
        if not hasattr(self, "_flow"):
            raise AttributeError(f"{type(self).__name__} has no generators before it is fitted")
        B, G = self._basis.directions, self._flow.G
        plan_memory(8.0 * len(G) * B.shape[1] ** 2, "generators_", "use apply and estimate instead")
        return np.asarray(B.T @ G @ B)

    def _check_parameters(self) -> None:
        check_count("n_generators", self.n_generators)
        check_positive("reg", self.reg)
        check_nonnegative("tol", self.tol)
        check_count("max_iter", self.max_iter)

    def _read(self, X: Any, Y: Any, *, reset: bool) -> tuple[Array, Array]:
        if Y is None:
            raise ValueError("Y is None: pass the rows of X after the transformation as Y")
        X = check_data(self, X, reset=reset, accept_sparse=False)
        refuse_masked(Y)
        Y = check_array(Y, dtype=[np.float64, np.float32], input_name="Y")
        if X.shape != Y.shape:
            raise ValueError(
                f"X has shape {X.shape} and Y has shape {Y.shape}; row n of Y must be row n of X "
                "after the transformation, so pass arrays of the same shape"
            )
        return X.astype(np.float64), Y.astype(np.float64)

    def _read_one(self, X: Any) -> Array:
        return np.asarray(check_data(self, X, reset=False, accept_sparse=False))

    def _max_directions(self, X: Array, default: int = 256) -> int:
        if self.n_components is None:
            return min(default, X.shape[1])
        count = check_count("n_components", self.n_components)
        return int(check_at_most("n_components", count, X.shape[1], "n_features"))

    def _pairs(self, X: Array, Y: Array) -> Pairs:
        n, r = X.shape
        bound = min(n, r * r)
        check_at_most("n_generators", self.n_generators, bound, "pairs, or entries of a generator")
        if n < self.n_generators * r:
            warn(
                f"{n} pairs are too few to determine {self.n_generators} generator(s) in {r} "
                "directions: the penalty decides where they do not; pass more pairs, or a smaller "
                "n_components",
                RankWarning,
            )
        return Pairs(X, Y, self.reg * float((X**2).mean()))

    def _solve(self, pairs: Pairs, rng: np.random.Generator) -> Solution:
        options = (self.n_generators, self.max_iter, self.tol, rng)
        solution = alternate(pairs, *options)
        self.trace_, self.n_iter_ = solution.trace, len(solution.trace) - 1
        self.refinement_trace_: Array = np.empty(0)
        if self.refine:
            starts = [(solution.G, solution.amounts), midpoint_start(pairs, *options)]
            solution = refine(pairs, starts, self.max_iter, self.tol)
            self.refinement_trace_ = solution.trace
        return solution

    def _store(self, basis: Basis, solution: Solution) -> None:
        self._basis, self._flow = basis, flow_of(solution.G)
        self.components_, self.basis_energy_ = basis.directions, basis.energy
        self.amounts_ = solution.amounts
        self.converged_ = solution.converged
        if not solution.converged:
            warn(
                f"the objective still falls after max_iter={self.max_iter} iterations; raise "
                "max_iter, or tol if this is accurate enough",
                ConvergenceWarning,
            )

    def _estimate_amounts(
        self, X: Array, Y: Array, largest: float | None, factor: float = 2.0
    ) -> Array:
        """Amounts as large as asked for, or `beyond` times the training pairs'."""
        if largest is None:
            max_amounts = factor * np.abs(self.amounts_).max(axis=0)
        else:
            max_amounts = np.full(len(self._flow.G), check_positive("largest", largest))
        X, Y = self._basis.coordinates(X), self._basis.coordinates(Y)
        return AmountSearch(self._flow.G).find(X, Y, max_amounts)

    def _transformed(self, X: Array, amounts: Array) -> Array:
        """Rows moved by amounts of their own; by one exponential if they are all the same."""
        before = self._basis.coordinates(X.astype(np.float64))
        if len(X) and not np.ptp(amounts, axis=0).any():
            after = self._flow.move_by(before, amounts[0])
        else:
            blocks = row_blocks(len(X), 8 * before.shape[1])
            after = np.vstack([self._flow.move(before[b], amounts[b]) for b in blocks])
        return self._basis.move(X, before, after)
