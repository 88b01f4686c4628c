"""Figures that tell how good a map is, for maps made here or elsewhere."""

from manifoldry.metrics.procrustes import Procrustes, procrustes
from manifoldry.metrics.redundancy import redundancy

__all__ = ["Procrustes", "procrustes", "redundancy"]
