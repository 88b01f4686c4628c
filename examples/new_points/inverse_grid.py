"""
What does each place of a map mean?
===================================

The axes of a nonlinear map have no names and no units. But a fitted model can compute data from any
position. This example draws the digits that belong to a grid of positions, on the maps of two
methods. Such a grid shows what each place of the map means.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from manifoldry import PCA, TSNE, Isomap
from manifoldry.plotting import plot_inverse_grid

X, y = load_digits(n_class=6, return_X_y=True)
X, X_new = train_test_split(X, train_size=800, random_state=0, stratify=y)

# %%
# None of the images below is in the data. ``inverse_transform`` computes each of them from its
# position. Where no training points are near, there is no image, because it would be an
# extrapolation.

isomap = Isomap(n_neighbors=12).fit(X)
fig, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax = plot_inverse_grid(
    isomap, "silver", image_shape=(8, 8), ax=ax, title="Isomap of the digits 0 to 5"
)

# %%
# Each digit has a region. The images also show what changes inside a region, such as the slant of
# the fives and the foot of the ones. Where two regions meet, the images are blurred: they are
# averages of digits that the map has put at the same place.
#
# The map of t-SNE looks different:

tsne = TSNE(random_state=0).fit(X)
fig, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax = plot_inverse_grid(
    tsne, "silver", image_shape=(8, 8), n_images=24, ax=ax, title="t-SNE of the same digits"
)

# %%
# The images are sharp, because two digits hardly ever share a place. But most of the map is empty.
# For example, there are no images between a 0 and a 3, because t-SNE separates the groups.
#
# How much of an image survives the way to two coordinates and back? ``score`` is the part of the
# variance of unseen digits that does.

for name, model in {"PCA": PCA(2).fit(X), "Isomap": isomap, "t-SNE": tsne}.items():
    print(f"{name:7} {model.score(X_new):.2f}")

# %%
# t-SNE loses the least here, and PCA the most. Blurred regions in such a grid show where a map has
# put different things on top of each other. A map with more coordinates, or by another method, may
# separate them.
#
# :doc:`/trust` is about positions off the map and error radii of reconstructions.
# :ref:`sphx_glr_gallery_new_points_error_radius.py` computes such radii, and
# :ref:`sphx_glr_gallery_new_points_walk.py` walks across a map, from one image to another.
