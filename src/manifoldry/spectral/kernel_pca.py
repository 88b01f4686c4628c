"""Kernel principal component analysis."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.dense import (
    RBF,
    Centered,
    GivenKernel,
    PairwiseKernel,
    RawKernel,
    median_rbf,
)
from manifoldry.eigen import EigenSolver, SpectralProblem, Spectrum
from manifoldry.extension.base import Extension, Inverse, Nystrom
from manifoldry.extension.preimage import FixedPoint, KernelRidge
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.spectral.gram_embedder import GramEmbedder
from manifoldry.spectral.kernel_pose import KernelPose, plan_gram
from manifoldry.spectral.linear_pose import LinearPose
from manifoldry.util.checks import check_option, check_positive
from manifoldry.util.typing import Matrix, RandomState
from manifoldry.util.validation import check_square, check_symmetric, plan_memory

_INVERSES = ("ridge", "fixed_point", "regression")
_KERNELS = (
    *("linear", "rbf", "poly", "polynomial", "sigmoid", "cosine", "laplacian"),
    *("chi2", "additive_chi2", "precomputed"),
)


class KernelPCA(GramEmbedder):
    """PCA in the feature space of a kernel.

    Finds the directions of largest variance after an implicit nonlinear map φ with
    k(x, y) = φ(x)·φ(y). With a Gaussian kernel short distances are kept (times √(2·gamma)) and
    long ones saturate, so clusters and curved structure separate. Use it as a smooth nonlinear
    feature map whose every step, forwards and backwards, is explicit.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates, at most ``n_samples - 1``; by default two, or what the data allow.
    kernel : str or callable, default="rbf"
        Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or ``"precomputed"``.
        ``"linear"`` is PCA and forms no n × n matrix.
    gamma : float, default=None
        Coefficient of the kernel. For ``"rbf"``, exp(−gamma·d²), it defaults to one over the
        median squared distance, for other kernels to one over the number of features.
    degree, coef0 : float
        Parameters of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further arguments of a callable kernel.
    inverse : {"ridge", "fixed_point", "regression"}, default="ridge"
        How ``inverse_transform`` finds data for a map position: kernel ridge regression; the
        point whose image is nearest (Gaussian kernel only); or local regression.
    alpha : float, default=None
        Penalty of the ridge regression, by default chosen by its leave-one-out error.
    eigen_solver : str or EigenSolver, default="auto"
        See :func:`manifoldry.eigen.resolve_solver`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of iterative solvers; ``None`` is a fixed seed.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        Coordinates √ℓ·v.
    eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues ℓ of the centred kernel matrix.
    gamma_ : float or None
        The coefficient in use.
    loss_ : float
        Share of the centred kernel's squared entries that the coordinates leave out.
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
        inverse: str = "ridge",
        alpha: float | None = None,
        eigen_solver: str | EigenSolver = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.inverse = inverse
        self.alpha = alpha
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    def _read(self, X: Any, reset: bool) -> Matrix:
        data = super()._read(X, reset)
        if reset and self._is_precomputed:
            check_square(data, "kernel")
            check_symmetric(data, "kernel")
        return data

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _gram_of(self, data: Matrix) -> LinearPose | KernelPose:
        self._check_options()
        self.gamma_: float | None = None
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return LinearPose.of(data)
        plan_gram(data.shape[0])
        raw = self._kernel_on(data)
        K = raw.matrix(data)
        return KernelPose.of(raw, K.copy() if self._is_precomputed else K)

    def _check_options(self) -> None:
        check_option("inverse", self.inverse, _INVERSES)
        if not callable(self.kernel):
            check_option("kernel", self.kernel, _KERNELS)
        if self.inverse == "fixed_point" and self.kernel != "rbf":
            raise ValueError(
                f"inverse='fixed_point' needs kernel='rbf', not {self.kernel!r}; "
                "pass inverse='ridge'"
            )
        for name in ("gamma", "alpha"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def _kernel_on(self, data: Matrix) -> RawKernel:
        if self._is_precomputed:
            return GivenKernel(data.shape[0])
        if callable(self.kernel):
            return PairwiseKernel(data, self.kernel, dict(self.kernel_params or {}))
        if self.kernel == "rbf":
            check_range(Frame.of(data).unit)  # gamma is the inverse of a square
            rbf = median_rbf(data, self.gamma)
            self.gamma_ = rbf.gamma / rbf.frame.unit**2
            return rbf
        self.gamma_ = 1 / data.shape[1] if self.gamma is None else self.gamma
        params = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return PairwiseKernel(data, self.kernel, params)

    def _extend(self, data: Matrix, problem: SpectralProblem, spectrum: Spectrum) -> Extension:
        extension = super()._extend(data, problem, spectrum)
        if isinstance(extension, Nystrom) and not self._is_precomputed:
            self._inverse = self._inverse_of(data, extension)
        return extension

    def _inverse_of(self, data: Matrix, extension: Nystrom) -> Inverse | None:
        if self.inverse == "fixed_point":
            kernel = extension.kernel
            assert isinstance(kernel, Centered)
            assert isinstance(kernel.raw, RBF)  # _check_options saw to that
            return FixedPoint(kernel.raw, extension.dual, self.embedding_)
        if self.inverse == "ridge":
            if sparse.issparse(data):
                remedy = "pass inverse='regression', which keeps sparse data sparse"
                plan_memory(16.0 * np.prod(data.shape), "kernel ridge regression", remedy)
            dense = data.toarray() if sparse.issparse(data) else data
            return KernelRidge(self.embedding_, dense, self.alpha)
        return self._inverse
