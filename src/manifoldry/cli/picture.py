"""Pictures of maps, drawn without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.io.extras import optional_module
from manifoldry.io.table import Table, first_label
from manifoldry.util.writing import written_at_once

PICTURE_FORMATS = (".png", ".pdf", ".svg", ".jpg")
_MOST_CLASSES = 40  # of whole numbers, as in plots


def draw_map(
    path: Path, embedding: Any, table: Table, title: str, image_cmap: str = "gray"
) -> Path:
    """Draw a map, colored by the first label; rows that are images are shown as images."""
    without_screen()
    from manifoldry.plotting import plot_embedding, plot_images

    color, options = _color(table)
    options["title"] = title
    if embedding.shape[1] > 3:
        options |= {"components": (0, 1), "title": f"{title}, {_first_two(embedding.shape[1])}"}
    if table.image_shape is not None and embedding.shape[1] == 2:
        images = np.asarray(table.X).reshape(table.n, *table.image_shape)
        ax = plot_images(embedding, images, color, image_cmap=image_cmap, **options)
    else:
        ax = plot_embedding(embedding, color, **options)
    return save_figure(path, ax.figure)


def draw_placed(path: Path, embedding: Any, placed: Any, title: str) -> Path:
    """Draw new points on a map."""
    without_screen()
    from manifoldry.plotting import plot_embedding

    components = (0, 1) if embedding.shape[1] > 3 else None
    ax = plot_embedding(embedding, new_embedding=placed, title=title, components=components)
    return save_figure(path, ax.figure)


def save_figure(path: Path, figure: Any, dpi: int = 150) -> Path:
    """Write a figure in the format of the suffix."""
    import matplotlib.pyplot as plt

    with written_at_once(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."), dpi=dpi, bbox_inches="tight")
    plt.close(figure)
    return path


def without_screen() -> None:
    """Make matplotlib draw into files only; name the extra if it is not installed."""
    optional_module("matplotlib", "cli", "drawing a picture").use("Agg")


def draw_comparison(path: Path, comparison: Any, table: Table) -> Path:
    """Draw the maps of a comparison beside each other."""
    without_screen()
    from manifoldry.plotting import plot_comparison

    color, options = _color(table)
    columns = max(each.shape[1] for each in comparison.aligned.values())
    if columns > 3:
        options["components"] = (0, 1)
    axes = plot_comparison(comparison, color, **options)
    if columns > 3:
        axes[0].figure.suptitle(_first_two(columns).capitalize(), fontsize=11)
    return save_figure(path, axes[0].figure)


def _color(table: Table) -> tuple[Any, dict[str, Any]]:
    """The first label and options of plots for it; nothing if almost every row has its own text."""
    name, values = first_label(table)
    if values is None:
        return None, {}
    count, is_number = len(set(values.tolist())), values.dtype.kind in "iuf"
    if count > max(table.n // 2, 1) and not is_number:
        return None, {}
    # Many different whole numbers, such as years, have a color bar.
    is_scale = is_number and count > _MOST_CLASSES
    return values, {"color_label": name, "categorical": False if is_scale else None}


def _first_two(columns: int) -> str:
    return f"coordinates 1 and 2 of {columns}"
