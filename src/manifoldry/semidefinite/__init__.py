"""Semidefinite methods: coordinates from a positive semidefinite Gram matrix."""

from manifoldry.semidefinite.edge_lengths import EdgeConstraint
from manifoldry.semidefinite.multipliers import MethodOfMultipliers

__all__ = ["EdgeConstraint", "MethodOfMultipliers"]
