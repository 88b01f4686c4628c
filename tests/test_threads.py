"""How many threads our own loops take, and that they keep the order of results."""

import os
import threading

import pytest

from manifoldry._threads import map_threads, thread_count

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_all_cores_by_default(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == CORES
    assert thread_count(1) == 1
    assert thread_count(3) == 3


@pytest.mark.parametrize(("limit", "threads"), [("1", 1), ("1,4", 1), ("none", CORES), ("0", 1)])
def test_workers_share_the_cores(monkeypatch, limit, threads):
    """joblib tells its workers their share by this variable."""
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert thread_count() == threads


def test_results_keep_their_order_and_errors_come_through():
    assert map_threads(lambda i: i * i, range(50), n_jobs=4) == [i * i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda i: 1 // i, [1, 0], n_jobs=2)


def test_one_item_needs_no_thread():
    assert map_threads(lambda _: threading.current_thread(), [0]) == [threading.main_thread()]
