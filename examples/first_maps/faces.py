"""
Can a map find pose and light of faces?
=======================================

Images have many pixels, but they may vary in only a few ways. Here are 698 computer-drawn images of
one face (``load_isomap_faces``). They differ in three parameters: two for where the face looks, and
one for where the light comes from. Isomap sees only pixels, and finds one parameter per coordinate.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import Isomap
from manifoldry.datasets import load_isomap_faces
from manifoldry.plotting import plot_embedding, plot_images

faces = load_isomap_faces()
model = Isomap(n_components=3, n_neighbors=8).fit(faces.X)

# %%
# Each row has 1024 pixels. The picture shows the first two coordinates of the map, with some of the
# faces:

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
# From left to right, the face turns. From top to bottom, it lifts its chin. Nobody told the method
# that these movements exist. The data set has the parameters with which the images were drawn, so
# we can check:

found = np.corrcoef(model.embedding_.T, faces.coordinates.T)[:3, 3:]
for name, correlation in zip(faces.coordinate_names, abs(found).T, strict=True):
    print(f"{name:16} correlation with the three coordinates:", correlation.round(2))

# %%
# Each parameter belongs to one coordinate. Each panel below shows one parameter as color, from low
# (dark) to high (yellow). One of its axes is the coordinate that belongs to the parameter.

fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, index, components in zip(axes, (1, 2, 0), ((0, 1), (0, 1), (0, 2)), strict=True):
    parameter = faces.coordinates[:, index]
    title = f"{faces.coordinate_names[index]}; coordinates {components[0] + 1}, {components[1] + 1}"
    plot_embedding(model, parameter, components=components, ax=ax, title=title, legend=False)

# %%
# In each panel the colors change along one axis. Pose left-right is found best. Light is the third
# coordinate. A map of two coordinates would have missed it: faces with different light would lie on
# top of each other.
#
# How would you know that three coordinates are needed? ``residual_variance_`` is the part of the
# variance of the distances along the data that the map does not explain. It has a value for one,
# two and three coordinates:

print(model.residual_variance_.round(3))

# %%
# It still decreases clearly with the third coordinate. :doc:`/choosing` shows how to choose the
# number of coordinates and the number of neighbors, and
# :ref:`sphx_glr_gallery_new_points_inverse_grid.py` computes images at places of a map where there
# are no data.
