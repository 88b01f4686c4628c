"""Too few, enough and too many neighbors on a spiral: docs/images/concept_neighbors.png."""

import matplotlib.pyplot as plt
import numpy as np
from concept_figure import save
from matplotlib.collections import LineCollection

from manifoldry import NeighborGraph, find_short_circuits

rng = np.random.default_rng(2)
angle = np.sqrt(np.linspace(4.5**2, 14**2, 200)) + rng.normal(0, 0.05, 200)
X = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
X += rng.normal(0, 0.45, X.shape)

fig, axes = plt.subplots(1, 3, figsize=(10, 4))
fig.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.85, wspace=0.05)
for ax, k in zip(axes, (2, 7, 14), strict=True):
    graph = NeighborGraph.build(X, k)
    found = find_short_circuits(graph)
    n_components = graph.components()[0]
    edges = np.column_stack([graph.rows, graph.indices])
    ax.add_collection(LineCollection(X[edges], colors="0.7", linewidths=0.8))
    ax.add_collection(LineCollection(X[found.edges], colors="#d55e00", linewidths=1.6))
    ax.scatter(*X.T, c=angle, s=14, zorder=3)
    pieces = f"{n_components} pieces" if n_components > 1 else "one piece"
    ax.set_title(f"{k} neighbors\n{pieces}, {len(found)} short circuits")
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
save(fig, "neighbors", 110)
