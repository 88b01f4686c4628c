"""
Clusters of any shape, and labels for new points
================================================

For anyone whose clusters are not round. K-means cuts moons and rings in half. Spectral clustering
follows the neighbor graph instead. Here it also labels new points, which scikit-learn's version
does not, so its decision regions can be drawn.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from manifoldry import SpectralClustering
from manifoldry.exceptions import NoveltyWarning

stretched, groups = make_blobs(400, random_state=170)
data = {
    "moons": (*make_moons(400, noise=0.06, random_state=0), 2),
    "rings": (*make_circles(400, factor=0.45, noise=0.06, random_state=0), 2),
    "stretched": (stretched @ [[0.6, -0.6], [-0.4, 0.8]], groups, 3),
}

# %%
# Dots and background have the color of their cluster. Most of the background is far from any data,
# where a label means little. ``predict`` warns about it; for the picture the warning is switched
# off. The number is the adjusted Rand index: 1 if the clusters are the true groups, 0 if they are
# arbitrary.

fig, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
for column, (name, (X, truth, k)) in zip(axes.T, data.items(), strict=True):
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    places = np.stack(np.meshgrid(*np.linspace(low, high, 150).T), axis=-1)
    models = KMeans(k, n_init=10, random_state=0), SpectralClustering(k, random_state=0)
    for ax, model in zip(column, models, strict=True):
        clusters = model.fit_predict(X)
        with warnings.catch_warnings(action="ignore", category=NoveltyWarning):
            regions = model.predict(places.reshape(-1, 2)).reshape(150, 150)
        ax.pcolormesh(*places.T, regions.T, cmap="tab10", vmin=0, vmax=9, alpha=0.3)
        ax.scatter(*X.T, c=clusters, cmap="tab10", vmin=0, vmax=9, s=8)
        score = adjusted_rand_score(truth, clusters)
        ax.set(title=f"{type(model).__name__}, {name}: {score:.2f}", xticks=[], yticks=[])
plt.show()

# %%
# New points of the same kind get the right label without a new fit:

X, truth, k = data["moons"]
model = SpectralClustering(k, random_state=0).fit(X)
X_new, groups_new = make_moons(1000, noise=0.06, random_state=1)
print(f"agreement on 1000 new points: {adjusted_rand_score(groups_new, model.predict(X_new)):.2f}")

# %%
# The number of clusters has to be given, and the groups must be separated by a gap in the graph:
# where they touch, as two of the stretched groups do, a few points are assigned to the wrong
# one. :doc:`/choose/index` says when to prefer another method; what a graph in several pieces does
# to other methods is in :ref:`sphx_glr_gallery_spectral_pieces.py`.
