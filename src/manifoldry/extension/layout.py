"""Maps made of several components, one per connected component of the neighbor graph."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks, split_by_label


@dataclass(frozen=True, eq=False)
class ComponentGeometry:
    """Where the components lie in the data: how large they are and how far apart their centers."""

    radii: Array  # (n_components,), root mean square distance from the center
    centers: Array  # (n_components, n_dimensions)

    @classmethod
    def of_points(cls, X: Matrix, rows: list[IntArray]) -> "ComponentGeometry":
        """From the data themselves."""
        centers = np.vstack([_center(X[row]) for row in rows])
        return cls(np.array([_radius(X[row]) for row in rows]), centers)

    @classmethod
    def of_distances(cls, D: Array, rows: list[IntArray]) -> "ComponentGeometry":
        """From all distances: centers are where classical scaling of their distances puts them."""
        unit = power_of_two_scale(D)
        mean = _mean_squares(D, rows, unit)
        squared_radii = np.diag(mean) / 2
        between = mean - squared_radii[:, None] - squared_radii[None, :]
        H = np.eye(len(rows)) - 1 / len(rows)
        values, vectors = np.linalg.eigh(-0.5 * H @ between @ H)
        centers = vectors * np.sqrt(np.maximum(values, 0)) * unit
        return cls(np.sqrt(squared_radii) * unit, centers)

    @classmethod
    def unknown(cls, rows: list[IntArray]) -> "ComponentGeometry":
        """Nothing is known about distances between components: side by side, in a common size."""
        return cls(np.ones(len(rows)), 4.0 * np.arange(len(rows))[:, None])


@dataclass(frozen=True, eq=False)
class Layout:
    """Which component every training point belongs to, and where each component lies on the map.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Component of every training point, 0 being the largest; -1 where a point was left out.
    scale : array of shape (n_components,)
        Factor on the coordinates of each component.
    offset : array of shape (n_components, n_components)
        Position of each component.
    """

    labels: IntArray
    scale: Array
    offset: Array

    @classmethod
    def single(cls, labels: IntArray, n_components: int) -> "Layout":
        """One component, left as it is."""
        return cls(labels, np.ones(1), np.zeros((1, n_components)))

    @classmethod
    def lay_out(
        cls, labels: IntArray, Y: Array, geometry: ComponentGeometry, keep_size: bool = False
    ) -> "Layout":
        """Give every component the size, and the position relative to others, it has in the data.

        With `keep_size` components are only moved: their coordinates are lengths already.
        """
        rows = component_rows(labels)
        radius = np.array([_radius(Y[row]) for row in rows])
        center = np.vstack([Y[row].mean(axis=0) for row in rows])
        scale = np.where(radius > 0, geometry.radii / np.where(radius > 0, radius, 1.0), 0.0)
        scale = np.ones(len(rows)) if keep_size else scale
        position = _principal_positions(geometry.centers, Y.shape[1])
        return cls(labels, scale, position - scale[:, None] * center)

    @classmethod
    def of(
        cls,
        labels: IntArray,
        Y: Array,
        geometry: Callable[[list[IntArray]], ComponentGeometry],
        has_lengths: bool,
    ) -> "Layout":
        """Components where `geometry` says they lie; a single one is left as it is."""
        if labels.max() == 0:
            return cls.single(labels, Y.shape[1])
        return cls.lay_out(labels, Y, geometry(component_rows(labels)), has_lengths)

    def place(self, Y: Array, component: IntArray) -> Array:
        """Put coordinates computed within components into the common map; component -1 gives NaN."""
        placed = Y * self.scale[component][:, None] + self.offset[component]
        placed[component < 0] = np.nan
        return placed


def component_labels(components: list[IntArray], n: int) -> IntArray:
    """Component of each of `n` points from the rows of every component; -1 for rows in none."""
    labels = np.full(n, -1, dtype=np.intp)
    for number, rows in enumerate(components):
        labels[rows] = number
    return labels


def component_rows(labels: IntArray) -> list[IntArray]:
    """Rows of every component in the order of their labels."""
    return split_by_label(labels)


def _mean_squares(D: Array, rows: list[IntArray], unit: float) -> Array:
    """Mean squared distance, in units of `unit`, between the points of every two components."""
    member = np.concatenate(rows)
    component = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    fraction = 1 / np.bincount(component)[component]
    S = sparse.csr_array((fraction, (member, component)), shape=(len(D), len(rows)))  # averages
    mean = np.zeros((len(rows), len(rows)))
    for block in row_blocks(*D.shape):
        mean += S[block].T @ ((D[block] / unit) ** 2 @ S)
    return mean


def _center(X: Matrix) -> Array:
    if sparse.issparse(X):
        X = X.astype(np.float64)  # scipy sums in the precision of the data, whatever it is told
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def _radius(X: Matrix) -> float:
    """Root mean square distance from the center."""
    center = _center(X)
    blocks = row_blocks(*X.shape)
    unit = max(power_of_two_scale(_centered(X[block], center)) for block in blocks)
    inertia = sum(((_centered(X[block], center) / unit) ** 2).sum() for block in blocks)
    return float(np.sqrt(inertia / X.shape[0]) * unit)


def _centered(X: Matrix, center: Array) -> Array:
    return np.asarray((X.toarray() if sparse.issparse(X) else X) - center)


def _principal_positions(centers: Array, n_components: int) -> Array:
    """Centers projected on their own principal axes, padded with zeros."""
    U, s, _ = np.linalg.svd(centers - centers.mean(axis=0), full_matrices=False)
    kept = min(n_components, len(s))
    positions = np.zeros((len(centers), n_components))
    positions[:, :kept] = fixed_signs(U[:, :kept]) * s[:kept]
    return positions
