"""Warnings with the location of the user's code."""

import sys
import warnings

_INSIDE = ("manifoldry", "sklearn")  # scikit-learn wraps our methods and calls them in pipelines


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning located at the innermost caller outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).split(".")[0]
