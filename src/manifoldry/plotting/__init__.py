"""Plots of embeddings, their quality metrics, eigenvalues and convergence.

Every function draws on the matplotlib axes passed, or on those of a new figure, and returns them.
It never shows a window and changes no global settings. matplotlib is imported at the first plot.
"""

from manifoldry.plotting.curves import plot_learning_curve
from manifoldry.plotting.embedding import plot_embedding
from manifoldry.plotting.grid import plot_comparison, plot_grid
from manifoldry.plotting.images import plot_images, plot_inverse_grid
from manifoldry.plotting.quality import plot_assessment, plot_coranking, plot_shepard
from manifoldry.plotting.redundancy import plot_dependence, plot_redundancy
from manifoldry.plotting.search import plot_path, plot_trace
from manifoldry.plotting.sensitivity import plot_sensitivity
from manifoldry.plotting.spectrum import plot_spectrum
from manifoldry.plotting.walk import plot_walk

__all__ = [
    "plot_assessment",
    "plot_comparison",
    "plot_coranking",
    "plot_dependence",
    "plot_embedding",
    "plot_grid",
    "plot_images",
    "plot_inverse_grid",
    "plot_learning_curve",
    "plot_path",
    "plot_redundancy",
    "plot_sensitivity",
    "plot_shepard",
    "plot_spectrum",
    "plot_trace",
    "plot_walk",
]
