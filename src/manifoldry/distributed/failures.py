"""What went wrong on a cluster, in words: lost schedulers, killed workers, unreadable chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from manifoldry.util.typing import IntArray

# Names of Dask's errors in versions since 2025.4; they are not imported before they are raised.
_LOST = {
    "CancelledError",
    "ClosedClientError",
    "CommClosedError",
    "FutureCancelledError",
    "FuturesCancelledError",
}
_BLOCK = re.compile(
    r"(?:checked_block|count_rows)-[0-9a-f]{32}-(?P<what>.*)-(?P<number>\d+)-(?P<rows>\d+-\d+|all)"
)


def block_keys(starts: IntArray, counts: IntArray, what: str) -> list[str]:
    """Return names of tasks that check blocks, which say what they read.

    If a task that reads a chunk fails, those that need it never run, so they cannot say which
    chunk it was. Their names can.
    """
    unique = uuid4().hex
    return [
        f"checked_block-{unique}-{what}-{i}-{start}-{start + count}"
        for i, (start, count) in enumerate(zip(starts, counts, strict=True))
    ]


def counting_keys(n_blocks: int, what: str) -> list[str]:
    """Return such names of tasks that count the rows of blocks, whose numbers are unknown."""
    unique = uuid4().hex
    return [f"count_rows-{unique}-{what}-{i}-all" for i in range(n_blocks)]


def explained(error: BaseException, client: Any, future: Any = None) -> RuntimeError | None:
    """Return an error with a remedy, or None if `error` says all that is known.

    Parameters
    ----------
    error : BaseException
        The error.
    client : distributed.Client
        Client of the cluster.
    future : distributed.Future, optional
        The task that failed.
    """
    names = {each.__name__ for each in type(error).__mro__}
    if "KilledWorker" in names:
        return _killed(error)
    if names & _LOST or (client.status != "running" and isinstance(error, Exception)):
        return lost_scheduler(error)
    if future is None or future.status != "error":
        return None
    try:
        block = client.run_on_scheduler(_block_that_reads, future.key)
    except Exception:
        return None  # a scheduler may refuse functions; the error itself matters more
    return None if block is None else _unreadable(block, error)


def lost_scheduler(error: object) -> RuntimeError:
    """Return the error for a scheduler that is gone, or has forgotten its tasks."""
    return RuntimeError(
        f"the Dask scheduler no longer answers, or has canceled the tasks ({_line(error)}); no "
        "model was changed. Start the scheduler if it has ended, connect a new Client, and call "
        "the method again"
    )


@contextmanager
def explained_here() -> Iterator[None]:
    """Context of a computation by threads of this process: errors name an unreadable chunk."""
    from dask.callbacks import Callback

    found: list[tuple[Any, Any]] = []

    def finish(graph: Any, state: Any, failed: bool) -> None:
        if failed and state:
            found.append((graph, set(state["running"])))

    try:
        with Callback(finish=finish):
            yield
    except Exception as error:
        block = next(_blocks_that_fail(error, *found[-1]), None) if found else None
        if block is None:
            raise
        raise _unreadable(block, error) from error


def _line(error: object) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _killed(error: BaseException) -> RuntimeError:
    from dask.utils import key_split

    return RuntimeError(
        f"workers died repeatedly while they computed {key_split(getattr(error, 'task', 'a task'))}"
        f", mostly for lack of memory ({error}). Start workers with more memory, pass smaller "
        "chunks, such as X.rechunk({0: 10_000}), or fit fewer landmarks: with "
        "manifoldry.distributed.using_options(landmarks=5000)"
    )


def _unreadable(block: str, error: BaseException) -> RuntimeError:
    found = _BLOCK.fullmatch(block)
    assert found is not None
    start, _, stop = found["rows"].partition("-")
    rows = f" (rows {start} to {int(stop) - 1})" if stop else ""
    return RuntimeError(
        f"chunk {found['number']} of {found['what']}{rows} cannot be read: "
        f"{type(error).__name__}: {error}"
    )


def _block_that_reads(key: Any, dask_scheduler: Any = None) -> str | None:
    """The first block that needs the task which made another one fail; runs on the scheduler."""
    task = dask_scheduler.tasks.get(key)
    blamed = getattr(task, "exception_blame", None)
    if blamed is None:
        return None
    blocks = _blocks_after([blamed], lambda task: task.dependents, lambda task: task.key)
    return blocks[0] if blocks else None


def _blocks_that_fail(error: BaseException, graph: Any, running: Iterable[Any]) -> Iterator[str]:
    """Blocks whose chunks raise the same error again, of those that were being read."""
    import dask
    from dask.core import get_deps
    from dask.optimization import cull

    dependencies, dependents = get_deps(graph)
    for block in _blocks_after(running, lambda key: dependents[key], lambda key: key):
        reading = list(dependencies[block])
        try:
            dask.get(cull(graph, reading)[0], reading)
        except type(error) as again:
            if str(again) == str(error):
                yield block


def _blocks_after(
    tasks: Iterable[Any], dependents: Callable[[Any], Iterable[Any]], key: Callable[[Any], Any]
) -> list[str]:
    """Names of the first blocks that depend on tasks which are not such blocks themselves."""
    waiting = [each for each in tasks if not _is_block(key(each))]
    seen, found = set(waiting), set()
    while waiting:
        for task in dependents(waiting.pop()):
            if _is_block(key(task)):
                found.add(key(task))
            elif task not in seen:
                seen.add(task)
                waiting.append(task)
    return sorted(found, key=_number)


def _is_block(key: Any) -> bool:
    return isinstance(key, str) and _BLOCK.fullmatch(key) is not None


def _number(key: str) -> int:
    found = _BLOCK.fullmatch(key)
    return -1 if found is None else int(found["number"])
