"""
Order cells along branching processes
=====================================

For anyone who has snapshots of a process, such as cells that differentiate, and wants to put
them into the order of time. Diffusion maps unfold the branches, and ``pseudotime`` measures the
distance from a known start along them. Here the true order is known, so the result can be
checked.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from manifoldry import PCA, DiffusionMaps
from manifoldry.plotting import plot_embedding

# %%
# The data are a simulation in the manner of single-cell data: 900 cells of 50 genes. All cells
# start alike. At time 0.35 a branch leaves, and at 0.65 the other one splits again. Fewer cells are
# late than early, and noise has heavy tails.

rng = np.random.default_rng(0)
n = 900
time = rng.uniform(size=n) ** 1.5
fate = rng.integers(3, size=n)
programs = np.column_stack(
    [
        np.minimum(time, 0.35),
        np.clip(time - 0.35, 0, None) * (fate == 0),
        np.clip(time - 0.35, 0, 0.3) * (fate > 0),
        np.clip(time - 0.65, 0, None) * (fate == 1),
        np.clip(time - 0.65, 0, None) * (fate == 2),
    ]
)
genes = programs @ rng.normal(size=(5, 50))
X = genes + 0.06 * rng.standard_t(3, size=genes.shape)

# %%
# PCA shows two of the branches well, but folds the late split into one clump. Diffusion maps draw
# the branches as thin arms and separate the late split, although one of its arms is short in the
# first three coordinates. The model has 15 coordinates, because pseudotime is a sum over random
# walks of all lengths and needs more coordinates than a picture.

model = DiffusionMaps(15).fit(X)
start = time.argmin()  # in practice: a cell that is known to be early
pseudotime = model.pseudotime(root=start)

fig = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = fig.add_subplot(1, 2, 1), fig.add_subplot(1, 2, 2, projection="3d")
right.view_init(elev=25, azim=-110)
plot_embedding(PCA(2).fit(X), time, ax=left, title="PCA", color_label="true time", size=8)
arms = model.embedding_[:, :3]
_ = plot_embedding(
    arms, pseudotime, ax=right, title="Diffusion maps", color_label="pseudotime", size=8
)

# %%
# The plot has pseudotime against true time, by fate. The order is right within every branch. The
# curves bend at the end, where walks have nowhere to go, so pseudotime is an order and not a clock.
# Compare cells of different branches with care.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k in range(3):
    order = spearmanr(time[fate == k], pseudotime[fate == k]).statistic
    label = f"fate {k}: rank correlation {order:.3f}"
    ax.scatter(time[fate == k], pseudotime[fate == k], s=8, label=label)
ax.set(xlabel="true time", ylabel="pseudotime")
_ = ax.legend()
plt.show()

# %%
# The start has to be known; pseudotime from a late cell would run backwards. :doc:`/choosing`
# has the details, and :doc:`/anndata` has diffusion coordinates of single cells in an AnnData. If
# the branches are separate in the graph, see :ref:`sphx_glr_gallery_spectral_pieces.py`.
