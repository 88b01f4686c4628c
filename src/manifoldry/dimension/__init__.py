"""How many dimensions data have, by distances, variances and unrolling, and why those differ."""

from manifoldry.dimension.correlation import correlation_dimension
from manifoldry.dimension.diffusion import diffusion_slope
from manifoldry.dimension.estimate import estimate_dimension
from manifoldry.dimension.gram_rank import gram_rank
from manifoldry.dimension.local_pca import local_pca
from manifoldry.dimension.maximum_likelihood import maximum_likelihood
from manifoldry.dimension.pca import pca_dimension
from manifoldry.dimension.profile import Profile, scale_profile
from manifoldry.dimension.report import DimensionReport
from manifoldry.dimension.residual_variance_elbow import ElbowOptions, residual_variance_elbow
from manifoldry.dimension.result import Dimension
from manifoldry.dimension.two_nn import two_nn

__all__ = [
    "Dimension",
    "DimensionReport",
    "ElbowOptions",
    "Profile",
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
