"""
Curves of unknown phase: a metric of your own
=============================================

Sensor curves often begin at an arbitrary moment. Two curves of the same shape are then far apart in
Euclidean distance. A metric that ignores the phase is a function of two rows. Any regressor of
scikit-learn can place new curves, and turn places on the map into curves.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from manifoldry import Isomap, NeighborGraph
from manifoldry.plotting import plot_embedding

# %%
# The curves
# ----------
# Each curve has two pulses per period. Their distance and the height of the second one are the two
# true coordinates; the phase is random.

rng = np.random.default_rng(0)
time = np.arange(64) / 64
phase, gap, height = rng.uniform((0, 0.15, 0.3), (1, 0.45, 1), size=(280, 3)).T


def pulse(at):
    """Pulses of period 1 at the given times."""
    return np.exp(20 * (np.cos(2 * np.pi * (time - at[:, None])) - 1))


X = pulse(phase) + height[:, None] * pulse(phase + gap) + 0.02 * rng.normal(size=(280, 64))
X, X_new = X[:240], X[240:]

# %%
# The metric
# ----------
# The distance of two curves is the smallest Euclidean distance over all cyclic shifts of one of
# them. It is passed as ``metric=``, to an estimator or, as here, to the neighbor graph.


def shift_distance(a, b):
    """Euclidean distance after the best cyclic shift, by the Fourier transform."""
    overlap = np.fft.irfft(np.fft.rfft(a) * np.conj(np.fft.rfft(b)), len(a)).max()
    return np.sqrt(max(a @ a + b @ b - 2 * overlap, 0))


graph = NeighborGraph.build(X, 6, metric=shift_distance)
plain, shifted = Isomap(n_neighbors=6).fit(X), Isomap().fit(graph)

# %%
# With the Euclidean metric the map is a ring, and the position on it is the phase: true, and of no
# interest. With the new metric the two coordinates of the shape appear.

fig, axes = plt.subplots(2, 2, figsize=(8, 7.5), layout="constrained")
axes = axes.ravel()
axes[0].plot(time, X[:4].T + 1.2 * np.arange(4), color="black", linewidth=1)
axes[0].set(title="four curves", xlabel="time", yticks=[])
style = {"legend": False, "size": 20}
plot_embedding(
    plain, phase[:240], ax=axes[1], title="Euclidean, by phase", cmap="twilight", **style
)
plot_embedding(shifted, gap[:240], ax=axes[2], title="shifted, by gap", **style)
ax = plot_embedding(shifted, height[:240], ax=axes[3], title="shifted, by height", **style)

# %%
# The regressors
# --------------
# ``extension=`` takes a regressor that predicts coordinates from data, and ``inverse=`` one that
# predicts data from coordinates. Nearest neighbors in the new metric place new curves, about as
# well as the formula of Isomap, which uses the metric, too. The default inverse, a local mean,
# would blur curves of different phases. A single nearest neighbor returns a real curve.

place = KNeighborsRegressor(5, weights="distance", metric=shift_distance)
model = Isomap(extension=place, inverse=KNeighborsRegressor(1)).fit(graph)
placed = {"Isomap's own formula": shifted.transform(X_new), "regressor": model.transform(X_new)}
shape = KNeighborsRegressor(5).fit(shifted.embedding_, np.column_stack([gap, height])[:240])
for name, Y in placed.items():
    score = shape.score(Y, np.column_stack([gap, height])[240:])
    print(f"{name:21} R² of gap and height, read off the map at the 40 new curves: {score:.3f}")

# %%
# The picture shows the map with the new curves (white), and curves decoded at three places of it.

Y = model.embedding_
places = Y[[Y[:, 0].argmin(), Y[:, 1].argmax(), Y[:, 0].argmax()]]
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 1))
plot_embedding(model, gap[:240], ax=axes[0], color_label="gap", new_embedding=placed["regressor"])
for number, (at, curve) in enumerate(zip(places, model.inverse_transform(places), strict=True)):
    axes[0].annotate(number + 1, at, xytext=(0, 8), textcoords="offset points", fontsize=14)
    axes[1].plot(time, curve - 1.2 * number, color="black", linewidth=1)
axes[1].set(title="decoded curves", xlabel="time", yticks=(0, -1.2, -2.4), yticklabels=(1, 2, 3))
plt.show()

# %%
# A metric in Python is called for every pair of curves, so it suits some thousand rows at most. If
# you can compute all distances faster, pass their matrix with ``metric="precomputed"``. The
# parameters ``extension`` and ``inverse`` exist in nearly every method: see :doc:`/extending` for
# a rule of your own.
