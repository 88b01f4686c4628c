"""The problem of maximum variance unfolding for given data, and the quality of its solution."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.extension.layout import Layout
from manifoldry.iterative.base import PosedSearch, SearchResult
from manifoldry.semidefinite.edge_lengths import DistinctPoints
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding
from manifoldry.semidefinite.unfolding_result import Round, UnfoldingResult
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import split_by_label


@dataclass(frozen=True, eq=False)
class PosedUnfolding(PosedSearch):
    """The unfolding problem of the distinct points, and where they lie in the data."""

    objective: FreeUnfolding
    distinct: DistinctPoints
    labels: IntArray  # connected component of each point, -1 if it is left out

    def flattened(self, R: Array, n_components: int) -> Array:
        """Coordinates of all points along the principal axes of their component, about its mean."""
        Y = np.zeros((len(R), n_components))
        for rows in split_by_label(self.objective.component):
            _, turned = principal(self.objective, R, rows)
            kept = turned[:, :n_components]
            Y[rows, : kept.shape[1]] = kept
        return self.distinct.expand(Y) * self.objective.edges.unit

    def fitted_attributes(
        self, result: UnfoldingResult, embedding: Array, noticeable: float = 0.01
    ) -> dict[str, Any]:
        """The quality of a solution; `dimension_hint_` counts `noticeable` fractions."""
        problem, first = self.objective, self.distinct.first
        edges, squared = problem.edges, problem.edges.unit**2
        errors = edges.errors(result.map)
        shown = edges.errors(embedding[first].astype(np.float64) / edges.unit)
        largest = np.bincount(problem.component).argmax()  # without duplicates
        values, _ = principal(problem, result.map, np.flatnonzero(problem.component == largest))
        ratio = values / values.sum()
        return {
            "variance_": result.variance * squared,
            "variance_bound_": result.bound * squared,
            "gap_": result.gap,
            "mean_edge_error_": float(errors.mean()),
            "max_edge_error_": float(errors.max()),
            "map_edge_error_": float(shown.mean()),
            "eigenvalues_": values * squared,
            "explained_variance_ratio_": ratio,
            "rank_": len(values),
            "unfolded_": self.laid_out(self.flattened(result.map, len(values))),
            "dimension_hint_": int((ratio > noticeable).sum()),
            "edges_": first[edges.ends],
            "multipliers_": result.multipliers,
            "rounds_": _rounds_array(result.rounds, squared),
        }

    def laid_out(self, Y: Array) -> Array:
        """The coordinates with components at their relative positions in the data."""
        layout = Layout.of(self.labels, Y, self.data.geometry, preserves_scale=True)
        return layout.place(Y, self.labels)


@dataclass(frozen=True, eq=False)
class UnfoldingSearchResult(SearchResult):
    """The result of the search, with the result of the method of multipliers."""

    unfolding: UnfoldingResult | None = None


def principal(
    problem: FreeUnfolding, R: Array, rows: IntArray, negligible: float = 1e-6
) -> tuple[Array, Array]:
    """Variance along the principal axes of a component, and the coordinates along them."""
    centered = problem.centered(R)[rows]
    values, axes = np.linalg.eigh(centered.T @ (problem.multiplicity[rows, None] * centered))
    values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    kept = values > negligible * values[0] if len(values) else []
    return values[kept], fixed_signs(centered @ axes[:, kept])


def _rounds_array(rounds: list[Round], squared_unit: float) -> Array:
    kinds = [(name, int if name in ("steps", "rank") else float) for name in Round._fields]
    table = np.array(rounds, dtype=kinds)
    table["variance"] *= squared_unit
    return table
