"""Conformal eigenmaps."""

from typing import Any

import numpy as np
from sklearn.base import clone

from manifoldry.base.docs import shared_docs
from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input, Points
from manifoldry.eigen import EigenSolver
from manifoldry.exceptions import ConvergenceWarning, RankWarning
from manifoldry.extension.affine import PiecewiseAffineMap
from manifoldry.extension.layout import Layout, component_rows
from manifoldry.extension.regression import regression_inverse
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import with_itself
from manifoldry.semidefinite.conformal_map import ConformalMap, NeighborhoodPairs, conformal_map
from manifoldry.spectral.base import SpectralEmbedder, eigengap
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.spectral.lle import LLE
from manifoldry.spectral.local import check_even, check_points
from manifoldry.spectral.posed import all_coincide
from manifoldry.util.checks import check_count, check_option
from manifoldry.util.typing import IntArray, RandomState
from manifoldry.util.validation import plan_memory
from manifoldry.util.warn import warn

_BASES = {"lle": LLE, "laplacian": LaplacianEigenmaps}


@shared_docs
class ConformalEigenmaps(Embedder):
    """Combine smooth functions of the data linearly into the map that best preserves angles.

    Minimizes Σᵢ Σ_{j<k} (‖zⱼ − zₖ‖² − sᵢ‖xⱼ − xₖ‖²)² over all pairs in the neighborhood of every
    point i, itself included: near each point the map z should be similar to the data, at a local
    scale sᵢ ≥ 0 (Sha & Saul 2005). z is a linear function of ``n_basis`` eigenvectors of another
    method, and its variance is fixed. Over maps of any dimension this is a convex problem, whose
    optimum is certified; the map in ``n_components`` coordinates starts from there. The scales
    show where the map shrinks and stretches, the eigenvalues how many coordinates it needs. Use it
    where LLE or Laplacian eigenmaps show the right shape with distorted angles, and for surfaces
    that cannot be flattened without stretching, such as a hemisphere.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    basis : {"lle", "laplacian"} or spectral estimator, default="lle"
        The method whose eigenvectors are mixed. Those of LLE can follow angles on a surface
        closely; those of a Laplacian are rough from neighbor to neighbor and level off at a
        boundary, but keep neighbors better where data, such as images, are no surface. Of an
        estimator, whose own parameters count then, a copy is fitted with
        ``n_components=n_basis``.
    n_basis : int, default=None
        How many of its eigenvectors, at least ``n_components``; by default 10, or what the data
        allow. With more of them the map is nearer to conformal and less smooth; the time to state
        the problem grows with the fourth power, that to solve it with the sixth (half a second
        for 30).
    refine : bool, default=True
        Go on from the first ``n_components`` principal axes of the convex problem's optimum to
        the best map in so many coordinates near them. Else those axes are the map, as published:
        if angles are preserved better in more dimensions, as those of a half sphere are in three,
        that is a projection, which distorts them.
    {n_neighbors}
    metric : str or callable, default="euclidean"
        Metric in which neighbors are sought; angles are Euclidean in any case.
    {metric_params}
    disconnected : {"separate", "largest", "error"}, default="separate"
        {disconnected}
    eigen_solver : str or EigenSolver, default="auto"
        Of a basis that is given by name; see :func:`manifoldry.eigen.resolve_solver`.
    {extension}
    {inverse}
    {random_state}
    {n_jobs}

    Attributes
    ----------
    {n_components_}
    n_basis_ : int
        Number of eigenvectors that were mixed.
    embedding_ : array of shape (n_samples, n_components)
        The map, its axes by decreasing variance. A conformal map has no size: it is given the one
        at which Σ(‖zⱼ − zₖ‖² − ‖xⱼ − xₖ‖²)² over all pairs is least, so that its unit is that of
        the data. Components keep their size and are put at their relative position in the data.
    scales_ : array of shape (n_samples,)
        √sᵢ of the map in that size: length on the map over length in the data near every point.
        NaN where a point coincides with its neighbors or was left out.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Variance of the convex problem's map along its first principal axes (of the largest
        component), as a fraction of the whole.
    computed_eigenvalues_ : array of shape (n_basis,)
        The same along all of them, which sums to one.
    {dimension_hint_}
    {component_labels_}
    basis_ : spectral estimator
        The fitted copy whose eigenvectors were mixed.
    {neighbor_search_}
    solver_ : str
        Which eigensolver found those, why that one, and how well it did.
    loss_ : float
        The objective, summed over components, for a map whose squared coordinates sum to one.
    bound_ : float
        The optimum of the convex problem: no mixture of these eigenvectors, in any number of
        coordinates, has a lower loss.
    certificate_ : float
        How far the conditions of that optimum are from holding, relative to the gradient.
    converged_ : bool
        Whether that optimum was found; the map, which goes on from it, is a minimum nearby.

    Examples
    --------
    >>> from manifoldry import LLE, ConformalEigenmaps
    >>> from manifoldry.datasets import make_hemisphere
    >>> from manifoldry.metrics import procrustes
    >>> X, stereographic = make_hemisphere(400, random_state=0)
    >>> model = ConformalEigenmaps().fit(X)
    >>> model.converged_
    True
    >>> plain = LLE().fit_transform(X)
    >>> bool(procrustes(model.embedding_, stereographic).error
    ...      < procrustes(plain, stereographic).error)
    True
    """

    radius = None
    _takes_graphs = True
    # "join" is not offered: an edge between components is not a neighborhood.
    _policies: tuple[str, ...] = ("separate", "largest", "error")
    # Default of n_basis.
    _default_basis = 10

    def __init__(
        self,
        n_components: int | None = None,
        *,
        basis: str | SpectralEmbedder = "lle",
        n_basis: int | None = None,
        refine: bool = True,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        disconnected: str = "separate",
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.basis = basis
        self.n_basis = n_basis
        self.refine = refine
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Any) -> None:
        data = self._read(X)
        check_points(type(self).__name__, data)
        self.n_components_ = self._resolve_components(data)
        self.n_basis_ = self._resolve_basis(data)
        graph = self._graph(data)
        self.basis_ = self._fitted_basis(graph)
        self.component_labels_ = _labels(self.basis_, graph.n_query)
        maps = self._maps(graph, self.component_labels_)
        layout = self._store(data, maps)
        formula = PiecewiseAffineMap(
            self.basis_.extension_,
            graph.index,
            np.stack([found.center for found in maps]),
            np.stack([found.axes for found in maps]),
            layout,
        )
        self._map_points(
            data, graph, formula, lambda: regression_inverse(self.embedding_, data.points)
        )

    def _graph(self, data: Input) -> NeighborGraph:
        if isinstance(data, Points):  # so that the basis is computed in double precision
            data = Points(data.rows.astype(np.float64, copy=False))
        graph = check_even(type(self).__name__, self._neighbor_graph(data))
        self.neighbor_search_ = graph.search
        if not graph.distances.any():
            raise ValueError(all_coincide(graph.n_query))
        return graph

    def _fitted_basis(self, graph: NeighborGraph) -> Any:
        if isinstance(self.basis, SpectralEmbedder):
            basis = clone(self.basis).set_output(transform="default")
            return basis.set_params(n_components=self.n_basis_).fit(graph.index.points)
        basis = _BASES[self.basis](
            self.n_basis_,
            disconnected=self._policy().choice,
            eigen_solver=self.eigen_solver,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        return basis.fit(graph)

    def _maps(self, graph: NeighborGraph, labels: IntArray) -> list[ConformalMap]:
        """The map of every component, from the pairs of points within it."""
        points: Any = graph.index.points
        members = with_itself(graph)
        place = np.empty(graph.n_query, dtype=np.intp)  # index of every point in its component
        maps = []
        for number, rows in enumerate(component_rows(labels)):
            place[rows] = np.arange(len(rows))
            near = members[rows]
            near = np.where(labels[near] == number, place[near], -1)
            X = points if len(rows) == len(place) else points[rows]
            pairs = NeighborhoodPairs(X, near)
            Y = self.basis_.embedding_[rows]
            maps.append(conformal_map(Y, pairs, self.n_components_, self.refine))
        return maps

    def _store(self, data: Input, maps: list[ConformalMap]) -> Layout:
        """Store the fitted attributes and return the layout of the components."""
        labels, L = self.component_labels_, self.n_components_
        Y = np.full((len(labels), L), np.nan)
        self.scales_ = np.full(len(Y), np.nan)
        for rows, found in zip(component_rows(labels), maps, strict=True):
            Y[rows] = (self.basis_.embedding_[rows] - found.center) @ found.axes
            self.scales_[rows] = found.scales
        layout = Layout.of(labels, Y, data.geometry, has_lengths=True)
        self.embedding_ = layout.place(Y, labels).astype(data.dtype, copy=False)
        self.solver_ = self.basis_.solver_
        self.computed_eigenvalues_ = maps[0].fractions
        self.eigenvalues_ = maps[0].fractions[:L]
        self.dimension_hint_ = eigengap(maps[0].fractions, "largest")
        self.loss_ = float(sum(found.loss for found in maps))
        self.bound_ = float(sum(found.solution.value for found in maps))
        self.certificate_ = float(max(found.solution.certificate for found in maps))
        self.converged_ = all(found.solution.converged for found in maps)
        self._warn_of(maps[0])
        return layout

    def _warn_of(self, largest: ConformalMap) -> None:
        rank = int(largest.axes.any(axis=0).sum())
        if rank < self.n_components_:
            warn(
                f"{self.n_components_ - rank} of n_components={self.n_components_} coordinates are "
                "zero, because angles are preserved best without them; pass fewer components",
                RankWarning,
            )
        if not self.converged_:
            warn(
                "the semidefinite problem was not solved to full accuracy: its optimality "
                f"conditions hold up to {self.certificate_:.0e} of the gradient; lower n_basis",
                ConvergenceWarning,
            )

    def _largest_components(self, data: Input) -> tuple[int, str]:
        most = super()._largest_components(data)
        if self.n_basis is None or check_count("n_basis", self.n_basis) > most[0]:
            return most
        return self.n_basis, "n_basis"

    def _resolve_basis(self, data: Input) -> int:
        """The number of eigenvectors to compute."""
        self._check_basis()
        bound = data.n_samples - 1
        wanted = max(self._default_basis, self.n_components_)
        count = min(wanted, bound) if self.n_basis is None else self.n_basis
        if count > bound:
            raise ValueError(
                f"n_basis={count} must be at most n_samples - 1={bound}; pass "
                f"n_basis={bound} or fewer"
            )
        order = count * (count + 1) / 2
        plan_memory(5 * 8.0 * order**2, f"mixing {count} eigenvectors", "lower n_basis")
        return count

    def _check_basis(self) -> None:
        basis: Any = self.basis
        if not isinstance(self.refine, bool | np.bool_):
            raise TypeError(f"refine={self.refine!r} must be True or False")
        if not isinstance(basis, SpectralEmbedder):
            if isinstance(basis, str):
                check_option("basis", basis, tuple(_BASES))
                return
            raise TypeError(
                f"basis={basis!r} must be one of 'lle', 'laplacian' or one of manifoldry's "
                "spectral estimators, such as LaplacianEigenmaps()"
            )
        if basis.needs_dimension or "n_components" not in basis.get_params(deep=False):
            raise TypeError(
                f"basis={basis!r} has no eigenvectors beyond its n_components; pass 'lle', "
                "'laplacian' or another spectral estimator, such as DiffusionMaps()"
            )


def _labels(basis: Any, n: int) -> IntArray:
    """Component labels of the basis; a method without a graph has one component."""
    if hasattr(basis, "component_labels_"):
        return np.asarray(basis.component_labels_)
    return np.zeros(n, dtype=np.intp)
