"""Weights of the random walk of diffusion maps: with self-transitions, divided by the density."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.affinity.distributed import DistributedWeights
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.eigen.problem import LARGEST_ENTRY
from manifoldry.util.typing import Array, IntArray, Matrix


def density_factors(density: Array, max_density: float, alpha: float) -> Array:
    """Return (density / max_density) ** -alpha, by which weights are multiplied at both ends."""
    with np.errstate(over="ignore"):  # checked by `check_normalized`
        return np.asarray((density / max_density) ** -alpha)


def divided_by_density(W: Matrix, factors: Array) -> sparse.csr_array:
    """Return weights times the factors of both ends; a part has its rows first, then others."""
    with np.errstate(over="ignore", invalid="ignore"):  # checked by `check_normalized`
        rows = np.repeat(factors[: W.shape[0]], np.diff(W.indptr))
        parts = W.data * rows * factors[W.indices], W.indices, W.indptr
    return sparse.csr_array(parts, W.shape)


def check_normalized(W: sparse.csr_array, alpha: float, ratio: float) -> None:
    """Raise ValueError if weights divided by densities, with this largest ratio, overflow."""
    if not W.data.max(initial=0.0) <= LARGEST_ENTRY:
        raise ValueError(
            f"alpha={alpha} is too large: weights divided by densities that differ by a factor of "
            f"{ratio:.3g}, to this power, overflow; pass alpha=1 or less"
        )


def distributed_walk(
    weights: DistributedWeights, bounds: IntArray, alpha: float
) -> DistributedMatrix:
    """Return the weights of the random walk on a graph in parts."""
    with_own = delayed(_with_self_transitions)
    parts = zip(weights.blocks, weights.own, bounds[:-1], strict=True)
    matrix = DistributedMatrix.of(persist(with_own(W, own, int(a)) for W, own, a in parts), bounds)
    if alpha == 0:
        return matrix
    density = persist(delayed(_density)(block) for block in matrix.blocks)
    ends = compute([delayed(_extremes)(part) for part in density], "densities")
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    factors = persist(delayed(density_factors)(part, most, alpha) for part in density)
    divide = delayed(partial(_divided, alpha=alpha, ratio=most / least))
    pairs = zip(matrix.blocks, matrix.exchange.gathered(factors), strict=True)
    return DistributedMatrix(persist(divide(*each) for each in pairs), matrix.exchange)


def _with_self_transitions(W: Matrix, own: Array, start: int) -> Matrix:
    rows = np.arange(len(own))
    return sparse.csr_array(W + sparse.csr_array((own, (rows, start + rows)), shape=W.shape))


def _density(block: Matrix) -> Array:
    return np.asarray(block.sum(axis=1)).ravel()


def _extremes(density: Array) -> tuple[float, float]:
    return float(density.min(initial=np.inf)), float(density.max(initial=0.0))


def _divided(block: Matrix, factors: Array, *, alpha: float, ratio: float) -> Any:
    divided = divided_by_density(block, factors)
    check_normalized(divided, alpha, ratio)
    return divided
