"""The penalty of isolated points in unsupervised kernel regression."""

from dataclasses import dataclass

from manifoldry.objectives.base import Objective
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.regression_kernels import RegressionKernel


@dataclass(frozen=True)
class Floor:
    """The smallest kernel sum without a penalty, and the weight of the penalty."""

    min_kernel_sum: float
    variance: float  # of the data
    kernel: str | RegressionKernel
    penalty_fraction: float = 0.01  # weight of the penalty, in units of that variance

    @classmethod
    def default(
        cls, n: int, n_components: int, variance: float, kernel: str | RegressionKernel
    ) -> "Floor":
        """√10 to the power of `n_components` (at most 100), or n / 20 if that is less."""
        return cls(min(10 ** (min(n_components, 100) / 2), n / 20), variance, kernel)

    @property
    def weight(self) -> float:
        """Weight of the penalty."""
        return self.penalty_fraction * self.variance

    def add_penalty(self, regression: UKRObjective) -> Objective:
        """The objective with the penalty, unless `min_kernel_sum` is zero."""
        if self.min_kernel_sum == 0:
            return regression
        return DensityFloor(
            regression, self.min_kernel_sum, self.weight, self.kernel, regression.pairs
        )
