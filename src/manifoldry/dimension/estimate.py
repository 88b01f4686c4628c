"""All dimension estimators on one neighbor graph."""

from collections.abc import Callable
from math import isfinite
from typing import Any

from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.dimension.consensus import Consensus
from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.local_pca import local_pca
from manifoldry.dimension.neighbor_distances import maximum_likelihood, two_nn
from manifoldry.dimension.pair_counts import correlation_dimension, diffusion_slope
from manifoldry.dimension.profile import scale_profile
from manifoldry.dimension.report import DimensionReport, explain
from manifoldry.dimension.residual_variance_elbow import residual_variance_elbow
from manifoldry.dimension.result import Dimension
from manifoldry.dimension.spectra import gram_rank, pca_dimension
from manifoldry.distributed.collections import is_collection
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.progress import progress
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import RandomState

# From the most local to the most global method.
_METHODS: dict[str, Callable[..., Dimension]] = {
    "two_nn": two_nn,
    "maximum_likelihood": maximum_likelihood,
    "correlation_dimension": correlation_dimension,
    "local_pca": local_pca,
    "diffusion_slope": diffusion_slope,
    "residual_variance_elbow": residual_variance_elbow,
    "pca_dimension": pca_dimension,
    "gram_rank": gram_rank,
}
_RANDOMIZED = ("two_nn", "correlation_dimension", "diffusion_slope", "residual_variance_elbow")


@on_device_of_arguments
def estimate_dimension(
    X: Any,
    *,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    sample: int = 5000,
) -> DimensionReport:
    """Estimate the dimension of the data by all methods, and explain why they differ.

    Use it to choose ``n_components``. All methods share one graph of 20 neighbors, and methods
    that need all pairs use a sample of 1000 points, so the neighbor search dominates the time.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data, or their neighbor graph, preferably with at least 20 neighbors. Methods that
        need points are skipped for a graph of distances alone.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the random samples; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Number of threads, by default one per core; BLAS threads are not affected.
    verbose : bool, default=False
        Show progress.
    sample : int, default=5000
        Number of rows of a sample, if `X` is a Dask collection or the path of a Zarr or Parquet
        store. The estimates are then means over up to five disjoint samples, each estimated on one
        worker; up to twice this number of rows, all are one sample. Neighborhoods in a sample are
        wider than among all rows: values and intervals are for data of that size. Data in memory
        are not sampled.

    Returns
    -------
    DimensionReport
        The consensus, the estimate of each method, and reasons; ``print`` it for a table.

    See Also
    --------
    manifoldry.dimension.two_nn, manifoldry.dimension.maximum_likelihood : by neighbor distances.
    manifoldry.dimension.local_pca : by variances of neighborhoods.
    manifoldry.dimension.scale_profile : the dimension at each scale.
    manifoldry.metrics.kernel_loss : how many coordinates a spectral method supports.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import estimate_dimension
    >>> report = estimate_dimension(make_swiss_roll(400, random_state=0).X)
    >>> print(report)
    Dimension of 400 points of 3 features: about 2
    ...
    >>> report.reasons[0]
    'The methods that use neighborhoods agree on 2.'
    """
    if is_collection(X):
        from manifoldry.dimension.distributed import estimate_of_collection

        check_count("sample", sample, minimum=20)
        return estimate_of_collection(X, sample, random_state, verbose)
    with threads_allowed(n_jobs):
        return report_on(*find_consensus(X, random_state, verbose))


def find_consensus(
    X: Any, random_state: RandomState, verbose: bool = False
) -> tuple[Consensus, dict[str, str]]:
    """The consensus of all methods that can be computed, and why others cannot."""
    data = DimensionInput.of(X)
    seed = int(as_generator(random_state, unset=0).integers(2**31))
    estimates, skipped = _run_methods(data, seed, verbose)
    profile = scale_profile(data, random_state=seed)
    if not estimates:
        raise ValueError("no method could be computed: " + "; ".join(skipped.values()))
    return Consensus.of(data, estimates, profile), skipped


def report_on(consensus: Consensus, skipped: dict[str, str]) -> DimensionReport:
    """The report with explanations of a consensus."""
    return DimensionReport(
        dimension=consensus.dimension,
        low=consensus.low,
        high=consensus.high,
        estimates=consensus.estimates,
        skipped=skipped,
        profile=consensus.profile,
        reasons=explain(consensus),
        n_samples=consensus.n_samples,
        n_features=int(consensus.n_features) if isfinite(consensus.n_features) else None,
    )


def _run_methods(
    data: DimensionInput, seed: int, verbose: bool
) -> tuple[dict[str, Dimension], dict[str, str]]:
    """The estimate of each method, and the reason why any method was skipped."""
    estimates: dict[str, Dimension] = {}
    skipped: dict[str, str] = {}
    for name in progress(_METHODS, len(_METHODS), "dimension", verbose):
        options = {"random_state": seed} if name in _RANDOMIZED else {}
        try:
            estimates[name] = _METHODS[name](data, **options)
        except ValueError as error:  # undefined for these data
            skipped[name] = str(error)
    return estimates, skipped
