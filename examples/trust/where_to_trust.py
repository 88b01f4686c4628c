"""
Where on this map can I trust what I see?
=========================================

You have a map, made by any package, and want to read it. Here are two maps of the digits by
scikit-learn. :func:`~manifoldry.assess` compares each point's neighbors on the map with its
neighbors in the data, and shows which points have the wrong neighbors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from manifoldry import assess
from manifoldry.plotting import plot_assessment, plot_embedding

X, digits = load_digits(return_X_y=True)
X, digits = X[:1000], digits[:1000]
maps = {
    "PCA": PCA(2).fit_transform(X),
    "t-SNE": TSNE(random_state=0).fit_transform(X),
}
found = {name: assess(X, Y, digits, random_state=0) for name, Y in maps.items()}

# %%
# The color is the trustworthiness of each point. It is 1 if its 15 neighbors on the map are
# neighbors in the data as well, and about 0.5 if they are arbitrary. Numbers mark the middle of
# each digit's points.
#
# On the PCA map only the rim can be trusted: in the middle, classes overlap and neighbors mean
# little. The t-SNE map can be believed nearly everywhere. Its few dark points lie between groups,
# where they look like a transition from one digit to another.

fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, (name, Y) in zip(axes, maps.items(), strict=True):
    trust = found[name].per_point["trustworthiness"]
    plot_embedding(Y, trust, ax=ax, title=f"{name} of the digits", color_label="trustworthiness")
    ax.collections[0].set_clim(0.5, 1)  # the same colors for both maps
    for digit in range(10):
        x, y = np.median(Y[digits == digit], axis=0)
        ax.text(x, y, digit, fontsize=14, weight="bold", ha="center", va="center")

# %%
# The assessment in words compares the map with PCA. Its warnings matter as much as its praise:
# distances between the groups of the t-SNE map cannot be read as distances in the data.

print(found["t-SNE"].summary.replace(". ", ".\n"))

# %%
# ``plot_assessment`` draws four panels. The upper two show which points to trust, and which regions
# are drawn larger than others. The lower two show for which sizes of neighborhoods the map is
# better than PCA, and how distances on the map relate to distances in the data. PCA keeps more of
# neighborhoods of several hundred points than t-SNE does.

_ = plot_assessment(found["t-SNE"])
plt.show()

# %%
# Color a map by trustworthiness before you draw conclusions about a particular point. :doc:`/trust`
# explains the numbers. :ref:`sphx_glr_gallery_trust_clusters_in_noise.py` checks whether the groups
# themselves are real, and :ref:`sphx_glr_gallery_trust_distances_between_clusters.py` is about the
# distances between them.
