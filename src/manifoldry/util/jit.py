"""Compilation of inner loops by numba, with a cache on disk that may fail."""

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from manifoldry.exceptions import ManifoldryWarning, warn


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like ``numba.njit(cache=True)`` that works without a usable cache.

    Where no directory is writable, functions are compiled in each process, with a warning. Damaged
    cache files are replaced.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        try:
            # What Dispatcher.enable_caching does, with another class.
            dispatcher._cache = RepairedCache(function)
        except (RuntimeError, OSError):  # no directory for it
            _warn_once()
        return dispatcher

    return compiled


class RepairedCache(FunctionCache):
    """A cache of compiled functions that ignores damaged files and a full disk."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling arbitrary bytes raises
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn_once()

    def _forget(self) -> None:
        try:
            self.flush()
        except OSError:
            _warn_once()


@cache
def _warn_once() -> None:
    warn(
        "compiled functions cannot be kept on disk, so each process compiles them again, which "
        "takes seconds; set NUMBA_CACHE_DIR to a writable directory",
        ManifoldryWarning,
    )
