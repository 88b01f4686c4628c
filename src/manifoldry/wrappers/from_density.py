"""Fit an embedding to samples of a density estimate instead of the data."""

from inspect import signature
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
from sklearn.utils.validation import check_is_fitted

from manifoldry.affinity.dense import median_rbf
from manifoldry.base.docs import shared_docs
from manifoldry.base.dominant_points import (
    takes_n_neighbors,
    unchecked_dominance,
    warn_if_dominated,
)
from manifoldry.base.resources import on_its_device
from manifoldry.base.score import score
from manifoldry.base.walk import walk
from manifoldry.density.held_out_width import WidthSearch, WidthTrial
from manifoldry.density.manifold_parzen import ManifoldParzen
from manifoldry.exceptions import NoveltyWarning, ignoring
from manifoldry.extension.regression import regression_inverse
from manifoldry.extension.relative_distance import DistanceOnMap, distance_by_estimator
from manifoldry.util.checks import (
    as_generator,
    check_count,
    check_nonnegative,
    check_option,
    check_positive,
)
from manifoldry.util.refit import replacing_fit
from manifoldry.util.saved import deep_copied, restore_state, shallow_copied, state_with_version
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import check_data, copy_if_shared, in_precision, read_array


class FromDensity(
    MetaEstimatorMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Fit an embedding to many samples of a smooth density estimate of the data.

    Spectral embeddings estimate eigenfunctions with the empirical distribution of the data. This
    estimator fits a smooth density first, draws many points from it, fits the embedding to those,
    and embeds the data by its `transform` (Bengio et al. 2004). Use it if data are scarce; errors
    of the density estimate also appear in the embedding.

    Parameters
    ----------
    estimator : embedding, default=None
        Any embedding of manifoldry, or another transformer that takes data; by default
        ``LaplacianEigenmaps()``. A clone is fitted. Its `n_jobs` and `device` are used for all
        computations.
    density : density estimator, default=None
        Any estimator with `fit` and `sample`, such as ``MixtureOfFactorAnalyzers`` or
        scikit-learn's KernelDensity and GaussianMixture; by default ``ManifoldParzen()``. A clone
        is fitted.
    n_draws : int, default=None
        Number of points to draw; by default ten for every row of the data.
    width : float or "auto", default="auto"
        Factor of the steps of the draws from the rows, for densities made of windows around the
        rows (``ManifoldParzen``), which are then drawn from equally often. 1 is the density
        itself, and with 0 the estimator is fitted to the rows. "auto" chooses among 0, 0.1, 0.3
        and 0.5 for ``KernelPCA`` with a Gaussian kernel, by the error with which as many
        eigenfunctions of that kernel reproduce it between held-out rows. It means 1 for every other
        estimator, such as the default one, ``PCA()`` or a kernel PCA inside another estimator, and
        for densities of other kinds: the nearest neighbors of draws close to a row would be other
        draws of the same row.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws, and of the density if it has no seed; ``None`` is a fixed seed.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Embedding of the data.
    estimator_ : embedding
        The clone fitted to the draws; ``estimator_.embedding_`` is their embedding.
    density_ : density estimator
        The fitted density.
    n_draws_ : int
        Number of points to which the estimator was fitted.
    width_ : float
        The width of the draws; 0 if the estimator was fitted to the rows themselves.
    width_trials_ : list of WidthTrial
        The widths that were compared and their losses; empty if none were.

    See Also
    --------
    ManifoldParzen, MixtureOfFactorAnalyzers : densities of the data.

    Notes
    -----
    It helps on some data only. The error with which ten coordinates of kernel PCA of 100 digits
    reproduce the kernel between held-out rows was 18 % worse with width 1. With "auto", which
    fitted the rows themselves in 26 of 30 splits, it was the same, and on two tables of medical
    measurements 2 and 10 % better (experiment E1.6 in ``papers/bengio2003-eigenfunctions``).
    Choosing a width takes about 20 eigenproblems of ten times the number of rows, at most 200 of
    which are used. Compare with the estimator alone.

    References
    ----------
    Y. Bengio, O. Delalleau, N. Le Roux, J.-F. Paiement, P. Vincent and M. Ouimet, "Learning
    eigenfunctions links spectral embedding and kernel PCA", Neural Computation 16 (2004).

    Examples
    --------
    >>> from manifoldry import KernelPCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry import FromDensity
    >>> X, _ = make_swiss_roll(100, random_state=0)
    >>> model = FromDensity(KernelPCA(2), n_draws=500, width=0.3).fit(X)
    >>> model.embedding_.shape, model.estimator_.embedding_.shape
    ((100, 2), (500, 2))
    """

    def __init__(
        self,
        estimator: Any = None,
        density: Any = None,
        n_draws: int | None = None,
        width: float | str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.density = density
        self.n_draws = n_draws
        self.width = width
        self.random_state = random_state

    # Rows of distributed data that are fitted: the embedding is fitted to ten times as many.
    _landmarks = 1000

    @on_its_device
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the density to `X`, the embedding to draws from it, and embed `X`.

        If this fails, the attributes of an earlier fit are kept.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The data.
        y : ignored
            For compatibility with scikit-learn.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        with replacing_fit(self):
            self._fit(X)
        return self

    def _fit(self, X: Any) -> None:
        estimator, density = self._embedding(), self._density()
        width = self._check_width(density)
        data = check_data(self, X, reset=True, ensure_min_samples=2, accept_sparse=False)
        data = copy_if_shared(data, X)
        rng = as_generator(self.random_state, unset=0)
        n_draws, seed = self._count(len(data)), int(rng.integers(2**31 - 1))
        if density.get_params().get("random_state", seed) is None:
            density.set_params(random_state=seed)  # GaussianMixture.sample uses it
        density.fit(data)
        self.width_trials_: list[WidthTrial] = []
        with unchecked_dominance():  # it would number the draws
            if width == "auto":
                width, self.width_trials_ = _choose_width(estimator, density, data, rng)
            drawn = data if width == 0 else draw(density, n_draws, seed, width)
            estimator.fit(in_precision(drawn, data.dtype))
        self.density_, self.estimator_ = density, estimator
        self.embedding_ = self._transform_rows(data)
        warn_if_dominated(self.embedding_, takes_n_neighbors(estimator))
        self._distance_from_data = distance_by_estimator(data, estimator)
        self.width_, self.n_draws_ = float(width), len(drawn)
        self._inverse = regression_inverse(self.embedding_, data) if 0 < width < 1 else None

    def _check_width(self, density: Any) -> Any:
        if isinstance(self.width, str):
            return check_option("width", self.width, ("auto",))
        width = check_nonnegative("width", self.width)
        if width != 1 and not _has_windows(density):
            raise ValueError(
                f"width={self.width} needs windows around the rows, which density={density!r} "
                "does not have; pass width='auto' or density=ManifoldParzen()"
            )
        return width

    def _count(self, n: int, draws_per_row: int = 10) -> int:
        if self.n_draws is None:
            return draws_per_row * n
        return check_count("n_draws", self.n_draws, minimum=2)

    def _embedding(self) -> Any:
        given = _default_embedding() if self.estimator is None else self.estimator
        if not all(hasattr(given, name) for name in ("fit", "transform", "get_params")):
            raise TypeError(
                f"estimator={given!r} must have fit and transform, such as LaplacianEigenmaps()"
            )
        if get_tags(given).input_tags.pairwise:
            raise ValueError(
                f"estimator={given!r} takes precomputed values, but draws are rows of features; "
                "pass an estimator that takes data"
            )
        copy = clone(given)
        if hasattr(copy, "set_output"):
            copy.set_output(transform="default")
        return copy

    def _density(self) -> Any:
        given = ManifoldParzen() if self.density is None else self.density
        if not all(hasattr(given, name) for name in ("fit", "sample", "get_params")):
            raise TypeError(f"density={given!r} must have fit and sample, such as ManifoldParzen()")
        return clone(given)

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
        X : array or frame of shape (n_samples, n_features)
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
    def transform(self, X: Any, *, return_distance: bool = False) -> Any:
        """Embed new points, each independently of the others.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The points.
        return_distance : bool, default=False
            Also return the distance of each row from the data; see :meth:`novelty`.

        Returns
        -------
        {coordinates}
        """
        data = self._read_new(X)
        distances = self._distance_from_data.of(data) if return_distance else None
        self._distance_from_data.warn_if_far(data, distances)
        placed = self._transform_rows(data)
        return placed if distances is None else (placed, distances)

    @on_its_device
    @shared_docs
    def novelty(self, X: Any) -> Array:
        """Return the distance of each row of `X` from the data, not from the draws.

        See :class:`~manifoldry.extension.RelativeDistance`.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows as for :meth:`transform`.

        Returns
        -------
        {distances}
        """
        return self._distance_from_data.of(self._read_new(X))

    def _read_new(self, X: Any) -> Array:
        check_is_fitted(self)
        return check_data(self, X, reset=False, accept_sparse=False)

    def _transform_rows(self, data: Array) -> Array:
        with ignoring(NoveltyWarning):  # the estimator compares with the draws
            return np.asarray(self.estimator_.transform(data))

    @on_its_device
    @shared_docs
    def inverse_transform(self, X: Any, *, return_distance: bool = False) -> Any:
        """Compute data from coordinates, with their distance from the embedding if requested.

        If ``width_`` is between 0 and 1, the draws cluster around the rows, which misleads an
        inverse that is fitted to them: it is then local regression of the rows on ``embedding_``.
        Otherwise it is that of the estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Coordinates.
        return_distance : bool, default=False
            Also return the distance of each row from the embedding relative to its spacing, if the
            estimator does.

        Returns
        -------
        {restored_data}
        """
        check_is_fitted(self)
        options = {"return_distance": True} if return_distance else {}
        if self._inverse is None:
            return self.estimator_.inverse_transform(X, **options)
        Z = read_array(X)
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} columns, but the embedding has "
                f"n_components={self._n_features_out}; pass one column per coordinate"
            )
        distances = DistanceOnMap(self.embedding_).of(Z, requested=return_distance)
        data = in_precision(self._inverse.predict(Z.astype(np.float64)), Z.dtype)
        return data if distances is None else (data, distances)

    @property
    def _n_features_out(self) -> int:
        # A loaded model of distributed data has no embedding of all rows.
        return int(vars(self).get("landmark_model_", self).embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or hasattr(self, "landmark_model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = _default_embedding() if self.estimator is None else self.estimator
        tags.transformer_tags = get_tags(given).transformer_tags
        return tags


def draw(density: Any, count: int, seed: int, width: float = 1.0) -> Array:
    """Draw from a fitted density; equally often around every row if it has windows there."""
    options: dict[str, Any] = {"width": width, "stratified": True} if _has_windows(density) else {}
    if "random_state" in signature(density.sample).parameters:
        options["random_state"] = seed
    drawn = density.sample(count, **options)
    return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)


def _has_windows(density: Any) -> bool:
    return isinstance(density, ManifoldParzen)


def _choose_width(
    estimator: Any, density: Any, X: Array, rng: np.random.Generator
) -> tuple[float, list[WidthTrial]]:
    """The width for a Gaussian kernel PCA and its number of coordinates; 1 for anything else."""
    if not (_has_gaussian_kernel(estimator) and _has_windows(density)):
        return 1.0, []
    given, gamma = estimator.n_components, estimator.gamma
    n_components = 2 if given is None else check_count("n_components", given)
    if gamma is not None:
        check_positive("gamma", gamma)
    return WidthSearch().choose(density, X, median_rbf(X, gamma), n_components, rng)


def _has_gaussian_kernel(estimator: Any) -> bool:
    """Whether the estimator's coordinates are eigenfunctions of a Gaussian kernel of the data."""
    from manifoldry.spectral.kernel_pca import KernelPCA

    return isinstance(estimator, KernelPCA) and estimator.kernel == "rbf"


def _default_embedding() -> Any:
    from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps

    return LaplacianEigenmaps()
