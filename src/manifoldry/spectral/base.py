"""What all spectral estimators share: pose a problem, solve it, map points both ways."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from manifoldry._checks import as_generator, check_count
from manifoldry._rows import RowLookup
from manifoldry._score import ReconstructionScoreMixin
from manifoldry._threads import threads_allowed
from manifoldry._typing import Array, Matrix
from manifoldry._validation import check_data, owned, plan_memory
from manifoldry._warn import warn
from manifoldry.eigen import Gram, SpectralProblem, Spectrum, resolve_solver
from manifoldry.exceptions import DegenerateSpectrumWarning, RankWarning
from manifoldry.extension.base import Extension, Inverse, KernelExtension
from manifoldry.extension.kernels import RANK_TOLERANCE
from manifoldry.extension.regression import MapSpacing
from manifoldry.neighbors.graph import NeighborGraph

# Dense problems give a few more eigenvalues for next to nothing; they show where the gap is.
_CHEAP_ORDER, _EXTRA_PAIRS = 2000, 8
_BASIS = 40  # vectors that iterative solvers keep at least
# Start vectors must not matter, so without a seed every fit takes the same ones.
_FIXED_SEED = 0
_DEFAULT_COMPONENTS = 2


class SpectralEmbedder(
    ReconstructionScoreMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Base of the estimators whose coordinates are eigenvectors.

    A subclass poses a :class:`~manifoldry.eigen.SpectralProblem` in ``_pose`` and says in
    ``_extend`` how new points find their place; everything else is here.
    """

    n_components: int | None
    eigen_solver: Any
    random_state: Any

    # The parameter that says how many coordinates there are.
    _counted_by = "n_components"
    # Attributes that the last fit set; scikit-learn keeps others on an estimator for itself.
    _learned: frozenset[str] = frozenset()
    # Length in which the problem is posed; eigenvalues of Gram matrices carry its square.
    _unit: float = 1.0
    # Finds training rows among new ones; None where the data themselves were never seen.
    _lookup: RowLookup | None = None
    # From the map to the data; None where the data themselves were never seen.
    _inverse: Inverse | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data, or what the estimator's ``metric`` says is precomputed.
        y : ignored
            Present for scikit-learn's sake.
        """
        self._forget()
        before = set(vars(self))
        try:
            with threads_allowed(getattr(self, "n_jobs", None)):
                self._fit(X)
        except BaseException:
            self._forget_all_but(before)  # half a model is none, and may hold large matrices
            raise
        self._learned = frozenset(vars(self)).difference(before)
        return self

    def _fit(self, X: Any) -> None:
        data = self._read(X, reset=True)
        self._check_components(data)
        problem = self._pose(data)
        spectrum = self._solve(problem)
        self._store(data, problem, spectrum)
        self._extension = self._extend(data, problem, spectrum)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it, (n_samples, n_components)."""
        return self.fit(X).embedding_.copy()

    def transform(self, X: Any) -> Array:
        """Place new points on the map, each by itself; training rows return to their place.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data; where the fit was on precomputed values, those between new and training
            points.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        with threads_allowed(getattr(self, "n_jobs", None)):
            return self._place(data).astype(_float_dtype(data), copy=False)

    def _place(self, data: Matrix) -> Array:
        placed = np.empty((data.shape[0], self._n_features_out))
        known = self._identical(data)
        placed[known >= 0] = self.embedding_[known[known >= 0]]
        new = np.flatnonzero(known < 0)
        if len(new):
            placed[new] = self._extension.transform(data[new])
        return placed

    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Turn map positions into data.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Positions on the map.
        return_distance : bool, default=False
            Also return how far each position is from the embedded data, in units of the map's
            own spacing: about 1 among the data; beyond 2 or 3 the result extrapolates.

        Returns
        -------
        array of shape (n_samples, n_features), and the distances if asked for
        """
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} columns; the map has n_components={self._n_features_out}"
            )
        data = self._invert(Z.astype(np.float64)).astype(Z.dtype, copy=False)
        if not return_distance:
            return data
        return data, MapSpacing(self.embedding_[self._on_map]).remoteness(Z)

    def extension_error(self, X: Any) -> float:
        """Largest error of the bare extension formula at the training rows, relative to the map.

        ``transform`` returns training rows to their place by looking them up. This figure tells
        how well the formula that places all other points would have done it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training data, as they were passed to ``fit``.
        """
        check_is_fitted(self)
        data = self._read(X, reset=False)
        if data.shape[0] != len(self.embedding_):
            raise ValueError(
                f"X has {data.shape[0]} rows; pass all {len(self.embedding_)} training rows"
            )
        rows = self._on_map
        error = np.abs(self._extension.transform(data)[rows] - self.embedding_[rows]).max()
        return float(error / (np.abs(self.embedding_[rows]).max() or 1.0))

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

    def redundancy(self) -> Array:
        """How much of each coordinate is new beside those before it: 0 nothing, 1 all of it.

        See :func:`manifoldry.metrics.redundancy`; where some are near 0,
        :class:`~manifoldry.NonRedundant` around this estimator says more in as many coordinates.
        """
        from manifoldry.metrics import redundancy

        check_is_fitted(self)
        return redundancy(self.embedding_[self._on_map])

    @abstractmethod
    def _pose(self, data: Any) -> SpectralProblem:
        """State the eigenproblem; keep on `self` what the extension will need."""

    @abstractmethod
    def _extend(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Extension:
        """Say how new points get coordinates."""

    @abstractmethod
    def _loss(self, spectrum: Spectrum) -> float:
        """The objective of the method at the solution."""

    def _read(self, X: Any, reset: bool) -> Matrix:
        """Validate data; on fitting, keep a copy that the caller cannot change."""
        if isinstance(X, NeighborGraph):
            raise TypeError(f"{type(self).__name__} takes data, not a NeighborGraph")
        data = check_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1)
        return owned(data, X) if reset else data

    def _forget(self) -> None:
        """Drop what an earlier fit left: with other parameters not all of it is replaced."""
        self._forget_all_but(set(vars(self)).difference(self._learned, {"_learned"}))

    def _forget_all_but(self, kept: set[str]) -> None:
        for name in set(vars(self)).difference(kept):
            delattr(self, name)

    def _largest_components(self, data: Any) -> tuple[int, str]:
        """The largest n_components the data allow, and what sets it."""
        return data.shape[0] - 1, "n_samples - 1"

    def _check_components(self, data: Any) -> None:
        bound, limit = self._largest_components(data)
        name = self._counted_by
        if getattr(self, name) is None:
            self.n_components_ = min(_DEFAULT_COMPONENTS, bound)
            return
        value = self.n_components_ = check_count(name, getattr(self, name))
        if value > bound:
            raise ValueError(
                f"{name}={value} must be at most {limit}={bound}; pass {name}={bound} or fewer"
            )

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
        spectrum = solver.solve(problem, asked, as_generator(self.random_state, unset=_FIXED_SEED))
        computed = np.append(spectrum.values, spectrum.next_value)
        self.computed_eigenvalues_ = computed[np.isfinite(computed)]
        return spectrum.first(k)

    def _warn_if_degenerate(self, spectrum: Spectrum, problem: SpectralProblem) -> None:
        if problem.scale == "sqrt_eigenvalue":
            rank = int(_significant(spectrum).sum())
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
        self.embedding_ = embedding.astype(_float_dtype(data), copy=False)
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
            Y[:, ~_significant(spectrum)] = 0.0  # the root of a rounding error is no direction
        return Y

    def _identical(self, data: Matrix) -> Any:
        """Training row identical to each row, or -1; without stored data nobody is known."""
        if self._lookup is None:
            return np.full(data.shape[0], -1)
        return self._lookup.find(data)

    def _invert(self, Z: Array) -> Array:
        if self._inverse is None:
            raise ValueError(
                f"this {type(self).__name__} was fitted on precomputed values, so it never saw "
                "the data that inverse_transform would have to return; fit it on the data"
            )
        return self._inverse.predict(Z)

    @property
    def _on_map(self) -> Any:
        """Rows that are on the map: a policy for disconnected graphs may have left some out."""
        return np.flatnonzero(np.isfinite(self.embedding_).all(axis=1))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that fails half-way may leave other attributes behind.
        return hasattr(self, "_extension")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _float_dtype(data: Any) -> Any:
    return np.float32 if getattr(data, "dtype", None) == np.float32 else np.float64


def _significant(spectrum: Spectrum) -> Any:
    """Which eigenvalues are positive beyond rounding, so that they have a square root."""
    return spectrum.values > RANK_TOLERANCE * np.abs(spectrum.values).max()


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
