"""The first eigenfunctions of three problems on one sheet: docs/images/concept_problems.png."""

import matplotlib.pyplot as plt
from concept_figure import save

from manifoldry import LTSA, Isomap, LaplacianEigenmaps
from manifoldry.datasets import make_swiss_roll

X, sheet = make_swiss_roll(1500, random_state=0)
models = {
    "LaplacianEigenmaps\nsmoothest functions": LaplacianEigenmaps(3, n_neighbors=12),
    "Isomap\ngeodesic distances": Isomap(3, n_neighbors=12),
    "LTSA\nlocally affine": LTSA(2, n_neighbors=12),
}

fig, axes = plt.subplots(3, 3, figsize=(10, 2.9), layout="constrained")
for row, (title, model) in zip(axes, models.items(), strict=True):
    Y = model.fit_transform(X)
    for k, ax in enumerate(row):
        ax.axis("off")
        if k < Y.shape[1]:
            ax.scatter(*sheet.T, c=Y[:, k], s=3, cmap="viridis")
            ax.set_aspect("equal")
        else:
            ax.text(0.5, 0.5, "two coordinates are all\nthis problem has", ha="center", va="center")
    row[0].text(-0.05, 0.5, title, transform=row[0].transAxes, ha="right", va="center")
for k, ax in enumerate(axes[0]):
    ax.set_title(f"coordinate {k + 1}")
save(fig, "problems", 100)
