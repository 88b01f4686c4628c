"""Metrics of a fitted model on held-out data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.score import reconstruction_errors
from manifoldry.exceptions import ExtensionWarning, warn
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.regressor import RegressorExtension
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.threads import threads_allowed
from manifoldry.util.typing import Array, Matrix, RandomState
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
    of many pairs, so they come from the means of the points, not of the pairs.

    Parameters
    ----------
    losses : list of Estimate
        Mean of (K(x, y) − Σₖ ℓₖ vₖ(x) vₖ(y))² over pairs of different points, relative to the mean
        of K(x, y)², for 0, 1, … n_components coordinates with eigenvalues ℓ and eigenfunctions v.
        A constant eigenfunction that the embedding leaves out (√degree of Laplacian eigenmaps and
        diffusion maps, the constant of LLE) is always part of the sum.
    kernel_rms : float
        Root mean square of K(x, y); losses times its square are the absolute losses.
    variance_ratios : list of Estimate
        Mean square of every eigenfunction among held-out points divided by that among training
        points: near 1 for a direction of the data, small for a coordinate fitted to noise.
    min_ratio : float
        Smallest variance ratio of a coordinate that `best_n_components` counts.
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


def kernel_loss(
    estimator: Any, X: Any, *, max_rows: int = 2000, random_state: RandomState = None
) -> KernelLoss:
    """Error of reproducing the estimator's kernel among held-out points by the coordinates.

    It is the generalization error of spectral embeddings: they minimize the same mean over pairs
    of training points. Kernels that depend on the training data are evaluated with both points
    new: degrees, means and bandwidths are sums over training points, two new points are neighbors
    if their distance is at most that of one of them to its k-th neighbor among the training
    points, and a geodesic between them leads through the training graph unless they are
    neighbors. The kernel of LLE is zero between two new points, so its loss is the mean over
    pairs of a held-out point and a training point. For the training loss pass the training data:
    their kernel is that of the fit, and pairs of a point with itself do not count.

    Use it to choose the number of coordinates of *one* kernel: the losses show how much each
    coordinate lowers the error, and ``best_n_components`` counts the leading coordinates that
    keep their variance on held-out points. Do not minimize the loss: coordinates of a positive
    definite kernel are projections in its feature space, so every further one lowers the loss;
    it can rise only for indefinite kernels, such as those of neighbor graphs and of classical
    MDS of non-Euclidean distances. Do
    not compare kernels or bandwidths by it either: a wide Gaussian is almost linear and easy to
    reproduce. ``best_n_components`` is not the dimension of the data: it counts directions in
    feature space beyond noise, of which a curved line already has many.

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
    extension: Any = getattr(estimator, "extension_", None)
    if not hasattr(extension, "kernel_pairs"):
        check_is_fitted(estimator)
        reason = f"{type(estimator).__name__} has no kernel that is defined at new points"
        if isinstance(extension, RegressorExtension):
            reason = f"extension={extension.regressor!r} replaces the kernel of the estimator"
        raise TypeError(
            f"{reason}; pass a fitted PCA, ClassicalMDS, KernelPCA, Isomap, LLE, "
            "LaplacianEigenmaps, DiffusionMaps or SpectralClustering with extension=None first, "
            "then the data"
        )
    data = check_data(estimator, X, reset=False)
    if data.shape[0] > check_count("max_rows", max_rows, minimum=3):
        rng = as_generator(random_state, unset=0)
        data = data[np.sort(rng.choice(data.shape[0], max_rows, replace=False))]
    if np.isnan(estimator.embedding_).any():
        data = _embedded_rows(extension, data)
    if data.shape[0] < 3:
        raise ValueError(f"X has {data.shape[0]} rows; kernel_loss needs at least 3")
    with threads_allowed(getattr(estimator, "n_jobs", None)):
        pairs = extension.kernel_pairs(data)
    ratios = [Estimate.of_mean(squares) for squares in pairs.squares.T]
    return KernelLoss(*_losses(pairs), ratios)


def _embedded_rows(extension: Any, data: Matrix) -> Matrix:
    """The rows that have coordinates, if the model leaves connected components out."""
    embedded = np.flatnonzero(np.isfinite(extension.transform(data)).all(axis=1))
    left_out = data.shape[0] - len(embedded)
    if left_out:
        warn(
            f"{left_out} of {data.shape[0]} rows of X belong to connected components that the "
            "model does not embed, and are left out of the loss",
            ExtensionWarning,
        )
    return data[embedded]


def _losses(pairs: KernelPairs) -> tuple[list[Estimate], float]:
    """Relative losses for 0, 1, … coordinates, and the root mean square of the kernel."""
    largest = float(np.abs(pairs.kernel).max())
    counted = np.arange(pairs.kernel.shape[1]) != pairs.itself[:, None]
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
    if pairs.omitted is not None:
        K -= np.outer(pairs.omitted[0] / largest, pairs.omitted[1]) * joined
        losses = [_ratio(_of_points(K, counted), whole, per_point)]
    for one, other in zip(left.T, pairs.right.T, strict=True):
        K -= np.outer(one, other) * joined
        losses.append(_ratio(_of_points(K, counted), whole, per_point))
    return losses, float(np.sqrt(whole.mean())) * largest * pairs.unit**2


def _of_points(K: Array, counted: Any) -> Array:
    """Mean squared kernel over the pairs of each point."""
    return np.asarray((K**2).mean(axis=1, where=counted))
