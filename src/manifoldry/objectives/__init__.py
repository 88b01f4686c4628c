"""Objectives of iterative methods: functions of the embedding, with their derivatives.

An objective with attraction and repulsion is a :class:`Pairwise`, composed of weights, a kernel
and a normalizer. :func:`tsne`, :func:`sne`, :func:`symmetric_sne` and :func:`elastic` build the
objectives of these methods.
"""

from manifoldry.objectives.base import Objective
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.cell_list import CellSums
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.exact import Exact
from manifoldry.objectives.fastest import Fastest, using_pair_sums
from manifoldry.objectives.fft_interpolation import FFTInterpolation
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
from manifoldry.objectives.projected_distance import projected_distance_weights
from manifoldry.objectives.regression_pairs import RegressionPairs
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.scale import best_scale
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.objectives.transformed import Boxed, Resized, Whitened

__all__ = [
    "Bifurcation",
    "Boxed",
    "CellSums",
    "ComplementKernel",
    "DensityFloor",
    "Exact",
    "FFTInterpolation",
    "Fastest",
    "GaussianKernel",
    "Joint",
    "Kernel",
    "NewPointTerms",
    "Normalizer",
    "Objective",
    "PairSums",
    "Pairwise",
    "PerPoint",
    "RegressionPairs",
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
    "projected_distance_weights",
    "sne",
    "squared_distance_weights",
    "symmetric_sne",
    "tsne",
    "using_pair_sums",
]
