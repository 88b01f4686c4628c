"""
What if the roll touches itself?
================================

Your map by Isomap looks crumpled. One edge of the neighbor graph between two layers is enough to
spoil the distances along the sheet. :func:`~manifoldry.find_short_circuits` finds such edges.
Without them, Isomap unrolls the sheet.
"""

import matplotlib.pyplot as plt

from manifoldry import Isomap, find_short_circuits
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding

X, sheet = make_swiss_roll(600, noise=0.6, random_state=0)
found = find_short_circuits(X, n_neighbors=8)
print(found)

# %%
# It is a single edge out of thousands, drawn in black below. It connects an outer layer with the
# next inner one, and a quarter of all shortest paths become longer without it. Isomap fitted to the
# data warns about it. Isomap fitted to the pruned graph shows the sheet.

crumpled = Isomap(2, n_neighbors=8).fit(X)
unrolled = Isomap(2).fit(found.prune())

fig, axes = plt.subplot_mosaic(
    [["roll", "with"], ["roll", "without"]],
    per_subplot_kw={"roll": {"projection": "3d"}},
    figsize=(9, 5.6),
    layout="constrained",
)
axes["roll"].view_init(elev=12, azim=-75)
along = sheet[:, 0]
plot_embedding(X, along, ax=axes["roll"], title="A roll with a short circuit", legend=False)
for i, j in found.edges:
    axes["roll"].plot(*X[[i, j]].T, "k-o", lw=3, zorder=10)
plot_embedding(crumpled, along, ax=axes["with"], title="Isomap with the edge", legend=False)
plot_embedding(unrolled, along, ax=axes["without"], title="Isomap without it", legend=False)
for model in (crumpled, unrolled):
    print(f"error relative to the true sheet: {procrustes(model, sheet).error:.2f}")
plt.show()

# %%
# Color is the true position along the sheet. The printed result names two remedies: fewer
# neighbors, or the pruned graph, which every graph method accepts in place of the data. Look for
# short circuits before you interpret a map with a hole in its middle. :doc:`/trust` has more about
# them, and :ref:`sphx_glr_gallery_trust_held_out_score.py` shows that a score need not detect them.
