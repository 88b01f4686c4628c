"""
What lies between two images?
=============================

Halfway between two images, pixel by pixel, is a double exposure, and no image of the same kind. A
walk along the data passes through real images instead. Of 698 rendered faces
(``load_isomap_faces``), which differ in pose and light, we walk from one that looks to one side to
one that looks to the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import Isomap
from manifoldry.datasets import load_isomap_faces
from manifoldry.plotting import plot_walk

faces = load_isomap_faces()
model = Isomap(n_neighbors=8).fit(faces.X)

# %%
# Choose the two faces by their known parameters (light, pose left-right, pose up-down): both have
# light and pose up-down in the middle of the range.

start, stop = (
    np.linalg.norm(faces.coordinates - [0, side, 0], axis=1).argmin() for side in (1.5, -1.5)
)

# %%
# There are three ways from one to the other. ``walk`` follows the shortest path from neighbor to
# neighbor in the data. A straight line on the map becomes images by ``inverse_transform``. And a
# straight line in the pixels is a weighted mean of both images.

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
# Along the data, the head turns. Its images are 9 of those in the data, so each of them is sharp,
# and the steps between them are not quite even.
#
# Straight on the map, the head turns too, but the light changes and some images are blurred. The
# map has two coordinates, which are the two directions of the pose. It knows nothing about the
# light, and computes an average of faces with different light.
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
# Every estimator has ``walk``, and it needs no inverse. With ``n_steps`` the steps are equal, and
# images between two faces are blends of these two. :doc:`/trust` says how far to believe an
# inverse, :ref:`sphx_glr_gallery_new_points_inverse_grid.py` computes images on the whole map, and
# :ref:`sphx_glr_gallery_first_maps_faces.py` finds the light in a third coordinate.
