"""Eigenproblems of centered Gram matrices: of data, of a kernel, or of another embedding."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.dense import RBF, Centered, GivenKernel, RawKernel
from manifoldry.affinity.gaussian import local_weights
from manifoldry.base.input import Input
from manifoldry.device import current_device
from manifoldry.eigen import Gram, Spectra, SpectralProblem, Spectrum
from manifoldry.eigen.on_device import DenseOnDevice, GramOnDevice
from manifoldry.extension.affine import AffineMap, PiecewiseAffineMap
from manifoldry.extension.base import Extension, Nystrom
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.on_device import frame_of
from manifoldry.spectral.centered_squares import CenteredSquares
from manifoldry.spectral.on_device import (
    LEAST_EDGES,
    LEAST_ROWS,
    center,
    centered_factor,
    gaussian_of_pairs,
)
from manifoldry.spectral.posed import Posed
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    asymmetric_product,
    largest_modulus,
    plan_matrix,
    plan_memory,
    power_of_two_scale,
    row_blocks,
    square_tiles,
)

FEWER = "fit a sample of the points and transform the others"


@dataclass(frozen=True, eq=False)
class LinearGram(Posed):
    """Gram matrix of centered data, scaled so that squares neither overflow nor underflow."""

    frame: Frame
    offset: Array  # mean of the data in the frame
    problem: SpectralProblem
    inertia: float  # sum of squared distances from the mean, in units of the frame

    @classmethod
    def of(cls, data: Input) -> "LinearGram":
        """Center and scale the data; the problem uses them as a factor, not the n × n matrix."""
        with np.errstate(over="ignore", invalid="ignore"):  # check_range raises instead
            X = data.rows
            return cls._of_sparse(data, X) if sparse.issparse(X) else cls._of_dense(data, X)

    @classmethod
    def _of_dense(cls, data: Input, X: Array) -> "LinearGram":
        device = current_device()
        if device is not None and X.size >= LEAST_EDGES:
            frame = frame_of(X, robust=False)
            check_range(frame.unit)
            centered, offset, inertia = centered_factor(device, X, frame)
            problem = cls._problem(GramOnDevice(centered))
            return cls(data, frame, offset, problem, inertia)
        plan_memory(36.0 * X.shape[0] * X.shape[1], "centering the data", "use fewer rows")
        frame, F = Frame.with_coordinates(X)
        check_range(frame.unit)
        offset = F.mean(axis=0)  # rounding errors of the first centering
        inertia = 0.0
        for rows in row_blocks(len(F), F.shape[1], budget=2**17):  # blocks stay in the cache
            F[rows] -= offset
            inertia += float(np.vdot(F[rows], F[rows]))
        problem = cls._problem(Gram(F, single=X.dtype == np.float32))
        return cls(data, frame, offset, problem, inertia)

    @staticmethod
    def _problem(gram: Gram) -> SpectralProblem:
        return SpectralProblem(
            gram,
            "largest",
            deflate=np.ones(gram.shape[0]),
            bounds=(0.0, np.inf),
            scale="sqrt_eigenvalue",
        )

    @classmethod
    def _of_sparse(cls, data: Input, X: Matrix, least_spread: float = 1e-4) -> "LinearGram":
        """Pose the problem without centering the matrix, which would fill it in.

        The variance is a difference of moments. If it is less than the fraction `least_spread` of
        the second moment, too many digits cancel, and the data are made dense.
        """
        frame = Frame.of(X)
        check_range(frame.unit)
        F = frame.apply(X).astype(np.float64)
        whole, offset = float((F.data**2).sum()), _column_means(F)
        inertia = whole - X.shape[0] * float((offset**2).sum())
        if inertia < least_spread * whole:
            plan_memory(24.0 * X.shape[0] * X.shape[1], "centering the data", "shift them first")
            return cls._of_dense(data, X.toarray())
        # Constraining eigenvectors to be orthogonal to 1 is equivalent to centering.
        problem = SpectralProblem(
            Gram(F),
            "largest",
            constraint=np.ones(X.shape[0]),
            bounds=(0.0, np.inf),
            scale="sqrt_eigenvalue",
        )
        return cls(data, frame, offset, problem, inertia)

    @property
    def problems(self) -> list[SpectralProblem]:
        return [self.problem]

    @property
    def unit(self) -> float:
        return self.frame.unit

    def coordinates(self, spectra: Spectra) -> Array:
        # As for new points: eigenvectors would differ by their residuals.
        gram, components = self.problem.operator, self._affine_map(spectra).components
        Y = gram.times_factor(components)
        if not gram.explicit:  # a sparse factor is not centered
            Y -= self.offset @ components
        return np.ascontiguousarray(Y * self.unit)

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> AffineMap:
        return self._affine_map(spectra)

    def _affine_map(self, spectra: Spectra) -> AffineMap:
        known: tuple[Spectra, AffineMap] | None = vars(self).get("_known_map")
        if known is None or known[0] is not spectra:
            gram = self.problem.operator
            known = spectra, AffineMap.of(gram, self.offset, self.frame, spectra.largest)
            vars(self)["_known_map"] = known  # coordinates and extension are both computed from it
        return known[1]

    def invert(self, embedding: Array, extension: Any) -> AffineMap:
        return extension

    @property
    def row_matcher(self) -> None:
        return None  # the affine map gives the coordinates of training rows exactly

    def loss(self, spectra: Spectra) -> float:
        return gram_residual(spectra.largest, self.squared_norm)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the Gram matrix, from the smaller of FᵀF and FFᵀ."""
        F = self.problem.operator.factor
        if sparse.issparse(F):
            small = _centered_product(F)
        else:
            small = F.T @ F if F.shape[1] <= F.shape[0] else F @ F.T
        return float((small**2).sum())


@dataclass(frozen=True, eq=False)
class KernelGram:
    """Centered kernel matrix of the training points, and the kernel function for new points.

    :meth:`of` makes it from a kernel, and :class:`PosedKernel` poses its eigenproblem.

    Parameters
    ----------
    kernel : Centered
        The centered kernel, evaluated at new points.
    problem : SpectralProblem
        The eigenproblem of the centered kernel matrix.
    unit : float
        Unit of length of the kernel; its entries scale with the square.

    See Also
    --------
    PosedKernel : the eigenproblem of a kernel method.
    manifoldry.KernelPCA : a method that uses it.

    Examples
    --------
    Kernel PCA with the kernel 1/(1 + d²). `matrix` is the kernel with the training points:

    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import euclidean_distances
    >>> from manifoldry.spectral import KernelGram, PosedKernel, SpectralEmbedder
    >>> class Cauchy:
    ...     def __init__(self, X):
    ...         self.X, self.n_train = X, len(X)
    ...     def matrix(self, X):
    ...         return 1 / (1 + euclidean_distances(X, self.X, squared=True))
    >>> class CauchyPCA(SpectralEmbedder):
    ...     def __init__(self, n_components=None):
    ...         self.n_components = n_components
    ...     def _pose(self, data):
    ...         kernel = Cauchy(data.rows)
    ...         return PosedKernel(data, KernelGram.of(kernel, kernel.matrix(data.rows)))
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> model = CauchyPCA().fit(X)
    >>> model.transform(X[:4] + 0.1).shape
    (4, 2)
    """

    kernel: Centered
    problem: SpectralProblem
    unit: float

    @classmethod
    def of(cls, raw: RawKernel, K: Array, unit: float = 1.0) -> "KernelGram":
        """Center `K`, the kernel `raw` on the training points; in place if it is float64.

        Parameters
        ----------
        raw : RawKernel
            The kernel: ``matrix(X)`` returns it between `X` and the training points, and
            ``n_train`` is their number.
        K : array of shape (n_train, n_train)
            The kernel matrix of the training points.
        unit : float, default=1.0
            Unit of length of the kernel.

        Returns
        -------
        KernelGram
            The centered kernel.
        """
        K = np.asarray(K, dtype=np.float64)
        if K.shape != (raw.n_train, raw.n_train):
            raise ValueError(
                f"the kernel of {raw.n_train} training points has shape {K.shape} and must have "
                f"shape {(raw.n_train, raw.n_train)}; check the method matrix of {raw!r}"
            )
        largest = largest_modulus(K)
        if not np.isfinite(largest):
            raise ValueError(
                "the Gram matrix has NaN or infinite entries; rescale the data or change the kernel"
            )
        rounding = 8 * np.finfo(np.float64).eps * largest
        if asymmetric_product(K) > K.shape[0] * rounding:
            _symmetrize(K, largest)
        kernel, K = Centered.of(raw, K)
        if largest_modulus(K) <= rounding:
            K[:] = 0.0  # all points coincide in feature space; the entries are rounding errors
        problem = SpectralProblem(K, "largest", deflate=np.ones(len(K)), scale="sqrt_eigenvalue")
        return cls(kernel, problem, unit)

    @classmethod
    def of_gaussian(cls, rbf: RBF) -> "KernelGram | None":
        """Center a Gaussian kernel on a device; None if it is to be computed on the CPU.

        Parameters
        ----------
        rbf : RBF
            The kernel, with the training points.

        Returns
        -------
        KernelGram or None
            The centered kernel.
        """
        device = current_device()
        if device is None or rbf.n_train < LEAST_ROWS or sparse.issparse(rbf.X):
            return None
        K = gaussian_of_pairs(device, rbf)
        if K is None:
            return None
        means = K.mean(axis=0)
        kernel = Centered(rbf, device.host(means), float(means.mean()))
        A = DenseOnDevice(device, center(K, means, kernel.grand_mean))
        problem = SpectralProblem(A, "largest", deflate=np.ones(len(K)), scale="sqrt_eigenvalue")
        return cls(kernel, problem, 1.0)

    @classmethod
    def of_distances(cls, D: Array, unit: float) -> "KernelGram":
        """Center −½·(d/unit)² for a symmetric matrix of distances, without storing the result.

        Parameters
        ----------
        D : array of shape (n, n)
            The distances.
        unit : float
            Unit of length.

        Returns
        -------
        KernelGram
            The centered kernel.
        """
        K = CenteredSquares(D, unit)
        kernel = Centered(GivenKernel(len(D)), K.column_means, K.grand_mean)
        problem = SpectralProblem(K, "largest", deflate=np.ones(len(D)), scale="sqrt_eigenvalue")
        return cls(kernel, problem, unit)

    def extend(self, spectrum: Spectrum) -> Nystrom:
        """Return Nyström's formula, which is exact at the training points.

        Parameters
        ----------
        spectrum : Spectrum
            The eigenpairs of ``problem``.

        Returns
        -------
        Nystrom
            The extension to new points.
        """
        return Nystrom(self.kernel, spectrum.dual_vectors * self.unit, self.unit)

    def loss(self, spectrum: Spectrum) -> float:
        """Return the strain divided by the squared norm of the kernel matrix.

        Parameters
        ----------
        spectrum : Spectrum
            The eigenpairs of ``problem``.

        Returns
        -------
        float
            The loss.
        """
        K = self.problem.operator
        implicit = hasattr(K, "squared_norm")
        return gram_residual(spectrum, K.squared_norm() if implicit else float(np.vdot(K, K)))


@dataclass(frozen=True, eq=False)
class PosedKernel(Posed):
    """Coordinates √ℓ·v from the leading eigenpairs of a centered kernel matrix.

    Return it from ``_pose`` of a kernel method.

    Parameters
    ----------
    data : Input
        What was passed to ``_pose``.
    gram : KernelGram
        The centered kernel.

    See Also
    --------
    KernelGram : centers a kernel; its example is a complete method.
    PosedOnGraph : the counterpart for neighbor graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import KernelPCA
    >>> from manifoldry.spectral import PosedKernel
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> posed = KernelPCA(kernel="rbf").pose(X)
    >>> isinstance(posed, PosedKernel), posed.gram.problem.n
    (True, 30)
    """

    gram: KernelGram

    @property
    def problems(self) -> list[SpectralProblem]:
        return [self.gram.problem]

    @property
    def unit(self) -> float:
        return self.gram.unit

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Nystrom:
        return self.gram.extend(spectra.largest)

    def extension_at_training(self, spectra: Spectra, extension: Extension) -> Array:
        return np.asarray(self.gram.problem.operator @ spectra.largest.dual_vectors) * self.unit

    def loss(self, spectra: Spectra) -> float:
        return self.gram.loss(spectra.largest)


@dataclass(frozen=True, eq=False)
class PosedMap(Posed):
    """Principal axes of a given embedding in more dimensions, for each connected component.

    New points are first embedded by `extension`, the extension of that embedding.
    """

    map: Array  # (n, r), NaN for points that are not embedded
    rows_by_component: list[IntArray]
    extension: Extension
    graph: NeighborGraph

    @property
    def components(self) -> list[IntArray]:
        return self.rows_by_component

    @property
    def preserves_scale(self) -> bool:
        return True

    @cached_property
    def means(self) -> Array:
        """Mean of each connected component, (number of components, r)."""
        return np.stack([self.map[rows].mean(axis=0) for rows in self.rows_by_component])

    @cached_property
    def unit(self) -> float:
        steps = [
            self.map[rows] - mean
            for rows, mean in zip(self.rows_by_component, self.means, strict=True)
        ]
        return max(power_of_two_scale(step) for step in steps)

    @cached_property
    def problems(self) -> list[SpectralProblem]:
        return [
            self._problem(*part) for part in zip(self.rows_by_component, self.means, strict=True)
        ]

    def _problem(self, rows: IntArray, mean: Array) -> SpectralProblem:
        """Return the problem of the leading eigenvectors of one component's Gram matrix."""
        return SpectralProblem(
            Gram((self.map[rows] - mean) / self.unit),
            "largest",
            deflate=np.ones(len(rows)),
            bounds=(0.0, np.inf),
            scale="sqrt_eigenvalue",
            graph=partial(_weights_among, self.graph, rows),
        )

    @property
    def row_matcher(self) -> NeighborGraph:
        return self.graph

    def extension_at_training(self, spectra: Spectra, extension: Extension) -> Array:
        Y = np.zeros((len(self.map), spectra.k))
        for rows, mean, V in zip(
            self.rows_by_component, self.means, self._axes(spectra), strict=True
        ):
            Y[rows] = (self.map[rows] - mean) @ V
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> PiecewiseAffineMap:
        axes = self._axes(spectra)
        return PiecewiseAffineMap(self.extension, self.graph.index, self.means, axes, layout)

    def _axes(self, spectra: Spectra) -> Array:
        """Return the principal axes of each component, (number of components, r, k)."""
        pairs = zip(self.problems, spectra.padded, strict=True)
        return np.stack([problem.operator.factor.T @ s.dual_vectors for problem, s in pairs])


def _weights_among(graph: NeighborGraph, rows: IntArray) -> sparse.csr_array:
    return local_weights(graph)[rows][:, rows]


def gram_residual(spectrum: Spectrum, squared_norm: float) -> float:
    """Return the fraction of the squared norm of a Gram matrix not explained by eigenpairs."""
    kept = float((np.maximum(spectrum.values, 0) ** 2).sum())
    return max(0.0, 1 - kept / squared_norm) if squared_norm > 0 else 0.0


def _symmetrize(K: Array, largest: float, rounding: float = 1e-5) -> None:
    """Replace K by (K + Kᵀ)/2, in place; raise if it differs by more than float32 rounding."""
    for rows, columns in square_tiles(len(K)):
        upper, lower = K[rows, columns], K[columns, rows].T
        if np.abs(upper - lower).max(initial=0.0) > rounding * largest:
            raise ValueError("the kernel matrix is not symmetric; pass a symmetric kernel")
        mean = (upper + lower) / 2
        K[rows, columns], K[columns, rows] = mean, mean.T


def check_gram_memory(n: int, n_matrices: float = 4.5, remedy: str = FEWER) -> None:
    """Plan `n_matrices` n × n matrices, which the decomposition needs."""
    plan_matrix((n, n), 8 * n_matrices, f"the eigenproblem of all pairs of {n} points", remedy)


def _centered_product(F: Matrix) -> Array:
    """Return the smaller of FᵀHF and HFFᵀH, with H the centering matrix; F stays sparse."""
    if F.shape[1] <= F.shape[0]:
        mean = _column_means(F)
        return np.asarray((F.T @ F).toarray() - F.shape[0] * np.outer(mean, mean))
    K = (F @ F.T).toarray()
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())


def _column_means(F: Matrix) -> Array:
    return np.asarray(F.mean(axis=0)).ravel()
