"""Warnings and errors of manifoldry; each message gives the cause and the remedy."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ManifoldryWarning(UserWarning):
    """Base class of all warnings of this package, so that one filter covers them."""


class CalibrationWarning(ManifoldryWarning):
    """The calibration set is too small to estimate the size of the errors."""


class ConvergenceWarning(ManifoldryWarning):
    """A solver did not reach the requested accuracy."""


class DegenerateSpectrumWarning(ManifoldryWarning):
    """The coordinates are not unique: they span only part of the eigenspace of an eigenvalue."""


class DisconnectedGraphWarning(ManifoldryWarning):
    """The neighbor graph has several connected components."""


class DominatedCoordinateWarning(ManifoldryWarning):
    """One point, a handful or a small group of points hold most of the variance of a coordinate."""


class ExtensionWarning(ManifoldryWarning):
    """The out-of-sample extension is less accurate than usual for some new points."""


class LargeMatrixWarning(ManifoldryWarning):
    """A matrix with an entry for each of very many pairs will take gigabytes of memory."""


class LongFitWarning(ManifoldryWarning):
    """The fit will take many minutes."""


class NoveltyWarning(ExtensionWarning):
    """Many new points are unlike the data of the fit, or many positions are off the map."""


class RankWarning(ManifoldryWarning):
    """The data or the embedding has fewer dimensions than requested."""


class RedundantCoordinateWarning(ManifoldryWarning):
    """A coordinate is largely predictable from those before it."""


class ShortCircuitWarning(ManifoldryWarning):
    """A few edges of the neighbor graph are shortcuts between distant parts of the manifold."""


class TangentSpaceWarning(ManifoldryWarning):
    """Tangent spaces of the requested dimension do not fit the data."""


class UniformAffinityWarning(ManifoldryWarning):
    """All affinities are nearly equal, so they carry little information about the data."""


class VersionWarning(ManifoldryWarning):
    """A model was saved by another version of this package."""


class DisconnectedGraphError(ValueError):
    """The neighbor graph has several connected components and the policy does not allow that."""


# scikit-learn wraps our methods, and calls them in pipelines and, through joblib, in searches.
_INSIDE = ("manifoldry", "sklearn", "joblib")


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning located at the innermost caller outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Numbers of rows warned about in this context, and of all rows, by text and category; None if each
# warning is issued at once.
_COUNTS: ContextVar[dict[tuple[str, type[Warning]], list[int]] | None] = ContextVar(
    "rows warned about", default=None
)


def warn_about_rows(count: int, total: int, text: str, category: type[Warning]) -> None:
    """Warn about `count` of `total` rows, if any; the `text` has {count} and {total} in it.

    Inside :func:`counting_rows` the counts are added up, and one warning is issued at the end.
    """
    counts = _COUNTS.get()
    if counts is not None:
        before = counts.setdefault((text, category), [0, 0])
        before[0], before[1] = before[0] + count, before[1] + total
    elif count:
        warn(text.format(count=count, total=total), category)


@contextmanager
def counting_rows() -> Iterator[None]:
    """Issue one warning for all blocks of rows that are processed inside this context."""
    counts: dict[tuple[str, type[Warning]], list[int]] = {}
    outer = _COUNTS.set(counts)
    try:
        yield
    finally:
        _COUNTS.reset(outer)
    for (text, category), (count, total) in counts.items():
        warn_about_rows(count, total, text, category)


def is_ignored(category: type[Warning]) -> bool:
    """Whether the filters ignore all warnings of a category, so that none needs to be computed."""
    for action, message, filtered, module, line in warnings.filters:
        some_only = action == "ignore" and (message or module or line)
        if issubclass(category, filtered) and not some_only:
            return action == "ignore"
    return False


@contextmanager
def ignoring(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a category whose text begins with `message` inside this context."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message, category)
        yield


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).split(".")[0]
