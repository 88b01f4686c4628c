"""Non-redundant coordinates for any spectral estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.docs import shared_docs
from manifoldry.base.resources import on_its_device
from manifoldry.base.score import score
from manifoldry.base.walk import walk
from manifoldry.eigen import EigenSolver, resolve_solver
from manifoldry.exceptions import RankWarning, warn
from manifoldry.nonredundant.criteria import Criterion, GradientCriterion, PredictionCriterion
from manifoldry.nonredundant.posed import PosedNonRedundant
from manifoldry.nonredundant.sequence import (
    CoordinateSequence,
    SequentialSolver,
    without_constant,
)
from manifoldry.nonredundant.smoother import KernelSmoother, resolve_smoother
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.spectral.posed import Posed
from manifoldry.util.checks import as_generator, check_count, check_option, check_positive
from manifoldry.util.saved import deep_copied, restore_state, shallow_copied, state_with_version
from manifoldry.util.typing import Array, IntArray, RandomState

_CRITERIA = ("gradient", "prediction")


class NonRedundant(
    MetaEstimatorMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Spectral embedding in which no coordinate is a function of the earlier ones.

    On elongated data several coordinates of a spectral method are functions of the same direction:
    on a strip 3.5 times longer than wide, the first three Laplacian eigenmaps are all functions of
    the length, and the width appears only later. This meta-estimator computes the coordinates of a
    spectral estimator one after another. The first is that of the estimator. Each next one
    minimizes the objective of the estimator (or maximizes it, where the estimator does) subject to
    not being predictable from the earlier ones (Blau & Michaeli 2017).

    Use it if :func:`manifoldry.metrics.unpredictability` of an embedding has values near 0. With
    the default criterion, embeddings without redundant coordinates, such as Isomap of a sheet, do
    not change.

    Parameters
    ----------
    estimator : spectral estimator, default=None
        The estimator whose eigenproblem is solved: any spectral embedding, ``MVU()``,
        ``SpectralClustering()``, or another estimator with `n_components` and the methods ``pose``
        and ``adopt`` of :class:`~manifoldry.spectral.SpectralEmbedder`; not
        ``ConformalEigenmaps``, which computes all coordinates jointly. None means
        ``LaplacianEigenmaps()``; pass that object to set its parameters in a grid search. A clone
        is fitted, with the `n_components` given here and, for LTSA and Hessian LLE, with
        ``metric_fit=False``, because that fit combines the coordinates linearly.
        ``SpectralClustering`` is fitted with ``normalize_rows=False``, because unit rows combine
        the coordinates too, and without its constant eigenvector; k-means on the non-redundant
        eigenvectors gives `labels_` and ``predict``. Its `n_jobs` and `device` are used for all
        computations.
    n_components : int or "auto", default=None
        Number of coordinates; the `n_components` of `estimator` is not used. None means 2, or the
        maximum that the data allow if that is smaller; for ``SpectralClustering`` it means
        ``n_clusters - 1``, the number of its eigenvectors that are not constant. ``"auto"`` stops
        before the first coordinate that is not informative, and after ten at most; it is not
        available for LTSA and Hessian LLE, whose eigenproblem depends on the number. A coordinate
        is not informative if the earlier ones predict it (relative error below 0.5), if it varies
        strongly between neighbors, as noise does, if more than a tenth of its energy is along
        earlier gradients, or, for methods that maximize the variance, if its variance is below
        0.005 of that of the first one. If a number is given, a warning lists the coordinates that
        are not informative.
    criterion : {"gradient", "prediction"}, default="gradient"
        Constraint on each coordinate.

        - ``"gradient"``: its gradient is nearly orthogonal to those of the earlier coordinates
          (the part along them is penalized), so that each coordinate varies along a new direction
          of the manifold. In Laplacian eigenmaps and diffusion maps, the next eigenvector is taken
          unchanged if it is unpredictable and its gradient is nearly orthogonal already, or if it
          is unpredictable and much smoother, like the sine after the cosine on a circle. In other
          methods it is taken unchanged if it is unpredictable, and if the constrained coordinate
          still has an error below 0.95, ``"prediction"`` with ``bandwidth="auto"`` is also tried.
          In Laplacian eigenmaps of more than 5000 points the penalized energy of a coordinate is
          within 1 % of the least possible one, by an estimate from the residuals that is too high
          (on digits at most 0.05 % was measured), if ``eigen_solver="auto"``. That holds for each
          weight of the penalty; from about the fourth coordinate on another ``random_state`` may
          lead to another weight, and `residuals_` may exceed `gaps_`. Pass
          ``eigen_solver=manifoldry.eigen.Auto()`` for accurate eigenvectors.
        - ``"prediction"``: a kernel smoother predicts zero for it from the earlier coordinates
          (Blau & Michaeli 2017). This separates clusters with fewer coordinates; use it to compute
          features for a classifier.
    bandwidth : float or "auto", default=0.3
        Only for ``criterion="prediction"``: standard deviation of the smoother's kernel relative to
        the root mean square of the coordinates, typically 0.1 to 0.6. ``"auto"`` takes the largest
        of 0.6, 0.45, 0.3, 0.2 and 0.15 whose coordinate the earlier ones do not predict (relative
        error at least 0.9), or else the one with the largest error.
    smoother : {"nadaraya_watson", "local_linear"} or KernelSmoother, default="nadaraya_watson"
        Only for ``criterion="prediction"``: local means or local linear fits. Pass a
        :class:`manifoldry.nonredundant.KernelSmoother` to set the accuracy (by default the n × n
        matrix up to 4000 points; beyond that one of low rank, from a sample of at least 4000
        points, that leaves out no eigenvalue above 0.03, or 0.045 if that takes more than 500
        columns; `fit` warns if that is not reached), or for the published smoother, with equal
        weights of all points or restricted to nearest neighbors.
    eigen_solver : str or EigenSolver, default=None
        Eigensolver; see :func:`manifoldry.eigen.resolve_solver`. None means that of `estimator`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of iterative eigensolvers. None means that of `estimator`.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates.
    embedding_ : array of shape (n_samples, n_components)
        Coordinates of the training points.
    eigenvalues_ : array of shape (n_components,)
        Rayleigh quotient of each coordinate in the eigenproblem of `estimator`, without penalties;
        for the first coordinate this is the eigenvalue.
    unpredictability_ : array of shape (n_components,)
        Leave-one-out error of predicting each coordinate from the earlier ones, divided by its
        standard deviation: near 0 if it is a function of them, near 1 if it is not (or is noise;
        `fit` warns of both). The first coordinate has 1.
    coordinate_descriptions_ : list of str
        How each coordinate was computed: the criterion with its weight or bandwidth, or "the next
        eigenvector".
    residuals_, gaps_ : arrays of shape (n_components,)
        Residual norm of each coordinate in its constrained eigenproblem, and the distance from its
        eigenvalue to the nearest other one of that problem.
    solver_ : str
        Which eigensolver was used, why, and how accurate it was.
    estimator_ : spectral estimator
        The fitted clone; its fitted attributes are also attributes of this object.

    See Also
    --------
    LaplacianEigenmaps, DiffusionMaps, Isomap, LLE, LTSA, MVU : methods that it can wrap.
    manifoldry.metrics.unpredictability : whether coordinates repeat each other.

    References
    ----------
    Y. Blau and T. Michaeli, "Non-redundant spectral dimensionality reduction", ECML PKDD 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps, NonRedundant
    >>> from manifoldry.datasets import make_strip
    >>> X, coordinates = make_strip(600, aspect=3.5, random_state=0)
    >>> plain = LaplacianEigenmaps().fit_transform(X)
    >>> new = NonRedundant(LaplacianEigenmaps()).fit_transform(X)
    >>> width = np.cos(np.pi * coordinates[:, 1])
    >>> bool(abs(np.corrcoef(plain[:, 1], width)[0, 1]) < 0.2)
    True
    >>> bool(abs(np.corrcoef(new[:, 1], width)[0, 1]) > 0.9)
    True
    """

    def __init__(
        self,
        estimator: SpectralEmbedder | None = None,
        n_components: int | str | None = None,
        *,
        criterion: str = "gradient",
        bandwidth: float | str = 0.3,
        smoother: str | KernelSmoother = "nadaraya_watson",
        eigen_solver: str | EigenSolver | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.criterion = criterion
        self.bandwidth = bandwidth
        self.smoother = smoother
        self.eigen_solver = eigen_solver
        self.random_state = random_state

    @on_its_device
    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`; if that fails, an earlier fit is left unchanged.

        Parameters
        ----------
        X : array, sparse matrix, frame or graph
            Input of the wrapped estimator.
        y : ignored
            Not used, present for API consistency.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        base = self._prepared()
        solver = self._solver(base)
        posed = base.pose(X)
        self._count_without_constant(base, posed)
        sequences = self._sequences(solver, base, posed)
        found = PosedNonRedundant(posed.data, posed, sequences)
        base.adopt(found, found.spectra(base.n_components_))
        self.estimator_ = base
        self.n_components_ = base.n_components_
        coordinates = sequences[0].coordinates if sequences[0] else ()
        missing = self.n_components_ - len(coordinates)  # if the component has too few points
        self.unpredictability_ = np.array([c.error for c in coordinates] + [0.0] * missing)
        self.coordinate_descriptions_ = [c.description for c in coordinates] + ["none"] * missing
        return self

    def _solver(self, base: Any) -> SequentialSolver:
        """The solver for the coordinates; invalid options raise before the data are processed."""
        eigen_solver = self.eigen_solver or getattr(base, "eigen_solver", None) or "auto"
        resolve_solver(eigen_solver)  # raises if there is no such solver
        return SequentialSolver(self._criterion(), eigen_solver)

    def _sequences(
        self, solver: SequentialSolver, base: Any, posed: Posed
    ) -> list[CoordinateSequence | None]:
        """Coordinates of every component; ``"auto"`` takes their number from the largest one."""
        rng = as_generator(getattr(base, "random_state", self.random_state), unset=0)
        largest, *others = map(without_constant, posed.problems)
        if self.n_components == "auto":
            needed = solver.solve_until_redundant(largest, self._max_auto, rng)
            base.n_components_ = len(needed.coordinates)
            first: CoordinateSequence | None = needed
        else:
            first = solver.solve(largest, base.n_components_, rng)
        _warn_if_redundant(solver, first)
        return [first, *(solver.solve(problem, base.n_components_, rng) for problem in others)]

    def _prepared(self) -> Any:
        """A clone of the estimator, without the metric fit, which would combine coordinates."""
        given = LaplacianEigenmaps() if self.estimator is None else self.estimator
        if not _can_be_posed(given):
            raise TypeError(
                f"estimator={given!r} must be a spectral embedding such as LaplacianEigenmaps(), "
                "LLE(), Isomap() or MVU(), or another with n_components, pose and adopt"
            )
        base = clone(given)
        if hasattr(base, "set_output"):
            base.set_output(transform="default")
        if "n_components" in base.get_params(deep=False):
            base.set_params(n_components=self._inner_components(base))
        if self.random_state is not None and "random_state" in base.get_params(deep=False):
            base.set_params(random_state=self.random_state)
        if getattr(base, "normalization", "rw") != "rw":
            raise ValueError(
                f"normalization={base.normalization!r} does not give functions on the data, which "
                "gradients and smoothers need; pass normalization='rw'"
            )
        for combining in {"metric_fit", "normalize_rows"} & set(base.get_params(deep=False)):
            base.set_params(**{combining: False})
        return base

    def _count_without_constant(self, base: Any, posed: Posed) -> None:
        """Set the number of coordinates of a clustering, which counts the constant eigenvector."""
        if "n_components" in base.get_params(deep=False) or self.n_components == "auto":
            return
        most = posed.data.n_samples - 1
        count = max(1, base.n_components_ - 1) if self.n_components is None else self.n_components
        if check_count("n_components", count) > most:
            raise ValueError(
                f"n_components={count} must be at most n_samples - 1={most}; "
                f"pass n_components={most} or fewer"
            )
        base.n_components_ = int(count)

    # Maximum number of coordinates with "auto".
    _max_auto = 10

    def _inner_components(self, base: Any) -> int | None:
        if not isinstance(self.n_components, str):
            return self.n_components  # checked by the estimator
        if self.n_components != "auto":
            raise TypeError(
                f"n_components={self.n_components!r} must be a whole number; "
                "pass n_components=1 or more, or 'auto'"
            )
        if getattr(base, "needs_dimension", False):
            raise ValueError(
                f"n_components='auto' is not available for {type(base).__name__}, whose problem "
                "depends on that number; pass an int"
            )
        return None

    def _criterion(self) -> Criterion:
        check_option("criterion", self.criterion, _CRITERIA)
        if isinstance(self.bandwidth, str):
            check_option("bandwidth", self.bandwidth, ("auto",))
        else:
            check_positive("bandwidth", self.bandwidth)
        smoother = resolve_smoother(self.smoother)
        if self.criterion == "gradient":
            return GradientCriterion()
        return PredictionCriterion(self.bandwidth, smoother)

    score = score
    __getstate__ = state_with_version
    __setstate__ = restore_state
    __copy__ = shallow_copied
    __deepcopy__ = deep_copied
    walk = walk

    @on_its_device
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data, as for :meth:`fit`.
        y : ignored
            Present for API consistency.

        Returns
        -------
        array of shape (n_samples, n_components)
            A copy of ``embedding_``.
        """
        return self.fit(X).embedding_.copy()

    @on_its_device
    @shared_docs
    def transform(self, X: Any, *, return_distance: bool = False) -> Array | tuple[Array, Array]:
        """Embed new points, each independently; training rows get their training coordinates.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data.
        {return_distance}

        Returns
        -------
        {coordinates}
        """
        check_is_fitted(self)
        return self.estimator_.transform(X, return_distance=return_distance)

    @on_its_device
    @shared_docs
    def novelty(self, X: Any) -> Array:
        """Return the distance of each row from the training data, relative to theirs.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows as for :meth:`transform`.

        Returns
        -------
        {distances}
        """
        check_is_fitted(self)
        return self.estimator_.novelty(X)

    @available_if(lambda self: hasattr(self.estimator, "predict"))
    @on_its_device
    def predict(self, X: Any) -> IntArray:
        """Return the cluster of each row of `X`; only if `estimator` clusters the points.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            New data, or training data.

        Returns
        -------
        array of shape (n_samples,)
            Numbers of the clusters, as in `labels_`.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(lambda self: hasattr(self.estimator, "fit_predict"))
    @on_its_device
    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Fit, and return the cluster of each row of `X`; only if `estimator` clusters them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        array of shape (n_samples,)
            Numbers of the clusters, equal to `labels_`.
        """
        return np.array(self.fit(X).labels_)

    @on_its_device
    @shared_docs
    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Compute data from coordinates by the inverse of the wrapped estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.
        {return_map_distance}

        Returns
        -------
        {restored_data}
        """
        check_is_fitted(self)
        return self.estimator_.inverse_transform(X, return_distance=return_distance)

    @on_its_device
    def unpredictability(self) -> Array:
        """Return for each coordinate the fraction that the preceding coordinates cannot predict.

        See :func:`manifoldry.metrics.unpredictability`.

        Returns
        -------
        array of shape (n_components,)
            The fractions, near 1 for coordinates that do not repeat each other.
        """
        check_is_fitted(self)
        return self.estimator_.unpredictability()

    @on_its_device
    def extension_error(self, X: Any) -> float:
        """Return the largest error of the out-of-sample formula on the training data `X`.

        It is relative to the largest absolute coordinate.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The training data, as passed to ``fit``.

        Returns
        -------
        float
            The largest deviation.
        """
        check_is_fitted(self)
        return self.estimator_.extension_error(X)

    def __getattr__(self, name: str) -> Any:
        """Fitted attributes of the wrapped estimator are available on the wrapper."""
        if name.endswith("_") and not name.startswith("_") and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        inner = dir(self.estimator_) if "estimator_" in vars(self) else []
        return sorted({*super().__dir__(), *(n for n in inner if n.endswith("_") and n[0] != "_")})

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or "landmark_model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = LaplacianEigenmaps() if self.estimator is None else self.estimator
        inner = get_tags(base)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags


def _can_be_posed(estimator: Any) -> bool:
    """Whether it is an estimator with `n_components` or `n_clusters`, `pose` and `adopt`."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return False
    counted = {"n_components", "n_clusters"} & set(estimator.get_params(deep=False))
    return bool(counted) and hasattr(estimator, "pose") and hasattr(estimator, "adopt")


def _warn_if_redundant(solver: SequentialSolver, sequence: CoordinateSequence | None) -> None:
    """Warn if coordinates are redundant or noise; see :meth:`SequentialSolver.fault`."""
    if sequence is None:
        return
    found = {i: solver.fault(sequence, i) for i in range(1, len(sequence.coordinates))}
    faults = {i: fault for i, fault in found.items() if fault is not None}
    if faults:
        numbers = ", ".join(map(str, faults))
        which = f"coordinate {numbers}" if len(faults) == 1 else f"coordinates {numbers}"
        first = min(faults)
        warn(
            f"{which} (counted from 0) {'is' if len(faults) == 1 else 'are'} redundant or noise: "
            f"coordinate {first} {faults[first]}; pass n_components={first} or 'auto' to stop "
            f"before {'it' if len(faults) == 1 else 'them'}",
            RankWarning,
        )
