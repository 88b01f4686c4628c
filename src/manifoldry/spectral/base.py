"""Base class of the spectral estimators: state the eigenproblem, solve it, set the results."""

from abc import abstractmethod
from typing import Any

import numpy as np

from manifoldry.base.embedder import Embedder
from manifoldry.base.input import Input
from manifoldry.base.resources import on_its_device
from manifoldry.eigen import ComponentSolver, Spectra
from manifoldry.eigen.spectrum import RANK_TOLERANCE
from manifoldry.eigen.standard import SpectrumEnd
from manifoldry.exceptions import DegenerateSpectrumWarning, RankWarning, warn
from manifoldry.spectral.posed import Posed
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, Matrix


class SpectralEmbedder(Embedder):
    """Base class of the estimators whose coordinates are eigenvectors.

    A fit has three steps. :meth:`pose` builds the eigenproblem of the method for given data, a
    :class:`~manifoldry.spectral.Posed`; an eigensolver solves it; :meth:`adopt` sets the fitted
    attributes from the solution. A subclass defines ``_pose``, which does the first step.

    See Also
    --------
    Posed : what ``_pose`` returns.
    manifoldry.iterative.IterativeEmbedder : the counterpart for iterative methods.
    manifoldry.NonRedundant : works with any subclass.

    Examples
    --------
    The example of :class:`PosedOnGraph` defines a method. All spectral estimators have these
    attributes:

    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.spectral import SpectralEmbedder
    >>> model = LaplacianEigenmaps().fit(np.random.default_rng(0).normal(size=(60, 3)))
    >>> isinstance(model, SpectralEmbedder), bool((model.residuals_ < model.gaps_).all())
    (True, True)
    """

    n_components_: int

    # Parameters of the solver, with the values that an estimator without them uses.
    eigen_solver: Any = "auto"
    random_state: Any = None

    needs_dimension = False
    """Whether the eigenproblem depends on the number of coordinates."""

    def _fit(self, X: Any) -> None:
        posed = self._pose_input(X)
        chosen = "auto" if self.eigen_solver is None else self.eigen_solver
        solver = ComponentSolver(chosen, counted_by=self._dimension_parameter)
        # Without a seed every fit uses the same start vectors.
        rng = as_generator(self.random_state, unset=0)
        self.adopt(posed, solver.solve(posed.problems, self.n_components_, rng))

    def pose(self, X: Any) -> Posed:
        """Return the eigenproblem of this method for `X`.

        Use it to solve the problem in another way than ``fit``, as
        :class:`~manifoldry.NonRedundant` does, and pass the solution to :meth:`adopt`. Attributes
        of an earlier fit are deleted, unless this fails.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
            The data, as for ``fit``.

        Returns
        -------
        Posed
            The eigenproblem, and how its solution gives the embedding.

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
        with self._replacing_fit():
            return self._pose_input(X)

    def _pose_input(self, X: Any) -> Posed:
        # An Input comes from an estimator that delegates to this one and has read the data.
        data = X if isinstance(X, Input) else self._read(X)
        self.n_components_ = self._resolve_n_components(data)
        posed = self._pose(data)
        if not isinstance(posed, Posed):
            raise TypeError(
                f"{type(self).__name__}._pose must return a manifoldry.spectral.Posed, not a "
                f"{type(posed).__name__}"
            )
        return posed

    @abstractmethod
    def _pose(self, data: Input) -> Posed:
        """Return the eigenproblem, and how its solution gives the embedding."""

    def adopt(self, posed: Posed, spectra: Spectra) -> None:
        """Set the fitted attributes from the solution of a posed problem.

        Parameters
        ----------
        posed : Posed
            The return value of :meth:`pose`, or another Posed for the same data.
        spectra : Spectra
            Eigenpairs of ``posed.problems``.
        """
        self._warn_about(posed, spectra)
        store_spectrum(self, posed, spectra)
        self.computed_eigenvalues_ = spectra.largest.computed * posed.unit**2
        self.loss_ = posed.loss(spectra)
        self.dimension_hint_ = eigengap(self.computed_eigenvalues_, posed.problems[0].end)
        self._adopt(posed, spectra)

    @on_its_device
    def equivalent_kernel(self, X: Any) -> Matrix:
        """Return the kernel matrix between `X` and the training points.

        The coordinates of a spectral method are eigenvectors of this kernel, which depends on the
        training data. It can be used in any kernel method. Between training points it is a
        symmetric matrix, and kernel PCA of it gives the embedding up to the scale of each
        coordinate, with these exceptions: Laplacian eigenmaps and diffusion maps omit the first
        eigenvector, √degree, and divide the others by it (with ``normalization="sym"`` they do not
        divide; spectral clustering does not omit it), whereas kernel PCA removes the constant
        vector, so that its result is close but not equal; LTSA and Hessian LLE with
        ``metric_fit=True`` apply a linear map to the eigenvectors. The kernel between points of
        different connected components is zero.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Training or new data; if the estimator was fitted on precomputed values, those between
            `X` (rows) and training points (columns). A row that occurs several times in the
            training data is treated as its first occurrence.

        Returns
        -------
        array or sparse array of shape (n_samples, n_train), in double precision
            One column per training point; for Isomap, one per landmark.

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
        return self.extension_.equivalent_kernel(rows, self._identical_training_rows(rows))

    def _warn_about(self, posed: Posed, spectra: Spectra) -> None:
        """Warn if coordinates are zero or not unique."""
        k, spectrum, n = self.n_components_, spectra.largest, len(posed.components[0])
        posed.check_connected()
        if spectrum.k < k:
            warn(
                f"the largest connected component has {n} points, so only {n - 1} of "
                f"n_components={k} coordinates are nonzero. Raise n_neighbors to connect the "
                "components",
                RankWarning,
            )
            return
        rank = int(spectrum.significant.sum())
        if posed.problems[0].is_gram and rank < k:
            remedy = f". Pass n_components={rank} or fewer" if rank else ": all points coincide"
            warn(
                f"there are {rank} positive eigenvalues, so {k - rank} of n_components={k} "
                f"coordinates are zero{remedy}",
                RankWarning,
            )
        elif spectrum.splits_cluster:
            warn(
                f"eigenvalue {spectrum.values[-1]:.6g} is repeated beyond the last of "
                f"{self._dimension_parameter}={k} coordinates, so those of this eigenvalue are an "
                "arbitrary choice within its eigenspace. One more or one fewer may avoid that",
                DegenerateSpectrumWarning,
            )


def store_spectrum(model: Any, posed: Posed, spectra: Spectra) -> None:
    """Set the attributes that describe the eigenpairs of the largest connected component."""
    largest, square = spectra.padded[0], posed.unit**2
    model.eigenvalues_ = largest.values * square
    model.residuals_ = largest.residuals * square
    model.gaps_ = largest.gaps * square
    if spectra.largest.splits_cluster:
        model.gaps_[spectra.largest.clusters[-1]] = 0.0  # an arbitrary choice in an eigenspace
    model.solver_ = spectra.largest.summary()


def eigengap(values: Array, end: str) -> int:
    """Return the number of eigenvalues before the largest ratio of successive eigenvalues.

    Only the computed eigenvalues are considered.

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
