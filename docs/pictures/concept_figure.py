"""Saves the pictures of the concepts chapters."""

from io import BytesIO
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parents[1] / "images"


def save(fig, name, dpi=110):
    """Write docs/images/concept_NAME.png with a palette of 256 colors, which halves its size."""
    buffer = BytesIO()
    fig.savefig(buffer, dpi=dpi, facecolor="white")
    image = Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(IMAGES / f"concept_{name}.png", optimize=True)
