"""scikit-learn's name for LLE, with scikit-learn's signature."""

from typing import Any

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.spectral.lle import LLE, PosedLLE
from manifoldry.util.typing import RandomState

_OTHER_METHODS = {"hessian": "HessianLLE", "ltsa": "LTSA"}


@shared_docs
class LocallyLinearEmbedding(LLE):
    """LLE under scikit-learn's name, for code that is to change one import.

    The same coordinates as :class:`sklearn.manifold.LocallyLinearEmbedding` with
    ``method="standard"``, but of unit variance instead of unit length; the other methods are
    classes of their own here. New code should use :class:`LLE`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbors per point.
    n_components : int, default=2
        Number of coordinates.
    reg : float, default=1e-3
        Ridge of the local weights, as a fraction of the trace of the local Gram matrix.
    {eigen_solver}
    tol, max_iter, hessian_tol, modified_tol, neighbors_algorithm
        Accepted for compatibility and not used: residuals are checked against the gaps, and the
        neighbor search chooses for itself.
    method : str, default="standard"
        ``"standard"``; others raise and name the class to use.
    {random_state}
    n_jobs : int, default=None
        Threads of the neighbor search.

    Attributes
    ----------
    reconstruction_error_ : float
        scikit-learn's name for ``loss_``. All other attributes are those of :class:`LLE`.

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
            raise ValueError(f"method={self.method!r} is not LLE; {remedy}")
        return super()._pose(data)

    @property
    def reconstruction_error_(self) -> float:
        """The objective under scikit-learn's name."""
        return self.loss_
