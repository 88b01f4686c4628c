"""
Data that stay on disk
======================

A table may be larger than the memory of the computer. NumPy can map such a file without reading it,
and manifoldry takes the map as it is: rows are read in blocks. Here 200 000 rows on disk become a map,
and another file.
"""

import tracemalloc
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import LTSA, PCA, Isomap
from manifoldry.datasets import make_swiss_roll
from manifoldry.plotting import plot_embedding

folder = Path(mkdtemp())

n, n_features = 200_000, 64
rng = np.random.default_rng(0)
mixing = np.linalg.qr(rng.normal(size=(n_features, 3)))[0].T.astype(np.float32)
rows = np.lib.format.open_memmap(folder / "rows.npy", mode="w+", dtype=np.float32, shape=(n, n_features))
truth = np.empty(n)
for start in range(0, n, 20_000):
    roll, sheet = make_swiss_roll(20_000, random_state=start)
    rows[start : start + 20_000] = roll @ mixing + 0.1 * rng.normal(size=(20_000, n_features))
    truth[start : start + 20_000] = sheet[:, 0]
rows.flush()
import time
X = np.load(folder / "rows.npy", mmap_mode="r")
tracemalloc.start()
t=time.process_time()
pca = PCA(3).fit(X)
print(tracemalloc.get_traced_memory(), X.nbytes, time.process_time()-t); t=time.process_time()
tracemalloc.reset_peak()
sample = np.sort(rng.choice(n, 3000, replace=False))
pca = PCA(3).fit(X[sample])
print("sample", tracemalloc.get_traced_memory(), X.nbytes, time.process_time()-t); t=time.process_time()
Z = pca.transform(X)
print(tracemalloc.get_traced_memory(), Z.dtype, time.process_time()-t); t=time.process_time()
tracemalloc.stop()
for m in (Isomap(n_landmarks=100),LTSA(n_neighbors=12)):
    m.fit(Z[sample]); print(type(m), time.process_time()-t); t=time.process_time()
    Y = m.transform(Z[:20000])
    print("20000", time.process_time()-t); t=time.process_time()
