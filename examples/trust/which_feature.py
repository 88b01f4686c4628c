"""
Which columns does the map show?
================================

You are asked what the axes of a nonlinear map mean. The axes have no formula, but
``inverse_transform`` predicts every column at every position. So we can measure which columns can
be read from the map, and draw their values as the background of the map.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from manifoldry import Isomap

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)

# %%
# Hold out a fifth of the wines, place them on a map of the others with ``transform``, and predict
# all 13 columns from their two coordinates. R² is 1 for a column that the map determines, and 0 for
# a column that it does not show at all.

predicted = np.empty_like(X)
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    part = Isomap(2, n_neighbors=15).fit(X[train])
    predicted[test] = part.inverse_transform(part.transform(X[test]))
readable = r2_score(X, predicted, multioutput="raw_values")
order = np.argsort(readable)

# %%
# The background is the value that the model predicts at each position, in standard deviations. It
# is drawn where there are wines nearby. Each dot is a wine with its true value. For the two columns
# at the top, dots have the color of the background. For the two at the bottom they do not: these
# columns vary among wines at the same place.

model = Isomap(2, n_neighbors=15).fit(X)
low, high = model.embedding_.min(axis=0), model.embedding_.max(axis=0)
grid = np.stack(np.meshgrid(*np.linspace(low, high, 80).T), axis=-1)
values, distance = model.inverse_transform(grid.reshape(-1, 2), return_distance=True)
values[distance > 2] = np.nan  # farther from the wines than they are from each other

fig, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained")
for ax, j in zip(axes.flat, [*order[::-1][:2], *order[:2]], strict=True):
    colors = {"vmin": -2, "vmax": 2, "cmap": "viridis"}
    ax.pcolormesh(*grid.T, values[:, j].reshape(80, 80).T, alpha=0.5, **colors)
    dots = ax.scatter(*model.embedding_.T, c=X[:, j], s=25, ec="white", lw=0.5, **colors)
    ax.set(title=f"{wine.feature_names[j].replace('_', ' ')}: R² {readable[j]:.2f}")
    ax.set(aspect="equal", xticks=[], yticks=[])
_ = fig.colorbar(dots, ax=axes, label="standard deviations from the mean", shrink=0.8)

# %%
# The next picture has all columns. The color intensity can be read from the map, but the ash
# content can hardly be read.

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
names = [wine.feature_names[j].replace("_", " ") for j in order]
ax.barh(names, readable[order])
_ = ax.set(xlabel="R² on held-out wines", title="What can be read from two coordinates")
plt.show()

# %%
# Say "the left side has many flavanoids" only for columns that can be read. A column with a low R²
# is not unimportant: the map merely does not show it. For images in place of a table,
# ``plotting.plot_inverse_grid`` draws what each position looks like. :doc:`/trust` explains how far
# the inverse can be trusted, and :ref:`sphx_glr_gallery_trust_how_many_dimensions.py` shows how
# much two coordinates leave out.
