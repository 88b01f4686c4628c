"""Continuous transformations learned from pairs, such as translation, rotation and scaling."""

from manifoldry.lie.transform import LieTransform as LieTransform
