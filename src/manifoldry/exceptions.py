"""Warnings and errors of manifoldry; each message gives the cause and the remedy."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "CalibrationWarning",
    "ConvergenceWarning",
    "DegenerateSpectrumWarning",
    "DisconnectedGraphError",
    "DisconnectedGraphWarning",
    "DominatedCoordinateWarning",
    "ExtensionWarning",
    "LargeMatrixWarning",
    "LongFitWarning",
    "ManifoldryWarning",
    "NoveltyWarning",
    "RankWarning",
    "RedundantCoordinateWarning",
    "ShortCircuitWarning",
    "TangentSpaceWarning",
    "UniformAffinityWarning",
    "VersionWarning",
]


class ManifoldryWarning(UserWarning):
    """Base class of all warnings of this package, so that one filter covers them.

    Examples
    --------
    Silence all of them, for example in a grid search over extreme parameters, or raise them as
    errors, so that a script cannot overlook one:

    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.exceptions import ManifoldryWarning
    >>> line = np.outer(np.arange(20.0), [1.0, 2.0, 3.0])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ManifoldryWarning)
    ...     coordinates = PCA(2).fit_transform(line)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ManifoldryWarning)
    ...     PCA(2).fit(line)
    Traceback (most recent call last):
    manifoldry.exceptions.RankWarning: there are 1 positive eigenvalues, so 1 of n_components=2 ...
    """


class CalibrationWarning(ManifoldryWarning):
    """The calibration set is too small to estimate the size of the errors.

    :class:`~manifoldry.ConformalInverse` then returns infinite radii. Pass more data, hold out a
    larger part of them, or ask for a smaller coverage.

    See Also
    --------
    manifoldry.ConformalInverse : intervals of reconstructed data.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA, ConformalInverse
    >>> from manifoldry.exceptions import CalibrationWarning
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = ConformalInverse(PCA(2), coverage=0.99).fit(X)
    >>> print(caught[0].category.__name__)
    CalibrationWarning
    """


class ConvergenceWarning(ManifoldryWarning):
    """A solver did not reach the requested accuracy.

    The result is the best that was found, and ``converged_`` of an iterative estimator is False.
    The message says which parameter to change. It is not the warning of scikit-learn of the same
    name.

    Examples
    --------
    >>> import warnings
    >>> from manifoldry import UKR
    >>> from manifoldry.datasets import make_helix
    >>> from manifoldry.exceptions import ConvergenceWarning
    >>> X, _ = make_helix(50, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ConvergenceWarning)
    ...     model = UKR(1, max_iter=1).fit(X)
    >>> model.converged_, len(caught) > 0
    (False, True)
    """


class DegenerateSpectrumWarning(ManifoldryWarning):
    """The coordinates are not unique: they span only part of the eigenspace of an eigenvalue.

    Data with a symmetry, such as points on a circle, have repeated eigenvalues, and any rotation
    of their eigenvectors is a solution. One coordinate more or fewer often avoids it.

    Examples
    --------
    The coordinates of a regular polygon come in pairs, so that a single one is arbitrary:

    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.exceptions import DegenerateSpectrumWarning
    >>> angle = np.arange(12) * np.pi / 6
    >>> polygon = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DegenerateSpectrumWarning)
    ...     PCA(1).fit(polygon)
    Traceback (most recent call last):
    manifoldry.exceptions.DegenerateSpectrumWarning: eigenvalue 6 is repeated beyond ...
    """


class DisconnectedGraphWarning(ManifoldryWarning):
    """The neighbor graph has several connected components.

    The method says what it did: it joined them by edges, embedded each separately, or embedded
    the largest only. Positions of separate components relative to each other mean little. More
    neighbors may connect them.

    See Also
    --------
    manifoldry.neighbors.DisconnectedPolicy : what estimators do with several components.
    DisconnectedGraphError : raised with ``disconnected="error"``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import Isomap
    >>> from manifoldry.exceptions import DisconnectedGraphWarning
    >>> cluster = np.random.default_rng(0).normal(size=(20, 3))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = Isomap(n_neighbors=4).fit(np.concatenate([cluster, cluster + 100]))
    >>> any(issubclass(each.category, DisconnectedGraphWarning) for each in caught)
    True
    """


class DominatedCoordinateWarning(ManifoldryWarning):
    """One point, a handful or a small group of points hold most of the variance of a coordinate.

    The map of all other points is then squeezed into a small part of the picture. The message
    names the rows: look at them, and remove those that are errors, or raise the number of
    neighbors.

    See Also
    --------
    manifoldry.assess : says the same of embeddings of other packages.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.exceptions import DominatedCoordinateWarning
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[7] = 1000  # a faulty row
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", DominatedCoordinateWarning)
    ...     model = PCA(2).fit(X)
    >>> print(caught[0].message)
    row 7 holds 99 % of the variance of coordinate 0 ...
    """


class ExtensionWarning(ManifoldryWarning):
    """The out-of-sample extension is less accurate than usual for some new points.

    It is issued by ``transform`` if the search for the coordinates of some rows did not converge,
    for example, or if their neighbors do not determine their places. The message says how many
    rows are concerned.

    See Also
    --------
    NoveltyWarning : new points are unlike the data of the fit.
    """


class LargeMatrixWarning(ManifoldryWarning):
    """A matrix with an entry for each of very many pairs will take gigabytes of memory.

    The message has its size, and what to pass to do without it, such as ``n_landmarks`` of
    :class:`~manifoldry.Isomap`.

    See Also
    --------
    LongFitWarning : the fit takes long.
    """


class LongFitWarning(ManifoldryWarning):
    """The fit will take many minutes.

    The message predicts the time. It also says how many points take about a minute: fit a random
    sample of that size, and ``transform`` the others.

    See Also
    --------
    LargeMatrixWarning : the fit takes much memory.
    """


class NoveltyWarning(ExtensionWarning):
    """Many new points are unlike the data of the fit, or many positions are off the map.

    ``transform`` still gives every row coordinates, but places of unlike rows mean little. The
    method ``novelty`` of the estimators has the distance of each row from the training data.
    If this warning is ignored by a filter, ``transform`` does not measure the distances at all.

    See Also
    --------
    ExtensionWarning : covers this warning too.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.exceptions import NoveltyWarning
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = PCA(2).fit(X)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NoveltyWarning)
    ...     try:
    ...         model.transform(X + 50)
    ...     except NoveltyWarning:
    ...         print("unlike the training data:", int((model.novelty(X + 50) > 2).sum()), "rows")
    unlike the training data: 100 rows
    """


class RankWarning(ManifoldryWarning):
    """The data or the embedding has fewer dimensions than requested.

    The remaining coordinates are zero, or components of a mixture are removed. Ask for as many as
    the message says.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.exceptions import RankWarning
    >>> line = np.outer(np.arange(20.0), [1.0, 2.0, 3.0])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", RankWarning)
    ...     coordinates = PCA(2).fit_transform(line)
    >>> len(caught), bool(np.allclose(coordinates[:, 1], 0))
    (1, True)
    """


class RedundantCoordinateWarning(ManifoldryWarning):
    """A coordinate is largely predictable from those before it.

    It repeats them, as the second coordinate of a long strip does, instead of showing a new
    direction. Wrap the estimator in :class:`~manifoldry.NonRedundant`.

    See Also
    --------
    manifoldry.NonRedundant : coordinates that do not repeat each other.
    manifoldry.metrics.unpredictability : the measure of redundancy, for any embedding.
    """


class ShortCircuitWarning(ManifoldryWarning):
    """A few edges of the neighbor graph are shortcuts between distant parts of the manifold.

    They shorten many geodesic distances and can distort an embedding completely. The message
    lists the edges, and says how to avoid them.

    See Also
    --------
    manifoldry.find_short_circuits : finds the edges and removes them.

    Examples
    --------
    A horseshoe whose ends almost touch, and two outliers in the gap. The graph without the edges
    between them is embedded as the horseshoe:

    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import Isomap, find_short_circuits
    >>> from manifoldry.exceptions import ShortCircuitWarning
    >>> angle = np.linspace(0.2, 2 * np.pi - 0.2, 200)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([X, [[1.0, 0.05], [1.0, -0.05]]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ShortCircuitWarning)
    ...     try:
    ...         model = Isomap(1, n_neighbors=4).fit(X)
    ...     except ShortCircuitWarning:
    ...         model = Isomap(1).fit(find_short_circuits(X, n_neighbors=4).prune())
    >>> bool(abs(np.corrcoef(model.embedding_[:200, 0], angle)[0, 1]) > 0.99)
    True
    """


class TangentSpaceWarning(ManifoldryWarning):
    """Tangent spaces of the requested dimension do not fit the data.

    :class:`~manifoldry.LTSA` and :class:`~manifoldry.HessianLLE` assume that the data lie near a
    surface with ``n_components`` dimensions. Clusters do not: use
    :class:`~manifoldry.LaplacianEigenmaps` for them. For a surface with noise, raise
    ``n_neighbors``.

    See Also
    --------
    manifoldry.estimate_dimension : the dimension to pass.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import LTSA
    >>> from manifoldry.exceptions import TangentSpaceWarning
    >>> noise = np.random.default_rng(0).normal(size=(100, 10))  # no surface
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", TangentSpaceWarning)
    ...     model = LTSA(2).fit(noise)
    >>> print(caught[0].message)
    tangent spaces of n_components=2 dimensions do not fit the data: their misfit is ...
    """


class UniformAffinityWarning(ManifoldryWarning):
    """All affinities are nearly equal, so they carry little information about the data.

    The perplexity is nearly the number of points. The message has one that fits.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from manifoldry import TSNE
    >>> from manifoldry.exceptions import UniformAffinityWarning
    >>> X = np.random.default_rng(0).normal(size=(12, 3))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UniformAffinityWarning)
    ...     TSNE(perplexity=10.9).fit(X)
    Traceback (most recent call last):
    manifoldry.exceptions.UniformAffinityWarning: perplexity=10.9 exceeds 9.9, 90 % of ...
    """


class VersionWarning(ManifoldryWarning):
    """A model was saved by another version of this package.

    It was loaded, but attributes may have another meaning than in the version that wrote it. Fit
    the model again with the present version if its results differ.

    See Also
    --------
    manifoldry.load : loads a model.
    manifoldry.read_info : the version that wrote a model file.
    """


class DisconnectedGraphError(ValueError):
    """The neighbor graph has several connected components and the policy does not allow that.

    See Also
    --------
    DisconnectedGraphWarning : issued if the policy allows it.
    manifoldry.neighbors.DisconnectedPolicy : the choices.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.exceptions import DisconnectedGraphError
    >>> cluster = np.random.default_rng(0).normal(size=(20, 3))
    >>> model = LaplacianEigenmaps(n_neighbors=4, disconnected="error")
    >>> try:
    ...     model.fit(np.concatenate([cluster, cluster + 100]))
    ... except DisconnectedGraphError:
    ...     print("embed the clusters separately, or pass more neighbors")
    embed the clusters separately, or pass more neighbors
    """


# scikit-learn wraps our methods, and calls them in pipelines and, through joblib, in searches.
_INSIDE = ("manifoldry", "sklearn", "joblib")


# Filters of warnings are those of the whole process, and threads that change them at the same time
# can leave them changed. These apply to one thread, and to the helper threads of `map_threads`.
_IGNORED: ContextVar[tuple[type[Warning], ...]] = ContextVar("ignored warnings", default=())
_RECORD: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("record", default=None)


@contextmanager
def ignoring(category: type[ManifoldryWarning]) -> Iterator[None]:
    """Ignore warnings of this package of a category inside this context; safe in threads."""
    outer = _IGNORED.set((*_IGNORED.get(), category))
    try:
        yield
    finally:
        _IGNORED.reset(outer)


@contextmanager
def recording() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect the messages and categories of warnings of this package; safe in threads.

    They are not issued. Warnings of other packages are issued as usual: those of a worker process
    are in its log.
    """
    record: list[tuple[str, type[Warning]]] = []
    outer = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(outer)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning located at the innermost caller outside of this package."""
    if issubclass(category, _IGNORED.get()):
        return
    if (record := _RECORD.get()) is not None:
        record.append((message, category))
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _package(frame.f_globals) in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Numbers of rows warned about in this context, and of all rows, by text and category; None if each
# warning is issued at once.
_COUNTS: ContextVar[dict[tuple[str, type[Warning]], list[int]] | None] = ContextVar(
    "rows warned about", default=None
)


def warn_about_rows(count: int, total: int, text: str, category: type[Warning]) -> None:
    """Warn about `count` of `total` rows, if any; the `text` has {count} and {total} in it.

    Inside :func:`counting_rows` the counts are added up, and one warning is issued at the end.
    """
    counts = _COUNTS.get()
    if counts is not None:
        before = counts.setdefault((text, category), [0, 0])
        before[0], before[1] = before[0] + count, before[1] + total
    elif count:
        warn(text.format(count=count, total=total), category)


@contextmanager
def counting_rows() -> Iterator[None]:
    """Issue one warning for all blocks of rows that are processed inside this context."""
    counts: dict[tuple[str, type[Warning]], list[int]] = {}
    outer = _COUNTS.set(counts)
    try:
        yield
    finally:
        _COUNTS.reset(outer)
    for (text, category), (count, total) in counts.items():
        warn_about_rows(count, total, text, category)


def is_ignored(category: type[Warning]) -> bool:
    """Whether all warnings of a category are ignored, so that none needs to be computed."""
    if issubclass(category, _IGNORED.get()):
        return True
    for action, message, filtered, module, line in warnings.filters:
        some_only = action == "ignore" and (message or module or line)
        if issubclass(category, filtered) and not some_only:
            return action == "ignore"
    return False


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).split(".")[0]
