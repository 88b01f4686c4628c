"""Spectral estimators, whose coordinates are eigenvectors.

To write another spectral method, subclass :class:`SpectralEmbedder` and return a :class:`Posed`
from its ``_pose``; see ``docs/extending.md``.
"""

from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.gram import KernelGram, PosedKernel
from manifoldry.spectral.posed import Posed, PosedOnGraph, connected_graph, operator_components

__all__ = [
    "KernelGram",
    "Posed",
    "PosedKernel",
    "PosedOnGraph",
    "SpectralEmbedder",
    "connected_graph",
    "operator_components",
]
