"""The pictures of docs/choose/index.md: ``python docs/pictures/choose_situations.py [name ...]``.

Each has the same data by an unsuitable and by the recommended method. Faces, cells and words are
read by their loaders (MANIFOLDRY_DATA); the other data are generated or come with scikit-learn. The
measures that the page quotes are printed. About three minutes on one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from read_a_map import draw, save
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression

from manifoldry import (
    LTSA,
    MVU,
    PCA,
    TSNE,
    UKR,
    ClassicalMDS,
    ConformalEigenmaps,
    DiffusionMaps,
    ElasticEmbedding,
    Isomap,
    LaplacianEigenmaps,
    NonRedundant,
    SpectralClustering,
)
from manifoldry.datasets import (
    load_glove,
    load_isomap_faces,
    load_pbmc,
    make_helix,
    make_hemisphere,
    make_swiss_roll,
)
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import (
    Alignment,
    coranking,
    knn_accuracy,
    local_distortion,
    procrustes,
    trustworthiness,
)
from manifoldry.plotting import plot_inverse_grid


def main() -> None:
    """Draw the pictures of the names given, or all."""
    warnings.simplefilter("ignore", ManifoldryWarning)  # some of these maps are wrong on purpose
    drawn: tuple[Callable[[], None], ...] = (
        groups, manifold, sheet, noisy_sheet, sphere, noisy_curve, process, cells, words, curves,
        distances, shapes_in_groups, labels, features, back,
    )  # fmt: skip
    for each in drawn:
        if len(sys.argv) == 1 or each.__name__ in sys.argv[1:]:
            print(f"== {each.__name__}")
            each()


def groups() -> None:
    """Handwritten digits: ten groups."""
    X, y = load_digits(return_X_y=True)
    maps = {"PCA": PCA(2).fit(X), "t-SNE": TSNE(random_state=0).fit(X)}
    for name, model in maps.items():
        print(f"{name}: trustworthiness {trustworthiness(X, model):.2f}, "
              f"label accuracy {knn_accuracy(model, y):.2f}")  # fmt: skip
    draw("choose_groups", maps, y, color_label="digit")


def manifold() -> None:
    """Images of one face that turns: one connected manifold of known coordinates."""
    faces = load_isomap_faces()
    truth = faces.coordinates
    maps = {
        "PCA": PCA(2).fit(faces.X),
        "t-SNE": TSNE(random_state=0).fit(faces.X),
        "Isomap": Isomap(2, n_neighbors=6).fit(faces.X),
    }
    for name, model in maps.items():
        fits = [explained(model.embedding_, column) for column in truth.T]
        print(name, dict(zip(faces.coordinate_names, np.round(fits, 2), strict=True)))
    draw("choose_manifold", maps, truth[:, 1], color_label="pose, left to right", legend=False)


def sheet() -> None:
    """A rolled-up sheet with a hole and without noise."""
    X, truth = make_swiss_roll(1000, hole=True, random_state=0)
    maps = {
        "Laplacian eigenmaps": LaplacianEigenmaps(2).fit(X),
        "Isomap": Isomap(2, n_neighbors=8).fit(X),
        "LTSA": LTSA(2, n_neighbors=12).fit(X),
        "MVU": MVU(2).fit(X),
    }
    print_errors(maps, truth)
    draw("choose_sheet", maps, truth[:, 0], legend=False)


def noisy_sheet() -> None:
    """The same with noise of .4 times the distance of nearest neighbors."""
    X, truth = make_swiss_roll(1000, hole=True, noise=0.25, random_state=0)
    maps = {
        "LTSA": LTSA(2, n_neighbors=12).fit(X),
        "Isomap": Isomap(2, n_neighbors=8).fit(X),
        "MVU": MVU(2).fit(X),
    }
    print_errors(maps, truth)
    draw("choose_noisy_sheet", maps, truth[:, 0], legend=False)


def sphere() -> None:
    """Half a sphere, which cannot be flattened: angles can be kept."""
    X, truth = make_hemisphere(800, random_state=0)
    maps = {"Isomap": Isomap(2).fit(X), "conformal eigenmaps": ConformalEigenmaps(2).fit(X)}
    for name, model in maps.items():
        stretch = np.median(local_distortion(X, model).anisotropy)
        print(f"{name}: error {procrustes(model, truth).error:.2f}, anisotropy {stretch:.2f}")
    maps = turned({name: model.embedding_ for name, model in maps.items()}, truth)
    draw("choose_sphere", maps, np.arctan2(*truth.T), cmap="twilight", legend=False)


def noisy_curve() -> None:
    """A noisy helix with one coordinate: unseen points after `transform` and the inverse."""
    X, _ = make_helix(300, rise=0.3, turns=3, noise=0.3, random_state=0)
    new, truth = make_helix(300, rise=0.3, turns=3, noise=0.3, random_state=100)
    maps = {"unseen points": new[:, [0, 2]]}
    for name, model in {
        "Isomap": Isomap(1),
        "t-SNE": TSNE(1, random_state=0),
        "UKR": UKR(1),
    }.items():
        position = model.fit(X).transform(new)
        maps[f"{name} and back"] = model.inverse_transform(position)[:, [0, 2]]
        order = abs(spearmanr(position[:, 0], truth.ravel()).statistic)
        print(f"{name}: R² of unseen points {model.score(new):.2f}, rank correlation {order:.2f}")
    easy, order = make_helix(300, noise=0.3, random_state=0)
    for model in (LaplacianEigenmaps(1), Isomap(1), UKR(1)):
        found = spearmanr(model.fit_transform(easy)[:, 0], order.ravel()).statistic
        print(f"{type(model).__name__}, windings far apart: rank correlation {abs(found):.3f}")
    draw("choose_noisy_curve", maps, truth.ravel(), legend=False)


def process() -> None:
    """A process of 20 measurements that develops along a curve and divides into two branches."""
    rng = np.random.default_rng(1)
    time, branch = rng.uniform(size=600) ** 1.5, rng.integers(2, size=600)  # more early than late
    speed, phase = rng.normal(size=20) / 0.3, rng.uniform(0, 2 * np.pi, size=20)
    apart = branch * np.maximum(time - 0.4, 0)
    X = np.cos(np.outer(time, speed) + phase + np.outer(apart, rng.normal(size=20) / 0.3))
    X += 0.1 * rng.normal(size=X.shape)
    root = time.argmin()
    diffusion, tsne = DiffusionMaps(15).fit(X), TSNE(random_state=0).fit(X)
    orders = {
        "pseudotime": diffusion.pseudotime(root),
        "distance in the data": np.linalg.norm(X - X[root], axis=1),
        "distance on the t-SNE map": np.linalg.norm(
            tsne.embedding_ - tsne.embedding_[root], axis=1
        ),
    }
    for name, order in orders.items():
        print(f"{name}: rank correlation with time {spearmanr(order, time).statistic:.2f}")
    maps = {"t-SNE": tsne.embedding_, "diffusion maps": diffusion.embedding_[:, :2]}
    draw("choose_process", maps, time, color_label="true time")


def cells() -> None:
    """Blood cells in 50 principal components of their genes."""
    cells = load_pbmc()
    names = np.array([name.split()[0] for name in cells.target_names])[cells.y]
    maps = {"PCA": PCA(2).fit(cells.X), "t-SNE": TSNE(random_state=0).fit(cells.X)}
    for name, model in maps.items():
        print(f"{name}: trustworthiness {trustworthiness(cells.X, model):.2f}, "
              f"label accuracy {knn_accuracy(model, cells.y):.2f}")  # fmt: skip
    draw("choose_cells", maps, names)


def words() -> None:
    """The 3000 most frequent words, with four kinds of them in color."""
    kinds = {
        "months": "january march april june july august september october november december",
        "countries": "france germany italy spain china japan india russia canada brazil iraq",
        "numbers": "two three four five six seven eight nine ten eleven twelve",
        "family": "mother father son daughter brother sister wife husband uncle grandfather",
    }  # fmt: skip
    glove = load_glove()
    X, names = glove.X[:3000], glove.sample_names[:3000]
    kind = np.array([next((k for k, v in kinds.items() if n in v.split()), None) for n in names])
    chosen = kind != np.array(None)
    models = {
        "PCA": PCA(2),
        "t-SNE, Euclidean": TSNE(random_state=0),
        "t-SNE, cosine": TSNE(metric="cosine", random_state=0),
    }
    for title, model in models.items():
        kept = coranking(X, model.fit(X), metric="cosine").area
        together = knn_accuracy(model.embedding_[chosen], kind[chosen].astype(str))
        print(f"{title}: R_NX area by cosine {kept:.3f}, kinds kept together {together:.2f}")
    maps = {name: models[name] for name in ("PCA", "t-SNE, cosine")}
    draw("choose_words", maps, kind, size=9)


def curves() -> None:
    """Sensor curves: a bump whose time and width differ."""
    rng = np.random.default_rng(0)
    when, width = rng.uniform(0.2, 0.8, size=500), rng.uniform(0.03, 0.08, size=500)
    clock = np.linspace(0, 1, 80)
    X = np.exp(-(((clock - when[:, None]) / width[:, None]) ** 2) / 2)
    X += 0.02 * rng.normal(size=X.shape)
    maps = {"PCA": PCA(2).fit(X), "Isomap": Isomap(2).fit(X)}
    without_repetition = {"NonRedundant(Isomap())": NonRedundant(Isomap()).fit(X)}
    for name, model in (maps | without_repetition).items():
        print(f"{name}: R² of time {explained(model.embedding_, when):.2f}, "
              f"of width {explained(model.embedding_, width):.2f}")  # fmt: skip
    draw("choose_curves", maps, when, color_label="time of the bump")


def distances() -> None:
    """Great-circle distances between 12 cities; nothing else is known."""
    places = {
        "Lisbon": (38.7, -9.1), "Madrid": (40.4, -3.7), "Paris": (48.9, 2.4),
        "London": (51.5, -0.1), "Dublin": (53.3, -6.3), "Oslo": (59.9, 10.8),
        "Helsinki": (60.2, 24.9), "Warsaw": (52.2, 21.0), "Berlin": (52.5, 13.4),
        "Vienna": (48.2, 16.4), "Rome": (41.9, 12.5), "Athens": (38.0, 23.7),
    }  # fmt: skip
    latitude, longitude = np.radians(list(places.values())).T
    x = np.column_stack([
        np.cos(latitude) * np.cos(longitude),
        np.cos(latitude) * np.sin(longitude),
        np.sin(latitude),
    ])  # fmt: skip
    km = 6371 * np.arccos(np.clip(x @ x.T, -1, 1))
    truth = np.column_stack([longitude * np.cos(latitude.mean()), latitude])
    maps = {"PCA of the rows": PCA(2).fit(km).embedding_}
    maps["classical MDS"] = ClassicalMDS(2, metric="precomputed").fit(km).embedding_
    for name, found in maps.items():
        ratio = pdist(found) / squareform(km, checks=False)
        error = np.abs(ratio / np.median(ratio) - 1)
        print(f"{name}: relative error, median {np.median(error):.1%}, largest {error.max():.1%}")
    draw("choose_distances", turned(maps, truth), np.array(list(places)), names=True)


def shapes_in_groups() -> None:
    """Three rings that are separate from each other."""
    rng = np.random.default_rng(0)
    angle, ring = rng.uniform(0, 2 * np.pi, 600), np.repeat([0, 1, 2], 200)
    X = np.zeros((600, 6))
    for k in range(3):
        X[ring == k, 2 * k] = np.cos(angle[ring == k])
        X[ring == k, 2 * k + 1] = np.sin(angle[ring == k])
    X += 0.05 * rng.normal(size=X.shape)
    maps = {"PCA": PCA(2), "t-SNE": TSNE(random_state=0), "elastic embedding": ElasticEmbedding()}
    maps = {name: model.fit(X) for name, model in maps.items()}
    for name, model in maps.items():
        print(f"{name}: R_NX area {coranking(X, model).area:.2f}")
    draw("choose_shapes_in_groups", maps, np.array(["first", "second", "third"])[ring])


def labels() -> None:
    """Two rings, one inside the other, cut by the graph and by k-means."""
    from sklearn.cluster import KMeans
    from sklearn.datasets import make_circles
    from sklearn.metrics import adjusted_rand_score

    X, truth = make_circles(500, factor=0.5, noise=0.05, random_state=0)
    found = {
        "k-means": KMeans(2, n_init=10, random_state=0).fit(X).labels_,
        "SpectralClustering": SpectralClustering(2, random_state=0).fit(X).labels_,
    }
    for name, cluster in found.items():
        print(f"{name}: adjusted Rand index {adjusted_rand_score(truth, cluster):.2f}")
    draw("choose_labels", dict.fromkeys(found, X), found, legend=False)


def features() -> None:
    """Accuracy of a classifier with 50 labels on coordinates of all digits, over ten draws."""
    import matplotlib.pyplot as plt

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    train, new = order[:1500], order[1500:]
    inputs = {"64 pixels": (X[train], X[new])}
    models = {
        "PCA, 16": PCA(16),
        "t-SNE, 2": TSNE(random_state=0),
        "Laplacian eigenmaps, 2": LaplacianEigenmaps(2),
        "Laplacian eigenmaps, 16": LaplacianEigenmaps(16),
    }
    for name, model in models.items():
        inputs[name] = (model.fit(X[train]).embedding_, model.transform(X[new]))
    accuracies = {}
    for name, (known, unseen) in inputs.items():
        scale = 1.0 if name == "64 pixels" else known.std()
        values = []
        for seed in range(10):
            rows = np.random.default_rng(seed).permutation(1500)[:50]
            model = LogisticRegression(max_iter=5000).fit(known[rows] / scale, y[train][rows])
            values.append(model.score(unseen / scale, y[new]))
        accuracies[name] = (np.mean(values), np.std(values, ddof=1))
        print(f"{name}: {accuracies[name][0]:.2f} ± {accuracies[name][1]:.2f}")
    figure, ax = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    mean, deviation = np.transpose(list(accuracies.values()))
    ax.barh(list(accuracies), mean, xerr=deviation, color="#5b8fc7")
    ax.invert_yaxis()
    ax.set(xlabel="accuracy on 297 new digits, 50 labels (mean and deviation of ten draws)")
    ax.set_xlim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, "choose_features")


def back() -> None:
    """Images that models of 1000 digits compute at a grid of positions."""
    import matplotlib.pyplot as plt

    X = load_digits().data
    models = {"PCA": PCA(2), "UKR": UKR(2), "PCA, 20 coordinates": PCA(20), "Isomap": Isomap(2)}
    models["t-SNE"], models["elastic embedding"] = TSNE(random_state=0), ElasticEmbedding()
    models["Laplacian eigenmaps"] = LaplacianEigenmaps(2)
    for name, model in models.items():
        score = model.fit(X[:1000]).score(X[1000:])
        print(f"{name}: R² of 797 digits after transform and inverse {score:.2f}")
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
    for ax, name in zip(axes, ("PCA", "UKR"), strict=True):
        plot_inverse_grid(models[name], image_shape=(8, 8), n_images=14, ax=ax, title=name)
    save(figure, "choose_back")


def explained(embedding: Any, values: Any) -> float:
    """R² of values by the best linear function of the coordinates."""
    return LinearRegression().fit(embedding, values).score(embedding, values)


def print_errors(maps: dict[str, Any], truth: Any) -> None:
    """Distances from the true sheet, relative to its size, and in its units."""
    for name, model in maps.items():
        rigid = procrustes(model, truth, "rigid").error
        print(
            f"{name}: error {procrustes(model, truth).error:.2f}, in units of the data {rigid:.2f}"
        )


def turned(maps: dict[str, Any], truth: Any) -> dict[str, Any]:
    """Maps after the shift, turn, reflection and scale that bring them closest to the truth."""
    return {name: Alignment.fit(found, truth).apply(found) for name, found in maps.items()}


if __name__ == "__main__":
    main()
