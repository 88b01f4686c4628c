"""Procrustes analysis: align two embeddings of the same points and measure the difference."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length

from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.pair import read_embedding
from manifoldry.util.checks import check_option
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Alignment:
    """Least-squares transformation of one embedding onto another.

    It is fitted on points that both embeddings contain and can be applied to further points.

    Parameters
    ----------
    source, target : arrays of shape (n_components,) and (n_target,)
        Means of the points it was fitted on, before and after the transformation.
    matrix : array of shape (n_components, n_target)
        Linear part, for points divided by `source_unit`; its result is multiplied by
        `target_unit`.
    source_unit, target_unit : float
        Scales of the embeddings, which prevent overflow and underflow.

    See Also
    --------
    procrustes : fits one and applies it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import Alignment
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> alignment = Alignment.fit(X[:40], 3 * X[:40, ::-1] + 5, transformation="similarity")
    >>> np.allclose(alignment.apply(X[40:]), 3 * X[40:, ::-1] + 5)
    True
    """

    source: Array
    target: Array
    matrix: Array
    source_unit: float
    target_unit: float

    @classmethod
    def fit(cls, embedding: Array, target: Array, transformation: str = "similarity") -> Self:
        """Fit the transformation that takes each row of `embedding` to that of `target`.

        Parameters
        ----------
        embedding, target : arrays of shape (n_samples, n_components) and (n_samples, n_target)
            Finite points before and after.
        transformation : {"rigid", "similarity", "affine"}, default="similarity"
            Rotation, reflection and translation; these and a uniform scaling; or any affine map.

        Returns
        -------
        Alignment
            The transformation.
        """
        check_option("transformation", transformation, ALIGNMENTS)
        source, goal = embedding.mean(axis=0), target.mean(axis=0)
        Y, T = embedding - source, target - goal
        units = power_of_two_scale(Y), power_of_two_scale(T)
        Y, T = Y / units[0], T / units[1]
        return cls(source, goal, *_FITS[transformation](Y, T, units))

    def apply(self, embedding: Array) -> Array:
        """Transform points.

        Parameters
        ----------
        embedding : array of shape (n_samples, n_components)
            Points of the embedding that was aligned; NaN stays NaN.

        Returns
        -------
        array of shape (n_samples, n_target)
            The points after the transformation.
        """
        turned = ((embedding - self.source) / self.source_unit) @ self.matrix
        return np.asarray(turned * self.target_unit + self.target)


Units = tuple[float, float]
Fitted = tuple[Array, float, float]  # matrix, source unit, target unit


def _affine(Y: Array, T: Array, units: Units) -> Fitted:
    return np.linalg.lstsq(Y, T, rcond=None)[0], *units


def _similar(Y: Array, T: Array, units: Units) -> Fitted:
    return _scaled_rotation(Y.T @ Y, Y.T @ T, scale=True), *units


def _rigid(Y: Array, T: Array, units: Units) -> Fitted:
    """Fit a rotation with the same unit for both, since a rigid map must not change the scale."""
    unit = max(units)
    Y, T = Y * (units[0] / unit), T * (units[1] / unit)
    return _scaled_rotation(Y.T @ Y, Y.T @ T, scale=False), 1.0, 1.0


_FITS = {"rigid": _rigid, "similarity": _similar, "affine": _affine}
ALIGNMENTS = tuple(_FITS)


def _scaled_rotation(
    YY: Array, YT: Array, scale: bool, *, max_iter: int = 1000, tol: float = 1e-12
) -> Array:
    """The matrix c·R with R orthogonal and c a scale that minimizes ‖c·Y R − T‖, from YᵀY and YᵀT.

    If Y has more columns than T, R has orthonormal columns and there is no closed form. Then T is
    completed by the remaining columns of the current Y R and R is fitted again, which never
    increases the error, until R changes by less than `tol`.
    """
    p, q = YT.shape
    if p <= q:
        U, singular_values, Vt = np.linalg.svd(YT, full_matrices=False)
        size = float(np.trace(YY))
        return np.asarray((singular_values.sum() / size if scale and size > 0 else 1.0) * U @ Vt)
    R = _nearest_rotation(np.hstack([YT, np.zeros((p, p - q))]))
    factor = 1.0
    for _ in range(max_iter):
        factor = _factor(YY, YT, R[:, :q]) if scale else 1.0
        before, R = R, _nearest_rotation(np.hstack([YT, factor * YY @ R[:, q:]]))
        if np.abs(R - before).max() < tol:
            break
    return (_factor(YY, YT, R[:, :q]) if scale else 1.0) * R[:, :q]


def _nearest_rotation(C: Array) -> Array:
    U, _, Vt = np.linalg.svd(C)
    return np.asarray(U @ Vt)


def _factor(YY: Array, YT: Array, R: Array) -> float:
    """The best scale for a given rotation."""
    size = float(np.trace(R.T @ YY @ R))
    return float(np.trace(R.T @ YT)) / size if size > 0 else 1.0


def spread_of(Y: Array) -> float:
    """Root mean squared distance of the embedded points from their mean."""
    embedded = Y[np.isfinite(Y).all(axis=1)]
    if len(embedded) == 0:
        raise ValueError("all rows of the embedding are NaN, so it cannot be compared")
    if not np.ptp(embedded, axis=0).any():
        raise ValueError(
            f"all {len(embedded)} embedded points coincide, so the embedding has no scale"
        )
    offsets = embedded - embedded.mean(axis=0)
    unit = power_of_two_scale(offsets)  # against overflow and underflow of squares
    return unit * float(np.sqrt(((offsets / unit) ** 2).sum(axis=1).mean()))


def fit_alignment(Y: Array, target: Array, transformation: str) -> Alignment:
    """Align one embedding with another by the points that both contain."""
    common = np.isfinite(Y).all(axis=1) & np.isfinite(target).all(axis=1)
    needed = target.shape[1] + 2  # an affine map fits one point fewer exactly
    if common.sum() < needed:
        raise ValueError(
            f"{common.sum()} points are in both embeddings, but aligning them needs at least "
            f"{needed}; fit on more points"
        )
    return Alignment.fit(Y[common], target[common], transformation)


def distances(Y: Array, target: Array, unit: float) -> Array:
    """Distance of each point to its position in another embedding, NaN unless it is in both."""
    return np.asarray(np.linalg.norm((Y - target) / unit, axis=1))


def mean_estimate(values: Array, least: float = -np.inf) -> Estimate:
    """Mean of independent values with Student's confidence interval; NaN values are ignored.

    The interval is cut off at `least`, the smallest possible value.
    """
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return Estimate(np.nan)
    return Estimate.of_mean(values, within=(least, np.inf))


@dataclass(frozen=True, eq=False)
class Procrustes:
    """Result of :func:`procrustes`.

    Parameters
    ----------
    aligned : array of shape (n_samples, n_target)
        The embedding after alignment.
    error : float
        ‖aligned − target‖ divided by the norm of the centered target: 0 for a perfect match, 1 if
        the mean of the target fits as well.
    alignment : Alignment
        The transformation; its ``apply`` transforms further points of the same embedding.

    See Also
    --------
    procrustes : computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> from manifoldry.metrics import procrustes
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) * [3, 1]
    >>> found = procrustes(PCA(2).fit(X), X)  # the data, rotated and centered
    >>> bool(found.error < 1e-12), np.allclose(found.aligned, X)
    (True, True)
    >>> found.alignment.apply(np.zeros((1, 2))).shape
    (1, 2)
    """

    aligned: Array
    error: float
    alignment: Alignment


@on_device_of_arguments
def procrustes(embedding: Any, target: Any, transformation: str = "similarity") -> Procrustes:
    """Align an embedding with another one of the same points by least squares.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The embedding to transform.
    target : array of shape (n_samples, n_target), or a fitted estimator
        The embedding to align with, for example the true coordinates of a manifold. If it has
        fewer columns, the embedding is rotated and projected. Rows of NaN in either are ignored.
    transformation : {"rigid", "similarity", "affine"}, default="similarity"
        Rotation, reflection and translation; these and a uniform scaling; or any affine map.

    Returns
    -------
    Procrustes
        The aligned embedding, its relative error, and the transformation for further points.

    See Also
    --------
    Alignment : the transformation alone.
    manifoldry.compare : aligns several embeddings with one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import procrustes
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> turned = 3 * X[:, ::-1] + 5
    >>> procrustes(turned, X).error < 1e-12, procrustes(turned, X, "rigid").error > 1
    (True, True)
    """
    Y, T = read_embedding(embedding), read_embedding(target)
    check_consistent_length(Y, T)
    common = ~np.isnan(Y).any(axis=1) & ~np.isnan(T).any(axis=1)
    if common.sum() < 2:
        raise ValueError(
            f"{common.sum()} points are in both embeddings (not NaN); at least 2 are needed"
        )
    alignment = Alignment.fit(Y[common], T[common], transformation)
    moved, Y, T = alignment.apply(Y), Y[common], T[common]
    unit = power_of_two_scale(T - alignment.target)  # against overflow and underflow of squares
    spread = float(np.linalg.norm((T - alignment.target) / unit))
    left = float(np.linalg.norm((moved[common] - T) / unit))
    return Procrustes(moved, left / spread if spread > 0 else float(left > 0), alignment)
