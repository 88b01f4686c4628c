"""A shift, turn and stretch, fitted on some points and applied to any."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Motion:
    """The motion that takes some points nearest to others in the sum of squares.

    Fitted on the points two maps have in common, it takes the other points of one along.

    Attributes
    ----------
    source, target : arrays of shape (n_components,) and (n_target,)
        Centre of the points it was fitted on, and where that goes.
    matrix : array of shape (n_components, n_target)
        The linear part, from one map in its `source_unit` to the other in its `target_unit`.
    source_unit, target_unit : float
        Sizes of the maps, so that neither tiny nor huge ones lose digits.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import Motion
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> motion = Motion.fit(X[:40], 3 * X[:40, ::-1] + 5, allow="similarity")
    >>> np.allclose(motion.apply(X[40:]), 3 * X[40:, ::-1] + 5)
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
        check_option("allow", allow, MOTIONS)
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
    return _turned(Y.T @ Y, Y.T @ T, stretch=True), *units


def _rigid(Y: Array, T: Array, units: Units) -> Fitted:
    """Find a turn in one unit for both: their ratio is what a rigid motion must not change."""
    unit = max(units)
    Y, T = Y * (units[0] / unit), T * (units[1] / unit)
    return _turned(Y.T @ Y, Y.T @ T, stretch=False), 1.0, 1.0


_FITS = {"rigid": _rigid, "similarity": _similar, "affine": _affine}
MOTIONS = tuple(_FITS)


def _turned(
    YY: Array, YT: Array, stretch: bool, *, max_turns: int = 1000, settled: float = 1e-12
) -> Array:
    """The rotation or reflection R, and factor c, that bring centred Y nearest to T: c·R.

    From YᵀY and YᵀT. Where Y has more columns than T, which of them to leave out is part of the
    question and has no closed form: T is filled up with what the present turn says, and turned onto
    again, which never makes it worse, until it has `settled`.
    """
    p, q = YT.shape
    if p <= q:
        U, strengths, Vt = np.linalg.svd(YT, full_matrices=False)
        size = float(np.trace(YY))
        return np.asarray((strengths.sum() / size if stretch and size > 0 else 1.0) * U @ Vt)
    R = _nearest_rotation(np.hstack([YT, np.zeros((p, p - q))]))
    factor = 1.0
    for _ in range(max_turns):
        factor = _factor(YY, YT, R[:, :q]) if stretch else 1.0
        before, R = R, _nearest_rotation(np.hstack([YT, factor * YY @ R[:, q:]]))
        if np.abs(R - before).max() < settled:
            break
    return (_factor(YY, YT, R[:, :q]) if stretch else 1.0) * R[:, :q]


def _nearest_rotation(C: Array) -> Array:
    U, _, Vt = np.linalg.svd(C)
    return np.asarray(U @ Vt)


def _factor(YY: Array, YT: Array, R: Array) -> float:
    """The stretch that goes with a turn."""
    size = float(np.trace(R.T @ YY @ R))
    return float(np.trace(R.T @ YT)) / size if size > 0 else 1.0
