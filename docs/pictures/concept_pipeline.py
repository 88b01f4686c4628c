"""The stages of a fit, from data to a map and back: docs/images/concept_pipeline.png."""

import matplotlib.pyplot as plt
from concept_figure import save
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREEN, GRAY = "#cfe3f5", "#fde0c2", "#d3ebd3", "#eeeeee"
BOXES = {  # name: (x, y, color)
    "data": (0, 1, GRAY),
    "neighbors": (2, 1, GRAY),
    "affinities": (4, 1, GRAY),
    "spectral\nproblem": (6, 1.8, BLUE),
    "eigensolver": (8, 1.8, BLUE),
    "objective": (6, 0.2, ORANGE),
    "optimizer": (8, 0.2, ORANGE),
    "map": (10, 1, GRAY),
    "new points\nand back": (10, -0.4, GREEN),
    "evidence": (10, 2.4, GREEN),
}
ARROWS = [
    ("data", "neighbors"),
    ("neighbors", "affinities"),
    ("affinities", "spectral\nproblem"),
    ("affinities", "objective"),
    ("spectral\nproblem", "eigensolver"),
    ("objective", "optimizer"),
    ("eigensolver", "map"),
    ("optimizer", "map"),
    ("map", "new points\nand back"),
    ("map", "evidence"),
]
W, H = 0.82, 0.38  # half the width and height of a box

fig, ax = plt.subplots(figsize=(9, 2.9), layout="constrained")
for name, (x, y, color) in BOXES.items():
    style = "round,pad=0,rounding_size=0.12"
    ax.add_patch(FancyBboxPatch((x - W, y - H), 2 * W, 2 * H, style, fc=color, ec="0.35"))
    ax.text(x, y, name, ha="center", va="center", fontsize=11, weight="bold")
for start, end in ARROWS:
    (x, y), (u, v) = BOXES[start][:2], BOXES[end][:2]
    if x == u:
        y, v = (y + H, v - H) if v > y else (y - H, v + H)
    else:
        x, u = x + W, u - W
    ax.annotate("", (u, v), (x, y), arrowprops={"arrowstyle": "-|>", "color": "0.25"})
ax.text(7, 2.35, "spectral methods", ha="center", fontsize=11, style="italic")
ax.text(7, -0.5, "iterative methods", ha="center", fontsize=11, style="italic")
ax.set(xlim=(-0.9, 10.9), ylim=(-0.85, 2.85), aspect="equal")
ax.axis("off")
save(fig, "pipeline", 130)
