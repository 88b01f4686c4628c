"""Embed handwritten digits with every method, embed unseen ones, and decode positions into digits.

Run with ``make demo``; it takes about a minute and writes ``demo.png``, and the files of some
commands into the folder ``demo``.
"""

import subprocess
import sys
import warnings
from pathlib import Path
from textwrap import fill
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from manifoldry import (
    LLE,
    LTSA,
    PCA,
    SNE,
    TSNE,
    UKR,
    ClassicalMDS,
    ConformalEigenmaps,
    DiffusionMaps,
    ElasticEmbedding,
    HessianLLE,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    MaximumVarianceUnfolding,
)
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import NoveltyWarning
from manifoldry.io import Table, write_table
from manifoldry.metrics import coranking, procrustes, trustworthiness
from manifoldry.plotting import plot_walk

METHODS = {
    "PCA": PCA(),
    "Classical MDS (manhattan)": ClassicalMDS(metric="manhattan"),
    "Kernel PCA": KernelPCA(),
    "Isomap": Isomap(n_neighbors=12),
    "Laplacian eigenmaps": LaplacianEigenmaps(n_neighbors=12),
    "Diffusion maps": DiffusionMaps(n_neighbors=40),
    "LLE": LLE(n_neighbors=12),
    "LTSA": LTSA(n_neighbors=12),
    "t-SNE": TSNE(),
    "SNE": SNE(),
    "Elastic embedding": ElasticEmbedding(),
    "UKR": UKR(),
}
SHEET_METHODS = {
    "Isomap": Isomap(),
    "LLE": LLE(n_neighbors=12),
    "LTSA": LTSA(n_neighbors=12),
    "Hessian LLE": HessianLLE(),
    "Conformal eigenmaps": ConformalEigenmaps(),
    "Unfolding, by landmarks": MaximumVarianceUnfolding(n_landmarks=100),
}
COLUMNS = 4


def describe(model, X, y, X_new, y_new):
    """Metrics of an embedding: trustworthiness, labels of unseen points, reconstruction."""
    start = perf_counter()
    Y = model.fit_transform(X)
    seconds = perf_counter() - start
    Y_new = model.transform(X_new)
    return {
        "seconds": seconds,
        "trust": trustworthiness(X, Y, n_neighbors=12),
        "kept": coranking(X, Y).area,
        "label": KNeighborsClassifier(5).fit(Y, y).score(Y_new, y_new),
        "recovered": model.score(X_new),
    }


def draw(models, X, y, X_new, path):
    """Plot embeddings, unseen points (circles), and digits decoded along a walk from 0 to 6."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    start, stop = (typical_row(X, y, digit) for digit in (0, 6))
    rows = -(-len(models) // COLUMNS)
    figure = plt.figure(figsize=(4 * COLUMNS, 4.9 * rows), layout="constrained")
    grid = figure.add_gridspec(2 * rows, COLUMNS, height_ratios=[5, 1] * rows)
    for number, (name, model) in enumerate(models.items()):
        row, column = divmod(number, COLUMNS)
        ax = figure.add_subplot(grid[2 * row, column])
        walk = model.walk(X, start, stop, n_steps=9)
        unseen = model.transform(X_new[:25])
        legend = number == COLUMNS - 1
        plot_walk(
            walk, model, y.astype(str), ax=ax, title=name, legend=legend, new_embedding=unseen
        )
        strip = figure.add_subplot(grid[2 * row + 1, column])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoveltyWarning)  # the title says it
            images = model.inverse_transform(walk.coordinates).reshape(-1, 8, 8)
        strip.imshow(np.hstack(list(images)), cmap="gray_r", vmin=0, vmax=16)
        strip.set_axis_off()
    figure.suptitle(
        "Embedded digits. Circles: unseen digits. Black: a walk along the data from a 0 to a 6; "
        "below: images decoded along it, extrapolated in gaps of the map"
    )
    temporary = path.with_suffix(".tmp.png")
    figure.savefig(temporary, dpi=60)
    temporary.replace(path)


def typical_row(X, y, digit):
    """Index of the image of this digit that is nearest to their mean."""
    rows = np.flatnonzero(y == digit)
    return rows[np.linalg.norm(X[rows] - X[rows].mean(axis=0), axis=1).argmin()]


def manifoldry(*words):
    """Run the command `manifoldry`, as a user would in a terminal."""
    print(f"$ manifoldry {' '.join(words)}\n", flush=True)
    subprocess.run([sys.executable, "-m", "manifoldry", *words], check=True)
    print(flush=True)


def use_commands(X, y, X_new, y_new, folder, run=manifoldry):
    """Embed a file of digits and a file of unseen ones with commands; return all files."""
    folder.mkdir(exist_ok=True)
    for name, rows, labels in (("digits", X, y), ("unseen", X_new, y_new)):
        pixels = tuple(f"pixel{i}" for i in range(rows.shape[1]))
        write_table(folder / f"{name}.csv", Table(rows, pixels, labels={"digit": labels}))
    label = ("--label", "digit", "--output")
    run("embed", f"{folder}/digits.csv", *label, f"{folder}/map.csv")
    run("transform", f"{folder}/map.model", f"{folder}/unseen.csv", *label, f"{folder}/placed.csv")
    run("report", f"{folder}/digits.csv", "--refits", "0", *label, f"{folder}/report.html")
    return sorted(folder.iterdir())


def main():
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(
        X, y, train_size=1000, test_size=200, random_state=0, stratify=y
    )
    print(f"{len(X)} digits of {X.shape[1]} pixels, {len(X_new)} unseen digits\n")
    print("1. Commands, which need no Python code:\n")
    files = use_commands(X, y, X_new, y_new, Path("demo"))
    print("Files:", *files, sep="\n  ")
    print("\n2. Python, with all methods:\n", flush=True)
    heads = f"{'trustworthiness':>16}{'kept':>7}{'unseen labels':>15}{'recovered':>11}{'fit, s':>8}"
    print(f"{'':28}{heads}")
    notes = []
    for name, model in METHODS.items():
        with warnings.catch_warnings(record=True) as given:
            quality = describe(model, X, y, X_new, y_new)
        notes += [f"{name} warns: {each.message}" for each in given]
        print(
            f"{name:28}{quality['trust']:>16.3f}{quality['kept']:>7.2f}{quality['label']:>15.1%}"
            f"{quality['recovered']:>11.1%}{quality['seconds']:>8.2f}",
            flush=True,
        )
    print(
        "\ntrustworthiness: are neighbors in the embedding neighbors in the data? kept: area under "
        "R_NX,\nneighbors kept beyond chance. unseen labels: 5-nearest-neighbor accuracy of digits "
        "embedded by\ntransform. recovered: fraction of the variance of unseen digits that "
        "inverse_transform reconstructs."
    )
    for note in notes:
        print("\n" + fill(note, 99))
    unroll()
    path = Path("demo.png").resolve()
    draw(METHODS, X, y, X_new, path)
    print(f"\nPlot of all methods: {path}")


def unroll():
    """Compare embeddings of a Swiss roll with its true coordinates."""
    X, truth = make_swiss_roll(1000, random_state=0)
    print("\nA Swiss roll of 1000 points: error relative to the true sheet after a similarity")
    for name, model in SHEET_METHODS.items():
        print(f"{name:28}{procrustes(model.fit_transform(X), truth).error:>16.1%}", flush=True)


if __name__ == "__main__":
    main()
