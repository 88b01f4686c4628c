"""
Are these clusters real?
========================

You see groups on a t-SNE map, and want to name them. With a small perplexity, t-SNE draws groups
even where there are none. Two checks tell real groups from noise. To get noise to compare with,
shuffle each column of the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from manifoldry import TSNE
from manifoldry.metrics import stability, trustworthiness
from manifoldry.plotting import plot_embedding

digits = load_digits(n_class=4).data[:200]
rng = np.random.default_rng(0)
noise = rng.permuted(digits, axis=0)  # each column shuffled: nothing connects the columns
data = {"digits 0 to 3": digits, "shuffled columns": noise}

# %%
# Each data set is mapped once, and the four groups that k-means finds *on the map* get colors. Then
# t-SNE is fitted to 80 percent of the rows, and ``transform`` places the others. This second map,
# on the right, is turned to match the first. Each point keeps its color.

found, groups = {}, {}
k_means = KMeans(4, n_init=10, random_state=0)
fig, axes = plt.subplots(2, 2, figsize=(8, 7.4), layout="constrained")
for row, (name, X) in zip(axes, data.items(), strict=True):
    tsne = TSNE(perplexity=5, random_state=0)
    found[name] = stability(tsne, X, n_resamples=4, keep_embeddings=True, random_state=0)
    first, refit = found[name].embedding, found[name].aligned_embeddings[0]
    groups[name] = k_means.fit_predict(first)
    plot_embedding(first, groups[name], ax=row[0], title=f"{name}: t-SNE", legend=False)
    plot_embedding(refit, groups[name], ax=row[1], title="fitted to 80 % of the rows", legend=False)

# %%
# The groups of the digits stay together, although whole groups move. The groups of the noise mix.
# So do not ask whether points move: they do on any t-SNE map. Ask whether the same points form a
# group again. The adjusted Rand index is 1 if they do, and about 0 if the groups are arbitrary. For
# the noise it is low in every refit.

for name, stable in found.items():
    again = [
        adjusted_rand_score(groups[name], k_means.fit_predict(refit))
        for refit in stable.aligned_embeddings
    ]
    print(
        f"{name}: points move by {stable.variability:.2f}, agreement of groups", np.round(again, 2)
    )

# %%
# The second check needs no refit. Trustworthiness asks whether the 15 nearest neighbors on the map
# are neighbors in the data. A map on a plane cannot keep the neighbors of noise in 64 dimensions.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, (name, X) in zip(axes, data.items(), strict=True):
    trust = trustworthiness(X, found[name].embedding, n_neighbors=15, per_point=True)
    ax.hist(trust, bins=np.linspace(0.4, 1, 25))
    ax.set(title=f"{name}: mean {trust.mean():.2f}", xlabel="trustworthiness of a point")
_ = axes[0].set_ylabel("number of points")
plt.show()

# %%
# Before you name a group, map shuffled columns with the same settings: if that looks similar,
# the groups come from the method. :doc:`/trust` describes stability and trustworthiness. Groups
# that are real may still be at arbitrary places:
# :ref:`sphx_glr_gallery_trust_distances_between_clusters.py`.
