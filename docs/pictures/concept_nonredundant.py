"""A strip by eigenmaps, with and without redundancy: docs/images/concept_nonredundant.png."""

import matplotlib.pyplot as plt
from concept_figure import save

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_strip
from manifoldry.plotting import plot_embedding

X, truth = make_strip(1000, aspect=3.5, random_state=0)
plain = LaplacianEigenmaps(2, n_neighbors=12).fit(X)
better = NonRedundant(LaplacianEigenmaps(n_neighbors=12), 2).fit(X)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", width_ratios=(1.7, 1, 1))
drawn = axes[0].scatter(*truth.T, c=truth[:, 1], s=6)
axes[0].set(title="the strip", aspect="equal")
axes[0].axis("off")
fig.colorbar(drawn, ax=axes[0], location="bottom", label="width", shrink=0.6)
for ax, (title, model) in zip(
    axes[1:], {"LaplacianEigenmaps": plain, "NonRedundant": better}.items(), strict=True
):
    plot_embedding(model, truth[:, 1], ax=ax, title=title, legend=False)
save(fig, "nonredundant", 110)
