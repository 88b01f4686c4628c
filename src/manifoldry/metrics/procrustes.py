"""Compare two maps of the same points up to motions that do not matter."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length

from manifoldry.metrics.pair import read_embedding
from manifoldry.util.checks import check_option
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Alignment:
    """The motion that takes some points nearest to others in the sum of squares.

    Fitted on the points two maps have in common, it takes the other points of one along.

    Attributes
    ----------
    source, target : arrays of shape (n_components,) and (n_target,)
        Center of the points it was fitted on, and where that goes.
    matrix : array of shape (n_components, n_target)
        The linear part, from one map in its `source_unit` to the other in its `target_unit`.
    source_unit, target_unit : float
        Sizes of the maps, so that neither tiny nor huge ones lose digits.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import Alignment
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> alignment = Alignment.fit(X[:40], 3 * X[:40, ::-1] + 5, allow="similarity")
    >>> np.allclose(alignment.apply(X[40:]), 3 * X[40:, ::-1] + 5)
    True
    """

    source: Array
    target: Array
    matrix: Array
    source_unit: float
    target_unit: float

    @classmethod
    def fit(cls, embedding: Array, target: Array, allow: str = "similarity") -> Self:
        """Find the motion of points onto others, row by row.

        Parameters
        ----------
        embedding, target : arrays of shape (n_samples, n_components) and (n_samples, n_target)
            Finite positions before and after.
        allow : {"rigid", "similarity", "affine"}, default="similarity"
            Rotation, reflection and shift; one change of scale as well; or any linear map and
            shift.
        """
        check_option("allow", allow, ALIGNMENTS)
        source, goal = embedding.mean(axis=0), target.mean(axis=0)
        Y, T = embedding - source, target - goal
        units = power_of_two_scale(Y), power_of_two_scale(T)
        Y, T = Y / units[0], T / units[1]
        return cls(source, goal, *_FITS[allow](Y, T, units))

    def apply(self, embedding: Array) -> Array:
        """Move points, (n_samples, n_components) → (n_samples, n_target); NaN stays NaN."""
        turned = ((embedding - self.source) / self.source_unit) @ self.matrix
        return np.asarray(turned * self.target_unit + self.target)


Units = tuple[float, float]
Fitted = tuple[Array, float, float]  # the matrix, and the units it is in


def _affine(Y: Array, T: Array, units: Units) -> Fitted:
    return np.linalg.lstsq(Y, T, rcond=None)[0], *units


def _similar(Y: Array, T: Array, units: Units) -> Fitted:
    return _scaled_rotation(Y.T @ Y, Y.T @ T, scale=True), *units


def _rigid(Y: Array, T: Array, units: Units) -> Fitted:
    """Find a turn in one unit for both: their ratio is what a rigid motion must not change."""
    unit = max(units)
    Y, T = Y * (units[0] / unit), T * (units[1] / unit)
    return _scaled_rotation(Y.T @ Y, Y.T @ T, scale=False), 1.0, 1.0


_FITS = {"rigid": _rigid, "similarity": _similar, "affine": _affine}
ALIGNMENTS = tuple(_FITS)


def _scaled_rotation(
    YY: Array, YT: Array, scale: bool, *, max_iter: int = 1000, tol: float = 1e-12
) -> Array:
    """The rotation or reflection R, and factor c, that bring centered Y nearest to T: c·R.

    From YᵀY and YᵀT. Where Y has more columns than T, which of them to leave out is part of the
    question and has no closed form: T is filled up with what the present turn says, and turned onto
    again, which never makes it worse, until it has `tol`.
    """
    p, q = YT.shape
    if p <= q:
        U, singular_values, Vt = np.linalg.svd(YT, full_matrices=False)
        size = float(np.trace(YY))
        return np.asarray((singular_values.sum() / size if scale and size > 0 else 1.0) * U @ Vt)
    R = _nearest_rotation(np.hstack([YT, np.zeros((p, p - q))]))
    factor = 1.0
    for _ in range(max_iter):
        factor = _factor(YY, YT, R[:, :q]) if scale else 1.0
        before, R = R, _nearest_rotation(np.hstack([YT, factor * YY @ R[:, q:]]))
        if np.abs(R - before).max() < tol:
            break
    return (_factor(YY, YT, R[:, :q]) if scale else 1.0) * R[:, :q]


def _nearest_rotation(C: Array) -> Array:
    U, _, Vt = np.linalg.svd(C)
    return np.asarray(U @ Vt)


def _factor(YY: Array, YT: Array, R: Array) -> float:
    """The stretch that goes with a turn."""
    size = float(np.trace(R.T @ YY @ R))
    return float(np.trace(R.T @ YT)) / size if size > 0 else 1.0


def spread_of(Y: Array) -> float:
    """Root mean squared distance of the points on a map from their center."""
    on_map = Y[np.isfinite(Y).all(axis=1)]
    if len(on_map) == 0:
        raise ValueError("no point is on the map; there is nothing to compare")
    if not np.ptp(on_map, axis=0).any():
        raise ValueError(
            f"all {len(on_map)} points have one place on the map; there is nothing to compare"
        )
    offsets = on_map - on_map.mean(axis=0)
    unit = power_of_two_scale(offsets)  # squares of tiny or huge maps have no digits
    return unit * float(np.sqrt(((offsets / unit) ** 2).sum(axis=1).mean()))


def fit_alignment(Y: Array, target: Array, allow: str) -> Alignment:
    """The motion of one map onto another by the points on both."""
    common = np.isfinite(Y).all(axis=1) & np.isfinite(target).all(axis=1)
    needed = target.shape[1] + 2  # an affine map takes one fewer anywhere
    if common.sum() < needed:
        raise ValueError(
            f"{common.sum()} points are on both maps; {needed} or more tell a change from a "
            "motion: refit on more points"
        )
    return Alignment.fit(Y[common], target[common], allow)


def distances(Y: Array, target: Array, unit: float) -> Array:
    """How far each point is from its place on another map, NaN where it is not on both."""
    return np.asarray(np.linalg.norm((Y - target) / unit, axis=1))


def mean_estimate(values: Array, least: float = -np.inf) -> Estimate:
    """The mean of a few independent values, with Student's interval; NaNs were not measured.

    The interval ends at the `least` that the values can be.
    """
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return Estimate(np.nan)
    return Estimate.of_mean(values, within=(least, np.inf))


@dataclass(frozen=True, eq=False)
class Procrustes:
    """One map moved onto another.

    Attributes
    ----------
    aligned : array of shape (n_samples, n_target)
        The map after the best alignment.
    error : float
        What is left of the target: root of the squared distances over the target's own spread.
        0 is a perfect match; 1 no better than its mean.
    alignment : Alignment
        What was done; its ``apply`` takes further points of the same map along.
    """

    aligned: Array
    error: float
    alignment: Alignment


def procrustes(embedding: Any, target: Any, allow: str = "similarity") -> Procrustes:
    """Move a map onto another of the same points, as nearly as the motions allowed can.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The map to move.
    target : array of shape (n_samples, n_target), or a fitted estimator
        Where to, for example the true coordinates of a sheet. If it has fewer columns, the map is
        turned so that its others can be left out. Rows of NaN in either are left out.
    allow : {"rigid", "similarity", "affine"}, default="similarity"
        Rotation, reflection and shift; one change of scale as well; or any linear map and shift.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import procrustes
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> turned = 3 * X[:, ::-1] + 5
    >>> procrustes(turned, X).error < 1e-12, procrustes(turned, X, "rigid").error > 1
    (True, True)
    """
    Y, T = read_embedding(embedding), read_embedding(target)
    check_consistent_length(Y, T)
    common = ~np.isnan(Y).any(axis=1) & ~np.isnan(T).any(axis=1)
    if common.sum() < 2:
        raise ValueError(f"{common.sum()} points are on both maps (not NaN); at least 2 are needed")
    alignment = Alignment.fit(Y[common], T[common], allow)
    moved, Y, T = alignment.apply(Y), Y[common], T[common]
    unit = power_of_two_scale(T - alignment.target)  # squares of tiny or huge maps have no digits
    spread = float(np.linalg.norm((T - alignment.target) / unit))
    left = float(np.linalg.norm((moved[common] - T) / unit))
    return Procrustes(moved, left / spread if spread > 0 else float(left > 0), alignment)
