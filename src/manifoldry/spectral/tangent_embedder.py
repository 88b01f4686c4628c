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
    aligned_components,
    alignment_problem,
    check_even,
    check_points,
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
    _inverts_by_planes = False
    radius = None
    _takes_graphs = True
    # Local fits cannot use a single bridge, so there is no "join".
    _policies = ("separate", "largest", "error")

    @abstractmethod
    def _fewest_neighbors(self, n_components: int) -> int:
        """Smallest neighborhood on which the local problem is determined."""

    @abstractmethod
    def _tangents(self, graph: NeighborGraph) -> "TangentAlignment":
        """What a map costs on the tangent planes."""

    def _pose(self, data: Input) -> "PosedSheet":
        check_points(type(self).__name__, data)
        graph = self._check_neighbors(self._neighbor_graph(data))
        graph = connected_graph(graph, self._policy(), data)
        self.neighbor_search_ = graph.search
        _check_places(graph)
        alignment = self._tangents(graph)
        problem = alignment_problem(alignment)
        components = aligned_components(problem, graph, self._policy())
        return PosedSheet(
            data, problem, components, alignment, bool(self.metric_fit), self._inverts_by_planes
        )

    def _check_neighbors(self, graph: NeighborGraph) -> NeighborGraph:
        check_even(type(self).__name__, graph)
        fewest = self._fewest_neighbors(self.n_components_)
        if graph.k < fewest:
            raise ValueError(
                f"n_neighbors={graph.k} must be at least {fewest} for "
                f"n_components={self.n_components_}; pass more neighbors or fewer components"
            )
        return graph

    def _largest_components(self, data: Input) -> tuple[int, str]:
        """As many as neighborhoods of all other points could determine."""
        n, d = data.n_samples, data.n_features
        most = 0
        while most < d and self._fewest_neighbors(most + 1) < n:
            most += 1
        if most == 0:
            fewest = self._fewest_neighbors(1) + 1
            raise ValueError(f"{type(self).__name__} needs at least {fewest} rows; n_samples={n}")
        return most, "the largest that neighborhoods and features allow"

    def _default_neighbors(self, n: int) -> int:
        usual = min(10, n // 2)
        return min(max(usual, self._fewest_neighbors(self.n_components_)), n - 1)


@dataclass(frozen=True, eq=False)
class TangentAlignment(Alignment):
    """What a map costs on tangent planes of dimension `n_components`."""

    n_components: int

    @abstractmethod
    def local(self, coordinates: Array) -> Array:
        """Small matrices (n_block, k, k) from coordinates (n_block, k, n_features)."""

    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        return neighborhoods.align(self.local)


@dataclass(frozen=True, eq=False)
class PosedSheet(PosedAlignment):
    """A sheet, whose map gets the lengths of the data's short edges if asked."""

    metric_fit: bool
    by_planes: bool  # whether tangent planes lead back to the data too

    @property
    def has_lengths(self) -> bool:
        return self.metric_fit

    def coordinates(self, spectra: Spectra) -> Array:
        if not self.metric_fit:
            return super().coordinates(spectra)
        V = spectra.vectors(self.components, self.data.n_samples)
        fit, Y = MetricFit(self.graph), V.copy()
        for rows in self.components:
            Y[rows] = V[rows] @ fit.fit(V, rows)
        largest = self.components[0]
        warn_if_thinner(Y[largest])
        warn_if_torn(fit.torn(Y, largest), len(largest))
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> LocalAffine:
        graph = self.graph
        return LocalAffine(graph, embedding, with_itself(graph), alignment=self.alignment)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        found = regression_inverse(embedding, self.data.points)
        if found is None or not self.by_planes:
            return found
        on_map = np.flatnonzero(np.isfinite(embedding).all(axis=1))
        return TangentInverse(extension, found, on_map)


def warn_if_thinner(Y: Array, thin: float = 1e-6) -> None:
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


def warn_if_torn(count: int, n: int) -> None:
    """Say so where points lie far beyond any path to them."""
    if count:
        warn(
            f"{count} of {n} points are tied to the others by too few neighbors and lie "
            "several times too far out; raise n_neighbors",
            DisconnectedGraphWarning,
        )


def _check_places(graph: NeighborGraph) -> None:
    """Refuse neighborhoods that are copies of one point: they have no tangent plane."""
    if graph.distances.all():
        return
    place = graph.identical(graph.index.points)
    hoods = np.sort(place[graph.indices].reshape(-1, graph.k), axis=1)
    single = np.flatnonzero(hoods[:, 0] == hoods[:, -1])
    if len(single):
        row = int(hoods[single[0], 0])
        raise ValueError(
            f"row {row} occurs {int((place == row).sum())} times, so that the n_neighbors="
            f"{graph.k} nearest of row {int(single[0])} are one point, without a tangent plane; "
            "drop duplicated rows (numpy.unique(X, axis=0)) or raise n_neighbors beyond that"
        )
