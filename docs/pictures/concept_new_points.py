"""New points, novel points, and distances from the map: docs/images/concept_new_points.png."""

import matplotlib.pyplot as plt
import numpy as np
from concept_figure import save
from sklearn.datasets import load_digits

from manifoldry import ElasticEmbedding
from manifoldry.plotting import plot_embedding, plot_inverse_grid

X, y = load_digits(n_class=6, return_X_y=True)
known, zeros = X[y > 0], X[y == 0]
labels = y[y > 0]
model = ElasticEmbedding(weight=300.0).fit(known[:700])
Y = model.embedding_

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, (title, rows) in zip(
    axes[:2],
    {"new digits": known[700:740], "unseen zeros": zeros[:40]}.items(),
    strict=True,
):
    novel = np.mean(model.novelty(rows) > 2)
    plot_embedding(
        Y,
        labels[:700],
        ax=ax,
        new_embedding=model.transform(rows),
        categorical=True,
        legend=False,
        alpha=0.5,
        title=f"{title}: {novel:.0%} novel",
    )
plot_inverse_grid(model, image_shape=(8, 8), n_images=14, ax=axes[2], title="back: data of places")
save(fig, "new_points", 110)
