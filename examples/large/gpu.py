"""
Compute on a GPU, if there is one
=================================

A script should run on a workstation with a GPU and on a laptop without one. This example asks for
a GPU, takes the CPU if there is none, and says which it was. Then it saves a model that works on
both.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

import manifoldry
from manifoldry import LTSA
from manifoldry.datasets import make_swiss_roll
from manifoldry.device import MissingDeviceError, resolve_device
from manifoldry.metrics import trustworthiness
from manifoldry.plotting import plot_embedding

# %%
# Is there a GPU?
# ---------------
# ``resolve_device`` finds the GPU, or raises an error that says what is missing.

try:
    device = resolve_device("cuda")
    print(f"computing on {device.description}")
except MissingDeviceError as error:
    device = "cpu"
    print(f"computing on the CPU: {error.problem}")

# %%
# Fit on it
# ---------
# Estimators have a parameter ``device``. The data are a roll of 3000 points, turned into 64
# features, in the memory of the computer. The model says how it found the neighbors and solved the
# eigenproblem. If it did so on a GPU, it names it.

roll, sheet = make_swiss_roll(3000, random_state=0)
rng = np.random.default_rng(0)
X = roll @ np.linalg.qr(rng.normal(size=(64, 3)))[0].T + 0.01 * rng.normal(size=(3000, 64))
model = LTSA(n_neighbors=12, device=device).fit(X)
print("neighbors:", model.neighbor_search_)
print("eigenvectors:", model.solver_.split(",")[0])

fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax = plot_embedding(model, sheet[:, 0], ax=ax, color_label="arc length", title="a roll of 3000")
plt.show()

# %%
# Functions have no such parameter. They compute on the device of the context around them. On a GPU
# the comparison of all pairs is quick even for 70 000 points.

with manifoldry.using_device(device):
    trust = trustworthiness(X, model, sample="all")
print(f"trustworthiness of all points: {trust:.3f}")

# %%
# A model for every machine
# -------------------------
# Whatever computed the map, the fitted model has arrays of NumPy. In a file it keeps its parameter
# ``device``; set it to None where there is no GPU.

print("the map is an array of", type(model.embedding_).__module__)
file = manifoldry.save(model, Path(mkdtemp()) / "roll.model")
on_a_laptop = manifoldry.load(file).set_params(device=None)
difference = np.abs(on_a_laptop.transform(X) - model.embedding_).max()
print(f"places on the laptop and in the map differ by {difference:.0e}")

# %%
# Arrays that are on a GPU already, of CuPy or PyTorch, can be passed as they are. :doc:`/gpu` says
# what runs where, how much memory it needs, and how fast it is.
