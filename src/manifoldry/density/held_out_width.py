"""The width of Parzen windows for eigenfunctions, chosen by a held-out kernel loss."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from manifoldry.affinity.dense import RBF
from manifoldry.density.manifold_parzen import ManifoldParzen
from manifoldry.eigen import Auto, SpectralProblem
from manifoldry.util.checks import check_count, check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray


class WidthTrial(NamedTuple):
    """A width of the windows and the held-out loss of eigenfunctions of draws with that width.

    Parameters
    ----------
    width : float
        Width of the windows, relative to the fitted ones; 0 for the rows themselves.
    loss : float
        Mean loss on held-out rows.

    See Also
    --------
    manifoldry.FromDensity : has a list of them in ``width_trials_``.

    Examples
    --------
    >>> from manifoldry.density import WidthTrial
    >>> trials = [WidthTrial(0.0, 0.021), WidthTrial(0.1, 0.018), WidthTrial(0.3, 0.025)]
    >>> min(trials, key=lambda trial: trial.loss).width
    0.1
    """

    width: float
    loss: float


@dataclass(frozen=True)
class WidthSearch:
    """Choose the width of windows whose draws give the best eigenfunctions of a Gaussian kernel.

    A part of the rows is held out, draws around the others replace those, and the loss is the mean
    of (K(x, y) − Σ f_k(x) f_k(y))² over pairs of held-out rows, for the leading eigenfunctions f of
    K under the draws, extended by Nyström's formula. K is not centered, so that all widths
    approximate the same. The axes of the windows are those of the rows that are not held out; only
    the noise and the numbers of axes and neighbors are those of the density fitted to all rows.
    The width of least mean loss is chosen if it is better than the rows themselves (width 0) by
    more than `min_errors` standard errors of the difference.

    Parameters
    ----------
    widths : tuple of float
        Widths to compare with 0, relative to the fitted windows.
    n_folds : int
        Number of random parts into which the rows are divided.
    draws_per_row : int
        Number of draws for each row that is not held out.
    max_rows : int
        Largest number of rows that are used; more are subsampled.
    min_errors : float
        Number of standard errors by which draws must be better than the rows.
    """

    widths: tuple[float, ...] = (0.1, 0.3, 0.5)
    n_folds: int = 5
    draws_per_row: int = 10
    max_rows: int = 200
    min_errors: float = 1.0

    def __post_init__(self) -> None:
        for width in self.widths:
            check_positive("widths", width)
        check_count("n_folds", self.n_folds, minimum=2)
        check_count("draws_per_row", self.draws_per_row)
        check_count("max_rows", self.max_rows, minimum=4)
        check_nonnegative("min_errors", self.min_errors)

    def choose(
        self,
        density: ManifoldParzen,
        X: Array,
        kernel: RBF,
        n_components: int,
        rng: np.random.Generator,
    ) -> tuple[float, list[WidthTrial]]:
        """The width for `n_components` coordinates, and all trials; 0 for fewer than four rows."""
        if len(X) > self.max_rows:
            X = X[np.sort(rng.choice(len(X), self.max_rows, replace=False))]
        if len(X) < 4:  # a part without a pair
            return 0.0, []
        parts = np.array_split(rng.permutation(len(X)), min(self.n_folds, len(X) // 2))
        found = [list(self._losses(density, X, part, kernel, n_components, rng)) for part in parts]
        losses = np.array(found)  # (n_folds, n_widths + 1)
        means = losses.mean(axis=0)
        best = int(means.argmin())
        gain = losses[:, 0] - losses[:, best]
        if gain.mean() <= self.min_errors * gain.std(ddof=1) / np.sqrt(len(gain)):
            best = 0
        widths = (0.0, *self.widths)
        trials = [WidthTrial(*trial) for trial in zip(widths, means.tolist(), strict=True)]
        return widths[best], trials

    def _losses(
        self,
        density: ManifoldParzen,
        X: Array,
        held_out: IntArray,
        kernel: RBF,
        d: int,
        rng: np.random.Generator,
    ) -> Iterator[float]:
        """The loss of the rows that are not held out, and of draws around them for each width."""
        H, rows = X[held_out], np.delete(X, held_out, axis=0)
        yield eigenfunction_loss(kernel, rows, H, d)
        count = self.draws_per_row * len(rows)
        for drawn in density.draw_around(rows, count, self.widths, rng):
            yield eigenfunction_loss(kernel, drawn, H, d)


def eigenfunction_loss(kernel: RBF, S: Array, H: Array, d: int, least: float = 1e-12) -> float:
    """Mean squared error of the kernel between rows of `H` by `d` eigenfunctions under `S`.

    Eigenvalues below the fraction `least` of the largest are left out: their eigenfunctions are
    rounding errors.
    """
    k = min(d, len(S))
    problem = SpectralProblem(replace(kernel, X=S).matrix(S), "largest", bounds=(0.0, np.inf))
    found = Auto().solve(problem, k, np.random.default_rng(0))
    kept = found.values > least * found.values.max()
    dual = found.vectors[:, kept] / np.sqrt(found.values[kept])
    Z = replace(kernel, X=S).matrix(H) @ dual
    errors = kernel.among(H) - Z @ Z.T
    return float((errors[~np.eye(len(H), dtype=bool)] ** 2).mean())
