"""Metrics of a fitted model on held-out data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.resources import resources
from manifoldry.base.score import reconstruction_errors
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.exceptions import ExtensionWarning, warn
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.regressor import RegressorExtension
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import check_data


@on_device_of_arguments
def reconstruction(estimator: Any, X: Any) -> Estimate:
    """R² of the reconstruction of data from their embedding, with its confidence interval.

    R² = 1 − Σ‖x − inverse_transform(transform(x))‖² / Σ‖x − mean‖². On held-out data it compares
    methods, numbers of neighbors and numbers of coordinates; ``estimator.score`` returns the
    same value. It favors embeddings from which the data can be predicted, which are not always
    those that show their structure best: use :func:`coranking` as well.

    Parameters
    ----------
    estimator : fitted estimator with `transform` and `inverse_transform`
        From this package or another.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Data, at least two rows. Rows that the model does not embed count as reconstructed by the
        mean.

    Returns
    -------
    Estimate
        The interval accounts for the sampling of X; the model is fixed.

    See Also
    --------
    kernel_loss : how many coordinates of a spectral method to keep.
    stability : how far points move if the estimator is fitted again.

    Examples
    --------
    >>> from manifoldry import Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> X_new, _ = make_swiss_roll(200, random_state=1)
    >>> reconstruction(Isomap(2, n_neighbors=8).fit(X), X_new) > 0.99
    True
    >>> reconstruction(Isomap(1, n_neighbors=8).fit(X), X_new) < 0.95
    True
    """
    for needed in ("transform", "inverse_transform"):
        if not hasattr(estimator, needed):
            raise TypeError(
                f"{type(estimator).__name__} has no {needed}, which reconstruction needs; pass a "
                "fitted estimator first, then the data"
            )
    check_is_fitted(estimator)
    left, whole = reconstruction_errors(estimator, X)
    lost = _ratio(left, whole)
    return Estimate(1 - lost, 1 - lost.high, 1 - lost.low)


def _ratio(left: Array, whole: Array, per_point: float = 1.0) -> Estimate:
    """Σleft/Σwhole, with the standard error of a ratio estimated from the rows."""
    ratio = float(left.sum() / whole.sum())
    deviation = Estimate.of_mean((left - ratio * whole) / whole.mean())
    half = per_point * (deviation.high - deviation.low) / 2
    return Estimate(ratio, ratio - half, ratio + half)


@dataclass(frozen=True, eq=False)
class KernelLoss:
    """Error of reproducing a kernel among held-out points, for every number of coordinates.

    Intervals account for the sampling of the held-out points; the model is fixed. A point is part
    of many pairs, so they come from the means of the points, not of the pairs. If a few points
    dominate the mean, which is reported by a warning, intervals of losses extend from 0 to
    infinity.

    Parameters
    ----------
    losses : list of Estimate
        Mean of (K(x, y) − Σₖ ℓₖ vₖ(x) vₖ(y))² over pairs of different points (for LLE over all
        pairs with training points), relative to the mean of K(x, y)², for 0, 1, … n_components
        coordinates with eigenvalues ℓ and eigenfunctions v.
        A constant eigenfunction that the embedding leaves out (√degree of Laplacian eigenmaps and
        diffusion maps, the constant of LLE) is always part of the sum.
    kernel_rms : float
        Root mean square of K(x, y); losses times its square are the absolute losses.
    variance_ratios : list of Estimate
        Mean square of every eigenfunction among held-out points divided by that among training
        points: near 1 for a direction of the data, small for a coordinate fitted to noise or
        concentrated on a few training points, such as outliers of a narrow kernel.
    min_ratio : float
        Smallest variance ratio of a coordinate that `best_n_components` counts.

    See Also
    --------
    kernel_loss : computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import KernelPCA
    >>> from manifoldry.metrics import kernel_loss
    >>> X = np.random.default_rng(0).normal(size=(90, 20)) * ([9, 7] + 18 * [0.5])
    >>> found = kernel_loss(KernelPCA(3, kernel="linear").fit(X[:30]), X[30:])
    >>> [round(loss, 2) for loss in found.losses]  # with 0, 1, 2 and 3 coordinates
    [1.0, 0.2, 0.0, 0.0]
    >>> [round(ratio, 1) for ratio in found.variance_ratios]
    [1.7, 0.9, 0.6]
    """

    losses: list[Estimate]
    kernel_rms: float
    variance_ratios: list[Estimate]
    min_ratio: float = 0.5

    @property
    def best_n_components(self) -> int:
        """Number of leading coordinates whose variance ratio is at least `min_ratio`."""
        lost = [i for i, ratio in enumerate(self.variance_ratios) if ratio < self.min_ratio]
        return lost[0] if lost else len(self.variance_ratios)


@on_device_of_arguments
def kernel_loss(
    estimator: Any, X: Any, *, max_rows: int = 2000, random_state: RandomState = None
) -> KernelLoss:
    """Error of reproducing the estimator's kernel among held-out points by the coordinates.

    It is the generalization error of spectral embeddings: they minimize the same mean over all
    pairs of training points, including those of a point with itself. Kernels that depend on the
    training data are evaluated with both points new: degrees, means and bandwidths are sums over
    training points, two new points are neighbors if their distance is at most that of one of them
    to its k-th neighbor among the training points, and a geodesic between them leads through the
    training graph unless they are neighbors. The kernel of LLE is zero between two new points, so
    its loss is the mean over pairs of a held-out point and a training point.

    For the training loss pass the training data: their kernel is that of the fit. Pairs of a point
    with itself do not count, as they do not among held-out points; they do count for LLE, whose
    kernel μI − M consists mostly of them. Its training loss therefore depends on the constant
    μ, here the bound of the eigenvalues of M that ``equivalent_kernel`` uses; the held-out
    loss does not.

    Use it to choose the number of coordinates of *one* kernel: the losses show how much each
    coordinate lowers the error, and ``best_n_components`` counts the leading coordinates that
    keep their variance on held-out points. Do not minimize the loss: coordinates of a positive
    definite kernel are projections in its feature space, so every further one lowers the expected
    loss. Where it rises, the kernel is indefinite, such as those of neighbor graphs and of
    classical MDS of non-Euclidean distances, or the mean of a finite number of pairs differs from
    the expectation. The latter is most likely for a narrow kernel on training points, where
    the pairs that do not count hold most of it. Do not compare kernels or bandwidths by the loss
    either: a wide Gaussian is almost linear and easy to reproduce. ``best_n_components`` is not the
    dimension of the data: it counts directions in feature space beyond noise, of which a curved
    line already has many.

    Parameters
    ----------
    estimator : fitted PCA, ClassicalMDS, KernelPCA, Isomap, LLE, LaplacianEigenmaps, \
            DiffusionMaps, SpectralClustering or SpectralEmbedding
        The model, with the largest number of coordinates to consider. Not with
        ``normalization="none"``, whose kernel has a free constant, nor fitted on precomputed
        values. LTSA, Hessian LLE and the other methods have no kernel at pairs of new points.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Held-out data, at least 3 rows. Rows of connected components that the model does not
        embed are left out, with a warning.
    max_rows : int, default=2000
        Largest number of rows between which the kernel is computed; more are subsampled. With
        landmarks, Isomap needs the shortest paths from each of them.
    random_state : int, Generator or None, default=None
        Seed of the subsample.

    Returns
    -------
    KernelLoss
        The losses for 0, 1, … coordinates, and the number of coordinates to keep.

    See Also
    --------
    reconstruction : compares methods and parameters.
    manifoldry.estimate_dimension : the dimension of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import KernelPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 40)) * ([9, 7] + 38 * [0.5])  # two directions and noise
    >>> model = KernelPCA(10, kernel="linear").fit(X[:30])
    >>> found = kernel_loss(model, X[30:])
    >>> found.best_n_components, found.losses[2] < 0.01
    (2, True)
    """
    if not hasattr(estimator, "fit"):
        raise TypeError(
            f"the first argument is of type {type(estimator).__name__}, not an estimator; pass a "
            "fitted estimator first, then the data"
        )
    extension: Any = getattr(estimator, "extension_", None)
    if not hasattr(extension, "kernel_pairs"):
        check_is_fitted(estimator)
        reason = f"{type(estimator).__name__} has no kernel that is defined at new points"
        if isinstance(extension, RegressorExtension):
            reason = f"extension={extension.regressor!r} replaces the kernel of the estimator"
        raise TypeError(
            f"{reason}; pass a fitted PCA, ClassicalMDS, KernelPCA, Isomap, LLE, "
            "LaplacianEigenmaps, DiffusionMaps or SpectralClustering with extension=None first "
            "(of FromDensity, its estimator_), then the data"
        )
    data = check_data(estimator, X, reset=False)
    rows = np.arange(data.shape[0])
    if len(rows) > check_count("max_rows", max_rows, minimum=3):
        rng = as_generator(random_state, unset=0)
        rows = np.sort(rng.choice(len(rows), max_rows, replace=False))
    if np.isnan(estimator.embedding_).any():
        rows = rows[_embedded(extension, data[rows])]
    if len(rows) < 3:
        raise ValueError(f"X has {len(rows)} rows; kernel_loss needs at least 3")
    with resources(estimator):
        pairs = extension.kernel_pairs(data[rows])
    ratios = [Estimate.of_mean(squares) for squares in pairs.squares.T]
    return KernelLoss(*_losses(pairs, rows), ratios)


def _embedded(extension: Any, data: Matrix) -> IntArray:
    """Indices of the rows that are not of connected components which the model leaves out."""
    embedded = np.flatnonzero(np.isfinite(extension.transform(data)).all(axis=1))
    left_out = data.shape[0] - len(embedded)
    if left_out:
        warn(
            f"{left_out} of {data.shape[0]} rows of X belong to connected components that the "
            "model does not embed, and are left out of the loss",
            ExtensionWarning,
        )
    return embedded


def _losses(pairs: KernelPairs, rows: IntArray) -> tuple[list[Estimate], float]:
    """Relative losses for 0, 1, … coordinates, and the root mean square of the kernel."""
    _check_finite(pairs, rows)
    largest = float(np.abs(pairs.kernel).max())
    counted = np.ones(pairs.kernel.shape, dtype=bool)
    if pairs.symmetric:
        np.fill_diagonal(counted, False)
    if not pairs.kernel[counted].any():
        raise ValueError(
            "the kernel is zero between all pairs of rows of X, so the relative loss is undefined; "
            "pass more rows"
        )
    joined = True if pairs.components is None else np.equal.outer(*pairs.components)
    K, left = pairs.kernel / largest * joined, pairs.left / largest
    whole = _of_points(K, counted)
    losses = [Estimate(1.0)]
    # Each pair of new points counts in the means of two points, which doubles the error.
    per_point = 2.0 if pairs.symmetric else 1.0
    dominated = _warn_if_dominated(whole, rows)
    if pairs.omitted is not None:
        K -= np.outer(pairs.omitted[0] / largest, pairs.omitted[1]) * joined
        losses = [_ratio(_of_points(K, counted), whole, per_point)]
    for one, other in zip(left.T, pairs.right.T, strict=True):
        K -= np.outer(one, other) * joined
        losses.append(_ratio(_of_points(K, counted), whole, per_point))
    if dominated:
        losses = [each if each.exact else Estimate(each, 0.0, np.inf) for each in losses]
    return losses, float(np.sqrt(whole.mean())) * largest * pairs.unit**2


def _check_finite(pairs: KernelPairs, rows: IntArray) -> None:
    bad = np.argwhere(~np.isfinite(pairs.kernel))
    if len(bad):
        i, j = rows[bad[0]]
        raise ValueError(
            f"the kernel between rows {i} and {j} of X overflows, because they are so far from the "
            "training points that their weights vanish; remove rows that are far from the training "
            "points"
        )


def _warn_if_dominated(whole: Array, rows: IntArray) -> bool:
    """Whether two to five points have most of the sum of the squared kernel.

    Another sample might not contain such points at all, so no interval can be estimated.
    """
    few = min(max(2, len(rows) // 20), 5)
    heaviest = np.argsort(-whole, kind="stable")[:few]
    share = np.cumsum(whole[heaviest]) / whole.sum()
    if share[-1] <= (1 + few / len(rows)) / 2:  # halfway between that of equal points and 1
        return False
    count = int(np.searchsorted(share, 0.9 * share[-1])) + 1
    named = ", ".join(map(str, np.sort(rows[heaviest[:count]])))
    warn(
        f"{count} of {len(rows)} rows ({named} of X) have {share[count - 1]:.0%} of the sum of the "
        "squared kernel, so the losses are mostly theirs, and no interval can be estimated; remove "
        "these rows if they are far from the training points, otherwise pass more rows",
        ExtensionWarning,
    )
    return True


def _of_points(K: Array, counted: Any) -> Array:
    """Mean squared kernel over the pairs of each point."""
    return np.asarray((K**2).mean(axis=1, where=counted))
