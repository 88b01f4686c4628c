"""Maps in a box: a search within one, and a homotopy in which it grows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from manifoldry.iterative.monitor import Monitor
from manifoldry.objectives.base import Objective
from manifoldry.objectives.transformed import Boxed, Resized
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.optimizer import Optimizer, Solution
from manifoldry.optimize.path import Path
from manifoldry.util.typing import Array

Search = Callable[[Objective, Array, Monitor], Solution]


def search_in_box(
    search: Search, objective: Objective, size: float, start: Array, monitor: Monitor
) -> Solution:
    """Minimize over maps within `size` of zero, in every coordinate."""
    boxed = Boxed(objective, size)
    monitor.view = boxed.inside
    # Shrunk, not clipped: points that meet at a wall would stay together.
    inside = _filling(start) * min(size, extent(start))
    found = search(boxed, boxed.outside(inside), monitor)
    monitor.view = None
    return replace(found, embedding=boxed.inside(found.embedding))


def grow_box(
    rule: Homotopy,
    objective: Objective,
    size: float,
    start: Array,
    optimizer: Optimizer,
    rng: np.random.Generator,
    monitor: Monitor,
    smallest: float = 0.1,
) -> tuple[Solution, Path]:
    """Let a box grow to `size`: the map, in units of the box, is the start at every next size.

    It begins with the half width `smallest`, where all points see each other.
    """

    def family(eta: float) -> Objective:
        monitor.view = lambda U: eta * np.sin(U)
        return Resized(Boxed(objective, eta), eta)

    sizes = rule.values_between(min(smallest, size / 2), size)
    U = Boxed(objective, 1.0).outside(_filling(start))
    walk = Walk(rule, family, U, optimizer, rng, monitor, monitor.begin)
    found = rule.follow(walk, sizes)
    monitor.view = None
    eta = walk.path.steps[-1].parameter
    path = walk.path.seen_through(lambda eta, U: eta * np.sin(U))
    return replace(found, embedding=eta * np.sin(found.embedding)), path


def extent(Y: Array) -> float:
    """Half width of the smallest box around the mean that holds the map."""
    return float(np.abs(Y - Y.mean(axis=0)).max())


def _filling(Y: Array) -> Array:
    return np.asarray((Y - Y.mean(axis=0)) / extent(Y))
