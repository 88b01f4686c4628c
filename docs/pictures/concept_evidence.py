"""Where a map can be trusted, and where it repeats: docs/images/concept_evidence.png."""

import matplotlib.pyplot as plt
from concept_figure import save
from sklearn.datasets import load_digits

from manifoldry import TSNE, assess
from manifoldry.metrics import stability
from manifoldry.plotting import plot_embedding

X, y = load_digits(n_class=6, return_X_y=True)
model = TSNE(random_state=0).fit(X)
found = assess(X, model, y)
repeated = stability(TSNE(random_state=0), X, n_resamples=5)
panels = {
    "classes": (y, None),
    "trustworthiness": (found.per_point["trustworthiness"], "viridis"),
    "movement between fits": (repeated.per_point, "magma_r"),
}

fig, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
for ax, (title, (color, cmap)) in zip(axes, panels.items(), strict=True):
    options = {"cmap": cmap} if cmap else {"categorical": True, "names": True, "legend": False}
    plot_embedding(model, color, ax=ax, title=title, **options)
save(fig, "evidence", 110)
