"""
What is left of cell types in two dimensions?
=============================================

You have a map of single cells, and wonder whether the groups on it can be believed. Here are 700
blood cells (``load_pbmc``) of ten types, in 50 principal components. Two maps separate the types
nearly as well as the 50 components do: types that mix on the maps mix in the data, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import TSNE, DiffusionMaps, compare
from manifoldry.datasets import load_pbmc
from manifoldry.metrics import knn_accuracy
from manifoldry.plotting import plot_embedding

cells = load_pbmc()
X, types = cells.X, cells.labels
maps = {"t-SNE": TSNE(random_state=0).fit(X), "diffusion maps": DiffusionMaps().fit(X)}

for name, model in maps.items():
    fig, ax = plt.subplots(figsize=(6.4, 4.5), layout="constrained")
    plot_embedding(model, types, ax=ax, title=name, names=name == "t-SNE", size=30)

# %%
# t-SNE shows compact groups of cells. Diffusion maps show which groups are connected: distances are
# those of a random walk between similar cells, so a group with few links to the others is far away.
# On both maps, B cells, CD34+ cells, most dendritic cells and monocytes have separate places. NK
# cells and all kinds of T cells share one place.
#
# Have the maps mixed the T cells, or are the T cells mixed in the data? For each cell, count how
# many of its five nearest cells have the same type, on the maps and in the 50 components.

same_type = {
    name: knn_accuracy(points, types, per_point=True)
    for name, points in {"50 components": X, **maps}.items()
}
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, values), marker in zip(same_type.items(), "D.x", strict=True):
    means = [values[types == each].mean() for each in cells.target_names]
    ax.plot(means, np.arange(10), marker, markersize=9 if marker == "." else 6, label=name)
counts = [np.sum(types == each) for each in cells.target_names]
labels = [f"{each} ({n})" for each, n in zip(cells.target_names, counts, strict=True)]
ax.set(yticks=np.arange(10), yticklabels=labels, xlim=(-0.02, 1.02))
ax.set_xlabel("fraction of the five nearest cells that have the same type")
ax.legend()
ax.grid(axis="y", alpha=0.4)

# %%
# In most rows the marks are close together: if a type is hard to recognize on a map, it is about as
# hard to recognize in 50 dimensions. There are exceptions in both directions. NK cells are easier
# to recognize on the maps than in the data. Naive cytotoxic cells are harder to recognize with
# diffusion maps. The number of cells is in parentheses: types with few cells have few neighbors of
# the same type anywhere.
#
# Are labels all that matters? The maps differ in how many neighbors they keep:

comparison = compare(X, maps, types)
for name, found in comparison.metrics.items():
    kept, accuracy = found["neighbor_preservation"], found["label_accuracy"]
    print(f"{name:15} label accuracy {accuracy:.2f}, nearest neighbors kept {kept:.2f}")

# %%
# Both maps predict the type equally well, but fewer than half of the nearest cells in the data are
# nearest on a map. So trust these maps for groups, but do not use them to find single cells that
# are alike. :doc:`/trust` explains the metrics, :doc:`/anndata` does the same with an AnnData
# object, and :ref:`sphx_glr_gallery_first_maps_words.py` looks at neighbors one by one.
