"""LLE with the name and signature of scikit-learn."""

from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.spectral.lle import LLE, PosedLLE
from manifoldry.util.typing import RandomState

_OTHER_METHODS = {"hessian": "HessianLLE", "ltsa": "LTSA"}


@shared_docs
class LocallyLinearEmbedding(LLE):
    """Locally linear embedding with scikit-learn's signature, as a drop-in replacement.

    Computes the same coordinates as :class:`sklearn.manifold.LocallyLinearEmbedding` with
    ``method="standard"``, but with unit variance instead of unit norm. The other methods are
    separate classes, :class:`HessianLLE` and :class:`LTSA`. New code should use :class:`LLE`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbors of each point.
    {n_components_two}
    {reg}
    {eigen_solver}
    tol, max_iter : float, default=1e-6, and int, default=100
        Ignored, present for compatibility: the eigensolver always checks its residuals.
    method : str, default="standard"
        Must be ``"standard"``; the error message for other values names the class to use.
    hessian_tol, modified_tol, neighbors_algorithm
        Ignored, present for compatibility: they belong to other methods, and the neighbor index
        is chosen automatically.
    {random_state}
    {n_jobs}

    Attributes
    ----------
    reconstruction_error_ : float
        Same as ``loss_``. For the other attributes see :class:`LLE`.

    See Also
    --------
    LLE, LTSA, HessianLLE : the variants as classes of their own.

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

    # Parameters of the parent class that are fixed here.
    metric = "euclidean"
    metric_params = None
    extension = None
    inverse = None
    disconnected = "separate"
    _disconnected_options = ("separate",)

    def _pose(self, data: Input) -> PosedLLE:
        if self.method != "standard":
            other = _OTHER_METHODS.get(self.method)
            remedy = f"use manifoldry.{other}" if other else "pass method='standard'"
            raise ValueError(f"method={self.method!r} must be 'standard'; {remedy}")
        return super()._pose(data)

    @property
    def reconstruction_error_(self) -> float:
        """Same as ``loss_``."""
        return self.loss_
