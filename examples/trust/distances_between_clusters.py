"""
Do distances between clusters mean anything?
============================================

You want to compare the sizes of clusters on a map, or to say that two clusters are related because
they are close. Here three methods map three clusters of known sizes and distances. PCA nearly keeps
both, and t-SNE keeps neither. A Shepard diagram shows which case you have.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import PCA, TSNE, ElasticEmbedding
from manifoldry.metrics import shepard
from manifoldry.plotting import plot_embedding, plot_shepard

rng = np.random.default_rng(0)
centers = np.zeros((3, 10))
centers[:, 0] = [0, 8, 40]  # the third cluster is far from the first two
spread = [1.0, 1.0, 4.0]  # and wider
X = np.vstack([rng.normal(c, s, (100, 10)) for c, s in zip(centers, spread, strict=True)])
cluster = np.repeat(["A", "B", "C"], 100)

# %%
# Cluster C is four times as wide as A, and five times as far from A as B is. PCA shows both nearly
# in the right proportion. So does classical MDS, which gives the same map for Euclidean distances.
# The elastic embedding shows that C is wider and farther, but not how much. t-SNE draws three
# clusters of the same size, evenly spaced.
#
# With real data the truth is not known, but a Shepard diagram, below each map, needs only the data
# and the map. For each pair of points it shows the distance in the data on one axis and the
# distance on the map on the other. If the map keeps distances, the cloud is a narrow rising band.

models = {"PCA": PCA(2), "Elastic embedding": ElasticEmbedding(2), "t-SNE": TSNE(2, random_state=0)}
maps = {name: model.fit_transform(X) for name, model in models.items()}

fig, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
for (top, bottom), (name, Y) in zip(axes.T, maps.items(), strict=True):
    plot_embedding(Y, cluster, ax=top, title=name, names=True)
    plot_shepard(shepard(X, Y), ax=bottom)
plt.show()

# %%
# These numbers say how much wider C is than A, and how much farther from A than B is.

for name, Y in {"data": X, **maps}.items():
    a, b, c = np.split(Y, 3)
    width = np.sqrt(c.var(axis=0).sum() / a.var(axis=0).sum())
    far, near = (np.linalg.norm(a.mean(axis=0) - other.mean(axis=0)) for other in (c, b))
    print(f"{name:18} width C/A {width:.1f}   distance AC/AB {far / near:.1f}")

# %%
# The rank correlation is high for every map, since on all of them two points of one cluster are
# nearer than two points of different clusters. The shape of the cloud says more. The two clouds at
# the bottom of the t-SNE diagram are pairs within A and pairs within C. They have the same
# distances on the map, although points of C are several times as far apart in the data. The pairs
# between A and B have the same distances as those between B and C.
#
# Read groups from t-SNE, and sizes and distances from PCA or MDS. :doc:`/iterative` compares the
# iterative methods, :doc:`/trust` lists the metrics of distances, and
# :ref:`sphx_glr_gallery_trust_where_to_trust.py` is about single points.
