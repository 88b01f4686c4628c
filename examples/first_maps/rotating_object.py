"""
Does an object on a turntable give a circle?
============================================

A camera takes 72 pictures of an object, which turns by 5 degrees from one picture to the next. Each
picture of the data set COIL-20 (``load_coil20``) has 16384 pixels, but a single number, the angle,
describes it. So the map should be a circle. For some objects it is. For others the map shows why it
is not.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import LaplacianEigenmaps
from manifoldry.datasets import load_coil20
from manifoldry.plotting import plot_images

cat = load_coil20(objects=[4])
model = LaplacianEigenmaps(n_neighbors=4).fit(cat.X)

fig, ax = plt.subplots(figsize=(8, 7), layout="constrained")
ax = plot_images(
    model,
    cat.images,
    cat.coordinates[:, 0],
    image_cmap="gray",
    image_size=0.12,
    cmap="twilight",
    ax=ax,
    title="72 pictures of a turning cat",
    color_label="angle in degrees",
)

# %%
# Laplacian eigenmaps see only the pixels, not the angle or the order of the pictures. They connect
# each picture with the four most similar ones. The map is a circle, and the colors go around it
# once.
#
# These are the maps of two toy cars:

fig, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
turns = {"the cat": (model.embedding_, cat.coordinates[:, 0])}
for ax, (name, number) in zip(axes, {"first car": 3, "second car": 19}.items(), strict=True):
    car = load_coil20(objects=[number])
    model = LaplacianEigenmaps(n_neighbors=4).fit(car.X)
    turns[name] = (model.embedding_, car.coordinates[:, 0])
    plot_images(
        model,
        car.images,
        car.coordinates[:, 0],
        image_cmap="gray",
        image_size=0.13,
        cmap="twilight",
        ax=ax,
        title=name,
        legend=False,
    )

# %%
# The first car gives a figure of eight: it looks so similar from the front and from the back that
# these two views meet in the middle. The second car gives a circle, but the colors go around it
# twice: each view lies beside the view from the opposite side. How well does the angle on the map
# agree with the angle of the turntable, and with twice that angle? A value of 1 is perfect.

for name, (embedding, degrees) in turns.items():
    on_map = np.arctan2(embedding[:, 1], embedding[:, 0])
    for times, word in ((1, "once"), (2, "twice")):
        angle = times * np.deg2rad(degrees)
        fit = max(abs(np.mean(np.exp(1j * (angle + sign * on_map)))) for sign in (-1, 1))
        print(f"{name:11} around {word:6} {fit:.2f}")

# %%
# How similar are opposite views of the second car? Compare them with views that are 10 degrees
# apart:

for steps in (36, 2):
    distance = np.linalg.norm(car.X - np.roll(car.X, steps, axis=0), axis=1)
    print(f"{5 * steps:3} degrees apart: median distance {np.median(distance):.1f}")

# %%
# Opposite views are even closer to each other, so these distances alone cannot tell them apart. A
# map can only show what the measurements show. If the angle matters, measure something else: with a
# second camera, or with the pictures before and after, as
# :ref:`sphx_glr_gallery_first_maps_sensor_curve.py` does for a sensor. :doc:`/mathematics`
# has the formulas of Laplacian eigenmaps, and :ref:`sphx_glr_gallery_new_points_walk.py` walks
# along a map of images.
