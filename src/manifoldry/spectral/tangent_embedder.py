"""What Hessian LLE and LTSA share: tangent planes, the metric fit, local affine maps."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.piecewise import with_itself
from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.exceptions import DisconnectedGraphWarning, RankWarning
from manifoldry.extension.local import LocalAffine
from manifoldry.extension.pieces import piece_rows
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import Neighborhoods
from manifoldry.spectral.local_embedder import LocalEmbedder
from manifoldry.spectral.metric_fit import MetricFit
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn

_THIN = 1e-6  # width over length at which a sheet is a line


class TangentEmbedder(LocalEmbedder):
    """Base of the estimators that recover a sheet from its tangent planes."""

    metric_fit: bool

    @abstractmethod
    def _fewest_neighbors(self, n_components: int) -> int:
        """Smallest neighbourhood on which the local problem is determined."""

    @abstractmethod
    def _local(self, coordinates: Array) -> Array:
        """Small matrices (n_block, k, k) from coordinates (n_block, k, n_features)."""

    def _align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        _check_places(self._training_graph)
        return neighborhoods.align(self._local)

    @property
    def _in_data_units(self) -> bool:
        return self.metric_fit

    def _largest_components(self, data: Any) -> tuple[int, str]:
        """As many as neighbourhoods of all other points could determine."""
        n, d = data.shape
        most = 0
        while most < d and self._fewest_neighbors(most + 1) < n:
            most += 1
        if most == 0:
            fewest = self._fewest_neighbors(1) + 1
            raise ValueError(f"{type(self).__name__} needs at least {fewest} rows; n_samples={n}")
        return most, "the largest that neighbourhoods and features allow"

    def _default_neighbors(self, n: int) -> int:
        usual = min(10, n // 2)
        return min(max(usual, self._fewest_neighbors(self.n_components_)), n - 1)

    def _check_neighbors(self, graph: NeighborGraph) -> None:
        super()._check_neighbors(graph)
        fewest = self._fewest_neighbors(self.n_components_)
        if graph.k < fewest:
            raise ValueError(
                f"n_neighbors={graph.k} must be at least {fewest} for "
                f"n_components={self.n_components_}; pass more neighbours or fewer components"
            )

    def _coordinates(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        if self.metric_fit:
            vectors = spectrum.vectors / np.sqrt(problem.n)  # the problem's scale is the inverse
            fit = MetricFit(self._training_graph)
            for rows in piece_rows(self.piece_labels_):
                vectors[rows] = vectors[rows] @ fit.fit(spectrum.vectors, rows)
            spectrum = replace(spectrum, vectors=vectors)
            largest = np.flatnonzero(self.piece_labels_ == 0)
            self._warn_if_thinner(vectors[largest])
            self._warn_if_torn(fit.torn(vectors * np.sqrt(problem.n), largest), len(largest))
        return super()._coordinates(data, problem, spectrum)

    def _warn_if_thinner(self, Y: Array) -> None:
        # The bulk decides: one far point may stretch a coordinate out of all proportion.
        spread = np.quantile(np.abs(Y - np.median(Y, axis=0)), 0.9, axis=0)
        missing = int((spread <= _THIN * spread.max()).sum())
        if missing:
            warn(
                f"{missing} of n_components={self.n_components_} coordinates are zero: the edges "
                "have their lengths without them. Pass fewer components",
                RankWarning,
            )

    def _warn_if_torn(self, count: int, n: int) -> None:
        if count:
            warn(
                f"{count} of {n} points are tied to the others by too few neighbours and lie "
                "several times too far out; raise n_neighbors",
                DisconnectedGraphWarning,
            )

    def _extend(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> LocalAffine:
        self._inverse = self._regression(data)
        graph = self._training_graph
        return LocalAffine(graph, self.embedding_, with_itself(graph))


def _check_places(graph: NeighborGraph) -> None:
    """Refuse neighbourhoods that are copies of one point: they have no tangent plane."""
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
