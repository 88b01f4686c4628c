"""
A film of an embedding that unfolds
===================================

How does an iterative method find the shape of the data without getting lost? The elastic embedding
can begin with all points at one place and raise the weight λ of the repulsion step by step. This
example shows that path for a Swiss roll, as a strip and as a film.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

from manifoldry import ElasticEmbedding
from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize import Homotopy
from manifoldry.plotting import plot_path

X, sheet = make_swiss_roll(600, random_state=0)

# %%
# The path in eight pictures
# --------------------------
# ``optimizer=Homotopy(...)`` minimizes a series of objectives, each from the minimizer of the one
# before, and records the minimizers in ``path_``. The points leave their common place along a line
# (rank 1). The line bends to an arch, ordered along the length of the roll, and the arch widens to
# the whole sheet. Each panel has its own scale. The perplexity of 8 is small, so that few neighbors
# are in other layers. With the default of 20 the map of these 600 points stays rolled up.

search = Homotopy(n_steps=28)
model = ElasticEmbedding(perplexity=8, weight=1e4, optimizer=search, random_state=0).fit(X)
axes = plot_path(model, sheet[:, 0], color_label="arc length")

# %%
# The film
# --------
# The same path as a film of 28 frames, each scaled to the same size. Press play. To keep the film,
# write ``film.save("film.gif", writer="pillow")`` at the end.

path = model.path_
frames = [Y / np.abs(Y).max() for Y in path.embeddings]
fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
points = ax.scatter(*frames[0].T, c=sheet[:, 0], s=10)
ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xticks=[], yticks=[])


def draw(number):
    """Move the points to their places at one value of λ."""
    points.set_offsets(frames[number])
    ax.set_title(f"λ = {path.steps[path.kept[number]].parameter:.2g}")


film = FuncAnimation(fig, draw, frames=len(frames), interval=150)
plt.show()

# %%
# Where the line opens to a plane, the path has a *bifurcation*:

for weight, rank in path.bifurcations:
    print(f"from λ = {weight:.2g} on the map has rank {rank}")

# %%
# A path shows coarse structure before fine structure, so a map at a smaller λ is a summary of the
# final one: ``path_.embedding_at(30.0)`` is the map nearest to λ = 30. See
# :doc:`/concepts/homotopies` for how the weight is chosen by default, and
# :ref:`sphx_glr_gallery_iterative_how_tsne_works.py` for the same idea in t-SNE.
