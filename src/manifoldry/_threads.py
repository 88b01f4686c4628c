"""Threads for our own loops: as many as the process may use, none where others already share it."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def thread_count(n_jobs: int | None = None) -> int:
    """Threads to use: `n_jobs` as joblib reads it, by default all cores the process may use.

    joblib's workers find their share of the cores in ``OMP_NUM_THREADS``.
    """
    if n_jobs is not None:
        from joblib import effective_n_jobs  # type: ignore[import-untyped]  # it ships no types

        return int(effective_n_jobs(n_jobs))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(cores or 1, int(limit) if limit.isdigit() else cores or 1))


def map_threads(
    function: Callable[[Any], Result], items: Iterable[Any], n_jobs: int | None = None
) -> list[Result]:
    """Results of `function` for all items, in their order, by several threads.

    For functions that release the interpreter's lock; a pool per call, so that concurrent fits
    and forks do not share one.
    """
    items = list(items)
    threads = min(thread_count(n_jobs), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
