"""Figures that tell how good a map is, for maps made here or elsewhere."""

from manifoldry.metrics.procrustes import Procrustes, procrustes

__all__ = ["Procrustes", "procrustes"]
