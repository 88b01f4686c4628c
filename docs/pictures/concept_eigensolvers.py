"""A mixture of eigenvectors has a tiny residual too: docs/images/concept_eigensolvers.png."""

import matplotlib.pyplot as plt
import numpy as np
from concept_figure import save

from manifoldry import LTSA
from manifoldry.datasets import make_swiss_roll

X, sheet = make_swiss_roll(5000, random_state=0)
model = LTSA(2, n_neighbors=12, metric_fit=False)
A = model.pose(X).problems[0].operator
V = model.fit_transform(X) / np.sqrt(len(X))
wrong = (V[:, 0] + V[:, 1]) / np.sqrt(2)
norm = abs(A).sum(axis=1).max()
residual = np.linalg.norm(A @ wrong - (wrong @ (A @ wrong)) * wrong) / norm

fig, axes = plt.subplots(1, 3, figsize=(10, 3.0), layout="constrained")
k = np.arange(1, 3)
axes[0].semilogy(k, model.gaps_, "o", color="#0072b2", label="gap")
axes[0].semilogy(k, model.residuals_, "s", color="#d55e00", label="residual")
axes[0].axhline(1e-10 * norm, color="0.5", ls=":", label="$10^{-10}$ times the norm")
axes[0].set(xticks=k, xlim=(0.5, 2.5), xlabel="coordinate", title="residuals and gaps")
axes[0].legend(fontsize=10, loc="center")
maps = {
    "second coordinate, computed": V[:, 1],
    f"an equal mixture of both:\nresidual {residual:.0e} of the norm": wrong,
}
for ax, (title, values) in zip(axes[1:], maps.items(), strict=True):
    ax.scatter(*sheet[::3].T, c=values[::3], s=3)
    ax.set_title(title)
    ax.set_aspect("equal")
    ax.axis("off")
save(fig, "eigensolvers", 110)
