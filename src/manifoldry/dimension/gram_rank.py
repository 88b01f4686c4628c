"""How many eigenvalues of a Gram matrix matter."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.dimension.result import Dimension
from manifoldry.dimension.source import Source
from manifoldry.util.checks import check_below, check_positive
from manifoldry.util.estimate import Estimate, half_width


def gram_rank(X: Any, *, share: float = 0.01) -> Dimension:
    """Count the eigenvalues of a Gram matrix that are more than 1 % of them all.

    Of a fitted Isomap the number tells in how many directions the unrolled sheet extends; of
    classical scaling or PCA, in how many the data themselves do; of kernel PCA, how many
    coordinates the kernel needs. Data are taken as those of classical scaling.

    Parameters
    ----------
    X : fitted estimator, array, sparse matrix or frame, or NeighborGraph
        A fitted :class:`~manifoldry.ClassicalMDS`, :class:`~manifoldry.KernelPCA`,
        :class:`~manifoldry.Isomap` or :class:`~manifoldry.PCA`, whose ``computed_eigenvalues_``
        are counted; or data, or a graph with Euclidean distances, copies of a row counted once.
    share : float, default=0.01
        An eigenvalue counts if it is more than this share of the sum of the positive ones; of a
        fitted estimator, of those it has computed, so fit it with more components than you expect.

    Returns
    -------
    Dimension
        For data, the interval holds the counts that chance in the shares allows; for a fitted
        estimator it is empty, since its eigenvalues alone do not tell.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import gram_rank
    >>> X = make_swiss_roll(800, random_state=0).X
    >>> round(gram_rank(X)), round(gram_rank(Isomap(6).fit(X)))
    (3, 2)
    """
    check_below("share", check_positive("share", share), 1.0, "a share")
    if hasattr(X, "fit"):
        return _of_estimator(X, share)
    spectrum = Source.of(X).spectrum("gram_rank")
    reach = half_width() * spectrum.errors
    count, low, high = (int((spectrum.shares + z > share).sum()) for z in (0, -reach, reach))
    return Dimension(Estimate(count, low, high), "gram_rank", _note(spectrum.shares, count, share))


def _of_estimator(model: Any, share: float) -> Dimension:
    check_is_fitted(model)
    if not _is_gram(model):
        raise TypeError(
            f"{type(model).__name__} has no computed_eigenvalues_ of a Gram matrix; pass a fitted "
            "PCA, ClassicalMDS, KernelPCA or Isomap of manifoldry, or data"
        )
    values = np.maximum(model.computed_eigenvalues_, 0.0)
    whole = float(values.sum())
    shares = np.sort(values)[::-1] / (whole if whole > 0 else 1.0)
    count = int((shares > share).sum())
    note = _note(shares, count, share)
    if count == len(shares):
        note += "; others were not computed: fit with more components"
    return Dimension(Estimate(count), "gram_rank", note)


def _is_gram(model: Any) -> bool:
    from manifoldry import PCA, ClassicalMDS, Isomap, KernelPCA

    return isinstance(model, PCA | ClassicalMDS | KernelPCA | Isomap)


def _note(shares: Any, count: int, share: float) -> str:
    told = ", ".join(f"{value:.1%}" for value in shares[: count + 1][-4:])
    first = "shares" if count < 4 else "last shares"
    return f"eigenvalues above {share:.0%} of their sum; {first} {told}"
