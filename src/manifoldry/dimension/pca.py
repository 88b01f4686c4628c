"""How many straight directions the whole of the data takes."""

from typing import Any

import numpy as np

from manifoldry.dimension.result import Dimension
from manifoldry.dimension.source import Source
from manifoldry.spectral.base import eigengap
from manifoldry.util.checks import check_at_most, check_positive
from manifoldry.util.estimate import Estimate, half_width
from manifoldry.util.typing import Array


def pca_dimension(X: Any, *, share: float = 0.95) -> Dimension:
    """Count the principal directions that hold most of the variance of all the data.

    This is the dimension of the flat space the data lie in, as far as they fill it: an upper end
    for curved data, since a bent sheet takes as many directions as it bends into; directions too
    thin to matter for the variance are left out. The largest gap between successive variances,
    another answer to the same question, is in the note.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data, or a graph with Euclidean distances; copies of a row count once.
    share : float, default=0.95
        Share of the variance to hold.

    Returns
    -------
    Dimension
        The interval holds the counts that chance in the shares allows. Of more than 10 000 points
        a sample is looked at, of more than 300 directions the first.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import pca_dimension
    >>> round(pca_dimension(make_swiss_roll(500, random_state=0).X))  # a sheet rolled up
    3
    """
    check_at_most("share", check_positive("share", share), 1.0, "a share of the variance")
    spectrum = Source.of(X).spectrum("pca_dimension")
    held, error = spectrum.held
    reached = share * (1 - 1e-12)
    reach = half_width() * error
    counts = [_first(held + z >= reached) for z in (0, reach, -reach)]
    at = min(counts[0], len(held)) - 1
    gap = _largest_gap(spectrum.shares)
    note = f"holding {held[at]:.1%} of the variance; largest gap after {gap}"
    if counts[0] > len(held):
        note = f"the first {len(held)} directions hold {held[-1]:.1%}: more are needed"
        return Dimension(Estimate(len(held), counts[1], np.inf), "pca_dimension", note)
    high = np.inf if counts[2] > spectrum.all_there_are else counts[2]
    return Dimension(Estimate(counts[0], counts[1], high), "pca_dimension", note)


def _largest_gap(shares: Array, nothing: float = 1e-3) -> int:
    """Directions before the largest gap; those with a share below `nothing` are none."""
    matter = int((shares > nothing).sum())
    return eigengap(np.maximum(shares, nothing)[: matter + 1], "largest")


def _first(enough: Any) -> int:
    """Number of directions up to the first that is enough, or one more than there are."""
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough) + 1
