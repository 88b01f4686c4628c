"""
Where are the data dense along a curve?
=======================================

A density estimate finds outliers, generates new points and says where data are common. If the data
lie near a curve or a surface, an estimate with round kernels needs many points. This example
compares a kernel density with two estimates that follow the curve.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from manifoldry import ManifoldParzen, MixtureOfFactorAnalyzers

rng = np.random.default_rng(0)
angle = 3.5 * np.pi * rng.beta(2, 3, 1200)
X = np.column_stack([(1 + angle) * np.cos(angle), (1 + angle) * np.sin(angle)])
X += 0.15 * rng.normal(size=X.shape)
X, X_new = X[:200], X[200:]

# %%
# Three densities of 200 points
# -----------------------------
# The kernel density gives every point a round Gaussian, whose width is chosen by cross-validation.
# ``ManifoldParzen`` stretches each Gaussian along the neighbors of its point, and chooses its
# parameters by itself. ``MixtureOfFactorAnalyzers`` has ten Gaussians instead of 200. Brightness
# is the log density.

widths = {"bandwidth": np.geomspace(0.1, 3, 20)}
densities = {
    "kernel density": GridSearchCV(KernelDensity(), widths).fit(X).best_estimator_,
    "ManifoldParzen": ManifoldParzen().fit(X),
    "MixtureOfFactorAnalyzers": MixtureOfFactorAnalyzers(10, n_factors=1, n_init=5).fit(X),
}
side = np.linspace(-13, 13, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1)
fig, axes = plt.subplots(2, 2, figsize=(8, 8), layout="constrained")
axes[0, 0].plot(*X.T, "k.", markersize=4)
axes[0, 0].set(title="data", aspect="equal", xticks=[], yticks=[], xlim=(-13, 13), ylim=(-13, 13))
for ax, (name, density) in zip(axes.flat[1:], densities.items(), strict=True):
    log_density = density.score_samples(grid.reshape(-1, 2)).reshape(200, 200)
    ax.pcolormesh(side, side, log_density, vmin=-12, vmax=-1, cmap="magma", rasterized=True)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[])

# %%
# Which one is right?
# -------------------
# The mean log density of 1000 new points decides: higher is better. The stretched Gaussians win,
# because they can be long without being wide. The mixture is in second place: ten straight pieces
# cannot follow every bend.

for name, density in densities.items():
    print(f"{name:25} {density.score_samples(X_new).mean():.2f}")

# %%
# New points
# ----------
# Samples show what a density believes. Those of the kernel density scatter across the curve more
# than the data do. Those of ``ManifoldParzen`` resemble new data, except in the sparse outer part.

samples = {"new data": X_new[:600]}
for name in ("kernel density", "ManifoldParzen"):
    samples[f"sample of {name}"] = densities[name].sample(600, random_state=0)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
for ax, (name, points) in zip(axes, samples.items(), strict=True):
    ax.plot(*points.T, ".", markersize=3)
    ax.set(title=name, aspect="equal", xticks=[], yticks=[], xlim=(-13, 13), ylim=(-13, 13))
plt.show()

# %%
# Compare densities by ``score`` on data that they have not seen, never by eye. A sample from a
# density can also be embedded in place of the data: see
# :ref:`sphx_glr_gallery_density_embed_a_density.py`. :doc:`/mathematics` has the formulas.
