"""Where unsupervised kernel regression begins: the shape and size that predict the data best."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.base import BaseEstimator

from manifoldry.base.input import Input
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.start import starting_map
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.base import Objective
from manifoldry.objectives.leave_one_out import minimize_over_scale
from manifoldry.objectives.transformed import Boxed, Resized
from manifoldry.optimize.homotopy import Homotopy, Path, Walk
from manifoldry.optimize.optimizer import Optimizer, Solution
from manifoldry.util.typing import Array


@dataclass
class StartSearch:
    """Tries starts, each at the size at which the objective is smallest.

    That is the leave-one-out error of predicting the data, and the penalty of points that stand
    alone. In the study of the defaults the start with the smallest value led to the best map, or
    to one as good.

    Parameters
    ----------
    data, graph : Input, NeighborGraph
        The data and their neighbors.
    n_components : int
    value : callable
        The objective.
    rng : numpy.random.Generator
    """

    data: Input
    graph: NeighborGraph
    n_components: int
    value: Callable[[Array], float]
    rng: np.random.Generator
    found: dict[str, tuple[float, Array]] = field(default_factory=dict)
    """Value and map of every start that was tried."""
    geodesic_neighbors: int = 6  # few, so that no path leads from a layer of a roll to the next
    weight: float = 100.0  # of the elastic embedding; near the best on all sets of its own study
    rough: float = 1e-3  # tolerance: a start need not be a minimizer

    def sized(self, init: str | BaseEstimator) -> Array:
        """The map of one start, at its best size."""
        Y = starting_map(init, self.data, self.graph, self.n_components, self.rng)
        scale, value = minimize_over_scale(self.value, Y)
        name = init if isinstance(init, str) else type(init).__name__
        self.found[name] = value, scale * Y
        return scale * Y

    def best(self) -> Array:
        """The best of principal components, Isomap and the elastic embedding."""
        for init in self._candidates():
            self.sized(init)
        return min(self.found.values(), key=lambda found: found[0])[1]

    def summary(self, unit: float) -> str:
        """What was tried, the best first, with its value in units of `unit`."""
        ordered = sorted(self.found.items(), key=lambda item: item[1][0])
        return ", ".join(f"{name} ({value / unit:.3g})" for name, (value, _) in ordered)

    def _candidates(self) -> list[str | BaseEstimator]:
        from manifoldry.iterative.elastic_embedding import ElasticEmbedding
        from manifoldry.spectral.isomap import Isomap

        k = min(self.geodesic_neighbors, self.graph.n_query - 1)
        elastic = ElasticEmbedding(weight=self.weight, repulsion="uniform", tol=self.rough)
        return [elastic, Isomap(n_neighbors=k), "pca"]


Search = Callable[[Objective, Array, Monitor], Solution]


def search_in_box(
    search: Search, objective: Objective, size: float, start: Array, monitor: Monitor
) -> Solution:
    """Minimize over maps within `size` of zero, in every coordinate."""
    boxed = Boxed(objective, size)
    monitor.view = boxed.constrained
    # Shrunk, not clipped: points that meet at a wall would stay together.
    inside = _filling(start) * min(size, extent(start))
    found = search(boxed, boxed.unconstrained(inside), monitor)
    monitor.view = None
    return replace(found, embedding=boxed.constrained(found.embedding))


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
    U = Boxed(objective, 1.0).unconstrained(_filling(start))
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
