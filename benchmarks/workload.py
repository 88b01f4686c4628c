"""Workloads, their contestants, and the quality that a contestant must reach.

This module and the workloads are also imported in the environments of peers, so they import only
the standard library at the top; contestants and data functions import what they need.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module

MODULES = (
    "knn", "laplacian", "constraint", "local", "stage", "kernel", "embeddings", "nonredundant",
    "quality", "pair_sums", "tsne", "elastic", "growth", "unfolding", "startup",
)  # fmt: skip
OURS = "manifoldry"
EMPTY, SHARED = "@empty", "@shared"  # values in `environ` that stand for temporary folders


class Missing(Exception):  # noqa: N818 (a fact about the machine, not a mistake)
    """The data of a workload are not on this machine."""


@dataclass(frozen=True)
class Contestant:
    """An implementation that is measured.

    Parameters
    ----------
    name : str
        Name in tables.
    run : generator function
        Takes the arrays of the workload by name, and `options`. The clock starts anew at every
        ``yield`` (imports and warm-up come before it) and stops at ``return``, which gives a dict
        of arrays to score; plain numbers in it are kept as parts of the time, in seconds.
    env : str
        The peer whose environment it runs in; ours by default.
    options : dict
        Further arguments of `run`.
    environ : dict
        Environment variables; ``EMPTY`` and ``SHARED`` stand for temporary folders.
    rehearse : bool
        Run it once before, unrecorded, to fill caches on disk.
    aside : bool
        Listed for reference only, never as the best peer.
    peer : bool
        One of our own contestants that serves as the peer of the others.
    series, size : str, int
        Member of a series of sizes, whose growth is fitted; once a size exceeds the time limit
        the larger ones are left out.
    task : str
        What a series does; those of the same task are drawn together.
    timeout : float, optional
        Its own time limit in seconds, instead of that of the workload.
    quick : bool
        Whether it is part of the quick subset.
    """

    name: str
    run: Callable
    env: str = OURS
    options: Mapping = field(default_factory=dict)
    environ: Mapping = field(default_factory=dict)
    rehearse: bool = False
    aside: bool = False
    peer: bool = False
    series: str = ""
    size: int = 0
    task: str = ""
    timeout: float | None = None
    quick: bool = True

    @property
    def ours(self):
        """Whether it is our code, which is compared with peers."""
        return self.env == OURS and not (self.aside or self.peer)


@dataclass(frozen=True)
class Workload:
    """A task and the contestants that do it.

    Parameters
    ----------
    name, what : str
        Key in the results, and one line for readers.
    data : callable
        Returns arrays by name; names that start with ``_`` are for `quality` only.
    contestants : sequence of Contestant
        The first one of ours uses the default parameters.
    quality : callable, optional
        ``quality(arrays, result)`` returns metrics by name.
    floors : sequence of str
        Definition of equal quality, such as ``"recall >= 0.95"`` or
        ``"trust >= best - 0.02"`` (the best among those compared); one ratio for each.
    dataset : str
        Workloads with the same dataset use the same arrays; by default the name.
    timeout : float
        Seconds after which a contestant is stopped, data loading included.
    processor_time : bool
        Whether to measure processor time of all threads instead of elapsed time, for long workloads
        on a busy machine.
    quick : bool
        Whether it is part of the quick subset.
    """

    name: str
    what: str
    data: Callable
    contestants: Iterable[Contestant]
    quality: Callable | None = None
    floors: tuple[str, ...] = ("any",)
    dataset: str = ""
    timeout: float = 600.0
    processor_time: bool = False
    quick: bool = False
    module: str = ""

    def contestant(self, name):
        """The contestant called `name`."""
        return next(c for c in self.contestants if c.name == name)


_COMPARE = {">=": operator.ge, "<=": operator.le}


def meets(floor, quality, qualities=()):
    """Whether a contestant reaches a floor, given the `qualities` of all that are compared.

    Examples
    --------
    >>> meets("recall >= 0.95", {"recall": 0.97})
    True
    >>> meets("trust >= best - 0.02", {"trust": 0.90}, [{"trust": 0.95}, {"trust": 0.90}])
    False
    """
    if floor == "any":
        return True
    figure, relation, *bound = floor.split()
    if quality.get(figure) is None:
        return False
    return _COMPARE[relation](quality[figure], _bound(bound, relation, figure, qualities))


def _bound(words, relation, figure, qualities):
    if words[0] != "best":
        return float(words[0])
    pick = max if relation == ">=" else min
    best = pick(q[figure] for q in qualities if q.get(figure) is not None)
    return best + float("".join(words[1:]) or 0)


def find(names=(), quick=False):
    """All workloads whose name starts with one of `names`; importing them is cheap."""
    found = [w for module in MODULES for w in load(module)]
    chosen = [w for w in found if not names or w.name.startswith(tuple(names))]
    return [w for w in chosen if w.quick or not quick]


def load(module):
    """The workloads of one module."""
    found = import_module(f"benchmarks.workloads.{module}").WORKLOADS
    return [replace(workload, module=module) for workload in found]
