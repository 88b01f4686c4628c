"""Weights of the edges of uneven data, by three rules: docs/images/concept_affinities.png."""

import matplotlib.pyplot as plt
import numpy as np
from concept_figure import save
from matplotlib.collections import LineCollection

from manifoldry import NeighborGraph
from manifoldry.affinity import Entropic, Gaussian, SelfTuning

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(0, 0.5, (90, 2)), rng.normal([4, 0], 1.3, (60, 2))])
graph = NeighborGraph.build(X, 15)
rules = {
    "Gaussian: one width for all": Gaussian(),
    "self-tuning: local widths": SelfTuning(),
    "entropic: perplexity 5": Entropic(perplexity=5),
}

fig, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
for ax, (title, rule) in zip(axes, rules.items(), strict=True):
    W = rule.fit(graph).matrix(graph).tocoo()
    strength = np.minimum(W.data / np.quantile(W.data, 0.9), 1)
    lines = LineCollection(X[np.column_stack([W.row, W.col])], colors="#0072b2", linewidths=1)
    lines.set_alpha(strength)
    ax.add_collection(lines)
    ax.scatter(*X.T, s=3, color="#d55e00", zorder=3)
    sums = W.sum(axis=1)
    dense, sparse = np.median(sums[:90]), np.median(sums[90:])
    ax.text(0, -4.1, f"sum {dense:.2g}", ha="center")
    ax.text(4, -4.1, f"sum {sparse:.2g}", ha="center")
    ax.set(title=title, aspect="equal", ylim=(-4.3, 4.2), xlim=(-2.2, 8.4))
    ax.axis("off")
save(fig, "affinities", 110)
