"""Dimension from the principal variances of all the data, or the eigenvalues of a Gram matrix."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.result import Dimension
from manifoldry.spectral.base import eigengap
from manifoldry.util.checks import check_at_most, check_below, check_positive
from manifoldry.util.estimate import Estimate, half_width
from manifoldry.util.typing import Array


def pca_dimension(X: Any, *, fraction: float = 0.95) -> Dimension:
    """Count the principal directions that explain most of the variance of all the data.

    This is the dimension of the linear subspace near the data. For curved data it is an upper bound
    on the intrinsic dimension. Directions of small variance are not counted. The note gives the
    position of the largest gap between successive variances, an alternative estimate.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data, or a graph with Euclidean distances; duplicate rows count once.
    fraction : float, default=0.95
        Fraction of the variance to explain.

    Returns
    -------
    Dimension
        The interval follows from the standard errors of the fractions. With more than 10 000
        points a sample is used, and at most 300 directions are computed.

    See Also
    --------
    local_pca : the same in neighborhoods.
    gram_rank : counts large eigenvalues.
    manifoldry.estimate_dimension : all methods at once.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import pca_dimension
    >>> round(pca_dimension(make_swiss_roll(500, random_state=0).X))  # a rolled-up sheet
    3
    """
    check_at_most(
        "fraction", check_positive("fraction", fraction), 1.0, "a fraction of the variance"
    )
    spectrum = DimensionInput.of(X).spectrum("pca_dimension")
    cumulative, error = spectrum.cumulative
    target = fraction * (1 - 1e-12)
    half = half_width() * error
    counts = [_first_true(cumulative + z >= target) for z in (0, half, -half)]
    at = min(counts[0], len(cumulative)) - 1
    gap = _largest_gap(spectrum.fractions)
    note = f"{cumulative[at]:.1%} of the variance; largest gap after direction {gap}"
    if counts[0] > len(cumulative):
        note = f"lower bound: {len(cumulative)} directions explain only {cumulative[-1]:.1%}"
        return Dimension(Estimate(len(cumulative), counts[1], np.inf), "pca_dimension", note)
    high = np.inf if counts[2] > spectrum.max_rank else counts[2]
    return Dimension(Estimate(counts[0], counts[1], high), "pca_dimension", note)


def _largest_gap(fractions: Array, negligible: float = 1e-3) -> int:
    """Number of directions before the largest gap; fractions below `negligible` count as zero."""
    relevant = int((fractions > negligible).sum())
    return eigengap(np.maximum(fractions, negligible)[: relevant + 1], "largest")


def _first_true(enough: Any) -> int:
    """Position of the first true entry, from 1; one more than the length if there is none."""
    return int(np.argmax(enough)) + 1 if enough.any() else len(enough) + 1


def gram_rank(X: Any, *, fraction: float = 0.01) -> Dimension:
    """Count the eigenvalues of a Gram matrix that are more than 1 % of their sum.

    For a fitted Isomap this is the number of directions of the unrolled manifold; for classical MDS
    or PCA, of the data themselves; for kernel PCA, the number of coordinates that the kernel needs.
    For data, the Gram matrix is that of classical MDS.

    Parameters
    ----------
    X : fitted estimator, array, sparse matrix or frame, or NeighborGraph
        A fitted :class:`~manifoldry.ClassicalMDS`, :class:`~manifoldry.KernelPCA`,
        :class:`~manifoldry.Isomap` or :class:`~manifoldry.PCA`, whose ``computed_eigenvalues_``
        are counted; or data, or a graph with Euclidean distances, where duplicate rows count once.
    fraction : float, default=0.01
        An eigenvalue counts if it is more than this fraction of the sum of the positive ones. For a
        fitted estimator the sum is over the computed ones, so fit it with more components than
        expected.

    Returns
    -------
    Dimension
        For data, the interval follows from the standard errors of the fractions; for a fitted
        estimator there is none, since eigenvalues alone do not determine it.

    See Also
    --------
    pca_dimension : by the fraction of the variance.
    residual_variance_elbow : by the elbow of Isomap.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import gram_rank
    >>> X = make_swiss_roll(800, random_state=0).X
    >>> round(gram_rank(X)), round(gram_rank(Isomap(6).fit(X)))
    (3, 2)
    """
    check_below("fraction", check_positive("fraction", fraction), 1.0, "a fraction")
    if hasattr(X, "fit"):
        return _of_estimator(X, fraction)
    spectrum = DimensionInput.of(X).spectrum("gram_rank")
    half = half_width() * spectrum.errors
    count, low, high = (int((spectrum.fractions + z > fraction).sum()) for z in (0, -half, half))
    return Dimension(
        Estimate(count, low, high), "gram_rank", _note(spectrum.fractions, count, fraction)
    )


def _of_estimator(model: Any, fraction: float) -> Dimension:
    check_is_fitted(model)
    if not _is_gram(model):
        raise TypeError(
            f"{type(model).__name__} has no computed_eigenvalues_ of a Gram matrix; pass a fitted "
            "PCA, ClassicalMDS, KernelPCA or Isomap of manifoldry, or data"
        )
    values = np.maximum(model.computed_eigenvalues_, 0.0)
    whole = float(values.sum())
    fractions = np.sort(values)[::-1] / (whole if whole > 0 else 1.0)
    count = int((fractions > fraction).sum())
    note = _note(fractions, count, fraction)
    if count == len(fractions):
        note += "; lower bound: fit with more components"
    return Dimension(Estimate(count), "gram_rank", note)


def _is_gram(model: Any) -> bool:
    from manifoldry import PCA, ClassicalMDS, Isomap, KernelPCA

    return isinstance(model, PCA | ClassicalMDS | KernelPCA | Isomap)


def _note(fractions: Any, count: int, fraction: float) -> str:
    listed = ", ".join(f"{value:.1%}" for value in fractions[: count + 1][-4:])
    label = "fractions" if count < 4 else "last fractions"
    return f"eigenvalues above {fraction:.0%} of their sum; {label} {listed}"
