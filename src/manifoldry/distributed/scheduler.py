"""What runs where: the Dask scheduler in use, tasks, values for all workers, and clear errors."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    if "distributed" not in sys.modules:
        return None
    import dask
    from distributed import Client  # waits for a thread that is importing it

    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        return Client.current()
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
    futures = _submitted(client.compute, tasks, client)
    with _explained_there(client, futures) as failing:
        _wait(futures, failing, what, verbose)
        return list(client.gather(futures))


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Compute delayed tasks and keep their results where they were computed.

    On a cluster this does not wait for them.
    """
    import dask

    tasks, client = list(tasks), _client_of_fit()
    if not tasks:
        return []
    if client is None:
        with explained_here():
            return list(dask.persist(*tasks))
    return list(_submitted(client.persist, tasks, client))


def persist_all(tasks: Iterable[Any], what: str, *, verbose: bool = False) -> list[Any]:
    """Compute tasks, or Dask arrays, keep the results where they are, and wait for all of them.

    What a fit sets last needs this: an error of a task then is one of the fit.
    """
    kept, client = persist(tasks), _client_of_fit()
    if client is not None and kept:
        from distributed import futures_of

        futures = futures_of(kept)
        with _explained_there(client, futures) as failing:
            _wait(futures, failing, what, verbose)
    return kept


def broadcast(value: Any, *, lazily: bool = False) -> Any:
    """Return what stands for `value` in tasks; it is sent to each worker once.

    The value is part of a task, so the scheduler can send it again when workers are lost. Of values
    that were scattered to workers the last copy may be lost with its worker.

    Parameters
    ----------
    value : Any
        The value.
    lazily : bool, default=False
        Whether the tasks may run on another cluster, after this one has ended. Large values are
        then sent to the scheduler with each computation; otherwise workers keep them.
    """
    import dask

    if _client_of_fit() is None:
        return dask.delayed(value, name=f"{type(value).__name__}-{uuid4()}", traverse=False)
    import cloudpickle  # type: ignore[import-untyped]  # it ships no types

    load, pickled = dask.delayed(pickle.loads, pure=False), cloudpickle.dumps(value)
    name = f"{type(value).__name__}-{uuid4()}"
    if lazily or len(pickled) <= _IN_GRAPH:
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


@contextmanager
def _explained_there(client: Any, futures: list[Any]) -> Iterator[list[Any]]:
    """Context that waits for tasks; if it raises, they are dropped, and the error says why.

    The list that it yields takes the task that failed.
    """
    failing: list[Any] = []
    try:
        yield failing
    except BaseException as error:
        why = explained(error, client, failing[0] if failing else None)
        _cancel(client, futures)
        if why is None:
            raise
        raise why from error


def _wait(futures: list[Any], failing: list[Any], what: str, verbose: bool) -> None:
    """Wait for tasks, and raise the error of the first one that fails."""
    from distributed import as_completed

    done = as_completed(futures, raise_errors=False)
    for future in progress(done, len(futures), what, verbose):
        if future.status not in ("finished", "pending"):
            failing.append(future)
            future.result()  # raises its error


def _cancel(client: Any, futures: list[Any]) -> None:
    """Drop tasks, unless their scheduler is gone; what has not begun is not computed.

    Not by `Client.cancel`: it fails for results with dependents that are no futures themselves, and
    the scheduler then drops the client.
    """
    if client is not None and client.status == "running":
        for future in futures:
            future.release()
