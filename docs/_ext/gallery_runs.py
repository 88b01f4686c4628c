"""Decide which examples of the gallery a build runs; the others show a stored picture and say so.

``GALLERY=fast`` runs only examples that take about a second; otherwise all run whose data are
there. After a build with all data, ``python docs/_ext/gallery_runs.py`` stores the pictures.
"""

import os
import re
import warnings
from pathlib import Path
from shutil import copy

from manifoldry.datasets import find_data

# Folders and examples in the order in which the gallery shows them.
EXAMPLES = {
    "first_maps": (
        "digits",
        "swiss_roll",
        "columns_with_units",
        "faces",
        "rotating_object",
        "words",
        "cells",
        "sensor_curve",
        "molecule_shapes",
    ),
    "new_points": (
        "unseen_digits",
        "inverse_grid",
        "walk",
        "error_radius",
        "save_and_load",
    ),
    "trust": (
        "where_to_trust",
        "clusters_in_noise",
        "distances_between_clusters",
        "same_map_twice",
        "how_many_dimensions",
        "held_out_score",
        "pipeline",
        "short_circuits",
        "which_feature",
        "report",
        "explorer",
    ),
    "spectral": (
        "nonredundant",
        "unfolding_with_a_proof",
        "angles",
        "branches",
        "pieces",
        "clusters_of_any_shape",
        "denoise",
    ),
    "iterative": (
        "perplexity",
        "how_tsne_works",
        "elastic_or_tsne",
        "unfolding_film",
        "guidance",
        "optimizers",
        "noisy_curve",
        "start_from_a_model",
        "interrupt_and_continue",
    ),
    "density": (
        "density_on_a_manifold",
        "embed_a_density",
        "learn_a_rotation",
    ),
    "large": (
        "landmarks",
        "one_graph",
        "memory_map",
        "gpu",
        "from_zarr",
    ),
    "extending": (
        "own_method",
        "own_objective",
        "own_metric_and_regressor",
    ),
}
FAST = (
    "first_maps/sensor_curve",
    "new_points/save_and_load",
    "trust/short_circuits",
    "trust/which_feature",
    "spectral/nonredundant",
    "density/learn_a_rotation",
    "large/gpu",
    "extending/own_method",
)
# Files of the loaders in `manifoldry.datasets`.
DATA = {
    "load_coil20": "coil20",
    "load_frey_faces": "frey_faces",
    "load_glove": "glove100_top10000",
    "load_isomap_faces": "isomap_faces32",
    "load_mnist": "mnist",
    "load_pbmc": "pbmc68k_reduced",
    "load_photographs": "photos_more",
    "load_rotating_monkey": "rotating_monkey",
    "load_usps": "usps",
}
PICTURES = Path(__file__).parent.parent / "images" / "gallery"


def forget_warning_filters(gallery_conf, script):
    """Let every example begin with the filters of a fresh process, and print warnings in short."""
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}\n"


class ReadingOrder:
    """Sort the examples of a folder as they are listed above."""

    def __init__(self, source):
        self.folder = Path(source).name

    def __call__(self, filename):
        """Return the place of an example in its folder."""
        return EXAMPLES[self.folder].index(Path(filename).stem)


def picture(script: Path):
    """Return the stored picture of an example that needs data."""
    return PICTURES / f"{script.parent.name}-{script.stem}.png"


def first_picture(docs: Path, script: Path):
    """Return where sphinx-gallery keeps the first picture of an example."""
    return docs / "gallery" / script.parent.name / "images" / f"sphx_glr_{script.stem}_001.png"


def loaders(script: Path):
    """Return the loaders of data that an example calls."""
    return [loader for loader in DATA if f"{loader}(" in script.read_text()]


def reason_not_to_run(script: Path):
    """Return why a build does not run an example, or None if it does."""
    for loader in loaders(script):
        if find_data(DATA[loader]) is None:
            return f"the data of ``manifoldry.datasets.{loader}`` were not on the machine"
    name = f"{script.parent.name}/{script.stem}"
    if os.environ.get("GALLERY") == "fast" and name not in FAST:
        return "only fast examples were run"
    return None


def scripts(examples: Path):
    """Return the examples of all folders."""
    return [
        examples / folder / f"{name}.py" for folder, names in EXAMPLES.items() for name in names
    ]


def executed(examples: Path):
    """Return the pattern of paths that sphinx-gallery runs."""
    run = [path for path in scripts(examples) if reason_not_to_run(path) is None]
    return "|".join(re.escape(f"{path.parent.name}/{path.name}") for path in run) or "^$"


def place_pictures(app):
    """Put stored pictures where sphinx-gallery looks for the first picture of an example."""
    docs = Path(app.srcdir)
    for script in scripts(docs.parent / "examples"):
        if picture(script).exists() and reason_not_to_run(script) is not None:
            first_picture(docs, script).parent.mkdir(parents=True, exist_ok=True)
            copy(picture(script), first_picture(docs, script))


def store_pictures(docs: Path):
    """Store the first picture of every example that needs data."""
    PICTURES.mkdir(exist_ok=True)
    for script in filter(loaders, scripts(docs.parent / "examples")):
        copy(first_picture(docs, script), picture(script))


def say_not_run(app, docname, source):
    """Add a note and the stored picture to the page of an example that was not run."""
    gallery, _, name = docname.partition("/")
    script = Path(app.srcdir).parent / "examples" / f"{name}.py"
    if gallery != "gallery" or not script.is_file():
        return
    reason = reason_not_to_run(script)
    if reason is None:
        return
    note = f".. note::\n\n   This example was not run for this site: {reason}."
    if picture(script).exists():
        image = f"/gallery/{script.parent.name}/images/sphx_glr_{script.stem}_001.png"
        note += f" The picture is of an earlier run.\n\n.. image:: {image}"
    title = re.search(r"^(=+)$\n", source[0], flags=re.MULTILINE)
    source[0] = f"{source[0][: title.end()]}\n{note}\n\n{source[0][title.end() :]}"


def remove_external_styles(app, docname, source):
    """Remove the icons that matplotlib's animations fetch from elsewhere; the theme has them."""
    if docname.startswith("gallery/"):
        source[0] = re.sub(r'<link rel="stylesheet"\s+href="https:[^>]*>', "", source[0])


def setup(app):
    """Place pictures before sphinx-gallery runs, and change pages as they are read."""
    app.connect("builder-inited", place_pictures, priority=1)
    app.connect("source-read", say_not_run)
    app.connect("source-read", remove_external_styles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    store_pictures(Path(__file__).parents[1])
