"""manifoldry: nonlinear dimensionality reduction with the interface of scikit-learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` below finds, for type checkers and editors
    from manifoldry.density.manifold_parzen import ManifoldParzen as ManifoldParzen
    from manifoldry.density.mixture_of_factor_analyzers import (
        MixtureOfFactorAnalyzers as MixtureOfFactorAnalyzers,
    )
    from manifoldry.device.base import using_device as using_device
    from manifoldry.dimension.estimate import estimate_dimension as estimate_dimension
    from manifoldry.explorer.explore import explore as explore
    from manifoldry.io.model_file import load as load
    from manifoldry.io.model_file import read_info as read_info
    from manifoldry.io.model_file import save as save
    from manifoldry.iterative.elastic_embedding import ElasticEmbedding as ElasticEmbedding
    from manifoldry.iterative.sne import SNE as SNE
    from manifoldry.iterative.sne import SymmetricSNE as SymmetricSNE
    from manifoldry.iterative.tsne import TSNE as TSNE
    from manifoldry.iterative.ukr import UKR as UKR
    from manifoldry.lie.transform import LieTransform as LieTransform
    from manifoldry.metrics.assess import assess as assess
    from manifoldry.metrics.comparison import compare as compare
    from manifoldry.neighbors.graph import NeighborGraph as NeighborGraph
    from manifoldry.neighbors.short_circuits import find_short_circuits as find_short_circuits
    from manifoldry.nonredundant.estimator import NonRedundant as NonRedundant
    from manifoldry.reporting.build import report as report
    from manifoldry.semidefinite.conformal_eigenmaps import ConformalEigenmaps as ConformalEigenmaps
    from manifoldry.semidefinite.maximum_variance_unfolding import MVU as MVU
    from manifoldry.semidefinite.maximum_variance_unfolding import (
        MaximumVarianceUnfolding as MaximumVarianceUnfolding,
    )
    from manifoldry.spectral.classical_mds import ClassicalMDS as ClassicalMDS
    from manifoldry.spectral.diffusion_maps import DiffusionMaps as DiffusionMaps
    from manifoldry.spectral.hessian_lle import HessianLLE as HessianLLE
    from manifoldry.spectral.isomap import Isomap as Isomap
    from manifoldry.spectral.kernel_pca import KernelPCA as KernelPCA
    from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
    from manifoldry.spectral.lle import LLE as LLE
    from manifoldry.spectral.locally_linear_embedding import (
        LocallyLinearEmbedding as LocallyLinearEmbedding,
    )
    from manifoldry.spectral.ltsa import LTSA as LTSA
    from manifoldry.spectral.modified_lle import ModifiedLLE as ModifiedLLE
    from manifoldry.spectral.pca import PCA as PCA
    from manifoldry.spectral.spectral_clustering import SpectralClustering as SpectralClustering
    from manifoldry.spectral.spectral_embedding import SpectralEmbedding as SpectralEmbedding
    from manifoldry.wrappers.conformal_inverse import ConformalInverse as ConformalInverse
    from manifoldry.wrappers.from_density import FromDensity as FromDensity

__version__ = "0.2.0"

# Public names and their modules, which are imported on first access.
_EXPORTS = {
    "PCA": "spectral.pca",
    "ClassicalMDS": "spectral.classical_mds",
    "KernelPCA": "spectral.kernel_pca",
    "LaplacianEigenmaps": "spectral.laplacian_eigenmaps",
    "SpectralClustering": "spectral.spectral_clustering",
    "SpectralEmbedding": "spectral.spectral_embedding",
    "DiffusionMaps": "spectral.diffusion_maps",
    "Isomap": "spectral.isomap",
    "LLE": "spectral.lle",
    "HessianLLE": "spectral.hessian_lle",
    "LTSA": "spectral.ltsa",
    "ModifiedLLE": "spectral.modified_lle",
    "LocallyLinearEmbedding": "spectral.locally_linear_embedding",
    "MaximumVarianceUnfolding": "semidefinite.maximum_variance_unfolding",
    "MVU": "semidefinite.maximum_variance_unfolding",
    "ConformalEigenmaps": "semidefinite.conformal_eigenmaps",
    "SNE": "iterative.sne",
    "SymmetricSNE": "iterative.sne",
    "TSNE": "iterative.tsne",
    "ElasticEmbedding": "iterative.elastic_embedding",
    "UKR": "iterative.ukr",
    "NonRedundant": "nonredundant.estimator",
    "ConformalInverse": "wrappers.conformal_inverse",
    "NeighborGraph": "neighbors.graph",
    "ManifoldParzen": "density.manifold_parzen",
    "MixtureOfFactorAnalyzers": "density.mixture_of_factor_analyzers",
    "FromDensity": "wrappers.from_density",
    "LieTransform": "lie.transform",
    "save": "io.model_file",
    "load": "io.model_file",
    "read_info": "io.model_file",
    "assess": "metrics.assess",
    "compare": "metrics.comparison",
    "estimate_dimension": "dimension.estimate",
    "find_short_circuits": "neighbors.short_circuits",
    "report": "reporting.build",
    "explore": "explorer.explore",
    "using_device": "device.base",
}
_SUBMODULES = (
    "affinity",
    "datasets",
    "density",
    "device",
    "dimension",
    "distributed",
    "eigen",
    "exceptions",
    "explorer",
    "extension",
    "io",
    "iterative",
    "lie",
    "metrics",
    "neighbors",
    "nonredundant",
    "objectives",
    "optimize",
    "plotting",
    "reporting",
    "semidefinite",
    "spectral",
    "tl",
)

__all__ = ["__version__", *_EXPORTS, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(f"manifoldry.{_EXPORTS[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"manifoldry.{name}")
    raise AttributeError(f"module 'manifoldry' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
