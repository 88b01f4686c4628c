"""Neighbor embeddings of distributed rows: a fitted sample, whose map all rows then refine.

A sample is fitted on one worker, and its model places the other rows. Its perplexity counts rows of
the sample: a neighborhood of a fraction f of the rows reaches as far as 1/f times as many neighbors
among all rows. So the map shows coarse structure only. The refinement uses the neighbor graph of
all rows, and moves them to lower the objective of all rows. It is local: clusters of rows do not
change places, which would take another sample or a larger one.

The cost of a round with n rows, k neighbors and d coordinates is that of one evaluation: see
:mod:`manifoldry.objectives.sums_in_parts` and :mod:`manifoldry.objectives.distributed`. With P
parts on W workers, M nodes of the mesh and B pairs of rows and neighbors in other parts, it has

- about 10·P tasks, and one for each part of whose rows another part has neighbors, for each of
  these parts; the scheduler keeps those of all rounds, about 3 kB each, until the map is released,
- 8·M·(1.1·P + W) + 8·d·B bytes of network volume,
- up to 36·k·n/P + 8·n/P·(5·d + 2) + 16·M bytes of memory for each part, besides its data, and
  32·M·2^d once.

The mesh of a map of extent L has M = (L/0.5)^d nodes for t-SNE, (L/0.35)^d for other methods. If
a part has few of them, because its rows are neighbors in the map, too, it moves as few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from manifoldry.affinity.base import Affinity
from manifoldry.affinity.distributed import DistributedWeights
from manifoldry.base.distributed import (
    DistributedFit,
    Landmarks,
    fit_to_landmarks,
    fitted_on_worker,
    landmark_model,
    landmarks_of,
    placed_blocks,
)
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import combined, compute, delayed, persist, persist_all
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.objectives.base import Objective
from manifoldry.objectives.distributed import (
    PairwiseInParts,
    check_n_coordinates,
    entropy_constant,
)
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.normalizers import Unnormalized
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.projected_distance import (
    ProjectedDistanceRepulsion,
    distance_factors,
    projected_distance_weights,
)
from manifoldry.objectives.repulsion import UniformRepulsion
from manifoldry.objectives.squared_distance import SquaredDistanceRepulsion
from manifoldry.optimize.distributed import DescentInParts
from manifoldry.optimize.optimizer import Optimizer, Solution, Step, StepCallback, trace_array
from manifoldry.util.typing import Array, Matrix

if TYPE_CHECKING:
    from manifoldry.iterative.neighbor_embedder import NeighborEmbedder


@dataclass(frozen=True, eq=False)
class AtGivenPositions(Optimizer):
    """The search that stays at given positions, for maps that were computed elsewhere."""

    Y: Array = field(repr=False)

    def minimize(
        self, objective: Objective, Y: Array, callback: StepCallback | None = None
    ) -> Solution:
        value = float(objective.value(self.Y))
        return Solution(self.Y, value, True, "positions of a refined map", n_evaluations=1)

    def with_stopping(self, max_iter: int | None, tol: float | None) -> Self:
        return self

    def with_looser_stopping(self, max_iter: int, tol: float) -> Self:
        return self


class Repelled(NamedTuple):
    """Weights of the repulsion between all rows."""

    pair_weight: float
    factors: list[Any] | None
    words: str


def refined_fit(
    estimator: NeighborEmbedder, rows: Rows, n_neighbors: int, affinity: Affinity
) -> DistributedFit:
    """Fit a sample, place the other rows, and move all rows to lower the objective of all."""
    check_refinable(estimator, affinity)
    options = current_options()
    if rows.n_samples <= (options.landmarks or landmarks_of(estimator)):
        return fit_to_landmarks(estimator, rows)  # which minimizes the objective of all rows
    landmarks = landmark_model(estimator, rows)
    model = landmarks.model
    graph = DistributedGraph.build(
        rows,
        n_neighbors,
        metric=estimator.metric,
        search=options.search,
        random_state=estimator.random_state,
        verbose=options.verbose,
    )
    repelled = _repulsion(model.objective_, graph)
    objective = objective_of_all(model.objective_, graph, affinity, repelled)
    start = placed_blocks(model, graph.points)
    point, steps = DescentInParts(options.refine).minimize(
        objective, start, verbose=options.verbose
    )
    embedding = graph.order.restored(point.positions, model.embedding_.shape[1], rows.dtype)
    [embedding] = persist_all([embedding], "order of the rows", verbose=options.verbose)
    moved = moved_model(landmarks, embedding, rows)
    words = _words(landmarks, graph, steps) + repelled.words
    return DistributedFit(moved, embedding, words, _fitted(steps, graph, affinity))


def check_refinable(estimator: NeighborEmbedder, affinity: Affinity) -> None:
    """Raise ValueError if the objective of all rows cannot be computed."""
    if isinstance(estimator.n_components, Integral):
        check_n_coordinates(int(estimator.n_components))
    if affinity.has_given_width:
        raise ValueError(
            f"affinity={affinity!r} makes all rows neighbors of each other, which is too much for "
            "refine; pass a perplexity, or refine=0"
        )
    metric_params = getattr(estimator, "metric_params", None)
    if metric_params:
        raise ValueError(f"metric_params={metric_params} cannot be used with refine; pass refine=0")


def objective_of_all(
    sample: Pairwise, graph: DistributedGraph, affinity: Affinity, repelled: Repelled
) -> PairwiseInParts:
    """The objective of all rows that corresponds to that of a sample."""
    bounds = graph.order.bounds
    weights = _summing_to_one(DistributedWeights.of(affinity, graph).blocks)
    return PairwiseInParts(
        DistributedMatrix.of(weights, bounds),
        bounds,
        sample.kernel,
        sample.normalizer,
        sample.weight,
        sample.exaggeration,
        sample.potential,
        entropy_constant(weights) if sample.constant else 0.0,
        repelled.pair_weight,
        repelled.factors,
    )


def _summing_to_one(blocks: Sequence[Any]) -> list[Any]:
    [total] = compute([combined([delayed(_sum)(each) for each in blocks], sum)], "affinities")
    return persist(delayed(_divided)(block, total) for block in blocks)


def _repulsion(sample: Pairwise, graph: DistributedGraph) -> Repelled:
    """The weights of all pairs of rows that correspond to those of a sample."""
    n, repulsion = graph.order.n_samples, sample.repulsion
    if not isinstance(sample.normalizer, Unnormalized):
        return Repelled(sample.normalizer.repulsion(n).scale, None, "")
    if isinstance(repulsion, UniformRepulsion):
        return Repelled(UniformRepulsion(n, repulsion.total).scale, None, "")
    if isinstance(repulsion, SquaredDistanceRepulsion):
        repulsion = projected_distance_weights(repulsion.X)
    if not isinstance(repulsion, ProjectedDistanceRepulsion):
        raise ValueError(
            f"the repulsion is a {type(repulsion).__name__} of the sample, so that its weights of "
            "other rows are not known; pass repulsion='uniform' or 'squared_distance', or refine=0"
        )
    factors = delayed(repulsion.projection.factors)
    right = persist(factors(points) for points in graph.points)
    sums = compute([combined([delayed(_column_sums)(each) for each in right], sum)], "distances")
    _, squares, *center = sums[0]
    total = 2 * (n * squares - np.dot(center, center))
    share = f"the {repulsion.rank} principal components of a sample, {repulsion.held:.0%} of them"
    words = f"; repulsion by squared distances in {share}"
    both = persist(delayed(_distance_weights)(each) for each in right)
    return Repelled(1 / float(total), both, words)


def moved_model(landmarks: Landmarks, embedding: Any, rows: Rows) -> Any:
    """The model of the sample at its places in the refined map, with the same parameters.

    It is fitted once more, by a search that stays there, so that whatever a fit computes of the
    map, such as the inverse, is that of the refined one.
    """
    [Y] = compute([embedding[landmarks.rows]], "places of the sample")
    known = {
        "init": Y.astype(np.float64),
        "optimizer": AtGivenPositions(Y.astype(np.float64)),
        "early_exaggeration": 1.0,
        "weight": getattr(landmarks.model, "weight_", None),
        "max_iter": None,
        "callback": None,
        "verbose": False,
    }
    own = landmarks.model.get_params(deep=False)
    unfitted = clone(landmarks.model).set_params(**{k: v for k, v in known.items() if k in own})
    what = f"fitting {type(landmarks.model).__name__} to the refined map of {len(Y)} rows"
    model, _ = fitted_on_worker(unfitted, landmarks.pieces, rows.names, what)
    return model.set_params(**own)


def _words(landmarks: Landmarks, graph: DistributedGraph, steps: Sequence[Step]) -> str:
    m, n = len(landmarks.rows), graph.order.n_samples
    return (
        f"{m} of {n} rows; the others were placed by transform, and then all rows were moved in "
        f"{len(steps) - 1} rounds, which lowered the objective of all rows from "
        f"{steps[0].value:.6g} to {steps[-1].value:.6g} (neighbors of all rows, recall "
        f"{graph.recall:.3f}; sums over all pairs interpolated on a mesh)"
    )


def _fitted(steps: Sequence[Step], graph: DistributedGraph, affinity: Affinity) -> dict[str, Any]:
    """Fitted attributes of a refined map."""
    perplexity = getattr(affinity, "perplexity", None)
    return ({} if perplexity is None else {"perplexity_": perplexity}) | {
        "pairs_": "interpolation on a mesh: refinement of all rows",
        "loss_": steps[-1].value,
        "refinement_": trace_array(steps),
        "n_iter_": sum(step.length > 0 for step in steps),
        "n_evaluations_": steps[-1].evaluations,
        "converged_": False,
        "status_": f"{len(steps) - 1} rounds of refinement",
        "neighbor_search_": graph.search,
    }


def _column_sums(values: Array) -> Array:
    return np.asarray(values.sum(axis=0))


def _distance_weights(right: Array) -> FactoredWeights:
    return FactoredWeights(distance_factors(right), right)


def _sum(block: Matrix) -> float:
    return float(block.sum())


def _divided(block: Matrix, total: float) -> Matrix:
    return block / total
