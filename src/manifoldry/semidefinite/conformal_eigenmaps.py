"""Conformal eigenmaps."""

from typing import Any

import numpy as np
from sklearn.base import clone

from manifoldry.base.docs import shared_docs
from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input, Points
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver
from manifoldry.exceptions import ConvergenceWarning, RankWarning, warn
from manifoldry.extension.affine import PiecewiseAffineMap
from manifoldry.extension.layout import Layout, component_rows
from manifoldry.extension.regression import regression_inverse
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import with_itself
from manifoldry.semidefinite.conformal_map import ConformalMap, NeighborhoodPairs, conformal_map
from manifoldry.spectral.base import SpectralEmbedder, eigengap
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.spectral.lle import LLE
from manifoldry.spectral.local import check_has_points, check_uniform_neighborhoods
from manifoldry.spectral.posed import all_coincide_message
from manifoldry.util.checks import check_count, check_option
from manifoldry.util.memory import memory_remedy
from manifoldry.util.typing import IntArray, RandomState
from manifoldry.util.validation import in_precision, plan_memory

_BASES = {"lle": LLE, "laplacian": LaplacianEigenmaps}


@shared_docs
class ConformalEigenmaps(Embedder):
    """Conformal eigenmaps: the combination of eigenvectors that best preserves angles.

    Minimizes Σᵢ Σ_{j<k} (‖zⱼ − zₖ‖² − sᵢ‖xⱼ − xₖ‖²)² over all pairs in the neighborhood of each
    point i, which includes the point itself: near each point the embedding z should be similar to
    the data, with a local scale sᵢ ≥ 0 (Sha & Saul 2005). z is a linear function of ``n_basis``
    eigenvectors of another method, and its variance is fixed. For any number of coordinates this
    is a semidefinite program, solved to a certified optimum; a local search from there gives the
    embedding in ``n_components`` coordinates. ``scales_`` shows where the embedding shrinks or
    stretches the data, ``eigenvalues_`` how many coordinates it needs. Use it if LLE or Laplacian
    eigenmaps show the right shape with distorted angles, and for surfaces that cannot be flattened
    without stretching, such as a hemisphere.

    Parameters
    ----------
    {n_components}
    basis : {"lle", "laplacian"} or spectral estimator, default="lle"
        Method whose eigenvectors are combined. Those of LLE can represent angles on a surface
        accurately. Those of a Laplacian vary irregularly between neighbors and are flat at a
        boundary, but preserve neighborhoods better for data, such as images, that do not lie near
        a surface. If it is an estimator, a clone with ``n_components=n_basis`` is fitted.
    n_basis : int, default=None
        Number of eigenvectors, at least ``n_components``. None means the larger of 10 and
        ``n_components``, but at most ``n_samples - 1``. More of them make the embedding more
        conformal and less smooth. The time to state the problem grows with the fourth power, the
        time to solve it with the sixth power (half a second for 30).
    refine : bool, default=True
        Start from the first ``n_components`` principal axes of the optimum of the semidefinite
        program and minimize the objective in that number of coordinates. If False, these axes are
        the embedding, as published. If the optimum has more dimensions, such as three for a
        hemisphere, that is a projection, which distorts angles.
    {n_neighbors}
    {search_metric}
    {metric_params}
    disconnected : {"separate", "largest", "error"}, default="separate"
        {disconnected}
    eigen_solver : str or EigenSolver, default="auto"
        The eigensolver of a basis that is given by name; see
        :func:`manifoldry.eigen.resolve_solver`.
    {extension}
    {inverse}
    {random_state}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    n_basis_ : int
        Number of eigenvectors that were combined.
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of the training points, by decreasing variance, in the units of the data. The
        objective does not determine their scale; it is set to minimize
        Σ(‖zⱼ − zₖ‖² − ‖xⱼ − xₖ‖²)² over all pairs. Connected components have the relative
        positions that they have in the data.
    scales_ : array of shape (n_samples,)
        √sᵢ: ratio of lengths in the embedding to lengths in the data near each point. NaN for
        points that coincide with all neighbors or are not embedded.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Fractions of the variance of the semidefinite program's optimum along its first principal
        axes, for the largest connected component.
    computed_eigenvalues_ : array of shape (n_basis,)
        The same along all principal axes; they sum to one.
    {dimension_hint_}
    {component_labels_}
    basis_ : spectral estimator
        The fitted estimator whose eigenvectors were combined.
    {neighbor_search_}
    {solver_}
    loss_ : float
        The objective, summed over connected components, for an embedding whose squared coordinates
        sum to one.
    bound_ : float
        Optimal value of the semidefinite program, a lower bound of the loss for any linear
        combination of these eigenvectors in any number of coordinates.
    certificate_ : float
        Violation of the optimality conditions of the semidefinite program, relative to the
        gradient.
    converged_ : bool
        Whether the semidefinite program was solved to the tolerance. The embedding is a local
        minimum.

    See Also
    --------
    LLE : the eigenvectors that it combines.
    MVU : preserves distances instead of angles.

    References
    ----------
    F. Sha and L. K. Saul, "Analysis and extension of spectral methods for nonlinear dimensionality
    reduction", ICML 2005.

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
    _accepts_graphs = True
    _runs_on_host = "only neighbors and eigenvectors are computed there"
    # No "join": a single added edge makes no neighborhood.
    _disconnected_options: tuple[str, ...] = ("separate", "largest", "error")
    # Default number of eigenvectors.
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
        device: str | Device | None = None,
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
        self.device = device

    def _fit(self, X: Any) -> None:
        data = self._read(X)
        check_has_points(type(self).__name__, data)
        self.n_components_ = self._resolve_n_components(data)
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
        self._set_extension_and_inverse(
            data, graph, formula, lambda: regression_inverse(self.embedding_, data.points)
        )

    def _graph(self, data: Input) -> NeighborGraph:
        if isinstance(data, Points):  # so that the basis is computed in double precision
            data = Points(data.rows.astype(np.float64, copy=False))
        graph = check_uniform_neighborhoods(type(self).__name__, self._neighbor_graph(data))
        self.neighbor_search_ = graph.search
        if not graph.distances.any():
            raise ValueError(all_coincide_message(graph.n_query))
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
        with memory_remedy("lower n_basis"):
            return basis.fit(graph)

    def _maps(self, graph: NeighborGraph, labels: IntArray) -> list[ConformalMap]:
        """Return the embedding of each connected component."""
        points: Any = graph.index.points
        members = with_itself(graph)
        place = np.empty(graph.n_query, dtype=np.intp)  # index of each point in its component
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
        """Set the embedding and its attributes; return the layout of its components."""
        labels, L = self.component_labels_, self.n_components_
        Y = np.full((len(labels), L), np.nan)
        self.scales_ = np.full(len(Y), np.nan)
        for rows, found in zip(component_rows(labels), maps, strict=True):
            Y[rows] = (self.basis_.embedding_[rows] - found.center) @ found.axes
            self.scales_[rows] = found.scales
        layout = Layout.of(labels, Y, data.geometry, preserves_scale=True)
        self.embedding_ = in_precision(layout.place(Y, labels), data.dtype)
        self.solver_ = self.basis_.solver_
        self.computed_eigenvalues_ = maps[0].fractions
        self.eigenvalues_ = maps[0].fractions[:L]
        self.dimension_hint_ = eigengap(maps[0].fractions, "largest")
        self.loss_ = float(sum(found.loss for found in maps))
        self.bound_ = float(sum(found.solution.value for found in maps))
        self.certificate_ = float(max(found.solution.certificate for found in maps))
        self.converged_ = all(found.solution.converged for found in maps)
        self._warn_about(maps[0])
        return layout

    def _warn_about(self, largest: ConformalMap) -> None:
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

    def _max_components(self, data: Input) -> tuple[int, str]:
        most = super()._max_components(data)
        if self.n_basis is None or check_count("n_basis", self.n_basis) > most[0]:
            return most
        return self.n_basis, "n_basis"

    def _resolve_basis(self, data: Input) -> int:
        """Return the number of eigenvectors to combine."""
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
        plan_memory(5 * 8.0 * order**2, f"combining {count} eigenvectors", "lower n_basis")
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
    """Return the connected components of the basis; methods without a graph have one."""
    if hasattr(basis, "component_labels_"):
        return np.asarray(basis.component_labels_)
    return np.zeros(n, dtype=np.intp)
