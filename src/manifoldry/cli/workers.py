"""Where a command computes: on workers that it starts, or on those of a Dask scheduler."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any
from urllib.parse import urlsplit

from manifoldry.cli.console import Console
from manifoldry.cli.errors import UsageError
from manifoldry.io.extras import optional_module

_SECONDS_TO_CONNECT = 5
_SECONDS_TO_ANSWER = 10
_SECONDS_TO_WAIT = 60  # for the first worker, which a batch system may still have to start
_LEAST_MEMORY = 2**29  # Python with its libraries takes half of it; at 80 % a worker pauses
# Only this machine reaches what the workers of a command listen to.
_HOST = "127.0.0.1"


def on_workers(params: Mapping[str, Any]) -> bool:
    """Whether a command computes on workers; UsageError for options that contradict each other."""
    scheduler, workers = params.get("scheduler"), params.get("workers")
    if scheduler is not None and workers is not None:
        raise UsageError(
            "--scheduler uses workers that are running and --workers starts some; pass one of them"
        )
    if workers is None and params.get("memory_limit") is not None:
        raise UsageError(
            "--memory-limit is that of the workers of --workers; pass --workers N, too"
        )
    if scheduler is None and workers is None:
        if params.get("landmarks") is not None:
            raise UsageError("--landmarks is for --workers or --scheduler; pass one of them, too")
        return False
    for name, what in _REFUSED.items():
        if params.get(name):
            raise UsageError(f"--{name} cannot be used with --workers or --scheduler: {what}")
    return True


_REFUSED = {
    "impute": "fill in missing values before, for example with Dask",
    "pca": "make the components first: manifoldry embed DATA --workers N -m pca --components 50 "
    "-o components.zarr, and embed these",
    "jobs": "each worker has one thread; start more workers",
    "device": "workers compute on CPUs; leave it out",
    "key": "workers do not read an AnnData; write the entry as a Zarr array",
}


@contextmanager
def workers(params: Mapping[str, Any], console: Console) -> Iterator[None]:
    """Compute on workers inside this context; those that it has started end with it."""
    distributed = optional_module("distributed", "dask", "computing on workers")
    optional_module("dask.array", "dask", "computing on workers")
    with _without_logs(), _client(distributed, params, console) as client:
        _wait_for_workers(client, params["scheduler"], console)
        yield


def _client(distributed: Any, params: Mapping[str, Any], console: Console) -> Any:
    if params["scheduler"] is None:
        return _started(distributed, params["workers"], params["memory_limit"], console)
    return _connected(distributed, params["scheduler"], console)


@contextmanager
def _started(distributed: Any, count: int, memory: str | None, console: Console) -> Iterator[Any]:
    """A client of workers on this machine."""
    # Dask's own choice is a part of the memory for each core, however many workers share it.
    limit = distributed.system.MEMORY_LIMIT // count if memory is None else memory_of(memory)
    options = {"n_workers": count, "threads_per_worker": 1, "memory_limit": limit}
    # Warnings of tasks are returned with their results, or would be printed once by each worker.
    quiet = {"silence_logs": logging.CRITICAL, "env": {"PYTHONWARNINGS": "ignore"}}
    # Dask would take port 8787, and warn if another cluster has it.
    where = {"host": _HOST, "dashboard_address": f"{_HOST}:0"}
    with ExitStack() as stack:
        with console.working(f"starting {count} workers"), _interrupts_later():
            cluster = stack.enter_context(distributed.LocalCluster(**options, **quiet, **where))
        with distributed.Client(cluster) as client:
            (worker, *_) = cluster.workers.values()
            gib = worker.memory_manager.memory_limit / 2**30
            workers = "1 worker" if count == 1 else f"{count} workers"
            console.note(f"{workers} of one thread and at most {gib:.3g} GiB each")
            yield client


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Context in which Ctrl-C is blocked, as it then stays in processes and threads started here.

    A terminal sends it to workers, too, which would end in the middle of their work, with
    tracebacks. They end with the command.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # whose start would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def memory_of(text: str) -> int:
    """A number of bytes from a text such as 2GiB."""
    from dask.utils import parse_bytes

    try:
        found = int(parse_bytes(text))
    except ValueError:
        found = 0
    if found < 2**20:
        raise UsageError(f"--memory-limit {text} must be an amount of memory, such as 2GiB")
    if found < _LEAST_MEMORY:
        raise UsageError(
            f"--memory-limit {text} is less than a worker needs before it has data; pass "
            f"{_LEAST_MEMORY // 2**20}MiB or more"
        )
    return found


@contextmanager
def _connected(distributed: Any, address: str, console: Console) -> Iterator[Any]:
    """A client of a scheduler that is running."""
    _check_address(distributed, address)
    try:
        _check_answer(distributed, address)
        client = distributed.Client(address, timeout=_SECONDS_TO_ANSWER)
    except (OSError, ValueError, TypeError) as error:
        raise _unreachable(address, error) from None
    with client:
        yield client


def _check_address(distributed: Any, address: str) -> None:
    """Raise an error unless something listens at an address: Dask would try for long."""
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if not (scheme and host and port):
        raise UsageError(
            f"--scheduler {address} must be an address, such as tcp://127.0.0.1:8786 or "
            "tls://host:8786"
        )
    if scheme == "tls":
        _check_certificates(distributed, address)
    if scheme in ("tcp", "tls"):
        try:
            socket.create_connection((host, port), _SECONDS_TO_CONNECT).close()
        except OSError as error:
            raise _unreachable(address, error) from None


def _check_answer(distributed: Any, address: str) -> None:
    """Raise an error unless a scheduler answers: a client would wait for ever for its words."""

    async def ask() -> Any:
        security = distributed.Security().get_connection_args("client")
        options = {"timeout": _SECONDS_TO_CONNECT, "connection_args": security}
        async with distributed.rpc(address, **options) as server:
            return await server.identity()

    try:
        answer = asyncio.run(asyncio.wait_for(ask(), _SECONDS_TO_ANSWER))
    except TimeoutError:  # which has no text
        raise TimeoutError(f"no answer after {_SECONDS_TO_ANSWER} s") from None
    if answer["type"] != "Scheduler":
        raise ValueError(f"a Dask {answer['type']} does")


def _check_certificates(distributed: Any, address: str) -> None:
    """Raise UsageError unless Dask is configured with certificates."""
    try:
        found = distributed.Security().get_connection_args("client").get("ssl_context")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--scheduler {address}: Dask cannot use its certificates: {error}"
        ) from None
    if found is None:
        raise UsageError(
            f"--scheduler {address} needs certificates: set distributed.comm.tls.ca-file, "
            "distributed.comm.tls.client.cert and distributed.comm.tls.client.key in Dask's "
            "configuration"
        )


def _unreachable(address: str, error: BaseException) -> ConnectionError:
    reason = str(error).partition("\n")[0] or type(error).__name__
    return ConnectionError(
        f"no Dask scheduler answers at {address} ({reason}); start one with `dask scheduler`, "
        "correct the address, or pass --workers N to compute on this machine"
    )


def _wait_for_workers(client: Any, address: str | None, console: Console) -> None:
    try:
        with console.working("waiting for workers"):
            client.wait_for_workers(1, timeout=_SECONDS_TO_WAIT)
    except TimeoutError:
        raise ConnectionError(_no_workers(address)) from None


def _no_workers(address: str | None) -> str:
    if address is None:
        return f"no worker has started after {_SECONDS_TO_WAIT} s; start fewer with --workers"
    return (
        f"the Dask scheduler at {address} has no workers after {_SECONDS_TO_WAIT} s; start some, "
        f"with `dask worker {address}`"
    )


@contextmanager
def _without_logs() -> Iterator[None]:
    """Errors are reported in one line, so Dask's own log of them is silent."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
