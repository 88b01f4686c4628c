"""
How do I hand a model to a colleague?
=====================================

You have fitted a map, and a colleague wants to place new rows on it. Send one file. It contains the
scaler, the map and the names of the columns. It contains no code, so loading it is safe. Here it is
a map of breast tumors, made from 30 measurements of their cells.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry
from manifoldry.io import DamagedModelError
from manifoldry.plotting import plot_embedding

data = load_breast_cancer(as_frame=True)
diagnosis = data.target_names[data.target]
X, X_new, y, y_new = train_test_split(data.data, diagnosis, test_size=60, random_state=0)

# %%
# Fit a pipeline, and save both of its steps in one file. ``facts`` are your own notes, which are
# stored in the file, too.

model = make_pipeline(StandardScaler(), manifoldry.Isomap(n_neighbors=15)).fit(X)
folder = tempfile.TemporaryDirectory()
facts = {"source": "scikit-learn, load_breast_cancer"}
path = manifoldry.save(model, Path(folder.name) / "tumors.model", facts=facts)

# %%
# Your colleague loads the file, and places 60 tumors that the model has not seen (white circles).

loaded = manifoldry.load(path)
placed = loaded.transform(X_new)

fig, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
ax = plot_embedding(
    loaded[-1], y, ax=ax, new_embedding=placed, title="509 tumors, and 60 new ones on their map"
)

# %%
# The loaded model returns exactly the same numbers:

print("the same bits:", np.array_equal(placed, model.transform(X_new)))
classifier = KNeighborsClassifier(5).fit(loaded[-1].embedding_, y)
print(f"new tumors among those of the same diagnosis: {classifier.score(placed, y_new):.2f}")

# %%
# What is in a file that you have received? ``read_info`` tells, without loading the model:

info = manifoldry.read_info(path)
print(info.parameters["steps"])
print(f"{info.training['n_samples']} rows, {len(info.training['feature_names'])} columns:")
print(", ".join(info.training["feature_names"][:3]), "…")
print("source:", info.training["source"])

# %%
# The model knows the names of the columns, so it refuses a table with its columns in another order.
# ``load`` refuses a file that was damaged or changed:

try:
    loaded.transform(X_new[X_new.columns[::-1]])
except ValueError as error:
    print(str(error).splitlines()[0])

content = bytearray(path.read_bytes())
content[len(content) // 2] ^= 1  # a single bit
path.write_bytes(content)
try:
    manifoldry.load(path)
except DamagedModelError as error:
    print(type(error).__name__)
folder.cleanup()

# %%
# A pickle would do the same, but loading a pickle runs whatever code its author has put there. A
# ``.model`` file has only numbers and names.
#
# :doc:`/command-line` places new rows with ``manifoldry transform tumors.model new.csv``, without
# any Python. :ref:`sphx_glr_gallery_first_maps_columns_with_units.py` explains why a scaler is
# needed, and :ref:`sphx_glr_gallery_new_points_unseen_digits.py` finds rows that do not belong on a
# map.
