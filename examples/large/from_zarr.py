"""
A map of data on disk
=====================

Data that do not fit in memory can be fitted chunk by chunk, with Dask: by the threads of this
process, by worker processes of this machine, or by a cluster. This example writes data to a Zarr
store, fits a model to some of its rows, and places all of them. Nothing in it has all rows in
memory.
"""

from pathlib import Path
from tempfile import mkdtemp

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

import manifoldry
from manifoldry import PCA, Isomap
from manifoldry.datasets import make_swiss_roll
from manifoldry.distributed import using_options
from manifoldry.plotting import plot_embedding

# %%
# Data in chunks
# --------------
# A roll of 100 000 points in 20 dimensions, in chunks of 10 000 rows. Each chunk is made and
# written on its own.

folder = Path(mkdtemp())
axes = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3)))[0]


def rows_of(chunk):
    roll = make_swiss_roll(10_000, random_state=chunk).X
    noise = np.random.default_rng(chunk).normal(scale=0.05, size=(10_000, 20))
    return (roll @ axes.T + noise).astype(np.float32)


chunks = [da.from_delayed(dask.delayed(rows_of)(i), (10_000, 20), np.float32) for i in range(10)]
made = da.concatenate(chunks)
made.to_zarr(str(folder / "roll.zarr"))

# %%
# Fit and place
# -------------
# The path of the store is all that ``fit`` needs. With ``landmarks``, 2000 random rows are fitted.
# The map of all rows is a lazy Dask array: it is computed as it is written.

with using_options(landmarks=2000):
    model = Isomap(n_neighbors=10).fit(folder / "roll.zarr")
print("fitted on", model.fitted_on_)
print(model.embedding_)
model.embedding_.to_zarr(str(folder / "map.zarr"))

fig, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
places = da.from_zarr(str(folder / "map.zarr"))[::50].compute()
height = da.from_zarr(str(folder / "roll.zarr"))[::50].compute() @ axes[:, 1]
plot_embedding(places, height, ax=ax, color_label="height", title="every fiftieth row of the map")
plt.show()

# %%
# A model for one machine
# -----------------------
# What is saved is the model of the landmarks. It places new rows without Dask.

file = manifoldry.save(model, folder / "roll.model")
small = manifoldry.load(file)
new = rows_of(10)
print("new rows have places of shape", small.transform(new[:1000]).shape)

# %%
# Without a sample
# ----------------
# ``PCA`` needs sums over rows only, so it uses all rows, chunk by chunk.

model = PCA(3).fit(folder / "roll.zarr")
print("fitted on", model.fitted_on_)
print("variance explained:", np.round(model.explained_variance_ratio_, 3))

# %%
# With ``Client(LocalCluster())`` before the fits, the same code runs in worker processes, and with
# the client of a cluster on its machines. :doc:`/distributed` says which estimators use all rows,
# how to start a cluster safely, and what a fit costs.
