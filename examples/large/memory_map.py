"""
Embed data that stay on disk
============================

A table may be larger than the memory of the computer. NumPy can open such a file as a memory map,
without reading it. ``transform`` accepts a memory map and reads its rows in blocks. Here a model of
3000 rows places 200 000 rows of a file, and its memory does not grow with the file.
"""

import tracemalloc
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from manifoldry import LTSA, PCA
from manifoldry.datasets import make_swiss_roll
from manifoldry.plotting import plot_embedding

# %%
# A file
# ------
# A noisy roll, turned into 64 features, is written to a file in blocks, in single precision. Your
# table may come from a database or an instrument.

n, block, n_features = 200_000, 20_000, 64
path = Path(mkdtemp()) / "rows.npy"
rng = np.random.default_rng(0)
directions = np.linalg.qr(rng.normal(size=(n_features, 3)))[0].T
rows = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(n, n_features))
arc_length = np.empty(n)
for start in range(0, n, block):
    roll, sheet = make_swiss_roll(block, random_state=start)
    noise = 0.1 * rng.normal(size=(block, n_features))
    rows[start : start + block] = roll @ directions + noise
    arc_length[start : start + block] = sheet[:, 0]
rows.flush()

# %%
# Fit a sample, transform the file
# --------------------------------
# ``mmap_mode="r"`` opens the file without reading it. The model is fitted to a random sample:
# three principal components, which remove most of the noise, then LTSA, which flattens the roll.
# Then all rows of the file are transformed.

X = np.load(path, mmap_mode="r")
sample = np.sort(rng.choice(n, 3000, replace=False))
model = make_pipeline(PCA(3), LTSA(n_neighbors=12)).fit(X[sample])
Y = model.transform(X)

fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
title = f"{n} rows, placed by a model of {len(sample)}"
ax = plot_embedding(Y, arc_length, ax=ax, title=title, color_label="arc length")

# %%
# Memory
# ------
# Twice as many rows take hardly more memory. The result is larger, but the blocks are not.

for rows in (X[: n // 2], X):
    tracemalloc.start()
    model.transform(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{len(rows)} rows, {rows.nbytes / 1e6:.0f} MB on disk: {peak / 1e6:.0f} MB of memory")
plt.show()

# %%
# Rows in single precision give an embedding in single precision. ``fit`` needs the rows themselves,
# so fit a sample that fits in memory. Take rows at random, not the first ones, because files are
# often sorted. See :doc:`/scale` for the rates of ``transform`` of every method, and
# :ref:`sphx_glr_gallery_large_landmarks.py` for a fit of more points.
