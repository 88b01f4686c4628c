"""
Clusters, or the manifolds within them?
=======================================

t-SNE shows clusters, but it may cut what is continuous within them. This example uses COIL-20,
photographs of objects on a turntable: the 72 views of each object form a closed loop. The elastic
embedding keeps more of these loops whole, at the price of less space between objects.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import PCA, TSNE, ElasticEmbedding, assess
from manifoldry.datasets import load_coil20
from manifoldry.plotting import plot_images

coil = load_coil20(objects=[1, 3, 4, 6, 8, 14])
X = PCA(60).fit_transform(coil.X)
images = coil.X.reshape(-1, 128, 128)[:, ::3, ::3]

# %%
# Two maps of six objects
# -----------------------
# The color is the object, and a gray line joins each view to the next one. On the map by t-SNE the
# two cars (red and orange) are strips. Long lines lead from their ends across the map, where t-SNE
# has cut the loops. In the elastic embedding the same loops are closed. Both maps place one object
# inside the loop of another, which a map of two dimensions can hardly avoid.

models = {"t-SNE": TSNE(perplexity=20), "elastic embedding": ElasticEmbedding(perplexity=20)}
fig, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    Y = model.fit_transform(X)
    for number in np.unique(coil.y):
        loop = Y[coil.y == number]
        ax.plot(*np.vstack([loop, loop[:1]]).T, color="silver", linewidth=1.5, zorder=0)
    style = {"size": 10, "image_size": 0.06, "image_cmap": "gray", "legend": False}
    plot_images(model, images, coil.y, ax=ax, title=name, **style)

# %%
# Count the cuts
# --------------
# The views are 5° apart. A step from one view to the next that is more than ten times as long as
# the median step of its object is a cut.

for name, model in models.items():
    cuts = 0
    for number in np.unique(coil.y):
        loop = model.embedding_[coil.y == number]
        steps = np.linalg.norm(loop - np.roll(loop, 1, axis=0), axis=1)
        cuts += np.sum(steps > 10 * np.median(steps))
    metrics = assess(X, model, coil.y).metrics
    print(
        f"{name:18} cuts {cuts}  trustworthiness {metrics['trustworthiness']:.3f}  "
        f"rank correlation of distances {metrics['distance_rank_correlation']:.2f}"
    )
plt.show()

# %%
# For clusters alone use t-SNE: it separates the objects more clearly, and its nearest neighbors are
# more trustworthy. If the shape within a cluster matters (a cycle, a trajectory, a sheet), look at
# the elastic embedding as well. :doc:`/iterative` has a table of both over six data sets, and
# :ref:`sphx_glr_gallery_iterative_unfolding_film.py` shows how an elastic embedding comes about.
