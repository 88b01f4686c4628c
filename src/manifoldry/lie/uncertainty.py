"""Amounts that the pairs do not determine, or that are beyond those of the training pairs."""

import numpy as np
from numpy.typing import NDArray

from manifoldry.exceptions import ExtensionWarning, ManifoldryWarning, warn
from manifoldry.util.typing import Array


def uncertain_pairs(
    speeds: Array, losses: Array, slow: float = 1 / 3, exact: float = 0.1
) -> NDArray[np.bool_]:
    """Which pairs have rows that move too little for the noise to tell by which amount.

    They move less than `slow` times the median row, by the same amount, and their loss is above
    `exact`, so that there is noise. In patches of shifted signals with noise of a tenth of their
    standard deviation, constant ones had a tenth of the median speed and losses above 0.3, but
    amounts of three times the others.
    """
    return np.asarray((speeds < slow * np.median(speeds)) & (losses > exact))


def relative_amount(amounts: Array, largest: Array) -> float:
    """Largest ratio of an amount to the largest of the training pairs, for each generator."""
    return float((np.abs(amounts) / np.where(largest > 0, largest, np.inf)).max(initial=0.0))


def warn_of_uncertain(
    amounts: Array, uncertain: NDArray[np.bool_], largest: Array, inflated: float = 1.5
) -> None:
    """Warn if amounts of uncertain pairs exceed the `largest` others by the factor `inflated`."""
    excess = relative_amount(amounts, largest)
    if excess > inflated:
        warn(
            f"the generators hardly change the rows of {uncertain.sum()} of {len(uncertain)} "
            "pairs, such as flat patches of images, so that their amounts are noise, up to "
            f"{excess:.2g} times those of the others; leave out the pairs where uncertain_ is "
            "true, or increase reg",
            ManifoldryWarning,
        )


def warn_of_loss(loss: float, large: float = 0.15) -> None:
    """Warn if the generators explain little of the change between the rows of a pair."""
    if loss > large:
        warn(
            f"the generators do not explain a fraction {loss:.2g} of the change between the rows "
            "of a pair (loss_), so the amounts mean little; subtract its mean from each row if "
            "rows are windows of images, leave out flat ones, or increase n_generators",
            ManifoldryWarning,
        )


def warn_of_extrapolation(
    amounts: Array, largest: Array, loss: float, factor: float = 2.0, small_loss: float = 1e-3
) -> None:
    """Warn if the training pairs were explained with errors, which grow with the amount.

    `largest` has the largest amounts of the training pairs, `loss` is their unexplained fraction.
    """
    ratio = relative_amount(amounts, largest)
    if ratio > factor and loss > small_loss:
        warn(
            f"amounts are up to {ratio:.2g} times the largest of the training pairs, and a "
            f"fraction {loss:.2g} of their change is not explained, an error that grows "
            "with the amount; fit pairs that are further apart, or pass amounts up to "
            f"{factor:g} times theirs",
            ExtensionWarning,
        )
