"""
A spectral method of your own in twenty lines
=============================================

Suppose that a paper proposes an embedding that no library has. If it is made of eigenvectors, you
write down the eigenproblem and the scale of the coordinates. The solver, new points, the inverse
and non-redundant coordinates come without more work. This example is the biharmonic embedding.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.affinity import SelfTuning
from manifoldry.datasets import make_strip
from manifoldry.eigen import SpectralProblem
from manifoldry.metrics import unpredictability
from manifoldry.plotting import plot_grid
from manifoldry.spectral import PosedOnGraph, SpectralEmbedder, connected_graph, operator_components

# %%
# The method
# ----------
# The biharmonic distance of two points (Lipman, Rustamov and Funkhouser, 2010) is the distance of
# two rows of :math:`f_i / \lambda_i`, where :math:`f_i` and :math:`\lambda_i` are the eigenvectors
# and eigenvalues of the graph Laplacian :math:`D - W`. ``_pose`` states the problem: a matrix, the
# end of its spectrum, and the constant eigenvector, which is left out. ``coordinates`` turns
# eigenvectors into coordinates.


class Biharmonic(SpectralEmbedder):
    """Eigenvectors of the graph Laplacian, divided by their eigenvalues."""

    def __init__(self, n_components=None, *, n_neighbors=None):
        self.n_components, self.n_neighbors = n_components, n_neighbors

    def _pose(self, data):
        graph = connected_graph(self._neighbor_graph(data), self._policy(), data)
        W = SelfTuning().fit(graph).matrix(graph)
        L = sparse.diags_array(W.sum(axis=1)) - W
        problem = SpectralProblem(L, "smallest", deflate=np.ones(data.n_samples))
        return PosedBiharmonic(data, problem, operator_components(L, self._policy(), graph))


class PosedBiharmonic(PosedOnGraph):
    """The scale of the coordinates."""

    def coordinates(self, spectra):
        Y = spectra.vectors(self.components, self.data.n_samples)
        for rows, values in zip(self.components, spectra.values, strict=True):
            Y[rows] /= values
        return Y


# %%
# Three maps of a strip
# ---------------------
# The data are a flat strip, colored by the position across it. Its second Laplacian eigenvector is
# almost a function of the first, so the map is a thin curve that hardly shows the width. The
# biharmonic embedding weights coordinates by their eigenvalues, but they are the same eigenvectors.
# ``NonRedundant`` takes the new class as it takes every spectral method, and finds the width.
#
# ``unpredictability`` of the second coordinate is near 0 if it repeats the first, and near 1 if it
# is new.

X, position = make_strip(1000, aspect=3.5, random_state=0)
models = {
    "Laplacian eigenmaps": LaplacianEigenmaps().fit(X),
    "Biharmonic": Biharmonic().fit(X),
    "NonRedundant(Biharmonic)": NonRedundant(Biharmonic()).fit(X),
}
maps = {"data": X} | models
axes = plot_grid(maps, position[:, 1], n_columns=2, panel=3.4, color_label="across the strip")
for name, model in models.items():
    print(f"{name:25} unpredictability {unpredictability(model.embedding_)[1]:.2f}")

# %%
# What comes for free
# -------------------
# New points, the way back to data, and a score on data that were not seen: the fraction of their
# variance that is recovered after ``transform`` and ``inverse_transform``. It is high for all three
# maps, because most of the variance of the strip is its length, and because the inverse can read
# the width from the small thickness of a curve. So the score does not find redundant coordinates.

X_new = make_strip(200, aspect=3.5, random_state=1).X
for name, model in models.items():
    print(f"{name:25} recovers {model.score(X_new):.2%} of the variance")
model = models["Biharmonic"]
print(f"solver: {model.solver_.split(':')[0]}, largest residual {model.residuals_.max():.0e}")
plt.show()

# %%
# Pipelines, grid search, pickling and scikit-learn's ``check_estimator`` work as well. The class
# above predicts the coordinates of new points by local regression. If you know a formula for them,
# define ``extend``. :doc:`/extending` has the rules, and
# :ref:`sphx_glr_gallery_extending_own_objective.py` does the same for an iterative method.
