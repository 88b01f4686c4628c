"""
One sensor's curve: what does the machine do?
=============================================

A single sensor measures only one number at a time, but a machine has several moving parts. Still,
short pieces of the sensor's curve contain the whole state of the machine. Here one curve mixes the
vibration of two rotating parts. A map of its pieces recovers the angle of each part.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import PCA, Isomap
from manifoldry.plotting import plot_embedding

# %%
# Two parts turn at 0.5 and about 0.22 turns per second. The ratio is √5, so no state ever repeats
# exactly. The sensor reads a nonlinear mixture of both, with some noise, 20 times per second.

rng = np.random.default_rng(0)
time = np.arange(0, 150, 0.05)
fast, slow = 2 * np.pi * 0.5 * time, 2 * np.pi * 0.5 / np.sqrt(5) * time
signal = np.exp(np.cos(fast)) + 1.2 * np.exp(np.cos(slow)) + 0.5 * np.cos(fast) * np.sin(slow)
signal += 0.02 * rng.normal(size=len(time))

# %%
# Each row of the data is a piece of 50 consecutive readings, 2.5 seconds long (a delay embedding).
# The state at the end of a piece is one angle for each part. So the rows lie on a torus, a surface
# that closes in two directions. It needs four coordinates: two for each ring.

pieces = np.lib.stride_tricks.sliding_window_view(signal, 50)[::2]
true = {"slow part": slow[49::2] % (2 * np.pi), "fast part": fast[49::2] % (2 * np.pi)}
model = Isomap(n_components=4, n_neighbors=12).fit(pieces)

fig, axes = plt.subplot_mosaic(
    [["curve", "curve"], ["slow part", "fast part"]],
    height_ratios=[1, 3.4],
    figsize=(9, 6),
    layout="constrained",
)
axes["curve"].plot(time[:600], signal[:600], linewidth=1.2)
axes["curve"].set(xlabel="time in seconds", ylabel="sensor", xlim=(0, 30))
for components, (name, angle) in zip([(0, 1), (2, 3)], true.items(), strict=True):
    plot_embedding(
        model,
        np.rad2deg(angle),
        components=components,
        cmap="twilight",
        ax=axes[name],
        title=f"Isomap, coordinates {components[0] + 1} and {components[1] + 1}",
        color_label=f"angle of the {name}, degrees",
    )

# %%
# Both pairs of coordinates are rings. Around the first ring, the colors turn once: it shows the
# angle of the slow part. The second ring shows the angle of the fast part. How well do the angles
# on the maps follow the true ones? A value of 1 means that they differ only by a constant.


def agreement(embedding, angle):
    on_map = np.arctan2(embedding[:, 1], embedding[:, 0])
    return max(abs(np.mean(np.exp(1j * (angle + sign * on_map)))) for sign in (-1, 1))


pca = PCA(n_components=4).fit(pieces)
for name, fitted in {"Isomap": model, "PCA": pca}.items():
    pairs = {"slow part": fitted.embedding_[:, :2], "fast part": fitted.embedding_[:, 2:]}
    values = [f"{part} {agreement(pairs[part], true[part]):.2f}" for part in true]
    print(f"{name:8}", ", ".join(values))

# %%
# PCA mixes the two angles. Its coordinates are weighted sums of readings, and the mixture in the
# sensor is not linear. Both rings are partly folded, so different colors lie on top of each other.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, components, (name, angle) in zip(axes, [(0, 1), (2, 3)], true.items(), strict=True):
    title = f"PCA, colored by the {name}"
    plot_embedding(
        pca, angle, components=components, cmap="twilight", ax=ax, title=title, legend=False
    )

# %%
# Do the same with other curves: cut pieces that cover a good part of the slowest movement, make a
# map of the pieces, and look for rings. The pieces here cover a bit more than half a turn of the
# slow part. A ring is something that repeats, and its angle is a state of the machine that no
# single reading shows. To find a piece that does not belong, see
# :ref:`sphx_glr_gallery_new_points_unseen_digits.py`.
# :ref:`sphx_glr_gallery_first_maps_rotating_object.py` has a ring in images, and :doc:`/choosing`
# is about the number of coordinates.
