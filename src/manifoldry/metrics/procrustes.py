"""Compare two maps of the same points up to motions that do not matter."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from manifoldry.metrics.motion import Motion
from manifoldry.metrics.pair import read_map
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


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
    motion : Motion
        What was done; its ``apply`` takes further points of the same map along.
    """

    aligned: Array
    error: float
    motion: Motion


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
    Y, T = read_map(embedding), read_map(target)
    check_consistent_length(Y, T)
    common = ~np.isnan(Y).any(axis=1) & ~np.isnan(T).any(axis=1)
    if common.sum() < 2:
        raise ValueError(f"{common.sum()} points are on both maps (not NaN); at least 2 are needed")
    motion = Motion.fit(Y[common], T[common], allow)
    moved, Y, T = motion.apply(Y), Y[common], T[common]
    unit = power_of_two_scale(T - motion.target)  # squares of tiny or huge maps have no digits
    spread = float(np.linalg.norm((T - motion.target) / unit))
    left = float(np.linalg.norm((moved[common] - T) / unit))
    return Procrustes(moved, left / spread if spread > 0 else float(left > 0), motion)
