"""
What happens when the data fall apart?
======================================

For anyone who got a warning about connected components. The neighbor graph of data with gaps is
in several pieces, between which a graph method knows no distance. What it does then is a choice,
``disconnected``, and none of the options can recover what the graph does not contain.
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

# %%
# A sheet with two gaps. ``"separate"`` maps each piece and puts it where it lies in the data.
# ``"join"`` adds the shortest edge between pieces. ``"largest"`` maps one piece, and the rows of
# the others are NaN. Each of these fits warns that the graph has three components; here we know,
# so the warning is switched off. In the last column, 30 neighbors reach across the gaps.

settings = {
    "separate": {"n_neighbors": 10, "disconnected": "separate"},
    "join": {"n_neighbors": 10, "disconnected": "join"},
    "largest": {"n_neighbors": 10, "disconnected": "largest"},
    "30 neighbors": {"n_neighbors": 30},
}
fig = plt.figure(figsize=(11, 5), layout="constrained")
grid = fig.add_gridspec(2, 5, width_ratios=[1.3, 1, 1, 1, 1])
data = fig.add_subplot(grid[:, 0], projection="3d")
data.view_init(elev=15, azim=-70)
plot_embedding(X, place, ax=data, title="The data", legend=False)
data.set_box_aspect(np.ptp(X, axis=0), zoom=1.3)
for row, method in enumerate((Isomap, LaplacianEigenmaps)):
    for column, (name, options) in enumerate(settings.items()):
        with warnings.catch_warnings(action="ignore", category=DisconnectedGraphWarning):
            model = method(2, **options).fit(X)
        ax = fig.add_subplot(grid[row, column + 1])
        plot_embedding(model, place, ax=ax, title=name if row == 0 else None, legend=False)
        if column == 0:
            ax.set_ylabel(method.__name__)
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
