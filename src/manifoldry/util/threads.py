"""Threads for loops of this package, and control of BLAS threads."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from numbers import Integral
from threading import Lock, local
from typing import Any, TypeVar

Result = TypeVar("Result")


class ForkSafeLock:
    """A lock that is free in a forked process, whoever held it in the parent."""

    def __init__(self) -> None:
        self._lock = Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


# Number of active one_blas_thread contexts, and the threads to return when the last one exits.
_LOCK = ForkSafeLock()
_N_USERS = 0
_BEFORE: list[int] = []


# The thread pools of each thread.
_THREAD_LOCAL = local()

# Number of threads set by threads_allowed; None for one per core.
_ALLOWED: ContextVar[int | None] = ContextVar("threads allowed", default=None)


@contextmanager
def threads_allowed(n_jobs: int | None) -> Iterator[None]:
    """Limit the threads of :func:`map_threads` to `n_jobs`, as in joblib; None sets no limit.

    BLAS threads are not affected; use threadpoolctl or ``OMP_NUM_THREADS``.
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
    """Number of threads to use: the limit set by the caller, by default the available cores.

    joblib sets ``OMP_NUM_THREADS`` in its workers to their fraction of the cores.
    """
    if (allowed := _ALLOWED.get()) is not None:
        return allowed
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(cores or 1, int(limit) if limit.isdigit() else cores or 1))


def map_threads(function: Callable[[Any], Result], items: Iterable[Any]) -> list[Result]:
    """Return ``[function(item) for item in items]``, computed by several threads.

    Meant for functions that release the global interpreter lock. The calling thread works too. Its
    helper threads are its own, so that concurrent fits and forks do not share threads. They work in
    copies of its context, such as that of ignored warnings.
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
            remaining.clear()  # stop the other threads
            raise

    pool = _helpers(threads - 1)
    helpers = [pool.submit(copy_context().run, work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        wait(helpers)
    for helper in helpers:
        helper.result()
    return [results[i] for i in range(len(items))]


def run_on_rows(kernel: Any, n: int, *arguments: Any) -> None:
    """Call ``kernel(*arguments, start, stop)`` on n rows, split evenly among the threads."""
    threads = thread_count()
    bounds = [n * part // threads for part in range(threads + 1)]
    map_threads(lambda part: kernel(*arguments, *part), pairwise(bounds))


def _helpers(count: int) -> ThreadPoolExecutor:
    """Return the thread pool of the calling thread, which ends with it.

    Creating threads for each call would cost 0.1 ms. A forked process creates its own pool.
    """
    pools = vars(_THREAD_LOCAL).setdefault("helpers", {})
    if (key := (os.getpid(), count)) not in pools:
        pools[key] = ThreadPoolExecutor(count)
    pool: ThreadPoolExecutor = pools[key]
    return pool


def _take_items(remaining: deque[Result]) -> Iterator[Result]:
    """Yield the remaining items one at a time; several threads share the queue."""
    while True:
        try:
            item = remaining.popleft()
        except IndexError:
            return
        yield item


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the whole process.

    Products of a few dozen vectors of 10⁵ entries are limited by memory bandwidth, and BLAS
    threads wait for each other after each product: with another process on two cores this took
    8 ms instead of 0.7 ms (70 000 × 40). Since the setting applies to the process, the first
    context to enter sets it and the last one to exit restores it.
    """
    global _N_USERS
    with _LOCK:
        if _N_USERS == 0:
            _BEFORE[:] = [library.num_threads for library in _blas()]
            _set_blas_threads([1] * len(_BEFORE))
        _N_USERS += 1
    try:
        yield
    finally:
        with _LOCK:
            _N_USERS -= 1
            if _N_USERS == 0:
                _set_blas_threads(_BEFORE)


def _set_blas_threads(counts: list[int]) -> None:
    """Set the number of threads of each BLAS library, whichever thread has set it before.

    Since version 3.7, threadpoolctl lets only one thread set that of OpenBLAS, until it leaves the
    context in which it did. Here the first thread sets it, and the last one returns it.
    """
    for library, count in zip(_blas(), counts, strict=True):
        release = getattr(library, "clear_controlling_thread", _nothing)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)


def _nothing(**_: Any) -> None:
    """What threadpoolctl before 3.7 needs."""


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Limit OpenMP to one thread, in calls of scikit-learn's compiled loops.

    GNU's OpenMP keeps its threads after a loop, and a forked process, which has none of them, waits
    for them forever in its next loop. With one thread there are none to wait for.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no types

    with threadpool_limits(limits=1, user_api="openmp"):
        yield


def _after_fork() -> None:
    """Remove the limit in a forked process, which has none of the threads that set it."""
    global _N_USERS
    if _N_USERS:
        _set_blas_threads(_BEFORE)
    _N_USERS = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _blas() -> list[Any]:
    """The BLAS libraries of this process."""
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().lib_controllers
    return [library for library in libraries if library.user_api == "blas"]
