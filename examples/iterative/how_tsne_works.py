"""
How does t-SNE find its clusters?
=================================

A map by t-SNE appears at once, and it is hard to see why it looks as it does. In this example a
callback records the map during the search. The pictures show that the arrangement of the clusters
is decided early, while the attraction is still exaggerated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldry import TSNE
from manifoldry.metrics import procrustes
from manifoldry.optimize import Callback
from manifoldry.plotting import plot_grid, plot_trace

X, y = load_digits(return_X_y=True)
X, y = X[:1000], y[:1000]

# %%
# Eight moments of one search
# ---------------------------
# The callback is called with the current embedding and the number of the step. In the first 120
# steps the attraction is multiplied by a factor that decreases from 12 to 1 in six levels. The end
# of each search is the start of the next, as in a homotopy. The map starts at two principal
# components. Clusters contract to tight knots, and the knots expand when the factor is gone.

frames = {}
watch = Callback(lambda it: frames.update({it.step.iteration: it.embedding.copy()}))
model = TSNE(callback=watch).fit(X)
maps = {f"step {step}": frames[step] for step in (1, 20, 40, 60, 100, 120, 160)}
axes = plot_grid(maps | {"the end": model}, y, color_label="digit")

# %%
# When is the arrangement decided?
# --------------------------------
# The left plot shows how far the centers of the ten digits are from their final places, after the
# best rotation, shift and scaling. Most of the way is done before the exaggeration ends (dotted
# line). The right plot shows the objective. It jumps where the factor changes, because the
# objective is then a different one. The labels are one over the factor.

final = np.array([model.embedding_[y == digit].mean(axis=0) for digit in range(10)])
errors = []
for Y in frames.values():
    centers = np.array([Y[y == digit].mean(axis=0) for digit in range(10)])
    errors.append(procrustes(centers, final).error)

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].plot(list(frames), errors)
axes[0].axvline(120, color="gray", linestyle=":")
axes[0].set(xlabel="step", ylabel="difference from the final arrangement", ylim=(0, 0.6))
ax = plot_trace(model, ax=axes[1])
plt.show()

# %%
# So the start and the first hundred steps mostly decide where the clusters of a t-SNE lie; the
# other steps settle details. If the arrangement matters to you, choose the start, not the number of
# steps. See :doc:`/iterative` for the defaults, :ref:`sphx_glr_gallery_iterative_unfolding_film.py`
# for a homotopy without any start, and :ref:`sphx_glr_gallery_iterative_start_from_a_model.py` for
# a start that you choose.
