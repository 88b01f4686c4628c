"""
Few points: embed a density instead?
====================================

With few points, the accidents of the sample show in every map: holes appear where no point
happened to fall. ``FromDensity`` estimates a smooth density, draws ten times as many points from
it, and embeds those. It improves the maps of one of the two data sets below, and ruins those of
the other.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import FromDensity, Isomap
from manifoldry.datasets import make_partitioned_circle, make_strip
from manifoldry.metrics import procrustes


def sheet(n, seed):
    """Points on a rectangle."""
    return make_strip(n, aspect=2, noise=0.02, random_state=seed)


def ring(n, seed):
    """Points on a circle with a gap."""
    return make_partitioned_circle(n, n_arcs=1, gap=1.0, noise=0.05, random_state=seed)


# %%
# A sheet and an open ring
# ------------------------
# The left column has 60 points (colored) and draws from their density (gray). The other columns
# show 400 new points, placed by Isomap of the 60 points and by Isomap of the draws.
#
# Isomap of 60 points distorts the edges of the sheet and opens holes in it. The map of the draws is
# more even. In the ring, a few draws fall into the gap. Isomap measures distances along the draws,
# so these close the ring. Its map of the draws is bent, while that of the points is straight.

plain, smooth = Isomap(n_neighbors=8), FromDensity(Isomap(n_neighbors=8), random_state=0)
fig, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
for row, make in zip(axes, (sheet, ring), strict=True):
    few, new = make(60, seed=2), make(400, seed=100)
    maps = [model.fit(few.X).transform(new.X) for model in (plain, smooth)]
    row[0].plot(*smooth.density_.sample(600, random_state=0).T, ".", color="silver", markersize=2)
    row[0].scatter(*few.X.T, c=few.coordinates[:, 0], s=16)
    for ax, Y in zip(row[1:], maps, strict=True):
        ax.scatter(*Y.T, c=new.coordinates[:, 0], s=6)
    for ax, title in zip(row, ("data and draws", "Isomap", "Isomap of draws"), strict=True):
        ax.set(title=f"{make.__name__}: {title}", aspect="equal", xticks=[], yticks=[])

# %%
# Is that luck?
# -------------
# To find out, eight samples of 60 points each are embedded. The error is the difference from Isomap
# of 1500 points, after the best rotation, shift and scaling: 0 is the same map, 1 an unrelated one.
# Isomap looks for edges that shorten many distances. It warns of the closed ring in some of the
# samples, but not in all of them.

for make in (sheet, ring):
    new = make(400, seed=100)
    best = plain.fit(make(1500, seed=101).X).transform(new.X)
    for name, model in {"Isomap": plain, "Isomap of draws": smooth}.items():
        with warnings.catch_warnings(record=True) as caught:
            maps = [model.fit(make(60, seed).X).transform(new.X) for seed in range(8)]
        error = np.mean([procrustes(Y, best).error for Y in maps])
        print(f"{make.__name__:6} {name:16} mean error {error:.2f}, {len(caught)} warnings")
plt.show()

# %%
# A density fills holes, those of the sample as well as those of the data. Use it if you know that
# the data are one piece, compare with the estimator alone, and look at the draws first:
# :ref:`sphx_glr_gallery_density_density_on_a_manifold.py` shows how. :doc:`/trust` has tests of
# any map.
