"""Non-redundant coordinates for any spectral estimator."""

from __future__ import annotations

from dataclasses import replace
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

from manifoldry.base.score import score
from manifoldry.eigen import EigenSolver, SpectralProblem, Spectrum, resolve_solver
from manifoldry.exceptions import RankWarning
from manifoldry.extension.affine import AffineMap
from manifoldry.extension.base import Extension, Nystrom
from manifoldry.extension.geodesic import GeodesicExtension
from manifoldry.extension.laplacian import LaplacianExtension
from manifoldry.extension.regression import LocalRegression
from manifoldry.nonredundant.criteria import Criterion, Gradient, Prediction
from manifoldry.nonredundant.extension import (
    CorrectedExtension,
    Correction,
    GradientRow,
    GraphExtension,
    corrected,
    over,
)
from manifoldry.nonredundant.sequence import Run, Sequence, says_something, tall_products
from manifoldry.nonredundant.smoother import SMOOTHERS, Smoother
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.graph_embedder import GraphEmbedder, coupled_components
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.spectral.tangent_embedder import TangentEmbedder
from manifoldry.util.checks import as_generator, check_option, check_positive
from manifoldry.util.rows import RowLookup
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.warn import warn

_CRITERIA = ("gradient", "prediction")
_MOST = 10  # coordinates that "auto" looks at
_TINY = float(np.finfo(float).tiny)


class NonRedundant(
    MetaEstimatorMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Spectral coordinates each of which says something the ones before it do not.

    Long data waste the coordinates of spectral methods: on a strip 3.5 times longer than wide,
    the first three Laplacian eigenmaps are all functions of the length. This solves the problem of
    any spectral estimator for one coordinate at a time, each kept from being a function of the
    earlier ones. Ask :func:`manifoldry.metrics.redundancy` first whether a map needs it.

    Parameters
    ----------
    estimator : spectral estimator, default=None
        Whose coordinates to make non-redundant: any embedding of manifoldry's; by default
        ``LaplacianEigenmaps()`` (pass that to set its parameters in a grid search). A copy is
        fitted, with another ``n_components`` and, in LTSA and Hessian LLE, without the metric fit,
        which would mix coordinates again.
    n_components : int or "auto", default=None
        Number of coordinates; by default two, or what the data allow. ``"auto"`` stops before the
        first that can be predicted from the others, changes from neighbour to neighbour, or is
        next to nothing beside the first (at ten if none does). Asked for more than the data have,
        a warning tells which say nothing.
    criterion : {"gradient", "prediction"}, default="gradient"
        ``"gradient"``: gradients must be orthogonal, which gives the pure directions of a
        manifold (where they lead nowhere, in methods other than Laplacian eigenmaps and diffusion
        maps, prediction takes over). ``"prediction"``: a smoother must predict nothing (Blau &
        Michaeli 2017), which separates clusters with fewer coordinates: use it for features of a
        classifier.
    bandwidth : float or "auto", default=0.3
        Of ``criterion="prediction"``: width of the smoother relative to the spread of the
        coordinates, from 0.1 to 0.6. ``"auto"`` takes the widest of 0.6 to 0.15 that leaves the
        coordinate unpredictable.
    smoother : {"nadaraya_watson", "local_linear"}, default="nadaraya_watson"
        Of ``criterion="prediction"``: local means or local linear fits.
    eigen_solver : str or EigenSolver, default=None
        Solver for each coordinate, by default the estimator's own; see
        :func:`manifoldry.eigen.resolve_solver`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of iterative solvers; ``None`` leaves the estimator's own.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates.
    embedding_ : array of shape (n_samples, n_components)
        The map.
    eigenvalues_ : array of shape (n_components,)
        The method's objective of every coordinate: the eigenvalue of the first, then of the problem
        under its constraints.
    redundancy_ : array of shape (n_components,)
        Error of predicting every coordinate from those before it, relative to its spread: near 0
        where it repeats them, near 1 where it is new (or noise, of which `fit` warns).
    steps_ : list of str
        How every coordinate was found.
    residuals_, gaps_ : arrays of shape (n_components,)
        Residual norm of every coordinate's equation, and distance to its next eigenvalue.
    solver_ : str
        Which eigensolver found them, and how well it did.
    estimator_ : spectral estimator
        The fitted copy; its other attributes can be read here as well.

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
        smoother: Smoother = "nadaraya_watson",
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the embedding of `X`; where that fails, a model fitted before stays as it was.

        Parameters
        ----------
        X : array, sparse matrix, frame or graph
            What the wrapped estimator takes.
        y : ignored
            Present for scikit-learn's sake.
        """
        base, given_solver = self._prepared()
        with threads_allowed(getattr(base, "n_jobs", None)):
            run = self._fit(base, X)
        base.set_params(eigen_solver=given_solver)
        self.estimator_ = base
        self.n_components_ = base.n_components_
        coordinates = run.coordinates[: self.n_components_]
        _warn_if_empty(run, self.n_components_)
        missing = self.n_components_ - len(coordinates)  # which a small piece does not have
        self.redundancy_ = np.array([c.error for c in coordinates] + [0.0] * missing)
        self.steps_ = [c.how for c in coordinates] + ["none"] * missing
        return self

    def _fit(self, base: SpectralEmbedder, X: Any) -> Run:
        sequence = base.eigen_solver
        data = base._read(X, reset=True)
        base._check_components(data)
        problem = base._pose(data)
        if self.n_components == "auto":
            rng = as_generator(base.random_state, unset=0)
            most = min(_MOST, base._largest_components(data)[0])
            base.n_components_ = sequence.count(_largest(base, problem), most, rng)
        spectrum = base._solve(problem)
        base._store(data, problem, spectrum)
        base._extension = base._extend(data, problem, spectrum)
        run: Run = sequence.runs[-1]  # the largest piece comes last
        with tall_products(problem):
            _correct(base, data, spectrum, run)
        return run

    def _prepared(self) -> tuple[SpectralEmbedder, Any]:
        """A copy of the estimator that solves for one coordinate at a time; its own solver."""
        given = LaplacianEigenmaps() if self.estimator is None else self.estimator
        if not isinstance(given, SpectralEmbedder) or given._counted_by != "n_components":
            raise TypeError(
                f"estimator={given!r} must be one of manifoldry's spectral embeddings, such as "
                "LaplacianEigenmaps(), LLE() or Isomap()"
            )
        base = clone(given)
        solver = base.eigen_solver
        inner = self.eigen_solver or solver or "auto"
        resolve_solver(inner)  # or say what there is
        base.set_output(transform="default").set_params(
            n_components=self._asked(base), eigen_solver=Sequence(self._criterion(), inner)
        )
        if self.random_state is not None:
            base.set_params(random_state=self.random_state)
        if getattr(base, "normalization", "rw") != "rw":
            raise ValueError(
                f"normalization={base.normalization!r}: gradients and smoothers need functions on "
                "the data, which only normalization='rw' has; pass that"
            )
        if isinstance(base, TangentEmbedder):
            base.set_params(metric_fit=False)  # which would mix the coordinates again
        return base, solver

    def _asked(self, base: SpectralEmbedder) -> int | None:
        if not isinstance(self.n_components, str):
            return self.n_components  # which the estimator checks
        if self.n_components != "auto":
            raise TypeError(
                f"n_components={self.n_components!r} must be a whole number; "
                "pass n_components=1 or more, or 'auto'"
            )
        if isinstance(base, TangentEmbedder):
            raise ValueError(
                f"n_components='auto' has no meaning for {type(base).__name__}, whose tangent "
                "planes have that dimension; pass a number"
            )
        return None

    def _criterion(self) -> Criterion:
        check_option("criterion", self.criterion, _CRITERIA)
        check_option("smoother", self.smoother, SMOOTHERS)
        if isinstance(self.bandwidth, str):
            check_option("bandwidth", self.bandwidth, ("auto",))
        else:
            check_positive("bandwidth", self.bandwidth)
        if self.criterion == "gradient":
            return Gradient()
        return Prediction(self.bandwidth, self.smoother)

    score = score

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Compute the embedding of `X` and return it, (n_samples, n_components)."""
        return self.fit(X).embedding_.copy()

    def transform(self, X: Any) -> Array:
        """Place new points on the map, each by itself; training rows return to their place."""
        check_is_fitted(self)
        return self.estimator_.transform(X)

    def inverse_transform(
        self, X: Any, *, return_distance: bool = False
    ) -> Array | tuple[Array, Array]:
        """Turn map positions into data; see the wrapped estimator's."""
        check_is_fitted(self)
        return self.estimator_.inverse_transform(X, return_distance=return_distance)

    def redundancy(self) -> Array:
        """How much of each coordinate is new; see :func:`manifoldry.metrics.redundancy`."""
        check_is_fitted(self)
        return self.estimator_.redundancy()

    def extension_error(self, X: Any) -> float:
        """Largest error of the bare extension formula at the training rows, relative to the map."""
        check_is_fitted(self)
        return self.estimator_.extension_error(X)

    def __getattr__(self, name: str) -> Any:
        """What the fitted estimator has learned is the wrapper's as well."""
        if name.endswith("_") and not name.startswith("_") and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        inner = dir(self.estimator_) if "estimator_" in vars(self) else []
        return sorted({*super().__dir__(), *(n for n in inner if n.endswith("_") and n[0] != "_")})

    @property
    def _extension(self) -> Extension:
        return self.estimator_._extension

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = LaplacianEigenmaps() if self.estimator is None else self.estimator
        inner = get_tags(base)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags


def _warn_if_empty(run: Run, k: int) -> None:
    """Tell which coordinates say nothing: nobody sees that from their regression errors alone."""
    first = run.coordinates[0]
    empty = [
        i
        for i in range(1, min(k, len(run.coordinates)))
        if not says_something(run.problem, first, run.coordinates[i])
    ]
    if empty:
        warn(
            f"coordinates {', '.join(map(str, empty))} (counted from 0) say nothing new, or change "
            "from neighbour to neighbour: the data seem to have no more directions. "
            f"n_components={min(empty)} leaves them out, n_components='auto' finds that number",
            RankWarning,
        )


def _largest(base: SpectralEmbedder, problem: SpectralProblem) -> SpectralProblem:
    """The problem of the largest piece, where the operator falls apart."""
    if not isinstance(base, GraphEmbedder) or problem.end == "largest":
        return problem
    labels = coupled_components(problem.operator)
    rows = np.flatnonzero(labels == np.bincount(labels).argmax())
    return problem if len(rows) == problem.n else problem.restrict(rows)


def _correct(base: SpectralEmbedder, data: Any, spectrum: Spectrum, run: Run) -> None:
    """Make the method's extension, and where need be its map, those of constrained coordinates."""
    extension = base._extension
    if isinstance(extension, LaplacianExtension):
        base._extension = _on_graph(base, extension, run)
    elif isinstance(extension, AffineMap | Nystrom | GeodesicExtension):
        _correct_kernel(base, data, spectrum, run)
    # Other methods place new points by their neighbours, whatever the coordinates are.


def _on_graph(base: Any, extension: LaplacianExtension, run: Run) -> Extension:
    if extension.pieces.offset.shape[0] > 1:  # constraints differ from piece to piece
        return replace(extension, values=np.zeros_like(extension.values))
    rows = np.flatnonzero(base.piece_labels_ == 0)  # a policy may have left some out
    Y = np.asarray(base.embedding_, dtype=np.float64)[rows]
    F = run.functions[:, : Y.shape[1]]
    size = np.linalg.norm(Y, axis=0) / np.linalg.norm(F, axis=0)
    bare = over(extension.at_training(base.affinity_)[rows], size)
    steps: list[Correction | GradientRow] = list(_corrections(run, F, bare))
    for i, c in enumerate(run.coordinates[1 : F.shape[1]]):
        if c.penalty is not None and extension.normalization == "rw":
            energy, mass = run.problem.operator @ c.f, extension.degree[rows]
            steps[i] = GradientRow.of(c.penalty, c.f, mass, energy, c.functions)
    return GraphExtension(extension, rows, size, steps)


def _correct_kernel(base: Any, data: Any, spectrum: Spectrum, run: Run) -> None:
    """The same for coordinates √λ·f, of which the method's own formula is A f/√λ."""
    extension, kind = base._extension, base.embedding_.dtype
    root = np.sqrt(np.where(spectrum.significant, spectrum.values, 0.0)) * base._unit
    F, given = run.functions[:, : len(root)], np.asarray(base.embedding_, dtype=np.float64)
    if isinstance(extension, AffineMap):
        bare = over(given, root)
    else:
        bare = np.asarray(run.problem.operator @ F) / np.maximum(spectrum.values, _TINY)
    bare[:, root == 0] = 0.0
    corrections = _corrections(run, np.where(root > 0, F, 0.0), bare)
    base._extension = CorrectedExtension(extension, root, corrections)
    # Beside landmarks the others are placed as new points are.
    Y = F * root if len(F) == len(given) else corrected(given, root, corrections)
    Y[:, 0] = given[:, 0]
    base.embedding_ = Y.astype(kind)
    if isinstance(extension, AffineMap):  # a flat map keeps no data, and its inverse is flat
        base._lookup = RowLookup.of(data)
    if base._inverse is not None or isinstance(extension, AffineMap):
        points = getattr(base._inverse, "X", data)
        base._inverse = LocalRegression(base.embedding_[base._on_map], points)


def _corrections(run: Run, F: Array, bare: Array) -> list[Correction]:
    """What the coordinates after the first have beyond the method's own formula."""
    return [
        Correction.of(c.functions, F[:, i] - bare[:, i], bare[:, i], F[:, :i])
        for i, c in enumerate(run.coordinates[1 : F.shape[1]], start=1)
    ]
