"""manifoldry: see, use and trust the low-dimensional structure of high-dimensional data."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Public names and where they live. Nothing is imported until it is asked for.
_EXPORTS = {
    "PCA": "spectral.pca",
    "ClassicalMDS": "spectral.classical_mds",
    "KernelPCA": "spectral.kernel_pca",
    "LaplacianEigenmaps": "spectral.laplacian_eigenmaps",
    "SpectralEmbedding": "spectral.spectral_embedding",
    "NeighborGraph": "neighbors.graph",
}
_SUBMODULES = ("affinity", "datasets", "eigen", "exceptions", "neighbors", "plotting")

__all__ = ["__version__", *_EXPORTS, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"manifoldry.{_EXPORTS[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"manifoldry.{name}")
    raise AttributeError(f"module 'manifoldry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
