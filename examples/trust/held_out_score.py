"""
How many neighbors, and how many coordinates?
=============================================

You want to tune an embedding, and not by eye. Every estimator has a ``score``: the part of the
variance of unseen data that ``inverse_transform`` reconstructs from their coordinates. So
``GridSearchCV`` works, but the candidate with the best score is the wrong choice. A simple rule
finds the right one.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from manifoldry import Isomap
from manifoldry.datasets import make_s_curve
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.plotting import plot_embedding

X, truth = make_s_curve(300, noise=0.02, random_state=0)

# %%
# The data are a sheet bent into an S, so two coordinates are right. On purpose, the grid contains
# numbers of neighbors that are too small or too large. Their graphs are disconnected or have short
# circuits, and the warnings about it are switched off. Folds are shuffled, since data are often
# sorted.


def fewest_coordinates(results, tolerance=0.01):
    """Index of the best candidate with the fewest coordinates within the tolerance."""
    score, best = results["mean_test_score"], results["rank_test_score"].argmin()
    error = results["std_test_score"][best] / np.sqrt(2)  # standard error over three folds
    n_components = np.array([each["n_components"] for each in results["params"]])
    fewest = n_components[score >= score[best] - max(tolerance, error)].min()
    return int(np.where(n_components == fewest, score, -np.inf).argmax())


neighbors = [4, 6, 8, 12, 20, 30, 40]
search = GridSearchCV(
    Isomap(),
    {"n_components": [1, 2, 3], "n_neighbors": neighbors},
    cv=KFold(3, shuffle=True, random_state=0),
    refit=fewest_coordinates,
)
with warnings.catch_warnings(action="ignore", category=ManifoldryWarning):
    search.fit(X)
scores = search.cv_results_["mean_test_score"].reshape(3, -1)

# %%
# The best score belongs to three coordinates and many neighbors. That graph connects the layers of
# the S. Three coordinates can always reproduce three-dimensional data, so this useless map has a
# nearly perfect score. The rule takes the fewest coordinates whose score is within 0.01, or one
# standard error, of the best.

fig, axes = plt.subplot_mosaic(
    [["left", "top"], ["left", "bottom"]], figsize=(8.5, 5), layout="constrained"
)
for n_components, row in zip([1, 2, 3], scores, strict=True):
    axes["left"].plot(neighbors, row, "o-", label=f"n_components={n_components}")
best = np.unravel_index(scores.argmax(), scores.shape)
axes["left"].plot(neighbors[best[1]], scores.max(), "ks", ms=12, mfc="none", label="best score")
chosen = search.best_params_
axes["left"].plot(
    chosen["n_neighbors"], scores.flat[search.best_index_], "r*", ms=14, label="the rule"
)
axes["left"].set(xlabel="neighbors", ylabel="held-out score")
axes["left"].legend(fontsize=8)
with warnings.catch_warnings(action="ignore", category=ManifoldryWarning):
    greedy = Isomap(3, n_neighbors=neighbors[best[1]]).fit(X)
plot_embedding(
    greedy.embedding_[:, :2], truth[:, 0], ax=axes["top"], title="Best score", legend=False
)
_ = plot_embedding(
    search.best_estimator_, truth[:, 0], ax=axes["bottom"], title="The rule", legend=False
)
plt.show()
print("the rule chooses", chosen)

# %%
# The upper map has the first two of the three coordinates: it is the S seen from the side. The
# lower map is the flat sheet. Color is the true position along the S.
#
# The score does not detect everything. It cannot tell a map from a bent version of it. It may also
# prefer too few neighbors, because the folds have fewer points than the data. So check the chosen
# map with ``metrics.coranking`` or ``metrics.trustworthiness`` on all points, and check the graph
# as in :ref:`sphx_glr_gallery_trust_short_circuits.py`. :doc:`/choosing` tests the rule on ten data
# sets.
