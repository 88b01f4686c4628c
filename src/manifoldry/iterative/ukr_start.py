"""Where unsupervised kernel regression begins: the shape and size that predict the data best."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import BaseEstimator

from manifoldry.base.input import Input
from manifoldry.iterative.start import starting_map
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.leave_one_out import least_scale
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
        The data and their neighbours.
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
        scale, value = least_scale(self.value, Y)
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
