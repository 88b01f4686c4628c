"""Threads for our own loops: as many as the process may use, none where others already share it."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral
from threading import Lock, local
from typing import Any, TypeVar

Result = TypeVar("Result")

# Who wants BLAS in one thread, and how that is taken back.
_LOCK = Lock()
_N_USERS = 0
_LIMIT = ExitStack()


# What every thread has for itself: its helpers.
_THREAD_LOCAL = local()

# Threads that the caller of a fit allows; None for as many as there are cores.
_ALLOWED: ContextVar[int | None] = ContextVar("threads allowed", default=None)


@contextmanager
def threads_allowed(n_jobs: int | None) -> Iterator[None]:
    """Run our own loops in as many threads as `n_jobs` says, as joblib reads it; None: no limit.

    BLAS keeps its own count, which threadpoolctl or ``OMP_NUM_THREADS`` set.
    """
    from joblib import effective_n_jobs  # type: ignore[import-untyped]  # it ships no types

    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a positive number of threads, -1 for all")
    before = _ALLOWED.set(_ALLOWED.get() if n_jobs is None else int(effective_n_jobs(n_jobs)))
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def thread_count() -> int:
    """Threads to use: what was allowed, by default all cores the process may use.

    joblib's workers find their fraction of the cores in ``OMP_NUM_THREADS``.
    """
    if (allowed := _ALLOWED.get()) is not None:
        return allowed
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(cores or 1, int(limit) if limit.isdigit() else cores or 1))


def map_threads(function: Callable[[Any], Result], items: Iterable[Any]) -> list[Result]:
    """Results of `function` for all items, in their order, by several threads.

    For functions that release the interpreter's lock. The caller is one of the threads, and has
    the others to itself, so that concurrent fits and forks do not share any.
    """
    items = list(items)
    threads = min(thread_count(), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    results: dict[int, Result] = {}
    remaining = deque(enumerate(items))

    def work() -> None:
        try:
            for i, item in _take_items(remaining):
                results[i] = function(item)
        except BaseException:
            remaining.clear()  # the others need not go on
            raise

    helpers = [_helpers(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        wait(helpers)
    for helper in helpers:
        helper.result()
    return [results[i] for i in range(len(items))]


def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads that wait for the one that asks, and end with it: new ones would cost 0.1 ms a call.

    A fork has none of its parent's.
    """
    pools = vars(_THREAD_LOCAL).setdefault("helpers", {})
    if (key := (os.getpid(), count)) not in pools:
        pools[key] = ThreadPoolExecutor(count)
    pool: ThreadPoolExecutor = pools[key]
    return pool


def _take_items(remaining: deque[Result]) -> Iterator[Result]:
    """What this thread takes of what is left, one at a time, until nothing is."""
    while True:
        try:
            item = remaining.popleft()
        except IndexError:
            return
        yield item


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS in one thread, in every thread of the process that is in here or outside.

    Products of a few dozen vectors of 10⁵ entries are bound by memory, and the threads of BLAS
    wait for each other after each: with one other process on two cores that took 8 ms instead of
    0.7 (70 000 × 40). The setting belongs to the process: the first to enter makes it, the last to
    leave takes it back, so concurrent fits cannot restore each other's.
    """
    global _N_USERS
    with _LOCK:
        if _N_USERS == 0:
            _LIMIT.enter_context(_controller().limit(limits=1, user_api="blas"))
        _N_USERS += 1
    try:
        yield
    finally:
        with _LOCK:
            _N_USERS -= 1
            if _N_USERS == 0:
                _LIMIT.close()


def _after_fork() -> None:
    """A child has none of the threads that wanted the limit: take it back."""
    global _LOCK, _N_USERS
    _LOCK, _N_USERS = Lock(), 0
    _LIMIT.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # no types

    return ThreadpoolController()
