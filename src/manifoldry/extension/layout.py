"""Embeddings of disconnected graphs: position and scale of each connected component."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks, split_by_label


@dataclass(frozen=True, eq=False)
class ComponentGeometry:
    """Radii and centers of the connected components in the data."""

    radii: Array  # (n_connected,), root mean square distance from the center
    centers: Array  # (n_connected, n_dimensions)

    @classmethod
    def of_points(cls, X: Matrix, rows: list[IntArray]) -> "ComponentGeometry":
        """Compute them from the data."""
        centers = np.vstack([_center(X[row]) for row in rows])
        return cls(np.array([_radius(X[row]) for row in rows]), centers)

    @classmethod
    def of_distances(cls, D: Array, rows: list[IntArray]) -> "ComponentGeometry":
        """Compute them from all distances; centers are found by classical scaling."""
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
        """Equal radii and equally spaced centers, if distances are unknown."""
        return cls(np.ones(len(rows)), 4.0 * np.arange(len(rows))[:, None])


@dataclass(frozen=True, eq=False)
class Layout:
    """Connected component of every training point, and scale and position of each component.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Connected component of every training point: 0 for the largest, -1 for omitted points.
    scale : array of shape (n_connected,)
        Factor of the coordinates of each component.
    offset : array of shape (n_connected, n_components)
        Translation of each component.

    See Also
    --------
    Extension : places new points by it.
    manifoldry.spectral.Posed : its ``lay_out`` returns it.
    manifoldry.neighbors.DisconnectedPolicy : which components are embedded.

    Examples
    --------
    Two components, of which the second is twice as large and lies ten units to the right:

    >>> import numpy as np
    >>> from manifoldry.extension import Layout
    >>> labels = np.array([0, 0, 1, 1])
    >>> layout = Layout(labels, scale=np.array([1.0, 2.0]), offset=np.array([[0.0], [10.0]]))
    >>> layout.place(np.array([[-1.0], [1.0], [-1.0], [1.0]]), labels).ravel()
    array([-1.,  1.,  8., 12.])
    """

    labels: IntArray
    scale: Array
    offset: Array

    @classmethod
    def single(cls, labels: IntArray, n_components: int) -> "Layout":
        """Create the layout of a single component, which is not moved or scaled.

        Parameters
        ----------
        labels : array of shape (n_samples,)
            0 for the points of the component, -1 for omitted points.
        n_components : int
            Number of coordinates.

        Returns
        -------
        Layout
            The layout.
        """
        return cls(labels, np.ones(1), np.zeros((1, n_components)))

    @classmethod
    def lay_out(
        cls, labels: IntArray, Y: Array, geometry: ComponentGeometry, keep_size: bool = False
    ) -> "Layout":
        """Give every component the radius and relative position that it has in the data.

        Parameters
        ----------
        labels : array of shape (n_samples,)
            Connected component of every training point.
        Y : array of shape (n_samples, n_components)
            Coordinates within components.
        geometry : ComponentGeometry
            Radii and centers of the components in the data.
        keep_size : bool, default=False
            Whether components are moved but not scaled.

        Returns
        -------
        Layout
            The layout.
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
        preserves_scale: bool,
    ) -> "Layout":
        """Create the layout of any number of components; a single one is not moved or scaled.

        Parameters
        ----------
        labels : array of shape (n_samples,)
            Connected component of every training point.
        Y : array of shape (n_samples, n_components)
            Coordinates within components.
        geometry : callable
            Called with the rows of the components; returns their ComponentGeometry.
        preserves_scale : bool
            Whether coordinates have the scale of the data, so that components are not scaled.

        Returns
        -------
        Layout
            The layout.
        """
        if labels.max() == 0:
            return cls.single(labels, Y.shape[1])
        return cls.lay_out(labels, Y, geometry(component_rows(labels)), preserves_scale)

    def place(self, Y: Array, component: IntArray) -> Array:
        """Move and scale coordinates computed within components; component -1 gives NaN.

        Parameters
        ----------
        Y : array of shape (n, n_components)
            Coordinates within components.
        component : array of shape (n,)
            The component of each row, or -1.

        Returns
        -------
        array of shape (n, n_components)
            Coordinates in the embedding.
        """
        placed = Y * self.scale[component][:, None] + self.offset[component]
        placed[component < 0] = np.nan
        return placed


def component_labels(components: list[IntArray], n: int) -> IntArray:
    """Label of each of `n` points, given the rows of every component; -1 for other rows."""
    labels = np.full(n, -1, dtype=np.intp)
    for number, rows in enumerate(components):
        labels[rows] = number
    return labels


def component_rows(labels: IntArray) -> list[IntArray]:
    """Rows of every component, ordered by label."""
    return split_by_label(labels)


def _mean_squares(D: Array, rows: list[IntArray], unit: float) -> Array:
    """Mean squared distance between the points of every two components, in units of unit²."""
    member = np.concatenate(rows)
    component = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    fraction = 1 / np.bincount(component)[component]
    S = sparse.csr_array((fraction, (member, component)), shape=(len(D), len(rows)))  # averages
    mean = np.zeros((len(rows), len(rows)))
    for block in row_blocks(*D.shape):
        relative = np.divide(D[block], unit, dtype=np.float64)  # the unit may exceed float32
        mean += S[block].T @ (relative**2 @ S)
    return mean


def _center(X: Matrix) -> Array:
    if sparse.issparse(X):
        X = X.astype(np.float64)  # scipy ignores dtype for sparse means
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
    """Centers projected on their principal axes, padded with zeros."""
    U, s, _ = np.linalg.svd(centers - centers.mean(axis=0), full_matrices=False)
    kept = min(n_components, len(s))
    positions = np.zeros((len(centers), n_components))
    positions[:, :kept] = fixed_signs(U[:, :kept]) * s[:kept]
    return positions
