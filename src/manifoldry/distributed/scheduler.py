"""What runs where: the Dask scheduler in use, tasks, values for all workers, and clear errors."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from manifoldry.distributed.failures import explained, explained_here, lost_scheduler
from manifoldry.util.progress import progress
from manifoldry.util.threads import one_blas_thread, threads_allowed

# Results of so many tasks are combined by one task.
_FAN_IN = 8
# Values of more bytes are tasks of their own; Dask warns of graphs of 10 MB.
_IN_GRAPH = 4_000_000


def current_client() -> Any:
    """Return the client of Dask's distributed scheduler that is in use, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    import dask

    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return distributed.Client.current()
    except ValueError:
        return None


class OneThread:
    """A function that uses one thread: Dask runs as many tasks at a time as a worker has threads.

    Parameters
    ----------
    function : callable
        The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        named = getattr(function, "func", function)  # that of a partial
        self.__name__ = named.__name__.strip("_")  # in Dask's dashboard

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with threads_allowed(1), one_blas_thread():
            return self.function(*args, **kwargs)


def delayed(function: Callable[..., Any]) -> Any:
    """Return the function whose calls are tasks of one thread."""
    import dask

    return dask.delayed(OneThread(function))


class tasks_of_fit:  # noqa: N801 (used like a function)
    """Context of a fit: its tasks run on one cluster, and are canceled if it fails.

    Without it a traceback that is kept, as a notebook keeps the last one, would keep results on the
    workers, and tasks of the failed fit would go on.
    """

    def __enter__(self) -> tasks_of_fit:
        self.client = current_client()
        self.futures: WeakSet[Any] = WeakSet()
        self.token = _FIT.set(self)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _FIT.reset(self.token)
        if kind is not None:
            _cancel(self.client, list(self.futures))


_FIT: ContextVar[tasks_of_fit | None] = ContextVar("tasks of fit", default=None)


def compute(tasks: Iterable[Any], what: str, *, verbose: bool = False) -> list[Any]:
    """Return the results of delayed tasks, in their order, and report how many are done."""
    import dask

    tasks, client = list(tasks), _client_of_fit()
    if client is None:
        with explained_here():
            return list(dask.compute(*tasks))
    from distributed import as_completed

    futures, failed = _submitted(client.compute, tasks, client), None
    try:
        done = as_completed(futures, raise_errors=False)
        for future in progress(done, len(futures), what, verbose):
            if future.status not in ("finished", "pending"):
                failed = future
                future.result()  # raises its error
        return list(client.gather(futures))
    except BaseException as error:
        why = explained(error, client, failed)
        _cancel(client, futures)
        if why is None:
            raise
        raise why from error


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Compute delayed tasks and keep their results where they were computed."""
    import dask

    tasks, client = list(tasks), _client_of_fit()
    if not tasks:
        return []
    if client is None:
        with explained_here():
            return list(dask.persist(*tasks))
    return _submitted(client.persist, tasks, client)


def broadcast(value: Any) -> Any:
    """Return what stands for `value` in tasks; it is sent to each worker once.

    The value is part of a task, so the scheduler can send it again when workers are lost. Of values
    that were scattered to workers the last copy may be lost with its worker.
    """
    import dask

    if current_client() is None:
        return dask.delayed(value, name=f"{type(value).__name__}-{uuid4()}", traverse=False)
    import cloudpickle  # type: ignore[import-untyped]  # it ships no types

    load, pickled = dask.delayed(pickle.loads, pure=False), cloudpickle.dumps(value)
    name = f"{type(value).__name__}-{uuid4()}"
    if len(pickled) <= _IN_GRAPH:
        return load(pickled, dask_key_name=name)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        return persist([load(pickled, dask_key_name=name)])[0]


def combined(tasks: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Return the task that combines the results of all tasks, a few at a time."""
    together = delayed(combine)
    tasks = [together(list(tasks[i : i + _FAN_IN])) for i in range(0, len(tasks), _FAN_IN)]
    return tasks[0] if len(tasks) == 1 else combined(tasks, combine)


def _client_of_fit() -> Any:
    """The client of the fit around this call, or the current one; None for none.

    A client that has lost its scheduler is no longer the current one, and the rest of a fit would
    run here, without the results on the workers.
    """
    fit = _FIT.get()
    client = current_client() if fit is None or fit.client is None else fit.client
    if client is not None and client.status != "running":
        raise lost_scheduler(f"the client is {client.status}")
    return client


def _submitted(submit: Callable[[list[Any]], list[Any]], tasks: list[Any], client: Any) -> Any:
    """What `submit` returns for tasks of the cluster."""
    from distributed import futures_of

    try:
        submitted = submit(tasks)
    except Exception as error:
        if (why := explained(error, client)) is None:
            raise
        raise why from error
    if client.status != "running":  # they would wait for it forever
        raise lost_scheduler(f"the client is {client.status}")
    if (fit := _FIT.get()) is not None:
        fit.futures.update(futures_of(submitted))
    return submitted


def _cancel(client: Any, futures: list[Any]) -> None:
    """Drop tasks, unless their scheduler is gone; what has not begun is not computed.

    Not by `Client.cancel`: it fails for results with dependents that are no futures themselves, and
    the scheduler then drops the client.
    """
    if client is not None and client.status == "running":
        for future in futures:
            future.release()
