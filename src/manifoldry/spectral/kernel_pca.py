"""Kernel principal component analysis."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.dense import RBF, GivenKernel, PairwiseKernel, RawKernel, median_rbf
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input, KernelValues, Points
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver
from manifoldry.extension.base import Inverse, Nystrom
from manifoldry.extension.preimage import FixedPoint, KernelRidge
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import KernelGram, LinearGram, PosedKernel, check_gram_memory
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Array, Matrix, RandomState
from manifoldry.util.validation import plan_memory

_KERNELS = (
    *("linear", "rbf", "poly", "polynomial", "sigmoid", "cosine", "laplacian"),
    *("chi2", "additive_chi2", "precomputed"),
)

_METRICS = {"linear": "euclidean", "rbf": "euclidean", "laplacian": "manhattan"}


@shared_docs
class KernelPCA(SpectralEmbedder):
    """Kernel principal component analysis: PCA in the feature space of a kernel.

    Maximizes the variance of the coordinates after an implicit nonlinear map φ with
    k(x, y) = φ(x)·φ(y). With a Gaussian kernel, distances in feature space are proportional to
    short distances in the data (by √(2·gamma)) and saturate for long ones, so clusters and curved
    structures separate. Use it as a smooth nonlinear feature map with explicit formulas for new
    points and for the inverse.

    Parameters
    ----------
    {n_components}
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or ``"precomputed"`` if
        `X` is a kernel matrix. ``"linear"`` is PCA and forms no n × n matrix. ``novelty`` is known
        for ``"rbf"``, ``"linear"`` and ``"laplacian"``, which are functions of a metric.
    gamma : float, default=None
        Coefficient of the kernel. None means one over the median squared distance for ``"rbf"``,
        which is exp(−gamma·d²), and ``1 / n_features`` for other kernels.
    degree, coef0 : float
        Parameters of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Additional keyword arguments of a callable kernel.
    {eigen_solver}
    {extension}
    inverse : {"ridge", "fixed_point", "regression"} or regressor, default="ridge"
        How ``inverse_transform`` computes data from coordinates: by kernel ridge regression; by
        the fixed-point iteration for the pre-image (Gaussian kernel only); by local regression;
        or by a scikit-learn regressor that is fitted to predict `X` from ``embedding_``.
    alpha : float, default=None
        Penalty of the ridge regression. None means the one of smallest leave-one-out error.
    {random_state}
    {device}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates √ℓ·v of the training points, with eigenvectors v of unit norm.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues ℓ of the centered kernel matrix.
    gamma_ : float or None
        Value of gamma that was used; None for kernels without one.
    loss_ : float
        Squared error of the centered kernel matrix as a fraction of its squared norm.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    PCA : the linear method.
    FromDensity : fits it to a sample from a density of the data.

    References
    ----------
    B. Schölkopf, A. Smola and K.-R. Müller, "Nonlinear component analysis as a kernel eigenvalue
    problem", Neural Computation 10 (1998).

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from manifoldry import KernelPCA
    >>> X, y = make_circles(100, factor=0.3, random_state=0)
    >>> Y = KernelPCA(gamma=2.0).fit_transform(X)
    >>> bool(Y[y == 0, 0].max() < Y[y == 1, 0].min() or Y[y == 1, 0].max() < Y[y == 0, 0].min())
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = "ridge",
        alpha: float | None = None,
        random_state: RandomState = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.alpha = alpha
        self.random_state = random_state
        self.device = device

    # Rows of distributed data that are fitted: four matrices of all their pairs take 0.5 GB.
    _landmarks = 4000

    _named_inverses = ("ridge", "fixed_point", "regression")

    @property
    def _input_type(self) -> type[Input]:
        given = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return KernelValues if given else Points

    @property
    def metric(self) -> str | None:
        """Metric of which the distance in feature space is a function; None if there is none."""
        return None if callable(self.kernel) else _METRICS.get(self.kernel)

    def _pose(self, data: Input) -> LinearGram | PosedKernel:
        self._check_options()
        self.gamma_: float | None = None
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return LinearGram.of(data)
        raw = self._kernel_on(data.rows)
        gram = KernelGram.of_gaussian(raw) if isinstance(raw, RBF) else None  # on a device
        if gram is not None:
            return KernelComponents(data, gram, self.inverse, self.alpha)
        check_gram_memory(data.n_samples)
        with np.errstate(over="ignore", invalid="ignore"):  # KernelGram.of raises instead
            K = raw.matrix(data.rows)
            gram = KernelGram.of(raw, K.copy() if data.pairwise else K)
        return KernelComponents(data, gram, self.inverse, self.alpha)

    def _check_options(self) -> None:
        if not callable(self.kernel):
            check_option("kernel", self.kernel, _KERNELS)
        if isinstance(self.inverse, str) and self.inverse == "fixed_point" and self.kernel != "rbf":
            raise ValueError(
                f"inverse='fixed_point' needs kernel='rbf', not {self.kernel!r}; "
                "pass inverse='ridge'"
            )
        for name in ("gamma", "alpha"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def _kernel_on(self, X: Matrix) -> RawKernel:
        if self._input_type.pairwise:
            return GivenKernel(X.shape[0])
        if callable(self.kernel):
            return PairwiseKernel(X, self.kernel, dict(self.kernel_params or {}))
        if self.kernel == "rbf":
            check_range(Frame.of(X).unit)  # gamma is one over a squared length
            rbf = median_rbf(X, self.gamma)
            self.gamma_ = rbf.gamma / rbf.frame.unit**2
            return rbf
        self.gamma_ = 1 / X.shape[1] if self.gamma is None else self.gamma
        params = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return PairwiseKernel(X, self.kernel, params)


@dataclass(frozen=True, eq=False)
class KernelComponents(PosedKernel):
    """Eigenvectors of a centered kernel matrix, with a choice of inverses."""

    inverse: str
    alpha: float | None

    def invert(self, embedding: Array, extension: Nystrom) -> Inverse | None:
        X = self.data.points
        if X is None or self.inverse == "regression":
            return super().invert(embedding, extension)
        if self.inverse == "fixed_point":
            kernel: Any = extension.kernel
            return FixedPoint(kernel.raw, extension.dual, embedding)
        if sparse.issparse(X):
            remedy = "pass inverse='regression', which keeps sparse data sparse"
            plan_memory(16.0 * np.prod(X.shape), "kernel ridge regression", remedy)
        return KernelRidge(embedding, X.toarray() if sparse.issparse(X) else X, self.alpha)
