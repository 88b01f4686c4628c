"""What runs where: the Dask scheduler in use, tasks, values for all workers, and clear errors."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from manifoldry.util.progress import progress
from manifoldry.util.threads import one_blas_thread, threads_allowed

# Results of so many tasks are combined by one task.
_FAN_IN = 8
# Values of more bytes are sent to workers ahead of tasks; Dask warns of graphs of 10 MB.
_IN_GRAPH = 4_000_000


def current_client() -> Any:
    """Return the client of Dask's distributed scheduler that is in use, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
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


def compute(tasks: Iterable[Any], what: str, *, verbose: bool = False) -> list[Any]:
    """Return the results of delayed tasks, in their order, and report how many are done."""
    import dask

    tasks, client = list(tasks), current_client()
    with explained_errors():
        if client is None:
            return list(dask.compute(*tasks))
        from distributed import as_completed

        futures = client.compute(tasks)
        done = as_completed(futures, raise_errors=False)
        for future in progress(done, len(futures), what, verbose):
            if future.status != "finished":
                client.cancel(futures)
                future.result()  # raises its error
        return list(client.gather(futures))


def persist(tasks: Iterable[Any]) -> list[Any]:
    """Compute delayed tasks and keep their results where they were computed."""
    import dask

    tasks = list(tasks)
    with explained_errors():
        return list(dask.persist(*tasks)) if tasks else []


def broadcast(value: Any) -> Any:
    """Return what stands for `value` in tasks; it is sent to each worker once.

    Small values are part of the tasks, so they survive the loss of all workers.
    """
    import dask

    client = current_client()
    if client is None or len(pickle.dumps(value)) <= _IN_GRAPH:
        return dask.delayed(value, name=f"{type(value).__name__}-{uuid4()}", traverse=False)
    with explained_errors():
        return client.scatter(value, broadcast=True, hash=False)


def combined(tasks: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Return the task that combines the results of all tasks, a few at a time."""
    together = delayed(combine)
    tasks = [together(list(tasks[i : i + _FAN_IN])) for i in range(0, len(tasks), _FAN_IN)]
    return tasks[0] if len(tasks) == 1 else combined(tasks, combine)


class explained_errors:  # noqa: N801 (used like a function)
    """Context in which errors of the cluster itself become a RuntimeError with a remedy."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        names = {each.__name__ for each in kind.__mro__} if kind else set()
        if "KilledWorker" in names:
            raise RuntimeError(
                f"workers died repeatedly while they computed the same task, mostly for lack of "
                f"memory ({error}); pass smaller chunks, such as X.rechunk(({{0: 10_000}})), or "
                "start workers with more memory"
            ) from error
        if names & {"CommClosedError", "CancelledError", "FutureCancelledError"}:
            raise RuntimeError(
                f"the Dask scheduler no longer answers ({error}); the model is as it was before. "
                "Start the scheduler, connect a new Client, and call the method again"
            ) from error
