"""Compare two maps of the same points up to motions that do not matter."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from manifoldry._checks import check_option
from manifoldry._typing import Array

_ALLOW = ("rigid", "similarity", "affine")


@dataclass(frozen=True, eq=False)
class Procrustes:
    """One map moved onto another.

    Attributes
    ----------
    aligned : array of shape (n_samples, n_target)
        The map after the best motion.
    error : float
        What is left of the target: root of the squared distances over the target's own spread.
        0 is a perfect match; 1 no better than its mean.
    """

    aligned: Array
    error: float


def procrustes(embedding: Any, target: Any, allow: str = "similarity") -> Procrustes:
    """Move a map onto another of the same points, as nearly as the motions allowed can.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The map to move.
    target : array of shape (n_samples, n_target)
        Where to, for example the true coordinates of a sheet.
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
    check_option("allow", allow, _ALLOW)
    Y = check_array(embedding, dtype=np.float64, input_name="embedding")
    T = check_array(target, dtype=np.float64, input_name="target")
    check_consistent_length(Y, T)
    middle = T.mean(axis=0)
    Y, T = Y - Y.mean(axis=0), T - middle
    if allow == "affine":
        moved = Y @ np.linalg.lstsq(Y, T, rcond=None)[0]
    else:
        moved = _turned(Y, T, scaled=allow == "similarity")
    spread = float(np.linalg.norm(T))
    left = float(np.linalg.norm(moved - T))
    return Procrustes(moved + middle, left / spread if spread > 0 else float(left > 0))


def _turned(Y: Array, T: Array, scaled: bool) -> Array:
    """Centred Y after the rotation or reflection, and factor, that bring it nearest to T."""
    if Y.shape[1] < T.shape[1]:
        Y = np.pad(Y, ((0, 0), (0, T.shape[1] - Y.shape[1])))  # turn within the larger space
    U, strengths, Vt = np.linalg.svd(Y.T @ T, full_matrices=False)
    size = float((Y**2).sum())
    factor = strengths.sum() / size if scaled and size > 0 else 1.0
    return np.asarray(factor * Y @ (U @ Vt))
