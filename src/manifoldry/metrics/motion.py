"""A shift, turn and stretch, fitted on some points and applied to any."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from manifoldry._checks import check_option
from manifoldry._typing import Array
from manifoldry._validation import power_of_two_scale

MOTIONS = ("rigid", "similarity", "affine")


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
        if allow == "affine":
            matrix = np.linalg.lstsq(Y, T, rcond=None)[0]
        elif allow == "similarity":
            matrix = _stretch(Y, T) * _turn(Y, T)
        else:
            matrix, units = _turn(Y, T), (1.0, 1.0)
        return cls(source, goal, matrix, *units)

    def apply(self, embedding: Array) -> Array:
        """Move points, (n_samples, n_components) → (n_samples, n_target); NaN stays NaN."""
        turned = ((embedding - self.source) / self.source_unit) @ self.matrix
        return np.asarray(turned * self.target_unit + self.target)


def _turn(Y: Array, T: Array) -> Array:
    """The rotation or reflection that brings centred Y nearest to T."""
    C = np.zeros((max(Y.shape[1], T.shape[1]), T.shape[1]))  # a line may turn within a plane
    C[: Y.shape[1]] = Y.T @ T
    U, _, Vt = np.linalg.svd(C, full_matrices=False)
    return np.asarray((U @ Vt)[: Y.shape[1]])


def _stretch(Y: Array, T: Array) -> float:
    """The factor that goes with that turn."""
    size = float((Y**2).sum())
    return float(np.linalg.svd(Y.T @ T, compute_uv=False).sum()) / size if size > 0 else 1.0
