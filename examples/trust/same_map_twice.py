"""
Would half the data give the same map?
======================================

You show a map of a sample, and wonder how much of it is chance.
:func:`~manifoldry.metrics.stability` refits on parts of the data, aligns the maps and says how far
each point moves. For the digits, the maps by PCA and t-SNE are mostly stable, and the map by Isomap
is not.
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
# Each method is fitted to all rows and to three random halves. ``transform`` places the rows that
# were left out. A map may be turned, reflected or scaled without a change in meaning. So each refit
# is first aligned with the full map (as ``metrics.procrustes`` does for any two maps of the same
# points). The right panels show the distance that points move, in units of the spread of the map.
# Yellow is 0.7 or more.

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
# t-SNE moves the groups to other places, but the same points form them. Isomap does worse, although
# it has no local minima. A likely reason is that the digits are nearly separate groups, connected
# by few edges. If some of these edges are missing, all paths between two groups have other lengths.
# Half of the data is a hard test, and three refits are few. By default, ``stability`` makes 20
# refits to 80 percent of the rows.
#
# If a map moves, report what stays: the groups, or the order along a direction. :doc:`/trust`
# explains the verdict and its thresholds. A map can be stable and wrong.
# :ref:`sphx_glr_gallery_trust_where_to_trust.py` shows where a map is wrong.
