"""Generators of a continuous transformation, learned from pairs."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.resources import on_its_device
from manifoldry.exceptions import (
    ConvergenceWarning,
    RankWarning,
    warn,
)
from manifoldry.lie.amounts import AmountSearch
from manifoldry.lie.fitting import LieFit, Report, alternate, midpoint_start, refine
from manifoldry.lie.flow import flow_of
from manifoldry.lie.pairs import (
    Basis,
    Pairs,
    as_amounts,
    check_moving,
    common_unit,
    explained_fraction,
    pair_losses,
)
from manifoldry.lie.uncertainty import (
    uncertain_pairs,
    warn_of_extrapolation,
    warn_of_loss,
    warn_of_uncertain,
)
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_count,
    check_nonnegative,
    check_positive,
)
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.refit import replacing_fit
from manifoldry.util.saved import restore_state, state_with_version
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import (
    check_data,
    plan_memory,
    power_of_two_scale,
    read_array,
    row_blocks,
)


class LieTransform(BaseEstimator):
    """Learn a continuous transformation from pairs of rows before and after it.

    Minimizes Σₙ ‖yₙ − exp(Σᵢ αₙᵢGᵢ)xₙ‖² over generators Gᵢ, which all pairs share, and the unknown
    amounts αₙᵢ, the coefficients of the generators for each pair. A single matrix describes, for
    example, cyclic translation of any image by any distance. Use it for pairs or sequences of rows
    related by a linear transformation: translated, rotated or scaled images and signals, or systems
    of linear differential equations observed at unknown times.

    How far it extrapolates beyond the training pairs depends on how well they are explained
    (``loss_``). If a row determines the transformed row, as for cyclic signals or rotations,
    amounts may be many times larger. In a window of an image, new content enters at the border, and
    errors grow with the amount: for faces shifted by up to one pixel, 95 % of the change was
    explained at one pixel, 91 % at two, 80 % at three, 58 % at four and nothing at six. ``apply``
    warns if amounts exceed twice those of the training pairs and ``loss_`` is above 0.1 %.

    Subtract from each window of an image its mean, and leave out flat windows: brightness changes
    at the borders too, and a generator that explains it takes the place of the one that is wanted.
    For windows of 8 × 8 pixels of photographs, shifted by up to one pixel, the amounts then have a
    correlation of 1.00 with the shifts, and −0.35 otherwise. A warning appears if ``loss_`` is
    above 0.15.

    A first stage solves y − x ≈ Σᵢ αᵢGᵢx by least squares for amounts and generators in turn (Rao &
    Ruderman 1999). With `refine`, a second stage fits both with the exponential, which is needed
    for large transformations.

    The scale of a generator, and the mixture of several, are not determined by the pairs. By
    convention, generators are orthonormal as vectors of their entries, amounts are uncorrelated
    over the training pairs, the generator with the largest amounts comes first, and the largest
    amount of each is positive.

    Parameters
    ----------
    n_generators : int, default=1
        Number of generators.
    n_components : int, default=None
        Number of leading directions of the rows (uncentered PCA of `X` and `Y`) in which the
        transformation acts; the orthogonal complement is unchanged. By default all directions of
        the pairs, at most 256, since a generator of images of 32 × 32 pixels would have a million
        entries.
    reg : float, default=1e-3
        Penalty on the squared norm of the operators, relative to the mean square of X along a
        direction of the basis. It acts like noise of that relative variance in X. Increase it for
        noisy or few pairs.
    refine : bool, default=True
        Whether to fit the exponential after the first-order solution.
    max_iter : int, default=300
        Largest number of iterations of the first stage, and of each L-BFGS run of the second.
    tol : float, default=1e-6
        A stage stops if the relative decrease of its objective is below this.
    verbose : bool, default=False
        Whether to report the progress of the fit on stderr, with a bar if rich is installed.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initialization; ``None`` is a fixed seed.

    Attributes
    ----------
    generators_ : array of shape (n_generators, n_features, n_features)
        The generators G, computed from the basis on access.
    amounts_ : array of shape (n_pairs, n_generators)
        Amounts α of the training pairs.
    loss_ : float
        Σ‖y − exp(Σᵢ αᵢGᵢ)x‖² / Σ‖y − x‖² over the training pairs.
    uncertain_ : array of bool of shape (n_pairs,)
        Pairs whose amounts are noise, because the generators hardly change their rows, such as flat
        patches of images. These do not count as the largest of the training pairs, and a warning
        says so if they are much larger than the others.
    trace_ : array of shape (n_iter + 1,)
        The first-order objective after each iteration, with its penalty, relative to Σ‖y − x‖²; it
        never increases.
    refinement_trace_ : array
        The objective with the exponential after each L-BFGS run; empty without `refine`.
    n_iter_ : int
        Number of iterations of the first stage.
    converged_ : bool
        Whether the last stage converged.
    components_ : array of shape (n_directions, n_features)
        Directions of the basis.
    basis_energy_ : float
        Fraction of the sum of squares of the rows that the basis explains.

    See Also
    --------
    UKR : a manifold of data without pairs.
    manifoldry.datasets.load_photographs : images to learn shifts from.

    References
    ----------
    R. P. N. Rao and D. L. Ruderman, "Learning Lie groups for invariant visual perception", NIPS 11,
    1999.

    Examples
    --------
    Points of the plane, rotated by unknown angles:

    >>> import numpy as np
    >>> from manifoldry.lie import LieTransform
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0.0, 0.3, 50)
    >>> X = rng.normal(size=(50, 2))
    >>> Y = np.column_stack([
    ...     np.cos(angle) * X[:, 0] - np.sin(angle) * X[:, 1],
    ...     np.sin(angle) * X[:, 0] + np.cos(angle) * X[:, 1]])
    >>> model = LieTransform().fit(X, Y)
    >>> radian = np.sqrt(2)  # amount of a rotation by one radian: the generator has unit norm
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
        verbose: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_generators = n_generators
        self.n_components = n_components
        self.reg = reg
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    _runs_on_host = "it is not implemented there"
    __getstate__ = state_with_version
    __setstate__ = restore_state

    @on_its_device
    def fit(self, X: Any, Y: Any) -> Self:
        """Fit generators to pairs of rows.

        If this fails, the attributes of an earlier fit are kept.

        Parameters
        ----------
        X : array of shape (n_pairs, n_features)
            Rows before the transformation.
        Y : array of shape (n_pairs, n_features)
            The same rows after transformation by unknown amounts.

        Returns
        -------
        LieTransform
            The fitted estimator itself.
        """
        self._check_parameters()
        with replacing_fit(self, private=("_basis", "_flow", "_largest")):
            self._fit(X, Y)
        return self

    def _fit(self, X: Any, Y: Any) -> None:
        rng = as_generator(self.random_state, unset=0)
        X, Y = self._read(X, Y, reset=True)
        unit = common_unit(X, Y)
        X, Y = X / unit, Y / unit
        check_moving(X, Y)
        basis = Basis.of(X, Y, self._max_directions(X), rng)
        pairs = self._pairs(basis.coordinates(X), basis.coordinates(Y))
        with ProgressReporter(type(self).__name__, bool(self.verbose)) as progress:
            solution = self._solve(pairs, rng, partial(progress.show, np.nan))
        self._store(basis, solution)
        self._measure_pairs(X, Y)

    def apply(self, X: Any, amount: Any) -> Array:
        """Transform the rows of `X`: exp(Σᵢ αᵢGᵢ)x.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows to transform, which need not be training rows.
        amount : float or array
            Coefficients α of the generators: for one generator a number, or one per row; for
            several one per generator, or an array of shape (n_samples, n_generators). Negative
            amounts invert the transformation.

        Returns
        -------
        array of shape (n_samples, n_features)
            The transformed rows.
        """
        check_is_fitted(self)
        X = self._read_one(X)
        amounts = as_amounts(amount, len(X), len(self._flow.G))
        warn_of_extrapolation(amounts, self._largest, self.loss_)
        unit = power_of_two_scale(X)
        with np.errstate(over="ignore", invalid="ignore"):
            transformed = unit * self._transformed(X / unit, amounts)
        if not np.isfinite(transformed).all():
            raise ValueError(
                f"amounts up to {np.abs(amounts).max():.3g} overflow floating point; pass smaller "
                "amounts (amounts_ holds those of the training pairs)"
            )
        return transformed.astype(X.dtype, copy=False)

    def estimate(
        self, X: Any, Y: Any, *, largest: float | None = None, return_residual: bool = False
    ) -> Array | tuple[Array, Array]:
        """Estimate the amounts that transform rows of `X` to rows of `Y`.

        The best minimum of each pair is searched. Of equally good minima, as for periodic patterns,
        the amounts closest to zero are returned.

        Parameters
        ----------
        X, Y : arrays of shape (n_pairs, n_features)
            Rows before and after the transformation.
        largest : float, default=None
            Approximate largest amount of each generator to search; by default twice the largest of
            the training pairs.
        return_residual : bool, default=False
            Also return ‖y − exp(Σᵢ αᵢGᵢ)x‖ of each pair, to be compared with ‖y − x‖.

        Returns
        -------
        amounts : array of shape (n_pairs, n_generators)
            The amounts.
        residual : array of shape (n_pairs,)
            Only if `return_residual` is true.
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
        """Fraction of the change from `X` to `Y` explained by the best amounts.

        1 − Σ‖y − exp(Σᵢ αᵢGᵢ)x‖² / Σ‖y − x‖²: 1 is perfect, 0 is no better than the identity. The
        usual R² compares with the mean of `Y` instead, and would be near 1 for rows that hardly
        change, whatever was learned.

        Parameters
        ----------
        X, Y : arrays of shape (n_pairs, n_features)
            Rows before and after the transformation, for example held-out pairs.

        Returns
        -------
        float
            The fraction.
        """
        check_is_fitted(self)
        X, Y = self._read(X, Y, reset=False)
        unit = common_unit(X, Y)
        X, Y = X / unit, Y / unit
        return explained_fraction(X, Y, self._transformed(X, self._estimate_amounts(X, Y, None)))

    @property
    def generators_(self) -> Array:
        """Generators as matrices, an array of shape (n_generators, n_features, n_features)."""
        if not hasattr(self, "_flow"):
            raise AttributeError(f"{type(self).__name__} is not fitted; call fit first")
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
            raise ValueError("Y is None; pass the transformed rows of X as Y")
        X = check_data(self, X, reset=reset, accept_sparse=False)
        Y = read_array(Y, "Y")
        if X.shape != Y.shape:
            raise ValueError(
                f"X has shape {X.shape} and Y has shape {Y.shape}; pass arrays of the same "
                "shape, where row n of Y is row n of X after the transformation"
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
        check_at_most(
            "n_generators", self.n_generators, bound, "number of pairs or of entries of a generator"
        )
        if n < self.n_generators * r:
            warn(
                f"{n} pairs are too few to determine {self.n_generators} generator(s) in {r} "
                "directions without the penalty; pass more pairs or a smaller n_components",
                RankWarning,
            )
        return Pairs(X, Y, self.reg * float((X**2).mean()))

    def _solve(self, pairs: Pairs, rng: np.random.Generator, report: Report) -> LieFit:
        options = (self.n_generators, self.max_iter, self.tol, rng, report)
        solution = alternate(pairs, *options)
        self.trace_, self.n_iter_ = solution.trace, len(solution.trace) - 1
        self.refinement_trace_: Array = np.empty(0)
        if self.refine:
            starts = [(solution.G, solution.amounts), midpoint_start(pairs, *options)]
            solution = refine(pairs, starts, self.max_iter, self.tol, report)
            self.refinement_trace_ = solution.trace
        return solution

    def _store(self, basis: Basis, solution: LieFit) -> None:
        self._basis, self._flow = basis, flow_of(solution.G)
        self.components_, self.basis_energy_ = basis.directions, basis.energy
        self.amounts_ = solution.amounts
        self.converged_ = solution.converged
        if not solution.converged:
            warn(
                f"the fit did not converge within max_iter={self.max_iter} iterations of each "
                "stage and 10 rounds of refinement; increase tol if this is accurate enough, or "
                "max_iter; if loss_ is large, see the notes on images in the documentation",
                ConvergenceWarning,
            )

    def _measure_pairs(self, X: Array, Y: Array) -> None:
        """Set the loss, the pairs with uncertain amounts and the largest amount of the others."""
        transformed = self._transformed(X, self.amounts_)
        self.loss_ = 1.0 - explained_fraction(X, Y, transformed)
        warn_of_loss(self.loss_)
        speeds = self._flow.speeds(self._basis.coordinates(X))
        self.uncertain_ = uncertain_pairs(speeds, pair_losses(X, Y, transformed))
        self._largest = np.abs(self.amounts_[~self.uncertain_]).max(axis=0)
        warn_of_uncertain(self.amounts_, self.uncertain_, self._largest)

    def _estimate_amounts(
        self, X: Array, Y: Array, largest: float | None, factor: float = 2.0
    ) -> Array:
        """Amounts up to `largest`, or up to `factor` times those of the training pairs."""
        if largest is None:
            max_amounts = factor * self._largest
        else:
            max_amounts = np.full(len(self._flow.G), check_positive("largest", largest))
        X, Y = self._basis.coordinates(X), self._basis.coordinates(Y)
        return AmountSearch(self._flow.G).find(X, Y, max_amounts)

    def _transformed(self, X: Array, amounts: Array) -> Array:
        """Rows transformed by their own amounts; one exponential if these are all equal."""
        before = self._basis.coordinates(X.astype(np.float64))
        if len(X) and not np.ptp(amounts, axis=0).any():
            after = self._flow.move_by(before, amounts[0])
        else:
            blocks = row_blocks(len(X), 8 * before.shape[1])
            after = np.vstack([self._flow.move(before[b], amounts[b]) for b in blocks])
        return self._basis.move(X, before, after)
