"""Starts of unsupervised kernel regression, and searches in a box."""

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
from manifoldry.optimize.filter import Jacobi
from manifoldry.optimize.homotopy import Homotopy, HomotopyRun, Path
from manifoldry.optimize.methods import LBFGS
from manifoldry.optimize.optimizer import Optimizer, Solution
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping
from manifoldry.util.memory import memory_remedy
from manifoldry.util.typing import Array
from manifoldry.util.validation import plan_memory, spread_rows


@dataclass
class StartSearch:
    """Compare starts, each scaled to the smallest value of the objective.

    The objective is the leave-one-out error plus the penalty of isolated points. In the study of
    the defaults the start with the smallest value led to the best embedding, or to an equally good
    one. For more than `exact_up_to` points it is estimated from a sample of them, and Isomap uses
    landmarks. Beyond `spectral_up_to`, the elastic embedding has the filter :class:`Jacobi`: the
    linear systems of the spectral direction would take most of the time.

    Parameters
    ----------
    data, graph : Input, NeighborGraph
        The data and their neighbor graph.
    n_components : int
    objective : Objective
    rng : numpy.random.Generator
    """

    data: Input
    graph: NeighborGraph
    n_components: int
    objective: Objective
    rng: np.random.Generator
    found: dict[str, tuple[float, Array]] = field(default_factory=dict)
    """Value and embedding of every start that was tried."""
    geodesic_neighbors: int = 6  # few, so that no edge joins two layers of a roll
    weight: float = 100.0  # of the elastic embedding; near the best on all sets of its study
    elastic_tol: float = 1e-3  # tolerance of the elastic embedding
    exact_up_to: int = 2000  # number of points
    sample: int = 1000  # number of points whose errors estimate the value beyond
    patience: int = 4  # number of scales without improvement beyond, each 1.2 to 1.6 times the next
    n_landmarks: int = 500  # of Isomap beyond
    spectral_up_to: int = 20_000  # points up to which the elastic embedding has a spectral filter

    def scaled(self, init: str | BaseEstimator) -> Array:
        """One start, scaled to the smallest value of the objective."""
        Y = starting_map(init, self.data, self.graph, self.n_components, self.rng)
        patience = self.patience if len(Y) > self.exact_up_to else None
        scale, value = minimize_over_scale(self.value, Y, patience=patience)
        name = init if isinstance(init, str) else type(init).__name__
        self.found[name] = value, scale * Y
        return scale * Y

    def value(self, Y: Array) -> float:
        """The objective, estimated from a sample if there are many points."""
        if len(Y) <= self.exact_up_to:
            return self.objective.value(Y)
        return self.objective.sampled_value(Y, spread_rows(len(Y), self.sample))

    def best(self) -> Array:
        """The best of principal components, Isomap and the elastic embedding."""
        remedy = "pass init='pca'"
        # Before the first start, since others need more memory.
        plan_memory(self._bytes, f"the starts of {self.graph.n_query} points", remedy)
        for init in self._candidates():
            with memory_remedy(remedy):
                self.scaled(init)
        return min(self.found.values(), key=lambda found: found[0])[1]

    def summary(self, unit: float) -> str:
        """The starts, the best one first, with their values in units of `unit`."""
        ordered = sorted(self.found.items(), key=lambda item: item[1][0])
        return ", ".join(f"{name} ({value / unit:.3g})" for name, (value, _) in ordered)

    @property
    def _landmarks(self) -> int | None:
        return self.n_landmarks if self.graph.n_query > self.exact_up_to else None

    @property
    def _bytes(self) -> float:
        """Memory of Isomap: three matrices of distances from its landmarks, or from all points."""
        n = self.graph.n_query
        return 24.0 * n * (self._landmarks or n)

    def _candidates(self) -> list[str | BaseEstimator]:
        from manifoldry.iterative.elastic_embedding import ElasticEmbedding
        from manifoldry.spectral.isomap import Isomap

        n = self.graph.n_query
        search = LBFGS(
            SpectralDirection() if n <= self.spectral_up_to else Jacobi(),
            stopping=Stopping(tol=self.elastic_tol),
        )
        elastic = ElasticEmbedding(weight=self.weight, repulsion="uniform", optimizer=search)
        k = min(self.geodesic_neighbors, n - 1)
        return [elastic, Isomap(n_neighbors=k, n_landmarks=self._landmarks), "pca"]


Search = Callable[[Objective, Array, Monitor], Solution]


def search_in_box(
    search: Search, objective: Objective, size: float, start: Array, monitor: Monitor
) -> Solution:
    """Minimize over embeddings whose coordinates have absolute value at most `size`."""
    boxed = Boxed(objective, size)
    monitor.view = boxed.constrained
    # Scaled, not clipped: points clipped to the same place would stay together.
    inside = _filling(start) * min(size, box_size(start))
    solution = search(boxed, boxed.unconstrained(inside), monitor)
    monitor.view = None
    return replace(solution, embedding=boxed.constrained(solution.embedding))


def grow_box(
    homotopy: Homotopy,
    objective: Objective,
    size: float,
    start: Array,
    optimizer: Optimizer,
    rng: np.random.Generator,
    monitor: Monitor,
    smallest: float = 0.1,
) -> tuple[Solution, Path]:
    """Follow a homotopy in which the half width of a box grows from `smallest` to `size`.

    Each search starts from the previous embedding, scaled like the box. In the smallest box all
    points are within the kernel's width of each other.
    """

    def family(eta: float) -> Objective:
        monitor.view = lambda U: eta * np.sin(U)
        return Resized(Boxed(objective, eta), eta)

    sizes = homotopy.values_between(min(smallest, size / 2), size)
    U = Boxed(objective, 1.0).unconstrained(_filling(start))
    run = HomotopyRun(homotopy, family, U, optimizer, rng, monitor, monitor.begin)
    solution = homotopy.follow(run, sizes)
    monitor.view = None
    eta = run.path.steps[-1].parameter
    path = run.path.transformed(lambda eta, U: eta * np.sin(U))
    return replace(solution, embedding=eta * np.sin(solution.embedding)), path


def box_size(Y: Array) -> float:
    """Half width of the smallest box around the mean that contains the embedding."""
    return float(np.abs(Y - Y.mean(axis=0)).max())


def _filling(Y: Array) -> Array:
    """The centered embedding, scaled to the box of half width one."""
    return np.asarray((Y - Y.mean(axis=0)) / box_size(Y))
