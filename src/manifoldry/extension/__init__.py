"""Maps from new data to coordinates (:class:`Extension`) and from coordinates to data."""

from manifoldry.extension.base import Extension, KernelExtension, Nystrom
from manifoldry.extension.laplacian import GraphWeights, LaplacianExtension
from manifoldry.extension.layout import Layout
from manifoldry.extension.relative_distance import RelativeDistance

__all__ = [
    "Extension",
    "GraphWeights",
    "KernelExtension",
    "LaplacianExtension",
    "Layout",
    "Nystrom",
    "RelativeDistance",
]
