"""
Which shapes does a chain molecule take?
========================================

You have no table, only a way to compare two objects. Here the objects are 800 shapes of a chain of
five carbon atoms. The distance between two shapes says how well one can be laid over the other.
From these distances alone, the map finds the nine states of the chain: three for each of the two
bonds that can rotate.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import TSNE
from manifoldry.metrics import knn_accuracy
from manifoldry.plotting import plot_embedding

rng = np.random.default_rng(0)
n = 800

# %%
# A chain of five atoms is rigid except for two torsion angles. Draw them at 500 kelvin from the
# torsion potential of the TraPPE force field (in kelvin): its minima are near -64°, 64° and 180°.
# The two angles are drawn independently. In real molecules they are only approximately independent.

grid = np.linspace(-np.pi, np.pi, 3600, endpoint=False)
potential = (
    355.03 * (1 + np.cos(grid)) - 68.19 * (1 - np.cos(2 * grid)) + 791.32 * (1 + np.cos(3 * grid))
)
probability = np.exp(-potential / 500)
torsion = rng.choice(grid, size=(n, 2), p=probability / probability.sum())

# %%
# Place the atoms one after the other: bonds of 1.54 Å, angles of 114° between bonds, and the drawn
# torsions between planes.

bond, angle = 1.54, np.deg2rad(114)
corner = bond * np.array([[np.cos(angle), np.sin(angle), 0], [0, 0, 0], [1, 0, 0]])
atoms = np.broadcast_to(corner, (n, 3, 3))
for turn in torsion.T:
    along = (atoms[:, -1] - atoms[:, -2]) / bond
    normal = np.cross(atoms[:, -2] - atoms[:, -3], along) / (bond * np.sin(angle))
    side = np.cross(normal, along)
    across = np.cos(turn)[:, None] * side + np.sin(turn)[:, None] * normal
    step = bond * (-np.cos(angle) * along + np.sin(angle) * across)
    atoms = np.concatenate([atoms, (atoms[:, -1] + step)[:, None]], axis=1)

# %%
# The distance between two shapes is the root mean square deviation of their atoms after the best
# shift and rotation (Kabsch's formula: singular values of the 3 × 3 matrix of products).

centered = atoms - atoms.mean(axis=1, keepdims=True)
size = np.sum(centered**2, axis=(1, 2))
distances = np.zeros((n, n))
for i in range(n):
    products = np.einsum("ak,jal->jkl", centered[i], centered)
    singular = np.linalg.svd(products, compute_uv=False)
    singular[:, 2] *= np.sign(np.linalg.det(products))  # rotations only, no mirror images
    squared = size[i] + size - 2 * singular.sum(axis=1)
    distances[i] = np.sqrt(np.maximum(squared, 0) / 5)
distances = (distances + distances.T) / 2
np.fill_diagonal(distances, 0)

# %%
# ``metric="precomputed"`` fits a model to distances. We name the states by the torsions, which the
# method has not seen: t (trans) near 180°, g+ and g- (gauche) near 64° and -64°.

model = TSNE(metric="precomputed", random_state=0).fit(distances)
letter = np.where(abs(torsion) > np.deg2rad(120), "t", np.where(torsion > 0, "g+", "g-"))
state = np.array([f"{first} {second}" for first, second in letter])

fig, ax = plt.subplots(figsize=(8, 6), layout="constrained")
plot_embedding(model, state, ax=ax, alpha=0.4, title="800 shapes of a chain", color_label="state")
for each in np.unique(state):
    members = np.flatnonzero(state == each)
    place = np.median(model.embedding_[members], axis=0)
    typical = members[distances[np.ix_(members, members)].sum(axis=1).argmin()]
    x, y = (place + 2.5 * centered[typical][:, :2]).T
    ax.plot(x, y, "o-", color="black", markersize=4, linewidth=2)

# %%
# There are nine groups, and nearly every group has a single state. The most typical shape of each
# state is drawn in black, seen from the side. In this view mirror images, such as ``g+ t`` and ``g-
# t``, look alike. The stretched shape ``t t`` has the lowest energy and is the most common one. How
# often do the five nearest shapes on the map have the same state?

print(f"label accuracy {knn_accuracy(model, state):.2f}")

# %%
# The torsion angles change smoothly within a group, and jump between groups. The color map is a
# circle, as the angles are: -180° and 180° are the same.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for number, ax in enumerate(axes):
    degrees = np.rad2deg(torsion[:, number])
    plot_embedding(model, degrees, cmap="twilight", ax=ax, title=f"torsion {number + 1}, degrees")

# %%
# Between the groups are the barriers of the potential, where shapes are rare. t-SNE shows them as
# gaps. So use this map to count states, but not to measure how far apart they are.
#
# Isomap, eigenmaps and diffusion maps take ``metric="precomputed"``, too.
# :class:`~manifoldry.ClassicalMDS` keeps the distances themselves. Such a model has no data to
# return, so it has no ``inverse_transform``. :doc:`/choose/index` helps to choose a method, and
# :ref:`sphx_glr_gallery_first_maps_sensor_curve.py` shows another set of angles, from one sensor.
