"""
Why standardize the columns of a table first?
=============================================

Your table has columns in different units, such as percent, milligrams and ratios. A map depends on
distances between rows, and the column with the largest numbers determines them. Here are chemical
analyses of 178 wines. One map mixes the grape varieties, and one more line of code gives a map that
separates them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import TSNE
from manifoldry.metrics import knn_accuracy
from manifoldry.plotting import plot_embedding

wine = load_wine(as_frame=True)
X, variety = wine.data, [f"variety {number + 1}" for number in wine.target]

# %%
# Fit the same method to the table as it is, and to columns that were scaled to mean 0 and standard
# deviation 1. The varieties are used only for the colors and for the label accuracy, which is the
# fraction of wines whose neighbors on the map are mostly of the same variety.

models = {
    "as it is": TSNE(random_state=0),
    "standardized": make_pipeline(StandardScaler(), TSNE(random_state=0)),
}
maps = {name: model.fit_transform(X) for name, model in models.items()}

fig, axes = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
for ax, (name, embedding) in zip(axes, maps.items(), strict=True):
    accuracy = knn_accuracy(embedding, variety)
    title = f"{name}: label accuracy {accuracy:.2f}"
    plot_embedding(embedding, variety, ax=ax, title=title, legend=name == "standardized")

# %%
# Why does the first map fail? It is nearly a line, because one column holds almost all of the
# variance: the amount of proline, whose values go up to 1680. Most other columns are below 10.

share = X.var() / X.var().sum()
print("part of the variance:")
print(share.sort_values(ascending=False).head(3).map("{:.4f}".format).to_string())

fig, axes = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
for ax, (name, embedding) in zip(axes, maps.items(), strict=True):
    plot_embedding(embedding, X["proline"], ax=ax, title=name, color_label="proline")

# %%
# The left map is a map of proline. After standardization, all thirteen columns count equally, and
# proline is one of several columns that tell the varieties apart.
#
# Standardize if the columns have different units, and do it in a pipeline: then new rows are scaled
# with the means and deviations of the training data. Leave columns as they are if they share a unit
# and their sizes mean something, such as pixels. Also leave them if most of them are noise, which
# standardization would amplify. :doc:`/trust` explains the label accuracy, and
# :ref:`sphx_glr_gallery_new_points_save_and_load.py` hands such a pipeline to a colleague.
