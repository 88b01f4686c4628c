"""
Which methods unroll a Swiss roll?
==================================

Data in many dimensions may lie on a curved sheet of only two dimensions. Which methods recover the
sheet, and which only fold it differently? The Swiss roll is the classic test, because the true
position of every point is known. Three of these six methods recover it.
"""

from manifoldry import LTSA, MVU, PCA, TSNE, Isomap, LaplacianEigenmaps
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_grid

X, truth = make_swiss_roll(1000, random_state=0)

methods = {
    "PCA": PCA(2),
    "t-SNE": TSNE(random_state=0),
    "Eigenmaps": LaplacianEigenmaps(n_neighbors=10),
    "Isomap": Isomap(n_neighbors=10),
    "MVU": MVU(n_landmarks=100),
    "LTSA": LTSA(n_neighbors=10),
}
maps = {name: method.fit(X).embedding_ for name, method in methods.items()}

# %%
# The points lie on a rectangle that is rolled up in three dimensions. Color is the true position
# along the rectangle, from the inner end to the outer one. Each map is turned, reflected and scaled
# to match the true rectangle as well as possible. The error is the difference that remains.

panels = {"the data": X, "true positions": truth}
for name, embedding in maps.items():
    match = procrustes(embedding, truth)
    panels[f"{name}: error {match.error:.2f}"] = match.aligned
axes = plot_grid(panels, truth[:, 0], color_label="position along the sheet", panel=2.4)
axes[0].view_init(elev=15, azim=-75)

# %%
# **PCA** shows the roll from one side: points of different turns lie on top of each other.
#
# **t-SNE** keeps neighbors together and nothing else. It tears the sheet into pieces and bends it,
# because only near neighbors attract each other.
#
# **Laplacian eigenmaps** find the length of the sheet, but not its width. The second coordinate is
# a function of the first, so the map is a parabola. This is common for data that are much longer
# than wide.
#
# **Isomap** computes distances along the neighbor graph, which follow the sheet. Its map is the
# rectangle, but gaps in the sample are enlarged, because paths along the graph have to go around
# them.
#
# **MVU** (maximum variance unfolding) pulls the points apart without stretching the edges between
# neighbors. Here it does so for 100 landmarks, and interpolates between them. **LTSA** (local
# tangent space alignment) fits a plane to each neighborhood and fits these planes together. Both
# recover the rectangle almost exactly.
#
# So, for a smooth sheet with little noise, use :class:`~manifoldry.LTSA`, :class:`~manifoldry.MVU`
# or :class:`~manifoldry.Isomap`. :doc:`/unfolding` treats sheets with noise and holes, and
# :doc:`/choose/methods` has a table of all methods. A sheet among real data:
# :ref:`sphx_glr_gallery_first_maps_faces.py`.
