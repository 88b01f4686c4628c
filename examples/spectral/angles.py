"""
Flatten a hemisphere and keep its angles
========================================

For anyone with data on a curved surface. No flat map keeps the distances of a sphere, but some
keep angles, so that small shapes look right. :class:`~manifoldry.ConformalEigenmaps` finds such
a map, and says how much it enlarges each place.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifoldry import PCA, ConformalEigenmaps, LaplacianEigenmaps
from manifoldry.datasets import make_hemisphere
from manifoldry.metrics import local_distortion
from manifoldry.plotting import plot_embedding

X = make_hemisphere(1000, random_state=0).X
models = {
    "PCA": PCA(2).fit(X),
    "Laplacian eigenmaps": LaplacianEigenmaps(2).fit(X),
    "Conformal eigenmaps": ConformalEigenmaps(2).fit(X),
}

# %%
# Draw circles of equal size on the hemisphere and see what becomes of them, as geographers do.
# The circles are new points, placed by ``transform``. PCA looks from above and flattens the
# circles towards the rim. Laplacian eigenmaps distort them irregularly. Conformal eigenmaps turn
# them into circles again, of different sizes.

rings = [(0, 1), (0.5, 6), (0.85, 11)]  # radius seen from above, and number of circles
a = np.concatenate([np.linspace(0, 2 * np.pi, n, endpoint=False) for _, n in rings])
r = np.repeat([r for r, _ in rings], [n for _, n in rings])
centers = np.column_stack([r * np.cos(a), r * np.sin(a), np.sqrt(1 - r**2)])
turn = np.linspace(0, 2 * np.pi, 60)[:, None]
circles = []
for center in centers:
    east = np.cross(center, [0.6, 0.8, 0])
    east /= np.linalg.norm(east)
    north = np.cross(center, east)
    around = np.cos(turn) * east + np.sin(turn) * north
    circles.append(np.cos(0.15) * center + np.sin(0.15) * around)
circles = np.vstack(circles)

fig = plt.figure(figsize=(9, 8.6), layout="constrained")
axes = [fig.add_subplot(2, 2, 1, projection="3d"), *(fig.add_subplot(2, 2, k) for k in (2, 3, 4))]
axes[0].view_init(elev=50)
panels = {"The data, and circles of equal size": (X, circles)}
panels |= {name: (model.embedding_, model.transform(circles)) for name, model in models.items()}
for ax, (title, (points, drawn)) in zip(axes, panels.items(), strict=True):
    plot_embedding(points, X[:, 2], ax=ax, title=title, legend=False, alpha=0.4)
    for circle in np.split(drawn, len(centers)):
        ax.plot(*circle.T, "k")
plt.show()

# %%
# Anisotropy is the largest stretch around a point divided by the smallest. It is 1 if small shapes
# keep their form.

for name, model in models.items():
    anisotropy = local_distortion(X, model).anisotropy
    median, worst = np.quantile(anisotropy, [0.5, 0.9])
    print(f"{name:20} median {median:.2f}, a tenth of the points above {worst:.2f}")

# %%
# The local scale is the only distortion that is left, and it is known: ``scales_`` says how much
# each place is enlarged. Near the rim it is nearly twice as large as at the pole.

conformal = models["Conformal eigenmaps"]
fig, ax = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
_ = plot_embedding(conformal, conformal.scales_, ax=ax, color_label="local scale")
plt.show()

# %%
# Use a conformal map for surfaces that cannot be flattened; for a rolled sheet, which can be, a
# map that keeps distances is better: :ref:`sphx_glr_gallery_spectral_unfolding_with_a_proof.py`.
# :doc:`/unfolding` has the angles for more surfaces, and a certificate that the optimum was found.
