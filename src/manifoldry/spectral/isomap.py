"""Isomap, with all points or with landmarks."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from manifoldry.affinity.dense import GivenKernel
from manifoldry.affinity.gaussian import local_weights
from manifoldry.base.distributed import DistributedFit, fit_to_landmarks
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.eigen import Dense, EigenSolver, Spectra, SpectralProblem, resolve_solver
from manifoldry.extension.base import Extension
from manifoldry.extension.from_distances import (
    GeodesicExtension,
    gower_kernel,
    training_coordinates,
)
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.short_circuits import warn_of_short_circuits
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import KernelGram, check_gram_memory
from manifoldry.spectral.posed import Posed, connected_graph
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import as_generator, check_count, check_option
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import plan_memory, power_of_two_scale, row_blocks, spread_rows

# Number of points above which the centered matrix is not stored beside the distances.
IMPLICIT_ABOVE = 4096

FEWER_TARGETS = "pass n_landmarks, to which distances are then computed"


@shared_docs
class Isomap(SpectralEmbedder):
    """Isomap: classical multidimensional scaling of geodesic distances.

    Minimizes the strain between the embedding and the lengths of shortest paths in the neighbor
    graph, which approximate distances along the manifold. Use it for the global shape of one
    connected, evenly sampled manifold. A convex manifold that was bent without stretching is
    recovered with its distances; holes distort the embedding, and a single edge between layers
    that are far apart on the manifold (a short circuit) can distort it completely. Saved models do
    not contain the geodesic distances: a loaded one computes them again in its first `transform`.
    More than 2²⁴ distances, as between 4097 points, are in single precision.

    Of distributed data all rows are embedded by their distances to landmarks along the graph of
    all rows. Short circuits are not searched for, and components are joined if at most 10 000 rows
    are outside the largest. The model keeps up to 20 000 random rows, with their distances, to
    place new ones: their neighbors among these replace those among all rows.
    ``placement_error_`` is the error of that, measured on other rows: the root mean square distance
    from their coordinates, divided by that of all coordinates from their mean.

    Parameters
    ----------
    {n_components}
    {n_neighbors}
    {radius}
    {metric}
    {metric_params}
    n_landmarks : int, default=None
        Embed this many landmark points, and the other points by their distances to these. Time
        and memory then grow with n·n_landmarks instead of n²; a few hundred landmarks suffice for
        a smooth manifold. Connected components that are embedded separately get landmarks in
        proportion to their sizes, but at least ``n_components + 1``. None means all points, and
        500 of distributed data.
    landmarks : {"maxmin", "random"}, default="maxmin"
        Choose the landmarks one by one, each farthest from the previous ones, or at random. Those
        of distributed data are random.
    disconnected : {"join", "separate", "largest", "error"}, default="join"
        {disconnected}
    short_circuits : {"warn", "ignore"}, default="warn"
        Whether to search the graph for edges between points that are far apart on the manifold, and
        warn if they shorten many distances; see :func:`~manifoldry.find_short_circuits`. With 100
        landmarks the search takes about a tenth of the fit of digits, a third if their graph is
        given, and a fifth to two fifths of the fit of a roll (2000 points: 0.04 of 0.1 s).
    {eigen_solver}
    {extension}
    {inverse}
    random_state : int, RandomState, Generator or None, default=None
        Seed of the landmarks and of the start vectors of iterative eigensolvers. None means a
        fixed seed.
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {scaled_embedding_}
    landmarks_ : array of shape (n_landmarks,)
        Indices of the landmarks.
    residual_variance_ : array of shape (n_components,)
        1 − R² between geodesic distances and distances in the embedding, for the first 1, 2, ...
        coordinates, from up to 1000 points and landmarks of the largest connected component. It
        stops decreasing at the dimension of the manifold.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues of the centered matrix −½·d² of the largest connected component.
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        The strain of the largest connected component divided by the squared norm of its matrix.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    ClassicalMDS : the same with given distances.
    MVU : for sheets with holes.
    find_short_circuits : finds edges that spoil geodesic distances.

    References
    ----------
    J. B. Tenenbaum, V. de Silva and J. C. Langford, "A global geometric framework for nonlinear
    dimensionality reduction", Science 290 (2000).

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, random_state=0)
    >>> model = Isomap(n_landmarks=100).fit(X)
    >>> bool(abs(model.embedding_[:, 0].std() / coordinates[:, 0].std() - 1) < 0.05)
    True
    """

    _accepts_graphs = True
    _accepts_distributed_graphs = True
    _landmarks = 5000  # of which Isomap without n_landmarks computes all distances

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        radius: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_landmarks: int | None = None,
        landmarks: str = "maxmin",
        disconnected: str = "join",
        short_circuits: str = "warn",
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.metric_params = metric_params
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.disconnected = disconnected
        self.short_circuits = short_circuits
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _pose(self, data: Input) -> "PosedGeodesics":
        self._check_options(data.n_samples, self.n_components_)
        self._check_memory(data.n_samples)
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        self.neighbor_search_ = graph.search
        components = self._policy().components(graph.components()[1])
        if self.short_circuits == "warn":
            warn_of_short_circuits(graph)
        geodesics = self._geodesics(graph, components)
        self.landmarks_ = geodesics.targets
        return PosedGeodesics(data, components, geodesics)

    def _fit_all_rows(self, rows: Any) -> DistributedFit:
        """Fit all rows of distributed data, or of their graph, by their distances to landmarks."""
        from manifoldry.spectral.distributed_eigenmaps import has_graph_in_parts
        from manifoldry.spectral.distributed_isomap import fit_by_paths

        graph = isinstance(rows, DistributedGraph)
        if not (graph or has_graph_in_parts(self)):
            return fit_to_landmarks(self, rows)  # there are no such graphs in parts
        sized = rows.order if graph else rows
        n_components = self._resolve_n_components(sized)
        self._check_options(sized.n_samples, n_components)
        return fit_by_paths(self, rows, n_components, self._policy())

    def _check_memory(self, n: int) -> None:
        """Refuse too many points before the graph is computed."""
        if self.n_landmarks is None:
            n_bytes = 8 * self._n_matrices(n, [n]) * float(n) ** 2
            plan_memory(n_bytes, f"the Gram matrix of {n} points", FEWER_TARGETS)

    def _check_options(self, n: int, n_components: int) -> None:
        check_option("short_circuits", self.short_circuits, ("warn", "ignore"))
        check_option("landmarks", self.landmarks, ("maxmin", "random"))
        if self.n_landmarks is None:
            return
        count = check_count("n_landmarks", self.n_landmarks, minimum=n_components + 1)
        if count > n:
            raise ValueError(
                f"n_landmarks={count} must be at most n_samples={n}; pass n_landmarks={n} or fewer"
            )

    def _geodesics(self, graph: NeighborGraph, components: list[IntArray]) -> Geodesics:
        """Compute geodesic distances to the landmarks of each connected component."""
        if self.n_landmarks is None:
            n_matrices = self._n_matrices(graph.n_query, [len(rows) for rows in components])
            check_gram_memory(graph.n_query, n_matrices, remedy=FEWER_TARGETS)
            return Geodesics.of(graph)
        counts = [self._landmark_count(len(rows), graph.n_query) for rows in components]
        check_gram_memory(max(counts), remedy="pass a smaller n_landmarks")
        rng = as_generator(self.random_state, unset=0)
        if self.landmarks == "random":
            drawn = [
                rng.choice(r, c, replace=False) for r, c in zip(components, counts, strict=True)
            ]
            return Geodesics.of(graph, np.sort(np.concatenate(drawn)))
        starts = [int(rng.choice(rows)) for rows in components]
        return Geodesics.to_farthest(graph, components, counts, starts)

    @property
    def _is_dense(self) -> bool:
        return isinstance(resolve_solver(self.eigen_solver), Dense)

    def _n_matrices(self, n: int, sizes: list[int]) -> float:
        """Number of n × n matrices in double precision that take as much memory as the fit.

        Above `IMPLICIT_ABOVE` points the distances are in single precision: 0.5, and 0.3 for blocks
        of rows and vectors. Components of `sizes` points, unless one has all, have copies, in
        double precision if they are small; computing the largest of these takes one more.
        """
        if n <= IMPLICIT_ABOVE or self._is_dense:
            return 4.5
        large = [(size / n) ** 2 for size in sizes if IMPLICIT_ABOVE < size < n]
        small = [(size / n) ** 2 for size in sizes if size <= IMPLICIT_ABOVE]
        return 0.8 + 0.5 * sum(large) + sum(small) + max(small, default=0.0)

    def _landmark_count(self, size: int, n: int) -> int:
        """Return the number of landmarks of a component, in proportion to its size."""
        assert self.n_landmarks is not None  # checked by the caller
        return min(size, max(round(self.n_landmarks * size / n), self.n_components_ + 1))


@dataclass(frozen=True, eq=False)
class PosedGeodesics(Posed):
    """Classical scaling of geodesic distances between landmarks, which may be all points."""

    rows_by_component: list[IntArray]
    geodesics: Geodesics

    @property
    def components(self) -> list[IntArray]:
        return self.rows_by_component

    @property
    def preserves_scale(self) -> bool:
        return True

    @property
    def row_matcher(self) -> NeighborGraph:
        return self.geodesics.graph

    @cached_property
    def unit(self) -> float:
        D = self.geodesics.distances
        blocks = row_blocks(len(D), D.shape[1], budget=2**20)
        unit = max(power_of_two_scale(D[block][np.isfinite(D[block])]) for block in blocks)
        check_range(unit)
        return unit

    @cached_property
    def columns(self) -> list[IntArray]:
        """Positions of the landmarks of each component in the array of all landmarks."""
        labels = self.labels[self.geodesics.targets]
        return [
            np.flatnonzero(labels == component) for component in range(len(self.rows_by_component))
        ]

    @property
    def problem_rows(self) -> list[IntArray]:
        return [self.geodesics.targets[columns] for columns in self.columns]

    @cached_property
    def grams(self) -> list[KernelGram]:
        """Centered matrices −½·d² between the landmarks of each component."""
        found = [self._gram(*part) for part in zip(self.problem_rows, self.columns, strict=True)]
        if found[0].problem.n == self.data.n_samples:
            weights = partial(local_weights, self.geodesics.graph)
            found[0] = replace(found[0], problem=replace(found[0].problem, graph=weights))
        return found

    def _gram(self, rows: IntArray, columns: IntArray) -> KernelGram:
        D = self.geodesics.distances
        symmetric = len(D) == D.shape[1]  # those to landmarks are so only up to rounding
        if len(rows) < len(D):
            D = D[np.ix_(rows, columns)]
        if symmetric and len(D) > IMPLICIT_ABOVE:
            return KernelGram.of_distances(D, self.unit)
        return KernelGram.of(GivenKernel(len(D)), gower_kernel(D, self.unit), self.unit)

    @property
    def problems(self) -> list[SpectralProblem]:
        return [gram.problem for gram in self.grams]

    def coordinates(self, spectra: Spectra) -> Array:
        Y = np.zeros((self.data.n_samples, spectra.k))
        for rows, columns, gram, spectrum in zip(
            self.rows_by_component, self.columns, self.grams, spectra.padded, strict=True
        ):
            Y[rows] = training_coordinates(self.geodesics, rows, columns, gram.extend(spectrum))
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> GeodesicExtension:
        maps = [g.extend(s) for g, s in zip(self.grams, spectra.padded, strict=True)]
        return GeodesicExtension(self.geodesics, self.columns, maps, self.unit, layout)

    def extension_at_training(self, spectra: Spectra, extension: Extension) -> Array:
        return self.coordinates(spectra)

    def loss(self, spectra: Spectra) -> float:
        return self.grams[0].loss(spectra.padded[0])

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        variance = self._residual_variance(Y)
        return {"component_labels_": self.labels, "residual_variance_": variance}

    def _residual_variance(self, Y: Array, sample: int = 1000) -> Array:
        """Return 1 − R² between geodesic and embedded distances for each number of coordinates.

        Uses the pairs of up to `sample` points of the largest component with as many landmarks.
        """
        rows, columns = (
            whole[spread_rows(len(whole), sample)]
            for whole in (self.rows_by_component[0], self.columns[0])
        )
        Y = Y / self.unit  # squares must not overflow
        distances = self.geodesics.distances[np.ix_(rows, columns)]
        geodesic = np.divide(distances, self.unit, dtype=np.float64)
        geodesic -= geodesic.mean()
        targets = Y[self.geodesics.targets[columns]]
        out, squares = np.ones(Y.shape[1]), np.zeros(geodesic.shape)
        for k in range(Y.shape[1]):
            steps = np.subtract.outer(Y[rows, k], targets[:, k])
            squares += np.square(steps, out=steps)
            on_map = np.sqrt(squares, out=steps)
            on_map -= on_map.mean()
            product = np.vdot(geodesic, geodesic) * np.vdot(on_map, on_map)
            if product > 0:
                out[k] = 1 - np.vdot(geodesic, on_map) ** 2 / product
        return out
