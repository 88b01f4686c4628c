"""Estimates of intrinsic dimension, and a report that explains why they differ."""

from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.local_pca import local_pca
from manifoldry.dimension.neighbor_distances import maximum_likelihood, two_nn
from manifoldry.dimension.pair_counts import correlation_dimension, diffusion_slope
from manifoldry.dimension.profile import ScaleProfile, scale_profile
from manifoldry.dimension.report import DimensionReport
from manifoldry.dimension.residual_variance_elbow import ElbowOptions, residual_variance_elbow
from manifoldry.dimension.result import Dimension
from manifoldry.dimension.spectra import gram_rank, pca_dimension

__all__ = [
    "Dimension",
    "DimensionReport",
    "ElbowOptions",
    "ScaleProfile",
    "correlation_dimension",
    "diffusion_slope",
    "estimate_dimension",
    "gram_rank",
    "local_pca",
    "maximum_likelihood",
    "pca_dimension",
    "residual_variance_elbow",
    "scale_profile",
    "two_nn",
]
