"""How far points of one map are from their places on another."""

import numpy as np

from manifoldry.metrics.motion import Motion
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


def spread_of(Y: Array) -> float:
    """Root mean squared distance of the points on a map from their centre."""
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


def motion_between(Y: Array, target: Array, allow: str) -> Motion:
    """The motion of one map onto another by the points on both."""
    common = np.isfinite(Y).all(axis=1) & np.isfinite(target).all(axis=1)
    needed = target.shape[1] + 2  # an affine map takes one fewer anywhere
    if common.sum() < needed:
        raise ValueError(
            f"{common.sum()} points are on both maps; {needed} or more tell a change from a "
            "motion: refit on more points"
        )
    return Motion.fit(Y[common], target[common], allow)


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
