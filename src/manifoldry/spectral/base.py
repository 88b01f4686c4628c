"""What all spectral estimators share: pose a problem, solve it, map points both ways."""

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.embedder import Embedder, float_dtype
from manifoldry.eigen import Gram, SpectralProblem, Spectrum, resolve_solver
from manifoldry.eigen.spectrum import RANK_TOLERANCE
from manifoldry.exceptions import DegenerateSpectrumWarning, RankWarning
from manifoldry.extension.base import Extension, KernelExtension
from manifoldry.util.checks import as_generator
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_memory
from manifoldry.util.warn import warn

# Dense problems give a few more eigenvalues for next to nothing; they show where the gap is.
_CHEAP_ORDER, _EXTRA_PAIRS = 2000, 8
_BASIS = 40  # vectors that iterative solvers keep at least


class SpectralEmbedder(Embedder):
    """Base of the estimators whose coordinates are eigenvectors.

    A subclass poses a :class:`~manifoldry.eigen.SpectralProblem` in ``_pose`` and says in
    ``_extend`` how new points find their place; everything else is here.
    """

    eigen_solver: Any
    random_state: Any

    # Length in which the problem is posed; eigenvalues of Gram matrices carry its square.
    _unit: float = 1.0

    def _fit(self, X: Any) -> None:
        data = self._read(X, reset=True)
        self._check_components(data)
        problem = self._pose(data)
        spectrum = self._solve(problem)
        self._store(data, problem, spectrum)
        self._extension = self._extend(data, problem, spectrum)

    def equivalent_kernel(self, X: Any) -> Matrix:
        """The kernel whose leading eigenvectors this method computes, from `X` to training points.

        The kernel is made from the data, and any kernel method can use it. Of the training data it
        is a symmetric matrix, and kernel PCA of it gives the map up to the length of coordinates,
        with these exceptions. Laplacian eigenmaps and diffusion maps leave out its first
        eigenvector, √degree, and divide the others by it (``normalization="sym"`` does not divide,
        spectral clustering leaves none out); kernel PCA, which takes out the constant instead,
        comes near but does not agree. LTSA and Hessian LLE mix the eigenvectors to fit lengths.
        Pieces of a map have kernels apart.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Data, new or not; where the fit was on precomputed values, those between them and
            training points. A row that occurs twice in the training data stands for its first
            occurrence.

        Returns
        -------
        array or sparse array of shape (n_samples, n_train), in double precision
            One column per training point; for Isomap, per landmark.

        Examples
        --------
        >>> import numpy as np
        >>> from manifoldry import Isomap, KernelPCA
        >>> from manifoldry.datasets import make_swiss_roll
        >>> X = make_swiss_roll(400, random_state=0).X
        >>> model = Isomap(n_neighbors=10).fit(X)
        >>> K = model.equivalent_kernel(X)
        >>> Y = KernelPCA(kernel="precomputed").fit_transform(K)
        >>> bool(np.allclose(np.abs(Y), np.abs(model.embedding_)))
        True
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        with threads_allowed(getattr(self, "n_jobs", None)):
            return self._kernel_rows(data) * self._unit**2

    def _kernel_rows(self, data: Any) -> Matrix:
        """Values of the equivalent kernel, in units of the problem."""
        if isinstance(self._extension, KernelExtension):
            return self._extension.matrix(data)
        raise ValueError(
            f"the coordinates of this {type(self).__name__} were found one after another, under "
            "constraints of their own; they are eigenvectors of no common kernel"
        )

    @abstractmethod
    def _pose(self, data: Any) -> SpectralProblem:
        """State the eigenproblem; keep on `self` what the extension will need."""

    @abstractmethod
    def _extend(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Extension:
        """Say how new points get coordinates."""

    @abstractmethod
    def _loss(self, spectrum: Spectrum) -> float:
        """The objective of the method at the solution."""

    def _solve(self, problem: SpectralProblem) -> Spectrum:
        spectrum = self._pairs(problem, self.n_components_)
        self._warn_if_degenerate(spectrum, problem)
        return spectrum

    def _pairs(self, problem: SpectralProblem, k: int) -> Spectrum:
        """Solve for k pairs, and where that is cheap for a few more eigenvalues."""
        excluded = sum(C.shape[1] for C in (problem.deflate, problem.constraint) if C is not None)
        operator = problem.operator
        order = operator.small_side if isinstance(operator, Gram) else problem.n
        name = "auto" if self.eigen_solver is None else self.eigen_solver
        solver = resolve_solver(name, end=problem.end)
        extra = _EXTRA_PAIRS if solver.extra_is_cheap and order <= _CHEAP_ORDER else 0
        asked = min(k + extra, problem.n - excluded)
        needed = 8.0 * problem.n * max(_BASIS, 3 * asked)
        plan_memory(needed, f"finding {k} coordinates of {problem.n} points", "ask for fewer")
        # Start vectors must not matter, so without a seed every fit takes the same ones.
        spectrum = solver.solve(problem, asked, as_generator(self.random_state, unset=0))
        computed = np.append(spectrum.values, spectrum.next_value)
        self.computed_eigenvalues_ = computed[np.isfinite(computed)]
        return spectrum.first(k)

    def _warn_if_degenerate(self, spectrum: Spectrum, problem: SpectralProblem) -> None:
        if problem.scale == "sqrt_eigenvalue":
            rank = int(spectrum.significant.sum())
            if rank < self.n_components_:
                warn(
                    f"the data have {rank} directions of positive eigenvalue; the other "
                    f"{self.n_components_ - rank} of n_components={self.n_components_} "
                    f"coordinates are zero"
                    + (f". Pass n_components={rank} or fewer" if rank else ": all points coincide"),
                    RankWarning,
                )
                return
        if spectrum.splits_cluster:
            warn(
                f"eigenvalue {spectrum.values[-1]:.6g} is repeated beyond the last of "
                f"{self._counted_by}={self.n_components_} coordinates: any rotation among its "
                "eigenvectors is as good as this one. One more or one fewer may avoid that",
                DegenerateSpectrumWarning,
            )

    def _store(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> None:
        embedding = self._coordinates(data, problem, spectrum)
        self.embedding_ = embedding.astype(float_dtype(data), copy=False)
        self.eigenvalues_ = spectrum.values * self._unit**2
        self.computed_eigenvalues_ *= self._unit**2
        self.residuals_ = spectrum.residuals * self._unit**2
        self.gaps_ = spectrum.gaps * self._unit**2
        self.solver_ = spectrum.summary()
        self.loss_ = self._loss(spectrum)
        self.dimension_hint_ = eigengap(self.computed_eigenvalues_, problem.end)

    def _coordinates(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        Y = problem.coordinates(spectrum) * self._unit
        if problem.scale == "sqrt_eigenvalue":
            Y[:, ~spectrum.significant] = 0.0  # the root of a rounding error is no direction
        return Y


def eigengap(values: Array, end: str) -> int:
    """Number of coordinates before the largest jump in the ratio of successive eigenvalues.

    A hint, not a verdict: it sees only the eigenvalues that were computed.

    Examples
    --------
    >>> import numpy as np
    >>> eigengap(np.array([10.0, 8.0, 0.1, 0.05]), "largest")
    2
    """
    values = values[np.isfinite(values)]
    if end == "smallest":
        values = values[::-1]
    largest = np.abs(values).max(initial=0.0)
    clipped = np.maximum(values, RANK_TOLERANCE * largest if largest > 0 else 1.0)
    ratios = clipped[:-1] / clipped[1:]
    if len(ratios) == 0:
        return 1
    best = int(np.argmax(ratios))
    return best + 1 if end == "largest" else len(values) - best - 1
