"""What iterative methods minimise: functions of the map, with their derivatives."""

from manifoldry.objectives.base import Objective
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.boxed import Boxed
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.elastic import ElasticObjective
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.leave_one_out import leave_one_out_errors
from manifoldry.objectives.pair_sums import PairSums, gaussian_sums, student_sums
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.scale import best_scale
from manifoldry.objectives.sne import SNEObjective
from manifoldry.objectives.squared_distance import squared_distance_weights
from manifoldry.objectives.symmetric_sne import SymmetricSNEObjective
from manifoldry.objectives.tsne import TSNEObjective
from manifoldry.objectives.whitened import Whitened

__all__ = [
    "Bifurcation",
    "Boxed",
    "DensityFloor",
    "ElasticObjective",
    "Objective",
    "PairSums",
    "PairwiseObjective",
    "Repulsion",
    "SNEObjective",
    "SymmetricSNEObjective",
    "TSNEObjective",
    "UKRObjective",
    "UniformRepulsion",
    "Whitened",
    "best_scale",
    "gaussian_sums",
    "leave_one_out_errors",
    "squared_distance_weights",
    "student_sums",
]
