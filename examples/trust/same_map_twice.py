"""
Would half the data give the same map?
======================================

For anyone who shows a map of a sample and wonders how much of it is chance.
:func:`~manifoldry.metrics.stability` refits on parts of the data, aligns the maps and says how
far each point moves. On the digits the maps of PCA and t-SNE mostly hold, and that of Isomap
does not.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import PCA, TSNE, Isomap
from manifoldry.metrics import stability
from manifoldry.plotting import plot_embedding

X, digits = load_digits(n_class=5, return_X_y=True)
X, digits = X[:400], digits[:400]
models = {"PCA": PCA(2), "t-SNE": TSNE(2, random_state=0), "Isomap": Isomap(2)}

# %%
# Each method is fitted to all rows and to three random halves; ``transform`` places the rows
# that were left out. A map may be turned, reflected or scaled without a change in meaning, so
# each refit is first aligned with the full map (as ``metrics.procrustes`` does for any two maps
# of the same points). Right: the distance that points move, in units of the spread of the map;
# from 0.7 on yellow.

fig, axes = plt.subplots(3, 3, figsize=(10, 8.6), layout="constrained")
for row, (name, model) in zip(axes, models.items(), strict=True):
    found = stability(model, X, n_resamples=3, fraction=0.5, keep_embeddings=True, random_state=0)
    half = found.aligned_embeddings[0]
    plot_embedding(found.embedding, digits, ax=row[0], title=f"{name}, all rows", legend=False)
    plot_embedding(half, digits, ax=row[1], title="fitted to half of them", color_label="digit")
    plot_embedding(found.embedding, found.per_point, ax=row[2], title="how far points move")
    row[2].collections[0].set_clim(0, 0.7)  # the same colors for all methods
    print(f"{name}: {found.verdict}, points move by {found.variability:.2f}")
plt.show()

# %%
# t-SNE places the groups anew, but the same points form them. Isomap does worse, although it has
# no local minima. A likely reason: the digits are nearly separate groups, connected by few
# edges, and if some of these are missing, all paths between two groups have other lengths. Half
# of the data is a hard test, and three refits are few; by default ``stability`` makes 20 refits
# to 80 percent.
#
# If a map moves, report what stays: the groups, or the order along a direction. :doc:`/trust`
# explains the verdict and its thresholds. A map can be stable and wrong; where it is wrong is
# the subject of :ref:`sphx_glr_gallery_trust_where_to_trust.py`.
