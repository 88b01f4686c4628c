"""The decision ladder of docs/choose/index.md: ``python docs/pictures/choose_tree.py``.

The first question that is answered by yes names the method. The same list is in the page as text.
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from read_a_map import save

STEPS = (
    ("Under 20 rows, or at most 2 columns?", "PCA"),
    ("Only distances between rows?", "ClassicalMDS"),
    ("Cluster labels, no picture?", "SpectralClustering"),
    (
        "Features for another model?",
        "few labels: LaplacianEigenmaps(16)\notherwise: PCA",
    ),
    ("An order along a process?", "DiffusionMaps, pseudotime"),
    (
        "One connected curve or surface?",
        "Isomap\nflat, in the units of the data: LTSA\nflat, with holes or noise: MVU\n"
        "cannot be flattened: ConformalEigenmaps",
    ),
    ("Accurate images, curves or rows back?", "UKR"),
    ("Groups, and the shapes inside them?", "ElasticEmbedding"),
    ("Anything else: a picture of groups", "TSNE"),
)


def main() -> None:
    """Draw the questions below each other, with the methods to their right."""
    figure, ax = plt.subplots(figsize=(9.4, 6.4))
    y = 0.0
    for number, (question, method) in enumerate(STEPS, 1):
        lines = method.count("\n") + 1
        middle = y - 0.18 * (lines - 1)
        box(ax, 0.0, middle, f"{number}  {question}", "#e8eef7", "left")
        box(ax, 5.65, middle, method, "#fdf0d5", "left", weight="bold" if lines == 1 else "normal")
        arrow(ax, (4.9, middle), (5.5, middle), "yes" if number < len(STEPS) else "")
        if number < len(STEPS):
            following = STEPS[number][1].count("\n")
            below = y - 0.8 - 0.36 * (lines - 1) - 0.18 * following
            arrow(ax, (0.6, middle - 0.24), (0.6, below + 0.24), "no")
        y -= 0.8 + 0.36 * (lines - 1)
    ax.set(xlim=(-0.2, 10.2), ylim=(y + 0.4, 0.5))
    ax.axis("off")
    save(figure, "choose_tree")


def box(ax: plt.Axes, x: float, y: float, text: str, color: str, side: str, **style: str) -> None:
    """Write text in a rounded box."""
    frame = {"boxstyle": "round,pad=0.4", "facecolor": color, "edgecolor": "#7a869a"}
    ax.text(x, y, text, ha=side, va="center", fontsize=11, bbox=frame, **style)


def arrow(ax: plt.Axes, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """Draw an arrow with a word beside it."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#445"})
    level = start[1] == end[1]
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    ax.text(x + (0 if level else 0.12), y + (0.07 if level else 0), text, color="#445", fontsize=9,
            ha="center" if level else "left", va="bottom" if level else "center")  # fmt: skip


if __name__ == "__main__":
    main()
