"""The picture of docs/coming-from/index.md: ``python docs/pictures/coming_maps.py``.

The same digits by other packages and by this one. It needs umap-learn and openTSNE beside
manifoldry, so it runs in an environment of its own. Trustworthiness is printed and written above
each map.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import openTSNE
import umap
from sklearn import manifold
from sklearn.datasets import load_digits

import manifoldry as mf
from manifoldry.metrics import procrustes, trustworthiness
from manifoldry.plotting import plot_embedding

IMAGE = Path(__file__).parents[1] / "images" / "coming_maps.png"


def maps(X: np.ndarray) -> dict[str, np.ndarray]:
    """The maps by name; t-SNE maps are turned like the first of them."""
    theirs = manifold.TSNE(random_state=0).fit_transform(X)
    found = {
        "scikit-learn, TSNE": theirs,
        "openTSNE, TSNE": np.asarray(openTSNE.TSNE(random_state=0).fit(X)),
        "umap-learn, UMAP": umap.UMAP(random_state=0).fit_transform(X),
        "manifoldry, TSNE": mf.TSNE().fit_transform(X),
        "manifoldry, ElasticEmbedding": mf.ElasticEmbedding().fit_transform(X),
        "manifoldry, LaplacianEigenmaps": mf.LaplacianEigenmaps(2).fit_transform(X),
    }
    return {name: procrustes(Y, theirs).aligned for name, Y in found.items()}


if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    figure, grid = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained", facecolor="white")
    found = maps(X)
    for axes, (name, Y) in zip(grid.flat, found.items(), strict=True):
        trust = float(trustworthiness(X, Y, n_neighbors=5))
        print(f"{name}: {trust:.3f}")
        plot_embedding(Y, y, ax=axes, legend=False, size=2)
        axes.set_title(f"{name}\ntrustworthiness {trust:.3f}", fontsize=9)
    IMAGE.parent.mkdir(exist_ok=True)
    figure.savefig(IMAGE, dpi=80, metadata={"Software": None})
