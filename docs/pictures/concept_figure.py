"""Saves the pictures of the concepts chapters."""

from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

# Legible where the page is 640 pixels wide.
plt.rcParams.update({"font.size": 13, "axes.titlesize": 13})

IMAGES = Path(__file__).parents[1] / "images"


def save(fig, name, dpi=110):
    """Write docs/images/concept_NAME.png with a palette of 256 colors, which halves its size."""
    buffer = BytesIO()
    fig.savefig(buffer, dpi=dpi, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(IMAGES / f"concept_{name}.png", optimize=True)
