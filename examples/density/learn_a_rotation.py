"""
Learn a rotation from pairs of images
=====================================

What turns one image into the next? Suppose that you have pairs of rows before and after a
transformation, but know neither its name nor its amounts. ``LieTransform`` learns it as a single
matrix, the generator. Here it learns to rotate handwritten digits from turns of up to 30°, and is
then asked for more.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, rotate
from sklearn.datasets import load_digits

from manifoldry import LieTransform

# %%
# Pairs
# -----
# The digits are enlarged and smoothed, because a generator describes images that vary smoothly.
# Every image is rotated by an angle that the model is not told.

rng = np.random.default_rng(0)
images = np.kron(load_digits().images[:1550], np.ones((2, 2)))
images = gaussian_filter(np.pad(images, [(0, 0), (4, 4), (4, 4)]), (0, 1.5, 1.5))
angles = rng.uniform(-30, 30, len(images))
pairs = zip(images, angles, strict=True)
turned = np.array([rotate(image, angle, reshape=False) for image, angle in pairs])
X, Y = images.reshape(len(images), -1), turned.reshape(len(images), -1)

# %%
# The transformation, further than it was seen
# --------------------------------------------
# Fifty pairs were left out. ``apply`` transforms two of their digits by any amount; below each
# result is the true rotation. Up to 45° they can hardly be told apart. At 90°, three times the
# largest angle in the pairs, errors have grown to visible ripples.

model = LieTransform(n_components=60, reg=1e-4).fit(X[:1500], Y[:1500])
degree = np.polyfit(angles[:1500], model.amounts_[:, 0], 1)[0]  # amount of a turn by one degree
shown = (-90, -60, -45, -30, 0, 30, 45, 60, 90)
fig, axes = plt.subplots(4, len(shown), figsize=(10, 4.6), layout="constrained")
for top, row in ((0, 1501), (2, 1505)):
    for column, angle in enumerate(shown):
        learned = model.apply(X[[row]], angle * degree).reshape(images[0].shape)
        true = rotate(images[row], angle, reshape=False)
        for ax, image in zip(axes[top : top + 2, column], (learned, true), strict=True):
            ax.imshow(image, cmap="gray_r", vmin=0, vmax=12)
            ax.set(xticks=[], yticks=[])
    axes[top, 0].set_ylabel("learned")
    axes[top + 1, 0].set_ylabel("true")
for ax, angle in zip(axes[0], shown, strict=True):
    ax.set_title(f"{angle}°")

# %%
# Measure an unknown angle
# ------------------------
# ``estimate`` finds the amounts of new pairs. For the fifty pairs left out, the amounts are
# proportional to the angles, so one known angle would calibrate the scale.

found = model.estimate(X[1500:], Y[1500:])[:, 0] / degree
print(f"largest error of 50 angles: {np.abs(found - angles[1500:]).max():.1f}°")
print(f"change of the new pairs that is explained: {model.score(X[1500:], Y[1500:]):.1%}")

fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
ax.axline((0, 0), slope=1, color="lightgray")
ax.plot(angles[1500:], found, "o", markersize=4)
ax.set(xlabel="true angle in degrees", ylabel="estimated angle in degrees", aspect="equal")
plt.show()

# %%
# The model knows nothing of rotations, nor which pixels are next to each other. It can learn any
# continuous linear transformation of rows from pairs. How far it extrapolates depends on how well
# the pairs are explained. ``apply`` warns where it cannot be trusted. See :doc:`/mathematics` for
# the objective.
