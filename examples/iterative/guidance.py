"""
Can spectral guidance rescue a random start?
============================================

A random start places neighbors far apart, and an iterative method may never bring them together
again. Memisevic and Hinton proposed to smooth the gradient over neighbors at first. Here UKR
unrolls a noisy helix from ten random starts, without and with that guidance. Guidance helps, and a
good start helps more.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr

from manifoldry import UKR
from manifoldry.datasets import make_helix
from manifoldry.optimize import LBFGS, Heat, Stopping

X, angle = make_helix(300, random_state=0)

# %%
# Ten random starts
# -----------------
# A filter of the gradient is a part of the optimizer. ``Heat()`` smooths the gradient along the
# neighbor graph, and smooths it less and less as the search goes on. Each model has one
# coordinate, which should order the points along the helix.

rule = Stopping(tol=5e-3)
searches = {"plain": LBFGS(stopping=rule), "guided": LBFGS(Heat(), stopping=rule)}
models = {
    name: [UKR(1, init="random", optimizer=search, random_state=seed).fit(X) for seed in range(10)]
    for name, search in searches.items()
}
models["default start"] = [UKR(1).fit(X)]

# %%
# The curve through the data
# --------------------------
# ``inverse_transform`` turns sorted coordinates into a curve through the data (black). One of the
# starts is shown. Without guidance the curve jumps between the two windings. With guidance it
# follows the helix. So does the curve from the default start, which is the best of three
# embeddings.

fig, axes = plt.subplots(
    1, 3, figsize=(10, 4.4), subplot_kw={"projection": "3d"}, layout="constrained"
)
for ax, (name, fits) in zip(axes, models.items(), strict=True):
    model = fits[2 % len(fits)]
    curve = model.inverse_transform(np.sort(model.embedding_, axis=0))
    ax.scatter(*X.T, c=angle[:, 0], s=6)
    ax.plot(*curve.T, color="black", linewidth=1)
    ax.set_title(name)
    ax.set_axis_off()
    ax.view_init(elev=20, azim=-50)
    ax.set_box_aspect((1, 1, 1.5), zoom=1.5)

# %%
# All ten starts
# --------------
# The helix is unrolled if the rank correlation of coordinate and angle is one; here values above
# 0.98 count as unrolled. Dots at the same number have the same start. Guidance solves some starts,
# does little for others, and spoils one.

fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for marker, (name, fits) in zip("osD", models.items(), strict=True):
    order = [abs(spearmanr(model.embedding_[:, 0], angle[:, 0]).statistic) for model in fits]
    ax.plot(range(len(fits)) if len(fits) > 1 else [10], order, marker, label=name)
    print(f"{name:13}  unrolled {sum(np.array(order) > 0.98)} of {len(fits)}")
ax.set(xlabel="number of the start", ylabel="rank correlation with the angle", ylim=(0, 1.05))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
plt.show()

# %%
# Guidance is for starts that you cannot improve. Where the default start is possible, prefer it:
# :doc:`/concepts/optimizers` has the study over methods and starts, and
# :ref:`sphx_glr_gallery_iterative_unfolding_film.py` shows a homotopy, which needs no start at
# all.
