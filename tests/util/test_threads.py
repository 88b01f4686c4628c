"""Number of threads, order of results, and control of BLAS threads."""

import os
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from manifoldry import LLE, MVU, NeighborGraph
from manifoldry.exceptions import NoveltyWarning, RankWarning, ignoring, recording, warn
from manifoldry.util import threads
from manifoldry.util.threads import map_threads, one_blas_thread, thread_count, threads_allowed

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_all_cores_by_default(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == CORES
    with threads_allowed(3):
        assert thread_count() == 3
        with threads_allowed(None):  # None keeps the default
            assert thread_count() == 3
        with threads_allowed(-1):
            assert thread_count() == CORES
    assert thread_count() == CORES


@pytest.mark.parametrize("n_features", [3, 60])  # a tree, and all distances
def test_a_fit_keeps_to_its_number_of_threads(monkeypatch, n_features):
    started, helpers = [], threads._helpers
    monkeypatch.setattr(threads, "_helpers", lambda n: started.append(n) or helpers(n))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    rng = np.random.default_rng(0)
    # Neighborhoods of this size take several blocks, which are distributed to threads.
    X = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, n_features))
    LLE(n_neighbors=20, n_jobs=1).fit(X).transform(X[:300] + 0.01)
    assert started == []
    LLE(n_neighbors=20).fit(X)
    assert set(started) == {1}  # in addition to the calling thread


@pytest.mark.parametrize(("limit", "threads"), [("1", 1), ("1,4", 1), ("none", CORES), ("0", 1)])
def test_workers_share_the_cores(monkeypatch, limit, threads):
    """joblib sets this variable in its workers."""
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert thread_count() == threads


def test_results_keep_their_order_and_errors_are_raised():
    with threads_allowed(4):
        squares = map_threads(lambda i: i * i, range(50))
    assert squares == [i * i for i in range(50)]
    with threads_allowed(2), pytest.raises(ZeroDivisionError):
        map_threads(lambda i: 1 // i, [1, 0])


def test_no_items_are_started_after_an_error():
    begun = []

    def fail_at_once(i):
        begun.append(i)
        if i == 0:
            raise IndexError(i)  # the error that empty queues raise, too
        time.sleep(0.001)

    with threads_allowed(2), pytest.raises(IndexError):
        map_threads(fail_at_once, range(1000))
    assert len(begun) < 1000


def threads_at_work(_=None):
    """Identifiers of the threads that take part in a call."""
    with threads_allowed(2):
        both = threading.Barrier(2, timeout=10)
        return map_threads(lambda _: both.wait() >= 0 and threading.get_ident(), range(2))


def test_helpers_ignore_and_record_warnings_as_the_thread_that_calls():
    both = threading.Barrier(2, timeout=10)

    def warn_from(i):
        both.wait()
        warn(f"item {i}", RankWarning)
        warn(f"item {i}", NoveltyWarning)

    with threads_allowed(2), recording() as said, ignoring(NoveltyWarning):
        map_threads(warn_from, range(2))
    assert sorted(said) == [("item 0", RankWarning), ("item 1", RankWarning)]


def test_helpers_belong_to_the_thread_that_calls():
    mine = threads_at_work()
    assert set(threads_at_work()) == set(mine)
    others = []
    caller = threading.Thread(target=lambda: others.extend(threads_at_work()))
    caller.start()
    caller.join()
    assert len(set(mine)) == len(set(others)) == 2
    assert len({t.ident for t in threading.enumerate()} & set(others)) <= 1  # they end with it


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_threads():
    threads_at_work()
    child = os.fork()
    if child == 0:
        try:
            os._exit(len(set(threads_at_work())))
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_one_item_needs_no_thread():
    assert map_threads(lambda _: threading.current_thread(), [0]) == [threading.main_thread()]


def blas_threads():
    """Threads of numpy's and scipy's BLAS; cvxpy, imported by other tests, has one of its own."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {pool["num_threads"] for pool in pools if "scs.libs" not in pool["filepath"]}


def test_blas_gets_its_threads_back():
    before = blas_threads()
    with threadpool_limits(2, "blas"):
        with one_blas_thread(), one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_an_error():
    def fail(_):
        seen.append(blas_threads())
        raise ZeroDivisionError

    seen: list[set[int]] = []
    X = np.random.default_rng(0).normal(size=(40, 3))
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError):
            MVU(callback=fail).fit(X)
        assert seen == [{1}]  # unfolding uses one thread
        assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_limit_is_removed_in_a_forked_process():
    with threadpool_limits(2, "blas"), one_blas_thread():
        child = os.fork()
        if child == 0:
            with one_blas_thread():
                pass
            os._exit(0 if blas_threads() == {2} else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("n_jobs", [0, "x", 1.5])
def test_invalid_numbers_of_threads(n_jobs):
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs!r} must be"):
        LLE(n_jobs=n_jobs).fit(X)
    with pytest.raises(ValueError, match=f"n_jobs={n_jobs!r} must be"):
        NeighborGraph.build(X, 5, n_jobs=n_jobs)
