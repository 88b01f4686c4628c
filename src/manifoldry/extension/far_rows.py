"""Whether relative distances are larger than chance explains, and the warning about them."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from manifoldry.util.hints import POSITION_DISTANCES, ROW_DISTANCES
from manifoldry.util.typing import Array

FAR = 2.0
"""A row is far if its relative distance is above this, as is that of 1 % of the references."""

VERY_FAR = 10.0
"""One row above this is enough for a warning: hardly any row like the references is so far."""

FAR_REFERENCES = 0.01
"""Fraction of the references, each measured without itself, that are far."""

MOST_REFERENCES = 1000
"""A model keeps so many references, and every new row is compared with them."""


class FarText(NamedTuple):
    """The words of a warning: what is far from what, and what follows."""

    rows: str
    far: str
    follows: str


UNLIKE_THE_DATA = FarText(
    "rows",
    "unlike the data that the model was fitted on: farther from them than 99 % of the training "
    "rows are from each other",
    f"Such coordinates are not reliable; {ROW_DISTANCES.python}",
)
OFF_THE_MAP = FarText(
    "positions",
    "off the map: farther from the embedded training points than 99 % of these are from each other",
    f"The data there are extrapolated{POSITION_DISTANCES.python}",
)


def differ(distances: Array, n_references: int) -> bool:
    """Whether rows are unlike the references: too many are far, or any is very far."""
    many = are_many(int((distances > FAR).sum()), len(distances), n_references)
    return many or bool((distances > VERY_FAR).any())


def far_warning(distances: Array, n_rows: int, n_references: int, text: FarText) -> str:
    """The warning about rows, `n_rows` in all, of which these distances are known.

    Only for rows that `differ`. If those that are far are not many, it counts the very far ones.
    """
    total, n_far = len(distances), int((distances > FAR).sum())
    many = are_many(n_far, total, n_references)
    count = n_far if many else int((distances > VERY_FAR).sum())
    counted = f"{count} of {total} {text.rows}"
    if total < n_rows:
        counted = (
            f"about {count / total:.0%} of {n_rows} {text.rows}"
            if many
            else f"{counted}, measured of {n_rows},"
        )
    largest = distances.max()
    extent = ""
    if largest > VERY_FAR:
        scale = f"1 is usual, above {VERY_FAR:g} is hardly ever chance"
        extent = f", with distances up to {largest:.3g} ({scale})"
    verb = "is" if count == 1 else "are"
    return f"{counted} {verb} {text.far}{extent}. {text.follows}"


def are_many(
    far: int, total: int, n_training: int, *, least: float = 0.05, level: float = 0.01
) -> bool:
    """Whether so many far rows are unlikely if they have the distribution of the training rows.

    They must be at least the fraction `least` of all rows, and the probability of as many must be
    at most `level`. Their number has a beta-binomial distribution, which allows for the error of
    estimating which distance 1 % of the training rows exceed.
    """
    if far < max(1, least * total):
        return False
    n = min(n_training, MOST_REFERENCES) + 1
    a, b, count = FAR_REFERENCES * n, (1 - FAR_REFERENCES) * n, np.arange(far, total + 1)
    log_choices = -np.log(total + 1) - betaln(count + 1, total - count + 1)
    log_probability = log_choices + betaln(count + a, total - count + b) - betaln(a, b)
    # For a single far row the two are equal but for rounding.
    return bool(np.exp(log_probability).sum() <= level * (1 + 1e-9))
