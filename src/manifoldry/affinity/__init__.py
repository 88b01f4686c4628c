"""Affinities: functions from a neighbor graph to edge weights, for training and new points."""

from manifoldry.affinity.base import Affinity, Weights
from manifoldry.affinity.entropic import Entropic
from manifoldry.affinity.gaussian import Binary, Gaussian, SelfTuning

__all__ = ["Affinity", "Binary", "Entropic", "Gaussian", "SelfTuning", "Weights"]
