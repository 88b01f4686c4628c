"""Kernels, and the forces on one point of a map: docs/images/concept_objectives.png."""

import matplotlib.pyplot as plt
import numpy as np
from concept_figure import save
from sklearn.datasets import load_digits

from manifoldry import TSNE
from manifoldry.objectives import GaussianKernel, StudentKernel
from manifoldry.plotting import plot_embedding

X, y = load_digits(n_class=5, return_X_y=True)
model = TSNE(random_state=0).fit(X)
Y = model.embedding_
point = np.flatnonzero(y == 3)[20]
force = model.learned_affinity_[point] * np.linalg.norm(Y - Y[point], axis=1)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
d = np.linspace(0, 4, 200)
axes[0].plot(d, np.exp(-GaussianKernel().phi(d**2)), color="#0072b2", label="Gaussian (SNE)")
axes[0].plot(d, np.exp(-StudentKernel().phi(d**2)), color="#d55e00", label="Student (t-SNE)")
axes[0].set(xlabel="distance on the map", title="kernel")
axes[0].legend()
plot_embedding(
    Y, y, ax=axes[1], title="map of five digits", categorical=True, legend=False, names=True
)
axes[1].scatter(*Y[point], s=60, facecolors="none", edgecolors="black", linewidths=2)
limit = np.quantile(abs(force), 0.99)
drawn = axes[2].scatter(
    *Y.T, c=force, s=16, cmap="PuOr", edgecolors="0.6", linewidths=0.3, vmin=-limit, vmax=limit
)
axes[2].scatter(*Y[point], s=60, facecolors="none", edgecolors="black", linewidths=2)
axes[2].set(title="forces on the point", aspect="equal")
axes[2].set(xlim=Y[point, 0] + np.array([-9, 9]), ylim=Y[point, 1] + np.array([-9, 9]))
axes[2].axis("off")
bar = fig.colorbar(drawn, ax=axes[2], ticks=[-limit, limit], shrink=0.7)
bar.ax.set_yticklabels(["repel", "attract"])
save(fig, "objectives", 100)
