"""
How many landmarks does Isomap need?
====================================

Isomap needs the distances between all pairs of points, and 20 000 points have 200 million pairs.
With landmarks it needs only the distances from each point to a few of them. For a smooth surface a
dozen are enough; data without a simple shape need hundreds.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import Isomap, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding, plot_learning_curve

# %%
# A roll of 20 000 points
# -----------------------
# Fifty landmarks (black) are chosen one by one, each as far as possible from those before it. The
# other points are placed by their distances to the landmarks. The map differs from the true sheet
# by a percent or so of its size.

X, sheet = make_swiss_roll(20_000, random_state=0)
model = Isomap(n_landmarks=50).fit(X)
aligned = procrustes(model, sheet)
print(f"difference from the true sheet: {aligned.error:.1%}")

fig = plt.figure(figsize=(8, 6), layout="constrained")
ax = fig.add_subplot(5, 1, (1, 3), projection="3d")
plot_embedding(X[::10], sheet[::10, 0], ax=ax, title="every tenth point", legend=False)
ax = fig.add_subplot(5, 1, (4, 5))
plot_embedding(aligned.aligned, sheet[:, 0], ax=ax, title="Isomap(n_landmarks=50)", legend=False)
dots = ax.plot(*aligned.aligned[model.landmarks_].T, "k.")

# %%
# How many are enough?
# --------------------
# With 2000 points all pairs can still be used. The maps with landmarks are compared with that exact
# map: 0 is the same map, 1 an unrelated one. Ten landmarks reproduce the roll up to about a
# percent. Handwritten digits have no simple shape, and their geodesic distances do not fit in two
# dimensions. There, few landmarks give a different map.

data = {"roll": make_swiss_roll(2000, random_state=0).X, "digits": load_digits().data}
counts = (5, 10, 30, 100, 300)
curves = {}
for name, points in data.items():
    graph = NeighborGraph.build(points, 10)
    exact = Isomap().fit(graph)
    fits = [Isomap(n_landmarks=count).fit(graph) for count in counts]
    curves[name] = (counts, [procrustes(fit, exact).error for fit in fits])

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
label = "difference from the exact map"
ax = plot_learning_curve(curves, ax=ax, log="xy", xlabel="landmarks", ylabel=label)
plt.show()

# %%
# A few hundred landmarks are a safe choice, and cost little: memory and time grow with the number
# of points times the number of landmarks. To see whether they suffice for your data, double them
# and compare the two maps with :func:`~manifoldry.metrics.procrustes`. See :doc:`/scale` for times
# and memory of up to a million points.
