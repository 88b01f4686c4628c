"""Continuous transformations, such as translation, rotation and scaling, learned from pairs."""

from manifoldry.lie.transform import LieTransform

__all__ = ["LieTransform"]
