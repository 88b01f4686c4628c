"""Spectral estimators: coordinates are eigenvectors.

For a method of your own, :class:`SpectralEmbedder` is the base class, and its ``_pose`` returns a
:class:`Posed`; see ``docs/extending.md``.
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
