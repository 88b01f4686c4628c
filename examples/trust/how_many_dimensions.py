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

from manifoldry import estimate_dimension
from manifoldry.datasets import make_swiss_roll

data = {
    "roll": make_swiss_roll(1000, random_state=0).X,
    "roll with noise": make_swiss_roll(1000, noise=0.5, random_state=0).X,
    "digits": load_digits().data[:1000],
    "noise in 10 columns": np.random.default_rng(0).normal(size=(1000, 10)),
}
found = {name: estimate_dimension(X, random_state=0) for name, X in data.items()}

# %%
# The left panel has the estimates for each data set, and the consensus as a line. The right panel
# has the dimension at increasing scales, from the distances to the k-th and the 2k-th neighbor.
#
# The roll has two dimensions at every scale. PCA counts three, since it looks at the whole roll.
# With noise, the nearest neighbors fill nearly three dimensions. Only neighborhoods wider than the
# noise show the sheet. The digits have more dimensions at smaller scales.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
methods = list(found["roll"].estimates)
for k, method in enumerate(methods):
    values = [each.estimates[method].value for each in found.values()]
    left.plot(np.arange(4) + (k - 3.5) / 12, values, "o", label=method)
left.hlines([each.dimension for each in found.values()], np.arange(4) - 0.4, np.arange(4) + 0.4)
left.set(yscale="log", ylabel="dimension", title="All estimates")
left.set_yticks([1, 2, 3, 5, 10, 20], [1, 2, 3, 5, 10, 20])
left.set_xticks(range(4), [name.replace(" ", "\n", 1) for name in data])
left.legend(fontsize=8)
for name, each in found.items():
    right.plot(each.profile.n_neighbors, each.profile.values, "o-", label=name)
right.set_xscale("log", base=2)
right.set_xticks([1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32])
right.set(xlabel="neighbors k", ylim=(0, 13), title="Dimension by scale")
_ = right.legend(ncols=2, loc="upper center")

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
# If the estimators agree, take their number. If the estimate falls with scale, decide which scale
# you regard as noise. If the estimate is large, as for the digits, two coordinates are a picture,
# not a description. Then choose the number of coordinates by what you do with them, as in
# :ref:`sphx_glr_gallery_trust_held_out_score.py` and :ref:`sphx_glr_gallery_trust_pipeline.py`.
# :doc:`/choosing` has more on the dimension.
