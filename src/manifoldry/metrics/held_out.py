"""How well a fitted model does on data it has not seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.score import reconstruction_errors
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState
from manifoldry.util.validation import check_data


def reconstruction(estimator: Any, X: Any) -> Estimate:
    """R² of data that go to the map and back, with its confidence interval.

    Σ‖x − inverse_transform(transform(x))‖² is compared with Σ‖x − mean‖². On held-out data this
    is the one figure that compares methods, numbers of neighbors and of coordinates with each
    other; it is what ``estimator.score`` returns. It rewards maps from which the data can be
    computed, which need not be those that show their structure best: look at
    :func:`coranking` beside it.

    Parameters
    ----------
    estimator : fitted estimator with `transform` and `inverse_transform`
        From this package or another.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Data, two rows at least. Rows that the model leaves off its map count as if they came back
        as the mean.

    Returns
    -------
    Estimate
        The interval is about other data of the same kind, given this model.

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
                f"{type(estimator).__name__} has no {needed}, which this figure needs; pass the "
                "fitted estimator first, then the data"
            )
    check_is_fitted(estimator)
    left, whole = reconstruction_errors(estimator, X)
    return _one_minus_ratio(left, whole)


def _one_minus_ratio(left: Array, whole: Array, per_point: float = 1.0) -> Estimate:
    """1 − Σleft/Σwhole; its error from how the rows deviate from that ratio."""
    ratio = float(left.sum() / whole.sum())
    deviation = Estimate.of_mean((left - ratio * whole) / whole.mean())
    half = per_point * (deviation.high - deviation.low) / 2
    return Estimate(1 - ratio, 1 - ratio - half, 1 - ratio + half)


@dataclass(frozen=True, eq=False)
class KernelLoss:
    """What is left of a kernel among held-out points, for every number of coordinates.

    Parameters
    ----------
    losses : list of Estimate
        Mean of (K(x, y) − Σ z_k(x) z_k(y))² over pairs of different points, relative to the mean
        of K(x, y)², for 0, 1, … n_components coordinates.
    variance_ratios : list of Estimate
        Variance of every coordinate among held-out points over that among training points: near
        1 where it shows a direction of the data, small where it fits chance.
    min_ratio : float
        Fraction of its variance that a coordinate must keep to count.
    """

    losses: list[Estimate]
    variance_ratios: list[Estimate]
    min_ratio: float = 0.5

    @property
    def best_n_components(self) -> int:
        """How many leading coordinates keep half of their variance on held-out points."""
        lost = [i for i, fraction in enumerate(self.variance_ratios) if fraction < self.min_ratio]
        return lost[0] if lost else len(self.variance_ratios)


def kernel_loss(
    estimator: Any, X: Any, *, max_rows: int = 2000, random_state: RandomState = None
) -> KernelLoss:
    """How well coordinates reproduce the method's own kernel among points it has not seen.

    Use it to choose the number of coordinates of *one* kernel: how much each of them lowers the
    loss, and whether it keeps its variance beyond the training points (``best`` counts those that
    do). The loss alone cannot choose: coordinates of a positive definite kernel are projections in
    its feature space, so that every further one lowers the loss, if ever so little; only with
    indefinite kernels, as classical MDS of other than Euclidean distances has, may it rise. And
    it must not choose the kernel or its width: the wider a Gaussian, the nearer to linear and the
    easier to reproduce. Nor does ``best`` tell the dimension of the data: it counts directions in
    the kernel's feature space that are more than chance, of which a curved line has many already.

    Parameters
    ----------
    estimator : fitted PCA, ClassicalMDS or KernelPCA
        The model, with as many coordinates as are in question.
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Held-out data.
    max_rows : int, default=2000
        Rows of which the kernel is taken pair by pair, at most; of more they are drawn at random.
    random_state : int, Generator or None, default=None
        Seed of that.

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
        raise TypeError(
            f"{type(estimator).__name__} has no kernel between new points; "
            "pass a fitted PCA, ClassicalMDS or KernelPCA first, then the data"
        )
    data = check_data(estimator, X, reset=False)
    if data.shape[0] < 3:
        raise ValueError(f"X has {data.shape[0]} rows; at least 3 are needed for pairs of them")
    if data.shape[0] > check_count("max_rows", max_rows, minimum=3):
        rng = as_generator(random_state, unset=0)
        data = data[np.sort(rng.choice(data.shape[0], max_rows, replace=False))]
    Z = kernel.transform(data) / kernel.unit
    return KernelLoss(
        _losses(kernel.among(data), Z), _variance_ratios(Z, estimator.embedding_ / kernel.unit)
    )


def _variance_ratios(Z: Array, training: Array) -> list[Estimate]:
    """Variance of held-out coordinates over that of training ones; 0 for coordinates of none."""
    sizes = np.square(training, dtype=np.float64).mean(axis=0)
    fractions = np.divide(Z**2, sizes, out=np.zeros_like(Z), where=sizes > 0)
    return [Estimate.of_mean(fraction) for fraction in fractions.T]


def _losses(K: Array, Z: Array) -> list[Estimate]:
    others = ~np.eye(len(K), dtype=bool)
    whole = _of_points(K, others)
    if not whole.any():
        raise ValueError("the kernel is zero among these points; there is nothing to reproduce")
    losses = [Estimate(1.0)]
    for z in Z.T:
        K = K - np.outer(z, z)
        # Each point is in two of the means over pairs that a pair adds to, hence the factor.
        kept = _one_minus_ratio(_of_points(K, others), whole, per_point=2.0)
        losses.append(Estimate(1 - kept, 1 - kept.high, 1 - kept.low))
    return losses


def _of_points(K: Array, others: Any) -> Array:
    """Mean square over each point's pairs."""
    return np.asarray((K**2).mean(axis=1, where=others))
