"""
Why does the second coordinate repeat the first?
================================================

For anyone whose spectral map is a parabola. On data that are longer than wide, the second
eigenvector of many methods is a function of the first, and a real direction of the data is
missing. :class:`~manifoldry.NonRedundant` finds it.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_strip
from manifoldry.plotting import plot_dependence, plot_embedding

X, truth = make_strip(1500, aspect=3.5, curl=4.5, noise=0.01, random_state=0)
width = truth[:, 1]

# %%
# The data are a strip, 3.5 times as long as wide, rolled into part of a cylinder. Color is the
# position across the strip. Laplacian eigenmaps draw a parabola on which all colors lie on top of
# each other. The width is not in the map, although the eigenvectors are orthogonal. The
# non-redundant coordinates are a rectangle with the colors in order. (The axes of the maps have
# different units.)

plain = LaplacianEigenmaps(2, n_neighbors=12).fit(X)
better = NonRedundant(LaplacianEigenmaps(n_neighbors=12), 2).fit(X)

fig, axes = plt.subplot_mosaic(
    [["data", "plain"], ["data", "better"]],
    per_subplot_kw={"data": {"projection": "3d"}},
    figsize=(8.5, 5.6),
    layout="constrained",
)
axes["data"].view_init(elev=25, azim=-60)
plot_embedding(X, width, ax=axes["data"], title="The data", legend=False, size=5)
plot_embedding(plain, width, ax=axes["plain"], title="Laplacian eigenmaps", legend=False, size=5)
plot_embedding(better, width, ax=axes["better"], title="Non-redundant", legend=False, size=5)
for name in ("plain", "better"):
    axes[name].set_aspect("auto")
plt.show()

# %%
# ``plot_dependence`` draws each coordinate against those before it. Here the second and the
# third are curves over the first, a parabola and a cubic. They are new frequencies of the same
# direction. Only the fourth coordinate is mostly the width.

four = LaplacianEigenmaps(4, n_neighbors=12).fit(X)
_ = plot_dependence(four)

# %%
# ``unpredictability`` measures the same: the relative error of predicting a coordinate from those
# before it. It is 1 for a new direction and 0 for a repetition. It needs no true coordinates. The
# value of the fourth coordinate is low too, since the three curves are not quite thin: their
# thickness hides some of the width.

print("Laplacian eigenmaps:", four.unpredictability().round(2))
print("Non-redundant:      ", better.unpredictability_.round(2))
correlation = np.corrcoef(better.embedding_[:, 1], width)[0, 1]
print(f"correlation of the second non-redundant coordinate with the width: {abs(correlation):.2f}")
plt.show()

# %%
# If a spectral map is a thin curve, look at ``unpredictability`` before you conclude that the
# data have one dimension. :doc:`/concepts/nonredundant` explains where the repetition comes from
# and when to use which criterion. :ref:`sphx_glr_gallery_trust_how_many_dimensions.py` counts the
# dimensions.
