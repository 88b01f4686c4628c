"""Density estimators for data near a manifold."""

from manifoldry.density.held_out_width import WidthTrial
from manifoldry.density.manifold_parzen import ManifoldParzen
from manifoldry.density.mixture_of_factor_analyzers import MixtureOfFactorAnalyzers
from manifoldry.density.window_mixture import ParzenOptions

__all__ = [
    "ManifoldParzen",
    "MixtureOfFactorAnalyzers",
    "ParzenOptions",
    "WidthTrial",
]
