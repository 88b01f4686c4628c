"""Many fits in parallel: what came of each, and what to tell of those that failed."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from manifoldry.exceptions import ManifoldryWarning
from manifoldry.util.progress import progress
from manifoldry.util.threads import one_blas_thread
from manifoldry.util.warn import warn


@dataclass(frozen=True)
class Outcome:
    """What a task returned, or why it did not, and the warnings on the way."""

    value: Any = None
    error: str = ""
    warnings: frozenset[tuple[type[Warning], str]] = frozenset()


def run(
    task: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    total: int,
    n_jobs: int | None,
    verbose: bool,
    what: str = "refits",
) -> Iterator[Outcome]:
    """Outcomes of a task for all jobs, in their order, by several processes."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]  # it ships no types

    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_watched)(task, job) for job in jobs
    )
    return progress(done, total, what, verbose)


def _watched(task: Callable[..., Any], job: tuple[Any, ...]) -> Outcome:
    # One thread of BLAS whatever n_jobs: more processes would compete for the cores, and sums in
    # another order are other numbers, which chaotic methods such as t-SNE make visible.
    with one_blas_thread(), _recorded() as seen:
        try:
            outcome = Outcome(task(*job))
        except Exception as error:
            outcome = Outcome(error=describe(error))
    return replace(outcome, warnings=frozenset((w.category, str(w.message)) for w in seen))


@contextmanager
def _recorded() -> Iterator[list[Any]]:
    """Collect warnings, which would otherwise come once per fit; not where threads share them."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for meant_for_others in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", meant_for_others)
        yield seen


def describe(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


def settle(outcomes: list[Outcome], what: str = "refits") -> tuple[str, ...]:
    """Pass on what went wrong, each thing once; refuse results of which most are missing."""
    total, failures = len(outcomes), tuple(outcome.error for outcome in outcomes if outcome.error)
    if 2 * len(failures) > total:
        raise RuntimeError(
            f"{len(failures)} of {total} {what} failed, too many to say anything; the first: "
            f"{failures[0]}. Settings that suit all the data may ask too much of a part of them"
        )
    if failures:
        warn(
            f"{len(failures)} of {total} {what} failed and are left out; the first: {failures[0]}",
            ManifoldryWarning,
        )
    counts = Counter(category for o in outcomes for category in {c for c, _ in o.warnings})
    first = {c: text for o in reversed(outcomes) for c, text in sorted(o.warnings, key=str)}
    for category, count in counts.items():
        warn(f"in {count} of {total} {what}: {first[category]}", category)
    return failures
