"""
How far from the optimum is an unfolding?
=========================================

For anyone who asks whether another run would have given a better map. Maximum variance unfolding
solves a convex problem and returns a bound that no map can exceed. On a rolled sheet with a hole
it ends within one percent of that bound, and much nearer to the true sheet than Isomap.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from manifoldry import MVU, Isomap
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding

X, sheet = make_swiss_roll(400, hole=True, random_state=1)
models = {"Isomap": Isomap(2, n_neighbors=6), "Unfolding": MVU(2)}

# %%
# Isomap keeps the lengths of shortest paths. These lead around the hole, so the hole grows.
# Unfolding keeps the distances between neighbors, and pulls all points apart as far as these
# allow. Both maps are turned and shifted onto the true sheet, the gray crosses, but not
# rescaled. The error is relative to the size of the sheet.

fig, axes = plt.subplots(2, 1, figsize=(9, 6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    match = procrustes(model.fit(X), sheet, "rigid")
    title = f"{name}: error {match.error:.0%}"
    ax.plot(*sheet.T, "+", color="0.5", ms=6)
    plot_embedding(match.aligned, sheet[:, 0], ax=ax, title=title, legend=False, size=14)
plt.show()

# %%
# In practice the true sheet is not known. The proof needs only the data. The problem is convex in
# the inner products of the points. So the multipliers of its constraints give an upper bound on the
# variance of *every* map that keeps the distances between neighbors.

unfolding = models["Unfolding"]
print(f"variance {unfolding.variance_:.1f}, no map can exceed {unfolding.variance_bound_:.1f}")
print(f"distances between neighbors change by {unfolding.mean_edge_error_:.2%} on average")
print(unfolding.status_)

# %%
# The multipliers are worth a picture. Think of the edges as cords that hold the points while they
# are pulled apart: a multiplier is the force in a cord. Red cords are under tension. Blue ones are
# bars that keep points from coming closer. The force runs along the sheet on both sides of the
# hole.

order = np.argsort(np.abs(unfolding.multipliers_))  # large forces on top
force, edges = unfolding.multipliers_[order], unfolding.edges_[order]
limit = np.quantile(np.abs(force), 0.98)
cords = LineCollection(unfolding.embedding_[edges], cmap="coolwarm", clim=(-limit, limit))
cords.set_array(force)
fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax.add_collection(cords)
ax.set(aspect="equal", xticks=[], yticks=[], title="Force in each edge")
ax.autoscale()
_ = fig.colorbar(cords, label="multiplier")
plt.show()

# %%
# The bound says that the optimizer has done its work, not that the graph is right. Edges between
# layers, as in :ref:`sphx_glr_gallery_trust_short_circuits.py`, would be kept just as faithfully.
# :doc:`/unfolding` compares the method with Isomap on 29 samples of known shape, and has a version
# for larger data.
