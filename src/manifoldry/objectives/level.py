"""How repulsion is normalised: functions of all points' kernel sums, and their derivatives."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from manifoldry.objectives.far import UNDERFLOW, far_log_masses
from manifoldry.objectives.pair_kernel import PairKernel
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class Level:
    """A function R of all points' masses mᵢ = Σⱼ κ(dᵢⱼ²): how much a map repels itself."""

    value: float
    log_rates: Array | float
    """log ∂R/∂mᵢ, of every point or of all."""
    far: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Rows whose mass underflows and is known by its logarithm only."""

    @property
    def rates(self) -> Array | float:
        """∂R/∂mᵢ; zero for rows that are far, whose part is added apart."""
        if np.ndim(self.log_rates) == 0:
            return float(np.exp(self.log_rates))
        near = np.array(self.log_rates)
        near[self.far] = -np.inf
        return np.exp(near)


def row_level(Y: Array, kernel: PairKernel, mass: Array, share: float) -> Level:
    """R = share·Σᵢ log mᵢ: each row normalised by itself."""
    far = np.flatnonzero(mass < UNDERFLOW)
    log_mass = np.log(np.maximum(mass, UNDERFLOW))
    log_mass[far] = far_log_masses(Y, kernel, far)
    return Level(share * float(log_mass.sum()), np.log(share) - log_mass, far)


def total_level(Y: Array, kernel: PairKernel, mass: Array) -> Level:
    """R = log Σᵢ mᵢ: all pairs normalised together."""
    total = float(mass.sum())
    if total >= UNDERFLOW:
        return Level(float(np.log(total)), -float(np.log(total)))
    everyone = np.arange(len(Y))
    value = float(logsumexp(far_log_masses(Y, kernel, everyone)))
    return Level(value, np.full(len(Y), -value), everyone)


def both_ways(level: Level, own: Array, charged: Callable[[Array], Array]) -> Array:
    """Σⱼ (rᵢ + rⱼ)·(…), from sums with unit charges and, where rates differ, with charges r."""
    rates = level.rates
    if not isinstance(rates, np.ndarray):
        return 2 * rates * own
    return rates[:, None] * own + charged(rates)
