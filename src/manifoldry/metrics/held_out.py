"""Metrics of a fitted model on held-out data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.score import reconstruction_errors
from manifoldry.extension.regressor import RegressorExtension
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import check_data


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
    return _one_minus_ratio(left, whole)


def _one_minus_ratio(left: Array, whole: Array, per_point: float = 1.0) -> Estimate:
    """1 − Σleft/Σwhole, with the standard error of a ratio estimated from the rows."""
    ratio = float(left.sum() / whole.sum())
    deviation = Estimate.of_mean((left - ratio * whole) / whole.mean())
    half = per_point * (deviation.high - deviation.low) / 2
    return Estimate(1 - ratio, 1 - ratio - half, 1 - ratio + half)


@dataclass(frozen=True, eq=False)
class KernelLoss:
    """Error of reproducing a kernel among held-out points, for every number of coordinates.

    Parameters
    ----------
    losses : list of Estimate
        Mean of (K(x, y) − Σ z_k(x) z_k(y))² over pairs of different points, relative to the mean
        of K(x, y)², for 0, 1, … n_components coordinates.
    variance_ratios : list of Estimate
        Variance of every coordinate among held-out points divided by that among training points:
        near 1 for a direction of the data, small for a coordinate fitted to noise.
    min_ratio : float
        Smallest variance ratio of a coordinate that `best_n_components` counts.
    """

    losses: list[Estimate]
    variance_ratios: list[Estimate]
    min_ratio: float = 0.5

    @property
    def best_n_components(self) -> int:
        """Number of leading coordinates whose variance ratio is at least `min_ratio`."""
        lost = [i for i, ratio in enumerate(self.variance_ratios) if ratio < self.min_ratio]
        return lost[0] if lost else len(self.variance_ratios)


def kernel_loss(
    estimator: Any, X: Any, *, max_rows: int = 2000, random_state: RandomState = None
) -> KernelLoss:
    """Error of reproducing the estimator's kernel among held-out points by the coordinates.

    Use it to choose the number of coordinates of *one* kernel: the losses show how much each
    coordinate lowers the error, and ``best_n_components`` counts the leading coordinates that
    keep their variance on held-out points. Do not minimize the loss: coordinates of a positive
    definite kernel are projections in its feature space, so every further one lowers the loss;
    it can rise only for indefinite kernels, such as classical MDS of non-Euclidean distances. Do
    not compare kernels or bandwidths by it either: a wide Gaussian is almost linear and easy to
    reproduce. ``best_n_components`` is not the dimension of the data: it counts directions in
    feature space beyond noise, of which a curved line already has many.

    Parameters
    ----------
    estimator : fitted PCA, ClassicalMDS or KernelPCA
        The model, with the largest number of coordinates to consider.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Held-out data.
    max_rows : int, default=2000
        Largest number of rows between which the kernel is computed; more are subsampled.
    random_state : int, Generator or None, default=None
        Seed of the subsample.

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
    kernel: Any = getattr(estimator, "extension_", None)
    if not hasattr(kernel, "among"):
        check_is_fitted(estimator)
        reason = f"{type(estimator).__name__} has no kernel between new points"
        if isinstance(kernel, RegressorExtension):
            reason = f"extension={kernel.regressor!r} replaces the kernel of the estimator"
        raise TypeError(
            f"{reason}; pass a fitted PCA, ClassicalMDS or KernelPCA with extension=None first, "
            "then the data"
        )
    data = check_data(estimator, X, reset=False)
    if data.shape[0] < 3:
        raise ValueError(f"X has {data.shape[0]} rows; kernel_loss needs at least 3")
    if data.shape[0] > check_count("max_rows", max_rows, minimum=3):
        rng = as_generator(random_state, unset=0)
        data = data[np.sort(rng.choice(data.shape[0], max_rows, replace=False))]
    Z = kernel.transform(data) / kernel.unit
    return KernelLoss(
        _losses(kernel.among(data), Z), _variance_ratios(Z, estimator.embedding_ / kernel.unit)
    )


def _variance_ratios(Z: Array, training: Array) -> list[Estimate]:
    """Held-out over training variance of each coordinate; 0 if the latter is 0."""
    sizes = np.square(training, dtype=np.float64).mean(axis=0)
    fractions = np.divide(Z**2, sizes, out=np.zeros_like(Z), where=sizes > 0)
    return [Estimate.of_mean(fraction) for fraction in fractions.T]


def _losses(K: Array, Z: Array) -> list[Estimate]:
    others = ~np.eye(len(K), dtype=bool)
    whole = _of_points(K, others)
    if not whole.any():
        raise ValueError(
            "the kernel is zero between all pairs of rows of X, so the relative loss is undefined"
        )
    losses = [Estimate(1.0)]
    for z in Z.T:
        K = K - np.outer(z, z)
        # Each pair contributes to the means of two points, which doubles the error of the mean.
        kept = _one_minus_ratio(_of_points(K, others), whole, per_point=2.0)
        losses.append(Estimate(1 - kept, 1 - kept.high, 1 - kept.low))
    return losses


def _of_points(K: Array, others: Any) -> Array:
    """Mean squared kernel over the pairs of each point."""
    return np.asarray((K**2).mean(axis=1, where=others))
