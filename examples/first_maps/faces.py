"""
Can a map find pose and light of faces?
=======================================

Images may vary in a few ways only, although they have many pixels. Here are 698 computer-drawn
images of one face (``load_isomap_faces``), which differ in where it looks and where the light comes
from. Isomap, which sees only pixels, finds these three parameters: one per coordinate.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import Isomap
from manifoldry.datasets import load_isomap_faces
from manifoldry.plotting import plot_embedding, plot_images

faces = load_isomap_faces()
model = Isomap(n_components=3, n_neighbors=8).fit(faces.X)

# %%
# Each row has 1024 pixels. The first two coordinates of the map, with some of the faces:

fig, ax = plt.subplots(figsize=(9, 6.3), layout="constrained")
ax = plot_images(
    model,
    faces.images,
    "silver",
    components=(0, 1),
    image_cmap="gray",
    image_size=0.06,
    ax=ax,
    title="698 faces, the first two coordinates of Isomap",
)

# %%
# From the left to the right, the face turns; from the top to the bottom, it lifts its chin. Nobody
# told the method that these movements exist. The data come with the parameters that the images were
# drawn with, so that we can check:

found = np.corrcoef(model.embedding_.T, faces.coordinates.T)[:3, 3:]
for name, correlation in zip(faces.coordinate_names, abs(found).T, strict=True):
    print(f"{name:16} correlation with the three coordinates:", correlation.round(2))

# %%
# Each parameter belongs to one coordinate, so each panel below has the coordinate that belongs to
# it on an axis, and the parameter as color, from low (dark) to high (yellow).

fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, index, components in zip(axes, (1, 2, 0), ((0, 1), (0, 1), (0, 2)), strict=True):
    parameter = faces.coordinates[:, index]
    title = f"{faces.coordinate_names[index]}; coordinates {components[0] + 1}, {components[1] + 1}"
    plot_embedding(model, parameter, components=components, ax=ax, title=title, legend=False)

# %%
# The colors change along one axis in each panel. Pose left-right is found best. Light is the third
# coordinate, so that a map of two coordinates would have missed it: faces with different light
# would lie on top of each other.
#
# How does one choose three coordinates without knowing the answer? ``residual_variance_`` is the
# part of the variance of the distances along the data that the first one, two and three coordinates
# do not explain:

print(model.residual_variance_.round(3))

# %%
# It still decreases clearly with the third coordinate. :doc:`/choosing` shows how to choose the
# number of coordinates and of neighbors, and :ref:`sphx_glr_gallery_new_points_inverse_grid.py`
# computes images at places of a map where there are no data.
