"""Objectives in which neighbours attract each other and all points repel each other."""

from abc import abstractmethod
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.objectives.edges import Pull
from manifoldry.objectives.far import far_force, far_moments
from manifoldry.objectives.level import Level, both_ways
from manifoldry.objectives.pair_kernel import PairKernel
from manifoldry.objectives.pair_sums import PairSums
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.objectives.weights import entries, laplacian
from manifoldry.util.checks import check_nonnegative
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import canonical, plan_memory, row_blocks


class PairwiseObjective(Objective):
    """E(Y) = constant + Σ Wᵢⱼ·(−log κ(dᵢⱼ²)) + λ·R(m), with mᵢ = Σⱼ κ(dᵢⱼ²).

    Methods differ in their weights W, in their kernel κ and in how R normalises the masses: not
    at all (elastic embedding), each row (SNE) or all together (symmetric SNE, t-SNE). Whatever
    they are, the gradient is 4·L·Y, where L is the Laplacian of :meth:`learned_affinity`.
    """

    weight: float

    @property
    @abstractmethod
    def kernel(self) -> PairKernel:
        """The kernel κ."""

    @property
    @abstractmethod
    def collapsed_repulsion(self) -> Repulsion:
        """Weights whose Laplacian, times 4λ, is what repulsion takes from the curvature at Y = 0.

        That of :attr:`attraction`, times four, is what attraction gives: where the difference is
        not positive semidefinite any more, the collapsed map is no minimiser.
        """

    @property
    def constant(self) -> float:
        """What is added to make the value a divergence."""
        return 0.0

    @abstractmethod
    def _level(self, Y: Array, mass: Array) -> Level:
        """R and its rates."""

    def _sums(self, Y: Array, charges: Array | None = None) -> PairSums:
        return self.kernel.sums(Y, charges)

    def _moments(self, Y: Array, charges: Array | None = None) -> Array:
        return self.kernel.moments(Y, charges)

    def _repulsive_weights(self, i: IntArray, j: IntArray) -> Array | float:
        """Factor of κ(dᵢⱼ²) in the masses."""
        return 1.0

    @property
    def n(self) -> int:
        return int(self.attraction.shape[0])

    def with_weight(self, weight: float) -> Self:
        """The objective with another weight λ of repulsion; what was prepared is kept."""
        other = copy(self)
        object.__setattr__(other, "weight", check_nonnegative("weight", weight))
        return other

    def released(self) -> Self:
        """The same objective, without what is large and can be computed again."""
        return self

    def value(self, Y: Array) -> float:
        Y = self._centered(Y)
        level = self._level(Y, self._sums(Y).mass)
        return self.constant + self._pull(Y).value + self.weight * level.value

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        Y = self._centered(Y)
        pull, sums = self._pull(Y), self._sums(Y)
        level = self._level(Y, sums.mass)
        push = both_ways(level, sums.force, lambda rates: self._sums(Y, rates).force)
        if len(level.far):
            push = push + far_force(Y, self.kernel, level.far, np.asarray(level.log_rates))
        G = 4 * pull.force - 2 * self.weight * self.kernel.slope * push
        value = self.constant + pull.value + self.weight * level.value
        return value, G.astype(Y.dtype, copy=False)

    def diagonal_curvature(self, Y: Array) -> Array:
        """Terms of the Hessian's diagonal that cannot be negative, (n, d).

        With the Gaussian kernel 4·Σⱼ Wᵢⱼ of attraction, and of repulsion
        4λ·Σⱼ (rᵢ + rⱼ)·κ(dᵢⱼ²)·(yᵢ − yⱼ)², r being the derivatives of R by the masses.
        """
        Y = self._centered(Y)
        level = self._level(Y, self._sums(Y).mass)
        moments = both_ways(level, self._moments(Y), lambda rates: self._moments(Y, rates))
        if len(level.far):
            moments = moments + far_moments(Y, self.kernel, level.far, np.asarray(level.log_rates))
        h = 4 * self._pull(Y).degree[:, None] + 4 * self.weight * self.kernel.bend * moments
        return h.astype(Y.dtype, copy=False)

    def learned_affinity(self, Y: Array) -> Array:
        """Weights that hold the map together, dense (n, n): attraction less repulsion.

        The gradient is four times their Laplacian times `Y`, so at a minimum their Laplacian
        times `Y` is zero. As a function of the distance in the data they often look like a
        Mexican hat.
        """
        plan_memory(
            8.0 * self.n**2,
            f"the learned affinity of {self.n} points",
            "ask for learned_affinity_edges on a sparse pattern",
        )
        Y = self._centered(Y)
        level = self._level(Y, self._sums(Y).mass)
        A, columns = np.empty((self.n, self.n)), np.arange(self.n)
        for block in row_blocks(self.n, 4 * Y.size):
            A[block] = self._affinities(Y, level, columns[block, None], columns)
        return A

    def learned_affinity_edges(self, Y: Array, pattern: sparse.csr_array) -> sparse.csr_array:
        """The learned affinity of the pairs that `pattern` stores."""
        Y = self._centered(Y)
        level = self._level(Y, self._sums(Y).mass)
        pattern = canonical(sparse.csr_array(pattern))
        rows = np.repeat(np.arange(self.n), np.diff(pattern.indptr))
        values = np.empty(pattern.nnz)
        for block in row_blocks(pattern.nnz, 8 * Y.shape[1]):
            values[block] = self._affinities(Y, level, rows[block], pattern.indices[block])
        return sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)

    def _affinities(self, Y: Array, level: Level, i: IntArray, j: IntArray) -> Array:
        """Learned affinities of the pairs (i, j), which are broadcast."""
        D = (np.subtract(Y[i], Y[j], dtype=np.float64) ** 2).sum(axis=-1)
        log_rates = np.broadcast_to(level.log_rates, self.n)
        log_kernel = self.kernel.log(D)
        # Only a point with itself, which does not count, has a kernel beyond the rates' reach.
        with np.errstate(over="ignore", invalid="ignore"):
            repulsion = np.exp(log_kernel + log_rates[i]) + np.exp(log_kernel + log_rates[j])
            repulsion *= self.weight * self.kernel.slope / 2 * self._repulsive_weights(i, j)
        return np.where(
            np.equal(i, j),
            0.0,
            self.kernel.pull(D) * (entries(self.attraction, i, j) - repulsion),
        )

    def _pull(self, Y: Array) -> Pull:
        """Attraction Σ Wᵢⱼdᵢⱼ² = 2·tr YᵀLY, L being the Laplacian of W; in double precision."""
        Y = Y.astype(np.float64, copy=False)
        # Column by column, which takes scipy half the time as long as the matrix fits the cache.
        force = np.stack([self._laplacian @ y for y in Y.T], axis=1)
        return Pull(2 * float(np.einsum("ij,ij->", Y, force)), force, self._degree)

    @cached_property
    def _laplacian(self) -> sparse.csr_array:
        return laplacian(self.attraction)

    @cached_property
    def _degree(self) -> Array:
        return self._laplacian.diagonal()

    def _centered(self, Y: Array) -> Array:
        """`Y` about its mean: sums of products would lose the digits of a map far from zero."""
        Y = np.asarray(Y)
        if Y.ndim != 2 or len(Y) != self.n:
            raise ValueError(f"the map has shape {Y.shape}; pass one of {self.n} rows")
        dtype = Y.dtype if Y.dtype == np.float32 else np.float64
        return (Y - Y.mean(axis=0, dtype=np.float64)).astype(dtype)
