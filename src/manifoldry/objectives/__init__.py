"""What iterative methods minimize: functions of the map, with their derivatives.

An objective of attraction and repulsion is data, not a class of its own: a :class:`Pairwise` of
weights, a kernel and a normalizer. :func:`tsne` and the other losses of the literature are
factories of a few words.
"""

from manifoldry.objectives.base import Objective
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.exact import Exact
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.leave_one_out import leave_one_out_errors
from manifoldry.objectives.losses import elastic, sne, symmetric_sne, tsne
from manifoldry.objectives.normalizers import Joint, Normalizer, PerPoint, Unnormalized
from manifoldry.objectives.pair_kernel import (
    ComplementKernel,
    GaussianKernel,
    Kernel,
    StudentKernel,
)
from manifoldry.objectives.pair_sums import PairSums
from manifoldry.objectives.pairwise import NewPointTerms, Pairwise
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.scale import best_scale
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.objectives.transformed import Boxed, Resized, Whitened

__all__ = [
    "Bifurcation",
    "Boxed",
    "ComplementKernel",
    "DensityFloor",
    "Exact",
    "GaussianKernel",
    "Joint",
    "Kernel",
    "NewPointTerms",
    "Normalizer",
    "Objective",
    "PairSums",
    "Pairwise",
    "PerPoint",
    "Repulsion",
    "Resized",
    "StudentKernel",
    "UKRObjective",
    "UniformRepulsion",
    "Unnormalized",
    "Whitened",
    "best_scale",
    "elastic",
    "leave_one_out_errors",
    "sne",
    "squared_distance_weights",
    "symmetric_sne",
    "tsne",
]
