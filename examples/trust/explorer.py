"""
Look around in a map and go on in Python
========================================

A map raises questions that only looking closer can answer: what is this group, what lies between
these two, is that row in the right place? The explorer shows maps side by side in a browser or a
notebook. What you select and label there can be used in Python. This example prepares three maps of
digits and goes on with a selection.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import manifoldry
from manifoldry.plotting import plot_embedding

# %%
# The maps can be fitted estimators, or arrays from any package. Only estimators can turn places
# into data and take new rows.

X, digit = load_digits(n_class=6, return_X_y=True)
maps = {
    "PCA": manifoldry.PCA(2).fit(X),
    "Isomap": manifoldry.Isomap(n_neighbors=12).fit(X),
    "t-SNE": manifoldry.TSNE(random_state=0).fit(X),
}
explorer = manifoldry.explore(maps, X, digit, image_shape=(8, 8), dark_ink=True)
print(explorer)

# %%
# In a notebook, ``explorer`` as the last line of a cell shows the maps there. In a script,
# ``explorer.serve()`` opens them in a browser and waits for Ctrl-C. It looks like this:
#
# .. image:: /images/explorer-overview.png
#    :alt: Four maps of digits side by side. Rows that are selected on one map stand out on all.
#
# Draw around rows with the lasso, and ``explorer.selection`` has their numbers. Python can select,
# too. Here these are the rows that PCA does not tell apart from digits of another class: those
# whose nearest other row on the map is another digit.

Y = maps["PCA"].embedding_
distances = np.linalg.norm(Y[:, None] - Y[None, :], axis=2)
np.fill_diagonal(distances, np.inf)
explorer.select(digit != digit[distances.argmin(axis=1)])
print(f"{len(explorer.selection)} of {len(X)} rows are selected")

# %%
# Selected rows stand out on every map of the explorer. Here they are black. On the map by t-SNE
# they are spread over the groups, and nearly all of them are in the group of their digit. So they
# are no unusual digits: PCA has drawn them over others.

chosen = explorer.selection
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, explorer.models.items(), strict=True):
    plot_embedding(model, digit, ax=ax, title=name, legend=ax is axes[-1])
    ax.plot(*model.embedding_[chosen].T, "k.", ms=3)
plt.show()

Y = maps["t-SNE"].embedding_
distances = np.linalg.norm(Y[chosen, None] - Y[None, :], axis=2)
distances[np.arange(len(chosen)), chosen] = np.inf
same = digit[chosen] == digit[distances.argmin(axis=1)]
print(f"t-SNE: the nearest row of {same.mean():.0%} of them is the same digit")

# %%
# Their trustworthiness says the same in numbers. In the explorer, choose trustworthiness in the
# list "Color by".

for name, model in explorer.models.items():
    trust = manifoldry.assess(X, model).per_point["trustworthiness"]
    print(f"{name:9} selected: {trust[chosen].mean():.2f}   all: {trust.mean():.2f}")

# %%
# More maps can be added while it is open. At the end, ``close`` stops the work in the background.

explorer.add("two pixels", X[:, [20, 43]])
print(explorer)
explorer.close()

# %%
# The command ``manifoldry explore digits.csv`` opens the same without any Python. :doc:`/explorer`
# explains every part of the page, and
# :ref:`sphx_glr_gallery_trust_where_to_trust.py` the trustworthiness of each row.
