"""
How far off is a reconstruction?
================================

A model turns positions of a map back into data, but the result is never exact. You want a bound on
the error that rarely fails. ``ConformalInverse`` adds a radius to each reconstruction, for any
method. If you ask for 0.9, on average nine of ten new points lie within their radius.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from manifoldry import ConformalInverse, Isomap


def sample_spiral(n, rng):
    angle = 2 * np.pi * np.sqrt(rng.uniform(0.1, 3.6, n))
    curve = np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    return curve + rng.normal(size=(n, 2)) * (0.1 + 0.04 * angle[:, None])


# %%
# The data lie near a spiral, with noise that grows toward the outer end. Isomap describes each
# point by one coordinate, its position along the spiral. The inverse returns a point on the spiral,
# without the noise.

rng = np.random.default_rng(0)
X, X_new = sample_spiral(2000, rng), sample_spiral(400, rng)
model = ConformalInverse(Isomap(n_components=1, n_neighbors=10), coverage=0.9).fit(X)
back, radius, _ = model.inverse_with_radius(model.transform(X_new))
inside = np.linalg.norm(back - X_new, axis=1) <= radius

fig, ax = plt.subplots(figsize=(7, 6.5), layout="constrained")
circles = EllipseCollection(
    2 * radius, 2 * radius, 0 * radius, units="xy", offsets=back, offset_transform=ax.transData
)
circles.set(color="lightblue")
ax.add_collection(circles)
ax.plot(*X_new[inside].T, ".", color="black", markersize=4, label="new points within")
ax.plot(*X_new[~inside].T, "x", color="tab:red", label="new points outside")
ax.set(aspect="equal", xticks=[], yticks=[], title="blue: reconstructions with their radii")
ax.legend(loc="upper right", fontsize=9)
print(f"{inside.mean():.3f} of the new points are within their radius")

# %%
# The radii follow the noise: they are small at the inner end and large at the outer end. A few
# crosses lie on blue: they are within the circle of another point, but not within their own. The
# radii are computed from points that were held out of the fit, so they need no assumption about the
# noise.
#
# Are they really nine of ten? Repeat the experiment with new data, for several values of
# ``coverage``:

fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
ax.plot([0.45, 1], [0.45, 1], color="gray", linewidth=1)
ax.set(xlabel="coverage requested", ylabel="new points within their radius")
for wanted in (0.5, 0.7, 0.8, 0.9, 0.95):
    for _ in range(4):
        repeat = ConformalInverse(Isomap(n_components=1, n_neighbors=10), coverage=wanted)
        repeat.fit(sample_spiral(1000, rng))
        X_test = sample_spiral(1000, rng)
        back, radius, _ = repeat.inverse_with_radius(repeat.transform(X_test))
        covered = np.mean(np.linalg.norm(back - X_test, axis=1) <= radius)
        ax.plot(wanted, covered, ".", color="tab:blue", alpha=0.6)

# %%
# The observed fractions scatter around the requested ones, because only 250 points were held out to
# compute the radii. The guarantee holds on average, over data sets and over all positions of a map.
# It does not hold for each single position.
#
# Now use real data of many dimensions, and a map of the digits with two coordinates:

X, X_new = train_test_split(load_digits().data, train_size=1200, random_state=0)
model = ConformalInverse(Isomap(n_neighbors=12), coverage=0.9).fit(X)
back, radius, reliable = model.inverse_with_radius(model.transform(X_new))
inside = np.linalg.norm(back - X_new, axis=1) <= radius
spread = np.sqrt(X.var(axis=0).sum())
print(f"{inside.mean():.3f} within their radius; reliable: {reliable.mean():.3f}")
print(f"median radius {np.median(radius):.0f}, spread of the data {spread:.0f}")

# %%
# The guarantee holds, but the radii are about as large as the spread of the whole data: two
# coordinates are not enough to reconstruct a digit.
#
# ``reliable`` is False for two kinds of positions: those far from all data, and those for which
# ``transform`` of the reconstruction does not return to the position. :doc:`/trust` has the results
# for five methods and four data sets. :ref:`sphx_glr_gallery_new_points_unseen_digits.py` asks when
# ``transform`` can be trusted, and :ref:`sphx_glr_gallery_new_points_inverse_grid.py` shows
# reconstructed digits.
