"""Non-redundant spectral coordinates: the wrapper, its criteria, and published baselines."""

from manifoldry.nonredundant.criteria import GradientCriterion as GradientCriterion
from manifoldry.nonredundant.criteria import PredictionCriterion as PredictionCriterion
from manifoldry.nonredundant.estimator import NonRedundant
from manifoldry.nonredundant.smoother import KernelSmoother

__all__ = ["KernelSmoother", "NonRedundant"]
