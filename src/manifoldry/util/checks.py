"""Validation of scalar arguments; each error message gives the value, the bound and the remedy."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from manifoldry.util.typing import RandomState


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be a whole number; pass {name}={minimum} or more")
    if value < minimum:
        raise ValueError(
            f"{name}={value} must be at least {minimum}; pass {name}={minimum} or more"
        )
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above zero."""
    number = _finite(name, value)
    if number <= 0:
        raise ValueError(f"{name}={value} must be greater than 0; pass a positive {name}")
    return number


def check_nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least zero."""
    number = _finite(name, value)
    if number < 0:
        raise ValueError(f"{name}={value} must be at least 0; pass {name}=0 for none")
    return number


def check_instance(name: str, value: Any, kind: type) -> None:
    """Raise TypeError unless ``value`` is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(f"{name}={value!r} must be an instance of {kind.__name__}; pass one")


def check_below(name: str, value: float, bound: float, why: str) -> float:
    """Return ``value`` if it is below ``bound``; ``why`` explains the bound in the message."""
    if value >= bound:
        raise ValueError(f"{name}={value:g} must be less than {bound:g} ({why}); lower {name}")
    return value


def check_at_most(name: str, value: float, bound: float, why: str) -> float:
    """Return ``value`` if it is at most ``bound``; ``why`` explains the bound in the message."""
    # Allow for rounding in the caller's value, such as 2π computed as a product.
    if value > bound * (1 + 1e-12):
        raise ValueError(f"{name}={value:g} must be at most {bound:g} ({why}); lower {name}")
    return min(value, bound)


def check_option(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``options``, otherwise raise ValueError."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, options))}")
    return value


def as_generator(random_state: RandomState, unset: int | None = None) -> np.random.Generator:
    """Convert an int, RandomState, Generator or None to a Generator; None means seed `unset`.

    A Generator is returned unchanged. A RandomState is used to draw the seed, which advances it,
    so that two calls with the same object differ, as in scikit-learn.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4))
    if random_state is None:
        return np.random.default_rng(unset)
    return np.random.default_rng(check_count("random_state", random_state, minimum=0))


def _finite(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a number; pass a float")
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"{name}={value} must be finite; pass a finite {name}")
    return number


def above(value: float, bound: float, digits: int = 2) -> str:
    """Return a value above a bound with enough digits to be seen to be above it.

    Examples
    --------
    >>> above(0.037, 0.01), above(0.010004, 0.01)
    ('0.037', '0.010004')
    """
    while digits < 17 and float(f"{value:.{digits}g}") <= bound:
        digits += 1
    return f"{value:.{digits}g}"
