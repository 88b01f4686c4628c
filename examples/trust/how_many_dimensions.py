"""
How many dimensions do my data have?
====================================

You have to set ``n_components``. :func:`~manifoldry.estimate_dimension` runs eight estimators. Here
they are applied to a rolled sheet, the same sheet with noise, the digits, and pure noise. The
estimators that look at neighborhoods agree on the sheet without noise. Elsewhere they differ, and
the result says why.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldry import PCA, LaplacianEigenmaps, NonRedundant, estimate_dimension
from manifoldry.datasets import make_swiss_roll

data = {
    "roll": make_swiss_roll(1000, random_state=0).X,
    "roll with noise": make_swiss_roll(1000, noise=0.5, random_state=0).X,
    "digits": load_digits().data[:1000],
    "noise in 10 columns": np.random.default_rng(0).normal(size=(1000, 10)),
}
found = {name: estimate_dimension(X, random_state=0) for name, X in data.items()}

# %%
# The dimension depends on the scale at which one looks. It is computed here from the distances to
# the k-th and the 2k-th neighbor. The roll has two dimensions at every scale. Add noise, and the
# nearest neighbors see a solid body of nearly three; only neighborhoods wider than the noise see
# the sheet. The digits have more dimensions the closer one looks.

fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
for name, each in found.items():
    ax.plot(each.profile.n_neighbors, each.profile.values, "o-", lw=3)
    color, above = ax.lines[-1].get_color(), -1.0 if name == "roll" else 0.4
    height = each.profile.values[2] + above
    ax.text(4, height, name, color=color, ha="center", fontsize=14, weight="bold")
ax.set_xscale("log", base=2)
ax.set_xticks([1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32])
ax.set_xlabel("neighbors k", fontsize=14)
ax.set_ylabel("dimension", fontsize=14)
_ = ax.set_ylim(0, 12)

# %%
# All eight estimators, and their consensus as a line. On the roll, PCA counts three dimensions,
# since it looks at the whole roll.

fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
methods = list(found["roll"].estimates)
for k, method in enumerate(methods):
    values = [each.estimates[method].value for each in found.values()]
    ax.plot(np.arange(4) + (k - 3.5) / 12, values, "o", label=method)
ax.hlines([each.dimension for each in found.values()], np.arange(4) - 0.4, np.arange(4) + 0.4)
ax.set(yscale="log", ylabel="dimension")
ax.set_yticks([1, 2, 3, 5, 10, 20], [1, 2, 3, 5, 10, 20])
ax.set_xticks(range(4), data)
_ = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))

# %%
# Each result has the consensus, a range and reasons. These are the reasons for the digits:

print(*found["digits"].reasons, sep="\n\n")

# %%
# Some digits vary in more ways than others. Local PCA has an estimate for each point. Its median is
# 8 or 9 for the ones, and more than 13 for the zeros.

local = found["digits"].estimates["local_pca"].per_point
digit = load_digits().target[:1000]
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.boxplot([local[digit == k] for k in range(10)], showfliers=False, tick_labels=range(10))
_ = ax.set(xlabel="digit", ylabel="local dimension", title="Dimension around each image")
plt.show()

# %%
# A recipe for noise
# ------------------
# Noise in many columns adds dimensions. Remove most of it first: keep the principal components with
# more than 1 % of the variance, and estimate the dimension of those. Here are 500 curves of 50
# readings, each with a bump at some place and of some width, so the true dimension is two. For
# comparison, ``NonRedundant`` chooses the number of coordinates itself.

rng = np.random.default_rng(0)
place, width = rng.uniform(0.2, 0.8, (500, 1)), rng.uniform(0.05, 0.15, (500, 1))
curves = np.exp(-(((np.linspace(0, 1, 50) - place) / width) ** 2) / 2)
for noise in (0.0, 0.05, 0.1):
    X = curves + rng.normal(0, noise, curves.shape)
    few = int((PCA(20).fit(X).explained_variance_ratio_ > 0.01).sum())
    raw = estimate_dimension(X, random_state=0).dimension
    cleaned = estimate_dimension(PCA(few).fit_transform(X), random_state=0).dimension
    chosen = NonRedundant(LaplacianEigenmaps(), "auto").fit(X).n_components_
    print(f"noise {noise}: all columns {raw}, {few} components {cleaned}, NonRedundant {chosen}")

# %%
# The components remove the small noise, and most of the larger one: noise along the components
# themselves stays. They do nothing for data of few columns, like the roll. So check the number in
# a second way: with ``NonRedundant(..., "auto")``, or with the rule for the held-out score in
# :ref:`sphx_glr_gallery_trust_held_out_score.py`.
#
# If the estimators agree, take their number. If the estimate falls with scale, use the recipe, or
# take the value at scales wider than the noise. If it is large, like here for digits, two
# coordinates are a picture, not a description; choose their number by what you do with them, as in
# :ref:`sphx_glr_gallery_trust_pipeline.py`. :doc:`/choosing` has more on the dimension.
