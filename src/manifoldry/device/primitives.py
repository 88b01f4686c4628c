"""The primitives of devices: the loops of all methods, which only a device knows how to run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from manifoldry.util.typing import Array

NOBODY = int(np.iinfo(np.int32).max)
"""The index of a neighbor that is not yet found."""


class DeviceMatrix(NamedTuple):
    """A sparse matrix on a device, in compressed rows."""

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.indptr.shape[0]) - 1

    def row_numbers(self, xp: Any) -> Array:
        """Return the row of each entry: how many rows have ended before it."""
        entries = xp.arange(len(self.indices), dtype=self.indptr.dtype)
        return xp.searchsorted(self.indptr, entries, side="right") - 1


class KernelShape(NamedTuple):
    """κ = (1 + rate·D)^−power of squared distances D; exp(−D) if both are None."""

    rate: float | None = None
    power: float | None = None


class Nodes(NamedTuple):
    """Nodes of a regular mesh in up to three dimensions, at multiples of its spacing."""

    spacing: float
    first: tuple[float, ...]
    """The first node, in units of the spacing."""
    shape: tuple[int, ...]
    """Number of nodes along each axis."""


class MomentumRule(NamedTuple):
    """Numbers of steps with momentum: those of the gains, the momentum and the learning rate."""

    gain_increment: float
    gain_decay: float
    min_gain: float
    momentum: float
    rate: float


class Primitives(ABC):
    """What a device computes; arguments and results are arrays of its namespace.

    Results have the same bits whenever a primitive is called with the same arrays on the same
    device.
    """

    @abstractmethod
    def nearest(
        self, X: Array, Y: Array, k: int, own: Array | None, accurate: bool
    ) -> tuple[Array, Array]:
        """Return the `k` rows of `Y` nearest to each row of `X`, by matrix products.

        Parameters
        ----------
        X, Y : array of shape (n_query, m), (n, m)
            The points, in single precision, or in double if `accurate`.
        k : int
            Number of neighbors, at most n, or n − 1 with `own`.
        own : int32 array of shape (n_query,) or None
            The row of `Y` that is left out, mostly the query itself; -1 leaves out none.
        accurate : bool
            Whether the products are as accurate as the type of the arrays allows. Otherwise their
            factors may be rounded to 11 significant bits: those of coordinates that have no more
            are exact, and their sums are in single precision.

        Returns
        -------
        indices : int32 array of shape (n_query, k)
            The neighbors by increasing distance, ties by index. Where products overflow, they are
            any rows, and their squares are infinite.
        squares : array of shape (n_query, k)
            Squared distances, as accurate as the products.
        """

    @abstractmethod
    def merge_nearest(
        self, X: Array, Y: Array, first: int, rows: Array, found: tuple[Array, Array]
    ) -> None:
        """Update the nearest points that were found for some queries with a part of all points.

        Parameters
        ----------
        X, Y : array of shape (n_rows, m), (n_part, m)
            Some of the queries, and of the points, in single precision, around any origin.
        first : int
            Number of the first row of `Y` among all points.
        rows : int32 array of shape (n_rows,)
            Number of each query among all points. It is left out as its own neighbor.
        found : tuple of arrays of shape (n, k)
            Indices, of int32, and squared distances, ascending, of all points. Those of the queries
            are replaced. At first, they are `NOBODY` and infinity.
        """

    @abstractmethod
    def distances(self, X: Array, Y: Array, indices: Array, rows: Array | None = None) -> Array:
        """Return distances by subtraction, in double precision.

        Parameters
        ----------
        X, Y : array of shape (n_query, m), (n, m)
            The points, of the same type.
        indices : int32 array of shape (n_query, k) or (n_pairs,)
            Rows of `Y`.
        rows : int32 array of shape (n_pairs,), default=None
            Row of `X` of each pair; None for a row of `indices` per row of `X`.

        Returns
        -------
        array of the shape of `indices`
            The distances.
        """

    @abstractmethod
    def sort_rows(self, indices: Array, values: Array) -> tuple[Array, Array]:
        """Sort each row by value, ties by index."""

    @abstractmethod
    def smallest(self, table: Array, k: int) -> Array:
        """Return the columns of the `k` smallest entries of each row, in order, ties by column.

        `table` has no NaN, and `k`, at most 4096, is at most its number of columns.
        """

    @abstractmethod
    def ranks(self, table: Array, columns: Array) -> Array:
        """Return the ranks of some entries in their rows, from 1 for the smallest, ties by column.

        `columns`, (n_rows, k), are those of the entries; k is at most 4096.
        """

    @abstractmethod
    def log_precisions(self, t: Array, perplexity: float) -> Array:
        """Return α at which weights exp(−eᵅ·t) in each row have the perplexity.

        Rows of `t` ascend from one or more zeros, fewer than the perplexity, which is less than
        their number of columns.
        """

    @abstractmethod
    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Return eigenvalues, ascending, and eigenvectors of many small matrices, (n, k, k).

        They are positive semidefinite and in double precision. See `manifoldry.device.small`, which
        calls it.
        """

    @abstractmethod
    def left_vectors(self, A: Array) -> tuple[Array, Array]:
        """Return left singular vectors, (n, rows, columns), and values, (n, columns), descending.

        The matrices are in double precision, with at least as many rows as columns. Small singular
        values have small errors. Vectors of singular values of zero are arbitrary.
        """

    @abstractmethod
    def pair_sums(
        self, Y: Array, weights: Any, shape: KernelShape, order: int
    ) -> tuple[Array, Array]:
        """Return Σⱼ aⱼ·κ(dᵢⱼ²) and moments over all other points j, for up to three dimensions.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points. In double precision their differences are accurate to single precision.
        weights : array of shape (n,) or (n, n), tuple of arrays of shape (n, n_factors), or None
            The weights a of points or, symmetric and not negative, of pairs; None for one. The
            weights of pairs are the products of the rows of a tuple, or zero if these are negative.
        shape : KernelShape
            The kernel κ, with a base b = 1 + rate·D.
        order : int
            1 for the moments Σ a·b^{−power−1}·(yᵢ − yⱼ), 2 for Σ a·b^{−power−2}·(yᵢ − yⱼ)² of every
            coordinate, with exp(−D) in place of powers of b for the Gaussian.

        Returns
        -------
        sums : float64 array of shape (n,)
            The kernel sums.
        moments : array of shape (n, d)
            The moments, in the type of `Y`.
        """

    @abstractmethod
    def corners(self, Y: Array) -> Array:
        """Return the least and the largest coordinates of points, (2, d), as an array of the host.

        A coordinate is NaN if that of any point is. Up to three dimensions.
        """

    @abstractmethod
    def spread(self, Y: Array, charges: Array | None, nodes: Nodes) -> Array:
        """Divide the charges of points among the four nodes around them along each axis.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points. One at the position p along an axis, in units of the spacing and relative
            to the first node, uses the nodes ⌊p⌋ to ⌊p⌋ + 3, which must exist.
        charges : array of shape (n, n_charges), or None
            The charges; None for one of each point.
        nodes : Nodes
            The mesh.

        Returns
        -------
        float64 array of shape (n_charges, *nodes.shape)
            The charges at the nodes, with cubic B-splines as weights; their absolute error is at
            most n·2⁻⁶⁰ of the sum of the sizes of all charges, besides rounding.
        """

    @abstractmethod
    def gather(
        self,
        Y: Array,
        potential: Array,
        near: Array,
        nodes: Nodes,
        left: Array | None,
        right: Array | None,
        slopes: bool,
    ) -> tuple[Array, Array]:
        """Interpolate potentials at points by cubic B-splines, without those of their own charges.

        Parameters
        ----------
        Y : array of shape (n, d)
            The points, as for :meth:`spread`.
        potential : float64 array of shape (n_charges, *nodes.shape)
            The potential of each charge.
        near : float64 array of shape (4,) * d
            The potential of a unit charge at distances of zero to three nodes along each axis.
        nodes : Nodes
            The mesh.
        left, right : array of shape (n, n_charges) or None
            Factors with which the potentials are added, and the charges of the points themselves;
            None for one.
        slopes : bool
            Whether to compute gradients.

        Returns
        -------
        values : float64 array of shape (n,)
            Σ_c l_c·(φ_c − r_c·φ₀), where φ₀ is the potential of a unit charge at the point itself.
        gradients : float64 array of shape (n, d), or (0, d) without `slopes`
            Its gradients.
        """

    @abstractmethod
    def position_sums(
        self, Z: Array, Y: Array, least: Array, weights: Array | None, shape: KernelShape
    ) -> tuple[Array, Array, Array]:
        """Return Σⱼ aⱼ·κ(‖z − yⱼ‖²)·e^φ, and its gradient and Hessian by z, at positions `Z`.

        `least`, (n_positions,), is φ, by which kernels are scaled so that they do not underflow;
        `weights`, (n_positions, n), are the weights a. Everything is in double precision.
        """

    @abstractmethod
    def squared_distances(self, X: Array, Y: Array) -> Array:
        """Return ‖xᵢ − yⱼ‖² by subtraction, (n, m), for few coordinates in double precision."""

    @abstractmethod
    def nearest_squares(self, X: Array, Y: Array) -> Array:
        """Return the smallest of the `squared_distances` of each row of `X`, (n,)."""

    @abstractmethod
    def edge_sums(self, Y: Array, W: DeviceMatrix, rate: float) -> tuple[Any, Array, Array]:
        """Return Σ wᵢⱼ·log b over all edges and, per point, Σⱼ wᵢⱼ/b·(yᵢ − yⱼ) and Σⱼ wᵢⱼ/b.

        b = 1 + rate·dᵢⱼ². Up to three dimensions.
        """

    @abstractmethod
    def product(self, A: DeviceMatrix, X: Array) -> Array:
        """Return the product of a sparse matrix and an array of shape (n, m), in its type."""

    @abstractmethod
    def min_plus(self, A: DeviceMatrix, X: Array) -> Array:
        """Return the least aᵢⱼ + xⱼ of the entries of each row, for every column x of `X`.

        The entries and `X` have the same type. Rows without entries are infinite.
        """

    @abstractmethod
    def inner_products(self, pairs: Sequence[tuple[Array, Array]]) -> Array:
        """Return Σ aᵢⱼ·bᵢⱼ of each pair of arrays, all of one size, in double precision."""

    @abstractmethod
    def combination(self, factors: Sequence[float], arrays: Sequence[Array]) -> Array:
        """Return Σ cₜ·Aₜ of arrays of one shape and type, added in double precision."""

    @abstractmethod
    def centered(self, Y: Array, dtype: Any) -> Array:
        """Return points minus their mean, which is computed in double precision."""

    @abstractmethod
    def momentum_step(
        self, arrays: tuple[Array, Array, Array, Array], rule: MomentumRule
    ) -> tuple[Array, Array, Array]:
        """Return Y + V′, the velocity V′ and the gains g′ after a step along −Z.

        `arrays` are Y, Z, V and g. Where V·Z < 0, g′ = g + gain_increment, elsewhere g·gain_decay,
        at least min_gain; V′ = momentum·V − rate·g′·Z.
        """

    @abstractmethod
    def chebyshev_step(
        self,
        W: DeviceMatrix,
        diagonals: tuple[Array, Array],
        factors: tuple[float, float],
        state: tuple[Array, Array, Array],
    ) -> Array:
        """Return the step S′ after S of Chebyshev's iteration for the inverse of D − W.

        R ← R − (D − W)·S, S′ = a·S + b·D⁻¹R and X ← X + S′, where R and X are changed in place.

        Parameters
        ----------
        W : DeviceMatrix
            The matrix, in the type of the other arrays.
        diagonals : tuple of arrays of shape (n, 1)
            D and its inverse.
        factors : tuple of float
            a and b.
        state : tuple of arrays of shape (n, m)
            S, R and X.

        Returns
        -------
        array of shape (n, m)
            S′.
        """

    @abstractmethod
    def cholesky(self, G: Array) -> Array:
        """Return the upper factor R of G = RᵀR; LinAlgError if `G` is not positive definite."""

    @abstractmethod
    def solve_triangular(self, R: Array, B: Array, *, transposed: bool = False) -> Array:
        """Return R⁻¹B, or R⁻ᵀB if `transposed`, for an upper triangular matrix and columns."""
