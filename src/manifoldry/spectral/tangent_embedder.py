"""Base classes of Hessian LLE, LTSA and modified LLE, which depend on the tangent dimension."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.eigen import Spectra
from manifoldry.exceptions import (
    DisconnectedGraphWarning,
    RankWarning,
    RedundantCoordinateWarning,
    TangentSpaceWarning,
    is_ignored,
    warn,
)
from manifoldry.extension.base import Inverse
from manifoldry.extension.layout import Layout
from manifoldry.extension.local import LocalAffine, TangentInverse
from manifoldry.extension.regression import coordinate_unpredictability, regression_inverse
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import (
    Neighborhoods,
    neighbor_laplacian,
    tangent_misfit,
    weighted_sum,
    with_itself,
)
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.local import (
    LocalAlignment,
    PosedAlignment,
    alignment_components,
    alignment_problem,
    check_has_points,
    check_uniform_neighborhoods,
)
from manifoldry.spectral.metric_fit import MetricFit
from manifoldry.spectral.posed import connected_graph
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_at_most, check_nonnegative
from manifoldry.util.typing import Array


@shared_docs
class TangentEmbedder(SpectralEmbedder):
    """Base class of the estimators that align tangent spaces.

    Attributes
    ----------
    {neighbor_search_}
    """

    laplacian_weight: float | None
    metric_fit: bool
    needs_dimension = True  # the dimension of the tangent spaces
    # Whether inverse_transform uses the tangent spaces.
    _inverts_by_tangent_planes = False
    radius = None
    _accepts_graphs = True
    # No "join": a single added edge does not determine a local fit.
    _disconnected_options = ("separate", "largest", "error")

    @abstractmethod
    def _min_neighbors(self, n_components: int) -> int:
        """Return the smallest number of neighbors that determines the local problem."""

    @abstractmethod
    def _alignment(self, graph: NeighborGraph) -> "TangentAlignment":
        """Return the alignment objective of the method."""

    def _pose(self, data: Input) -> "PosedTangentAlignment":
        check_has_points(type(self).__name__, data)
        if self.laplacian_weight is not None:
            weight = check_nonnegative("laplacian_weight", self.laplacian_weight)
            check_at_most("laplacian_weight", weight, 1.0, "1 is the Laplacian alone")
        graph = self._check_neighbors(self._neighbor_graph(data))
        graph = connected_graph(graph, self._policy(), data)
        self.neighbor_search_ = graph.search
        _check_distinct_neighbors(graph)
        alignment = self._alignment(graph)
        self.laplacian_weight_ = alignment.laplacian_weight
        problem = alignment_problem(alignment)
        if self.laplacian_weight is None:
            warn_if_regularized(alignment)
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
        """Return the largest dimension that neighborhoods of ``n_samples - 1`` points determine."""
        n, d = data.n_samples, data.n_features
        most = 0
        while most < d and self._min_neighbors(most + 1) < n:
            most += 1
        if most == 0:
            fewest = self._min_neighbors(1) + 1
            raise ValueError(
                f"n_samples={n} must be at least {fewest} for {type(self).__name__}; pass more rows"
            )
        return most, "the largest dimension that the numbers of samples and features allow"

    def _default_neighbors(self, n: int) -> int:
        usual = min(10, n // 2)
        return min(max(usual, self._min_neighbors(self.n_components_)), n - 1)


@dataclass(frozen=True, eq=False)
class TangentAlignment(LocalAlignment):
    """Alignment error of tangent spaces, with the Laplacian of the graph where they do not fit.

    An outlier determines the tangent space of its neighborhood, so that any place is an affine
    function of its tangent coordinate. On a surface the alignment of the other points is exact and
    still determines the embedding; if tangent spaces do not fit, eigenvectors that move single
    points have the smallest error. In the Laplacian every point is tied to at least k others.

    Parameters
    ----------
    n_components : int
        Dimension of the tangent spaces.
    given_weight : float or None
        Weight of the Laplacian; None chooses it by the median of `tangent_misfit`.
    acceptable_misfit : float
        The median up to which tangent spaces fit. The weight is twice the excess, at most 1.
    max_neighborhoods : int
        Number of neighborhoods from which the median is computed.
    """

    n_components: int
    given_weight: float | None = None
    acceptable_misfit: float = 0.15
    max_neighborhoods: int = 2000

    @abstractmethod
    def local_matrices(self, coordinates: Array) -> Array:
        """Return local matrices (n_block, k, k) from coordinates (n_block, k, n_features)."""

    def align(self, neighborhoods: Neighborhoods) -> sparse.csr_array:
        M, weight = neighborhoods.align(self.local_matrices), self.laplacian_weight
        if weight == 0:
            return M
        return weighted_sum((1 - weight, M), (weight, neighbor_laplacian(self.graph)))

    @cached_property
    def misfit(self) -> float:
        """Median misfit of the tangent spaces: 0 on a surface, 1 if all directions are alike."""
        measure = partial(tangent_misfit, dimension=self.n_components)
        return float(np.median(self.neighborhoods.sample(self.max_neighborhoods).each(measure)))

    @property
    def laplacian_weight(self) -> float:
        """Weight of the Laplacian."""
        if self.given_weight is not None:
            return float(self.given_weight)
        return min(max(2 * (self.misfit - self.acceptable_misfit), 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class PosedTangentAlignment(PosedAlignment):
    """Aligned tangent spaces, followed by the metric fit if `metric_fit` is True."""

    alignment: TangentAlignment
    metric_fit: bool
    tangent_inverse: bool  # whether the inverse uses the tangent spaces

    @property
    def preserves_scale(self) -> bool:
        return self.metric_fit

    def coordinates(self, spectra: Spectra) -> Array:
        Y = self._with_metric(spectra) if self.metric_fit else super().coordinates(spectra)
        if self.alignment.misfit <= self.alignment.acceptable_misfit:  # the data are a sheet
            warn_if_redundant(Y[self.components[0]], self.graph.k, self.data.n_samples - 1)
        return Y

    def _with_metric(self, spectra: Spectra) -> Array:
        V = spectra.vectors(self.components, self.data.n_samples)
        fit, Y = MetricFit(self.graph), V.copy()
        for rows in self.components:
            Y[rows] = V[rows] @ fit.fit(V, rows)
        largest = self.components[0]
        warn_if_degenerate(Y[largest])
        misplaced = fit.count_misplaced(Y, largest)
        warn_if_misplaced(misplaced, len(largest), self.alignment.laplacian_weight)
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> LocalAffine:
        members = with_itself(self.graph)
        # Coordinates of different components are unrelated: the point replaces such neighbors.
        same = self.labels[members] == self.labels[:, None]
        members = np.where(same, members, members[:, :1])
        return LocalAffine(self.graph, embedding, members, alignment=self.alignment)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        found = regression_inverse(embedding, self.data.points)
        if found is None or not self.tangent_inverse:
            return found
        on_map = np.flatnonzero(np.isfinite(embedding).all(axis=1))
        return TangentInverse(extension, found, on_map)


def warn_if_regularized(alignment: TangentAlignment) -> None:
    """Warn if tangent spaces do not fit the data."""
    if alignment.laplacian_weight > 0:
        warn(
            f"tangent spaces of n_components={alignment.n_components} dimensions do not fit the "
            f"data: their misfit is {alignment.misfit:.2f}, above {alignment.acceptable_misfit} "
            "(0 is a surface, 1 means that all directions are alike). The Laplacian of the "
            f"neighbor graph was added, with laplacian_weight_={alignment.laplacian_weight:.2f}. "
            "Pass laplacian_weight=0 to align tangent spaces alone. For a sheet with noise raise "
            "n_neighbors or use Isomap or MVU; for clusters use LaplacianEigenmaps",
            TangentSpaceWarning,
        )


def warn_if_degenerate(Y: Array, thin: float = 1e-6) -> None:
    """Warn about coordinates whose spread is at most the fraction `thin` of the largest spread."""
    # A quantile, because a single outlier can make a coordinate arbitrarily large.
    spread = np.quantile(np.abs(Y - np.median(Y, axis=0)), 0.9, axis=0)
    missing = int((spread <= thin * spread.max()).sum())
    if missing:
        warn(
            f"{missing} of n_components={Y.shape[1]} coordinates are zero: the others suffice to "
            "give the edges their lengths. Pass a smaller n_components",
            RankWarning,
        )


def warn_if_redundant(
    Y: Array, n_neighbors: int, most_neighbors: int, least: float = 0.5, min_points: int = 30
) -> None:
    """Warn about a coordinate whose unpredictability is below `least`.

    Noise gives every coordinate of a sheet an alignment error. An eigenvector that varies along the
    first coordinate only, twice as fast, may then have a smaller error than the next coordinate of
    the sheet, and takes its place. On sheets with noise the second coordinate was above 0.86 if
    the sheet was recovered, and below 0.5 if it was lost: docs/decisions.md. `assess` reports
    coordinates below 0.3 only: it also judges methods whose coordinates are partly predictable
    although nothing is lost. Fewer than `min_points` points are not judged.
    """
    if Y.shape[1] < 2 or len(Y) < min_points or is_ignored(RedundantCoordinateWarning):
        return
    unpredictability = coordinate_unpredictability(Y)
    found = np.flatnonzero(unpredictability < least)
    if len(found):
        j = int(found[0])
        more = min(2 * n_neighbors, most_neighbors)
        more_neighbors = f"pass n_neighbors={more}, " if more > n_neighbors else ""
        warn(
            f"coordinate {j} (counted from 0) is largely predictable from those before it: "
            f"{unpredictability[j]:.2f} of it is not (1 for coordinates of a sheet). With noise, "
            f"n_neighbors={n_neighbors} may be too few to find the next direction of the sheet: "
            f"{more_neighbors}wrap the estimator in NonRedundant, or pass n_components={j} if "
            "there is no further direction",
            RedundantCoordinateWarning,
        )


def warn_if_misplaced(count: int, n: int, weight: float, helpful: float = 0.1) -> None:
    """Warn about points that are much farther away than the path to them.

    `weight` is that of the Laplacian; one that is `helpful` or larger does not help any more.
    """
    if count:
        remedy = f" or pass laplacian_weight={helpful}" if weight < helpful else ""
        warn(
            f"{count} of {n} points are connected to the others by too few neighbors and are "
            f"placed several times too far from them; raise n_neighbors{remedy}",
            DisconnectedGraphWarning,
        )


def _check_distinct_neighbors(graph: NeighborGraph) -> None:
    """Raise an error if all neighbors of a point coincide, so that there is no tangent space."""
    if graph.distances.all():
        return
    place = graph.identical(graph.index.points)
    neighbor_sets = np.sort(place[graph.indices].reshape(-1, graph.k), axis=1)
    single = np.flatnonzero(neighbor_sets[:, 0] == neighbor_sets[:, -1])
    if len(single):
        row = int(neighbor_sets[single[0], 0])
        count = int((place == row).sum())
        raise ValueError(
            f"row {row} occurs {count} times, so all n_neighbors={graph.k} neighbors of row "
            f"{int(single[0])} coincide and define no tangent space; drop duplicated rows "
            "(X[numpy.unique(X, axis=0, return_index=True)[1]]) or pass "
            f"n_neighbors={count + 1} or more"
        )
