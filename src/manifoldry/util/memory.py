"""Memory that a computation may use: of the machine, of its container, of the process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class NotEnoughMemoryError(MemoryError):
    """What a computation needs is not free: `need` says how much for what, `remedy` what to do.

    `otherwise` is what helps in any case.
    """

    def __init__(self, need: str, remedy: str, otherwise: str = "") -> None:
        super().__init__(need, remedy, otherwise)
        self.need, self.remedy, self.otherwise = need, remedy, otherwise

    def __str__(self) -> str:
        known = self.otherwise in self.remedy
        return f"{self.need}; {self.remedy}" + ("" if known else f", or {self.otherwise}")


_REMEDY: ContextVar[str | None] = ContextVar("remedy of memory errors", default=None)


@contextmanager
def memory_remedy(remedy: str) -> Iterator[None]:
    """Replace the remedy of errors and warnings about memory inside this context.

    For estimators that use parts of others, without having their parameters.
    """
    outer = _REMEDY.set(_REMEDY.get() or remedy)
    try:
        yield
    except NotEnoughMemoryError as error:
        raise NotEnoughMemoryError(error.need, remedy, error.otherwise) from None
    finally:
        _REMEDY.reset(outer)


def replaced_remedy(remedy: str) -> str:
    """The remedy set by the outermost :func:`memory_remedy`, or `remedy` if there is none."""
    return _REMEDY.get() or remedy


def available_memory() -> int | None:
    """Bytes of memory available to this process, or None if unknown."""
    amounts = (_system_memory(), _group_memory(), _process_memory())
    return min((amount for amount in amounts if amount is not None), default=None)


def _system_memory() -> int | None:
    """Memory available on the machine; on Linux this includes reclaimable caches."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: line.split()[1] for line in lines}
        return 1024 * int(sizes["MemAvailable"])
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return int(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int | None:
    """Memory available within the limits of containers and services, or None without a limit."""
    try:
        with open(own) as lines:
            groups = [line.strip().split(":", 2) for line in lines]
    except (OSError, ValueError):
        return None
    found: list[int] = []
    for group in groups:
        if len(group) == 3 and group[1] in ("", "memory"):
            names = _CGROUP_1 if group[1] else _CGROUP_2
            base = f"{root}/memory" if group[1] else root
            found += _limits(base, group[2], names)
    return min(found, default=None)


# Files of a control group, in the two versions of the interface: limit, use, name of reclaimable.
_CGROUP_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_CGROUP_2 = ("memory.max", "memory.current", "inactive_file")


def _limits(base: str, path: str, names: tuple[str, str, str]) -> Iterator[int]:
    """What is left in a control group and in each group that contains it."""
    parts = [part for part in path.split("/") if part]
    for depth in range(len(parts), -1, -1):
        left = _left_in_group("/".join([base, *parts[:depth]]), *names)
        if left is not None:
            yield left


def _left_in_group(folder: str, limit: str, used: str, reclaimable: str) -> int | None:
    try:
        with open(f"{folder}/{limit}") as most, open(f"{folder}/{used}") as now:
            left = int(most.read()) - int(now.read())  # "max" is no number
        with open(f"{folder}/memory.stat") as lines:
            return left + int(dict(line.split() for line in lines)[reclaimable])
    except (OSError, KeyError, ValueError):
        return None


def _process_memory() -> int | None:
    """Address space left under ``ulimit -v``, or None without a limit."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as sizes:
            used = int(sizes.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - used)
