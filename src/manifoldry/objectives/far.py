"""Points so far from all others that their kernel sums underflow: the sums in logarithms."""

import numpy as np
from scipy.special import logsumexp

from manifoldry.objectives.pair_kernel import PairKernel
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks

# Sums below this have lost digits in single precision, or all of them.
UNDERFLOW = 1e-25


def far_log_masses(Y: Array, kernel: PairKernel, far: IntArray) -> Array:
    """Log Σⱼ κ(dᵢⱼ²) of the rows `far`."""
    log_masses = np.empty(len(far))
    for block in row_blocks(len(far), 4 * Y.size):
        logs = kernel.log(_squares(Y, far[block]).sum(axis=2))
        logs[np.arange(len(logs)), far[block]] = -np.inf
        log_masses[block] = logsumexp(logs, axis=1)
    return log_masses


def far_force(Y: Array, kernel: PairKernel, far: IntArray, log_rates: Array) -> Array:
    """Σ rᵢ·κ·pull·(yᵢ − yⱼ) over pairs (i, j) with i in `far`, for both ends, (n, d)."""
    force = np.zeros(Y.shape)
    for block in row_blocks(len(far), 4 * Y.size):
        rows = far[block]
        K, pull = _scaled(Y, kernel, rows, log_rates[rows])
        K *= pull
        np.add.at(force, rows, K.sum(axis=1)[:, None] * Y[rows] - K @ Y)
        force += K.sum(axis=0)[:, None] * Y - K.T @ Y[rows]
    return force


def far_moments(Y: Array, kernel: PairKernel, far: IntArray, log_rates: Array) -> Array:
    """Σ rᵢ·κ·pull²·(yᵢ − yⱼ)² over pairs (i, j) with i in `far`, for both ends, (n, d)."""
    moments = np.zeros(Y.shape)
    for block in row_blocks(len(far), 4 * Y.size):
        rows = far[block]
        K, pull = _scaled(Y, kernel, rows, log_rates[rows])
        terms = (K * pull**2)[:, :, None] * _squares(Y, rows)
        np.add.at(moments, rows, terms.sum(axis=1))
        moments += terms.sum(axis=0)
    return moments


def _squares(Y: Array, rows: IntArray) -> Array:
    return (Y[rows, None].astype(np.float64) - Y) ** 2


def _scaled(Y: Array, kernel: PairKernel, rows: IntArray, log_rates: Array) -> tuple[Array, Array]:
    """rᵢ·κ(dᵢⱼ²), with the product taken in logarithms, and the pull."""
    D = _squares(Y, rows).sum(axis=2)
    logs = kernel.log(D) + log_rates[:, None]
    logs[np.arange(len(logs)), rows] = -np.inf
    return np.exp(logs), kernel.pull(D)
