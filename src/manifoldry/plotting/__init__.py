"""Pictures of maps, how far they can be trusted, spectra and convergence.

Every function takes matplotlib axes, or makes a figure if none are given, and returns the axes; it
never shows a window and changes no global setting. matplotlib is imported when a plot is drawn.
"""

from manifoldry.plotting.curves import plot_learning_curve
from manifoldry.plotting.embedding import plot_embedding
from manifoldry.plotting.grid import plot_grid
from manifoldry.plotting.quality import plot_assessment, plot_coranking, plot_shepard
from manifoldry.plotting.redundancy import plot_dependence, plot_redundancy
from manifoldry.plotting.search import plot_path, plot_trace
from manifoldry.plotting.sensitivity import plot_sensitivity
from manifoldry.plotting.spectrum import plot_spectrum

__all__ = [
    "plot_assessment",
    "plot_coranking",
    "plot_dependence",
    "plot_embedding",
    "plot_grid",
    "plot_learning_curve",
    "plot_path",
    "plot_redundancy",
    "plot_sensitivity",
    "plot_shepard",
    "plot_spectrum",
    "plot_trace",
]
