"""What all spectral estimators share: read, pose, solve, lay out, extend, invert."""

from abc import abstractmethod
from typing import Any

import numpy as np

from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input
from manifoldry.eigen import ComponentSolver, Spectra
from manifoldry.eigen.spectrum import RANK_TOLERANCE
from manifoldry.eigen.standard import SpectrumEnd
from manifoldry.exceptions import DegenerateSpectrumWarning, RankWarning
from manifoldry.spectral.posed import Posed
from manifoldry.util.checks import as_generator
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.warn import warn


class SpectralEmbedder(Embedder):
    """Base of the estimators whose coordinates are eigenvectors.

    A subclass says in ``_pose`` what its data are posed as; everything else is here.
    """

    eigen_solver: Any
    random_state: Any
    n_components_: int

    needs_dimension = False
    """Whether the problem itself, not only its solution, depends on the number of coordinates."""

    def _fit(self, X: Any) -> None:
        posed = self._posed_for(X)
        solver = ComponentSolver("auto" if self.eigen_solver is None else self.eigen_solver)
        # Start vectors must not matter, so without a seed every fit takes the same ones.
        rng = as_generator(self.random_state, unset=0)
        self.adopt(posed, solver.solve(posed.problems, self.n_components_, rng))

    def pose(self, X: Any) -> Posed:
        """Read `X` and state the method's eigenproblem for it.

        For those who solve it in their own way, as :class:`~manifoldry.NonRedundant` does, and
        hand the solution to :meth:`adopt`; ``fit`` is both, with an ordinary solver between them.
        What an earlier fit learned is forgotten, unless this fails.

        Examples
        --------
        >>> import numpy as np
        >>> from manifoldry import LaplacianEigenmaps
        >>> from manifoldry.datasets import make_swiss_roll
        >>> from manifoldry.eigen import ComponentSolver
        >>> X = make_swiss_roll(200, random_state=0).X
        >>> model = LaplacianEigenmaps()
        >>> posed = model.pose(X)
        >>> model.adopt(posed, ComponentSolver().solve(posed.problems, 2, np.random.default_rng(0)))
        >>> model.transform(X[:3] + 0.01).shape
        (3, 2)
        """
        with self._learning():
            return self._posed_for(X)

    def _posed_for(self, X: Any) -> Posed:
        data = self._read(X)
        self.n_components_ = self._resolve_components(data)
        return self._pose(data)

    @abstractmethod
    def _pose(self, data: Input) -> Posed:
        """State the eigenproblem, and what follows from its solution."""

    def adopt(self, posed: Posed, spectra: Spectra) -> None:
        """Make the solution of a posed problem the fitted model.

        Parameters
        ----------
        posed : Posed
            What :meth:`pose` returned, or another reading of it.
        spectra : Spectra
            Eigenpairs of its problems, or what stands for them.
        """
        self._warn_of(posed, spectra)
        store_spectrum(self, posed, spectra)
        self.computed_eigenvalues_ = spectra.largest.computed * posed.unit**2
        self.loss_ = posed.loss(spectra)
        self.dimension_hint_ = eigengap(self.computed_eigenvalues_, posed.problems[0].end)
        self._adopt(posed, spectra)

    def equivalent_kernel(self, X: Any) -> Matrix:
        """The kernel whose leading eigenvectors this method computes, from `X` to training points.

        The kernel is made from the data, and any kernel method can use it. Of the training data it
        is a symmetric matrix, and kernel PCA of it gives the map up to the length of coordinates,
        with these exceptions. Laplacian eigenmaps and diffusion maps leave out its first
        eigenvector, √degree, and divide the others by it (``normalization="sym"`` does not divide,
        spectral clustering leaves none out); kernel PCA, which takes out the constant instead,
        comes near but does not agree. LTSA and Hessian LLE mix the eigenvectors to fit lengths.
        Components of a map have kernels apart.

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
        rows = self._read_new(X)
        with threads_allowed(getattr(self, "n_jobs", None)):
            return self.extension_.equivalent_kernel(rows, self._identical(rows))

    def _warn_of(self, posed: Posed, spectra: Spectra) -> None:
        """Say so where coordinates are empty or arbitrary."""
        k, spectrum, n = self.n_components_, spectra.largest, len(posed.components[0])
        posed.check_connected()
        if spectrum.k < k:
            warn(
                f"the largest component has {n} points and so {n - 1} coordinates; the others of "
                f"n_components={k} are zero. Raise n_neighbors to connect the components",
                RankWarning,
            )
            return
        rank = int(spectrum.significant.sum())
        if posed.problems[0].is_gram and rank < k:
            remedy = f". Pass n_components={rank} or fewer" if rank else ": all points coincide"
            warn(
                f"the data have {rank} directions of positive eigenvalue; the other {k - rank} of "
                f"n_components={k} coordinates are zero{remedy}",
                RankWarning,
            )
        elif spectrum.splits_cluster:
            warn(
                f"eigenvalue {spectrum.values[-1]:.6g} is repeated beyond the last of "
                f"{self._counted_by}={k} coordinates: any rotation among its eigenvectors is as "
                "good as this one. One more or one fewer may avoid that",
                DegenerateSpectrumWarning,
            )


def store_spectrum(model: Any, posed: Posed, spectra: Spectra) -> None:
    """Keep on a model what is known of its eigenpairs, those of the largest component."""
    largest, square = spectra.padded[0], posed.unit**2
    model.eigenvalues_ = largest.values * square
    model.residuals_ = largest.residuals * square
    model.gaps_ = largest.gaps * square
    model.solver_ = spectra.largest.summary()


def eigengap(values: Array, end: str) -> int:
    """Number of coordinates before the largest jump in the ratio of successive eigenvalues.

    A hint, not a verdict: it sees only the eigenvalues that were computed.

    Examples
    --------
    >>> import numpy as np
    >>> eigengap(np.array([10.0, 8.0, 0.1, 0.05]), "largest")
    2
    """
    values, falling = values[np.isfinite(values)], SpectrumEnd(end) is SpectrumEnd.LARGEST
    values = values if falling else values[::-1]
    largest = np.abs(values).max(initial=0.0)
    clipped = np.maximum(values, RANK_TOLERANCE * largest if largest > 0 else 1.0)
    ratios = clipped[:-1] / clipped[1:]
    if len(ratios) == 0:
        return 1
    best = int(np.argmax(ratios))
    return best + 1 if falling else len(values) - best - 1
