"""The pictures of the pages in docs/start: ``python docs/pictures/read_a_map.py``.

The first is that of the first map. Each other shows one rule: the same data in a map that misleads
and in one that does not, or what they really are. All data are generated or come with
scikit-learn. The measures that the pages quote are printed. About a minute on one core.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from sklearn.datasets import load_digits, load_wine

from manifoldry import PCA, TSNE, Isomap, LaplacianEigenmaps, NonRedundant, assess
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import knn_accuracy, procrustes, unpredictability
from manifoldry.plotting import plot_grid, plot_images

IMAGES = Path(__file__).parent.parent / "images"


def main() -> None:
    """Draw all pictures."""
    warnings.simplefilter("ignore", ManifoldryWarning)  # most of these maps are wrong on purpose
    first_map()
    noise()
    sizes()
    short_circuits()
    pieces()
    repeated()
    units()
    outlier()


def first_map() -> None:
    """The map of docs/start/first-map.md, with images where there is room."""
    digits = load_digits()
    model = TSNE(random_state=0).fit(digits.data[:300])
    save(plot_images(model, digits.images[:300], digits.target[:300]).figure, "read_first_map")


def noise() -> None:
    """One cloud without any structure, with three perplexities."""
    X = np.random.default_rng(0).normal(size=(300, 10))
    maps = {
        f"t-SNE, perplexity {p}": TSNE(perplexity=p, random_state=0).fit(X) for p in (3, 10, 30)
    }
    draw("read_noise", maps | {"PCA": PCA(2).fit(X)}, "#333333")
    digits = load_digits().data[:300]
    shuffled = np.random.default_rng(0).permuted(digits, axis=0)
    print_trust("noise, perplexity 3", X, TSNE(perplexity=3, random_state=0))
    print_trust("noise, perplexity 30", X, TSNE(perplexity=30, random_state=0))
    print_trust("digits", digits, TSNE(random_state=0))
    print_trust("digits, columns shuffled", shuffled, TSNE(random_state=0))


def sizes() -> None:
    """Three clusters: one is ten times as wide as another, one four times as far away."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [100.0, 0.0]])
    widths = np.array([1.0, 10.0, 3.0])
    labels = np.repeat([0, 1, 2], 150)
    plane = centers[labels] + widths[labels, None] * rng.normal(size=(450, 2)) / 3
    X = np.column_stack([plane, 0.1 * rng.normal(size=(450, 3))])
    names = np.array(["narrow", "wide", "far"])[labels]
    draw("read_sizes", {"the data": plane, "t-SNE": TSNE(random_state=0).fit(X)}, names)


def short_circuits() -> None:
    """A rolled-up sheet with a suitable number of neighbors and with too many."""
    X, truth = make_swiss_roll(800, random_state=0)
    maps: dict[str, Any] = {"the data, from the side": X[:, [0, 2]]}
    for k in (8, 30):
        model = Isomap(2, n_neighbors=k).fit(X)
        maps[f"Isomap, {k} neighbors"] = model
        print(f"roll, {k} neighbors: error {procrustes(model, truth).error:.2f}")
    draw("read_short_circuits", maps, truth[:, 0], legend=False)


def pieces() -> None:
    """Two sheets that are not connected, joined by one edge or embedded separately."""
    sheet = make_strip(300, aspect=3, random_state=0).X
    other = sheet[:, ::-1] + [5.0, 0.0]  # turned by 90 degrees
    plane = np.vstack([sheet, other])
    X = np.column_stack([plane, np.sin(plane[:, 0])])
    order = np.concatenate([sheet[:, 0], sheet[:, 0]])
    maps: dict[str, Any] = {"the data": plane, "Isomap: joined": Isomap(2).fit(X)}
    maps['disconnected="separate"'] = Isomap(2, disconnected="separate").fit(X)
    draw("read_pieces", maps, order, legend=False)


def repeated() -> None:
    """A strip: the second coordinate of Laplacian eigenmaps is a function of the first."""
    X, truth = make_strip(800, aspect=3.5, random_state=0)
    plain = LaplacianEigenmaps(2, n_neighbors=12).fit(X)
    other = NonRedundant(LaplacianEigenmaps(n_neighbors=12), 2).fit(X)
    maps = {"the data": truth, "Laplacian eigenmaps": plain, "NonRedundant": other}
    print("strip:", unpredictability(plain.embedding_), unpredictability(other.embedding_))
    draw("read_repeated", maps, truth[:, 1], legend=False)


def units() -> None:
    """Wine: one column in large units hides the other twelve."""
    X, y = load_wine(return_X_y=True)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    maps = {"t-SNE, columns as they are": TSNE(random_state=0).fit(X)}
    maps["t-SNE, columns standardized"] = TSNE(random_state=0).fit(scaled)
    for title, model in maps.items():
        print(f"wine, {title}: label accuracy {knn_accuracy(model, y):.2f}")
    print("wine: fraction of the variance in proline", X.var(axis=0)[-1] / X.var(axis=0).sum())
    draw("read_units", maps, np.array(["first", "second", "third"])[y], color_label="cultivar")


def outlier() -> None:
    """Two groups, with and without one row that was entered in other units."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 10)) + 4 * group[:, None]
    wrong = X.copy()
    wrong[0] *= 1000
    names = np.array(["first group", "second group"])[group]
    draw("read_outlier", {"PCA": PCA(2).fit(X), "one row × 1000": PCA(2).fit(wrong)}, names)


def print_trust(name: str, X: Any, model: Any) -> None:
    """Print how far neighbors on the map of a model are neighbors in the data."""
    found = assess(X, model.fit(X)).metrics["trustworthiness"]
    print(f"{name}: trustworthiness {found:.2f}")


def draw(name: str, maps: dict[str, Any], color: Any, **options: Any) -> None:
    """Draw maps side by side, at most 840 pixels wide, into docs/images."""
    panel = {2: 3.0, 3: 2.5, 4: 1.9}[len(maps)]
    save(plot_grid(maps, color, panel=panel, **options)[0].figure, name)


def save(figure: Any, name: str) -> None:
    """Write a figure into docs/images."""
    figure.savefig(IMAGES / f"{name}.png", dpi=110, facecolor="white", bbox_inches="tight")


if __name__ == "__main__":
    main()
