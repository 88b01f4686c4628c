"""
Which optimizer needs the fewest evaluations?
=============================================

Every optimizer of manifoldry works with every iterative method. This example minimizes the
objective of SNE for handwritten digits from one start with four optimizers. It counts evaluations
of the objective, since seconds depend on the machine.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import SNE, NeighborGraph
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.plotting import plot_grid, plot_learning_curve

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:500], y[:500]

# %%
# Four searches from one start
# ----------------------------
# A name is that of a filter of the gradient, of a method, or of both. ``"gradient"`` follows the
# gradient downhill. ``"spectral"`` also solves a linear system with the Laplacian of the neighbor
# graph, so that neighbors move together. ``"lbfgs"`` learns the curvature from past steps.
# ``"spectral-lbfgs"``, the default of SNE, does both. Two of the searches are stopped after 300
# steps, and the warnings about it are switched off.

graph = NeighborGraph.build(X, 30)
models = {
    name: SNE(perplexity=10, init="spectral", optimizer=name, max_iter=300)
    for name in ("gradient", "spectral", "lbfgs", "spectral-lbfgs")
}
for model in models.values():
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(graph)

# %%
# The curves show how far each value is above the lowest that any optimizer has found. The two
# methods with the spectral filter are ahead after about ten evaluations. L-BFGS alone stops early,
# in a local minimum that is a few percent higher.

best = min(model.loss_ for model in models.values())
curves = {
    name: (model.trace_["evaluations"], 100 * (model.trace_["value"] / best - 1))
    for name, model in models.items()
}
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
label = "percent above the lowest value"
ax = plot_learning_curve(curves, ax=ax, log="xy", xlabel="evaluations", ylabel=label)
limits = ax.set_ylim(0.05, 300)

# %%
# The maps
# --------
# All four maps show the same clusters. If the value is a percent or three higher, the picture is
# not a different one: a few small groups are in the wrong place.

for name, model in models.items():
    print(f"{name:15} {model.loss_:.3f} after {model.n_evaluations_} evaluations: {model.status_}")
axes = plot_grid(models, y, color_label="digit")
plt.show()

# %%
# The order is not the same for every objective and every start, which is why methods have
# different defaults. :doc:`/concepts/optimizers` has a table of nine optimizers for nine problems,
# each with three data sets and ten seeds. :func:`~manifoldry.plotting.plot_trace` draws the curve
# of a single model.
