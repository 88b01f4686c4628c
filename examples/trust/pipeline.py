"""
An embedding inside a pipeline
==============================

For anyone who wants the coordinates as features, not as a picture. An embedding and a classifier
form one estimator, and a grid search chooses the number of coordinates by accuracy on unseen
digits. Two coordinates are too few for that.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from manifoldry import PCA, LaplacianEigenmaps
from manifoldry.plotting import plot_embedding

X, y = load_digits(return_X_y=True, as_frame=True)

# %%
# The name of a parameter begins with the name of its step, as always in scikit-learn. In every
# fold, the embedding is fitted to the training part only, and ``transform`` places the rest. The
# folds are shuffled: rows that follow each other in this table are alike, and without shuffling
# ``transform`` warns that the held-out digits are unlike the others. Pixels share a unit, so they
# are not scaled; columns of different units need a scaler as first step.

sizes = [1, 2, 3, 4, 6, 8, 12, 16]
folds = StratifiedKFold(3, shuffle=True, random_state=0)
classifier = KNeighborsClassifier(5)
searches = {}
for embedding in (PCA(), LaplacianEigenmaps()):
    name = type(embedding).__name__
    pipeline = make_pipeline(embedding, classifier)
    pipeline.set_output(transform="pandas")
    grid = {f"{name.lower()}__n_components": sizes}
    searches[name] = GridSearchCV(pipeline, grid, cv=folds).fit(X, y)
pixels = cross_val_score(classifier, X, y, cv=folds).mean()

# %%
# Up to eight coordinates, Laplacian eigenmaps classify better than PCA with as many. The maps show
# what a third and a fourth coordinate add: they separate digits that overlap in the first two.

best = searches["LaplacianEigenmaps"].best_estimator_
coordinates = best[:-1].transform(X)
fig, axes = plt.subplot_mosaic(
    [["left", "top"], ["left", "bottom"]], figsize=(8.5, 5.6), layout="constrained"
)
for name, search in searches.items():
    axes["left"].plot(sizes, search.cv_results_["mean_test_score"], "o-", label=name)
axes["left"].axhline(pixels, color="gray", ls="--", label="all 64 pixels")
axes["left"].set(xlabel="number of coordinates", ylabel="accuracy on unseen digits")
axes["left"].legend()
for side, pair in {"top": [0, 1], "bottom": [2, 3]}.items():
    title = f"Coordinates {pair[0] + 1} and {pair[1] + 1}"
    plot_embedding(coordinates.iloc[:, pair], y, ax=axes[side], title=title, names=True, size=8)
plt.show()

# %%
# The output of every step was set to pandas. So coordinates have names, and rows keep their index.

for name, search in searches.items():
    print(f"{name}: {search.best_score_:.3f} with {search.best_params_}")
print(f"all pixels: {pixels:.3f}")
print(coordinates.iloc[:3, :3].round(3))

# %%
# A nonlinear embedding pays off if coordinates must be few: three of them classify better than
# six principal components. If you can afford 16, PCA is as good and simpler. For data with few
# labels see :doc:`/choosing`; to choose the number without labels,
# :ref:`sphx_glr_gallery_trust_held_out_score.py`; to scale columns,
# :ref:`sphx_glr_gallery_first_maps_columns_with_units.py`.
