"""The four variants of LLE under the name and with the signature of scikit-learn."""

from dataclasses import replace
from typing import Any

from sklearn.neighbors import NearestNeighbors

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.hessian_lle import HessianLLE
from manifoldry.spectral.lle import LLE
from manifoldry.spectral.local import PosedAlignment
from manifoldry.spectral.ltsa import LTSA
from manifoldry.spectral.modified_lle import ModifiedLLE
from manifoldry.util.checks import check_option
from manifoldry.util.typing import RandomState

_METHODS: dict[str, type[SpectralEmbedder]] = {
    "standard": LLE,
    "hessian": HessianLLE,
    "modified": ModifiedLLE,
    "ltsa": LTSA,
}


@shared_docs
class LocallyLinearEmbedding(SpectralEmbedder):
    """LLE, Hessian LLE, modified LLE and LTSA with scikit-learn's signature.

    A drop-in replacement of :class:`sklearn.manifold.LocallyLinearEmbedding` that chooses the
    estimator by `method`. Coordinates have unit norm and, for a connected graph, are those of
    scikit-learn up to sign, with two exceptions. ``method="hessian"`` computes Hessian LLE, where
    scikit-learn (1.9.1) computes LTSA; ``method="modified"`` has at most ``n_neighbors -
    n_components`` weight vectors per neighborhood, as published, where scikit-learn has more in
    elongated neighborhoods. In addition it has ``inverse_transform``, checks the residuals of the
    eigenvectors and embeds connected components separately. New code should use the classes of
    the methods.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbors of each point.
    {n_components_two}
    reg : float, default=1e-3
        Regularization of the local weights of ``method="standard"`` and ``"modified"``, relative
        to the trace of the local Gram matrix.
    {eigen_solver}
    tol, max_iter : float, default=1e-6, and int, default=100
        Ignored, present for compatibility: the eigensolver always checks its residuals.
    method : {"standard", "hessian", "modified", "ltsa"}, default="standard"
        Which estimator: :class:`LLE`, :class:`HessianLLE`, :class:`ModifiedLLE` or :class:`LTSA`;
        the last three without their metric fit.
    hessian_tol, modified_tol : float, default=1e-4 and 1e-12
        Ignored, present for compatibility: the local problems are solved without them.
    neighbors_algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        Algorithm of ``nbrs_``. The neighbors of the training points do not depend on it; their
        index is chosen automatically.
    {random_state}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {embedding_}
    nbrs_ : sklearn.neighbors.NearestNeighbors
        Index of the training points; built at each access.
    reconstruction_error_, loss_ : float
        Sum of the eigenvalues, the value of the objective.
    {extension_}
    {inverse_}
    {eigenvalues_}
    {neighbor_search_}
    {component_labels_}
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LLE, LTSA, HessianLLE, ModifiedLLE : the variants as classes of their own.
    sklearn.manifold.LocallyLinearEmbedding : whose parameters it takes.

    References
    ----------
    S. T. Roweis and L. K. Saul, "Nonlinear dimensionality reduction by locally linear embedding",
    Science 290 (2000).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import LocallyLinearEmbedding
    >>> LocallyLinearEmbedding(n_neighbors=20).fit_transform(load_digits().data[:200]).shape
    (200, 2)
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        n_components: int = 2,
        reg: float = 1e-3,
        eigen_solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        method: str = "standard",
        hessian_tol: float = 1e-4,
        modified_tol: float = 1e-12,
        neighbors_algorithm: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.reg = reg
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.method = method
        self.hessian_tol = hessian_tol
        self.modified_tol = modified_tol
        self.neighbors_algorithm = neighbors_algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    _accepts_graphs = True

    @property
    def needs_dimension(self) -> bool:  # type: ignore[override]  # it depends on `method`
        """Whether the eigenproblem depends on the number of coordinates."""
        return self._estimator().needs_dimension

    def _pose(self, data: Input) -> PosedAlignment:
        estimator = self._estimator()
        posed: Any = estimator.pose(data)
        self.neighbor_search_ = estimator.neighbor_search_
        return replace(posed, problem=replace(posed.problem, scale="unit"))

    def _estimator(self) -> Any:
        """Return the estimator that `method` names, with the parameters that it has."""
        method: Any = _METHODS[check_option("method", self.method, tuple(_METHODS))]
        estimator = method(disconnected=DisconnectedPolicy("separate", ("separate",)))
        shared = estimator.get_params(deep=False).keys() & self.get_params(deep=False).keys()
        estimator.set_params(**{name: getattr(self, name) for name in shared})
        if self.method == "standard":
            return estimator
        return estimator.set_params(metric_fit=False, laplacian_weight=0.0)

    @property
    def nbrs_(self) -> NearestNeighbors:
        """Index of the training points."""
        extension: Any = self.extension_
        index = NearestNeighbors(
            n_neighbors=self.n_neighbors, algorithm=self.neighbors_algorithm, n_jobs=self.n_jobs
        )
        return index.fit(extension.graph.index.points)

    @property
    def reconstruction_error_(self) -> float:
        """Value of the objective."""
        return self.loss_
