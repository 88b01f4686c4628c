"""The stages of a fit, from data to a map and back: docs/images/concept_pipeline.png."""

import matplotlib.pyplot as plt
from concept_figure import save
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREEN, GRAY = "#cfe3f5", "#fde0c2", "#d3ebd3", "#eeeeee"
BOXES = {  # name: (x, y, second line, color)
    "data": (0, 1, "X", GRAY),
    "neighbors": (2, 1, "NeighborGraph", GRAY),
    "affinities": (4, 1, "Weights", GRAY),
    "spectral problem": (6, 2, "SpectralProblem", BLUE),
    "eigensolver": (8, 2, "Spectrum", BLUE),
    "objective": (6, 0, "Objective", ORANGE),
    "optimizer": (8, 0, "Solution", ORANGE),
    "map": (10.6, 1, "embedding_", GRAY),
    "new points and back": (10.6, -0.5, "transform, inverse_transform", GREEN),
    "evidence": (10.6, 2.5, "residuals_, assess, score", GREEN),
}
ARROWS = [
    ("data", "neighbors"),
    ("neighbors", "affinities"),
    ("affinities", "spectral problem"),
    ("affinities", "objective"),
    ("spectral problem", "eigensolver"),
    ("objective", "optimizer"),
    ("eigensolver", "map"),
    ("optimizer", "map"),
    ("map", "new points and back"),
    ("map", "evidence"),
]
HALF_HEIGHT = 0.32


def half_width(name):
    """Half the width of a box."""
    return 1.47 if name in ("new points and back", "evidence") else 0.88


fig, ax = plt.subplots(figsize=(10.5, 3.5), layout="constrained")
for name, (x, y, content, color) in BOXES.items():
    w, h = half_width(name), HALF_HEIGHT
    style = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x - w, y - h), 2 * w, 2 * h, style, fc=color, ec="0.35"))
    ax.text(x, y + 0.11, name, ha="center", va="center", fontsize=9.5, weight="bold")
    ax.text(x, y - 0.14, content, ha="center", va="center", fontsize=9, family="monospace")
for start, end in ARROWS:
    (x, y), (u, v) = BOXES[start][:2], BOXES[end][:2]
    if x == u:
        y, v = (y + HALF_HEIGHT, v - HALF_HEIGHT) if v > y else (y - HALF_HEIGHT, v + HALF_HEIGHT)
    else:
        x, u = x + half_width(start), u - half_width(end)
    ax.annotate("", (u, v), (x, y), arrowprops={"arrowstyle": "-|>", "color": "0.25"})
ax.text(7, 2.45, "spectral methods", ha="center", fontsize=10, style="italic")
ax.text(7, -0.55, "iterative methods", ha="center", fontsize=10, style="italic")
ax.set(xlim=(-1.0, 12.2), ylim=(-0.95, 2.95), aspect="equal")
ax.axis("off")
save(fig, "pipeline", 130)
