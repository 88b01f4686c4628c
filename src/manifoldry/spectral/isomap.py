"""Isomap, with all points or with landmarks."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry.affinity.dense import GivenKernel
from manifoldry.affinity.self_tuning import local_weights
from manifoldry.eigen import EigenSolver, SpectralProblem, Spectrum
from manifoldry.extension.base import Nystrom
from manifoldry.extension.geodesic import GeodesicExtension, squares
from manifoldry.extension.pieces import piece_rows
from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.short_circuits import warn_of_short_circuits
from manifoldry.spectral.graph_embedder import GraphEmbedder, all_coincide, no_neighbors
from manifoldry.spectral.kernel_pose import KernelPose, plan_gram
from manifoldry.util.checks import as_generator, check_count, check_option
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import power_of_two_scale, spread_rows

_SAMPLE = 1000  # points on whose pairs the residual variance is taken


class Isomap(GraphEmbedder):
    """Lay the data out so that straight distances match distances along the manifold.

    Classical scaling of shortest paths on the neighbour graph: minimises the strain against
    geodesic distances. A convex sheet that was rolled up or bent comes back flat and to scale.
    Use it for the global shape of one connected, evenly sampled manifold; holes stretch the map,
    and a single false edge between layers can ruin it.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    n_neighbors : int, default=None
        Neighbours per point; by default 10, or half the points if those are fewer.
    radius : float, default=None
        Take all neighbours within this distance instead.
    metric : str or callable, default="euclidean"
        Metric of the neighbour graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    n_landmarks : int, default=None
        Compute distances to this many points only and triangulate the others. Time and memory
        then grow with n·n_landmarks instead of n²; a few hundred are plenty for a smooth sheet.
        Pieces embedded separately share them, each getting at least ``n_components + 1``.
    landmarks : {"maxmin", "random"}, default="maxmin"
        Spread the landmarks evenly, or draw them.
    disconnected : {"join", "separate", "largest", "error"}, default="join"
        What to do when the graph falls into pieces; see
        :class:`~manifoldry.neighbors.DisconnectedPolicy`.
    eigen_solver : str or EigenSolver, default="auto"
        See :func:`manifoldry.eigen.resolve_solver`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of landmarks and iterative solvers; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Threads, by default one per core; BLAS keeps its own number.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map, in the units of the data.
    landmarks_ : array of shape (n_landmarks,)
        The points that distances were computed to.
    residual_variance_ : array of shape (n_components,)
        One minus the squared correlation between geodesic distances and distances on the map,
        with one, two, ... coordinates (of the largest component, on up to 1000 points): it stops
        falling at the dimension of the manifold.
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues of the centred matrix −½·d² (of the largest component).
    piece_labels_ : array of shape (n_samples,)
        Component of every point, 0 being the largest; -1 if it was left out.
    loss_ : float
        The strain as a share of the squared matrix.
    computed_eigenvalues_ : array of shape (n_computed,)
        ``eigenvalues_`` and those beyond them that came at no cost: they show the gap.
    residuals_, gaps_ : arrays of shape (n_components,)
        Residual norm of every eigenpair, and distance from its eigenvalue to the nearest other
        one: a coordinate can be trusted where the first is far below the second.
    solver_ : str
        Which eigensolver found them, why that one, and how well it did.
    dimension_hint_ : int
        Number of eigenvalues before the largest gap.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(800, random_state=0)
    >>> model = Isomap(n_landmarks=100).fit(X)
    >>> bool(abs(model.embedding_[:, 0].std() / coordinates[:, 0].std() - 1) < 0.05)
    True
    """

    # Where a map is but the start of a search, nobody would see the warning.
    _looks_for_short_circuits = True

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
        eigen_solver: str | EigenSolver = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.metric_params = metric_params
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _pose(self, data: Any) -> SpectralProblem:
        self._check_landmarks(data.shape[0])
        graph = self._connected_graph(data)
        if len(graph.distances) == 0:
            raise ValueError(no_neighbors(graph.n_query))
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query))
        self._label(self._policy.pieces(graph.components()[1]), graph.n_query)
        if self._looks_for_short_circuits:
            warn_of_short_circuits(graph)
        self._geodesics = self._paths(graph)
        self.landmarks_ = self._geodesics.targets
        D = self._geodesics.distances
        self._unit = power_of_two_scale(D[np.isfinite(D)])
        check_range(self._unit)
        self._columns: list[IntArray] = [
            np.flatnonzero(self.piece_labels_[self.landmarks_] == piece)
            for piece in range(self.piece_labels_.max() + 1)
        ]
        self._poses = [self._pose_piece(columns) for columns in self._columns]
        if self._poses[0].problem.n == graph.n_query:
            weighed = replace(self._poses[0].problem, graph=partial(local_weights, graph))
            self._poses[0] = replace(self._poses[0], problem=weighed)
        return self._poses[0].problem

    def _check_landmarks(self, n: int) -> None:
        check_option("landmarks", self.landmarks, ("maxmin", "random"))
        if self.n_landmarks is None:
            plan_gram(n, remedy="pass n_landmarks to use fewer points")
            return
        count = check_count("n_landmarks", self.n_landmarks, minimum=self.n_components_ + 1)
        if count > n:
            raise ValueError(
                f"n_landmarks={count} must be at most n_samples={n}; pass n_landmarks={n} or fewer"
            )

    def _paths(self, graph: NeighborGraph) -> Geodesics:
        """Geodesics to the landmarks, of which every piece has its share."""
        pieces = piece_rows(self.piece_labels_)
        if self.n_landmarks is None:
            return Geodesics.of(graph)
        counts = [self._share(len(rows)) for rows in pieces]
        plan_gram(max(counts), remedy="pass a smaller n_landmarks")
        rng = as_generator(self.random_state, unset=0)
        if self.landmarks == "random":
            drawn = [rng.choice(r, c, replace=False) for r, c in zip(pieces, counts, strict=True)]
            return Geodesics.of(graph, np.sort(np.concatenate(drawn)))
        starts = [int(rng.choice(rows)) for rows in pieces]
        return Geodesics.to_farthest(graph, pieces, counts, starts)

    def _share(self, size: int) -> int:
        """Landmarks of a piece: in proportion to its size, and enough to span the map."""
        assert self.n_landmarks is not None  # the caller saw to that
        share = round(self.n_landmarks * size / len(self.piece_labels_))
        return min(size, max(share, self.n_components_ + 1))

    def _pose_piece(self, columns: IntArray) -> KernelPose:
        D = self._geodesics.distances[np.ix_(self.landmarks_[columns], columns)]
        return KernelPose.of(GivenKernel(len(columns)), squares(D, self._unit), self._unit)

    def _solve(self, problem: SpectralProblem) -> Spectrum:
        """Solve for every piece; the spectrum returned is that of the largest."""
        maps: list[Nystrom] = []
        for pose in reversed(self._poses):  # the largest piece comes last
            k = min(self.n_components_, pose.problem.n - 1)
            if k == 0:
                maps.append(Nystrom(pose.kernel, np.zeros((1, self.n_components_))))
                continue
            spectrum = self._padded(self._pairs(pose.problem, k))
            maps.append(pose.extend(spectrum))
        self._maps = maps[::-1]
        self._warn_if_degenerate(spectrum, problem)
        return spectrum

    def _padded(self, spectrum: Spectrum) -> Spectrum:
        """A spectrum with zeros for the coordinates that a small component does not have."""
        missing = (0, self.n_components_ - spectrum.k)
        return replace(
            spectrum,
            vectors=np.pad(spectrum.vectors, ((0, 0), missing)),
            values=np.pad(spectrum.values, missing),
            residuals=np.pad(spectrum.residuals, missing),
            gaps=np.pad(spectrum.gaps, missing),
        )

    def _coordinates(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        D = self._geodesics.distances
        Y = np.zeros((len(D), self.n_components_))
        for rows, columns, to_map in zip(
            piece_rows(self.piece_labels_), self._columns, self._maps, strict=True
        ):
            Y[rows] = to_map.transform(squares(D[np.ix_(rows, columns)], self._unit))
        self.residual_variance_ = self._residual_variance(Y)
        return self._lay_out(data, Y)

    def _residual_variance(self, Y: Array) -> Array:
        members = np.flatnonzero(self.piece_labels_ == 0)
        rows = members[spread_rows(len(members), _SAMPLE)]
        geodesic = self._geodesics.distances[np.ix_(rows, self._columns[0])].ravel()
        targets = Y[self.landmarks_[self._columns[0]]]
        out = np.ones(self.n_components_)
        for k in range(self.n_components_):
            on_map = cdist(Y[rows, : k + 1], targets[:, : k + 1]).ravel()
            if on_map.any():
                out[k] = 1 - np.corrcoef(geodesic, on_map)[0, 1] ** 2
        return out

    def _extend(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> GeodesicExtension:
        self._inverse = self._regression(data)
        del self._poses  # they hold the Gram matrices
        return GeodesicExtension(
            self._geodesics, self._columns, self._maps, self._unit, self._pieces
        )

    @property
    def _in_data_units(self) -> bool:
        return True

    def _loss(self, spectrum: Spectrum) -> float:
        kept, whole = (
            float((np.maximum(spectrum.values, 0) ** 2).sum()),
            self._poses[0].squared_norm,
        )
        return max(0.0, 1 - kept / whole) if whole > 0 else 0.0

    def _identical(self, data: Matrix) -> IntArray:
        return self._geodesics.graph.identical(data)
