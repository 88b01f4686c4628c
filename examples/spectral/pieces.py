"""
What happens when the data fall apart?
======================================

For anyone who got a warning about connected components. The neighbor graph of data with gaps is in
several pieces, and a graph method knows no distance between them. The parameter ``disconnected``
says what to do then. None of its options can recover what the graph does not contain.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import Isomap, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import make_s_curve
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning
from manifoldry.plotting import plot_embedding

X, sheet = make_s_curve(900, random_state=0)
place = sheet[:, 0] / sheet[:, 0].max()  # 0 at one end of the sheet, 1 at the other
gaps = ((place > 0.28) & (place < 0.34)) | ((place > 0.75) & (place < 0.81))
X, place = X[~gaps], place[~gaps]
for k in (10, 30):
    n_pieces, _ = NeighborGraph.build(X, n_neighbors=k).components()
    print(f"connected components with {k} neighbors: {n_pieces}")
fig = plt.figure(figsize=(5, 3.5), layout="constrained")
ax = fig.add_subplot(projection="3d")
ax.view_init(elev=15, azim=-70)
plot_embedding(X, place, ax=ax, title="A sheet with two gaps", legend=False, size=20)
ax.set_box_aspect(np.ptp(X, axis=0), zoom=1.2)

# %%
# Color is the position along the sheet. ``"separate"`` maps each piece and puts it where it lies in
# the data. ``"join"`` adds the shortest edge between pieces. ``"largest"`` maps one piece, and the
# rows of the others are NaN. Each of these fits warns that the graph has three components; here we
# know, so the warning is switched off. In the last column, 30 neighbors reach across the gaps.

settings = {
    "separate": {"n_neighbors": 10, "disconnected": "separate"},
    "join": {"n_neighbors": 10, "disconnected": "join"},
    "largest": {"n_neighbors": 10, "disconnected": "largest"},
    "30 neighbors": {"n_neighbors": 30},
}
fig, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
for row, method in zip(axes, (Isomap, LaplacianEigenmaps), strict=True):
    row[0].set_ylabel(method.__name__)
    for ax, (name, options) in zip(row, settings.items(), strict=True):
        with warnings.catch_warnings(action="ignore", category=DisconnectedGraphWarning):
            model = method(2, **options).fit(X)
        plot_embedding(model, place, ax=ax, title=name, legend=False)
plt.show()

# %%
# *Separate* shows each piece as the method would show it alone, but not how they belong
# together, and pieces may overlap on the map. *Join*, the default of Isomap, unrolls the sheet
# in the right order. But all paths between two pieces now lead through one edge, which draws the
# outer pieces as thin wedges. For Laplacian eigenmaps a single edge has so little weight that
# each piece shrinks to a dot. Many edges across the gap are what helps: with 30 neighbors Isomap
# is right. Laplacian eigenmaps still draw three groups.
#
# If pieces are an error in your case, ask for an exception.

try:
    Isomap(2, n_neighbors=10, disconnected="error").fit(X)
except DisconnectedGraphError as error:
    print(error)

# %%
# First ask why the graph is in pieces: real groups, too few neighbors, or outliers that are
# components of their own. :doc:`/concepts/neighbors` is about graphs; the opposite problem, edges
# that should not be there, is in :ref:`sphx_glr_gallery_trust_short_circuits.py`.
