"""Estimators whose embedding minimizes an objective iteratively.

For a loss of your own, :class:`NeighborEmbedder` is the base class, and its ``_objective`` returns
a :class:`~manifoldry.objectives.Pairwise`; see ``docs/extending.md``.
"""

from manifoldry.iterative.base import IterativeEmbedder
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder

__all__ = ["IterativeEmbedder", "NeighborEmbedder"]
