"""Quality metrics of an embedding, computed with manifoldry or any other package."""

from manifoldry.metrics.assess import Assessment, assess
from manifoldry.metrics.comparison import Comparison, compare
from manifoldry.metrics.coranking import CoRanking, coranking, coranking_matrix
from manifoldry.metrics.distortion import LocalDistortion, local_distortion
from manifoldry.metrics.held_out import KernelLoss, kernel_loss, reconstruction
from manifoldry.metrics.labels import knn_accuracy, silhouette
from manifoldry.metrics.preservation import continuity, neighbor_preservation, trustworthiness
from manifoldry.metrics.procrustes import Alignment, Procrustes, procrustes
from manifoldry.metrics.sensitivity import Sensitivity, sensitivity
from manifoldry.metrics.shepard import Shepard, shepard
from manifoldry.metrics.stability import Stability, stability
from manifoldry.metrics.stress import residual_variance, strain, stress
from manifoldry.metrics.unpredictability import unpredictability
from manifoldry.util.estimate import Estimate

__all__ = [
    "Alignment",
    "Assessment",
    "CoRanking",
    "Comparison",
    "Estimate",
    "KernelLoss",
    "LocalDistortion",
    "Procrustes",
    "Sensitivity",
    "Shepard",
    "Stability",
    "assess",
    "compare",
    "continuity",
    "coranking",
    "coranking_matrix",
    "kernel_loss",
    "knn_accuracy",
    "local_distortion",
    "neighbor_preservation",
    "procrustes",
    "reconstruction",
    "residual_variance",
    "sensitivity",
    "shepard",
    "silhouette",
    "stability",
    "strain",
    "stress",
    "trustworthiness",
    "unpredictability",
]
