"""How estimators fit data that are distributed."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from manifoldry.util.checks import check_count, check_option


@dataclass(frozen=True)
class DistributedOptions:
    """How estimators fit data that are distributed.

    Parameters
    ----------
    landmarks : int, optional
        Number of random rows that are fitted, and kept by the model to place others; all rows if
        there are fewer. One worker has them in memory. By default 20 000, and fewer for methods
        that need more time or memory: 5000 for Isomap, SpectralEmbedding and ManifoldParzen, 4000
        for KernelPCA and ClassicalMDS, 2000 for ElasticEmbedding and UKR, 1000 for MVU and
        FromDensity; a wrapper has at most the number of its estimator. Isomap of all rows keeps
        20 000, and is fitted to 5000 only if there is no graph in parts, as with a radius. If
        `landmarks` is given, estimators that would otherwise fit all rows are fitted to the
        landmarks, too. A perplexity or a number of neighbors then counts landmarks.
    search : {"auto", "approximate", "exact"}, default="auto"
        How neighbors are found: in the cells of a partition that are near a row, or among all rows.
        ``"auto"`` compares all rows where that takes seconds.
    refine : int, default=0
        Number of rounds in which t-SNE, symmetric SNE and the elastic embedding move all rows,
        after a sample was fitted and the others were placed, to lower the objective of all rows.
        Without rounds, rows stay where they were placed.
    verbose : bool, default=False
        Whether progress is shown.

    See Also
    --------
    using_options : sets them.

    Examples
    --------
    >>> from manifoldry.distributed import DistributedOptions
    >>> DistributedOptions(landmarks=5000)
    DistributedOptions(landmarks=5000, search='auto', refine=0, verbose=False)
    """

    landmarks: int | None = None
    search: str = "auto"
    refine: int = 0
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.landmarks is not None:
            check_count("landmarks", self.landmarks, minimum=2)
        check_option("search", self.search, ("auto", "approximate", "exact"))
        check_count("refine", self.refine, minimum=0)


_OPTIONS: ContextVar[DistributedOptions | None] = ContextVar("distributed options", default=None)


def current_options() -> DistributedOptions:
    """Return the options of the context."""
    return _OPTIONS.get() or DistributedOptions()


@contextmanager
def using_options(**options: Any) -> Iterator[DistributedOptions]:
    """Fit distributed data with other options inside this context.

    Parameters
    ----------
    **options : Any
        Parameters of :class:`DistributedOptions`; those of a context around this one are kept.

    Yields
    ------
    DistributedOptions
        All options.

    See Also
    --------
    DistributedOptions : the options.

    Examples
    --------
    >>> import dask.array as da
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.distributed import using_options
    >>> X = da.random.default_rng(0).normal(size=(2000, 3), chunks=(500, 3))
    >>> with using_options(landmarks=300):
    ...     model = LaplacianEigenmaps().fit(X)
    >>> model.fitted_on_
    '300 of 2000 rows; the others are placed by transform'
    """
    changed = replace(current_options(), **options)
    token = _OPTIONS.set(changed)
    try:
        yield changed
    finally:
        _OPTIONS.reset(token)
