"""
What does a map of handwritten digits show?
===========================================

You have images without labels, and want to know whether they form groups. Here are 1797 small
images of handwritten digits. The methods never see which digit an image is. Afterwards, the colors
show that one of the maps has found the ten groups.
"""

from sklearn.datasets import load_digits

from manifoldry import PCA, TSNE, Isomap, compare
from manifoldry.plotting import plot_comparison, plot_images

digits = load_digits()
X, y = digits.data, digits.target

# %%
# Each row of ``X`` is an image of 8 × 8 pixels, that is, a point in 64 dimensions. t-SNE gives each
# image two coordinates, and tries to place similar images close to each other.

tsne = TSNE(random_state=0).fit(X)
ax = plot_images(
    tsne, digits.images, y, image_size=0.035, title="t-SNE of 1797 digits", color_label="digit"
)

# %%
# Nearly every digit is an island of its own. Inside an island, nearby images look alike: they have
# the same slant, or the same width of the stroke. Some digits are written in several ways and form
# several islands. An example is the digit 1 (orange), with and without a foot.
#
# Would a simpler method have shown the same? PCA keeps the two directions with the largest
# variance. Isomap keeps distances along paths through neighboring images.

models = {"PCA": PCA(2), "Isomap": Isomap(n_neighbors=12), "t-SNE": tsne}
comparison = compare(X, models, y)
axes = plot_comparison(
    comparison, metrics=("trustworthiness", "label_accuracy"), panel=3, color_label="digit"
)

# %%
# ``trustworthiness`` asks whether points that are close on the map are close in the data.
# ``label_accuracy`` is the fraction of images whose neighbors on the map are mostly the same digit.

for name, metrics in comparison.metrics.items():
    distances = metrics["distance_rank_correlation"]
    print(
        f"{name:7} label accuracy {metrics['label_accuracy']:.2f}, distances kept {distances:.2f}"
    )

# %%
# On the map by PCA most digits lie on top of each other, since two linear directions are not enough
# for ten groups. Isomap separates some of the groups. t-SNE separates nearly all.
#
# ``distances kept`` is the rank correlation between distances on the map and in the data. It is far
# from 1 for all three maps, and lowest for t-SNE. So the distance between two islands means little.
#
# To see groups, use :class:`~manifoldry.TSNE`. To see the large-scale arrangement, look at
# :class:`~manifoldry.PCA` or :class:`~manifoldry.Isomap` too, and check what they keep.
# :doc:`/trust` explains all metrics, and :ref:`sphx_glr_gallery_new_points_unseen_digits.py` places
# new images on such a map.
