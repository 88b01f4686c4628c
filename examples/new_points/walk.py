"""
What lies between two images?
=============================

The mean of two images, pixel by pixel, is a double exposure, not an image of the same kind. A walk
along the data passes through real images instead. The data are 698 rendered faces
(``load_isomap_faces``), which differ in pose and light. We walk from a face that looks to one side
to a face that looks to the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import Isomap
from manifoldry.datasets import load_isomap_faces
from manifoldry.plotting import plot_walk

faces = load_isomap_faces()
model = Isomap(n_neighbors=8).fit(faces.X)

# %%
# Choose the two faces by their known parameters (light, pose left-right, pose up-down). For both,
# light and pose up-down are in the middle of the range.

start, stop = (
    np.linalg.norm(faces.coordinates - [0, side, 0], axis=1).argmin() for side in (1.5, -1.5)
)

# %%
# There are three ways from one face to the other. ``walk`` follows the shortest path from neighbor
# to neighbor in the data. ``inverse_transform`` turns a straight line on the map into images. A
# straight line in the pixels gives weighted means of both images.

walk = model.walk(faces.X, start, stop)
steps = np.linspace(0, 1, 9)[:, None]
first, last = model.embedding_[[start, stop]]
ways = {
    "along the data": walk.data[np.linspace(0, len(walk.rows) - 1, 9).round().astype(int)],
    "straight on the map": model.inverse_transform((1 - steps) * first + steps * last),
    "straight in the pixels": (1 - steps) * faces.X[start] + steps * faces.X[stop],
}
fig, axes = plt.subplots(3, 1, figsize=(9, 4), layout="constrained")
for ax, (name, rows) in zip(axes, ways.items(), strict=True):
    ax.imshow(np.hstack(rows.reshape(-1, 32, 32)), cmap="gray", vmin=0, vmax=1)
    ax.set_title(name, loc="left")
    ax.set_axis_off()

# %%
# Along the data, the head turns. The 9 images are faces of the data set, so each image is sharp,
# but the steps between them are not quite even.
#
# Straight on the map, the head turns, too, but the light changes and some images are blurred. The
# two coordinates of the map are the two directions of the pose. They do not determine the light, so
# the inverse is an average of faces with different light.
#
# Straight in the pixels, nothing turns: one face fades out while the other fades in.

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax = plot_walk(walk, model, "silver", ax=ax, title="the walk on the map of Isomap")

# %%
# The walk goes from face to face. It is much longer than the straight line: in the space of pixels,
# the faces lie on a curved surface, and a path along it has to bend.

print(f"straight line {np.linalg.norm(faces.X[start] - faces.X[stop]):.1f}")
print(f"along the data {walk.lengths[-1]:.1f}, by way of {len(walk.rows)} faces")

# %%
# Every estimator has ``walk``, which needs no inverse. With ``n_steps`` the steps are equal, and an
# image between two faces is a blend of these two. :doc:`/trust` says how far to believe an inverse,
# :ref:`sphx_glr_gallery_new_points_inverse_grid.py` computes images on the whole map, and
# :ref:`sphx_glr_gallery_first_maps_faces.py` finds the light in a third coordinate.
