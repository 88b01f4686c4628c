"""Exact Euclidean and cosine neighbors by blocked matrix products."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.device import using_device
from manifoldry.neighbors.base import (
    Edges,
    NeighborIndex,
    PointIndex,
    ReferenceNeighbors,
    compress,
    gather,
    search_radii,
    sort_rows,
    without_self,
)
from manifoldry.neighbors.distances import (
    Frame,
    expansion_error,
    neighbor_distances,
    pair_distances,
    squared_norms,
)
from manifoldry.neighbors.on_device import DeviceSearch, device_search, frame_of
from manifoldry.neighbors.products import (
    Visit,
    nearest_by_products,
    nearest_in_blocks,
    single_precision,
)
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

# Largest number of entries of a matrix that is kept in memory.
_SMALL = 2**20


@dataclass(frozen=True, eq=False)
class BruteIndex(PointIndex):
    """Brute-force search by blocked matrix products; O(n_query · n_reference · n_features).

    The matrix product only selects candidates. Their distances are recomputed by subtraction, and
    rows whose candidates could be wrong because of rounding or ties are searched again. The
    result is therefore exact, also for data far from the origin.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_reference, n_features)
        The reference points.
    reason : str
        Why this index was chosen.
    n_extra : int
        Number of candidates in addition to k; they make rounding errors of the matrix product
        unlikely to matter.
    tile : int
        Rows and columns of a block of pairs.
    max_uncertain : float
        If single precision leaves more than this fraction of the queries uncertain, these are
        searched again with products in double precision.
    compile_from : float
        Compiled loops are used above this number of pairs times features.
    single_from : float
        Pairs within a radius are searched by products in single precision above this number.
    """

    X: Matrix
    reason: str
    n_extra: int = 8
    tile: int = 2048
    max_uncertain: float = 0.05
    compile_from: float = 1e10
    single_from: float = 1e8

    @cached_property
    def _frame(self) -> Frame:
        return frame_of(self.X)

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        search = device_search(self.X, X, lambda: self._frame)
        return self._nearest(X, k) if search is None else self._nearest_by(search, X, k, None)

    def nearest_excluding(self, X: Matrix, k: int, itself: IntArray) -> tuple[IntArray, Array]:
        search = device_search(self.X, X, lambda: self._frame)
        if search is None:
            return super().nearest_excluding(X, k, itself)
        return self._nearest_by(search, X, k, itself if (itself >= 0).any() else None)

    def _nearest_by(
        self, search: DeviceSearch, X: Matrix, k: int, own: IntArray | None
    ) -> tuple[IntArray, Array]:
        """The k nearest references except `own`, found on a device."""
        if X is not self.X:
            self._frame.check(X)
        found = search.nearest(X, k, own)
        indices, distances, uncertain = search.download(found)
        if len(uncertain):
            itself = np.full(len(indices), -1) if own is None else own
            with using_device("cpu"):
                again = super().nearest_excluding(X[uncertain], k, itself[uncertain])
            indices[uncertain], distances[uncertain] = again
        return indices, distances

    def _nearest(self, X: Matrix, k: int, visit: Visit | None = None) -> tuple[IntArray, Array]:
        """The k nearest references; `visit` sees the products if they are in single precision."""
        n_candidates = min(k + self.n_extra, self.n_reference)
        large, single = self._is_large(X), self._is_larger(X, 0)
        fast = partial(self._nominate_fast, visit=visit) if large else self._nominate_in_blocks
        nominate = fast if single else self._nominate
        with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow are uncertain
            indices, distances, uncertain = self._refine(X, k, nominate(X, n_candidates))
        # Of few points all uncertain ones, since `_search_again` takes longer.
        if single and len(uncertain) > (self.max_uncertain * len(indices) if large else 0):
            # Single precision is not enough for these; double precision is for most of them.
            again = self._refine(X[uncertain], k, self._nominate(X[uncertain], n_candidates))
            indices[uncertain], distances[uncertain] = again[:2]
            uncertain = uncertain[again[2]]
        self._search_again(X, uncertain, indices, distances)
        return indices, distances

    def _refine(
        self, X: Matrix, k: int, nominated: "_Candidates"
    ) -> tuple[IntArray, Array, IntArray]:
        """The k nearest candidates by exact distance, and the rows where others may be nearer."""
        candidates = nominated.candidates
        candidates, distances = sort_rows(candidates, self._to_neighbors(X, candidates))
        candidates, distances = candidates[:, :k].copy(), distances[:, :k].copy()
        if nominated.candidates.shape[1] == self.n_reference:
            return candidates, distances, np.empty(0, dtype=np.intp)
        radii = search_radii(distances[:, -1], self._frame.unit)
        certain = nominated.certain(radii, X.shape[1])
        return candidates, distances, np.flatnonzero(~certain)

    def _between(self, X: Matrix, query: IntArray, reference: IntArray) -> Array:
        """Exact distances of pairs."""
        return pair_distances(X, self.X, query, reference, self._frame.unit)

    def distances_between(self, i: IntArray, j: IntArray) -> Array:
        return self._between(self.X, i, j)

    def _to_neighbors(self, X: Matrix, neighbors: IntArray) -> Array:
        """Exact distances (n, k) of each row to its neighbors, bitwise equal to `_between`."""
        return neighbor_distances(X, self.X, neighbors, self._frame.unit)

    def _is_large(self, X: Matrix) -> bool:
        return self._is_larger(X, self.compile_from)

    def _is_larger(self, X: Matrix, work: float) -> bool:
        """Whether dense data have more pairs times features."""
        dense = not (sparse.issparse(X) or sparse.issparse(self.X))
        return dense and float(X.shape[0]) * self.n_reference * X.shape[1] > work

    @cached_property
    def _single(self) -> Array:
        return single_precision(self._frame, self.X)

    def _nominate_fast(self, X: Matrix, k: int, visit: Visit | None = None) -> "_Candidates":
        """Candidates from products in single precision, selected by compiled loops."""
        among_themselves = X is self.X
        queries = self._single if among_themselves else single_precision(self._frame, X)
        others = min(k, self.n_reference - among_themselves)
        candidates, squares = nearest_by_products(queries, self._single, others, visit)
        if among_themselves:  # a point is its own nearest neighbor, but not included
            candidates = np.column_stack([np.arange(len(queries)), candidates])
        return _Candidates(candidates, squares[:, -1], squared_norms(queries), np.float32)

    def _nominate_in_blocks(self, X: Array, k: int, kept_up_to: int = 2**24) -> "_Candidates":
        """Candidates from products in single precision, of few points."""
        kept = self.X.size <= kept_up_to
        references = self._single[:] if kept else single_precision(self._frame, self.X)
        queries = references if X is self.X else single_precision(self._frame, X)
        candidates, squares = nearest_in_blocks(queries, references, k)
        return _Candidates(candidates, squares, squared_norms(queries), np.float32)

    def _nominate(self, X: Matrix, k: int) -> "_Candidates":
        """Candidates from products in double precision."""
        from sklearn.neighbors import NearestNeighbors

        if X.shape[0] == 0:
            return _Candidates(np.empty((0, k), dtype=np.intp), np.empty(0), np.empty(0))
        if self._is_small(X):
            return self._nominate_few(X, k)
        references, queries = self._frame.apply(self.X), self._frame.apply(X)
        search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(references)
        distances, candidates = search.kneighbors(queries)
        return _Candidates(candidates, distances[:, -1] ** 2, squared_norms(queries))

    def _is_small(self, X: Matrix, most: int = _SMALL) -> bool:
        """Whether to keep the references in the frame, and a matrix of all pairs, in memory."""
        dense = not (sparse.issparse(X) or sparse.issparse(self.X))
        return dense and max(self.X.size, X.shape[0] * self.n_reference) <= most

    @cached_property
    def _framed(self) -> Array:
        return np.asarray(self._frame.apply(self.X))

    def _nominate_few(self, X: Matrix, k: int) -> "_Candidates":
        """Candidates of few queries, without the preparations of scikit-learn's search."""
        references, queries = self._framed, self._frame.apply(X)
        candidates, squares = nearest_in_blocks(queries, references, k)
        return _Candidates(candidates, squares, squared_norms(queries))

    def _search_again(self, X: Matrix, rows: IntArray, indices: IntArray, distances: Array) -> None:
        """Recompute the k neighbors of some rows from all points within the k-th distance."""
        if len(rows) == 0:
            return
        k = indices.shape[1]
        # Of identical points only the first k can be neighbors, since ties go by index.
        few = self._lookup.first_duplicates(k)
        index = self if len(few) == self.n_reference else replace(self, X=self.X[few])
        for block, query, reference, exact in index.pairs(X[rows], distances[rows, -1:]):
            edges = compress(query - block.start, few[reference], exact, block.stop - block.start)
            indices[rows[block]], distances[rows[block]] = edges.first(k)

    def nearest_and_within(
        self, X: Matrix, k: int, itself: IntArray, radii: Array
    ) -> tuple[tuple[IntArray, Array], Edges]:
        on_device = device_search(self.X, X, lambda: self._frame) is not None
        if X is self.X or on_device or not self._is_large(X):
            return super().nearest_and_within(X, k, itself, radii)
        radii, found = np.atleast_2d(radii), []
        queries = _Queries(X, self._frame, slice(0, 0), large=True)

        def visit(rows: slice, columns: slice, products: Array) -> None:
            nonlocal queries
            if queries.rows != rows:
                queries = replace(queries, rows=rows)
            found.append(self._pairs_of(queries, radii, columns, products))

        known = bool((itself >= 0).any())
        nearest = self._nearest(X, k + known, visit)
        nearest = without_self(*nearest, itself) if known else nearest
        return nearest, gather(found, X.shape[0])

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.asarray(radius, dtype=np.float64)
        search = device_search(self.X, X, lambda: self._frame)
        if search is not None:
            self._frame.check(X)
            return gather(search.within(X, radii), X.shape[0])
        found = ((i, j, distances) for _, i, j, distances in self.pairs(X, radii))
        return gather(found, X.shape[0])

    def pairs(self, X: Matrix, radii: Array) -> Iterator[tuple[slice, IntArray, IntArray, Array]]:
        """Yield the pairs of query and reference within `radii`, by blocks of queries.

        `radii` is a number, a row with one radius per reference, or a column with one per query.
        """
        single, radii = self._is_larger(X, self.single_from), np.atleast_2d(radii)
        # Blocks of pairs with few references stay in the cache.
        budget = 2**17 if self.n_reference <= self.tile else self.tile**2
        for rows in row_blocks(X.shape[0], min(self.tile, self.n_reference), budget=budget):
            queries = _Queries(X, self._frame, rows, single)
            found = [
                self._pairs_of(queries, radii, columns)
                for columns in row_blocks(self.n_reference, self.tile, budget=self.tile**2)
            ]
            query, reference, exact = map(np.concatenate, zip(*found, strict=True))
            yield rows, query, reference, exact

    def _pairs_of(
        self, queries: "_Queries", radii: Array, columns: slice, products: Array | None = None
    ) -> tuple[IntArray, IntArray, Array]:
        """Pairs within `radii` of a block of queries and a block of references.

        `products` are those in single precision, if they are known.
        """
        per_query, per_reference = radii.shape[0] > 1, radii.shape[1] > 1
        radii = radii[
            queries.rows if per_query else slice(None), columns if per_reference else slice(None)
        ]
        limit, near = np.minimum(search_radii(radii, self._frame.unit), 1e150) ** 2, None
        if queries.are_single:
            near = _near(queries.single, self._single[columns], limit, products)
        if near is None or near.mean() > self.max_uncertain:
            few = not sparse.issparse(self.X) and self.X.size <= _SMALL
            all_at_once = few and columns == slice(0, self.n_reference)
            references = self._framed if all_at_once else self._frame.apply(self.X[columns])
            near = _near(queries.double, references, limit)
        query, reference = np.divmod(np.flatnonzero(near), near.shape[1])
        exact = self._between(queries.X, query + queries.rows.start, reference + columns.start)
        keep = exact <= np.broadcast_to(radii, near.shape)[query, reference]
        start = queries.rows.start, columns.start
        return query[keep] + start[0], reference[keep] + start[1], exact[keep]


@dataclass(frozen=True, eq=False)
class _Queries:
    """A block of query points in coordinates of the frame, in single and double precision."""

    X: Matrix
    frame: Frame
    rows: slice
    large: bool

    @cached_property
    def double(self) -> Matrix:
        return self.frame.apply(self.X[self.rows])

    @cached_property
    def single(self) -> Array:
        return single_precision(self.frame, self.X[self.rows])

    @cached_property
    def are_single(self) -> bool:
        """Whether to use single precision, which must not overflow."""
        return self.large and bool(squared_norms(self.single).max(initial=0.0) < 1e30)


def _near(X: Matrix, Y: Matrix, limit: Array, product: Matrix | None = None) -> NDArray[np.bool_]:
    """Mask of the pairs with ‖x − y‖² ≤ limit, and of those where rounding makes it uncertain.

    `product` is X @ Y.T, if it is known.
    """
    product = X @ Y.T if product is None else product
    product = product.toarray() if sparse.issparse(product) else product
    # |x|² + |y|² − 2x·y − error ≤ limit, solved for x·y; limit is a number, a row or a column
    x, y = squared_norms(X)[:, None].astype(np.float64), squared_norms(Y).astype(np.float64)
    x, y = (
        (square - expansion_error(square, 0.0, X.shape[1], product.dtype)) / 2
        for square in (x, y[None])
    )
    x, y = (x - limit / 2, y) if len(limit) > 1 else (x, y - limit / 2)
    bound = np.add(x.astype(product.dtype), y.astype(product.dtype))
    return np.asarray(product >= bound)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Candidates of each query; by the products, all other squared distances exceed `squares`."""

    candidates: IntArray  # (n_query, k)
    squares: Array  # (n_query,), in units of the frame
    x_squares: Array  # (n_query,), squared norms of the queries
    precision: Any = np.float64

    def certain(self, radius: Array, n_features: int) -> NDArray[np.bool_]:
        """Mask of the queries for which all points within `radius` are candidates.

        The norm of a point within the radius is at most that of the query plus the radius, which
        bounds the rounding error of its product. Points farther away do not matter.
        """
        x_squares = self.x_squares.astype(np.float64)
        y_squares = (np.sqrt(x_squares) + radius) ** 2
        error = expansion_error(x_squares, y_squares, n_features, self.precision)
        return np.asarray(radius**2 < self.squares - error)  # false where products overflowed


@dataclass(frozen=True, eq=False)
class CosineIndex(NeighborIndex):
    """Cosine distance 1 − cos, computed as half the squared distance on the unit sphere.

    This is accurate for nearly parallel rows, where 1 − x·y cancels.
    """

    sphere: BruteIndex
    X: Matrix
    reason: str

    @classmethod
    def of(cls, X: Matrix, reason: str) -> "CosineIndex":
        """Build the index of the normalized rows of `X`."""
        return cls(BruteIndex(scaled_rows(X), reason), X, reason)

    def reference_neighbors(self, X: Matrix, k: int) -> ReferenceNeighbors:
        found = self.sphere.reference_neighbors(self.sphere.X, k)
        return found._replace(distances=found.distances**2 / 2)

    @property
    def n_reference(self) -> int:
        return self.sphere.n_reference

    @property
    def points(self) -> Matrix:
        return self.X

    def restrict(self, rows: IntArray) -> NeighborIndex:
        return self.over(self.X[rows])

    def over(self, X: Matrix) -> NeighborIndex:
        return CosineIndex.of(X, self.reason)

    def identical(self, X: Matrix) -> IntArray:
        return self.sphere.identical(scaled_rows(X))

    def nearest(self, X: Matrix, k: int) -> tuple[IntArray, Array]:
        indices, chords = self.sphere.nearest(scaled_rows(X), k)
        return indices, chords**2 / 2

    def distances_between(self, i: IntArray, j: IntArray) -> Array:
        return self.sphere.distances_between(i, j) ** 2 / 2

    def within(self, X: Matrix, radius: float | Array) -> Edges:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), self.n_reference)
        # The square of the root is exact only up to rounding: use a larger radius, then compare.
        indptr, indices, chords = self.sphere.within(
            scaled_rows(X), np.sqrt(2 * radii) * (1 + 1e-9)
        )
        edges = Edges(indptr, indices, chords**2 / 2)
        return edges.keep(edges.distances <= radii[indices] * (1 + 1e-15))


def scaled_rows(X: Matrix) -> Matrix:
    """Rows scaled to unit length; ValueError if a row is all zeros."""
    largest = abs(X).max(axis=1)
    largest = largest.toarray() if sparse.issparse(largest) else largest
    largest = np.asarray(largest, dtype=np.float64).ravel()
    if (largest == 0).any():
        row = int(np.flatnonzero(largest == 0)[0])
        raise ValueError(
            f"row {row} of X is all zeros, so its cosine distance is undefined; remove such rows "
            "or use metric='euclidean'"
        )
    if sparse.issparse(X):
        X = sparse.csr_array(X)  # division, since reciprocals of tiny numbers are infinite
        entries = X.data / np.repeat(largest, np.diff(X.indptr))
        scaled = sparse.csr_array((entries, X.indices, X.indptr), shape=X.shape)
        return sparse.csr_array(sparse.diags_array(1 / np.sqrt(squared_norms(scaled))) @ scaled)
    scaled = np.ascontiguousarray(X) / largest[:, None]  # the order of sums must not vary
    return scaled / np.sqrt(squared_norms(scaled))[:, None]
