"""
Which new points can be trusted on a map?
=========================================

A fitted model places every new row somewhere on its map, even a row that does not belong there.
Here unseen digits, and images that are not digits, are placed on a map of 1200 digits. ``novelty``
detects most images that do not belong, but not all: blends of two digits pass.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from manifoldry import TSNE
from manifoldry.exceptions import NoveltyWarning
from manifoldry.plotting import plot_embedding, plot_images

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, train_size=1200, random_state=0, stratify=y)
model = TSNE(random_state=0).fit(X)

# %%
# There are six kinds of new rows, 40 of each. ``transform`` places them without a new fit. It would
# warn that many rows are unlike the training data. Here we look at each row instead.

rng = np.random.default_rng(0)
digits = X_new[:40].reshape(-1, 8, 8)
new = {
    "unseen digits": digits,
    "noise": rng.integers(0, 17, size=(40, 8, 8)),
    "inverted": 16 - digits,
    "sideways": np.rot90(digits, axes=(1, 2)),
    "upside down": digits[:, ::-1],
    "blends of two": (digits + X_new[40:80].reshape(-1, 8, 8)) / 2,
}
placed = {}
with warnings.catch_warnings(action="ignore", category=NoveltyWarning):
    for name, rows in new.items():
        placed[name] = model.transform(rows.reshape(-1, 64), return_distance=True)


def draw(name, ax):
    """Draw the new rows of one kind where they were placed among the training digits."""
    positions, novelty = placed[name]
    plot_embedding(model, y, ax=ax, size=6, alpha=0.4, legend=False)
    title = f"{name}: median novelty {np.median(novelty):.1f}"
    plot_images(positions, new[name], "black", ax=ax, size=0, image_size=0.12, title=title)


fig, axes = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained")
for name, ax in zip(["unseen digits", "noise"], axes, strict=True):
    draw(name, ax)

# %%
# The colored dots are the training digits. Unseen digits land among digits of their kind. Noise
# lands between or inside the groups, and nothing about these places is unusual. The other kinds:

fig, axes = plt.subplots(2, 2, figsize=(7, 7.6), layout="constrained")
for name, ax in zip(list(new)[2:], axes.flat, strict=True):
    draw(name, ax)

# %%
# Inverted images, too, are at places where nothing is unusual. So the position on a map does not
# tell whether a row belongs there.
#
# Novelty is measured in the data: it is the distance of a row from the nearest training rows,
# relative to their spacing. 1 is typical, and only 1 % of the training rows exceed 2.

fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for row, (_, novelty) in enumerate(placed.values()):
    ax.plot(novelty, np.full(40, row) + rng.uniform(-0.2, 0.2, 40), ".", alpha=0.7)
ax.axvline(2, color="black", linewidth=1, linestyle="--")
ax.set(yticks=range(len(new)), yticklabels=new, xlabel="novelty", xlim=(0, None))
ax.invert_yaxis()

# %%
# Noise, inverted and sideways images are all detected. About half of the upside-down digits pass,
# some of them because an upside-down 0, 3 or 8 is a digit again. Nearly all blends of two digits
# pass: they lie between digits, and their distance from the data is not unusual.
#
# Can the positions of unseen digits be used like those of the others? Predict the digit from the
# position on the map:

classifier = KNeighborsClassifier(5).fit(model.embedding_, y)
accuracy = classifier.score(model.transform(X_new), y_new)
print(f"{len(X_new)} unseen digits: {accuracy:.1%} are placed among digits of their kind")

# %%
# Look at ``novelty`` before you look at the places of new rows. A high value is a reason not to
# trust a place. A low value is no proof that a row belongs there. :doc:`/trust` has the rates of
# detection on seven data sets, and :ref:`sphx_glr_gallery_new_points_error_radius.py` computes
# bounds on the error of the inverse.
