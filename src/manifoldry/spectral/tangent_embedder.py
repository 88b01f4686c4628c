"""What Hessian LLE and LTSA share: tangent planes, the metric fit, local affine maps."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.eigen import Spectra
from manifoldry.exceptions import DisconnectedGraphWarning, RankWarning
from manifoldry.extension.base import Inverse
from manifoldry.extension.layout import Layout
from manifoldry.extension.local import LocalAffine, TangentInverse
from manifoldry.extension.regression import regression_inverse
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import Neighborhoods, with_itself
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.local import (
    Alignment,
    PosedAlignment,
    alignment_components,
    alignment_problem,
    check_has_points,
    check_uniform_neighborhoods,
)
from manifoldry.spectral.metric_fit import MetricFit
from manifoldry.spectral.posed import connected_graph
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn


@shared_docs
class TangentEmbedder(SpectralEmbedder):
    """Base of the estimators that recover a sheet from its tangent planes.

    Attributes
    ----------
    {neighbor_search_}
    """

    metric_fit: bool
    needs_dimension = True  # that of the planes
    # Whether tangent planes lead from the map back to the data.
    _inverts_by_tangent_planes = False
    radius = None
    _accepts_graphs = True
    # Local fits cannot use a single bridge, so there is no "join".
    _disconnected_options = ("separate", "largest", "error")

    @abstractmethod
    def _min_neighbors(self, n_components: int) -> int:
        """Smallest neighborhood on which the local problem is determined."""

    @abstractmethod
    def _alignment(self, graph: NeighborGraph) -> "TangentAlignment":
        """What a map costs on the tangent planes."""

    def _pose(self, data: Input) -> "PosedTangentAlignment":
        check_has_points(type(self).__name__, data)
        graph = self._check_neighbors(self._neighbor_graph(data))
        graph = connected_graph(graph, self._policy(), data)
        self.neighbor_search_ = graph.search
        _check_distinct_neighbors(graph)
        alignment = self._alignment(graph)
        problem = alignment_problem(alignment)
        components = alignment_components(problem, graph, self._policy())
        return PosedTangentAlignment(
            data,
            problem,
            components,
            alignment,
            bool(self.metric_fit),
            self._inverts_by_tangent_planes,
        )

    def _check_neighbors(self, graph: NeighborGraph) -> NeighborGraph:
        check_uniform_neighborhoods(type(self).__name__, graph)
        fewest = self._min_neighbors(self.n_components_)
        if graph.k < fewest:
            raise ValueError(
                f"n_neighbors={graph.k} must be at least {fewest} for "
                f"n_components={self.n_components_}; pass more neighbors or fewer components"
            )
        return graph

    def _max_components(self, data: Input) -> tuple[int, str]:
        """As many as neighborhoods of all other points could determine."""
        n, d = data.n_samples, data.n_features
        most = 0
        while most < d and self._min_neighbors(most + 1) < n:
            most += 1
        if most == 0:
            fewest = self._min_neighbors(1) + 1
            raise ValueError(f"{type(self).__name__} needs at least {fewest} rows; n_samples={n}")
        return most, "the largest that neighborhoods and features allow"

    def _default_neighbors(self, n: int) -> int:
        usual = min(10, n // 2)
        return min(max(usual, self._min_neighbors(self.n_components_)), n - 1)


@dataclass(frozen=True, eq=False)
class TangentAlignment(Alignment):
    """What a map costs on tangent planes of dimension `n_components`."""

    n_components: int

    @abstractmethod
    def local_matrices(self, coordinates: Array) -> Array:
        """Small matrices (n_block, k, k) from coordinates (n_block, k, n_features)."""

    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        return neighborhoods.align(self.local_matrices)


@dataclass(frozen=True, eq=False)
class PosedTangentAlignment(PosedAlignment):
    """A sheet, whose map gets the lengths of the data's short edges if asked."""

    metric_fit: bool
    tangent_inverse: bool  # whether tangent planes lead back to the data too

    @property
    def preserves_scale(self) -> bool:
        return self.metric_fit

    def coordinates(self, spectra: Spectra) -> Array:
        if not self.metric_fit:
            return super().coordinates(spectra)
        V = spectra.vectors(self.components, self.data.n_samples)
        fit, Y = MetricFit(self.graph), V.copy()
        for rows in self.components:
            Y[rows] = V[rows] @ fit.fit(V, rows)
        largest = self.components[0]
        warn_if_degenerate(Y[largest])
        warn_if_misplaced(fit.count_misplaced(Y, largest), len(largest))
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> LocalAffine:
        graph = self.graph
        return LocalAffine(graph, embedding, with_itself(graph), alignment=self.alignment)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        found = regression_inverse(embedding, self.data.points)
        if found is None or not self.tangent_inverse:
            return found
        on_map = np.flatnonzero(np.isfinite(embedding).all(axis=1))
        return TangentInverse(extension, found, on_map)


def warn_if_degenerate(Y: Array, thin: float = 1e-6) -> None:
    """Say so where a sheet is a line: where its width is but the fraction `thin` of its length."""
    # The bulk decides: one far point may stretch a coordinate out of all proportion.
    spread = np.quantile(np.abs(Y - np.median(Y, axis=0)), 0.9, axis=0)
    missing = int((spread <= thin * spread.max()).sum())
    if missing:
        warn(
            f"{missing} of n_components={Y.shape[1]} coordinates are zero: the edges "
            "have their lengths without them. Pass fewer components",
            RankWarning,
        )


def warn_if_misplaced(count: int, n: int) -> None:
    """Say so where points lie far beyond any path to them."""
    if count:
        warn(
            f"{count} of {n} points are tied to the others by too few neighbors and lie "
            "several times too far out; raise n_neighbors",
            DisconnectedGraphWarning,
        )


def _check_distinct_neighbors(graph: NeighborGraph) -> None:
    """Refuse neighborhoods that are copies of one point: they have no tangent plane."""
    if graph.distances.all():
        return
    place = graph.identical(graph.index.points)
    neighbor_sets = np.sort(place[graph.indices].reshape(-1, graph.k), axis=1)
    single = np.flatnonzero(neighbor_sets[:, 0] == neighbor_sets[:, -1])
    if len(single):
        row = int(neighbor_sets[single[0], 0])
        raise ValueError(
            f"row {row} occurs {int((place == row).sum())} times, so that the n_neighbors="
            f"{graph.k} nearest of row {int(single[0])} are one point, without a tangent plane; "
            "drop duplicated rows (numpy.unique(X, axis=0)) or raise n_neighbors beyond that"
        )
