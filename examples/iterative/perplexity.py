"""
What does the perplexity of t-SNE change?
=========================================

The perplexity is the one parameter of t-SNE that everybody has to think about. It is the effective
number of neighbors that attract each point. Here the same handwritten digits are embedded with four
values, and each map is measured.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import TSNE, assess
from manifoldry.metrics import coranking
from manifoldry.plotting import plot_coranking, plot_grid

X, y = load_digits(return_X_y=True)
X, y = X[:800], y[:800]

# %%
# The four maps
# -------------
# With a perplexity of 3 every point knows only its nearest neighbors, and the digits fall apart
# into crumbs. With 200, a quarter of the data, the map approaches one that keeps large distances,
# and clusters touch. The maps with 10 and 30 show the same clusters.

models = {f"perplexity {value}": TSNE(perplexity=value).fit(X) for value in (3, 10, 30, 200)}
axes = plot_grid(models, y, n_columns=2, panel=3.4, color_label="digit")

# %%
# What is kept
# ------------
# ``trustworthiness`` says whether neighbors on the map are neighbors in the data. ``rnx_area`` says
# how many neighbors are kept beyond chance, over all neighborhood sizes.

for name, model in models.items():
    metrics = assess(X, model, y).metrics
    print(
        f"{name:15}  trustworthiness {metrics['trustworthiness']:.3f}"
        f"  rnx_area {metrics['rnx_area']:.2f}"
        f"  rank correlation of distances {metrics['distance_rank_correlation']:.2f}"
    )

# %%
# The curves say at which neighborhood size the maps differ. A small perplexity is best at the
# left, for the very nearest neighbors, and a large one at the right, for hundreds of them.

curves = {name: coranking(X, model) for name, model in models.items()}
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax = plot_coranking(curves, ax=ax)
plt.show()

# %%
# The default is 20 for these data and 30 for more than 1200 points, and it rarely has to be
# changed. Look at a second map with another value before you believe in a detail. What changes with
# the perplexity is not a fact about the data. See :doc:`/iterative` for the study behind the
# default, :doc:`/trust` for the metrics, and :ref:`sphx_glr_gallery_iterative_how_tsne_works.py`
# for how such a map comes about.
