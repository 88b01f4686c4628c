"""Extensions of methods based on distances: Gower's formula and triangulation."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from manifoldry.device import say_on_cpu
from manifoldry.extension.base import Extension, KernelExtension, Nystrom
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.base import UNKNOWN_AMONG
from manifoldry.neighbors.distances import Frame, metric_distances, squared_distances
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.cached import cached_property
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class DistancesToTraining:
    """Distances between new points and training points, computed or passed by the user."""

    n_train: int
    X: Matrix | None
    metric: Any
    metric_params: dict[str, Any] = field(default_factory=dict)

    def matrix(self, X: Matrix) -> Array:
        """Distances, (n_new, n_train)."""
        if self.X is None:
            return np.array(X, dtype=np.float64)
        why = "only those of nearest neighbors are computed there"
        say_on_cpu("the distances of all pairs of points", why, float(X.shape[0]) * self.n_train)
        if isinstance(self.metric, str) and self.metric == "euclidean":
            D2 = squared_distances(X, self.X, self._frame, accuracy=1e-12)
            return np.sqrt(D2, out=D2) * self._frame.unit
        return metric_distances(X, self.X, self.metric, self.metric_params)

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self.X)

    def identical(self, X: Matrix) -> IntArray:
        """Training point at distance zero from each row of precomputed distances, or -1."""
        zero = X == 0
        return np.where(zero.any(axis=1), zero.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class GowerKernel:
    """Kernel −½·(d/unit)² of classical scaling, with its additive constant if there is one."""

    distances: DistancesToTraining
    unit: float
    constant: float = 0.0

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.distances.n_train

    def matrix(self, X: Matrix) -> Array:
        """Uncentered kernel, (n_new, n_train)."""
        D = self.distances.matrix(X)
        if self.constant:
            itself = self.distances.identical(D)
            D += self.constant
            known = np.flatnonzero(itself >= 0)
            D[known, itself[known]] = 0.0  # the constant is not added between identical points
        return gower_kernel(D, self.unit)

    def among(self, X: Matrix) -> Array:
        """Uncentered kernel between new points, (n_new, n_new)."""
        if self.distances.X is None:
            raise ValueError(UNKNOWN_AMONG)
        among = replace(self.distances, X=X, n_train=X.shape[0])
        return replace(self, distances=among).matrix(X)


@dataclass(frozen=True, eq=False)
class GeodesicExtension(KernelExtension):
    """Gower's formula on the geodesic distances of new points.

    With landmarks it is the triangulation of landmark MDS: the two differ only by terms that
    vanish because the eigenvectors sum to zero.
    """

    geodesics: Geodesics
    columns: list[
        IntArray
    ]  # positions of the targets of each connected component among all targets
    maps: list[Nystrom]  # from −½·d² to coordinates within each component
    unit: float
    layout: Layout

    def rows(self, X: Matrix) -> Array:
        out = np.zeros((X.shape[0], len(self.geodesics.targets)))
        for number, rows, kernel in self._by_component(X):
            out[np.ix_(rows, self.columns[number])] = self.maps[number].rows(kernel)
        return out

    @property
    def numbers_per_row(self) -> int:
        return 4 * len(self.geodesics.targets)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.matrix(X) * self.unit**2

    def transform(self, X: Matrix) -> Array:
        return self.place(*self.component_coordinates(X))

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.layout.place(Y, component)

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        Y = np.zeros((X.shape[0], self.layout.offset.shape[1]))
        component, distances_of = self._component(X), self.geodesics.blocks_from_new(X)

        def fill(block: slice) -> None:
            for number, rows, kernel in self._kernels(distances_of(block), component[block]):
                Y[block.start + rows] = self.maps[number].transform(kernel)

        with one_blas_thread():  # blocks stay in the cache
            map_threads(fill, row_blocks(len(Y), len(self.geodesics.targets), budget=2**17))
        return Y, component

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """The centered kernel at pairs of new points; see :meth:`Geodesics.among` for distances."""
        D = self.geodesics.among(X)
        K = np.zeros_like(D)
        Z, component = self.component_coordinates(X)
        mean_squares = np.zeros_like(Z)
        for number, rows, kernel in self._by_component(X):
            centered: Any = self.maps[number].kernel
            block = np.ix_(rows, rows)
            K[block] = centered.centered(gower_kernel(D[block], self.unit), kernel)
            mean_squares[rows] = self._mean_squares(number)
        pairs = KernelPairs.of_coordinates(K, Z / self.unit, mean_squares, self.unit)
        return replace(pairs, components=(component, component))

    def _mean_squares(self, number: int) -> Array:
        """Mean squares of the training coordinates of a component, in units of unit²."""
        members = np.flatnonzero(self.layout.labels == number)
        Y = training_coordinates(self.geodesics, members, self.columns[number], self.maps[number])
        return np.asarray(np.square(Y / self.unit).mean(axis=0))

    def _by_component(self, X: Matrix) -> list[tuple[int, IntArray, Array]]:
        """For each connected component of new points: its label, rows and uncentered kernel."""
        return self._kernels(self.geodesics.from_new(X), self._component(X))

    def _kernels(self, D: Array, component: IntArray) -> list[tuple[int, IntArray, Array]]:
        """The same, given the distances to the targets and the component of each point."""
        if not np.isfinite(D).any(axis=1).all():
            raise ValueError(
                "some rows have no training point within the radius, so they have no coordinates; "
                "fit with n_neighbors or a larger radius"
            )
        found: list[tuple[int, IntArray, Array]] = []
        for number in np.unique(component[component >= 0]):
            rows, columns = np.flatnonzero(component == number), self.columns[number]
            part = D if (len(rows), len(columns)) == D.shape else D[np.ix_(rows, columns)]
            found.append((int(number), rows, gower_kernel(part, self.unit)))
        return found

    def _component(self, X: Matrix) -> IntArray:
        """Connected component of the nearest training point."""
        if len(self.maps) == 1 and self.layout.labels.min() == 0:
            return np.zeros(X.shape[0], dtype=np.intp)
        index = self.geodesics.graph.index
        return self.layout.labels[index.nearest(index.as_queries(X), 1)[0][:, 0]]


def training_coordinates(
    geodesics: Geodesics, rows: IntArray, columns: IntArray, formula: Nystrom
) -> Array:
    """Coordinates of training points within their component, (n_rows, n_components).

    `columns` are the positions of the targets of the component among all targets. A few rows at a
    time are computed, by several threads.
    """
    D, Y = geodesics.distances, np.empty((len(rows), formula.dual.shape[1]))
    chosen = slice(None) if len(columns) == D.shape[1] else columns

    def fill(block: slice) -> None:
        Y[block] = formula.transform(gower_kernel(D[rows[block]][:, chosen], formula.unit))

    with one_blas_thread():
        map_threads(fill, row_blocks(len(rows), len(columns), budget=2**17))
    return Y


def gower_kernel(D: Array, unit: float) -> Array:
    """Uncentered kernel −½·(d/unit)² of classical scaling, in double precision."""
    with np.errstate(over="ignore"):  # raised below
        K = np.divide(D, unit, dtype=np.float64)
        K *= K
        K *= -0.5
    if not np.isfinite(K).all():
        row = int(np.argmin(np.isfinite(K).all(axis=1)))
        raise ValueError(
            f"row {row} is at a distance of {D[row].max():.0e}, but the training points are only "
            f"about {unit:.0e} apart, so squared distances overflow; check the units of X"
        )
    return K


@dataclass(frozen=True, eq=False)
class Triangulation(Extension):
    """Least-squares position given the distances to the nearest training points.

    For embeddings that preserve local distances. It needs distances only; if the data are known,
    :class:`~manifoldry.extension.local.Barycentric` is exact at training points.
    """

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    labels: IntArray  # connected component of every training point
    # Singular values of the neighbors' coordinates below this fraction of the largest are ignored.
    singular_tol: float = 0.05
    # Added to squared distances in the weights, as a fraction of that of the second neighbor.
    softening: float = 0.05

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        index = self.graph.index
        for block in row_blocks(X.shape[0], max(self._k**2, index.n_reference)):
            indices, distances = index.nearest(index.as_queries(X[block]), self._k)
            component = self.labels[indices[:, :1]]
            same = self.labels[indices] == component
            # Neighbors in other components have weight zero; their coordinates may be NaN.
            Y = np.where(same[:, :, None], self.embedding[indices], self.embedding[indices[:, :1]])
            out[block] = self._triangulated(np.nan_to_num(Y), distances, same)
            out[block][component[:, 0] < 0] = np.nan
        return out

    @property
    def _k(self) -> int:
        few = self.graph.n_neighbors or 2 * self.embedding.shape[1] + 1
        return min(few + 1, self.graph.n_reference)

    def _triangulated(self, Y: Array, distances: Array, counted: Array) -> Array:
        """Least-squares positions (n, d) from positions (n, k, d) and distances (n, k).

        Near neighbors have larger weights. |x|² − 2x·y + |y|² = d² becomes linear in x when its
        weighted mean over the neighbors is subtracted.
        """
        Y = Y.astype(np.float64)
        unit = np.where(distances[:, -1:] > 0, distances[:, -1:], 1.0)
        d = distances / unit
        w = counted / (d**2 + d[:, 1:2] ** 2 * self.softening + 1e-12)
        w /= w.sum(axis=1, keepdims=True)
        mean = np.einsum("nk,nkd->nd", w, Y)
        offsets = (Y - mean[:, None]) / unit[:, :, None]
        target = np.einsum("nkd,nkd->nk", offsets, offsets) - d**2
        target -= np.einsum("nk,nk->n", w, target)[:, None]
        root = np.sqrt(w)[:, :, None]
        step = np.linalg.pinv(root * offsets, rcond=self.singular_tol) @ (root * target[:, :, None])
        return np.asarray(mean + unit * step[:, :, 0] / 2)
