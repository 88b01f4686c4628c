"""Value of the objective against evaluations: docs/images/concept_optimizers.png."""

import matplotlib.pyplot as plt
from concept_figure import save
from sklearn.datasets import load_digits

from manifoldry import SNE
from manifoldry.plotting import plot_embedding

X, y = load_digits(n_class=5, return_X_y=True)
X, y = X[::2], y[::2]
names = {"gradient": "#999999", "cg": "#56b4e9", "lbfgs": "#0072b2", "spectral-lbfgs": "#d55e00"}

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", width_ratios=(1.4, 1, 1))
maps = {}
for name, color in names.items():
    model = SNE(init="pca", optimizer=name, max_iter=300).fit(X)
    axes[0].plot(model.trace_["evaluations"], model.trace_["value"], color=color, label=name)
    maps[name] = model
axes[0].set(xlim=(0, 120), xlabel="evaluations", ylabel="objective of SNE")
axes[0].legend(title="optimizer=")
for ax, name in zip(axes[1:], ("gradient", "spectral-lbfgs"), strict=True):
    title = f"{name}: {maps[name].loss_:.3f}"
    plot_embedding(maps[name], y, ax=ax, title=title, legend=False, categorical=True)
save(fig, "optimizers", 100)
