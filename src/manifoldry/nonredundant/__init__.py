"""Coordinates that say something new: the wrapper, its criteria, and the published baselines."""

from manifoldry.nonredundant.criteria import Gradient as Gradient
from manifoldry.nonredundant.criteria import Prediction as Prediction
from manifoldry.nonredundant.estimator import NonRedundant as NonRedundant
