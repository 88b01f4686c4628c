"""Elastic embeddings of digits as repulsion grows: docs/images/concept_homotopies.png."""

import matplotlib.pyplot as plt
from concept_figure import save
from sklearn.datasets import load_digits

from manifoldry import ElasticEmbedding
from manifoldry.optimize import Homotopy
from manifoldry.plotting import plot_embedding

X, y = load_digits(n_class=5, return_X_y=True)
model = ElasticEmbedding(weight=1000.0, optimizer=Homotopy(n_steps=30)).fit(X)
weights = model.path_.column("parameter")

fig, axes = plt.subplots(1, 5, figsize=(10, 2.4), layout="constrained")
for ax, step in zip(axes, (0, 6, 12, 20, len(weights) - 1), strict=True):
    title = f"λ = {weights[step]:.4g}"
    Y = model.path_.embedding_at(weights[step])
    plot_embedding(Y, y, ax=ax, title=title, legend=False, categorical=True)
save(fig, "homotopies", 110)
