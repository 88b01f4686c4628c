"""Pairs and amounts as they are given, and what of a change is explained."""

from typing import Any

import numpy as np

from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


def common_unit(X: Array, Y: Array) -> float:
    """A power of two of the size of the entries, so that squares neither overflow nor vanish."""
    return max(power_of_two_scale(X), power_of_two_scale(Y))


def refuse_still(X: Array, Y: Array) -> None:
    """Refuse pairs from which nothing can be learned."""
    if not X.any():
        raise ValueError(
            "all rows of X are zero, which no linear transformation moves; pass others"
        )
    if not ((Y - X) ** 2).any():
        raise ValueError(
            "X and Y are equal: nothing moves, so there is nothing to learn; pass as Y the rows of "
            "X after some of the transformation"
        )


def explained(X: Array, Y: Array, moved: Array) -> float:
    """Share of Σ‖y − x‖² that moving the rows accounts for."""
    change = float(((Y - X) ** 2).sum())
    left = float(((Y - moved) ** 2).sum())
    return 1.0 - left / change if change else 1.0


def as_amounts(amount: Any, n: int, q: int) -> Array:
    """Amounts of all rows, (n, q)."""
    given = np.asarray(amount, dtype=np.float64)
    if not np.isfinite(given).all():
        raise ValueError("amount contains NaN or infinity; pass finite numbers")
    if q == 1 and given.ndim == 1 and len(given) == n:
        given = given[:, None]  # of one generator, a list has one number per row
    if given.shape in ((q,), (1, q), (n, q)) or (q == 1 and given.size == 1):
        return np.broadcast_to(given, (n, q))
    raise ValueError(
        f"amount has shape {given.shape}; pass one number per generator ({q}), or shape ({n}, {q}) "
        "with one row of amounts for every row of X"
    )
