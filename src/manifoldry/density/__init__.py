"""Densities of data near a manifold, and embeddings of a density instead of its sample."""

from manifoldry.density.from_density import FromDensity
from manifoldry.density.manifold_parzen import ManifoldParzen
from manifoldry.density.mixture_of_factor_analyzers import MixtureOfFactorAnalyzers

__all__ = ["FromDensity", "ManifoldParzen", "MixtureOfFactorAnalyzers"]
