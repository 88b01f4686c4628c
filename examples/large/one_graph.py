"""
One neighbor graph for several methods
======================================

The search for neighbors takes much of the time of a fit, and every method repeats it. Here the
graph of 5000 handwritten digits of MNIST is built once and passed to four methods. Then the
example measures what an approximate search misses.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import PCA, TSNE, DiffusionMaps, Isomap, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import load_mnist
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_grid

mnist = load_mnist()
X, y = PCA(50).fit_transform(mnist.X[:5000]), mnist.y[:5000]

# %%
# Four methods, one search
# ------------------------
# A graph is passed to ``fit`` in place of the data. ``truncate`` keeps the nearest of its
# neighbors: t-SNE uses three times its perplexity, the spectral methods ten. The graph holds the
# data, so new points can still be transformed.

graph = NeighborGraph.build(X, 30)
near = graph.truncate(10)
models = {
    "Isomap": Isomap(n_landmarks=100).fit(near),
    "Laplacian eigenmaps": LaplacianEigenmaps().fit(near),
    "diffusion maps": DiffusionMaps().fit(near),
    "t-SNE": TSNE(perplexity=10).fit(graph),
}
axes = plot_grid(models, y, n_columns=2, panel=3.4, color_label="digit")

# %%
# Exact and approximate
# ---------------------
# ``search`` says how neighbors were found and why. For these 5000 rows all pairs are compared. From
# about 45 000 rows of 50 features on, each point is compared only with the points of nearby cells,
# which is faster on large data. Here this search is requested. ``recall`` is the fraction of the
# true neighbors that are found, estimated on a sample of the points.

approximate = NeighborGraph.build(X, 10, search="approximate")
print(near.search)
print(approximate.search)
shared = [
    np.isin(approximate.indices[10 * i : 10 * i + 10], near.indices[10 * i : 10 * i + 10]).mean()
    for i in range(len(X))
]
print(f"neighbors found, all points: {np.mean(shared):.3f}")

# %%
# Does it matter? The map from approximate neighbors is nearly the same.

again = LaplacianEigenmaps().fit(approximate)
print(f"difference of the maps: {procrustes(again, models['Laplacian eigenmaps']).error:.3f}")
plt.show()

# %%
# Build the graph yourself if several methods or several parameter values share it. The choice of
# the search can be left to the library, which warns if the recall is low. See :doc:`/scale` for
# times of both searches, of the approximate one on up to a million points.
