"""What a new point minimizes on a map that stands still."""

from dataclasses import dataclass

import numpy as np

from manifoldry.objectives.normalizers import Normalizer, RowTerm
from manifoldry.objectives.pair_kernel import Kernel
from manifoldry.objectives.pair_sums import PairSums
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class NewPoints:
    """e(x) = Σⱼ pⱼ·φ(‖x − yⱼ‖²) + strength·R(log Σⱼ aⱼ·ψ(‖x − yⱼ‖²)), of one point at a time.

    It is what an objective says of a point more, in units in which the affinities p of the mean
    point on the map sum to one; made by :meth:`~manifoldry.objectives.Pairwise.for_new_points`.

    Parameters
    ----------
    kernel, potential : Kernel
        κ = exp(−φ), whose φ attracts, and ψ, which repels.
    normalizer : Normalizer
        R.
    pair_sums : PairSums
        What takes the sums over the map.
    n : int
        Points on the map.
    level : float, default=nan
        R of the map itself, where the normalizer is shared with it.
    strength : float, default=1.0
        Weight of repulsion relative to that of attraction.
    """

    kernel: Kernel
    potential: Kernel
    normalizer: Normalizer
    pair_sums: PairSums
    n: int
    level: float = np.nan
    strength: float = 1.0

    def repulsion(self, log_sum: Array, affinity: Array) -> RowTerm:
        """The second term and its derivatives by log S; `affinity` is each point's Σⱼ pⱼ."""
        value, slope, bend = self.normalizer.row(log_sum, affinity, self.n, self.level)
        return RowTerm(self.strength * value, self.strength * slope, self.strength * bend)

    @property
    def charges(self) -> Repulsion | None:
        """Whose ``rows(X)`` are the weights a of new points with data X; None for one each."""
        return self.normalizer.charges
