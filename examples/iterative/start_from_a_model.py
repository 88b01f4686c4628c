"""
Embed a sample first, then all points in its places
===================================================

Two t-SNE maps of the same data rarely look alike. That is a nuisance if colleagues have learned the
first one. ``init=model`` starts from a fitted model, even from one of a sample, so that every
cluster keeps its place. Here a map of 300 digits becomes a map of 1200.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldry import TSNE
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding

X, y = load_digits(return_X_y=True)
X, y = X[:1200], y[:1200]
part = np.arange(0, 1200, 4)

# %%
# Three maps
# ----------
# The large map starts from the map of the sample, at the top left. ``transform`` of that model
# places all points, and the search improves them together. The map at the bottom left starts anew
# from principal components, which is the default.

sample = TSNE().fit(X[part])
grown = TSNE(init=sample).fit(X)
anew = TSNE().fit(X)

fig, axes = plt.subplot_mosaic("ABB;CBB", figsize=(10, 6), layout="constrained")
plot_embedding(sample, y[part], ax=axes["A"], title="300 digits", legend=False)
plot_embedding(anew, y, ax=axes["C"], title="1200 digits, anew", legend=False)
title = "1200 digits, from the map of the 300"
ax = plot_embedding(grown, y, ax=axes["B"], title=title, color_label="digit")

# %%
# Does each digit keep its place?
# -------------------------------
# The positions of the 300 digits in the new maps are compared with those in the first one, after
# the best rotation, shift and scaling: 0 is the same map, 1 an unrelated one. The divergence is
# the objective of t-SNE, and lower is better.

for name, model in {"from the 300": grown, "anew": anew}.items():
    error = procrustes(model.embedding_[part], sample).error
    print(f"{name:13} displaced by {error:.2f}  divergence {model.loss_:.2f}")
plt.show()

# %%
# Both maps of all digits are equally good, but only the one that starts from the sample can be read
# with the first one beside it. The map that starts anew is turned and mirrored. Its clusters have
# other neighbors even after the best alignment. The recipe also serves when more data arrive, or
# when you want to try a slow fit on a sample first: see :doc:`/scale` and :doc:`/iterative`. To
# place new points without moving the old ones, use ``transform`` instead.
